"""`agentv.mutate`: which changes of a reply an eval notices, and what would notice the others."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import agentv
from agentv.model.mutation import MutationReport, Survivor
from agentv.mutation.operators import make_mutants
from tests.support.examples import examples

REFUND = [
    {"tool": "get_order", "input": {"order_id": "A-17"}, "output": {"amount": 30}},
    {"tool": "refund", "input": {"order_id": "A-17", "amount": 30}, "output": "done"},
]
ANSWER = "I have refunded order A-17."
REPLY = {"text": ANSWER, "output_messages": [{"role": "assistant", "content": ANSWER, "tool_calls": REFUND}]}
GOLDEN = [{"role": "assistant", "tool_calls": REFUND}]


def survivors(report: MutationReport) -> dict[str, Survivor]:
    return {survivor.sentence: survivor for case in report.cases for survivor in case.survivors}


def test_a_golden_path_does_not_notice_a_refund_made_twice_nor_one_that_failed() -> None:
    golden = [{"role": "assistant", "tool_calls": [{key: call[key] for key in ("tool", "input")} for call in REFUND]}]
    found = survivors(agentv.mutate(REPLY, expected_messages=golden))
    assert found["refund called twice"].suggestion == "{type: tool_trajectory, maximums: {refund: 1}}"
    assert found["refund failed"].suggestion == "{type: no_tool_errors}"
    assert "refund not called" not in found


def test_counts_are_by_case_operator_and_evaluator() -> None:
    report = agentv.mutate(REPLY, [{"type": "tool_trajectory", "minimums": {"refund": 1}}, {"type": "no_tool_errors"}])
    (case,) = report.cases
    assert case.mutants == case.killed + case.survived == report.mutants
    assert case.kill_rate == pytest.approx(case.killed / case.mutants)
    by_operator = {count.name: (count.killed, count.mutants) for count in report.operators}
    assert by_operator["drop_call"] == (1, 2)
    assert by_operator["fail_call"] == (2, 2)
    by_evaluator = {count.name: count.killed for count in report.evaluators}
    assert by_evaluator == {"tool_trajectory": 3, "no_tool_errors": 2}
    assert sum(count.mutants for count in report.operators) == case.mutants


def test_only_selected_operators_are_tried() -> None:
    report = agentv.mutate(REPLY, [{"type": "no_tool_errors"}], operators=["drop_call", "fail_call"])
    assert {count.name for count in report.operators} == {"drop_call", "fail_call"}
    with pytest.raises(agentv.SpecError, match="did you mean 'drop_call'"):
        agentv.mutate(REPLY, [{"type": "no_tool_errors"}], operators="drop_cal")


def test_a_reply_that_does_not_pass_is_skipped() -> None:
    report = agentv.mutate(REPLY, [{"type": "contains", "value": "sorry"}])
    assert report.cases == ()
    assert report.kill_rate is None
    assert report.skipped[0].reason == "it does not pass with the evaluators as they are now"


def test_a_suggestion_for_a_case_with_a_threshold_is_required() -> None:
    data = {
        "targets": [{"name": "m", "provider": "mock", "reply": REPLY}],
        "cases": [
            {"id": "a", "input": "x", "threshold": 0.5, "evaluators": [{"type": "contains", "value": "A-17"}] * 3}
        ],
    }
    report = _stored(data)
    assert "required: true" in (survivors(report)["refund called twice"].suggestion or "")


def _stored(data: Any, **options: Any) -> MutationReport:
    store = Path.cwd() / "runs.db"
    execution = agentv.evaluate(data, store=store)
    return agentv.mutate(execution, store=store, **options)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_repeats_with_the_same_reply_are_changed_once_and_others_constrain_suggestions() -> None:
    texts = iter(["Order A-17 refunded.", "Refunded A-17 at once.", "Order A-17 refunded."])

    def agent(prompt: str) -> Any:
        del prompt
        return {**REPLY, "text": next(texts), "output_messages": [{"role": "assistant", "tool_calls": REFUND}]}

    data = {"cases": [{"id": "a", "input": "x", "repeat": 3, "evaluators": [{"type": "contains", "value": "17"}]}]}
    execution = agentv.evaluate(data, target=agent, store=Path("runs.db"), max_concurrency=1)
    report = agentv.mutate(execution, store="runs.db")
    (case,) = report.cases
    assert case.runs == 2
    cut = [survivor.suggestion for survivor in case.survivors if survivor.operator == "cut_answer"]
    assert all("at once" not in str(suggestion) for suggestion in cut)


def test_accepted_survivors_are_counted_apart() -> None:
    accept = [
        {"operator": "duplicate_call", "tool": "get_*", "reason": "looking twice is harmless"},
        {"operator": "drop_call", "tool": "nothing", "reason": "never made"},
    ]
    cases = [{"id": "a", "input": "x", "evaluators": [{"type": "no_tool_errors"}]}]
    Path("a.eval.yaml").write_text(
        yaml.safe_dump({"targets": [{"name": "m", "provider": "mock", "reply": REPLY}], "cases": cases}),
        encoding="utf-8",
    )
    execution = agentv.evaluate("a.eval.yaml", store=Path("runs.db"))
    before = agentv.mutate(execution, store="runs.db")
    text = Path("a.eval.yaml").read_text(encoding="utf-8") + yaml.safe_dump({"mutate": {"accept": accept}})
    Path("a.eval.yaml").write_text(text, encoding="utf-8")
    after = agentv.mutate(execution, store="runs.db")
    assert (after.accepted, after.survived, after.killed) == (1, before.survived - 1, before.killed)
    assert after.cases[0].accepted_survivors[0].accepted == "looking twice is harmless"
    assert [entry.tool for entry in after.unused_accepts] == ["nothing"]
    stored = agentv.mutate(execution, store="runs.db", stored=True)
    assert stored.accepted == 0


def test_the_evaluators_are_those_of_the_file_as_it_is_now() -> None:
    def write(*evaluators: Any) -> None:
        target = {"name": "m", "provider": "mock", "reply": REPLY}
        data = {"targets": [target], "cases": [{"id": "a", "input": "x", "evaluators": list(evaluators)}]}
        Path("a.eval.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")

    write({"type": "contains", "value": "A-17"})
    execution = agentv.evaluate("a.eval.yaml", store=Path("runs.db"))
    assert "refund failed" in survivors(agentv.mutate(execution, store="runs.db"))
    write({"type": "contains", "value": "A-17"}, {"type": "no_tool_errors"})
    assert "refund failed" not in survivors(agentv.mutate(execution, store="runs.db"))
    assert "refund failed" in survivors(agentv.mutate(execution, store="runs.db", stored=True))


def test_judges_are_left_out_unless_they_are_asked_for_with_a_limit() -> None:
    Path("judge.py").write_text(
        "def judge(prompt):\n"
        "    seen = 'could not do that' in str(prompt)\n"
        "    answer = {'reason': 'r', 'score': 0 if seen else 1, 'pass': not seen}\n"
        "    import json\n"
        "    return {'text': json.dumps(answer), 'cost_usd': 0.001}\n",
        encoding="utf-8",
    )
    check = {"type": "python", "function": "./asks.py:asks", "judge": "j"}
    Path("asks.py").write_text(
        "import json\n"
        "import agentv\n"
        "async def asks(ctx):\n"
        "    reply = await ctx.ask('j', [agentv.Message(role='user', content=ctx.candidate)])\n"
        "    return json.loads(reply.text)['pass']\n",
        encoding="utf-8",
    )
    targets = [
        {"name": "m", "provider": "mock", "reply": REPLY},
        {"name": "j", "provider": "python", "function": "./judge.py:judge"},
    ]
    data = {"targets": targets, "target": "m", "cases": [{"id": "a", "input": "x", "evaluators": [check]}]}
    Path("a.eval.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    execution = agentv.evaluate("a.eval.yaml", store=Path("runs.db"))
    assert execution.summary.status == "pass", execution.results
    without = agentv.mutate(execution, store="runs.db")
    assert without.skipped[0].reason == "it is evaluated by judges only; --judges asks them"
    with pytest.raises(agentv.SpecError, match="max_judge_cost"):
        agentv.mutate(execution, store="runs.db", judges=True)
    report = agentv.mutate(execution, store="runs.db", judges=True, max_judge_cost=5.0)
    killed = {count.name for count in report.operators if count.killed}
    assert killed == {"negate_answer"}
    inside = asyncio.run(_in_a_loop(execution))
    assert inside.killed == report.killed


async def _in_a_loop(execution: Any) -> MutationReport:
    return agentv.mutate(execution, store="runs.db", judges=True, max_judge_cost=5.0)


JUDGE = "def judge(prompt):\n    return {'text': 'true', 'cost_usd': 0.01}\n"
ASKS = """import agentv
async def asks(ctx):
    reply = await ctx.ask('j', [agentv.Message(role='user', content=ctx.candidate + {more})])
    return reply.text == 'true'
