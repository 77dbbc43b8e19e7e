"""Read the two sides of a comparison: result files, executions, lists of records."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from agentv.api.evaluate import Execution
from agentv.api.resume import decode_sides, existing_store, find, replay_result
from agentv.errors import FormatError, StoreError
from agentv.model.results import RESULT_SCHEMA, ResultRecord
from agentv.run.options import RunOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agentv.model.conversation import Message
    from agentv.model.results import DiffLabels
    from agentv.model.stored import StoredResult as Stored
    from agentv.protocols import Store

    SideLike = str | Path | Execution | Iterable[ResultRecord]


decode_record = msgspec.json.Decoder(ResultRecord).decode


def read_records(path: Path, cut_off: Callable[[], None] | None = None) -> Iterator[tuple[int, int, ResultRecord]]:
    """Every result of a file, after where its line begins and how long that is.

    A crash may leave the beginning of a line at the end of a file. Whoever can do without that run says so by
    `cut_off`, which is then called.
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


class ComparisonSource(Protocol):
    """Results that are read once from the beginning to the end, and then a few of them again."""

    name: str
    cut_off: bool
    """Whether the last of them was torn by a crash and is left out, once they have been read."""

    def records(self) -> Iterator[tuple[int, ResultRecord]]:
        """Every result, after the place by which it is found again."""
        ...

    def read(self, place: int) -> ResultRecord:
        """The result at this place."""
        ...

    def sides(self, place: int) -> Sequence[DiffLabels | None]:
        """For its diff, what the indices of alignments stand for, one for each evaluator; nothing where unknown."""
        ...

    def asked(self, place: int) -> tuple[Message, ...] | None:
        """What the agent was asked there; `None` where that is known from the messages of the result at best."""
        ...


class ResultFile:
    """A file of JSON lines."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.cut_off = False
        self._path = path

    def records(self) -> Iterator[tuple[int, ResultRecord]]:
        """Each line, after where it begins."""
        for start, _, record in read_records(self._path, self._note):
            yield start, record

    def _note(self) -> None:
        self.cut_off = True

    def read(self, place: int) -> ResultRecord:
        """The line that begins there."""
        with self._path.open("rb") as stream:
            stream.seek(place)
            return decode_record(stream.readline())

    def sides(self, place: int) -> Sequence[DiffLabels | None]:
        """A file does not hold them."""
        del place
        return ()

    def asked(self, place: int) -> tuple[Message, ...] | None:
        """A file does not tell the question from the answer."""
        del place
        return None


class StoredSide:
    """Results that are in memory already."""

    cut_off = False

    def __init__(self, name: str, records: Iterable[ResultRecord]) -> None:
        self.name = name
        self._records = list(records)

    def records(self) -> Iterator[tuple[int, ResultRecord]]:
        """Each, after its number."""
        return enumerate(self._records)

    def read(self, place: int) -> ResultRecord:
        """The one of this number."""
        return self._records[place]

    def sides(self, place: int) -> Sequence[DiffLabels | None]:
        """Records do not hold them."""
        del place
        return ()

    def asked(self, place: int) -> tuple[Message, ...] | None:
        """Records do not tell the question from the answer."""
        del place
        return None


class StoredExecution:
    """An execution of the run store."""

    cut_off = False

    def __init__(self, store: Store, execution_id: str) -> None:
        self.name = execution_id
        self._store = store
        self._keys: list[str] = []

    def records(self) -> Iterator[tuple[int, ResultRecord]]:
        """Each, after its number."""
        self._keys = []
        for number, kept in enumerate(self._store.results(self.name)):
            self._keys.append(kept.key)
            yield number, decode_record(kept.line)

    def _kept(self, place: int) -> Stored:
        return next(self._store.results(self.name, [self._keys[place]]))

    def read(self, place: int) -> ResultRecord:
        """The one of this number, with the conversation if that was kept."""
        return replay_result(self._kept(place), RunOptions(include_messages=True)).record

    def sides(self, place: int) -> Sequence[DiffLabels | None]:
        """As they were kept with what did not pass."""
        return decode_sides(self._kept(place).sides)

    def asked(self, place: int) -> tuple[Message, ...] | None:
        """The question of the case as it was."""
        from agentv.api.runs import case_of  # noqa: PLC0415 - only who shows it to a judge needs it

        return next(
            (case_of(run)[0].input_messages for run in self._store.stored_runs(self.name, self._keys[place])), None
        )


def _stored(name: str) -> StoredExecution | None:
    """The execution of this name in the store of this folder, if there is one."""
    try:
        store: Any = existing_store()
        return StoredExecution(store, find(store, "" if name == "last" else name).id)
    except StoreError as error:
        if name == "last" or re.match(r"[0-9]{4}|imported|execution", name):
            raise FormatError(str(error)) from error
        return None


def read_side(side: SideLike, called: str = "results") -> ComparisonSource:
    """A file by its name, an execution, or records; raises `FormatError` for what is none of these."""
    if isinstance(side, Execution):
        if side.summary.runs and not side.results:
            msg = "an execution without results cannot be compared: it was run with `keep_results=False`"
            raise FormatError(msg)
        return StoredSide(side.summary.execution_id, side.results)
    if isinstance(side, (str, Path)):
        path = Path(side)
        if not path.exists() and (stored := _stored(str(side))) is not None:
            return stored
        # What cannot be read twice, such as a pipe, is kept.
        if path.exists() and not path.is_file() and not path.is_dir():
            return StoredSide(str(side), (record for _, _, record in read_records(path)))
        return ResultFile(path)
    records = list(side)
    if not all(isinstance(record, ResultRecord) for record in records):
        msg = f"{called}: expected a result file, an `Execution`, or result records"
        raise FormatError(msg)
    return StoredSide(called, records)
