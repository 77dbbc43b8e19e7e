"""`mock`: replies written in the eval itself, to try evals without an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from agentv.errors import FormatError, Problem
from agentv.formats.reader import decode_response
from agentv.formats.response import REPLY_KEYS
from agentv.model.response import ProviderResponse
from agentv.providers.base import ProviderBase, failure
from agentv.scoring.calls import trace_warnings
from agentv.suggestions import suggest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentv.model.request import Request, Scope


_Reply = str | dict[str, Any]


class Mock(ProviderBase, kw_only=True):
    """Target with fixed replies; without a `reply` it repeats the prompt."""

    provider: Literal["mock"] = "mock"
    reply: _Reply | list[_Reply | list[_Reply]] | UnsetType = UNSET
    """One reply, or a list of which case i gets entry i modulo its length. In a conversation the list has the replies
    to its turns; a list of lists has those of case i in entry i."""
    delay_ms: Annotated[float, Meta(ge=0, le=3_600_000)] = 0.0
    """Delay of every reply."""
    fail_rate: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Share of attempts that fail, chosen by case id, so that it is the same in every execution."""

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the replies."""
        problems: list[Problem] = []
        if self.reply == []:
            problems.append(Problem(f"{path}.reply", "it is empty: add a reply"))
        for index, reply in enumerate(self.reply if isinstance(self.reply, list) else ()):
            if reply == []:
                problems.append(Problem(f"{path}.reply[{index}]", "it is empty: add a reply"))
        for place, reply in self._places():
            problems += _check_reply(reply, f"{path}.{place}")
        return problems

    def reply_warnings(self, scope: Scope) -> list[tuple[str, str]]:
        """Return the deprecations of the replies."""
        del scope
        return [(place, warning) for place, reply in self._places() for warning in trace_warnings(_decode(reply))]

    def _places(self) -> Iterator[tuple[str, Any]]:
        """Yield each reply with its place."""
        if self.reply is not UNSET:
            yield from _leaves(self.reply, "reply")

    async def open(self, scope: Scope) -> MockSession:
        """Decode the replies."""
        del scope
        written = [] if self.reply is UNSET else self.reply if isinstance(self.reply, list) else [self.reply]
        return MockSession(self, _decode_all(written), is_list=isinstance(self.reply, list))


class MockSession:
    """Replies of a mock target, decoded."""

    def __init__(self, settings: Mock, replies: list[Any], *, is_list: bool) -> None:
        self._settings = settings
        self._replies = replies
        """Reply of case i, or list of the replies to its turns, in entry i."""
        is_flat = is_list and not any(isinstance(reply, list) for reply in replies)
        self._turns: list[ProviderResponse] | None = replies if is_flat else None
        """Replies to the turns of every conversation, if the list has no lists."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the reply for this case."""
        settings = self._settings
        if settings.delay_ms:
            from asyncio import sleep  # noqa: PLC0415 - checking a mock target needs no event loop

            await sleep(settings.delay_ms / 1000)
        if settings.fail_rate and _random_number(request) < settings.fail_rate:
            return failure("transport", "the mock target failed, as `fail_rate` asks of it", retryable=True)
        if not self._replies:
            return _decode(request.prompt)
        return self._find(request)

    def _find(self, request: Request) -> ProviderResponse:
        turns: Any = self._turns if request.is_conversation else None
        if turns is None:
            turns = self._replies[request.index % len(self._replies)]
        if isinstance(turns, ProviderResponse):
            return turns
        if request.turn <= len(turns):
            reply: ProviderResponse = turns[request.turn - 1]
            return reply
        there_are = "is 1 reply" if len(turns) == 1 else f"are {len(turns)} replies"
        return failure(
            "protocol", f"no reply to turn {request.turn}: there {there_are} to this conversation in `reply`"
        )

    async def close(self) -> None:
        """Do nothing."""


def _check_reply(reply: Any, path: str) -> list[Problem]:
    if isinstance(reply, str):
        return []
    problems = [
        Problem(f"{path}.{key}", f"unknown key {key!r}{suggest(key, REPLY_KEYS)}", "key")
        for key in reply
        if key not in REPLY_KEYS and key != "output"
    ]
    if not isinstance(reply.get("output", {}), dict):
        problems.append(Problem(f"{path}.output", "expected a mapping: the structured output of an agent is an object"))
    try:
        return problems + [Problem(path, warning, "whole") for warning in decode_response(reply).warnings]
    except FormatError as error:
        return [*problems, Problem(path, str(error))]


def _leaves(replies: Any, place: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(replies, list):
        yield place, replies
        return
    for index, reply in enumerate(replies):
        yield from _leaves(reply, f"{place}[{index}]")


def _decode_all(replies: Any) -> Any:
    return [_decode_all(reply) for reply in replies] if isinstance(replies, list) else _decode(replies)


def _decode(reply: str | Mapping[str, Any]) -> ProviderResponse:
    # Without `output_messages`, calls are unknown, which evaluators distinguish from "no calls".
    return ProviderResponse(text=reply) if isinstance(reply, str) else decode_response(reply)


def _random_number(request: Request) -> float:
    from random import Random  # noqa: PLC0415 - only `fail_rate` needs it

    turn = f"/turn {request.turn}" if request.turn > 1 else ""
    return Random(f"{request.id}/{request.repeat}/{request.attempt}{turn}").random()  # noqa: S311 - not used for secrets
