"""`python`: code of the user's as the system under test, in this process or in workers of its own."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - a field of a struct
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import force_setattr

from agentv.errors import Problem
from agentv.files import is_import_path
from agentv.formats.normalize import failure_from_exception
from agentv.model.request import Request
from agentv.model.response import ProviderResponse
from agentv.providers.base import ProviderBase
from agentv.providers.cli import check_names

if TYPE_CHECKING:
    from agentv.model.request import Request, Scope
    from agentv.model.response import ProviderResponse
    from agentv.providers.python.call import Callee
    from agentv.providers.python.workers import Workers


class PythonAgent(ProviderBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A function, a class or an object in Python."""

    provider: Literal["python"] = "python"
    function: str
    """`package.module:name`, or `./agent.py:name` for a file in the eval's folder or the project's."""
    args: dict[str, Any] = {}
    """Keyword arguments: of a class, when it is instantiated; of a function, at each call."""
    workers: Annotated[int, Meta(ge=1, le=256)] | None = None
    """How many processes run it, each with one case at a time; without it, it runs in the process of agentv."""
    secrets: tuple[str, ...] = ()
    """Names of environment variables that it uses and whose values must not appear in results."""

    executes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Ask for no more at once than there are workers: whoever waits for one must not run out of time."""
        if self.workers is not None:
            most = self.workers if self.max_concurrency is None else min(self.max_concurrency, self.workers)
            force_setattr(self, "max_concurrency", most)

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The variables that it says it uses."""
        return self.secrets

    def check(self, path: str) -> list[Problem]:
        """That the place can be one; nothing is imported before it runs."""
        problems = list(check_names(self.secrets, f"{path}.secrets"))
        if is_import_path(self.function):
            return problems
        expected = "expected the place of a function, a class or an object, 'package.module:name' or './agent.py:name'"
        return [Problem(f"{path}.function", f"{expected}; got {self.function!r}"), *problems]

    async def open(self, scope: Scope) -> None:
        """Nothing is loaded yet; from now on, prints of the code's do not mix with results."""
        await super().open(scope)
        if self.workers is None:
            from agentv.providers.python.loading import install  # noqa: PLC0415 - a target is checked without it

            install()

    async def invoke(self, request: Request) -> ProviderResponse:
        """What the code returns, normalised; what it throws is the run's error."""
        if self.workers is not None:
            return await self._workers.invoke(request)
        from agentv.providers.python.loading import printing_to_stderr  # noqa: PLC0415 - as above

        try:
            with printing_to_stderr():
                return await self._callee.ask(request)
        except Exception as error:  # noqa: BLE001 - whatever the user's code throws is this run's error alone
            from agentv.formats.normalize import failure_from_exception  # noqa: PLC0415 - only a failure needs it

            return failure_from_exception(error)

    async def close(self) -> None:
        """End the workers, and close what was made here."""
        # Who opens it again begins anew, in another event loop perhaps.
        callee: Callee | None = self.__dict__.pop("callee", None)
        if callee is not None:
            await callee.close()
        workers: Workers | None = self.__dict__.pop("workers_up", None)
        if workers is not None:
            await workers.close()
        elif self.workers is None:
            from agentv.providers.python.loading import remove  # noqa: PLC0415 - as above

            remove()

    @property
    def _callee(self) -> Callee:
        callee: Callee | None = self.__dict__.get("callee")
        if callee is None:
            from agentv.providers.python.call import Callee  # noqa: PLC0415 - a target is checked without it
            from agentv.providers.python.loading import load  # noqa: PLC0415 - as above

            callee = self.__dict__["callee"] = Callee(lambda: load(self.function, self.scope), self.args)
        return callee

    @property
    def _workers(self) -> Workers:
        workers: Workers | None = self.__dict__.get("workers_up")
        if workers is None:
            from agentv.providers.python.workers import Workers  # noqa: PLC0415 - only a target that has some

            workers = Workers(self.function, self.args, self.scope, self.workers or 1)
            self.__dict__["workers_up"] = workers
        return workers


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
            from agentv.providers.python.call import Callee  # noqa: PLC0415 - a target is checked without it

            callee = self.__dict__["callee"] = Callee(lambda: self.function)
        try:
            response: ProviderResponse = await callee.ask(request)
        except Exception as error:  # noqa: BLE001 - whatever the user's code throws is this run's error alone
            return failure_from_exception(error)
        return response

    async def close(self) -> None:
        """Close what was made here; who opens it again begins anew."""
        callee = self.__dict__.pop("callee", None)
        if callee is not None:
            await callee.close()
