"""Replies built by Python code are scored by their content, whatever types their fields have."""

import asyncio
from typing import Any

import pytest

import agentv
from agentv import Message, ProviderResponse, ResponseError, ToolCall, TraceEvent
from agentv.formats.normalize import normalize, normalize_user_reply
from tests.support.reading import decode_returned

CALL = {"tool": "search", "input": {"q": "x"}}
CHECKS = [
    {"type": "tool_trajectory", "mode": "exact", "expected": [CALL]},
    {"type": "contains", "value": "found"},
]
MADE = ToolCall(tool="search", input={"q": "x"})
SPOKEN = {"role": "assistant", "content": "found", "tool_calls": [CALL]}


@pytest.mark.parametrize(
    "messages",
    [
        (Message(role="assistant", content="found", tool_calls=(MADE,)),),
        [Message(role="assistant", content="found", tool_calls=(MADE,))],
        [Message(role="assistant", content="found", tool_calls=[MADE])],  # type: ignore[arg-type]
        [Message(role="assistant", content="found", tool_calls=[CALL])],  # type: ignore[arg-type]
        [SPOKEN],
        [
            {"role": "assistant", "tool_calls": [CALL]},
            Message(role="assistant", content="found", tool_calls=None),  # type: ignore[arg-type]
        ],
    ],
)
def test_messages_may_be_dicts_and_lists_and_the_text_is_what_was_said_last(messages: Any) -> None:
    response = ProviderResponse(output_messages=messages)
    assert agentv.score(response, CHECKS).status == "pass"
    assert agentv.score(response, CHECKS[:1]).status == "pass"
    assert asyncio.run(agentv.ascore(response, CHECKS)).status == "pass"
    assert next(agentv.score_many([response], CHECKS)).status == "pass"
    agentv.assert_trajectory(response, [CALL], "exact")
    assert decode_returned(response).text == "found"


def test_a_reply_that_is_what_its_type_says_passes_as_it_is() -> None:
    response = ProviderResponse(text="a", output_messages=(Message(role="assistant", content="b"),))
    assert normalize(response) is response
    assert normalize_user_reply(response) is response


def test_other_parts_may_be_dicts_too() -> None:
    parts: dict[str, Any] = {
        "trace": [{"type": "tool_call", "name": "search"}],
        "trace_summary": {"tool_calls_by_name": {"search": 1}},
        "tokens_usage": {"prompt_tokens": 3, "completion_tokens": 4},
        "error": "it broke",
    }
    response = normalize(ProviderResponse(**parts))
    assert response.trace == (TraceEvent(type="tool_call", name="search"),)
    assert response.trace_summary is not None
    assert response.trace_summary.tool_calls_by_name == {"search": 1}
    assert response.tokens_usage is not None
    assert response.tokens_usage.total_tokens == 7
    assert response.error == ResponseError(kind="agent", message="it broke")


def test_what_has_an_error_is_no_success() -> None:
    broken = ProviderResponse(error=ResponseError(kind="agent", message="it broke"))
    assert agentv.score(broken, CHECKS).status == "error"


@pytest.mark.parametrize("messages", ["hello", Message(role="assistant"), 5])
def test_what_cannot_be_messages_is_warned_of_and_kept(messages: Any) -> None:
    result = agentv.score(ProviderResponse(output_messages=messages), CHECKS)
    assert result.status == "fail"
    assert any(warning.startswith("output_messages: expected a list") for warning in result.warnings)
