"""Token counts of single messages: a field of their own, whichever form reports them."""

import asyncio
from typing import Any

import pytest

import agentv
from agentv.formats.reader import read_reply
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, TokensUsage
from agentv.scoring.scorer import CaseScorer
from agentv.spec.evaluators import check_evaluators

USED = TokensUsage(input_tokens=6, output_tokens=3, total_tokens=9)


def usage_of(reply: Any) -> list[TokensUsage | None]:
    messages = read_reply(reply).output_messages or ()
    return [message.tokens_usage for message in messages if message.role == "assistant"]


@pytest.mark.parametrize(
    "fields",
    [
        {"tokens_usage": {"input_tokens": 6, "output_tokens": 3}},
        {"tokensUsage": {"input_tokens": 6, "output_tokens": 3}},
        {"usage": {"prompt_tokens": 6, "completion_tokens": 3}},
        {"usage_metadata": {"input_tokens": 6, "output_tokens": 3, "total_tokens": 9}},
        {"response_metadata": {"token_usage": {"prompt_tokens": 6, "completion_tokens": 3}}},
        {"metadata": {"usage": {"prompt_tokens": 6, "completion_tokens": 3}}},
    ],
)
def test_a_message_that_reports_its_usage_has_it_in_its_field(fields: dict[str, Any]) -> None:
    assert usage_of([{"role": "assistant", "content": "x", **fields}]) == [USED]


def test_invalid_counts_are_warned_about_and_unknown() -> None:
    response = read_reply([{"role": "assistant", "content": "x", "tokens_usage": {"input_tokens": -1}}])
    assert usage_of([{"role": "assistant", "content": "x", "tokens_usage": {"input_tokens": -1}}]) == [None]
    assert any("tokens_usage.input_tokens" in warning for warning in response.warnings)


def test_the_usage_of_one_completion_is_that_of_its_message() -> None:
    completion = {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 6, "completion_tokens": 3, "total_tokens": 9},
    }
    assert usage_of(completion) == [USED]
    assert usage_of([completion, completion]) == [USED, USED]


def test_the_usage_of_steps_is_that_of_their_messages() -> None:
    step = {
        "content": [{"type": "text", "text": "x"}],
        "finishReason": "stop",
        "usage": {"inputTokens": 6, "outputTokens": 3, "totalTokens": 9},
    }
    assert usage_of({"text": "x", "steps": [step, step], "finishReason": "stop"}) == [USED, USED]


def test_adk_reports_it_with_each_event() -> None:
    event = {
        "author": "a",
        "content": {"role": "model", "parts": [{"text": "x"}]},
        "usage_metadata": {"prompt_token_count": 6, "candidates_token_count": 3, "total_token_count": 9},
    }
    assert usage_of([event]) == [USED]


def test_it_survives_our_own_and_openais_form() -> None:
    message = Message(role="assistant", content="x", tokens_usage=USED)
    assert agentv.from_openai(agentv.to_openai([message])) == (message,)
    response = agentv.ProviderResponse(text="x", output_messages=(message,), tokens_usage=USED)
    assert agentv.decode_response_json(dump_json(response)) == response


def test_a_budget_of_turns_reads_the_field_and_never_the_metadata() -> None:
    check = {"type": "token_budget", "per": "turn", "max_total": 9}
    hidden = Message(role="assistant", content="x", metadata={"usage": {"input_tokens": 6, "output_tokens": 3}})
    response = agentv.ProviderResponse(text="x", output_messages=(hidden,))
    scorer = CaseScorer(check_evaluators([check]), agentv.Case(), follow=lambda each: each)
    assert asyncio.run(scorer.evaluate(response)).status == "error"
    told = agentv.ProviderResponse(
        text="x", output_messages=(Message(role="assistant", content="x", tokens_usage=USED),)
    )
    assert asyncio.run(scorer.evaluate(told)).status == "pass"


def test_a_stored_reply_of_an_older_version_has_it_in_its_field_when_it_is_read() -> None:
    stored = b'{"text": "x", "output_messages": [{"role": "assistant", "content": "x", "metadata": {"usage_metadata": \
{"input_tokens": 6, "output_tokens": 3, "total_tokens": 9}}}]}'
    (message,) = agentv.decode_response_json(stored).output_messages or ()
    assert message.tokens_usage == USED
