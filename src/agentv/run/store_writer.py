"""Writer thread of the run store: queue, group commit, backpressure, and redaction before writing."""

from __future__ import annotations

import asyncio
import os
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec
from msgspec import UNSET, json
from msgspec.structs import force_setattr, replace

from agentv.errors import AgentVError, StoreError
from agentv.files import PRIVATE_MODE
from agentv.jsonio import dump_json
from agentv.model.events import Attempt
from agentv.model.results import ResultRecord
from agentv.model.stored import Claim, ResultRow
from agentv.redaction import CASE_NAMES, RECORD_NAMES, TARGET_NAMES
from agentv.run.heartbeat import HEARTBEAT_S, HeartbeatTimer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from agentv.model.events import RunFinished
    from agentv.model.response import ProviderResponse
    from agentv.model.stored import Persist
    from agentv.protocols import Store
    from agentv.redaction import Redactor
    from agentv.run.plan import PlannedRun

NULL = msgspec.Raw(b"null")


class UnwrittenResult(msgspec.Struct, frozen=True, kw_only=True):
    """Line of the file: a result with its redacted data."""

    key: str
    record: msgspec.Raw
    response: msgspec.Raw = NULL
    sides: msgspec.Raw = NULL
    attempts: tuple[Attempt, ...] = ()


_decode = msgspec.json.Decoder(UnwrittenResult).decode
_decode_record_unwritten = msgspec.json.Decoder(ResultRecord).decode


def unwritten_file(folder: Path, execution_id: str) -> Path:
    """Return the file of this process for results of an execution, in the folder of a project."""
    return folder / f"{execution_id}.{os.getpid()}-{os.urandom(3).hex()}.jsonl"


def find_unwritten(folder: Path, execution_id: str) -> list[Path]:
    """Return the files with results of an execution that no store has taken."""
    return sorted(path for path in folder.glob("*.jsonl") if path.name.startswith(f"{execution_id}."))


def append_unwritten(path: Path, rows: Sequence[ResultRow]) -> None:
    """Append results to the file, which only its owner can read; they are on the disk afterwards."""
    path.parent.mkdir(parents=True, exist_ok=True)
    ignore = path.parent / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE_MODE)
    with open(file, "wb") as stream:  # noqa: PTH123 - it is open already
        stream.writelines(_encode(row) + b"\n" for row in rows)
        stream.flush()
        os.fsync(stream.fileno())


def _encode(row: ResultRow) -> bytes:
    line = UnwrittenResult(
        key=row.key,
        record=msgspec.Raw(row.line),
        response=NULL if row.response is None else msgspec.Raw(row.response),
        sides=NULL if row.sides is None else msgspec.Raw(row.sides),
        attempts=row.attempts,
    )
    return msgspec.json.encode(line)


def read_unwritten(path: Path) -> list[ResultRow]:
    """Return the results in a file; a last line that was cut off is left out."""
    rows = []
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            result = _decode(line)
            record = _decode_record_unwritten(result.record)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            if number == len(lines):
                break
            msg = f"{path}, line {number}: a result that was kept there cannot be read: {error}; move the file away"
            raise StoreError(msg) from error
        response, sides = [None if bytes(part) == b"null" else bytes(part) for part in (result.response, result.sides)]
        rows.append(ResultRow(result.key, record, bytes(result.record), response, sides, result.attempts))
    return rows


T = TypeVar("T")
GROUP_COMMIT_S = 0.025
"""Time that results wait for each other: every commit waits for the disk, so one commit writes many results."""
MAX_PENDING = 1000
"""Results in one commit, and results that may wait for one before backpressure sets in."""
WEIGHT_UNIT = 1024
"""Bytes of a result of weight 1."""
TAKEN_OVER = "some of the runs were taken over by another process while this one stood still: resume to see all"
_decode_record = json.Decoder(ResultRecord).decode
_decode_attempts = json.Decoder(tuple[Attempt, ...]).decode


class PendingResult(msgspec.Struct, frozen=True):
    """Result that is not written and not reported yet."""

    row: ResultRow
    """Row to write, before redaction."""
    event: RunFinished
    weight: int
    """Memory that it takes, in units of `WEIGHT_UNIT`."""
    attempts_json: bytes
    """Attempts as JSON; empty if they hold no text of others, and so nothing to redact."""


