"""Dask: one actor on every worker of a local or a remote cluster."""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agentv import __version__
from agentv.errors import ExecutorError
from agentv.executors.host import Host, is_own_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.executors.coordinator import ExecutorSettings

CONNECT_S = 5.0
LOCAL_SLOTS = 10
"""Slots of all workers that are started on this machine."""
_PACKAGE_VERSION = "__import__('agentv').__version__"
"""Expression for a worker, which may have no function of ours."""


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
        """Return whether the scheduler or a worker is on this machine, or TLS is used."""
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
            with warnings.catch_warnings(action="ignore"):  # about ports in use, and versions that no worker needs
                if not host:
                    address = self._local = await self._start_local(distributed)
                self._client = await distributed.Client(
                    address,
                    asynchronous=True,
                    set_as_default=True,
                    direct_to_workers=True,
                    timeout=CONNECT_S,
                    **({"security": distributed.Security()} if scheme == "tls" else {}),
                )
        except Exception as error:
            await self.close()
            reason = str(error) or type(error).__name__
            if scheme == "tls" and ("TLS" in reason or "ssl" in reason.lower()):
                reason = f"{reason}; its certificates are set in the configuration of Dask, `distributed.comm.tls`"
            elif isinstance(error, TypeError):  # a scheduler of another version has other methods
                theirs = await _find_version(distributed, address)
                fix = "use versions that are closer to each other"
                reason = f"it has distributed {theirs}, this machine distributed {distributed.__version__}: {fix}"
            what = f"no Dask scheduler can be reached at {self.address}" if host else "no Dask can be started here"
            msg = f"{what}: {reason}"
            raise ExecutorError(msg) from error

    async def _start_local(self, distributed: Any) -> Any:
        """Start a cluster on this machine."""
        count = min(os.cpu_count() or 1, 4)
        return await distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=self._settings.slots or -(-LOCAL_SLOTS // count),
            processes=True,
            asynchronous=True,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        )

    async def workers(self) -> Mapping[str, int]:
        """Return the workers that the scheduler knows."""
        if self._client.status != "running":
            msg = "the scheduler does not answer"
            raise ConnectionError(msg)
        workers = (await self._client.scheduler.identity(n_workers=-1))["workers"]
        return {name: self._settings.slots or worker["nthreads"] for name, worker in workers.items()}

    async def start(self, worker: str, lease_s: float) -> DaskHost:
        """Create the actor on one worker; the scheduler neither moves nor repeats it."""
        await self._check_package(worker)
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

    async def _check_package(self, worker: str) -> None:
        """Raise `ExecutorError` if a worker lacks this version of agentv: it would end when it gets the actor."""
        found = await self._client.run(eval, _PACKAGE_VERSION, workers=[worker], on_error="return")
        theirs = found.get(worker)
        if isinstance(theirs, ImportError):
            msg = f"worker {worker} cannot import agentv ({theirs}): install agentv {__version__} there"
            raise ExecutorError(msg)
        if isinstance(theirs, str) and theirs != __version__:
            msg = f"worker {worker} has agentv {theirs}, this machine agentv {__version__}: install the same versions"
            raise ExecutorError(msg)

    async def close(self) -> None:
        """Disconnect, and end the local cluster."""
        for part in (self._client, self._local):
            if part is not None:
                with suppress(Exception):
                    await part.close()


async def _find_version(distributed: Any, address: str) -> str:
    """Return the version of a scheduler that this client cannot use."""
    with suppress(Exception):
        async with asyncio.timeout(CONNECT_S), distributed.rpc(address) as scheduler:
            return str((await scheduler.versions())["packages"]["distributed"])
    return "of another version"
