"""A Python function as the target: what `agentv.evaluate(..., target=function)` calls."""

from collections.abc import Callable
from typing import Any, Literal

from agentv.formats.normalize import failure_of
from agentv.model.request import Request
from agentv.model.response import ProviderResponse
from agentv.providers.base import ProviderBase


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
        callee = self.__dict__.get("callee")
        if callee is None:
            from agentv.providers.python_call import Callee  # noqa: PLC0415 - a target is checked without it

            callee = self.__dict__["callee"] = Callee(lambda: self.function)
        try:
            response: ProviderResponse = await callee.ask(request)
        except Exception as error:  # noqa: BLE001 - whatever the user's code throws is this run's error alone
            return failure_of(error)
        return response

    async def close(self) -> None:
        """Close what was made here; who opens it again begins anew."""
        callee = self.__dict__.pop("callee", None)
        if callee is not None:
            await callee.close()
