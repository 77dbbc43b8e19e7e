"""Whether the replies of a target ever held a tool call, by its stored runs: for `agentv target check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import Struct

from agentv.api.keeping import open_store, project_store, whole
from agentv.errors import StoreError
from agentv.model.target import CallHistory
from agentv.scoring.calls import resolve_calls

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.model.response import ProviderResponse
    from agentv.spec.project import Project

MAX_RUNS = 1000
"""How many stored runs are looked at: a store may hold any number."""
NOT_REPORTED = "if it does use tools, they are not reported"
NOT_UNDERSTOOD = "if it does use tools, its calls may be in what was not understood"


class KnownCalls(NamedTuple):
    """What is known of the calls of a target whose reply holds none."""

    history: CallHistory | None = None
    """`None` when there is no run store, or no need to look into it."""
    note: str = ""
    """What to make of it; empty when a call was found."""
    warnings: tuple[str, ...] = ()


class _Summary(Struct):
    tool_names: tuple[str, ...] = ()


class _Present(Struct):
    """An object of which only its presence matters."""


class _Outcome(Struct):
    """The part of a result record that shows whether its reply held a call."""

    trace_summary: _Summary | None = None
    error: _Present | None = None
    unread: tuple[_Present, ...] = ()


_decode_outcome = msgspec.json.Decoder(_Outcome).decode


def look_for_calls(response: ProviderResponse, target: str, project: Project) -> KnownCalls:
    """Look for a call in the stored runs of a target, unless this reply of it holds one or is an error."""
    summary = resolve_calls(response).summary
    if not response.success or (summary is not None and summary.tool_names):
        return KnownCalls()
    path = project_store(project.root, project.store)
    try:
        history = _read_history(path, target) if path is not None and path.is_file() else None
    except StoreError as error:
        return KnownCalls(warnings=(f"stored runs of this target were not looked at: {error}",))
    return KnownCalls(history, _note(history, is_understood=not response.unread))


@whole()
def _read_history(path: Path, target: str) -> CallHistory:
    store = open_store(path)
    try:
        looked = replies = partly = 0
        for line in store.target_records(target, MAX_RUNS):
            outcome = _decode_outcome(line)
            looked += 1
            replies += outcome.error is None
            partly += bool(outcome.unread)
            if outcome.trace_summary is not None and outcome.trace_summary.tool_names:
                return CallHistory(runs=replies, partly_understood=partly, is_complete=False, held_call=True)
        is_complete = looked < MAX_RUNS
        return CallHistory(runs=replies, partly_understood=partly, is_complete=is_complete, held_call=False)
    finally:
        store.close()


def _note(history: CallHistory | None, *, is_understood: bool) -> str:
    if history is not None and history.held_call:
        return ""
    if history is None or not history.runs:
        return "this reply holds no call: if the target uses tools, give a --prompt that makes it use one"
    where = NOT_REPORTED if is_understood and not history.partly_understood else NOT_UNDERSTOOD
    if history.is_complete:
        runs = f"{history.runs:,} stored run{'s' * (history.runs != 1)}"
        return f"no reply of this target ever held a call ({runs} and this one): {where}"
    return f"no reply of this target held a call (the last {history.runs:,} stored runs and this one): {where}"