"""


def _judged(*evaluators: Any, threshold: float | None = None) -> agentv.Execution:
    """A case that passed, and is evaluated by a judge, whose replies to the original alone are cached."""
    Path("judge.py").write_text(JUDGE, encoding="utf-8")
    Path("asks.py").write_text(ASKS.format(more="''"), encoding="utf-8")
    targets = [
        {"name": "m", "provider": "mock", "reply": REPLY},
        {"name": "j", "provider": "python", "function": "./judge.py:judge"},
    ]
    check = {"type": "python", "function": "./asks.py:asks", "judge": "j"}
    case = {"id": "a", "input": "x", "evaluators": [check, *evaluators]} | (
        {"threshold": threshold} if threshold else {}
    )
    Path("a.eval.yaml").write_text(yaml.safe_dump({"targets": targets, "target": "m", "cases": [case]}), "utf-8")
    execution = agentv.evaluate("a.eval.yaml", store=Path("runs.db"))
    assert execution.summary.status == "pass", execution.results
    return execution


def _ask_for_0_cents(execution: agentv.Execution, **options: Any) -> MutationReport:
    operators = ["cut_answer", "fail_call"]
    return agentv.mutate(execution, store="runs.db", operators=operators, judges=True, max_judge_cost=1e-9, **options)


@pytest.mark.parametrize("threshold", [None, 0.5])
def test_a_change_that_only_judges_could_notice_is_not_measured_if_they_are_not_asked(threshold: float | None) -> None:
    Path("j.db").unlink(missing_ok=True)
    execution = _judged({"type": "no_tool_errors", "required": True}, threshold=threshold)
    first = _ask_for_0_cents(execution)
    assert (first.killed, first.survived, first.unmeasured) == (2, 0, 1)
    assert first.kill_rate == 1.0
    assert "`max_judge_cost` of $1e-09 is reached" in str(first.cases[0].unmeasured_reason)
    assert sum(count.mutants for count in first.operators) == 2


def test_below_a_threshold_another_failure_leaves_it_open_whether_a_change_is_noticed() -> None:
    execution = _judged({"type": "no_tool_errors"}, {"type": "contains", "value": "A-17"}, threshold=0.5)
    report = _ask_for_0_cents(execution)
    assert report.unmeasured == 1
    assert {count.name for count in report.operators} == {"fail_call"}


def test_what_was_left_out_is_counted() -> None:
    execution = _judged({"type": "no_tool_errors"})
    (case,) = agentv.mutate(execution, store="runs.db").cases
    assert case.without_judges
    assert not agentv.mutate(REPLY, [{"type": "no_tool_errors"}]).cases[0].without_judges


RAISES = """
def check(context):
    return [call for call in context.calls if call.tool == "search"][0].input["q"] == "0"
