"""Writer thread of the run store: queue, group commit, and redaction before writing."""

from __future__ import annotations

import asyncio
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from msgspec import UNSET, json
from msgspec.structs import force_setattr, replace

from agentv.errors import AgentVError, StoreError
from agentv.jsonio import dump_json
from agentv.model.events import Attempt
from agentv.model.request import Case
from agentv.model.results import ResultRecord
from agentv.model.stored import Claim, ResultRow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.model.events import RunFinished
    from agentv.model.response import ProviderResponse
    from agentv.model.stored import Persist
    from agentv.protocols import Store
    from agentv.redaction import Redactor
    from agentv.run.plan import PlannedRun


SMALL = 8192
"""Bytes of a result that is nothing out of the ordinary."""
_decode_record = json.Decoder(ResultRecord).decode
_decode_attempts = json.Decoder(tuple[Attempt, ...]).decode


class PendingResult(NamedTuple):
    """A result that nobody has heard of yet."""

    saved: ResultRow
    """As it is kept, unless there is something to redact in it."""
    event: RunFinished
    weight: int
    """How much room it takes while it waits, in units of a small result."""
    told: bytes
    """The attempts as JSON; empty where there is nothing in them that anybody else has written."""


def to_save(event: RunFinished, attempts: tuple[Attempt, ...], persist: Persist) -> PendingResult:
    """A result made ready to be written."""
    record = event.record
    if record.messages is not UNSET or record.trace is not UNSET:
        record = replace(record, messages=UNSET, trace=UNSET)
    line = dump_json(record)
    if record is event.record:
        force_setattr(event, "line", line)  # nobody has seen the event yet, and a file may want the same line
    response = _kept(event.response, persist)
    sides = None if response is None or not any(event.sides) else dump_json(event.sides)
    told = b""
    for one in attempts:
        if one.error is not None or one.thread_id is not None:
            told = dump_json(attempts)
            break
    key = record.run_id.rpartition("-")[2]
    weight = 1 + (len(line) + len(response or b"")) // SMALL
    return PendingResult(ResultRow(key, record, line, response, sides, attempts), event, weight, told)


def _kept(response: ProviderResponse, persist: Persist) -> bytes | None:
    """As much of a reply as the project wants to keep."""
    if persist == "summary":
        return None
    if persist == "messages" and (response.raw_response is not None or response.reasoning is not None):
        response = replace(response, raw_response=None, reasoning=None)
    return dump_json(response)


def redacted(finished: Sequence[PendingResult], redactor: Redactor) -> list[ResultRow]:
    """The results as they are written, and their lines as files may have them."""
    saved = [item.saved for item in finished]
    parts = [
        *[each.line for each in saved],
        *[each.response or b"" for each in saved],
        *[each.sides or b"" for each in saved],
        *[item.told for item in finished],
    ]
    found = redactor.lines(parts)
    if found is parts:
        return saved
    count = len(finished)
    clean = []
    for at, (item, each) in enumerate(zip(finished, saved, strict=True)):
        line, response, sides, told = found[at::count]
        if item.event.line is not None:
            force_setattr(item.event, "line", line)
        record = each.record if line is each.line else _decode_record(line)
        attempts = each.attempts if told is item.told else _decode_attempts(told)
        clean.append(ResultRow(each.key, record, line, response or None, sides or None, attempts))
    return clean


T = TypeVar("T")
_decode_case = json.Decoder(tuple[Case, Any]).decode

BEAT_S = 5.0
"""How often the store hears that this process lives."""
PAUSE_S = 0.025
"""How long results that come in quick succession wait for each other: every step waits for the disk."""
MOST = 1000
"""How many results are written in one step, and how many may wait for it."""

TAKEN_OVER = "some of the runs were taken over by another process while this one stood still: resume to see all"


class _WriterRequest(NamedTuple):
    """Claims that somebody waits for."""

    claims: Sequence[Claim]
    answer: asyncio.Future[set[str]]


class _WriterCall(NamedTuple):
    """Something else to ask the store, between two steps."""

    call: Callable[[], Any]
    answer: asyncio.Future[Any]


_Item = _WriterRequest | _WriterCall | PendingResult | None


