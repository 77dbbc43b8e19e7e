"""Is every call a part of its Mastra message, together with its result?"""

from hypothesis import HealthCheck, given, settings

from agentv.formats.ai_sdk import to_mastra
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, ToolCall
from tests.support import strategies


def test_calls_are_tool_invocation_parts_of_one_message() -> None:
    written = to_mastra(
        [
            Message(
                role="assistant",
                content="Let me look.",
                id="m1",
                timestamp="2025-01-01T00:00:00Z",
                metadata={"k": 1},
                tool_calls=(
                    ToolCall(tool="getWeather", input={"city": "NYC"}, output={"temp": 72}, id="c1"),
                    ToolCall(tool="getTime", input={"timezone": "EST"}),
                ),
            )
        ]
    )
    assert written == [
        {
            "role": "assistant",
            "content": {
                "format": 2,
                "parts": [
                    {"type": "text", "text": "Let me look."},
                    {
                        "type": "tool-invocation",
                        "toolInvocation": {
                            "state": "result",
                            "toolCallId": "c1",
                            "toolName": "getWeather",
                            "args": {"city": "NYC"},
                            "result": {"temp": 72},
                        },
                    },
                    {
                        "type": "tool-invocation",
                        "toolInvocation": {
                            "state": "call",
                            "toolCallId": "call_0",
                            "toolName": "getTime",
                            "args": {"timezone": "EST"},
                        },
                    },
                ],
                "metadata": {"k": 1},
            },
            "id": "m1",
            "createdAt": "2025-01-01T00:00:00Z",
        }
    ]


def test_a_null_output_is_a_result_and_a_missing_one_is_none() -> None:
    calls = (ToolCall(tool="a", output=None), ToolCall(tool="b"), ToolCall(tool="c", error="boom"))
    (written,) = to_mastra([Message(role="assistant", tool_calls=calls)])
    invocations = [part["toolInvocation"] for part in written["content"]["parts"]]
    assert [invocation["state"] for invocation in invocations] == ["result", "call", "output-error"]
    assert invocations[0]["result"] is None
    assert "result" not in invocations[1]
    assert invocations[2]["errorText"] == "boom"
    assert all("args" not in invocation for invocation in invocations)


def test_an_unpaired_result_is_an_invocation_of_its_own() -> None:
    (written,) = to_mastra([Message(role="tool", tool_call_id="x", name="a", content="A")])
    assert written["role"] == "assistant"
    assert written["content"]["parts"] == [
        {
            "type": "tool-invocation",
            "toolInvocation": {"state": "result", "toolCallId": "x", "toolName": "a", "result": "A"},
        }
    ]


def test_blocks_are_parts() -> None:
    blocks = [{"type": "text", "text": "see"}, {"type": "image", "image": "data:"}]
    (written,) = to_mastra([Message(role="user", content=blocks)])
    assert written["content"]["parts"] == blocks


@given(strategies.conversations)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_every_call_is_there_in_order(conversation: tuple[Message, ...]) -> None:
    before = dump_json(conversation)
    written = to_mastra(conversation)
    named = [
        part["toolInvocation"]["toolName"]
        for source, message in zip(conversation, written, strict=True)
        for part in message["content"]["parts"]
        if part["type"] == "tool-invocation" and (source.role != "tool" or source.tool_calls)
    ]
    assert named == [call.tool for message in conversation for call in message.tool_calls]
    assert dump_json(conversation) == before