def make_pending(event: RunFinished, attempts: tuple[Attempt, ...], persist: Persist) -> PendingResult:
    """Encode a result for the store."""
    record = event.record
    if record.messages is not UNSET or record.trace is not UNSET:
        record = replace(record, messages=UNSET, trace=UNSET)
    line = dump_json(record)
    if record is event.record:
        force_setattr(event, "line", line)  # no reporter has seen the event yet, and a result file needs the same line
    response = encode_response(event.response, persist)
    sides = None if response is None or not any(event.sides) else dump_json(event.sides)
    attempts_json = b""
    for attempt in attempts:
        if attempt.error is not None or attempt.thread_id is not None:
            attempts_json = dump_json(attempts)
            break
    key = record.run_id.rpartition("-")[2]
    weight = 1 + (len(line) + len(response or b"")) // WEIGHT_UNIT
    return PendingResult(ResultRow(key, record, line, response, sides, attempts), event, weight, attempts_json)


def encode_response(response: ProviderResponse, persist: Persist) -> bytes | None:
    """Encode as much of a reply as `persist` allows."""
    if persist == "summary":
        return None
    if persist == "messages":
        response = _without_details(response)
    return dump_json(response)


def _without_details(response: ProviderResponse) -> ProviderResponse:
    """Return the reply, or the replies of its turns, without raw data, reasoning, and traces that are in files."""
    if response.turns:
        turns = [replace(turn, response=_without_details(turn.response)) for turn in response.turns]
        response = replace(response, turns=tuple(turns))
    if response.raw_response is not None or response.reasoning is not None:
        response = replace(response, raw_response=None, reasoning=None)
    if response.trace_ref is not None and response.trace_hash is not None:
        response = replace(response, trace=None)  # the hash recognises the file when it is read again
    return response


def redact_results(pending: Sequence[PendingResult], redactor: Redactor) -> list[ResultRow]:
    """Return the rows without secrets, and set the redacted lines of their events."""
    rows = [item.row for item in pending]
    texts = [
        *[row.line for row in rows],
        *[row.response or b"" for row in rows],
        *[row.sides or b"" for row in rows],
        *[item.attempts_json for item in pending],
    ]
    redacted = redactor.lines(texts)
    if redacted is texts:
        return rows
    count = len(pending)
    clean = []
    for at, (item, row) in enumerate(zip(pending, rows, strict=True)):
        line, response, sides, attempts_json = redacted[at::count]
        line = row.line if line is row.line else redactor.line(row.line, RECORD_NAMES)
        if item.event.line is not None:
            force_setattr(item.event, "line", line)
        record = row.record if line is row.line else _decode_record(line)
        attempts = row.attempts if attempts_json is item.attempts_json else _decode_attempts(attempts_json)
        clean.append(ResultRow(row.key, record, line, response or None, sides or None, attempts))
    return clean


class _ClaimRequest(msgspec.Struct, frozen=True):
    """Claims whose outcome a caller waits for."""

    claims: Sequence[Claim]
    answer: asyncio.Future[set[str]]


class _StoreCall(msgspec.Struct, frozen=True):
    """Other call of the store, made between two commits."""

    function: Callable[[], Any]
    answer: asyncio.Future[Any]


class _Wakeup(msgspec.Struct, frozen=True):
    """Request for a commit that nobody waits for: runs have started."""


_Item = _ClaimRequest | _StoreCall | _Wakeup | PendingResult | None


