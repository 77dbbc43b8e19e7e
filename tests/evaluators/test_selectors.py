"""`on`: which place of a run a check looks at, and what it says when there is none."""

import re
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

import agentv
from agentv.evaluators.selectors import ROOTS, PlaceError, Selector, parse_place
from agentv.registry import EVALUATORS, find_evaluator
from agentv.reports.diff import render_evaluator
from agentv.reports.terminal import Style
from agentv.spec.yaml import read_yaml

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "evaluators"
OURS = ("equals", "contains", "starts_with", "ends_with", "regex", "json", "levenshtein", "word_count")

REPLY: dict[str, Any] = {
    "output_messages": [
        {
            "role": "assistant",
            "content": [{"type": "text", "text": "Let me "}, {"type": "text", "text": "look."}],
            "tool_calls": [
                {"tool": "search", "input": {"query": "refund", "ids": [7, 8], "a.b": 1}, "output": {"hits": 3}},
                {"tool": "get_user", "output": None, "status": "error", "error": "no such user"},
                {"tool": "search", "input": "raw text", "output": "nothing found"},
            ],
        },
        {"role": "tool", "name": "search", "content": "3 hits"},
        {"role": "assistant", "content": None, "mood": "calm"},
        {"role": "assistant", "content": "It takes 3 days."},
    ],
    "reasoning": "The policy says so.",
    "gen_ai.system": "local",
    "model": {"name": "m-1"},
}


def run(on: str, reply: Any = None, **config: Any) -> agentv.EvaluatorResult:
    check = {"type": "equals", "value": "?", **config, "on": on}
    return agentv.score(REPLY if reply is None else reply, [check]).evaluators[0]


@pytest.mark.parametrize(
    ("on", "where", "value"),
    [
        ("answer", "answer", "It takes 3 days."),
        ("reasoning", "reasoning", "The policy says so."),
        ("messages[0].content", "messages[0].content", "Let me look."),
        ("messages[0].content[1].text", "messages[0].content[1].text", "look."),
        ("messages[1].role", "messages[1].role", "tool"),
        ("messages[1].name", "messages[1].name", "search"),
        ("messages[-1].content", "messages[-1].content (message 3)", "It takes 3 days."),
        ("messages[-4].content", "messages[-4].content (message 0)", "Let me look."),
        ("messages[tool][0].content", "messages[tool][0].content (message 1)", "3 hits"),
        ("messages[assistant][1].content", "messages[assistant][1].content (message 2)", ""),
        ("messages[2].metadata.mood", "messages[2].metadata.mood", "calm"),
        ("tool_calls[0].output", "tool_calls[0].output (search)", {"hits": 3}),
        ("tool_calls[search][1].output", "tool_calls[search][1].output (call 2)", "nothing found"),
        ("tool_calls[search][-2].output.hits", "tool_calls[search][-2].output.hits (call 0)", 3),
        ("tool_calls[-1].input", "tool_calls[-1].input (call 2, search)", "raw text"),
        ("tool_calls[get_*][0].output", "tool_calls[get_*][0].output (call 1, get_user)", None),
        ("tool_calls[1].error", "tool_calls[1].error (get_user)", "no such user"),
        ("tool_calls[1].status", "tool_calls[1].status (get_user)", "error"),
        ("tool_calls[0].status", "tool_calls[0].status (search)", "ok"),
        ("tool_calls[2].tool", "tool_calls[2].tool (search)", "search"),
        ("tool_calls[0].input.ids.1", "tool_calls[0].input.ids.1 (search)", 8),
        ("tool_calls[0].input.ids[-2]", "tool_calls[0].input.ids[-2] (search)", 7),
        ('tool_calls["search"][0].input["a.b"]', 'tool_calls["search"][0].input["a.b"] (call 0)', 1),
        ("metadata['gen_ai.system']", "metadata['gen_ai.system']", "local"),
        ("metadata.model.name", "metadata.model.name", "m-1"),
    ],
)
def test_a_place_that_is_there(on: str, where: str, value: Any) -> None:
    found = run(on, value={"$literal": value})
    assert found.status == "pass"
    assert found.hits[0].startswith(f"{where} is ")