"""


@pytest.mark.parametrize(
    ("others", "threshold", "counts"),
    [
        ([], None, (0, 0, 1)),
        ([{"type": "tool_trajectory", "minimums": {"search": 1}}], None, (1, 0, 0)),
        ([{"type": "tool_trajectory", "minimums": {"search": 1}}], 0.1, (0, 0, 1)),
        ([{"type": "tool_trajectory", "minimums": {"search": 1}, "required": True}], 0.1, (1, 0, 0)),
        ([{"type": "tool_trajectory", "minimums": {"search": 1}, "kind": "metric"}], None, (0, 0, 1)),
    ],
)
def test_an_evaluator_that_cannot_decide_has_not_noticed_a_change(
    others: list[Any], threshold: float | None, counts: tuple[int, int, int]
) -> None:
    Path("raises.py").write_text(RAISES, encoding="utf-8")
    checks = [*others, {"type": "python", "function": "./raises.py:check"}]
    case = {"id": "a", "input": "x", "evaluators": checks, **({} if threshold is None else {"threshold": threshold})}
    execution = agentv.evaluate({"cases": [case]}, target=_agent([_searches(1)]), store=Path("runs.db"))
    report = agentv.mutate(execution, store="runs.db", stored=True, operators=["drop_call"])
    assert (report.killed, report.survived, report.unmeasured) == counts
    if counts[2]:
        assert report.kill_rate is None
        assert "IndexError" in str(report.cases[0].unmeasured_reason)
        assert not report.cases[0].survivors


def _agent(replies: list[Any]) -> Any:
    left = iter(replies)

    def agent(prompt: str) -> Any:
        del prompt
        return next(left)

    return agent


def _searches(count: int) -> Any:
    calls = [{"tool": "search", "input": {"q": str(index)}} for index in range(count)]
    return {"text": "Done.", "output_messages": [{"role": "assistant", "tool_calls": calls}]}


def test_a_suggestion_for_a_persona_passes_the_runs_of_the_others() -> None:
    case = {"id": "a", "input": "x", "persona": ["terse", "wordy"], "evaluators": [{"type": "no_tool_errors"}]}
    data = {"personas": [{"id": "terse", "description": "x"}, {"id": "wordy", "description": "y"}], "cases": [case]}
    agent = _agent([_searches(1), _searches(2)])
    execution = agentv.evaluate(data, target=agent, store=Path("runs.db"), max_concurrency=1)
    terse, wordy = agentv.mutate(execution, store="runs.db", stored=True).cases
    assert [terse.persona_id, wordy.persona_id] == ["terse", "wordy"]
    offered = [survivor.suggestion for survivor in (*terse.survivors, *wordy.survivors) if survivor.tool]
    suggestions = [suggestion for suggestion in offered if suggestion is not None]
    assert suggestions
    assert "{type: tool_trajectory, maximums: {search: 1}}" not in suggestions
    for suggestion in suggestions:
        for count in (1, 2):
            assert agentv.score(_searches(count), [yaml.safe_load(suggestion)]).status == "pass", suggestion


def test_a_suggestion_passes_runs_that_are_too_many_to_be_changed() -> None:
    replies = [{**_searches(1), "text": f"Done {index}."} for index in range(25)]
    replies.append(_searches(2))
    case = {"id": "a", "input": "x", "repeat": 26, "evaluators": [{"type": "no_tool_errors"}]}
    execution = agentv.evaluate({"cases": [case]}, target=_agent(replies), store=Path("runs.db"), max_concurrency=1)
    (found,) = agentv.mutate(execution, store="runs.db", operators="duplicate_call").cases
    assert (found.runs, found.left_out_runs) == (20, 6)
    assert {survivor.suggestion for survivor in found.survivors} == {"{type: no_redundant_calls}"}


def test_a_case_that_the_execution_does_not_have_is_an_error_with_a_suggestion() -> None:
    data = {"cases": [{"id": "small", "input": "x", "evaluators": [{"type": "no_tool_errors"}]}]}
    execution = agentv.evaluate(data, target=_agent([REPLY]), store=Path("runs.db"))
    with pytest.raises(agentv.StoreError, match="has no run of case 'smal'; did you mean 'small'"):
        agentv.mutate(execution, store="runs.db", cases="smal")


names = st.sampled_from(["search", "refund", "notify", "get order", "1e3", "yes", "läuft", "$x", "a*b"])
arguments = st.dictionaries(
    st.sampled_from(["id", "amount", "to", "$gt", "ja: nein", "n"]),
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["A-17", "yes", "x: y", "", "#1", "é", "[a]"])
    | st.lists(st.integers(0, 3), max_size=2) | st.dictionaries(st.sampled_from(["a", "$any"]), st.integers(0, 2)),
    max_size=3,
)  # fmt: skip
made_calls = st.fixed_dictionaries(
    {"tool": names},
    optional={
        "input": arguments,
        "output": st.sampled_from(["", "ok", "3 hits"]) | arguments,
        "status": st.sampled_from(["ok", "error", "denied"]),
    },
)
texts = st.sampled_from(["", "Done.", "Order A-17 is refunded.", "Es läuft: 3 Treffer", "yes", "#1 \"quoted\" 'x'"])
EVALUATORS: list[Any] = [
    {"type": "tool_trajectory", "maximums": {"*": 9}},
    {"type": "tool_trajectory", "forbidden": ["delete_*"]},
    {"type": "word_count", "max": 100},
]


@st.composite
def random_replies(draw: st.DrawFn) -> Any:
    """A reply of one or two messages with a few calls, and sometimes with numbers."""
    text = draw(texts)
    groups = draw(st.lists(st.lists(made_calls, max_size=3), min_size=1, max_size=2))
    messages = [{"role": "assistant", "tool_calls": calls} for calls in groups]
    messages[-1]["content"] = text
    more = {"latency_ms": 12.5} if draw(st.booleans()) else {"tokens_usage": {"input_tokens": 3, "output_tokens": 1}}
    return {"text": text, "output_messages": messages, **more}


@settings(max_examples=examples(100), deadline=None)
@given(random_replies(), st.sampled_from(EVALUATORS))
def test_a_suggestion_notices_its_mutant_and_never_fails_the_original(reply: Any, check: Any) -> None:
    report = agentv.mutate(reply, [check])
    response = agentv.decode_response(reply)
    known = {(each.operator, each.sentence, each.call): each.response for each in make_mutants(response).made}
    for survivor in survivors(report).values():
        if survivor.suggestion is None:
            continue
        evaluators = [check, yaml.safe_load(survivor.suggestion)]
        mutant = known[survivor.operator, survivor.sentence, survivor.call]
        assert agentv.score(response, evaluators).status == "pass", survivor
        assert agentv.score(mutant, evaluators).status == "fail", survivor


@pytest.mark.parametrize(
    "calls",
    [
        REFUND,
        [*REFUND, *REFUND],
        [{"tool": "search"}, {"tool": "search", "input": {}, "status": "denied"}],
        [{"tool": "search", "input": {"q": str(index)}, "output": {"hits": index}} for index in range(5)],
        [{"tool": "search", "input": "free text", "output": "x", "status": "error"}, {"tool": "answer"}],
    ],
)
def test_every_survivor_of_an_ordinary_reply_has_a_suggestion(calls: Any) -> None:
    messages = [{"role": "assistant", "content": ANSWER, "tool_calls": calls}]
    numbers = {"tokens_usage": {"input_tokens": 30, "output_tokens": 10}, "cost_usd": 0.001, "latency_ms": 250}
    report = agentv.mutate(
        {"text": ANSWER, "output_messages": messages, **numbers}, [{"type": "word_count", "max": 99}]
    )
    assert [survivor for survivor in survivors(report).values() if survivor.suggestion is None] == []
    assert report.survived >= 15
