"""Protocols of executors, which run the requests of targets on other processes or machines."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from agentv.model.request import Request
from agentv.model.response import ProviderResponse
from agentv.protocols import ProviderSession


@runtime_checkable
class TimedSession(ProviderSession, Protocol):
    """Session whose requests run elsewhere, where the time limit of an attempt is enforced, too."""

    async def invoke_within(self, request: Request, timeout_s: float) -> ProviderResponse:
        """Return the reply to a request that may take this long once it has started."""
        ...

    async def invoke_many_within(self, requests: Sequence[Request], timeout_s: float) -> Sequence[ProviderResponse]:
        """Return the replies to several requests that may take this long together."""
        ...


class Executor(Protocol):
    """Runs the requests of targets somewhere else; everything else stays in the process that called `open`."""

    @property
    def slots(self) -> int:
        """Number of requests that may run at the same time."""
        ...

    async def open(self) -> None:
        """Connect, start a host on every worker and open all targets there; raise `ExecutorError` if that fails."""
        ...

    async def invoke(
        self, target: str, requests: Sequence[Request], timeout_s: float, *, batch: bool = False
    ) -> list[ProviderResponse]:
        """Wait for a free slot, run requests to a target there, and return their replies."""
        ...

    async def end_conversation(self, target: str, conversation_id: str) -> None:
        """Release the state of a conversation on its worker."""
        ...

    async def close(self) -> None:
        """End all processes that were started on workers, and disconnect."""
        ...


class RemoteHost(Protocol):
    """Handle of an object of the class `Host` on a worker."""

    async def call(self, method: str, *arguments: Any) -> bytes:
        """Call a method of the host once and return its reply; raise any exception if the worker is lost."""
        ...


class Cluster(Protocol):
    """Connection to an engine, the only part of an executor that differs between engines.

    Other packages register one by an entry point of the group `agentv.executors`: a class that is called with the
    address and an `ExecutorSettings`.
    """

    @property
    def address(self) -> str:
        """Address, for messages."""
        ...

    def is_private(self, worker: str = "") -> bool:
        """Return whether the connection to the engine, or to a worker, stays on this machine or is encrypted."""
        ...

    async def open(self) -> None:
        """Connect; raise `ExecutorError` with the reason if that fails."""
        ...

    async def workers(self) -> Mapping[str, int]:
        """Return the workers that are up now, each with the number of its slots; raise if the engine is lost."""
        ...

    async def start(self, worker: str, lease_s: float) -> RemoteHost:
        """Create a `Host` with this lease on a worker, which the engine never restarts or retries by itself."""
        ...

    async def close(self) -> None:
        """Disconnect, and end the workers if `open` started them."""
        ...
