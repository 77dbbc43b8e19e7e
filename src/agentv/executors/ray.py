"""Ray: actors on every node of a local or a remote cluster.

The client of Ray takes over signals, prints to stdout and ends its process some time after the cluster is lost, so it
runs in a process of its own.
"""

from __future__ import annotations

import asyncio
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from agentv.errors import ExecutorError
from agentv.executors.driver import STOP_S, DriverProcess, serve
from agentv.executors.host import Host, is_own_address

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.executors.coordinator import ExecutorSettings

CONNECT_S = 5.0
START_S = 90.0
"""Time for the start of a cluster on this machine, or for a connection."""
LOST_S = 1.0
"""Time for the end of a connection to a cluster that does not answer: Ray would wait for it."""
LOCAL_SLOTS = 10
"""Slots of all workers that are started on this machine."""
MAX_WORKERS_PER_NODE = 8
_PROGRAM = "from agentv.executors.ray import main; main()"
_ENVIRONMENT = {
    "RAY_gcs_rpc_server_reconnect_timeout_s": "600",
    "RAY_ENABLE_AUTO_CONNECT": "0",  # else a lost client starts a cluster
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # the project is shipped by us
    "RAY_NUM_REDIS_GET_RETRIES": f"{CONNECT_S:.0f}",
    "RAY_USAGE_STATS_ENABLED": "0",
}
"""Settings that Ray reads when it is imported, unless the environment has others."""


class RayHost:
    """Handle of an actor, which the driver has."""

    def __init__(self, driver: DriverProcess, name: str) -> None:
        self._driver = driver
        self._name = name

    async def call(self, method: str, *arguments: Any) -> bytes:
        """Call a method of the host."""
        reply: bytes = await self._driver.ask("call", self._name, method, *arguments)
        return reply


class RayCluster:
    """Ray cluster, started on this machine for the address `ray`."""

    def __init__(self, address: str, settings: ExecutorSettings) -> None:
        self.address = address
        self._settings = settings
        # A local cluster cannot be held to the loopback interface, so that a token protects it.
        token = {} if address != "ray" else {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid4().hex + uuid4().hex}
        self._is_lost = False
        self._driver = DriverProcess(_PROGRAM, {**_ENVIRONMENT, **os.environ, **token})

    def is_private(self, worker: str = "") -> bool:
        """Return whether the head or a worker is on this machine, or TLS is used."""
        host = worker.partition("/")[0] or self.address.partition("://")[2].rpartition(":")[0]
        return not host or os.environ.get("RAY_USE_TLS", "0") == "1" or is_own_address(host)

    async def open(self) -> None:
        """Start the driver, which connects or starts a cluster on this machine."""
        host, _, port = self.address.partition("://")[2].rpartition(":")
        try:
            if self.address != "ray":  # Ray takes minutes to give up
                async with asyncio.timeout(CONNECT_S):
                    _, writer = await asyncio.open_connection(host.strip("[]"), int(port))
                writer.close()
            await self._driver.start()
            async with asyncio.timeout(START_S):
                await self._driver.ask("connect", f"{host}:{port}" if host else "", self._settings.slots)
        except Exception as error:
            await self.close()
            what = "no Ray can be started here" if self.address == "ray" else f"no Ray can be reached at {self.address}"
            msg = f"{what}: {str(error) or type(error).__name__}"
            raise ExecutorError(msg) from error

    async def workers(self) -> Mapping[str, int]:
        """Return the workers of all nodes, each of which becomes an actor."""
        try:
            found: dict[str, int] = await self._driver.ask("workers")
        except BaseException:  # a timeout of the coordinator among them
            self._is_lost = True
            raise
        return found

    async def start(self, worker: str, lease_s: float) -> RayHost:
        """Create an actor on the node of a worker; Ray neither moves nor repeats it."""
        return RayHost(self._driver, await self._driver.ask("start", worker, lease_s))

    async def close(self) -> None:
        """End the driver, and with it the local cluster."""
        await self._driver.close(LOST_S if self._is_lost else STOP_S)


class RayDriver:
    """Client of Ray, whose methods are called by the messages of a `RayCluster`."""

    def __init__(self) -> None:
        self._ray: Any = None
        self._actor: Any = None
        self._hosts: dict[str, Any] = {}
        self._slots: int | None = None
        self._is_local = False

    async def connect(self, address: str, slots: int | None) -> None:
        """Connect to the head of a cluster or to its server of remote clients, or start a cluster."""
        try:
            ray: Any = import_module("ray")
        except ImportError as error:
            msg = f"the executor 'ray' needs the package ray: pip install 'agentv[ray]' ({error})"
            raise ConnectionError(msg) from error
        self._ray, self._slots, self._is_local = ray, slots, not address
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if self._is_local:
            ray.init("local", include_dashboard=False, num_cpus=min(os.cpu_count() or 1, 4), **quiet)
        else:
            try:
                ray.init(address, **quiet)
            except ConnectionError:
                ray.init(f"ray://{address}", **quiet)
        self._actor = ray.remote(num_cpus=0, max_restarts=0, max_task_retries=0, max_concurrency=1_000)(Host)

    async def workers(self) -> dict[str, int]:
        """Return a worker for each CPU of each node, up to 8, with their share of its slots."""
        found = {}
        for node in await asyncio.to_thread(self._ray.nodes):
            cpus = int(node["Resources"].get("CPU", 0)) if node["Alive"] else 0
            workers = min(cpus, MAX_WORKERS_PER_NODE)
            for at in range(workers):
                slots = self._slots or -(-(LOCAL_SLOTS if self._is_local else cpus) // workers)
                found[f"{node['NodeManagerAddress']}/{node['NodeID']}/{at}"] = slots
        return found

    async def start(self, worker: str, lease_s: float) -> str:
        """Create an actor on a node and return its name."""
        strategies = import_module("ray.util.scheduling_strategies")
        node = strategies.NodeAffinitySchedulingStrategy(worker.split("/")[1], soft=False)
        host = self._actor.options(scheduling_strategy=node).remote(lease_s)
        name = uuid4().hex
        self._hosts[name] = host  # the actor ends with its handle
        await host.__ray_ready__.remote()
        return name

    async def call(self, name: str, method: str, *arguments: Any) -> bytes:
        """Call a method of an actor."""
        reply: bytes = await getattr(self._hosts[name], method).remote(*arguments)
        return reply


def main() -> None:
    """Run until stdin is closed, then disconnect."""
    asyncio.run(serve(RayDriver()))
    if (ray := sys.modules.get("ray")) is not None:
        ray.shutdown()
    os._exit(0)  # threads of Ray may never end
