"""`python`: Python code as the target, in this process or in worker processes."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - a field of a struct
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import force_setattr

from agentv.errors import Problem
from agentv.files import is_import_path
from agentv.providers.base import ProviderBase, check_names

if TYPE_CHECKING:
    from agentv.model.request import Scope
    from agentv.providers.python.call import AgentCallable
    from agentv.providers.python.workers import WorkerSession


_CWD_WORKERS = 4


class PythonAgent(ProviderBase, kw_only=True):
    """Function, class or object in Python."""

    provider: Literal["python"] = "python"
    function: str
    """`package.module:name`, importable from the project's root too, or `./agent.py:name`, relative to this file."""
    args: dict[str, Any] = {}
    """Keyword arguments: of a class, when it is instantiated; of a function, at each call."""
    workers: Annotated[int, Meta(ge=1, le=256)] | None = None
    """Number of processes, each with one case at a time; without it, the code runs in the process of agentv."""
    cwd: Annotated[str, Meta(min_length=1)] | None = None
    """Working directory, relative to the file that defines the target; the code then runs in workers, by default 4."""
    secrets: tuple[str, ...] = ()
    """Names of environment variables that it uses and whose values must not appear in results."""

    executes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Limit the concurrency to the number of workers, so that waiting for one does not count as latency."""
        if self.cwd is not None and self.workers is None:
            # The working directory belongs to a process, and the one of agentv has other uses for its own.
            force_setattr(self, "workers", _CWD_WORKERS)
        if self.workers is not None:
            limit = self.workers if self.max_concurrency is None else min(self.max_concurrency, self.workers)
            force_setattr(self, "max_concurrency", limit)

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Names in `secrets`."""
        return self.secrets

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the import path, without importing it."""
        problems = list(check_names(self.secrets, f"{path}.secrets"))
        if is_import_path(self.function):
            return problems
        expected = "expected the place of a function, a class or an object, 'package.module:name' or './agent.py:name'"
        return [Problem(f"{path}.function", f"{expected}; got {self.function!r}"), *problems]

    async def open(self, scope: Scope) -> AgentCallable | WorkerSession:
        """Return the session; nothing is loaded before the first request."""
        from agentv.providers.python import call, workers  # noqa: PLC0415 - a target is checked without them

        if self.workers is None:
            return call.PythonSession(self.function, self.args, scope, self.name, self.conversation_mode)
        job = workers.Job(function=self.function, args=self.args, scope=scope, conversation=self.conversation_mode)
        return workers.WorkerSession(job, self.workers, cwd=self.cwd, target=self.name)


class Function(ProviderBase, kw_only=True):
    """Function that was passed to `agentv.evaluate`, called as its first parameter demands."""

    provider: Literal["function"] = "function"
    function: Callable[..., Any]

    @property
    def executes(self) -> bool:  # type: ignore[override]  # read on instances only
        """False, because it is the caller's own code in the caller's own process."""
        return False

    async def open(self, scope: Scope) -> AgentCallable:
        """Return a new session."""
        del scope
        return self.session()

    def session(self) -> AgentCallable:
        """Return a session, which needs no event loop yet."""
        from agentv.providers.python.call import AgentCallable  # noqa: PLC0415 - a target is checked without it

        return AgentCallable(lambda: self.function, mode=self.conversation_mode)
