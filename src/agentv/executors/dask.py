"""Dask: one actor on every worker of a local or a remote cluster."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agentv.errors import ExecutorError
from agentv.executors.host import Host, is_own_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.executors.coordinator import ExecutorSettings

CONNECT_S = 5.0
LOCAL_SLOTS = 10
"""Slots of all workers that are started on this machine."""


def _silence_loggers() -> None:
    """Keep messages of the engine out of our output; some of its loggers have a level of their own."""
    for name in ("distributed", "tornado", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in {"distributed", "tornado"}:
            logging.getLogger(name).setLevel(logging.CRITICAL)


class DaskHost:
    """Handle of an actor."""

    def __init__(self, future: Any, actor: Any) -> None:
        self._future = future
        """Kept because the actor ends with its future."""
        self._actor = actor

    async def call(self, method: str, *arguments: Any) -> bytes:
        """Call a method of the host."""
        reply: bytes = await getattr(self._actor, method)(*arguments)
        return reply


class DaskCluster:
    """Dask cluster, started on this machine for the address `dask`."""

    def __init__(self, address: str, settings: ExecutorSettings) -> None:
        self.address = address
        self._settings = settings
        self._client: Any = None
        self._local: Any = None

    def is_private(self, worker: str = "") -> bool:
        """Tell whether the scheduler or a worker is on this machine, or TLS is used."""
        scheme, _, host = (worker or self.address).partition("://")
        return not host or scheme == "tls" or is_own_address(host.rpartition(":")[0])

    async def open(self) -> None:
        """Connect, or start a cluster on this machine."""
        try:
            dask: Any = import_module("dask")
            distributed: Any = import_module("distributed")
        except ImportError as error:
            msg = f"the executor 'dask' needs the package distributed: pip install 'agentv[dask]' ({error})"
            raise ExecutorError(msg) from error
        _silence_loggers()
        dask.config.set({"distributed.comm.timeouts.connect": f"{CONNECT_S:g}s"})
        scheme, _, host = self.address.partition("://")
        address: Any = f"{'tls' if scheme == 'tls' else 'tcp'}://{host}"
        try:
            if not host:
                count = min(os.cpu_count() or 1, 4)
                address = self._local = await distributed.LocalCluster(
                    n_workers=count,
                    threads_per_worker=self._settings.slots or -(-LOCAL_SLOTS // count),
                    processes=True,
                    asynchronous=True,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                )
            security = {"security": distributed.Security()} if scheme == "tls" else {}
            self._client = await distributed.Client(
                address,
                asynchronous=True,
                set_as_default=True,
                direct_to_workers=True,
                timeout=CONNECT_S,
                **security,
            )
        except Exception as error:
            await self.close()
            msg = f"no Dask scheduler can be reached at {self.address}: {str(error) or type(error).__name__}"
            raise ExecutorError(msg) from error

    async def workers(self) -> Mapping[str, int]:
        """Return the workers that the scheduler knows."""
        if self._client.status != "running":
            msg = "the scheduler does not answer"
            raise ConnectionError(msg)
        workers = (await self._client.scheduler.identity(n_workers=-1))["workers"]
        return {name: self._settings.slots or worker["nthreads"] for name, worker in workers.items()}

    async def start(self, worker: str, lease_s: float) -> DaskHost:
        """Create the actor on one worker; the scheduler neither moves nor repeats it."""
        future = self._client.submit(
            Host,
            lease_s,
            actor=True,
            workers=[worker],
            allow_other_workers=False,
            pure=False,
            retries=0,
            key=f"agentv-host-{uuid4().hex}",
        )
        return DaskHost(future, await future)

    async def close(self) -> None:
        """Disconnect, and end the local cluster."""
        for part in (self._client, self._local):
            if part is not None:
                with suppress(Exception):
                    await part.close()
