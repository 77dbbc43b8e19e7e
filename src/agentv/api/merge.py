"""Merge the result files of all shards into one execution."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from agentv.api.compare.sources import read_records
from agentv.api.reporting import ReporterGroup
from agentv.api.runs import decode_record
from agentv.errors import FormatError
from agentv.model.events import ExecutionFinished, ExecutionStarted, RunFinished
from agentv.model.response import ProviderResponse
from agentv.run.plan import PlanCounts
from agentv.run.summary import ExecutionEnd, PlanNames, Totals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from agentv.model.results import ResultRecord, Shard, Summary
    from agentv.protocols import Reporter

MAX_NAMED = 5


class RecordLine(NamedTuple):
    """The position of one record in the files."""

    order: int
    file: int
    start: int
    length: int


class ShardFiles:
    """An index of the records in the files of all shards, without the records themselves."""

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
        for name in ("started_at", "completed_at"):
            _check_time(path, record, name)
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
        """Raise `FormatError` if a run is missing or occurs twice; return a shard of the execution."""
        if self.first is None:
            msg = "no results: the files are empty"
            raise FormatError(msg)
        shard = self.first[2]
        self.lines.sort()
        duplicate = next((b for a, b in pairwise(self.lines) if a.order == b.order), None)
        if duplicate is not None:
            msg = f"{self.paths[duplicate.file]} holds a run that another line has too; give every part once"
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
        """Yield every record in plan order, with the id of the merged execution."""
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


def merge(files: ShardFiles, reporters: Sequence[Reporter], out: tuple[str, ...] = ()) -> Summary:
    """Report all records as one execution, and return its summary; raise `OutputError` if a reporter cannot write."""
    shard = files.check()
    planned = PlanCounts(cases=0, skipped=0, left_out=0, runs=shard.total, repeats=files.repeats)
    names = PlanNames(_in_order(files.evals), _in_order(files.targets))
    totals = Totals(files.execution_id, planned, names, files.started_at)
    started = ExecutionStarted(
        execution_id=files.execution_id,
        planned=shard.total,
        cases=0,
        skipped=0,
        left_out=0,
        targets=tuple(names.targets),
    )
    group = ReporterGroup(reporters)
    group.publish(started)
    for order, record in enumerate(files.records()):
        totals.add(record)
        place = record.place or ""
        group.publish(
            RunFinished(
                record=replace(record, sides=UNSET),
                response=ProviderResponse(text=record.candidate),
                sides=record.sides or (),
                order=order,
                file=place.rsplit(":", 2)[0],
                place=place,
            )
        )
    outcomes = ExecutionEnd(files.completed_at, _duration_ms(files), broken=group.error is not None)
    summary = totals.summary(outcomes, out=() if group.error else out)
    group.publish(ExecutionFinished(summary=summary))
    if group.error is not None:
        raise group.error
    return summary


def _check_time(path: Path, record: ResultRecord, name: str) -> None:
    """Raise `FormatError` if a time of a record is invalid, or has no time zone and cannot be compared with others."""
    value = getattr(record, name)
    try:
        has_zone = datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        has_zone = False
    if not has_zone:
        msg = f"{path}: run {record.run_id}: {name} is {value!r}, which is not a time such as 2026-01-31T12:00:00.000Z"
        raise FormatError(msg)


def _in_order(first: dict[str, int]) -> list[str]:
    return sorted(first, key=first.__getitem__)


def _duration_ms(files: ShardFiles) -> float:
    """Return the milliseconds from the first start to the last end."""
    first, last = datetime.fromisoformat(files.started_at), datetime.fromisoformat(files.completed_at)
    return (last - first).total_seconds() * 1000
