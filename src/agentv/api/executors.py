"""Choose the executor of an execution, and let it run the targets that are live."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from agentv.api.providers import scope_of
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

    from agentv.api.providers import ProviderKey
    from agentv.evals import Eval, Target
    from agentv.protocols import Provider
    from agentv.protocols.executors import Cluster

LOCAL = "local"
_LOCAL_PROVIDERS = ("mock", "replay")


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
        scheme = self.address.partition("://")[0]
        cls = find_executor(scheme)
        if cls is None:
            msg = f"there is no executor {self.address!r}: write {LOCAL}, {', '.join(executor_names())}"
            msg = f"{msg}, or an address such as dask://host:8786"
            raise ExecutorError(msg)
        cluster: Cluster = cls(self.address, ExecutorSettings())
        return cluster


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
        cluster, [job for job, _ in jobs.values()], projects, on_lost, allow_unencrypted=choice.allow_unencrypted
    )
    try:
        await executor.open()
        for key, (job, settings) in jobs.items():
            cls = RemoteBatchSession if executor.targets[job.target].batch else RemoteSession
            opened[key] = OpenProvider.of(providers[key], cls(executor, job.target))._replace(settings=settings)
        yield executor
    finally:
        await executor.close()


def _make_jobs(
    choice: ExecutorChoice, cluster: Cluster, evals: Sequence[Eval], providers: Mapping[ProviderKey, Provider]
) -> tuple[dict[ProviderKey, tuple[TargetJob, ProviderSettings]], dict[str, bytes]]:
    """Return the jobs of live targets, and the archives of their projects by hash."""
    jobs: dict[ProviderKey, tuple[TargetJob, ProviderSettings]] = {}
    projects: dict[str, bytes] = {}
    digests: dict[str, str] = {}
    for eval_ in evals:
        for target in eval_.targets:
            key = (eval_.id, target.name)
            if key not in providers or target.provider in _LOCAL_PROVIDERS:
                continue
            if choice.ship and eval_.root not in digests:
                digests[eval_.root], data = pack_project(eval_.root)
                projects[digests[eval_.root]] = data
            settings = ProviderSettings.of(providers[key])
            jobs[key] = (_make_job(choice, cluster, eval_, target, settings, digests.get(eval_.root, "")), settings)
    return jobs, projects


def _make_job(  # noqa: PLR0913, PLR0917 - the parts of a job
    choice: ExecutorChoice, cluster: Cluster, eval_: Eval, target: Target, settings: ProviderSettings, digest: str
) -> TargetJob:
    if target.instance is not None:
        msg = f"target {target.name!r} is an object of this process, which a worker cannot import: "
        msg = f"{msg}use a `python` target with `function: package.module:name`"
        raise ExecutorError(msg)
    names = {*env_variables(target.settings), *settings.variable_names, *settings.secret_names}
    env = {name: os.environ[name] for name in sorted(names) if name in os.environ}
    scope = scope_of(eval_, target.name)
    folders = [os.path.relpath(folder, eval_.root) if folder else "" for folder in (scope.folder, scope.eval_folder)]
    if digest and any(folder.startswith(os.pardir) for folder in folders):
        msg = f"the folder of target {target.name!r} is outside of the project {eval_.root}, which workers get"
        raise ExecutorError(msg)
    job = TargetJob(
        target=f"{eval_.id}\t{target.name}",
        name=target.name,
        provider=target.provider,
        settings=dict(target.settings),
        env=env,
        project=digest,
        root="" if digest else os.path.abspath(eval_.root),  # noqa: PTH100 - as it is named, without links
        folder=folders[0],
        eval_folder=folders[1],
        with_raw=choice.with_raw,
    )
    if env and not choice.allow_unencrypted and not cluster.is_private():
        raise ExecutorError(unencrypted(job, cluster.address))
    return job
