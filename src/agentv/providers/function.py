"""A Python function as the target: what `agentv.evaluate(..., target=function)` calls."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import to_builtins

from agentv.formats.response import decode_response
from agentv.model.request import Request
from agentv.model.response import ProviderResponse
from agentv.providers.base import ProviderBase, failure

MESSAGES = ("messages", "input_messages")


class Function(ProviderBase, frozen=True, kw_only=True, dict=True):
    """Calls it with the prompt, with the messages or with the whole request, by what its first parameter is."""

    provider: Literal["function"] = "function"
    function: Callable[..., Any]

    @property
    def executes(self) -> bool:  # type: ignore[override]  # read on instances only
        """It is the caller's own code, in the caller's own process."""
        return False

    async def invoke(self, request: Request) -> ProviderResponse:
        """What the function returns, normalised; what it throws is the run's error."""
        argument = self._argument(request)
        if inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(
            getattr(self.function, "__call__", None)  # noqa: B004 - an object whose call is asynchronous
        ):
            return _normalise(await self.function(argument))
        from agentv.process.thread import in_thread  # noqa: PLC0415 - only a function that blocks needs a thread

        found = await in_thread(self.function, argument)
        return _normalise(await found if inspect.isawaitable(found) else found)

    def _argument(self, request: Request) -> Any:
        wanted = self.__dict__.get("wanted")
        if wanted is None:
            wanted = self.__dict__["wanted"] = _wanted(self.function)
        if wanted == "request":
            return request
        return list(to_builtins(request.input_messages)) if wanted == "messages" else request.prompt


def _wanted(function: Callable[..., Any]) -> str:
    try:
        parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C: it does not say
        return "prompt"
    first = next(iter(parameters.values()), None)
    if first is None:
        return "prompt"
    if first.name == "request" or first.annotation in (Request, "Request", "agentv.Request"):
        return "request"
    return "messages" if first.name in MESSAGES else "prompt"


def _normalise(found: Any) -> ProviderResponse:
    if isinstance(found, ProviderResponse):
        return found
    if isinstance(found, str):
        return ProviderResponse(text=found)
    if found is None:
        return failure("protocol", "the function returned nothing; return a text, messages, or a reply")
    return decode_response(found)
