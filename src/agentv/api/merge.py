"""The results of all shards put together as one execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from agentv.api.compare.sources import decode_record, read_records
from agentv.api.reporting import ReporterGroup
from agentv.errors import FormatError
from agentv.model.events import ExecutionFinished, ExecutionStarted, RunFinished
from agentv.model.response import ProviderResponse
from agentv.run.plan import PlanCounts as Planned
from agentv.run.summary import ExecutionEnd, PlanNames, Totals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from agentv.model.results import ResultRecord, Shard, Summary
    from agentv.protocols import Reporter

MAX_NAMED = 5


class RecordLine(NamedTuple):
    """Where a result lies."""

    order: int
    file: int
    start: int
    length: int


class FoundRecord:
    """What the files hold, without the results themselves."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths
        self.lines: list[RecordLine] = []
        self.first: tuple[Path, ResultRecord, Shard] | None = None
        self.evals: dict[str, int] = {}
        self.targets: dict[str, int] = {}
        self.shards: dict[int, int] = {}
        self.started_at = self.completed_at = ""
        self.execution_id = ""
        self.repeats = False
        for number, path in enumerate(paths):
            for start, length, record in read_records(path):
                self._add(path, record, RecordLine(0, number, start, length))

    def _add(self, path: Path, record: ResultRecord, line: RecordLine) -> None:
        shard = record.shard
        if isinstance(shard, msgspec.UnsetType):
            msg = f"{path} was not written by `agentv eval --shard`: it is an execution of its own"
            raise FormatError(msg)
        if self.first is None:
            self.first = path, record, shard
        other, _, known = self.first
        if (shard.plan, shard.count, shard.total) != (known.plan, known.count, known.total):
            msg = f"{other} and {path} are not parts of one execution: their cases, targets or number of parts differ"
            raise FormatError(msg)
        self.lines.append(line._replace(order=shard.order))
        self.shards[shard.index] = self.shards.get(shard.index, 0) + 1
        self.evals[record.eval_id] = min(shard.order, self.evals.get(record.eval_id, shard.order))
        self.targets[record.target] = min(shard.order, self.targets.get(record.target, shard.order))
        self.repeats = self.repeats or record.repeat > 0
        self.started_at = min(filter(None, (self.started_at, record.started_at)))
        self.completed_at = max(self.completed_at, record.completed_at)
        self.execution_id = min(filter(None, (self.execution_id, record.execution_id)))

    def check(self) -> Shard:
        """Nothing twice and nothing missing, or a `FormatError` that says what."""
        if self.first is None:
            msg = "no results: the files are empty"
            raise FormatError(msg)
        shard = self.first[2]
        self.lines.sort()
        twice = next((b for a, b in zip(self.lines, self.lines[1:], strict=False) if a.order == b.order), None)
        if twice is not None:
            msg = f"{self.paths[twice.file]} holds a run that another line has too; give every part once"
            raise FormatError(msg)
        missing = shard.total - len(self.lines)
        if missing:
            absent = [str(index) for index in range(1, shard.count + 1) if index not in self.shards]
            named = ", ".join(absent[:MAX_NAMED]) + (", …" if len(absent) > MAX_NAMED else "")
            where = f"nothing of part {named} of {shard.count} is here" if absent else "a part is not finished"
            msg = f"{missing:,} of {shard.total:,} runs are missing: {where}"
            raise FormatError(msg)
        return shard

    def records(self) -> Iterator[ResultRecord]:
        """Every result in the order of the plan, as one of the whole execution."""
        streams = [path.open("rb") for path in self.paths]
        try:
            for line in self.lines:
                stream = streams[line.file]
                stream.seek(line.start)
                record = decode_record(stream.read(line.length))
                key = record.run_id.rpartition("-")[2]
                yield replace(record, execution_id=self.execution_id, run_id=f"{self.execution_id}-{key}", shard=UNSET)
        finally:
            for stream in streams:
                stream.close()


def merge(found: FoundRecord, reporters: Sequence[Reporter], out: tuple[str, ...] = ()) -> Summary:
    """Tell the reporters of every result as if one machine had run it all; an `OutputError` when one cannot write."""
    shard = found.check()
    planned = Planned(cases=0, skipped=0, left_out=0, runs=shard.total, repeats=found.repeats)
    names = PlanNames(_in_order(found.evals), _in_order(found.targets))
    totals = Totals(found.execution_id, planned, names, found.started_at)
    started = ExecutionStarted(
        execution_id=found.execution_id,
        planned=shard.total,
        cases=0,
        skipped=0,
        left_out=0,
        targets=tuple(names.targets),
    )
    audience = ReporterGroup(reporters)
    audience.tell(started)
    for order, record in enumerate(found.records()):
        totals.add(record)
        audience.tell(RunFinished(record=record, response=ProviderResponse(text=record.candidate), order=order))
    ended = ExecutionEnd(found.completed_at, _between(found), broken=audience.broken is not None)
    summary = totals.summary(ended, out=() if audience.broken else out)
    audience.tell(ExecutionFinished(summary=summary))
    if audience.broken is not None:
        raise audience.broken
    return summary


def _in_order(first: dict[str, int]) -> list[str]:
    return sorted(first, key=first.__getitem__)


def _between(found: FoundRecord) -> float:
    """Milliseconds from the first start to the last end."""
    from datetime import datetime  # noqa: PLC0415 - only this needs it

    first, last = datetime.fromisoformat(found.started_at), datetime.fromisoformat(found.completed_at)
    return (last - first).total_seconds() * 1000
