"""Each `role: tool` message is paired with its call, and kept if there is none."""

from typing import Any

import pytest

from agentv.formats.reader import decode_response
from agentv.model.conversation import UNSET, Message, ToolCall


def assistant(*calls: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


def call(name: str, call_id: str | None = None, **more: Any) -> dict[str, Any]:
    raw: dict[str, Any] = {"tool": name, **more}
    return raw if call_id is None else {**raw, "id": call_id}


def result(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, **more}


def read(*messages: dict[str, Any]) -> tuple[Message, ...]:
    response = decode_response(messages)
    assert response.output_messages is not None
    assert not response.warnings
    return response.output_messages


def outputs(*messages: dict[str, Any]) -> list[Any]:
    """Return the outputs of all calls, followed by unpaired results as tuples."""
    decoded = read(*messages)
    calls = [call.output for message in decoded for call in message.tool_calls]
    return calls + [(message.content,) for message in decoded if message.role == "tool"]


CASES: dict[str, tuple[list[dict[str, Any]], list[Any]]] = {
    "by id": (
        [assistant(call("a", "1"), call("b", "2")), result("B", tool_call_id="2"), result("A", tool_call_id="1")],
        ["A", "B"],
    ),
    "by id, across messages": (
        [assistant(call("a", "1")), {"role": "user", "content": "?"}, result("A", tool_call_id="1")],
        ["A"],
    ),
    "the latest call of that id": (
        [assistant(call("a", "1")), assistant(call("a", "1")), result("A", tool_call_id="1")],
        [UNSET, "A"],
    ),
    "the latest one that is not answered yet": (
        [
            assistant(call("a", "1")),
            assistant(call("a", "1")),
            result("second", tool_call_id="1"),
            result("first", tool_call_id="1"),
            result("nobody's", tool_call_id="1"),
        ],
        ["first", "second", ("nobody's",)],
    ),
    "never a later call": ([result("A", tool_call_id="1"), assistant(call("a", "1"))], [UNSET, ("A",)]),
    "an unknown id is not paired by name": (
        [assistant(call("a", "1")), result("A", tool_call_id="9", name="a")],
        [UNSET, ("A",)],
    ),
    "by name and order": (
        [
            assistant(call("a"), call("b"), call("a")),
            result("first a", name="a"),
            result("second a", name="a"),
            result("b", name="b"),
        ],
        ["first a", "b", "second a"],
    ),
    "by name, the call may have an id": ([assistant(call("a", "1")), result("A", name="a")], ["A"]),
    "an empty id is none": (
        [assistant(call("a", ""), call("b", "")), result("B", tool_call_id="", name="b")],
        [UNSET, "B"],
    ),
    "without a name, the first call without an id": (
        [assistant(call("a", "1"), call("b"), call("c", "")), result("B"), result("C", tool_call_id="")],
        [UNSET, "B", "C"],
    ),
    "without a name, no call without an id": ([assistant(call("a", "1")), result("A")], [UNSET, ("A",)]),
    "an unknown name": ([assistant(call("a")), result("B", name="b")], [UNSET, ("B",)]),
    "an output beside the call is not replaced": (
        [assistant(call("a", "1", output="inline")), result("A", tool_call_id="1")],
        ["inline", ("A",)],
    ),
    "not even a null one": (
        [assistant(call("a", "1", output=None)), result("A", tool_call_id="1")],
        [None, ("A",)],
    ),
    "a null result": ([assistant(call("a", "1")), result(None, tool_call_id="1")], [None]),
    "blocks": (
        [assistant(call("a", "1")), result([{"type": "text", "text": "A"}], tool_call_id="1")],
        [[{"type": "text", "text": "A"}]],
    ),
    "an object": ([assistant(call("a", "1")), result({"temp": 18}, tool_call_id="1")], [{"temp": 18}]),
    "nothing to pair with": ([result("A", tool_call_id="1")], [("A",)]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_result_goes_to_its_call(case: str) -> None:
    messages, expected = CASES[case]
    assert outputs(*messages) == expected


def test_the_folded_message_is_gone_and_what_it_had_is_kept_with_the_call() -> None:
    (message,) = read(
        assistant(call("a", "1")),
        result("A", tool_call_id="1", name="a", id="m", timestamp="t", metadata={"x": 1}, extra=2),
    )
    kept = {"name": "a", "id": "m", "timestamp": "t", "metadata": {"x": 1, "extra": 2}}
    assert message.tool_calls == (ToolCall(tool="a", id="1", output="A", metadata={"result_message": kept}),)


def test_a_plain_result_leaves_nothing_but_the_output() -> None:
    (message,) = read(assistant(call("a", "1")), result("A", tool_call_id="1"))
    assert message.tool_calls == (ToolCall(tool="a", id="1", output="A"),)


@pytest.mark.parametrize(
    ("given", "status"), [("error", "error"), ("success", "ok"), ("denied", "denied"), ("odd", None), (5, None)]
)
def test_langchains_status_of_a_result_becomes_the_calls(given: Any, status: str | None) -> None:
    (message,) = read(assistant(call("a", "1")), result("A", tool_call_id="1", status=given))
    assert message.tool_calls[0].status == status
    assert message.tool_calls[0].metadata == {"result_message": {"metadata": {"status": given}}}


def test_the_status_of_the_call_itself_goes_first() -> None:
    (message,) = read(assistant(call("a", "1", status="denied")), result("A", tool_call_id="1", status="error"))
    assert message.tool_calls[0].status == "denied"


def test_langchain_messages_without_a_role() -> None:
    messages = read(
        {"type": "human", "content": "weather?"},
        {"type": "ai", "content": "", "tool_calls": [{"name": "w", "args": {"c": 1}, "id": "1", "type": "tool_call"}]},
        {"type": "tool", "content": "18", "tool_call_id": "1", "status": "success"},
        {"type": "ai", "content": "18C"},
    )
    assert [message.role for message in messages] == ["user", "assistant", "assistant"]
    assert messages[1].tool_calls[0].output == "18"
    assert messages[1].tool_calls[0].status == "ok"


def test_a_tool_message_that_makes_calls_is_no_result() -> None:
    messages = read(assistant(call("a", "1")), {**result("A", tool_call_id="1"), "tool_calls": [call("b")]})
    assert messages[0].tool_calls[0].output is UNSET
    assert messages[1].tool_calls == (ToolCall(tool="b"),)


def test_one_id_many_times_over_takes_linear_time() -> None:
    number = 20_000
    calls = assistant(*(call("a", "x") for _ in range(number)))
    assert outputs(calls, *(result(str(n), tool_call_id="x") for n in range(number)))[0] == str(number - 1)
