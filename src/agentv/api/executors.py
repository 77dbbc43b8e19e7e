"""Choose the executor of an execution, and let it run the targets that are live."""

from __future__ import annotations

import os
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agentv.api.providers import LOCAL_PROVIDERS, scope_of
from agentv.errors import ExecutorError
from agentv.executors.coordinator import (
    ClusterExecutor,
    ExecutorSettings,
    RemoteBatchSession,
    RemoteSession,
    unencrypted,
)
from agentv.executors.host import TargetJob
from agentv.executors.shipping import pack_project
from agentv.protocols import OpenProvider, ProviderSettings
from agentv.registry import executor_names, find_executor
from agentv.spec.environment import env_variables

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from agentv.api.execution import PreparedExecution
    from agentv.api.providers import ProviderKey
    from agentv.errors import AgentVError
    from agentv.evals import Eval, Target
    from agentv.model.request import Scope
    from agentv.protocols import Provider
    from agentv.protocols.executors import Cluster
    from agentv.run.engine import Engine

LOCAL = "local"
_WITH_PORT = frozenset({"dask", "ray", "tls"})
"""Schemes of addresses that name a port."""
_PORT = re.compile(r".:\d{1,5}$")


class ExecutorChoice(Struct, frozen=True, kw_only=True):
    """The executor of an execution, as on the command line."""

    address: str = LOCAL
    """`local`, the name of an engine, or its address, such as `dask://host:8786`."""
    ship: bool = True
    """`False` if workers have the folders of the project at the same paths."""
    allow_unencrypted: bool = False
    """`True` to send variables over an unencrypted connection to another host."""
    with_raw: bool = False
    """`True` to send `raw_response` back, which only `persist: full` stores."""

    def make_cluster(self) -> Cluster:
        """Return the connection to the engine; raise `ExecutorError` if there is none of this name."""
        address = self.address.rstrip("/")
        scheme, is_address, host = address.partition("://")
        cls = find_executor(scheme)
        if cls is None:
            msg = f"there is no executor {self.address!r}: write {LOCAL}, {', '.join(executor_names())}"
            msg = f"{msg}, or an address such as dask://host:8786"
            raise ExecutorError(msg)
        if is_address and scheme in _WITH_PORT and not _PORT.search(host):
            msg = f"the address {self.address!r} names no port: write {scheme}://HOST:PORT"
            raise ExecutorError(msg)
        cluster: Cluster = cls(address, ExecutorSettings())
        return cluster


class RemoteTargets:
    """Open executor of an execution, which ends when the executor is lost, so that it can be resumed."""

    def __init__(self) -> None:
        self.executor: ClusterExecutor | None = None
        self._engine: Engine | None = None
        self._error: AgentVError | None = None

    @property
    def engine(self) -> Engine | None:
        """Engine of the execution."""
        return self._engine

    @engine.setter
    def engine(self, engine: Engine) -> None:
        self._engine = engine
        if self._error is not None:
            self.stop(self._error)

    def stop(self, error: AgentVError) -> None:
        """Start no more runs, and report the error at the end."""
        self._error = error
        if self._engine is not None:
            self._engine.broken = error
            self._engine.halt()

    @property
    def slots(self) -> int:
        """Number of requests that may run at the same time; at least 1."""
        return max(1, 0 if self.executor is None else self.executor.slots)

    def describe(self) -> str:
        """Return the workers and slots that there are now."""
        workers, slots = (0, 0) if self.executor is None else (self.executor.workers, self.executor.slots)
        return f"{workers:,} worker{'s' * (workers != 1)}, {slots:,} slot{'s' * (slots != 1)}"


@asynccontextmanager
async def open_executor(prepared: PreparedExecution, choice: ExecutorChoice) -> AsyncIterator[PreparedExecution]:
    """Open all live targets on the workers of an engine; yield the execution with their sessions.

    This comes before anything is stored: an engine that cannot be used leaves no execution behind.
    """
    remote = RemoteTargets()
    opened = dict(prepared.opened)
    async with open_remote(choice, prepared.evals, prepared.providers, opened, remote.stop) as executor:
        remote.executor = executor
        yield replace(prepared, opened=opened, remote=remote)


