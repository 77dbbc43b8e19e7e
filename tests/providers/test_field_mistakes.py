"""Mistakes that other tools make with the same replies: each is looked for behind every provider that could make it."""

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentv.model.conversation import Message, ToolCall
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse, TokensUsage
from agentv.protocols import OpenProvider, Provider
from agentv.registry import find_provider
from agentv.spec.validation import build
from tests.fakes.endpoint import answering, events, serving, streaming

Way = Callable[[Any], ProviderResponse]


def ask(settings: dict[str, Any], folder: Path) -> ProviderResponse:
    """Return the reply of a target with these settings."""
    cls: Any = find_provider(settings["provider"])
    provider, problems = build(cls, json.dumps(settings).encode(), "target")
    assert provider is not None, problems

    async def once(target: Provider) -> ProviderResponse:
        session = OpenProvider.of(target, await target.open(Scope(root=str(folder), folder=str(folder)))).session
        try:
            request = Request(id="c", input_messages=(Message(role="user", content="How is it?"),))
            return await session.invoke(request)
        finally:
            await session.close()

    response = asyncio.run(once(provider))
    assert response.success, response.error
    return response


@pytest.fixture(params=["cli", "python", "workers", "http", "replay"])
def way(request: pytest.FixtureRequest, tmp_path: Path) -> Way:
    """A reply, sent by an agent behind each of the providers that take whatever it says."""

    def come(body: Any) -> ProviderResponse:
        (tmp_path / "reply.json").write_text(json.dumps(body))
        (tmp_path / "agent.py").write_text(
            f"import json\ndef agent(prompt):\n    return json.loads({json.dumps(body)!r})"
        )
        place = {"provider": "python", "function": "./agent.py:agent"}
        if request.param == "http":
            with serving(answering(body)) as endpoint:
                return ask({"provider": "http", "url": endpoint.url}, tmp_path)
        printing = [sys.executable, "-S", "-E", "-c", "print(open('reply.json').read())"]
        settings: dict[str, dict[str, Any]] = {
            "cli": {"provider": "cli", "command": printing},
            "python": place,
            "workers": {**place, "workers": 1},
            "replay": {"provider": "replay", "file": "reply.json"},
        }
        return ask(settings[request.param], tmp_path)

    return come


def model(body: Any, tmp_path: Path, provider: str = "openai", **settings: Any) -> ProviderResponse:
    """A reply as a vendor's server sends it; a list is a stream."""
    handler = streaming(body) if isinstance(body, list) else answering(body)
    more = {"stream": True, **settings} if isinstance(body, list) else settings
    with serving(handler) as endpoint:
        target = {"provider": provider, "base_url": endpoint.url, "api_key": "k" * 20, "model": "m", **more}
        return ask(target, tmp_path)


def calls(response: ProviderResponse) -> list[ToolCall]:
    return [call for message in response.output_messages or () for call in message.tool_calls]


def chat(message: dict[str, Any], **fields: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "x", **message}}
    return {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], **fields}


def ai(content: str = "x", **fields: Any) -> dict[str, Any]:
    """A message of LangChain's."""
    return {"type": "ai", "content": content, **fields}


def counts(read: Any, wrote: Any, **fields: Any) -> dict[str, Any]:
    return {"usage_metadata": {"input_tokens": read, "output_tokens": wrote, **fields}}