class StoreWriter:
    """Thread that owns the store; each commit writes everything that was enqueued meanwhile (group commit)."""

    def __init__(  # noqa: PLR0913 - constructed in one place
        self,
        store: Store,
        execution_id: str,
        redactor: Redactor,
        *,
        persist: Persist,
        rerun: frozenset[str] = frozenset(),
        on_written: Callable[[Sequence[RunFinished]], None],
        on_error: Callable[[AgentVError], None],
        unwritten: Path | None = None,
    ) -> None:
        self._store = store
        self._unwritten = unwritten
        """File for results that the store does not take; `None` if they are lost then."""
        self._kept = 0
        self._execution_id = execution_id
        self._redactor = redactor
        self._persist = persist
        self._rerun = rerun
        self._on_written = on_written
        self._on_error = on_error
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._flush = Event()
        """Set when a caller waits, or half of the room is used: the next commit does not wait for more results."""
        self._starts: dict[str, str] = {}
        """Times of the starts of claimed runs that have no result yet and are not marked as running, by key."""
        self._is_woken = False
        """`True` while a `_Wakeup` is enqueued."""
        self._targets: dict[int, bytes] = {}
        """Redacted settings of targets, by `id()`: the plan keeps the settings alive."""
        self._pending_weight = 0
        self._backpressure: asyncio.Event | None = None
        """Set when there is room again; `None` while there is room."""
        self.error: AgentVError | None = None
        """First failure of the store: nothing is written after it."""

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._stopped = self._loop.create_future()
        Thread(target=self._run, name="agentv-store", daemon=True).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write everything that was enqueued, and wait for the thread to end."""
        self._put(None)
        await asyncio.shield(self._stopped)

    async def call(self, function: Callable[[], T]) -> T:
        """Call a method of the store in the writer thread."""
        answer: asyncio.Future[T] = self._loop.create_future()
        self._put(_StoreCall(function, answer))
        return await answer

    async def claim(self, runs: Sequence[PlannedRun], rounds: Callable[[str], int]) -> set[str]:
        """Claim these runs; return the keys of those that this process may run."""
        if self.error is not None or not runs:
            return set()
        contents = self._redactor.lines([planned.content for planned in runs], CASE_NAMES)
        claims = [
            self._make_claim(planned, content, rounds(planned.key))
            for planned, content in zip(runs, contents, strict=True)
        ]
        answer: asyncio.Future[set[str]] = self._loop.create_future()
        self._put(_ClaimRequest(claims, answer))
        return await answer

    def enqueue(self, event: RunFinished, attempts: tuple[Attempt, ...]) -> asyncio.Event | None:
        """Enqueue a result, which is reported once written; the caller awaits a returned event (backpressure)."""
        item = make_pending(event, attempts, self._persist)
        self._starts.pop(item.row.key, None)  # a run that has finished meanwhile needs no mark
        self._queue.put(item)
        self._pending_weight += item.weight
        if self._pending_weight >= MAX_PENDING // 2:
            self._flush.set()  # one half is written while the other half fills
        if self._pending_weight < MAX_PENDING:
            return None
        if self._backpressure is None:
            self._backpressure = asyncio.Event()
        return self._backpressure

    def mark_started(self, key: str, at: str) -> None:
        """Enqueue the start of a claimed run, for the next commit."""
        self._starts[key] = at
        if not self._is_woken:
            self._is_woken = True
            self._queue.put(_Wakeup())

    def _put(self, item: _Item) -> None:
        """Enqueue an item that a caller waits for."""
        self._queue.put(item)
        self._flush.set()

    def _make_claim(self, planned: PlannedRun, content: bytes, rounds: int) -> Claim:
        case, target = planned.case, planned.target
        settings = self._targets.get(id(target.settings))
        if settings is None:
            settings = self._redactor.line(dump_json(target.settings), TARGET_NAMES)
            self._targets[id(target.settings)] = settings
        return Claim(
            key=planned.key,
            position=planned.order,
            # Names are identifiers that the author wrote: a redacted one could not be found again.
            eval_id=planned.eval.id,
            case_id=case.case.id,
            target=target.name,
            repeat=planned.repeat,
            place=str(case.location or ""),
            content=content,
            target_settings=settings,
            rounds=rounds,
            persona_id=case.case.persona_id,
        )

    def _run(self) -> None:
        """Run the writer thread until a `None` is enqueued."""
        heartbeat = HeartbeatTimer(self._store)
        last_commit = monotonic()
        is_open = True
        while is_open:
            items = self._gather(last_commit + GROUP_COMMIT_S)
            is_open = None not in items
            try:
                self._make_calls([item for item in items if isinstance(item, _StoreCall)])
                self._commit([item for item in items if item is not None])
                last_commit = monotonic()
                items = []  # a heartbeat that fails concerns none of them
                heartbeat.beat_if_due()
            except Exception as error:  # noqa: BLE001 - a dead thread would leave its callers waiting
                if items or self.error is None:
                    self._fail(error, items)
        self._loop.call_soon_threadsafe(_set_answer, self._stopped, None, None)

    def _gather(self, until: float) -> list[_Item]:
        """Return the items of the next commit: those enqueued until this time, or until a flush."""
        items: list[_Item] = []
        try:
            items.append(self._queue.get(timeout=HEARTBEAT_S))
            self._flush.wait(until - monotonic())
            self._flush.clear()
            while len(items) < MAX_PENDING:
                items.append(self._queue.get_nowait())
        except Empty:
            pass  # the queue is empty for now
        return items

    def _make_calls(self, calls: Sequence[_StoreCall]) -> None:
        for call in calls:
            try:
                result = call.function()
            except Exception as error:  # noqa: BLE001 - the caller handles it
                self._loop.call_soon_threadsafe(_set_answer, call.answer, None, error)
            else:
                self._loop.call_soon_threadsafe(_set_answer, call.answer, result, None)

    def _commit(self, items: Sequence[_Item]) -> None:
        """Write all claims and results of these items in one transaction."""
        requests = [item for item in items if isinstance(item, _ClaimRequest)]
        pending = [item for item in items if isinstance(item, PendingResult)]
        self._is_woken = False  # first: a start that this commit misses asks for the next one
        starts = list(self._starts.items())
        for key, _ in starts:
            self._starts.pop(key, None)
        if not (requests or pending or starts):
            return
        if self.error is not None:
            self._keep(pending)
            self._loop.call_soon_threadsafe(self._on_commit, requests, set(), [], _weight(pending))
            return
        claimed, written = self._store.write(
            self._execution_id,
            [claim for request in requests for claim in request.claims],
            redact_results(pending, self._redactor),
            self._rerun,
            starts,
        )
        events = [item.event for item in pending if item.row.key in written]
        if len(events) < len(pending):
            self._loop.call_soon_threadsafe(self._on_error, StoreError(TAKEN_OVER))
        self._loop.call_soon_threadsafe(self._on_commit, requests, claimed, events, _weight(pending))

    def _fail(self, error: Exception, items: Sequence[_Item]) -> None:
        """Stop writing after a failure of the store, and release all callers that wait."""
        message = f"the run store failed: {type(error).__name__}: {error}"
        self.error = error if isinstance(error, AgentVError) else StoreError(message)
        requests = [item for item in items if isinstance(item, _ClaimRequest)]
        pending = [item for item in items if isinstance(item, PendingResult)]
        self._keep(pending)
        self._loop.call_soon_threadsafe(self._on_error, self.error)
        self._loop.call_soon_threadsafe(self._on_commit, requests, set(), [], _weight(pending))

    def _keep(self, pending: Sequence[PendingResult]) -> None:
        """Keep results that the store did not take in a local file."""
        if self._unwritten is None or not pending:
            return
        try:
            append_unwritten(self._unwritten, redact_results(pending, self._redactor))
            self._kept += len(pending)
        except OSError as error:
            lost = f"{len(pending)} results are lost: {self._unwritten} cannot be written: {error.strerror}"
            self.error = StoreError(f"{self.error}; {lost}")

    def explain(self, error: AgentVError) -> AgentVError:
        """Return an error of the store that also says where results were kept; to be called at the end."""
        if not self._kept:
            return error if self.error is None else self.error
        results = "1 result" if self._kept == 1 else f"{self._kept:,} results"
        verb = "is" if self._kept == 1 else "are"
        msg = f"{self.error}. {results} that could not be written {verb} in {self._unwritten}: --resume inserts them"
        return type(error)(msg) if isinstance(error, StoreError) else error

    def _on_commit(
        self, requests: Sequence[_ClaimRequest], claimed: set[str], events: Sequence[RunFinished], weight: int
    ) -> None:
        """Answer claims, report results and release backpressure; called in the event loop."""
        for request in requests:
            if not request.answer.done():
                request.answer.set_result({claim.key for claim in request.claims if claim.key in claimed})
        if events:
            self._on_written(events)
        self._pending_weight -= weight
        if self._backpressure is not None and self._pending_weight < MAX_PENDING // 2:
            self._backpressure.set()
            self._backpressure = None


def _weight(pending: Sequence[PendingResult]) -> int:
    return sum(item.weight for item in pending)


def _set_answer(answer: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(result)
    else:
        answer.set_exception(error)
