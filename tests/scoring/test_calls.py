"""The source of the calls of a reply, and warnings about it."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import agentv
from agentv.formats.reader import decode_response
from agentv.formats.response import follow_trace_ref
from agentv.model.conversation import UNSET, Message, ToolCall
from agentv.model.response import ProviderResponse, Unread
from agentv.scoring.calls import calls_from_trace, resolve_calls, trace_from_messages
from agentv.scoring.turns import Exchange, combine_turns

MESSAGES = [{"role": "assistant", "tool_calls": [{"tool": "A"}]}]
TRACE = [{"type": "tool_call", "name": "B"}]
SUMMARY = {"tool_calls_by_name": {"C": 1}}
SILENT = [{"role": "assistant", "content": "hello"}]


@pytest.mark.parametrize(
    ("reply", "source"),
    [
        ({"output_messages": MESSAGES, "trace": TRACE, "trace_summary": SUMMARY}, "output_messages"),
        ({"output_messages": SILENT, "trace": TRACE, "trace_summary": SUMMARY}, "trace"),
        ({"output_messages": [{"role": "assistant", "tool_calls": [{}]}], "trace": TRACE}, "trace"),
        ({"output_messages": SILENT, "trace": [{"type": "message"}], "trace_summary": SUMMARY}, "trace_summary"),
        ({"output_messages": SILENT, "trace": [{"type": "message"}]}, "output_messages"),
        ({"output_messages": [{"role": "user", "content": "x"}], "trace": [{"type": "error"}]}, "trace"),
        ({"trace_summary": {"event_count": 0, "tool_calls_by_name": {}}}, "trace_summary"),
        ({"output_messages": [{"role": "user", "content": "x"}]}, None),
        ({"output_messages": [], "trace": []}, None),
        ({"text": "x"}, None),
        ({"trace_summary": {"tool_names": ["A"], "event_count": 3}}, None),
    ],
)
def test_the_first_source_with_a_named_call_wins(reply: dict[str, Any], source: str | None) -> None:
    assert resolve_calls(decode_response(reply)).source == source


def unread(*paths: str) -> tuple[Unread, ...]:
    return tuple(Unread(path=path, reason="not understood") for path in paths)


HERE, THERE, BOTH = "output_messages[0].content[0]", "trace[3]", "metadata.toolCalls"


@pytest.mark.parametrize(
    ("reply", "paths", "source", "names", "complete"),
    [
        # The first source with calls of which everything was understood.
        ({"output_messages": MESSAGES, "trace": TRACE}, [THERE], "output_messages", ["A"], True),
        ({"output_messages": MESSAGES, "trace": TRACE}, [HERE], "trace", ["B"], True),
        ({"output_messages": MESSAGES, "trace_summary": SUMMARY}, [HERE], "trace_summary", None, True),
        ({"output_messages": MESSAGES, "trace": TRACE, "trace_summary": SUMMARY}, [BOTH], "trace_summary", None, True),
        ({"trace": TRACE}, [HERE], "trace", ["B"], True),
        # Else the first that was partly understood.
        ({"output_messages": MESSAGES, "trace": TRACE}, [HERE, THERE], "output_messages", ["A"], False),
        ({"output_messages": MESSAGES}, [BOTH], "output_messages", ["A"], False),
        ({"output_messages": SILENT}, [HERE], "output_messages", [], False),
        ({"output_messages": SILENT}, [THERE], "trace", [], False),
        ({"output_messages": SILENT, "trace": TRACE}, [THERE], "trace", ["B"], False),
        ({"text": "x"}, [HERE], "output_messages", [], False),
        ({"text": "x"}, ["trace_summary.calls"], "output_messages", [], False),
        ({"text": "x"}, [THERE], "trace", [], False),
        # A call without a name makes its source incomplete.
        (
            {"output_messages": [{"role": "assistant", "tool_calls": [{"tool": "A"}, {}]}]},
            [],
            "output_messages",
            ["A", ""],
            False,
        ),
        ({"trace": [*TRACE, {"type": "tool_call"}]}, [], "trace", ["B", ""], False),
        ({"output_messages": MESSAGES, "trace": [{"type": "tool_call"}]}, [], "output_messages", ["A"], True),
    ],
)
def test_the_first_completely_understood_source_with_calls_wins(
    reply: dict[str, Any],
    paths: list[str],
    source: str,
    names: list[str] | None,
    complete: bool,
) -> None:
    known = resolve_calls(replace(decode_response(reply), unread=unread(*paths)))
    assert (known.source, known.complete) == (source, complete)
    assert names == (None if known.calls is None else [call.tool for call in known.calls])


def test_a_call_without_a_name_has_a_place() -> None:
    reply = {
        "output_messages": [{"role": "assistant", "tool_calls": [{"tool": "A"}, {}]}],
        "trace": [{"type": "tool_call"}],
    }
    places = ["output_messages[0].tool_calls[1]: a call without a name", "trace[0]: a call without a name"]
    response = decode_response(reply)
    assert list(map(str, resolve_calls(response).unread)) == places
    told = Unread(path="output_messages[0].content[2]", reason="a call without a name")
    known = resolve_calls(replace(response, unread=(told,), trace=None))
    assert known.unread == (told,)  # the reader knows better where it was


def test_nothing_read_is_no_zeros() -> None:
    known = resolve_calls(replace(decode_response({"text": "x"}), unread=unread(HERE)))
    assert (known.calls, known.summary) == ((), None)


def test_every_place_that_was_not_understood_is_warned_about() -> None:
    gate = [{"type": "tool_trajectory", "minimums": {"A": 1}}]
    response = replace(decode_response({"output_messages": MESSAGES}), unread=unread(HERE))
    result = agentv.score(response, gate)
    assert result.warnings == ("output_messages[0].content[0]: not understood",)
    assert result.calls_complete is False
    assert agentv.score(MESSAGES, gate).calls_complete is UNSET
    many = unread(*(f"output_messages[0].content[{at}]" for at in range(13)))
    warned = agentv.score(replace(response, unread=many), gate).warnings
    assert len(warned) == 11
    assert warned[-1] == "and 3 more places that were not understood"


def test_the_short_way_leaves_it_to_the_longer_one() -> None:
    config = {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "A"}]}
    response = replace(decode_response({"output_messages": MESSAGES}), unread=unread(HERE))
    assert agentv.score(response, [config]).status == "error"
    assert agentv.Scorer([config]).score(response).status == "error"
    assert agentv.score([{"role": "assistant", "tool_calls": [{}]}], [config]).status == "error"


def test_a_trace_elsewhere_is_read_when_the_messages_were_partly_understood(tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text('[{"type": "tool_call", "name": "B"}]')
    response = replace(decode_response({"output_messages": MESSAGES, "trace_ref": "trace.json"}), unread=unread(HERE))
    result = agentv.score(response, [{"type": "tool_trajectory", "maximums": {"B": 1}}], root=str(tmp_path))
    assert result.status == "pass"


def warnings(**reply: Any) -> tuple[str, ...]:
    return agentv.score(reply, [{"type": "tool_trajectory", "maximums": {"*": 9}}]).warnings


def test_only_a_trace_gets_a_deprecation_note() -> None:
    assert len(warnings(trace=TRACE)) == 1
    assert "deprecated" in warnings(trace=TRACE)[0]
    assert warnings(output_messages=MESSAGES) == ()


def test_both_sources_are_warned_about_and_a_difference_is_named() -> None:
    (equal,) = warnings(output_messages=MESSAGES, trace=[{"type": "tool_call", "name": "A"}])
    assert "both" in equal
    assert "differ" not in equal
    (names,) = warnings(output_messages=MESSAGES, trace=TRACE)
    assert "output_messages [A], trace [B]" in names
    (inputs,) = warnings(output_messages=MESSAGES, trace=[{"type": "tool_call", "name": "A", "input": {"x": 1}}])
    assert "input of call 0 (A)" in inputs


def test_a_summary_is_absent_and_not_zeros_when_neither_source_was_there() -> None:
    def summary(reply: dict[str, Any]) -> Any:
        return agentv.score(reply, [{"type": "tool_trajectory", "maximums": {"*": 9}}]).trace_summary

    assert summary({"text": "x"}) is None
    assert summary({"output_messages": SILENT}) == agentv.TraceSummary()
    failed = [{"role": "assistant", "tool_calls": [{"tool": "A", "status": "error"}, {"tool": "A", "error": "x"}, {}]}]
    assert summary({"output_messages": failed}) == agentv.TraceSummary(
        event_count=3, tool_names=("A",), tool_calls_by_name={"A": 2}, error_count=2
    )
    events = [{"type": "error"}, {"type": "tool_call", "name": "A"}, {"type": "message"}]
    assert summary({"trace": events}) == agentv.TraceSummary(
        event_count=3, tool_names=("A",), tool_calls_by_name={"A": 1}, error_count=1
    )


def test_trace_from_messages_is_one_event_a_call_with_the_best_timestamp() -> None:
    messages = decode_response(
        [
            {"role": "user", "content": "x", "timestamp": "2025-01-01T00:00:00Z"},
            {
                "role": "assistant",
                "timestamp": "2025-01-01T00:00:01Z",
                "tool_calls": [
                    {"tool": "A", "input": {}, "id": "1", "timestamp": "2025-01-01T00:00:02Z"},
                    {"tool": "B"},
                ],
            },
            {"role": "assistant", "tool_calls": [{"tool": "C", "output": None}]},
        ]
    ).output_messages
    events = trace_from_messages(messages or ())
    assert [(event.type, event.name, event.timestamp) for event in events] == [
        ("tool_call", "A", "2025-01-01T00:00:02Z"),
        ("tool_call", "B", "2025-01-01T00:00:01Z"),
        ("tool_call", "C", None),
    ]
    assert (events[0].input, events[0].output, events[0].id) == ({}, UNSET, "1")
    assert (events[1].input, events[2].output) == (UNSET, None)


def events(*items: dict[str, Any]) -> tuple[agentv.ToolCall, ...]:
    return calls_from_trace(decode_response({"trace": list(items)}).trace or ())


def test_a_result_goes_to_its_call_by_id_else_to_the_last_without_one() -> None:
    first, second, third = events(
        {"type": "tool_call", "name": "A", "id": "1"},
        {"type": "tool_call", "name": "B"},
        {"type": "tool_call", "name": "C"},
        {"type": "tool_result", "id": "1", "output": "a"},
        {"type": "tool_result", "output": "c"},
        {"type": "tool_result", "output": "b"},
    )
    assert (first.output, second.output, third.output) == ("a", "b", "c")


def test_the_time_from_call_to_result_is_the_duration() -> None:
    timed, backwards, untimed = events(
        {"type": "tool_call", "name": "A", "id": "1", "timestamp": "2025-01-01T00:00:00Z"},
        {"type": "tool_result", "id": "1", "timestamp": "2025-01-01T01:00:00.250+01:00"},
        {"type": "tool_call", "name": "A", "id": "2", "timestamp": "2025-01-01T00:00:05Z"},
        {"type": "tool_result", "id": "2", "timestamp": "2025-01-01T00:00:00Z"},
        {"type": "tool_call", "name": "A", "id": "3", "timestamp": "yesterday"},
        {"type": "tool_result", "id": "3", "timestamp": "2025-01-01T00:00:00Z"},
    )
    assert (timed.duration_ms, backwards.duration_ms, untimed.duration_ms) == (250.0, None, None)


def test_what_was_not_understood_of_a_trace_file_makes_the_calls_a_lower_bound() -> None:
    events = b'[{"type": "tool_call", "name": "a"}, {"type": "errand", "name": "b", "input": {}}]'
    response = follow_trace_ref(agentv.ProviderResponse(text="x", trace_ref="t.json"), lambda _: events)
    assert [place.path for place in response.unread] == ["trace[1]"]
    assert not resolve_calls(response).complete


@pytest.mark.parametrize(
    ("result", "status", "errors"),
    [
        ({"content": "paid"}, "ok", 0),
        ({"content": "no", "metadata": {"status": "denied"}}, "denied", 0),
        ({"content": "down", "metadata": {"status": "error"}}, "error", 1),
    ],
)
def test_a_call_that_waited_for_an_approval_has_the_result_of_a_later_turn(
    result: dict[str, Any], status: str, errors: int
) -> None:
    waiting = ToolCall(tool="refund", input={"id": 1}, id="c1", status="pending")
    asked = Message(role="assistant", tool_calls=(waiting, ToolCall(tool="look", id="c2", output="seen")))
    answered = (Message(role="tool", tool_call_id="c1", **result), Message(role="assistant", content="bye"))
    replies = [ProviderResponse(output_messages=(asked,)), ProviderResponse(output_messages=answered, text="bye")]
    first, second = [Exchange((), reply) for reply in replies]
    known = resolve_calls(combine_turns([first, second]))
    assert known.calls is not None
    assert known.summary is not None
    assert [(call.effective_status, call.output) for call in known.calls] == [
        (status, result["content"]),
        ("ok", "seen"),
    ]
    assert known.summary.error_count == errors
    before = resolve_calls(combine_turns([first]))
    assert [call.effective_status for call in before.calls or ()] == ["pending", "ok"], "it is open in its own turn"