@asynccontextmanager
async def open_remote(
    choice: ExecutorChoice,
    evals: Sequence[Eval],
    providers: Mapping[ProviderKey, Provider],
    opened: dict[ProviderKey, OpenProvider],
    on_lost: Callable[[ExecutorError], None],
) -> AsyncIterator[ClusterExecutor]:
    """Open all live targets on the workers of an engine, and add their sessions to `opened`."""
    cluster = choice.make_cluster()
    jobs, projects = _make_jobs(choice, cluster, evals, providers)
    executor = ClusterExecutor(
        cluster, list(jobs.values()), projects, on_lost, allow_unencrypted=choice.allow_unencrypted
    )
    try:
        await executor.open()
        for key, job in jobs.items():
            opened[key] = _remote_provider(executor, job, providers[key])
        yield executor
    finally:
        await executor.close()


@asynccontextmanager
async def open_remote_target(
    choice: ExecutorChoice, target: Target, provider: Provider, scope: Scope
) -> AsyncIterator[OpenProvider]:
    """Open one target on the workers of an engine."""
    cluster = choice.make_cluster()
    digest, data = pack_project(scope.root) if choice.ship else ("", b"")
    job = _make_job(choice, cluster, target, provider, target.name, scope, digest)
    executor = ClusterExecutor(
        cluster, [job], {digest: data} if digest else {}, allow_unencrypted=choice.allow_unencrypted
    )
    try:
        await executor.open()
        yield _remote_provider(executor, job, provider)
    finally:
        await executor.close()


def _remote_provider(executor: ClusterExecutor, job: TargetJob, provider: Provider) -> OpenProvider:
    cls = RemoteBatchSession if executor.targets[job.target].batch else RemoteSession
    return OpenProvider.of(provider, cls(executor, job.target))


def _make_jobs(
    choice: ExecutorChoice, cluster: Cluster, evals: Sequence[Eval], providers: Mapping[ProviderKey, Provider]
) -> tuple[dict[ProviderKey, TargetJob], dict[str, bytes]]:
    """Return the jobs of live targets, and the archives of their projects by hash."""
    jobs: dict[ProviderKey, TargetJob] = {}
    projects: dict[str, bytes] = {}
    digests: dict[str, str] = {}
    for eval_ in evals:
        for target in eval_.targets:
            key = (eval_.id, target.name)
            if key not in providers or target.provider in LOCAL_PROVIDERS:
                continue
            if choice.ship and eval_.root not in digests:
                digests[eval_.root], data = pack_project(eval_.root)
                projects[digests[eval_.root]] = data
            name, scope = f"{eval_.id}\t{target.name}", scope_of(eval_, target.name)
            digest = digests.get(eval_.root, "")
            jobs[key] = _make_job(choice, cluster, target, providers[key], name, scope, digest)
    return jobs, projects


def _make_job(  # noqa: PLR0913, PLR0917 - the parts of a job
    choice: ExecutorChoice, cluster: Cluster, target: Target, provider: Provider, key: str, scope: Scope, digest: str
) -> TargetJob:
    if target.instance is not None:
        msg = f"target {target.name!r} is an object of this process, which a worker cannot import: "
        msg = f"{msg}use a `python` target with `function: package.module:name`"
        raise ExecutorError(msg)
    settings = ProviderSettings.of(provider)
    names = {*env_variables(target.settings), *settings.variable_names, *settings.secret_names}
    env = {name: os.environ[name] for name in sorted(names) if name in os.environ}
    folders = [os.path.relpath(folder, scope.root) if folder else "" for folder in (scope.folder, scope.eval_folder)]
    if digest and any(folder.startswith(os.pardir) for folder in folders):
        msg = f"the folder of target {target.name!r} is outside of the project {scope.root}, which workers get"
        raise ExecutorError(msg)
    job = TargetJob(
        target=key,
        name=target.name,
        provider=target.provider,
        settings=dict(target.settings),
        env=env,
        project=digest,
        root="" if digest else os.path.abspath(scope.root),  # noqa: PTH100 - as it is named, without links
        folder=folders[0],
        eval_folder=folders[1],
        with_raw=choice.with_raw,
    )
    if env and not choice.allow_unencrypted and not cluster.is_private():
        raise ExecutorError(unencrypted(job, cluster.address))
    return job