class TestArgumentsThatAreNull:
    """`args: null` is not the word "null"."""

    def test_of_langchain(self, way: Way) -> None:
        (call,) = calls(way({"messages": [ai(tool_calls=[{"name": "now", "args": None, "id": "1"}])]}))
        assert call.input is None

    @pytest.mark.parametrize("arguments", [None, "null"])
    def test_of_openai(self, way: Way, arguments: Any) -> None:
        called = [{"id": "1", "type": "function", "function": {"name": "now", "arguments": arguments}}]
        reply = {"output_messages": [{"role": "assistant", "content": "x", "tool_calls": called}]}
        assert [call.input for call in calls(way(reply))] == [None]

    @pytest.mark.parametrize("arguments", [None, "null"])
    def test_of_a_model(self, tmp_path: Path, arguments: Any) -> None:
        function = {"name": "now", "arguments": arguments}
        said = chat({"tool_calls": [{"id": "1", "type": "function", "function": function}]})
        assert [call.input for call in calls(model(said, tmp_path))] == [None]
        item = {"type": "function_call", "id": "f", "call_id": "1", **function}
        response = {"id": "r", "object": "response", "status": "completed", "model": "m", "output": [item]}
        assert [call.input for call in calls(model(response, tmp_path, api="responses"))] == [None]

    def test_of_anthropic(self, tmp_path: Path) -> None:
        block = {"type": "tool_use", "id": "1", "name": "now", "input": None}
        said = {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": [block]}
        assert [call.input for call in calls(model(said, tmp_path, "anthropic"))] == [None]


class TestTotals:
    def test_one_message_without_a_total_is_not_left_out_of_the_sum(self, way: Way) -> None:
        usage = way({"messages": [ai(**counts(10, 5, total_tokens=15)), ai(**counts(20, 5))]}).tokens_usage
        assert usage == TokensUsage(input_tokens=30, output_tokens=10, total_tokens=40)

    def test_one_message_without_any_count_makes_the_sum_unknown_and_not_smaller(self, way: Way) -> None:
        response = way({"messages": [ai(**counts(10, 5)), ai("y")]})
        assert response.tokens_usage is None
        assert any("unknown" in warning for warning in response.warnings)

    def test_every_turn_counts_and_not_only_the_last(self, way: Way) -> None:
        usage = way({"messages": [ai(**counts(10, 5)), ai(**counts(20, 6)), ai(**counts(30, 7))]}).tokens_usage
        assert usage == TokensUsage(input_tokens=60, output_tokens=18, total_tokens=78)

    def test_numbers_that_are_written_as_texts_are_never_strung_together(self, way: Way) -> None:
        response = way({"messages": [ai(**counts("10", "5")), ai(**counts("20", "6"))]})
        assert response.tokens_usage in (None, TokensUsage(input_tokens=30, output_tokens=11, total_tokens=41))
        usage = {"input_tokens": "10", "output_tokens": "5"}
        one = way({"text": "x", "tokens_usage": usage}).tokens_usage
        assert one in (None, TokensUsage(input_tokens=10, output_tokens=5, total_tokens=15))

    def test_the_same_of_a_model(self, tmp_path: Path) -> None:
        usage = model(chat({}, usage={"prompt_tokens": "12", "completion_tokens": "7"}), tmp_path).tokens_usage
        assert usage in (None, TokensUsage(input_tokens=12, output_tokens=7, total_tokens=19))


class TestStreams:
    """The chunk that counts the tokens has no choices, and is no less a part of the reply."""

    CHUNKS = (
        {"id": "1", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi"}}]},
        {"id": "1", "model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"id": "1", "model": "m", "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 7}},
    )
    USAGE = TokensUsage(input_tokens=12, output_tokens=7, total_tokens=19)

    def test_of_openai(self, tmp_path: Path) -> None:
        response = model(events(*self.CHUNKS, done=True), tmp_path)
        assert (response.text, response.tokens_usage) == ("Hi", self.USAGE)

    def test_of_openai_behind_any_endpoint(self, tmp_path: Path) -> None:
        with serving(streaming(events(*self.CHUNKS, done=True))) as endpoint:
            response = ask({"provider": "http", "url": endpoint.url}, tmp_path)
        assert (response.text, response.tokens_usage) == ("Hi", self.USAGE)

    def test_of_anthropic_whose_counts_come_in_two_events(self, tmp_path: Path) -> None:
        told = [
            {
                "type": "message_start",
                "message": {
                    "id": "1",
                    "type": "message",
                    "role": "assistant",
                    "model": "m",
                    "content": [],
                    "usage": {"input_tokens": 2, "cache_read_input_tokens": 10, "output_tokens": 1},
                },
            },
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}},
            {"type": "message_stop"},
        ]
        response = model(events(*told), tmp_path, "anthropic")
        assert response.text == "Hi"
        assert response.tokens_usage == TokensUsage(
            input_tokens=12, output_tokens=7, total_tokens=19, cache_read_tokens=10
        )

    def test_of_langchain_whose_last_chunk_has_it(self, way: Way) -> None:
        chunk = {**ai("Hi", **counts(12, 7)), "type": "AIMessageChunk", "tool_call_chunks": []}
        response = way({"messages": [chunk]})
        assert (response.text, response.tokens_usage) == ("Hi", self.USAGE)


class TestMessages:
    @pytest.mark.parametrize("kind", ["critic", "developer", "chat"])
    def test_a_type_that_nobody_knows_is_not_the_assistant(self, way: Way, kind: str) -> None:
        strange = {"type": kind, "content": "I object", **({"role": "critic"} if kind == "chat" else {})}
        response = way({"messages": [ai("answer"), strange]})
        assert response.text == "answer"
        assert [message.role for message in response.output_messages or ()][-1:] in (["critic"], ["developer"])

    def test_a_role_that_nobody_knows_is_kept(self, way: Way) -> None:
        messages = [{"role": "assistant", "content": "answer"}, {"role": "critic", "content": "I object"}]
        response = way({"output_messages": messages})
        assert response.text == "answer"
        assert [message.role for message in response.output_messages or ()] == ["assistant", "critic"]

    def test_the_status_of_a_result_is_its_call_s(self, way: Way) -> None:
        called = ai("", tool_calls=[{"name": "search", "args": {}, "id": "1", "type": "tool_call"}])
        result = {"type": "tool", "content": "no network", "tool_call_id": "1", "status": "error"}
        (call,) = calls(way({"messages": [called, result, ai("sorry")]}))
        assert (call.status, call.output) == ("error", "no network")

    def test_a_call_that_could_not_be_read_is_a_call(self, way: Way) -> None:
        wrong = {"type": "invalid_tool_call", "name": "search", "args": "{city: Rome", "id": "1", "error": None}
        (call,) = calls(way({"messages": [ai("x", tool_calls=[], invalid_tool_calls=[wrong])]}))
        assert (call.tool, call.input) == ("search", "{city: Rome")
        assert "arguments_error" in (call.metadata or {})
        assert call.status is None