@pytest.mark.parametrize(
    ("on", "sentence"),
    [
        ("messages[4].content", "messages[4].content is not there: the agent added 4 messages"),
        ("messages[-5].content", "messages[-5].content is not there: the agent added 4 messages"),
        (
            "messages[tool][1].content",
            "messages[tool][1].content is not there: the agent added 1 message of role 'tool'",
        ),
        ("messages[0].name", "messages[0].name is not there: the message has none"),
        ("tool_calls[3].output", "tool_calls[3].output is not there: the agent made 3 calls"),
        ("tool_calls[refund][0].input", "tool_calls[refund][0].input is not there: refund called 0 times"),
        ("tool_calls[get_*][1].input", "tool_calls[get_*][1].input is not there: get_* called 1 time"),
        ("tool_calls[0].error", "tool_calls[0].error (search) is not there: the call has none"),
        ("tool_calls[search][0].input.limit", "tool_calls[search][0].input (call 0) has nothing at limit"),
        ("tool_calls[0].input.ids[-3]", "tool_calls[0].input (search) has nothing at ids[-3]"),
        ("tool_calls[2].input.query", "tool_calls[2].input (search) has nothing at query"),
    ],
)
def test_an_agent_that_was_measured_and_has_no_such_place_falls_short(on: str, sentence: str) -> None:
    found = run(on)
    assert (found.status, found.score, found.misses) == ("fail", 0.0, (sentence,))
    turned = run(on, **{"not": True})
    assert (turned.status, turned.hits) == ("pass", (f"does not hold, as wanted: {sentence}",))


SUMMARY = {"text": "Done.", "trace_summary": {"tool_calls_by_name": {"search": 2}, "event_count": 2}}
UNREPORTED: list[tuple[str, Any, str]] = [
    ("messages[0].content", {"text": "Hi"}, "the reply holds no messages; have the target send `output_messages`"),
    ("messages[0].content", {"text": "Hi", "output_messages": []}, "the reply holds no messages"),
    ("messages[0].metadata.x", REPLY, "the agent did not report the metadata of this message"),
    ("messages[2].metadata.x", REPLY, "the agent did not report x"),
    ("tool_calls[0].output", {"text": "Hi"}, "the reply says nothing about tool calls; have the target send"),
    ("tool_calls[search][1].output", SUMMARY, "says only how often tools were called (`trace_summary`)"),
    ("tool_calls[1].input", REPLY, "tool_calls[1].input (get_user): the agent did not report the input of this call"),
    ("reasoning", {"text": "Hi"}, "the reply holds no `reasoning`"),
    ("metadata.cost", REPLY, "metadata.cost: the reply holds no such field"),
]


@pytest.mark.parametrize(("on", "reply", "reason"), UNREPORTED)
@pytest.mark.parametrize("negate", [False, True])
def test_what_the_agent_did_not_report_cannot_be_judged(on: str, reply: Any, reason: str, *, negate: bool) -> None:
    found = run(on, reply, **{"not": negate})
    assert (found.status, found.score, found.misses) == ("error", None, ())
    assert reason in found.details["error"]


def test_counts_alone_tell_that_there_was_no_such_call() -> None:
    assert run("tool_calls[refund][0].output", SUMMARY).misses == (
        "tool_calls[refund][0].output is not there: refund called 0 times",
    )
    assert run("tool_calls[2].output", SUMMARY).status == "fail"


def test_an_agent_that_spoke_and_called_nothing_is_known_to_have_called_nothing() -> None:
    assert run("tool_calls[0].output", [{"role": "assistant", "content": "Hi"}]).status == "fail"


