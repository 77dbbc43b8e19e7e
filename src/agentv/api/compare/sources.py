"""Read the two sides of a comparison: result files, executions, lists of records."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agentv.api.evaluate import Execution
from agentv.api.runs import case_of, decode_record, find, replay_result, sides_of, translate_damage
from agentv.api.store_files import existing_store
from agentv.errors import DamagedRunError, FormatError, StoreError
from agentv.model.results import RESULT_SCHEMA, ResultRecord
from agentv.model.stored import DAMAGED
from agentv.run.options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agentv.model.conversation import Message
    from agentv.model.results import DiffLabels
    from agentv.model.stored import ExecutionRow, StoredResult
    from agentv.protocols import Store

SideLike = str | Path | Execution | Iterable[ResultRecord]
"""One side of a comparison: a result file, an id of an execution, an `Execution`, or records."""


def read_records(path: Path, cut_off: Callable[[], None] | None = None) -> Iterator[tuple[int, int, ResultRecord]]:
    """Yield the offset, the length and the record of each line of a result file.

    A crash may leave an incomplete line at the end of a file. It is an error, or `cut_off` is called if it is given.
    """
    start = 0
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    if cut_off is not None and _is_cut_off(line):
                        cut_off()
                        return
                    yield start, len(line), _record(line, path, number)
                start += len(line)
    except OSError as error:
        msg = f"{path} cannot be read: {error.strerror}"
        raise FormatError(msg) from error


def _is_cut_off(line: bytes) -> bool:
    if line.endswith(b"\n"):
        return False
    try:
        msgspec.json.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return True
    return False


def _record(line: bytes, path: Path, number: int) -> ResultRecord:
    try:
        record = decode_record(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        fix = "; the line is cut off, as after a crash: resume that execution" if _is_cut_off(line) else ""
        msg = f"{path}:{number}: not a result: {error}{fix}"
        raise FormatError(msg) from error
    if record.schema != RESULT_SCHEMA:
        name, _, version = record.schema.partition("/")
        newer = name == RESULT_SCHEMA.partition("/")[0] and version > RESULT_SCHEMA.partition("/")[2]
        fix = "it was written by a newer agentv: update this one" if newer else f"expected {RESULT_SCHEMA}"
        msg = f"{path}:{number}: schema {record.schema!r}; {fix}"
        raise FormatError(msg)
    return record


class ComparisonSource:
    """Results of one side: all are read once in order, and then a few of them again."""

    name: str
    cut_off = False
    """True if the last line was incomplete and is left out; known after all were read."""
    damaged: dict[str, str] = {}
    """Reasons why stored runs are left out, by their ids; known after all were read."""

    def close(self) -> None:
        """Close what the source has opened."""

    def records(self) -> Iterator[tuple[int, ResultRecord]]:
        """Yield the place and the record of every result."""
        raise NotImplementedError

    def read(self, place: int) -> ResultRecord:
        """Return the result at this place."""
        raise NotImplementedError

    def sides(self, place: int) -> Sequence[DiffLabels | None]:
        """Return the labels of its diffs, one for each evaluator; empty if the source has none."""
        del place
        return ()

    def missing_data(self) -> list[str]:
        """Return what is known to be missing of the execution, one sentence each."""
        return ["its last line is cut off, as after a crash"] if self.cut_off else []

    def question(self, place: int) -> tuple[Message, ...] | None:
        """Return the question that the agent was asked; `None` if the source does not separate it from the answer."""
        del place
        return None


class ResultFile(ComparisonSource):
    """A result file of JSON lines; a place is the offset of a line."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path

    def records(self) -> Iterator[tuple[int, ResultRecord]]:
        """Yield the offset and the record of each line."""
        for start, _, record in read_records(self._path, self._on_cut_off):
            yield start, record

    def _on_cut_off(self) -> None:
        self.cut_off = True

    def read(self, place: int) -> ResultRecord:
        """Return the record at this offset."""
        with self._path.open("rb") as stream:
            stream.seek(place)
            return decode_record(stream.readline())


class RecordList(ComparisonSource):
    """Result records in memory; a place is an index."""

    def __init__(self, name: str, records: Iterable[ResultRecord], missing: Sequence[str] = ()) -> None:
        self.name = name
        self._records = list(records)
        self._missing = missing

    def records(self) -> Iterator[tuple[int, ResultRecord]]:
        """Yield the index and the record of each result."""
        return enumerate(self._records)

    def missing_data(self) -> list[str]:
        """Return what is known to be missing of the execution."""
        return list(self._missing)

    def read(self, place: int) -> ResultRecord:
        """Return the record with this index."""
        return self._records[place]


