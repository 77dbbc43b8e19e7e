"""The kit: every provider of ours passes it, and a provider that breaks a rule is told which one."""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec.structs import replace

from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse, ResponseError, TokensUsage, Unread
from agentv.providers.base import ProviderBase
from agentv.providers.python import Function
from agentv.testing import Check, assert_conforms, provider_conformance
from tests.fakes import agents


def cli(mode: str, program: str, **settings: Any) -> dict[str, Any]:
    return {"provider": "cli", "mode": mode, "command": [sys.executable, "-c", program], **settings}


def looked_at(checks: list[Check]) -> dict[str, str]:
    return {check.name: check.status for check in checks}


def wrong(checks: list[Check]) -> list[str]:
    return [f"{check.name}: {check.sentence}" for check in checks if check.status == "fail"]


CONVERSATIONS = (
    "a conversation has several turns",
    "a turn adds only what is new",
    "conversations at once are not mixed up",
    "a conversation begins without the others",
)


class TestOurs:
    def test_mock(self) -> None:
        checks = provider_conformance(
            {"provider": "mock"},
            failing={"provider": "mock", "fail_rate": 1},
            slow={"provider": "mock", "delay_ms": 60_000},
            odd={"provider": "mock", "reply": {"text": "hi", "metadata": {"conformance_extra": 17}}},
        )
        assert wrong(checks) == []
        assert looked_at(checks)["many at once are not mixed up"] == "pass"

    def test_mock_with_a_full_reply(self) -> None:
        reply = {
            "output_messages": [{"role": "assistant", "content": "hi", "tool_calls": [{"tool": "search"}]}],
            "tokens_usage": {"input_tokens": 10, "output_tokens": 5, "cache_read_tokens": 3, "reasoning_tokens": 2},
        }
        checks = provider_conformance({"provider": "mock", "reply": reply}, expected=None)
        assert wrong(checks) == []
        assert looked_at(checks)["usage counts a whole with its parts"] == "pass"

    def test_replay(self, tmp_path: Path) -> None:
        lines = [{"id": f"conformance-{at}", "text": f"reply {at}", "conformance_extra": 17} for at in range(12)]
        (tmp_path / "replies.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        settings = {"provider": "replay", "file": "replies.jsonl"}
        assert_conforms(
            settings,
            expected=lambda request: f"reply {request.index}",
            failing={"provider": "replay", "file": "nothing.jsonl"},
            odd=settings,
            folder=tmp_path,
        )

    def test_cli_single(self) -> None:
        checks = provider_conformance(
            cli("single", agents.SINGLE),
            failing=cli("single", agents.FAILS),
            slow=cli("single", agents.SLOW),
            large=cli("single", agents.LARGE, max_output_bytes=1000),
            odd=cli("single", agents.SINGLE),
            remembering=cli("single", agents.REMEMBERING_SINGLE),
        )
        assert {looked_at(checks)[name] for name in CONVERSATIONS} == {"pass"}
        assert wrong(checks) == []
        assert looked_at(checks)["every attempt has a thread of its own"] == "pass"
        assert looked_at(checks)["cancelling ends it at once"] == "pass"

    @pytest.mark.parametrize("mode", ["batch", "stream"])
    def test_cli_that_stays_up(self, mode: str) -> None:
        checks = provider_conformance(
            cli(mode, agents.LINES),
            failing=cli(mode, agents.FAILS),
            slow=cli(mode, agents.SLOW),
            large=cli(mode, agents.LARGE_LINE, max_output_bytes=100_000),
            odd=cli(mode, agents.LINES),
            remembering=cli(mode, agents.REMEMBERING_LINES),
        )
        assert wrong(checks) == []
        conversations = {looked_at(checks)[name] for name in CONVERSATIONS}
        assert conversations == ({"skipped"} if mode == "batch" else {"pass"})
        status = looked_at(checks)["a batch is answered in order"]
        assert status == ("pass" if mode == "batch" else "skipped")

    def test_a_function(self) -> None:
        async def echo(prompt: str) -> Any:
            await asyncio.sleep(0)
            return {"text": f"you said: {prompt}", "conformance_extra": 17}

        async def slow(prompt: str) -> Any:
            await asyncio.sleep(600)
            return prompt

        def fails(prompt: str) -> Any:
            raise ValueError(prompt)

        def remembering(messages: list[dict[str, Any]]) -> Any:
            return " ".join(message["content"] for message in messages if message["role"] == "user")

        assert_conforms(
            lambda: Function(function=echo),
            failing=lambda: Function(function=fails),
            slow=lambda: Function(function=slow),
            odd=lambda: Function(function=echo),
            remembering=lambda: Function(function=remembering),
        )


class Good(ProviderBase, frozen=True, kw_only=True, dict=True):
    """Keeps every rule; those below break one each."""

    provider: str = "good"

    async def invoke(self, request: Request) -> ProviderResponse:
        await asyncio.sleep(0)
        return ProviderResponse(text=request.prompt)


class Raises(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        msg = f"no {request.id}"
        raise RuntimeError(msg)


class Foreign(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> Any:
        return {"text": request.prompt}


class Both(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        return ProviderResponse(text=request.prompt, error=ResponseError(kind="agent", message="but"))


class Mute(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        return ProviderResponse(output_messages=(Message(role="assistant", content=request.prompt),))


class Boasts(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        return ProviderResponse(text=request.prompt, latency_ms=1e9)


class Refunds(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        return ProviderResponse(text=request.prompt, cost_usd=-0.01)


class Mixes(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        self.__dict__["last"] = request.prompt
        await asyncio.sleep(0.01)
        return ProviderResponse(text=self.__dict__["last"])


class Plain(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        return ProviderResponse(text=request.prompt.encode("ascii", "replace").decode())


class Excludes(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        usage = TokensUsage(input_tokens=1, output_tokens=2, total_tokens=3, cache_read_tokens=500)
        return ProviderResponse(text=request.prompt, tokens_usage=usage)


class Miscounts(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        return ProviderResponse(text=request.prompt, tokens_usage=TokensUsage(input_tokens=-1))


class Sums(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        usage = TokensUsage(input_tokens=1, output_tokens=2, total_tokens=99)
        return ProviderResponse(text=request.prompt, tokens_usage=usage)


class Objects(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        return ProviderResponse(text=request.prompt, raw_response=object())


class OneThread(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        return ProviderResponse(text=request.prompt, thread_id="always")


class Deaf(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            return ProviderResponse(text=request.prompt)
        return ProviderResponse(text=request.prompt)


class Clings(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        self.__dict__["task"] = asyncio.ensure_future(asyncio.sleep(30))
        return ProviderResponse(text=request.prompt)


class ClosesOnce(Good, frozen=True, kw_only=True, dict=True):
    async def open(self, scope: Scope) -> None:
        self.__dict__["resource"] = scope

    async def close(self) -> None:
        del self.__dict__["resource"]


class BoundToALoop(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        waiting = self.__dict__.setdefault("waiting", asyncio.get_running_loop().create_future())
        if not waiting.done():
            asyncio.get_running_loop().call_soon(waiting.set_result, None)
            await waiting
        if waiting.get_loop() is not asyncio.get_running_loop():
            msg = "attached to a different loop"
            raise RuntimeError(msg)
        return ProviderResponse(text=request.prompt)


class Unsure(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        places = [Unread(path=f"content[{at}]", reason="a block of type 'chart' was not understood") for at in range(7)]
        return ProviderResponse(text=request.prompt, unread=tuple(places))


class Meddles(Good, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        request.vars["touched"] = True
        return ProviderResponse(text=request.prompt)


class Shuffles(Good, frozen=True, kw_only=True, dict=True):
    batch_size: int = 10

    async def invoke_many(self, requests: Sequence[Request]) -> list[ProviderResponse]:
        return [ProviderResponse(text=request.prompt) for request in reversed(requests)]


class Loses(Good, frozen=True, kw_only=True, dict=True):
    batch_size: int = 10

    async def invoke_many(self, requests: Sequence[Request]) -> list[ProviderResponse]:
        return [ProviderResponse(text=request.prompt) for request in requests][:1]


@pytest.mark.parametrize(
    ("make", "name", "said"),
    [
        (Raises, "it answers with a response", "raised RuntimeError: no conformance-0"),
        (Foreign, "it answers with a response", "returned a dict, not a ProviderResponse"),
        (Both, "it answers with a response", "has an error all the same"),
        (Mute, "the text is the last thing said", "`text` is empty"),
        (Boasts, "latency is its own time", "but the call took"),
        (Refunds, "the cost is an amount", "`cost_usd` is -0.01, not an amount"),
        (Mixes, "many at once are not mixed up", "the reply to 'number 0 of many' is 'number 11 of many'"),
        (Plain, "every letter survives", "Gr??e"),
        (Excludes, "usage counts a whole with its parts", "does not include the 500 cached tokens"),
        (Miscounts, "usage counts a whole with its parts", "`input_tokens` is -1"),
        (Sums, "usage counts a whole with its parts", "`total_tokens` is 99, the sum is 3"),
        (Unsure, "the whole reply is understood", "content[1]: a block of type 'chart' was not understood"),
        (Objects, "a reply can be stored and read again", "cannot be written as JSON"),
        (OneThread, "every attempt has a thread of its own", "both answered in 'always'"),
        (Clings, "nothing is left when it is closed", "still running after it was closed"),
        (ClosesOnce, "closing twice is harmless", "KeyError"),
        (BoundToALoop, "it can be opened again in another loop", "different loop"),
        (Meddles, "a request is left as it was", "the request was changed"),
        (Shuffles, "a batch is answered in order", "the reply to 'number 0 of a batch' is 'number 11 of a batch'"),
        (Loses, "a batch is answered in order", "12 requests got 1 replies"),
    ],
)
def test_whoever_breaks_the_contract_is_told_where(make: Callable[[], Any], name: str, said: str) -> None:
    checks = provider_conformance(make, patience_s=0.2)
    assert any(sentence.startswith(name) and said in sentence for sentence in wrong(checks)), wrong(checks)


def test_one_that_cannot_be_cancelled_is_told_so() -> None:
    checks = provider_conformance(Good, slow=Deaf, patience_s=1)
    assert [check.name for check in checks if check.status == "fail"] == ["cancelling ends it at once"]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, "is a success or has no error"),
        (ResponseError(kind="agent", message=" "), "has no message"),
        (ResponseError(kind="strange", message="x"), "kind is 'strange'"),  # type: ignore[arg-type]
        (ResponseError(kind="agent", message="x", retry_after_s=-1), "`retry_after_s` is -1"),
        (ResponseError(kind="agent", message="x", code=""), "`code` is ''"),
    ],
)
def test_a_failure_must_say_what_it_is(error: ResponseError | None, said: str) -> None:
    class Fails(Good, frozen=True, kw_only=True, dict=True):
        async def invoke(self, request: Request) -> ProviderResponse:
            del request
            return ProviderResponse(success=error is None, error=error)

    (sentence,) = wrong(provider_conformance(Good, failing=Fails))
    assert said in sentence


def test_one_that_keeps_it_passes_and_what_cannot_be_looked_at_is_not_passed_over_in_silence() -> None:
    checks = provider_conformance(Good)
    assert wrong(checks) == []
    skipped = {check.name: check.sentence for check in checks if check.status == "skipped"}
    assert skipped["a failure is a reply"] == "not looked at: give `failing`"
    assert skipped["cancelling ends it at once"] == "not looked at: give `slow`"
    assert {check.status for check in checks} == {"pass", "skipped"}
    assert all(check.sentence for check in checks)


def test_the_assertion_lists_everything_at_once() -> None:
    with pytest.raises(AssertionError) as failed:
        assert_conforms(Plain)
    assert "breaks its contract in 1 of" in str(failed.value)
    assert "- every letter survives: asked" in str(failed.value)


def test_the_assertion_names_unread_places_but_not_all_of_very_many() -> None:
    with pytest.raises(AssertionError, match=r"7 of its places are in `unread`: content\[0\]: .*; and 2 more"):
        assert_conforms(Unsure)


def test_inside_a_running_loop() -> None:
    async def scene() -> list[Check]:
        return provider_conformance(Good)

    assert wrong(asyncio.run(scene())) == []


def test_settings_that_are_wrong_are_said_as_anywhere_else() -> None:
    sentences = wrong(provider_conformance({"provider": "mock", "repyl": "x"}))
    assert any("did you mean 'reply'" in sentence for sentence in sentences)


class Remembering(Good, frozen=True, kw_only=True, dict=True):
    """Holds conversations as it should; those below do not."""

    async def invoke(self, request: Request) -> ProviderResponse:
        await asyncio.sleep(0)
        said = [message.text for message in request.input_messages if message.role == "user"]
        return ProviderResponse(
            output_messages=(Message(role="assistant", content=" ".join(said)),), text=" ".join(said)
        )


class Pasting(Remembering, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        response = await super().invoke(request)
        return replace(response, output_messages=(*request.input_messages, *(response.output_messages or ())))


class Piling(Remembering, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        response = await super().invoke(request)
        return replace(response, output_messages=(response.output_messages or ()) * request.turn)


class Gossiping(Remembering, frozen=True, kw_only=True, dict=True):
    async def invoke(self, request: Request) -> ProviderResponse:
        said = self.__dict__.setdefault("said", [])
        said.append(request.prompt)
        return ProviderResponse(text=" ".join(said))


class Threadless(Remembering, frozen=True, kw_only=True, dict=True):
    conversation_mode: Literal["full", "thread"] = "thread"


@pytest.mark.parametrize(
    ("broken", "name", "words"),
    [
        (Good, CONVERSATIONS[0], "in turn 2 it does not know that the user said 'word 1 of three'"),
        (Threadless, CONVERSATIONS[0], "the reply to the first turn has no `thread_id`"),
        (Pasting, CONVERSATIONS[1], "the reply to turn 1 has a message of the user"),
        (Piling, CONVERSATIONS[1], "the first turn added 1 messages, and turn 2 2"),
        (Gossiping, CONVERSATIONS[2], "received text of conversation"),
        (Gossiping, CONVERSATIONS[3], "a new conversation knows what was said in an earlier one"),
    ],
)
def test_a_provider_that_cannot_hold_a_conversation_is_told_why(broken: Any, name: str, words: str) -> None:
    checks = {check.name: check for check in provider_conformance(Good, remembering=broken)}
    assert checks[name].status == "fail"
    assert words in checks[name].sentence


def test_a_provider_that_holds_conversations_conforms() -> None:
    checks = looked_at(provider_conformance(Good, remembering=Remembering))
    assert {checks[name] for name in CONVERSATIONS} == {"pass"}
    without = looked_at(provider_conformance(Good))
    assert {without[name] for name in CONVERSATIONS} == {"skipped"}
