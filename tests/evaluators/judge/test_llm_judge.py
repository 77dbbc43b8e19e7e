"""`llm_judge`: what is asked, how the verdict is read, and what it is worth."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentv
from agentv.evaluators.judge.evidence import Evidence, make_fence, visible
from agentv.evaluators.judge.prompt import find_nonce, scripted
from agentv.evaluators.judge.transcript import FIRST, LAST, Step, truncate_steps
from agentv.model.results import EvaluatorResult
from tests.support.examples import examples

ANSWER = "I refunded order A-17 and wrote to the customer."
REPLY: list[Any] = [
    {"role": "assistant", "tool_calls": [{"tool": "refund", "input": {"order": "A-17"}, "output": {"ok": True}}]},
    {"role": "assistant", "content": ANSWER},
]
Json = dict[str, Any]


def item(name: str, *, met: bool = True, quote: str = "refunded order", **more: Any) -> Json:
    return {"id": name, "met": met, "quote": quote, "reason": "because", **more}


def judged(config: Json, *items: Json, reply: Any = REPLY, **options: Any) -> EvaluatorResult:
    """Return the result for this reply of the judge."""
    judge = scripted({"items": list(items)})
    return agentv.score(reply, [{"type": "llm_judge", **config}], judge=judge, **options).evaluators[0]


class Listener:
    """A judge that remembers what it was asked, and answers with one reply after the other."""

    def __init__(self, *replies: str) -> None:
        self.prompts: list[str] = []
        self._replies = replies

    def __call__(self, prompt: str) -> str:
        self.prompts.append(prompt)
        reply = self._replies[min(len(self.prompts), len(self._replies)) - 1]
        return reply.replace("WORD", find_nonce(prompt))


GOOD = json.dumps({"verdict": "WORD", "items": [item("1")]})


def test_items_count_by_their_weight_and_the_threshold_is_seven_tenths() -> None:
    rubric = [{"id": "a", "criterion": "A", "weight": 7}, {"id": "b", "criterion": "B", "weight": 3}]
    result = judged({"rubric": rubric}, item("a"), item("b", met=False))
    assert (result.status, result.score) == ("pass", 0.7)
    assert result.hits == ('a is met: A. because ("refunded order")',)
    assert result.misses == ('b is not met: B. because ("refunded order")',)
    assert judged({"rubric": rubric, "threshold": 0.8}, item("a"), item("b", met=False)).status == "fail"
    assert judged({"rubric": rubric}, item("a", met=False), item("b")).score == pytest.approx(0.3)


def test_no_score_makes_up_for_a_required_item() -> None:
    rubric = [{"id": "a", "criterion": "A", "weight": 9}, {"id": "b", "criterion": "B", "required": True}]
    result = judged({"rubric": rubric}, item("a"), item("b", met=False))
    assert (result.status, result.score) == ("fail", 0.9)


def test_a_criterion_in_free_words_is_an_item_of_its_own() -> None:
    assert judged({"criterion": "It is done."}, item("criterion")).hits[0].startswith("criterion is met: It is done.")


@pytest.mark.parametrize(("score", "value", "met"), [(0, 0.0, False), (5, 0.5, False), (6, 0.6, True), (10, 1.0, True)])
def test_scores_in_ranges_become_shares(score: int, value: float, met: bool) -> None:
    scores = {"0-3": "rude", "4-7": "neutral", "8-10": "warm"}
    rubric = [{"id": "tone", "criterion": "How warm is it?", "scores": scores, "min": 6, "required": True}]
    said = {"id": "tone", "score": score, "quote": "refunded", "reason": "so so"}
    result = judged({"rubric": rubric, "threshold": 0.1}, said)
    assert result.score == pytest.approx(value)
    assert result.status == ("pass" if met else "fail")
    assert (result.hits or result.misses)[0].startswith(f"tone scores {score} of 10: How warm is it?")


@pytest.mark.parametrize("score", [-1, 4, 11, 2.5, "3", True, None])
def test_a_score_outside_of_the_ranges_is_no_verdict(score: Any) -> None:
    rubric = [{"id": "tone", "criterion": "How warm?", "scores": {"0-3": "cold", "5-10": "warm"}}]
    said = {"id": "tone", "score": score, "quote": "refunded", "reason": ""}
    judge = Listener(json.dumps({"verdict": "WORD", "items": [said]}))
    config = {"type": "llm_judge", "rubric": rubric}
    result = agentv.score(REPLY, [config], judge=judge).evaluators[0]
    assert (result.status, result.score) == ("error", None)
    assert "a whole number from 0 to 10 that is in one of its ranges" in result.details["error"]


def test_an_unreadable_reply_is_asked_for_once_more_with_what_was_wrong() -> None:
    judge = Listener("It is fine, 10/10.", GOOD)
    result = agentv.score(REPLY, [{"type": "llm_judge", "rubric": ["A"]}], judge=judge).evaluators[0]
    assert result.status == "pass"
    assert result.details["judge"]["calls"] == 2
    assert result.details["asked_again"].startswith('There is no JSON object in it whose "verdict" is')
    first, second = judge.prompts
    assert "your last reply" not in first
    assert "It is fine, 10/10." in second
    wrong = result.details["asked_again"].replace(find_nonce(second), "(the word)")
    assert f"BEGIN {find_nonce(second)} what was wrong with it\n{wrong}\nEND" in second
    assert second.rindex("It is fine") < second.rindex("Reply with one JSON object"), "instructions come last"


def test_after_the_second_time_it_is_an_error_that_says_what_was_said() -> None:
    judge = Listener("no", "still no")
    result = agentv.score(REPLY, [{"type": "llm_judge", "rubric": ["A"]}], judge=judge).evaluators[0]
    assert (result.status, result.score, result.hits, result.misses) == ("error", None, (), ())
    assert result.details["reply"] == '"still no"'
    assert len(judge.prompts) == 2


@pytest.mark.parametrize("wrapping", ["{}", "```json\n{}\n```", "Let me think about it.\n\n{}\n\nThat is all."])
def test_a_verdict_may_stand_amid_other_words(wrapping: str) -> None:
    judge = Listener(wrapping.replace("{}", GOOD))
    assert agentv.score(REPLY, [{"type": "llm_judge", "rubric": ["A"]}], judge=judge).status == "pass"


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("refunded order A-17", True),
        ("REFUNDED   order\nA-17", True),
        ("refunded order A\u201117", True),
        ("I refunded the order", False),
        ("refund order A-17", False),
        ("Refund the order of the user", False),
    ],
)
def test_a_quotation_must_occur(quote: str, found: bool) -> None:
    judge = Listener(json.dumps({"verdict": "WORD", "items": [item("1", quote=quote)]}))
    result = agentv.score(REPLY, [{"type": "llm_judge", "rubric": ["A"]}], judge=judge).evaluators[0]
    assert result.status == ("pass" if found else "error")
    if not found:
        assert "does not occur in what the agent said or did" in result.details["error"]


def test_the_question_and_the_expectation_are_no_evidence_of_what_the_agent_did() -> None:
    case = {"id": "a", "input": "Please refund order B-42", "expected": "The money is on its way"}
    for quote in ("refund order B-42", "money is on its way"):
        judge = Listener(json.dumps({"verdict": "WORD", "items": [item("1", quote=quote)]}))
        check = {"type": "llm_judge", "rubric": ["A"]}
        suite = {"cases": [{**case, "evaluators": [check]}]}
        (record,) = agentv.evaluate(suite, target=lambda _: ANSWER, judge=judge).results
        assert quote in judge.prompts[0]
        assert record.status == "error"


def test_what_is_missing_cannot_be_quoted() -> None:
    assert judged({"rubric": ["A"]}, item("1", met=False, quote="")).status == "fail"
    nothing = judged({"rubric": ["It says nothing."]}, item("1", quote=""), reply={"text": ""})
    assert nothing.status == "pass"


def test_calls_are_shown_on_request_only_and_as_what_they_are() -> None:
    plain, shown = Listener(GOOD), Listener(GOOD)
    agentv.score(REPLY, [{"type": "llm_judge", "rubric": ["A"]}], judge=plain)
    agentv.score(REPLY, [{"type": "llm_judge", "rubric": ["A"], "show": ["tool_calls", "trace_summary"]}], judge=shown)
    assert "tool" not in plain.prompts[0].partition("Decide")[0]
    assert 'call of the tool "refund", input (what the agent gave to the tool)\n{"order":"A-17"}' in shown.prompts[0]
    assert "a tool result: it comes from the tool, not from the user and not from us)\n" in shown.prompts[0]
    assert '"tool_calls_by_name":{"refund":1}' in shown.prompts[0]


@pytest.mark.parametrize("show", [["tool_calls"], ["trace"], ["trace_summary"]])
def test_an_agent_without_a_trace_can_be_judged_all_the_same(show: list[str]) -> None:
    config = {"type": "llm_judge", "rubric": ["A"], "show": show}
    assert agentv.score({"text": ANSWER}, [config], judge=Listener(GOOD)).status == "pass"


def test_counts_and_whole_calls_can_be_quoted() -> None:
    quote = '"tool_calls_by_name": {"refund": 1}'
    assert judged({"rubric": ["A"], "show": ["trace_summary"]}, item("1", quote=quote)).status == "pass"
    assert judged({"rubric": ["A"]}, item("1", quote=quote)).status == "error"
    template = {"rubric": ["A"], "prompt": "{{ tool_calls }} {{ trace }}"}
    assert judged(template, item("1", quote='"name":"refund","input":{"order":"A-17"}')).status == "pass"


def test_without_a_judge_it_is_an_error_that_says_how_to_give_one() -> None:
    result = agentv.score(REPLY, [{"type": "llm_judge", "rubric": ["A"]}])
    assert result.status == "error"
    assert "agentv.score(..., judge=function)" in result.evaluators[0].details["error"]


def test_several_judges_are_told_apart_by_name() -> None:
    yes, no = Listener(GOOD), Listener(GOOD.replace("true", "false"))
    checks = [{"type": "llm_judge", "judge": name, "rubric": ["A"]} for name in ("yes", "no", "maybe")]
    result = agentv.score(REPLY, checks, judge={"yes": yes, "no": no})
    assert [each.status for each in result.evaluators] == ["pass", "fail", "error"]
    assert "there is no judge 'maybe' here" in result.evaluators[2].details["error"]


SEARCH = {"tool": "search", "input": {"q": 1}, "output": "3 hits"}
SOURCES: dict[str, Any] = {
    "messages": {"output_messages": [{"role": "assistant", "tool_calls": [SEARCH, {"tool": "ping"}]}]},
    "a trace": {
        "trace": [
            {"type": "tool_call", "name": "search", "input": {"q": 1}, "id": "1"},
            {"type": "tool_result", "id": "1", "output": "3 hits"},
            {"type": "tool_call", "name": "ping"},
        ]
    },
    "a trace beside messages without calls": {
        "output_messages": [{"role": "assistant", "content": "Done."}],
        "trace": [
            {"type": "tool_call", "name": "search", "input": {"q": 1}, "output": "3 hits"},
            {"type": "tool_call", "name": "ping"},
        ],
    },
}


class TestPrompt:
    def prompt(self, template: str, reply: Any = REPLY) -> str:
        judge = Listener(GOOD)
        result = agentv.score(reply, [{"type": "llm_judge", "rubric": ["A"], "prompt": template}], judge=judge)
        assert judge.prompts, result.evaluators[0].details
        return judge.prompts[0]

    def test_every_variable_is_there_and_fenced(self) -> None:
        names = ["input", "expected", "candidate", "tool_calls", "trace", "trace_summary"]
        text = self.prompt("\n".join(f"<{name}> {{{{ {name} }}}}" for name in names) + "\nRubric: {{ rubric }}")
        word = find_nonce(text)
        assert f'<candidate> «{word} "{ANSWER}" {word}»' in text
        assert f'<tool_calls> «{word} [{{"step":1,"type":"tool_call","name":"refund","input":{{"order":"A-17"}}' in text
        assert "<trace> «" in text
        assert "<expected> None" in text
        assert 'Rubric: - id "1" (met or not met): A' in text
        assert text.index("<candidate>") < text.index("Reply with one JSON object")

    def test_loops_and_filters_give_fenced_text_too(self) -> None:
        text = self.prompt("{% for call in tool_calls %}{{ loop.index }}: {{ call.name | upper }}{% endfor %}")
        word = find_nonce(text)
        assert f'1: «{word} "REFUND" {word}»' in text

    @pytest.mark.parametrize("reply", SOURCES.values(), ids=SOURCES)
    def test_the_loop_of_the_docs_works_for_calls_of_every_source(self, reply: Any) -> None:
        page = (Path(agentv.__file__).parents[2] / "docs/reference/evaluators/llm_judge.md").read_text(encoding="utf-8")
        loop = re.search(r"^ *{% for call in tool_calls .*?endfor %}$", page, re.MULTILINE | re.DOTALL)
        assert loop is not None
        text = self.prompt(loop[0], reply)
        fence = find_nonce(text)
        printed = re.sub(rf"«{fence} (.*?) {fence}»", r"\1", text)
        assert 'Tool "search" was given {"q":1} and returned "3 hits".' in printed
        assert 'Tool "ping" was given None and returned None.' in printed

    @pytest.mark.parametrize("reply", SOURCES.values(), ids=SOURCES)
    def test_a_field_of_a_call_that_the_agent_did_not_send_is_none(self, reply: Any) -> None:
        names = ("name", "tool", "input", "output", "status", "error", "id", "timestamp", "duration_ms", "metadata")
        fields = " ".join(f"{name}={{{{ call.{name} is none }}}}" for name in names)
        text = self.prompt(f"{{% for call in tool_calls %}}{fields}\n{{% endfor %}}", reply)
        assert "name=False tool=False input=True output=True status=True error=True" in text

    def test_the_names_of_other_documents_are_known(self) -> None:
        template = (
            "{{ candidate_trace[0].type }} {{ candidate_trace_summary.event_count }} {{ output_messages[0].role }}"
        )
        text = self.prompt(template, SOURCES["messages"])
        word = find_nonce(text)
        assert f'«{word} "tool_call" {word}» 2 «{word} "assistant" {word}»' in text
        assert (
            self.prompt("{{ candidate_trace is none }} {{ output_messages is none }}", {"text": "x"}).count("True") == 2
        )

    def test_messages_of_a_template_are_shortened_and_redacted_like_everything_else(self) -> None:
        messages = [{"role": "assistant", "content": f"{at} " + "x" * 5_000} for at in range(40)]
        config = {"type": "llm_judge", "rubric": ["A"], "max_chars": 5_000, "prompt": "{{ output_messages }}"}
        judge = Listener(GOOD)
        result = agentv.score({"output_messages": messages}, [config], judge=judge)
        assert len(judge.prompts[0]) < 20_000
        assert any("messages" in warning for warning in result.warnings)

    def test_what_an_agent_writes_is_never_a_template(self) -> None:
        said = "{{ 12345 * 6789 }} {% raw %} {{ rubric }}"
        text = self.prompt("{{ candidate }} {{ candidate ~ '!' }}", {"text": said})
        assert "83810205" not in text
        assert text.count(said) == 2

    def test_a_field_that_is_not_there_is_an_error_of_this_run(self) -> None:
        config = {"type": "llm_judge", "rubric": ["A"], "prompt": "{{ tool_calls[0].nope }}"}
        result = agentv.score(REPLY, [config], judge=Listener(GOOD)).evaluators[0]
        assert result.status == "error"
        assert "the prompt could not be rendered: UndefinedError" in result.details["error"]

    def test_what_is_made_of_the_rubric_and_the_answer_is_fenced(self) -> None:
        for template in (
            "{{ rubric ~ candidate }}",
            "{{ rubric.replace('A', candidate) }}",
            "{{ rubric.format(candidate) }}",
        ):
            text = self.prompt(template, {"text": "INJECTED"})
            body = text.partition("Everything above")[0]
            word = find_nonce(text)
            assert f"\n\n«{word} " in body or f"BEGIN {word} data" in body

    @pytest.mark.parametrize(
        "template",
        [
            "{{ ''.__class__.__mro__ }}",
            "{{ rubric.__init__.__globals__ }}",
            "{{ candidate.__class__.__subclasses__() }}",
        ],
    )
    def test_the_sandbox_holds(self, template: str) -> None:
        config = {"type": "llm_judge", "rubric": ["A"], "prompt": template}
        result = agentv.score(REPLY, [config], judge=Listener(GOOD)).evaluators[0]
        assert result.status == "error"
        assert "unsafe" in result.details["error"]


WRONG: list[tuple[Json, str]] = [
    ({}, "checks nothing: add a `rubric` or a `criterion`"),
    ({"rubric": []}, "checks nothing"),
    ({"rubric": [" "]}, "rubric[0]: an empty criterion decides nothing"),
    ({"rubric": [{"id": "a", "criterion": "A"}, {"id": "a", "criterion": "B"}]}, "'a' is already the id of item 1"),
    ({"rubric": ["A", {"id": "1", "criterion": "B"}]}, "'1' is already the id of item 1"),
    ({"rubric": [{"criterion": "A", "min": 3}]}, "belongs to `scores`"),
    ({"rubric": [{"criterion": "A", "scores": {"0-5": "x", "5-9": "y"}}]}, "0-5 and 5-9 overlap"),
    ({"rubric": [{"criterion": "A", "scores": {"5-0": "x", "6": "y"}}]}, "'5-0' runs backwards"),
    ({"rubric": [{"criterion": "A", "scores": {"low": "x", "6": "y"}}]}, "'low' is neither a whole number nor a range"),
    ({"rubric": [{"criterion": "A", "scores": {"0-3": "x", "5": "y"}, "min": 4}]}, "4 is in none of the ranges"),
    ({"rubric": [{"criterion": "A", "scores": {"0": "x", "1": "y"}, "required": True}]}, "needs `min`"),
    ({"rubric": [{"criterion": "A", "wieght": 2}]}, "did you mean 'weight'?"),
    ({"rubric": ["A"], "prompt": "{{ candidat }}"}, "'candidat' is no variable here; did you mean 'candidate'?"),
    ({"rubric": ["A"], "prompt": "{{ range(3) }}"}, "'range' is no variable here"),
    ({"rubric": ["A"], "prompt": "a\n{% if %}"}, "not a template, says Jinja (line 2 of the template): "),
    ({"rubric": ["A"], "prompt": "{{ candidate | nope }}"}, "No filter named 'nope'"),
    ({"rubric": ["A"], "prompt": "{% include 'other' %}"}, "a prompt is one template: it includes"),
    ({"rubric": ["A"], "prompt": "{% extends candidate %}"}, "a prompt is one template: it includes"),
    ({"rubric": ["A"], "prompt": "x", "show": ["trace"]}, "a `prompt` of your own says itself what is shown"),
    ({"rubric": ["A"], "show": ["calls"]}, "Expected one of tool_calls, trace, trace_summary"),
    ({"rubric": ["A"], "require_calibration": {"kapa": 0.6}}, "did you mean 'kappa'?"),
]


@pytest.mark.parametrize(("config", "message"), WRONG)
def test_mistakes_are_found_before_anything_runs(config: Json, message: str) -> None:
    with pytest.raises(agentv.SpecError) as error:
        agentv.score(REPLY, [{"type": "llm_judge", **config}])
    assert message in str(error.value)


def random_words() -> Callable[[bytes], str]:
    from hashlib import sha256  # noqa: PLC0415 - only here

    return lambda content: sha256(b"secret" + content).hexdigest()[:16]


@settings(max_examples=examples(200), deadline=None)
@given(st.text())
def test_no_text_ends_its_block(text: str) -> None:
    fence = make_fence(random_words(), [text])
    block = fence.block("label", text)
    head, _, rest = block.partition("\n")
    body, _, tail = rest.rpartition("\n")
    assert (head, body, tail) == (f"BEGIN {fence.word} label", visible(text), f"END {fence.word}")
    assert fence.word not in body
    assert "\n" not in fence.inline(text)


def test_a_word_that_stands_in_the_data_is_not_used() -> None:
    given_words = iter(["known", "known", "fresh"])
    assert make_fence(lambda _: next(given_words), ["this is known"]).word == "fresh"


@settings(max_examples=examples(200), deadline=None)
@given(st.text(min_size=1), st.integers(0, 50), st.integers(1, 50))
def test_every_part_of_a_text_is_a_quotation_of_it(text: str, start: int, length: int) -> None:
    part = visible(text)[start : start + length]
    few = sum(char.isalnum() for char in normalize("NFKC", part)) <= 2  # those have to be whole words
    assert few or Evidence([text]).holds(part) or "⟨" in visible(text)


def steps(number: int, size: int) -> list[Step]:
    return [Step(at, "tool_call", "search", (("output", "x" * size),)) for at in range(1, number + 1)]


@pytest.mark.parametrize(
    ("number", "size", "shortened", "left_out"), [(20, 100, 0, 0), (40, 2_000, 25, 0), (5_000, 2_000, 15, 4_985)]
)
def test_long_transcripts_are_folded_by_the_stated_rule(number: int, size: int, shortened: int, left_out: int) -> None:
    most = 42_000 if number == 40 else 20_000
    folded = truncate_steps(steps(number, size), most)
    assert sum(len(text) for step in folded.steps for text in step.texts) <= most * 1.2
    assert (folded.shortened, folded.left_out, folded.total) == (shortened, left_out, number)
    numbers = [step.number for step in folded.steps]
    assert numbers[:FIRST] == list(range(1, FIRST + 1))
    assert numbers[-LAST:] == list(range(number - LAST + 1, number + 1))
    assert bool(folded.note) == bool(folded.details) == bool(shortened or left_out)
    if left_out:
        assert "steps 6 to 4990 are left out: 4985 of tool_call search" in dict(folded.steps[FIRST].fields)["text"]
        assert folded.steps[FIRST].texts == (), "our own words are nothing to quote"
        assert "4985 are only counted" in folded.note


PADDED = [
    {"role": "assistant", "tool_calls": [{"tool": "delete_all" if at == 30 else "search", "output": "x" * 2_000}]}
    for at in range(60)
]


@pytest.mark.parametrize("composite", [False, True], ids=["alone", "inside of a composite"])
@pytest.mark.parametrize("kind", ["llm_judge", "trajectory_judge"])
def test_what_padding_pushed_out_of_the_transcript_is_told(kind: str, composite: bool) -> None:
    check: Any = {"type": kind, "name": "careful", "max_chars": 10_000, "goal" if kind[0] == "t" else "criterion": "ok"}
    check |= {"show": ["tool_calls"]} if kind == "llm_judge" else {}
    whole = {"type": "all_of", "name": "careful", "evaluators": [check]} if composite else check
    judge = scripted({"items": [{"id": "criterion", "met": True, "quote": "search", "reason": ""}]})
    result = agentv.score(
        {"output_messages": [*PADDED, {"role": "assistant", "content": "Done."}]}, [whole], judge=judge
    )
    (warning,) = [each for each in result.warnings if each.startswith("careful: the judge was not shown everything: ")]
    assert "are left out: " in warning
    assert "1 of tool_call delete_all" in warning