class StoredExecution(ComparisonSource):
    """An execution of the run store; a place is an index."""

    def __init__(self, store: Store, execution: ExecutionRow, *, checks_replies: bool = True) -> None:
        self.name = execution.id
        self._execution = execution
        self._store = store
        self._checks_replies = checks_replies
        """`True` if runs are left out whose reply is damaged, although their result is not: it reads all replies."""
        self._keys: list[str] = []
        self.damaged: dict[str, str] = {}

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def records(self) -> Iterator[tuple[int, ResultRecord]]:
        """Yield the index and the record of each result."""
        self._keys = []
        self.damaged = {}
        for stored in self._store.results(self.name, replies=self._checks_replies):
            try:
                with translate_damage(stored):
                    record = decode_record(stored.line)
            except DamagedRunError as error:
                self.damaged |= error.runs
                continue
            self._keys.append(stored.key)
            yield len(self._keys) - 1, record

    def missing_data(self) -> list[str]:
        """Return how many of the planned runs have no result."""
        sentences = [str(DamagedRunError(self.damaged))] if self.damaged else []
        planned, done = self._execution.planned, self._execution.runs
        if self._execution.status == DAMAGED:
            sentences.append("the row of the execution is damaged: the number of its runs is not known")
        elif done < planned:
            sentences.append(f"only {done:,} of {planned:,} runs have a result ({self._execution.status})")
        elif done > (found := len(self._keys) + len(self.damaged)):
            sentences.append(f"only {found:,} of {done:,} results are in the store: it is damaged")
        return sentences

    def _stored_result(self, place: int) -> StoredResult:
        return next(self._store.results(self.name, [self._keys[place]]))

    def read(self, place: int) -> ResultRecord:
        """Return the record with this index, and the conversation if that was stored."""
        return replay_result(self._stored_result(place), RunOptions(include_messages=True)).record

    def sides(self, place: int) -> Sequence[DiffLabels | None]:
        """Return the stored labels, which runs that did not pass have."""
        return sides_of(self._stored_result(place))

    def question(self, place: int) -> tuple[Message, ...] | None:
        """Return the question of the case as it was stored."""
        return next(
            (case_of(run)[0].input_messages for run in self._store.stored_runs(self.name, self._keys[place])), None
        )


def _find_stored(name: str) -> StoredExecution | None:
    """Return the execution of this name in the store of the working directory, if there is one."""
    try:
        return _open_stored(existing_store(), name)
    except StoreError as error:
        if re.match(r"last(~|$)|[0-9]{4}|imported|execution", name):
            raise FormatError(str(error)) from error
        return None


def read_last(paths: Sequence[str]) -> ComparisonSource:
    """Return the last execution in the store of these paths; raise `StoreError` if there is none."""
    return _open_stored(existing_store(paths), "last")


def _open_stored(store: Store, name: str) -> StoredExecution:
    try:
        return StoredExecution(store, find(store, name))
    except BaseException:
        store.close()
        raise


def read_side(side: SideLike, label: str = "results") -> ComparisonSource:
    """Return the source for a file, an execution, or records; raise `FormatError` for anything else."""
    if isinstance(side, Execution):
        if side.summary.runs and not side.results:
            msg = "an execution without results cannot be compared: it was run with `keep_results=False`"
            raise FormatError(msg)
        planned, done = side.summary.planned, side.summary.runs
        missing = f"only {done:,} of {planned:,} runs have a result ({side.summary.status})"
        return RecordList(side.summary.execution_id, side.results, missing=[missing] if done < planned else [])
    if isinstance(side, (str, Path)):
        path = Path(side)
        if not path.exists() and (stored := _find_stored(str(side))) is not None:
            return stored
        if not path.exists():
            msg = f"{side} cannot be read: No such file or directory, and no execution in the store has this name"
            raise FormatError(msg)
        # A pipe cannot be read twice.
        if path.exists() and not path.is_file() and not path.is_dir():
            return RecordList(str(side), (record for _, _, record in read_records(path)))
        return ResultFile(path)
    records = list(side)
    if not all(isinstance(record, ResultRecord) for record in records):
        msg = f"{label}: expected a result file, an `Execution`, or result records"
        raise FormatError(msg)
    return RecordList(label, records)