class StoreWriter:
    """One thread that writes, in steps as large as what has come in meanwhile."""

    def __init__(  # noqa: PLR0913 - it is put together once, in the API
        self,
        store: Store,
        execution_id: str,
        redactor: Redactor,
        *,
        persist: Persist,
        again: frozenset[str] = frozenset(),
        tell: Callable[[Sequence[RunFinished]], None],
        fail: Callable[[AgentVError], None],
    ) -> None:
        self._store = store
        self._execution_id = execution_id
        self._redactor = redactor
        self._persist = persist
        self._again = again
        self._tell = tell
        self._fail = fail
        self._queue: SimpleQueue[_Item] = SimpleQueue()
        self._hurry = Event()
        """Set when somebody waits for an answer."""
        self._targets: dict[int, bytes] = {}
        """The settings of each target as they are kept; the plan holds them for as long as it is followed."""
        self._names: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._waiting = 0
        self._room: asyncio.Event | None = None
        self.broken: AgentVError | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._ended = self._loop.create_future()
        Thread(target=self._work, name="agentv-store", daemon=True).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write what has come in, and hear what came of it."""
        self._put(None)
        await asyncio.shield(self._ended)

    async def ask(self, call: Callable[[], T]) -> T:
        """What the store says to this, asked in its own thread."""
        answer: asyncio.Future[T] = self._loop.create_future()
        self._put(_WriterCall(call, answer))
        return await answer

    async def claim(self, runs: Sequence[PlannedRun], tries: Callable[[str], int]) -> set[str]:
        """The keys of those runs that are ours to run."""
        if self.broken is not None or not runs:
            return set()
        contents = self._redactor.lines([planned.content for planned in runs])
        claims = [
            self._claimed(planned, content, tries(planned.key)) for planned, content in zip(runs, contents, strict=True)
        ]
        answer: asyncio.Future[set[str]] = self._loop.create_future()
        self._put(_WriterRequest(claims, answer))
        return await answer

    def _put(self, item: _Item) -> None:
        """Hand the thread something that it must not wait with."""
        self._queue.put(item)
        self._hurry.set()

    def _claimed(self, planned: PlannedRun, content: bytes, tries: int) -> Claim:
        case, target = planned.case, planned.target
        settings = self._targets.get(id(target.settings))
        if settings is None:
            settings = self._targets[id(target.settings)] = self._redactor.line(dump_json(target.settings))
        eval_id, target_id = self._named(planned.eval.id, target.name)
        return Claim(
            key=planned.key,
            position=planned.order,
            eval_id=eval_id,
            case_id=case.case.id if content is planned.content else _decode_case(content)[0].id,
            target_id=target_id,
            repeat=planned.repeat,
            place=str(case.place or ""),
            content=content,
            target=settings,
            tries=tries,
        )

    def _named(self, *names: str) -> tuple[str, ...]:
        """The names as they are kept: people put secrets anywhere."""
        found = self._names.get(names)
        if found is None:
            found = self._names[names] = tuple([self._redactor.text(name) for name in names])
        return found

    def save(self, event: RunFinished, attempts: tuple[Attempt, ...]) -> asyncio.Event | None:
        """Keep a result; it is told when it is on the disk. Whoever gets an event back should wait for it."""
        item = to_save(event, attempts, self._persist)
        self._queue.put(item)
        self._waiting += item.weight
        if self._waiting < MOST:
            return None
        self._hurry.set()
        if self._room is None:
            self._room = asyncio.Event()
        return self._room

    def _work(self) -> None:
        beaten = written = monotonic()
        is_open = True
        while is_open:
            items = self._gather(written + PAUSE_S)
            is_open = None not in items
            try:
                self._answer([item for item in items if isinstance(item, _WriterCall)])
                self._write([item for item in items if item is not None])
                written = monotonic()
                if monotonic() - beaten >= BEAT_S:
                    self._store.beat()
                    beaten = monotonic()
            except Exception as error:  # noqa: BLE001 - a thread that dies must not leave the others waiting
                self._give_up(error, items)
        self._loop.call_soon_threadsafe(_set, self._ended, None, None)

    def _gather(self, until: float) -> list[_Item]:
        """What is to be done next: all that has come in, and what comes in until then unless somebody waits."""
        items: list[_Item] = []
        try:
            items.append(self._queue.get(timeout=BEAT_S))
            self._hurry.wait(until - monotonic())
            self._hurry.clear()
            while len(items) < MOST:
                items.append(self._queue.get_nowait())
        except Empty:
            pass  # that was all, for now
        return items

    def _answer(self, calls: Sequence[_WriterCall]) -> None:
        for each in calls:
            try:
                found = each.call()
            except Exception as error:  # noqa: BLE001 - it is for whoever asked
                self._loop.call_soon_threadsafe(_set, each.answer, None, error)
            else:
                self._loop.call_soon_threadsafe(_set, each.answer, found, None)

    def _write(self, items: Sequence[_Item]) -> None:
        asked = [item for item in items if isinstance(item, _WriterRequest)]
        finished = [item for item in items if isinstance(item, PendingResult)]
        if not (asked or finished):
            return
        if self.broken is not None:
            self._loop.call_soon_threadsafe(self._settle, asked, set(), [], _weight(finished))
            return
        claimed, kept = self._store.write(
            self._execution_id,
            [claim for item in asked for claim in item.claims],
            redacted(finished, self._redactor),
            self._again,
        )
        told = [item.event for item in finished if item.saved.key in kept]
        if len(told) < len(finished):
            self._loop.call_soon_threadsafe(self._fail, StoreError(TAKEN_OVER))
        self._loop.call_soon_threadsafe(self._settle, asked, claimed, told, _weight(finished))

    def _give_up(self, error: Exception, items: Sequence[_Item]) -> None:
        """Nothing more can be kept; what was kept is safe, and nobody may wait for ever."""
        message = f"the run store failed: {type(error).__name__}: {error}"
        broken = self.broken = error if isinstance(error, AgentVError) else StoreError(message)
        asked = [item for item in items if isinstance(item, _WriterRequest)]
        finished = _weight([item for item in items if isinstance(item, PendingResult)])
        self._loop.call_soon_threadsafe(self._fail, broken)
        self._loop.call_soon_threadsafe(self._settle, asked, set(), [], finished)

    def _settle(
        self, asked: Sequence[_WriterRequest], claimed: set[str], told: Sequence[RunFinished], finished: int
    ) -> None:
        """On the event loop again: answer, tell, and make room."""
        for item in asked:
            if not item.answer.done():
                item.answer.set_result({claim.key for claim in item.claims if claim.key in claimed})
        if told:
            self._tell(told)
        self._waiting -= finished
        if self._room is not None and self._waiting < MOST // 2:
            self._room.set()
            self._room = None


def _weight(finished: Sequence[PendingResult]) -> int:
    return sum(item.weight for item in finished)


def _set(answer: asyncio.Future[Any], found: Any, error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(found)
    else:
        answer.set_exception(error)
