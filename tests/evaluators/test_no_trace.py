"""Replies that tell nothing about calls: the words of the requirement, then what came and what to send."""

from typing import Any

import pytest

import agentv

CHECK = {"type": "tool_trajectory", "minimums": {"search": 1}}


@pytest.mark.parametrize(
    ("reply", "came"),
    [
        ("Hello", "a text of 5 characters and nothing about calls"),
        ({"text": "Hello", "output_messages": []}, "an empty `output_messages`"),
        ({"text": "Hello", "output_messages": [{"role": "user", "content": "Hi"}]}, "messages of user"),
        ({"text": "Hello", "trace": []}, "a trace without events"),
        ({"text": "Hello", "trace_summary": {"tool_names": ["search"]}}, "a `trace_summary` that names tools"),
        ({"text": ""}, "neither a text nor messages"),
    ],
)
def test_the_second_miss_says_what_came_and_what_to_send(reply: Any, came: str) -> None:
    (result,) = agentv.score(reply, [CHECK], input_messages=[]).evaluators
    assert (result.status, result.score) == ("fail", 0.0)
    first, second = result.misses
    assert first == "No trace available for evaluation"
    assert second.startswith(f"the reply came with {came}")
    assert "send `output_messages`" in second


def test_following_the_advice_decides_the_check() -> None:
    silent = {"output_messages": [{"role": "assistant", "content": "Hello"}]}
    (result,) = agentv.score(silent, [CHECK]).evaluators
    assert result.misses == ("search called 0 times (minimum: 1)",)
