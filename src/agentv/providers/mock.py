"""`mock`: replies written in the eval itself, for trying things out without an agent."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from agentv.errors import FormatError, Problem, suggest
from agentv.formats.reader import decode_response
from agentv.formats.response import REPLY_KEYS
from agentv.model.request import Request
from agentv.model.response import ProviderResponse
from agentv.providers.base import ProviderBase, failure


class Mock(ProviderBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Answers with what the eval says; without a `reply` it repeats the question."""

    provider: Literal["mock"] = "mock"
    reply: str | dict[str, Any] | list[str | dict[str, Any]] | UnsetType = UNSET
    """One reply, or a list of which case i gets entry i modulo its length."""
    delay_ms: Annotated[float, Meta(ge=0, le=3_600_000)] = 0.0
    """How long it pretends to think."""
    fail_rate: Annotated[float, Meta(ge=0, le=1)] = 0.0
    """The share of attempts that fail, chosen by case id, so that every run fails alike."""

    def check(self, path: str) -> list[Problem]:
        """What is wrong with the replies."""
        problems: list[Problem] = []
        if self.reply == []:
            problems.append(Problem(f"{path}.reply", "holds no reply"))
        for index, reply in enumerate(self._written):
            place = f"{path}.reply[{index}]" if isinstance(self.reply, list) else f"{path}.reply"
            problems += _check_reply(reply, place)
        return problems

    @property
    def _written(self) -> list[Any]:
        if self.reply is UNSET:
            return []
        return self.reply if isinstance(self.reply, list) else [self.reply]

    async def invoke(self, request: Request) -> ProviderResponse:
        """The reply for this case."""
        if self.delay_ms:
            from asyncio import sleep  # noqa: PLC0415 - checking a mock target needs no event loop

            await sleep(self.delay_ms / 1000)
        if self.fail_rate and _chance(request) < self.fail_rate:
            return failure("transport", "the mock target failed, as `fail_rate` asks of it", retryable=True)
        replies = self.__dict__.get("replies")
        if replies is None:
            replies = self.__dict__["replies"] = [_decoded(reply) for reply in self._written]
        if not replies:
            return _decoded(request.prompt)
        reply: ProviderResponse = replies[request.index % len(replies)]
        return reply


def _check_reply(reply: Any, path: str) -> list[Problem]:
    if isinstance(reply, str):
        return []
    problems = [
        Problem(f"{path}.{key}", f"unknown key {key!r}{suggest(key, REPLY_KEYS)}", "key")
        for key in reply
        if key not in REPLY_KEYS
    ]
    try:
        return problems + [Problem(path, warning, "whole") for warning in decode_response(reply).warnings]
    except FormatError as error:
        return [*problems, Problem(path, str(error))]


def _decoded(reply: str | Mapping[str, Any]) -> ProviderResponse:
    # A text alone says nothing of calls: evaluators must be able to tell that from "called nothing".
    return ProviderResponse(text=reply) if isinstance(reply, str) else decode_response(reply)


def _chance(request: Request) -> float:
    from random import Random  # noqa: PLC0415 - only a target that is to fail needs it

    return Random(f"{request.id}/{request.repeat}/{request.attempt}").random()  # noqa: S311 - no secret hangs on it
