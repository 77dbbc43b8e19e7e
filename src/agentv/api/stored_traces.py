"""Trace files of stored replies: found where the agent was asked, and read again if their hash is the same."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.json import Decoder

from agentv.api.resume import folder_of
from agentv.api.runs import translate_damage
from agentv.api.traces import trace_follower
from agentv.spec.environment import resolve_env
from agentv.spec.project import find_project

if TYPE_CHECKING:
    from agentv.model.response import ProviderResponse
    from agentv.model.stored import ExecutionRow, RunRow, StoredRun
    from agentv.protocols import Store

RunIdentity = tuple[str, str, str, str | None, int]
"""Eval, target, case, persona and repeat of a run."""


class _TargetSnapshot(Struct):
    """The part of a stored target that locates its trace files."""

    trace_store: str | None = None


_decode_target = Decoder(_TargetSnapshot).decode


def identity_of(run: RunRow | StoredRun) -> RunIdentity:
    """Return the eval, target, case, persona and repeat of a run."""
    return run.eval_id, run.target, run.case_id, run.persona_id, run.repeat


class StoredTraces:
    """The trace files of the replies of one execution."""

    def __init__(self, store: Store, execution: ExecutionRow) -> None:
        self._store = store
        self._execution_id = execution.id
        self._origin = _find_origin(store, execution)

    @cached_property
    def _origin_keys(self) -> dict[RunIdentity, str]:
        return {identity_of(row): row.key for row in self._store.runs(self._origin.id)}

    def follow(self, response: ProviderResponse, run: StoredRun) -> ProviderResponse:
        """Return the reply of a run with the events of its trace file, or with the file as an unread place."""
        if self._origin.id != self._execution_id:
            key = self._origin_keys.get(identity_of(run), "")
            run = next(iter(self._store.stored_runs(self._origin.id, key)), run)
        folder = folder_of(self._origin.command, self._store)
        if run.place:
            folder = (folder / run.place.rsplit(":", 2)[0]).parent
        project = find_project(folder)
        root = folder if project is None else project.parent
        with translate_damage(run):
            target = _decode_target(run.target_settings)
        settings = resolve_env({"trace_store": target.trace_store}, os.environ)
        # Paths of a target that is defined in the project are relative to the project.
        return trace_follower(str(folder), str(root), settings["trace_store"], (str(root),))(response)

    def follow_key(self, response: ProviderResponse, key: str) -> ProviderResponse:
        """Follow the trace file of the run with this key."""
        for run in self._store.stored_runs(self._execution_id, key):
            return self.follow(response, run)
        return response


def _find_origin(store: Store, execution: ExecutionRow) -> ExecutionRow:
    """Return the execution that asked the agents, following executions that evaluated it again."""
    visited = set()
    while (earlier := execution.command.rescored) and earlier not in visited:
        visited.add(earlier)
        found = store.find_execution(earlier)
        if not found:
            break
        execution = found[0]
    return execution