@pytest.mark.parametrize(
    ("on", "reason"),
    [
        ("answr", "at character 1, 'answr' is none of answer, messages, tool_calls, reasoning, metadata. Did you mean"),
        ("calls[0].input", "Did you mean 'tool_calls'?"),
        ("output_messages[0].content", "Did you mean 'messages'?"),
        ("", "at character 1, '' is none of"),
        ("answer.items", "at character 7, nothing can follow `answer`. To look into a JSON answer, use the `json`"),
        ("reasoning[0]", "at character 10, nothing can follow `reasoning`"),
        ("metadata", "at character 9, the name of a field is missing; for example metadata.model"),
        ("messages", "at character 9, the number of the message is missing; for example messages[-1].content"),
        ("messages[user].content", "at character 15, the number of the message is missing"),
        ("messages[0]", "at character 12, the part of the message is missing: one of content, role, name, metadata"),
        ("messages[0].contents", "at character 12, 'contents' is no part of a message"),
        ("messages[0].contents", "Did you mean 'content'?"),
        ("tool_calls[search].output", "at character 19, the number of the call is missing; for example tool_calls["),
        ("tool_calls[search][0]", "at character 22, the part of the call is missing: one of input, output"),
        ("tool_calls[search][0", "at character 19, this bracket is never closed"),
        ('tool_calls["search][0].input', "at character 11, this bracket is never closed"),
        ("tool_calls[][0].input", "at character 12, a name or a number is missing"),
        ("tool_calls[0].", "at character 15, a name or a number is missing"),
        ("tool_calls[0]input", "at character 14, there should be '.' or '[', not 'i'"),
        ("tool_calls[0].args", "'args' is no part of a call"),
    ],
)
def test_a_malformed_place_is_refused_with_its_character(on: str, reason: str) -> None:
    with pytest.raises(agentv.SpecError) as caught:
        run(on)
    (problem,) = caught.value.problems
    assert problem.path == "evaluators[0].on"
    assert problem.message.startswith("not a place in a run: ")
    assert reason in problem.message


@given(st.text("answermgtol_c.[]\"'-0129ü\0", max_size=30) | st.builds(str.__add__, st.sampled_from(ROOTS), st.text()))
def test_any_text_is_a_place_or_is_refused(text: str) -> None:
    try:
        assert isinstance(parse_place(text), Selector)
    except PlaceError as error:
        position = re.search(r"at character (\d+),", str(error))
        assert position is not None
        assert 1 <= int(position[1]) <= len(text) + 1


@pytest.mark.parametrize("name", OURS)
def test_every_text_check_takes_it(name: str) -> None:
    cls = find_evaluator(name)
    assert cls is not None
    assert "on" in cls.__struct_fields__


@pytest.mark.parametrize("name", OURS)
def test_its_examples_pass_and_fail(name: str) -> None:
    examples = find_evaluator(name).examples  # type: ignore[union-attr]  # it is registered
    assert {example.passes for example in examples} == {True, False}
    for example in examples:
        result = agentv.score(example.reply, [example.config])
        assert (result.status == "pass", result.warnings) == (example.passes, ())
    assert name in EVALUATORS


@pytest.mark.parametrize("page", [*OURS, "on"])
def test_its_page_shows_what_happens(page: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    shown = re.findall(r"<!-- example -->\n```yaml\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    assert len(shown) >= 2
    for example, output in shown:
        data = read_yaml(example.encode()).data
        (result,) = agentv.score(data["reply"], [data["evaluator"]]).evaluators
        assert "\n".join(render_evaluator(result, None, Style())) + "\n" == output


@pytest.mark.parametrize("name", OURS)
def test_its_page_names_every_key(name: str) -> None:
    cls = find_evaluator(name)
    assert cls is not None
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    own = [key for key in cls.__struct_encode_fields__ if key != "type"]
    assert [key for key in own if f"`{key}`" not in text] == []
