"""Names of other tools, and ours for the same thing: assertions, keys and commands that new users try first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

GUIDE = "docs/guide/assertions.md"
_JUDGE = "{type: llm_judge, criterion: ...}"
_RUBRIC = "{type: llm_judge, rubric: [...]}"
_GROUNDED = "{type: llm_judge, show: [tool_calls], criterion: ...}"
_SEQUENCE = "{type: tool_trajectory, mode: in_order, expected: [...]}"
_ASSERTIONS: dict[str, str] = {
    "{type: contains, value: ..., ignore_case: true}": "icontains includes ilike checks.includes",
    "{type: contains, value: ...}": "like substring string_presence containstext",
    "{type: contains, all: [...]}": "contains-all containsall keyword_coverage",
    "{type: contains, all: [...], ignore_case: true}": "icontains-all",
    "{type: contains, any: [...]}": "contains-any containsany",
    "{type: contains, any: [...], ignore_case: true}": "icontains-any",
    "{type: contains, none: [...]}": "excludes checks.excludes notcontains",
    "{type: equals, value: ...}": "exact exact_match equals_expected eq string_check is equal match",
    "{type: regex, pattern: ...}": "pattern pattern_match matches checks.matches",
    "{type: json}": "is-json valid_json json_valid json_validity",
    "{type: json, fenced: true}": "contains-json",
    "{type: json, schema: ...}": "json_schema is-valid-json json_correctness",
    "{type: json, matches: ...}": "json_match json_diff field_accuracy",
    "{type: levenshtein, value: ..., threshold: 0.8}": (
        "text_similarity fuzzy_match levenshtein_distance non_llm_string_similarity edit_distance string_similarity"
    ),
    "{type: python, function: ./checks.py:check}": "function custom python_check",
    "{type: code, command: [...]}": "javascript webhook ruby code_judge code_grader script shell",
    "{type: latency_budget, max_ms: ...}": "latency max_duration duration invocation_duration max_latency",
    "{type: cost_budget, max_usd: ...}": "cost max_cost",
    "{type: token_budget, max_total: ...}": "token_usage tokens max_tokens",
    "{type: turn_budget, max: ...}": "max_model_requests inference_call_count max_turns",
    "{type: tool_call_count, max: ...}": "trajectory:step-count max_tool_calls step_count execution_metrics",
    "{type: refusal}": "is-refusal",
    "{type: word_count, max: ...}": "word-count length max_length",
    "{type: all_of, evaluators: [...]}": "assert-set composite multi and all",
    "{type: any_of, evaluators: [...]}": "or any cascade",
    "{type: no_tool_errors}": "trace-error-spans tool_call_success",
    "{type: loop_detection}": "agent_loop_detection",
    "{type: tool_trajectory, minimums: {TOOL: 1}}": "trajectory:tool-used tool_called called_tool has_matching_span",
    "{type: tool_trajectory, forbidden: [...]}": "did_not_call blacklisted_tools",
    "{type: tool_trajectory, allowed: [...], forbidden: [...]}": "tool_permission",
    "{type: tool_trajectory, mode: superset, input_match: partial, expected: [...]}": (
        "trajectory:tool-args-match argument_correctness"
    ),
    "{type: tool_trajectory, mode: unordered, score: f1, expected: [...]}": "tool-call-f1",
    _SEQUENCE: (
        "trajectory:tool-sequence trajectory tool_calls trajectory_match tool_sequence tool_correctness "
        "tool_order_match tool_call_accuracy tool_trajectory_avg_score trajectory_accuracy"
    ),
    _RUBRIC: (
        "llm-rubric g-eval geval rubric rubrics llm_as_judge llm_grader agent_judge score_model label_model "
        "model_graded model-graded-closedqa closed_qa aspect_critic llm_judge_rubric ai_judge judge llm"
    ),
    _JUDGE: (
        "factuality model-graded-factuality model_graded_qa model_graded_fact answer-relevance answer_relevancy "
        "answer_correctness toxicity bias similarity response_match_score final_response_match"
    ),
    _GROUNDED: (
        "context-recall context-relevance context-faithfulness faithfulness groundedness hallucination hallucinations "
        "contextual_recall contextual_precision contextual_relevancy"
    ),
    "{type: trajectory_judge, goal: ...}": (
        "trajectory:goal-success task_completion goal_accuracy trajectory_llm_as_judge task_adherence plan_adherence"
    ),
}
"""Configurations of ours, and the names of the same assertion elsewhere."""
_WITHOUT: dict[str, str] = {
    "it needs embeddings": "similar semantic_similarity embedding_similarity",
    "it needs a service or a library of yours": "classifier moderation bleu meteor rouge perplexity is-sql is-html pi",
    "answers are compared by `agentv compare --judge`": "select-best max-score arena_g_eval",
}
_KEYS: dict[str, dict[str, str]] = {
    "CaseEntry": {
        "evaluators": "assert asserts assertions assertion checks scorers scorer metrics graders evals expect rubrics",
        "input": "prompt query question user message messages user_input inputs user_message",
        "expected": (
            "expected_output expectedOutput output target reference ideal answer golden reference_outputs outputs "
            "reference_trajectory expected_tools expected_trajectory expected_tool_calls expected_response"
        ),
        "turns": "conversation dialog dialogue exchanges multi_turn script user_messages",
        "simulate": "simulation simulator simulated_user user_simulator user_simulation",
        "id": "name title case_id test_id eval_id question_id task_id uid",
        "vars": "variables params",
        "tags": "category categories label labels group groups",
        "metadata": "meta",
        "repeat": "repetitions trials epochs runs times",
    },
    "TurnEntry": {
        "user": "input prompt query question message content text user_message user_input user_content",
        "expected": (
            "expected_output output reference answer expected_tools expected_tool_calls assistant "
            "tools_called tool_calls actions final_response"
        ),
        "evaluators": "assert asserts assertions checks scorers metrics graders",
        "resume": "approve approval command",
    },
    "PersonaEntry": {
        "id": "name",
        "description": "profile prompt bio traits system_prompt instructions personality",
        "vars": "variables",
        "env": "environment",
    },
    "SimulateEntry": {
        "user": "driver type kind mode",
        "goal": "instructions instruction task scenario conversation_plan plan objective brief",
        "opening": "starting_prompt first_message initial_message initial_input opening_message input",
        "facts": "known_info knowledge slots data",
        "target": "model provider",
        "stop": "end until stop_when termination",
    },
    "FactEntry": {"asked": "when ask patterns keywords", "tell": "say template text answer"},
    "StopEntry": {
        "agent_says": "says text pattern regex",
        "made": "calls tools tool_calls",
        "max_turns": "max max_messages limit",
        "min_turns": "min",
    },
    "EvalEntry": {
        "targets": "providers provider models model agents agent solvers",
        "cases": "case test examples samples evals test_cases testCases eval_cases items",
        "dataset": "data datasets file files",
        "defaults": "defaultTest default evaluateOptions options settings config",
        "judge": "grader judge_model evaluator_model",
        "description": "summary title",
    },
    "DefaultsEntry": {
        "evaluators": "assert asserts assertions checks scorers metrics graders",
        "repeat": "repetitions trials epochs",
        "vars": "variables",
        "max_concurrency": "maxConcurrency concurrency parallel workers",
        "timeout_s": "timeout timeout_seconds",
    },
    "Entry": {"tool": "name function tool_name toolName", "input": "arguments parameters params tool_input"},
    "Cli": {"command": "cmd program script exec run", "env": "environment", "mode": "stream batch streaming"},
    "Contains": {"value": "text substring expected", "all": "values"},
    "Equals": {"value": "text expected"},
    "Regex": {"pattern": "value regex expression"},
    "LatencyBudget": {"max_ms": "max value max_latency_ms"},
    "CostBudget": {"max_usd": "max value max_cost"},
    "LlmJudge": {"criterion": "criteria value prompt_text", "judge": "provider model target"},
}
"""Keys of our classes, and their names elsewhere."""
_TOP_LEVEL: dict[str, str] = {
    "prompts": "the text that the agent is asked is the `input` of each case; `{{ name }}` in it stands for `vars`",
    "assert": "those of every case belong below `defaults`: `defaults: {evaluators: [...]}`",
    "scorers": "those of every case belong below `defaults`: `defaults: {evaluators: [...]}`",
    "metrics": "those of every case belong below `defaults`: `defaults: {evaluators: [...]}`",
    "execution": "the target is chosen with `target: NAME`, evaluators of every case are `defaults.evaluators`",
}
_COMMANDS: dict[str, str] = {
    "eval": "run test tests evaluate exec start bench benchmark",
    "view": "ui open browse dashboard",
    "executions show": "show results summary",
    "executions list": "list ls history experiments",
    "compare": "diff cmp",
    "validate": "check lint verify",
    "init": "new create setup quickstart scaffold",
    "runs export": "share",
    "target list": "targets models",
    "evaluators list": "assertions asserts metrics scorers graders",
    "eval --resume": "resume continue retry",
}
_NAME = re.compile(r"[^a-z0-9]+")
_AFFIXES = re.compile(r"^(create|checks?)|(metric|evaluator|scorer|grader|llm|code|v\d)$")


def _plain(name: str) -> str:
    """Return a name in lower case without separators and words such as `Metric`."""
    plain = _NAME.sub("", name.lower())
    return _AFFIXES.sub("", plain) or plain


def _lookup(name: str, table: dict[str, str]) -> str | None:
    wanted, exact = _plain(name), _NAME.sub("", name.lower())
    names = {ours: {_NAME.sub("", other.lower()) for other in others.split()} for ours, others in table.items()}
    for form in (exact, wanted):
        found = next((ours for ours, others in names.items() if form in others), None)
        if found is not None:
            return found
    return None


def assertion_hint(name: str) -> str:
    """Return what to write here for an assertion of another tool, or an empty text."""
    base = re.sub(r"^not[-_]", "", name, flags=re.IGNORECASE)
    ours = _lookup(base, _ASSERTIONS)
    if ours is not None:
        return f"write {ours[:-1]}, not: true}}" if base != name else f"write {ours}"
    reason = _lookup(base, _WITHOUT)
    return "" if reason is None else f"it has no counterpart here ({reason}): see {GUIDE}"


def key_meant(class_name: str, key: str) -> str | None:
    """Return our key for one of another tool, or `None`."""
    return _lookup(key, _KEYS.get(class_name, {}))


def top_level_hint(key: str) -> str | None:
    """Return where something belongs that other tools have at the top level of a file, or `None`."""
    return _TOP_LEVEL.get(key)


def command_meant(name: str) -> str | None:
    """Return our command for one of another tool, or `None`."""
    return _lookup(name, _COMMANDS)


_PERSONA = (
    ("personas", "define personas in `personas`, and choose them with `persona` of a case or of `defaults`"),
    ("persona", "choose the personas of a case with `persona`: an id, or a list of ids"),
    ("", "define personas in `personas` of the eval, and choose them with `persona` of a case"),
)
_CONNECTOR = (
    ("provider", "a connector is a `provider` here"),
    ("targets", "a connector is a target here: define it in `targets`, choose it with `target`"),
    ("", "a connector is a target here, chosen for the whole eval: `target: NAME` beside `cases`"),
)
_SCENARIO = (
    ("cases", "a scenario is a case here: list it in `cases`"),
    ("input", "a scenario is a case here: its name is `id`, its text is `input`, its conversation is `turns`"),
)
_BRIEF = (("simulate", "what a simulated user wants is `simulate: {user: model, target: NAME, goal: ...}`"),)
_OPENING = (("simulate", "the first message of a simulated user is `simulate: {opening: ...}`"),)
_TURN_LIMIT = (
    (
        "simulate",
        "a conversation ends with `simulate: {stop: {max_turns: 6}}`; `type: conversation_turns` checks its turns",
    ),
)
_USER = (
    ("persona", "a description of the user is that of a persona: define it in `personas`, choose it with `persona`"),
)
_CRITERION = (("evaluators", f"a criterion is an evaluator: `evaluators: [{_JUDGE}]`"),)
_CALLS = (("turns", f"expected calls are an evaluator: `evaluators: [{_SEQUENCE}]`"),)
_SAME_CONVERSATION = (
    ("turns", "each conversation gets an id by itself: the messages of one conversation are the `turns` of one case"),
)
_OTHER_WORDS: dict[str, tuple[tuple[str, str], ...]] = {
    **dict.fromkeys(("connector", "connectorid"), _CONNECTOR),
    "connectors": (("targets", "connectors are `targets` here"), *_CONNECTOR[2:]),
    **dict.fromkeys(("scenario", "scenarioid"), _SCENARIO),
    "scenarios": (("cases", "scenarios are `cases` here"), *_SCENARIO[1:]),
    **dict.fromkeys(("persona", "personas", "personaid"), _PERSONA),
    **dict.fromkeys(
        ("instruction", "instructions", "conversationplan", "userscenario", "conversationscenario"), _BRIEF
    ),
    **dict.fromkeys(("startingprompt", "initialinput", "initialmessage", "firstmessage", "openingmessage"), _OPENING),
    **dict.fromkeys(("maxturns", "maxmessages", "maxuserturns", "maxusersimulations"), _TURN_LIMIT),
    **dict.fromkeys(("userdescription", "userprofile", "userpersona", "chatbotuser"), _USER),
    **dict.fromkeys(
        ("criteria", "criterion", "successcriteria", "failurecriteria", "expectedoutcome", "nlassertions"), _CRITERION
    ),
    **dict.fromkeys(("actions", "expectedactions", "goldenactions", "tooluses"), _CALLS),
    **dict.fromkeys(("conversationid", "threadid", "sessionid"), _SAME_CONVERSATION),
}
"""Words for our keys in other systems, without `_` and capitals: hints, each with a key that its place must know."""


def other_word_hint(key: object, known: Collection[str]) -> str | None:
    """Return what a connector, a scenario or a persona is called among these keys; `None` for other words."""
    hints = _OTHER_WORDS.get(_NAME.sub("", str(key).lower()), ())
    return next((hint for needed, hint in hints if not needed or needed in known), None)
