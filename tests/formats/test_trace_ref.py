"""Trace files: JSON, JSON Lines, wrapped events, and files that cannot be read."""

import json
from hashlib import sha256
from typing import Any

import pytest

import agentv
from agentv.errors import FormatError
from agentv.formats.reader import decode_response
from agentv.formats.response import follow_trace_ref
from agentv.model.conversation import TraceEvent
from agentv.model.response import ProviderResponse
from agentv.scoring.calls import resolve_calls

A = {"type": "tool_call", "name": "A", "id": "1"}
B = {"type": "tool_result", "id": "1", "output": "a"}
EVENTS = (TraceEvent(type="tool_call", name="A", id="1"), TraceEvent(type="tool_result", id="1", output="a"))


def follow(data: bytes, **fields: Any) -> ProviderResponse:
    return follow_trace_ref(ProviderResponse(text="x", trace_ref="t.json", **fields), lambda _: data)


@pytest.mark.parametrize(
    "data",
    [
        json.dumps([A, B]),
        json.dumps([A, B], indent=2),
        json.dumps({"events": [A, B]}),
        json.dumps({"trace": [A, B], "version": 1}),
        f"{json.dumps(A)}\n{json.dumps(B)}\n",
        f"\ufeff{json.dumps(A)}\r\n\r\n{json.dumps(B)}",
    ],
    ids=["list", "indented", "events", "trace", "lines", "lines of Windows"],
)
def test_the_events_of_a_file_are_read_with_their_hash(data: str) -> None:
    found = follow(data.encode())
    assert found.trace == EVENTS
    assert found.trace_hash == f"sha256:{sha256(data.encode()).hexdigest()}"
    assert (found.unread, found.warnings) == ((), ())


def test_one_line_is_one_event() -> None:
    assert follow(json.dumps(A).encode() + b"\n").trace == EVENTS[:1]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not JSON"),
        (b"null", "'t.json' holds no list of events"),
        (b'"a text"', "'t.json' holds no list of events"),
        (b'{"spans": []}', "'t.json' holds no list of events"),
        (b"\x00\xff\xfe", "not JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b'[{"type": "tool_call", "name"', "not JSON"),
    ],
)
def test_a_file_that_is_no_trace_is_an_unread_place_and_not_an_empty_trace(data: bytes, reason: str) -> None:
    found = follow(data)
    assert [place.path for place in found.unread] == ["trace_ref"]
    assert reason in found.unread[0].reason
    assert not resolve_calls(found).complete


def test_a_line_that_breaks_off_leaves_the_calls_a_lower_bound() -> None:
    found = follow(f'{json.dumps(A)}\n{json.dumps(B)}\n{{"type": "tool_call", "na'.encode())
    assert found.trace == EVENTS
    assert [place.path for place in found.unread] == ["trace[2]"]
    assert not resolve_calls(found).complete


def test_text_that_is_not_utf8_is_replaced() -> None:
    (event,) = follow(b'[{"type": "tool_call", "name": "A", "input": "caf\xe9"}]').trace or ()
    assert event.input == "caf\ufffd"


def test_an_empty_list_is_a_trace_without_events() -> None:
    found = follow(b"[]")
    assert (found.trace, found.unread) == ((), ())
    assert found.warnings == ("trace_ref: 't.json' holds no events",)


def test_a_file_with_another_hash_is_not_used() -> None:
    first = follow(json.dumps([A]).encode())
    again = follow(json.dumps([A, B]).encode(), trace_hash=first.trace_hash)
    assert again.trace is None
    assert "changed since it was read" in again.unread[0].reason
    assert follow(json.dumps([A]).encode(), trace_hash=first.trace_hash).trace == EVENTS[:1]


def test_a_file_that_cannot_be_found_is_an_unread_place() -> None:
    def fail(name: str) -> bytes:
        message = f"cannot read {name!r}: Permission denied"
        raise FormatError(message)

    found = follow_trace_ref(ProviderResponse(text="x", trace_ref="t.json"), fail)
    assert str(found.unread[0]) == "trace_ref: cannot read 't.json': Permission denied, so calls may be missing"


@pytest.mark.parametrize("wrapped", [{"events": [A, B]}, {"trace": [A, B]}])
def test_events_may_be_wrapped_in_the_reply_itself(wrapped: Any) -> None:
    response = decode_response({"text": "x", "trace": wrapped})
    assert (response.trace, response.warnings, response.metadata) == (EVENTS, (), None)


def test_other_fields_of_a_wrapped_trace_are_kept() -> None:
    response = decode_response({"text": "x", "trace": {"version": 2, "events": [A]}})
    assert (response.trace, response.metadata) == (EVENTS[:1], {"trace": {"version": 2}})


def test_a_trace_of_no_known_form_is_never_a_proof_of_no_calls() -> None:
    reply = {"text": "x", "trace": {"spans": [{"name": "A", "input": {}}]}}
    assert agentv.score(reply, [{"type": "tool_trajectory", "forbidden": ["A"]}]).status != "pass"
