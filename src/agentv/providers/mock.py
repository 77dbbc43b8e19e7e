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
    from collections.abc import Mapping, Sequence

    from agentv.model.request import Request, Scope


class Mock(ProviderBase, kw_only=True):
    """Target with fixed replies; without a `reply` it repeats the prompt."""

    provider: Literal["mock"] = "mock"
    reply: str | dict[str, Any] | list[str | dict[str, Any]] | UnsetType = UNSET
    """One reply, or a list of which case i gets entry i modulo its length."""
    delay_ms: Annotated[float, Meta(ge=0, le=3_600_000)] = 0.0
    """Delay of every reply."""
    fail_rate: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """Share of attempts that fail, chosen by case id, so that it is the same in every execution."""

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the replies."""
        problems: list[Problem] = []
        if self.reply == []:
            problems.append(Problem(f"{path}.reply", "holds no reply"))
        for index, reply in enumerate(self._written):
            place = f"{path}.reply[{index}]" if isinstance(self.reply, list) else f"{path}.reply"
            problems += _check_reply(reply, place)
        return problems

    def reply_warnings(self, scope: Scope) -> list[tuple[str, str]]:
        """Return the deprecations of the replies."""
        del scope
        places = [f"reply[{index}]" if isinstance(self.reply, list) else "reply" for index in range(len(self._written))]
        replies = zip(places, self._written, strict=True)
        return [(place, warning) for place, reply in replies for warning in trace_warnings(_decode(reply))]

    @property
    def _written(self) -> list[Any]:
        if self.reply is UNSET:
            return []
        return self.reply if isinstance(self.reply, list) else [self.reply]

    async def open(self, scope: Scope) -> MockSession:
        """Decode the replies."""
        del scope
        return MockSession(self, [_decode(reply) for reply in self._written])


class MockSession:
    """Replies of a mock target, decoded."""

    def __init__(self, settings: Mock, replies: Sequence[ProviderResponse]) -> None:
        self._settings = settings
        self._replies = replies

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
        return self._replies[request.index % len(self._replies)]

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


def _decode(reply: str | Mapping[str, Any]) -> ProviderResponse:
    # Without `output_messages`, calls are unknown, which evaluators distinguish from "no calls".
    return ProviderResponse(text=reply) if isinstance(reply, str) else decode_response(reply)


def _random_number(request: Request) -> float:
    from random import Random  # noqa: PLC0415 - only `fail_rate` needs it

    return Random(f"{request.id}/{request.repeat}/{request.attempt}").random()  # noqa: S311 - not used for secrets
