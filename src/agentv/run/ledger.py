"""What an execution has done: on the disk before anybody hears of it, claimed before anybody does it."""

from __future__ import annotations

import asyncio
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from msgspec import UNSET, json
from msgspec.structs import force_setattr, replace

from agentv.errors import AgentVError, StoreError
from agentv.formats.json import dump_json
from agentv.model.attempt import Attempt
from agentv.model.case import Case
from agentv.model.record import ResultRecord
from agentv.model.run import Claim, Saved

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.formats.redaction import Redactor
    from agentv.model.event import RunFinished
    from agentv.model.response import ProviderResponse
    from agentv.model.run import Persist
    from agentv.protocols import Store
    from agentv.run.plan import PlannedRun

T = TypeVar("T")
_decode_record = json.Decoder(ResultRecord).decode
_decode_attempts = json.Decoder(tuple[Attempt, ...]).decode
_decode_case = json.Decoder(tuple[Case, Any]).decode

BEAT_S = 5.0
"""How often the store hears that this process lives."""
MOST = 2000
"""How many results are written in one step, and how many may wait for it."""


class _Asked(NamedTuple):
    """Claims that somebody waits for."""

    claims: Sequence[Claim]
    answer: asyncio.Future[set[str]]


class _Call(NamedTuple):
    """Something else to ask the store, between two steps."""

    call: Callable[[], Any]
    answer: asyncio.Future[Any]


class _Finished(NamedTuple):
    """A result that nobody has heard of yet."""

    record: ResultRecord
    event: RunFinished
    parts: tuple[bytes, bytes, bytes, bytes]
    """The record, the reply, the sides of its diffs and the attempts as JSON; empty where there is nothing to hide."""
    attempts: tuple[Attempt, ...]

    @property
    def key(self) -> str:
        return self.record.run_id.rpartition("-")[2]


_Item = _Asked | _Call | _Finished | None


class Ledger:
    """One thread that writes, in steps as large as what has come in meanwhile."""

    def __init__(  # noqa: PLR0913 - it is put together once, in the API
        self,
        store: Store,
        execution_id: str,
        redactor: Redactor,
        *,
        persist: Persist,
        again: frozenset[str] = frozenset(),
        tell: Callable[[RunFinished], None],
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
        self._targets: dict[int, bytes] = {}
        """The settings of each target as they are kept; the plan holds them for as long as it is followed."""
        self._waiting = 0
        self._room: asyncio.Event | None = None
        self._thread: Thread | None = None
        self.lost = 0
        """Results that another process had taken over."""
        self.broken: AgentVError | None = None

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._thread = Thread(target=self._work, name="agentv-store", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write what has come in, and hear what came of it."""
        self._queue.put(None)
        if self._thread is not None:
            await asyncio.shield(self._loop.run_in_executor(None, self._thread.join))
        await asyncio.sleep(0)  # what the thread has asked the loop to call

    async def ask(self, call: Callable[[], T]) -> T:
        """What the store says to this, asked in its own thread."""
        answer: asyncio.Future[T] = self._loop.create_future()
        self._queue.put(_Call(call, answer))
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
        self._queue.put(_Asked(claims, answer))
        return await answer

    def _claimed(self, planned: PlannedRun, content: bytes, tries: int) -> Claim:
        case, target = planned.case, planned.target
        settings = self._targets.get(id(target.settings))
        if settings is None:
            settings = self._targets[id(target.settings)] = self._redactor.line(dump_json(target.settings))
        return Claim(
            key=planned.key,
            position=planned.order,
            eval_id=planned.eval.id,
            case_id=case.case.id if content is planned.content else _decode_case(content)[0].id,
            target_id=target.name,
            repeat=planned.repeat,
            place=str(case.place or ""),
            content=content,
            target=settings,
            tries=tries,
        )

    def save(self, event: RunFinished, attempts: tuple[Attempt, ...]) -> asyncio.Event | None:
        """Keep a result; it is told when it is on the disk. Whoever gets an event back should wait for it."""
        record = event.record
        if record.messages is not UNSET or record.trace is not UNSET:
            record = replace(record, messages=UNSET, trace=UNSET)
        response = self._kept(event.response)
        sides = b"" if not response or not any(event.sides) else dump_json(event.sides)
        # Most attempts have nothing that anybody else has written.
        told = any(one.error is not None or one.thread_id is not None for one in attempts)
        parts = (dump_json(record), response, sides, dump_json(attempts) if told else b"")
        self._queue.put(_Finished(record, event, parts, attempts))
        self._waiting += 1
        if self._waiting < MOST:
            return None
        if self._room is None:
            self._room = asyncio.Event()
        return self._room

    def _kept(self, response: ProviderResponse) -> bytes:
        """As much of a reply as the project wants to keep."""
        if self._persist == "summary":
            return b""
        if self._persist == "messages" and (response.raw_response is not None or response.reasoning is not None):
            response = replace(response, raw_response=None, reasoning=None)
        return dump_json(response)

    def _redacted(self, finished: Sequence[_Finished]) -> list[Saved]:
        """The results as they are written; a file that wants the same line need not make it again."""
        lines = iter(self._redactor.lines([part for item in finished for part in item.parts]))
        saved = []
        for item in finished:
            line, response, sides, told = next(lines), next(lines), next(lines), next(lines)
            if item.record is item.event.record:
                force_setattr(item.event, "line", line)  # nobody has seen the event yet
            record = item.record if line is item.parts[0] else _decode_record(line)
            attempts = item.attempts if told is item.parts[-1] else _decode_attempts(told)
            saved.append(Saved(item.key, record, line, response or None, sides or None, attempts))
        return saved

    def _work(self) -> None:
        beaten = monotonic()
        is_open = True
        while is_open:
            items: list[_Item] = []
            try:
                items.append(self._queue.get(timeout=BEAT_S))
                while len(items) < MOST:
                    items.append(self._queue.get_nowait())
            except Empty:
                pass
            is_open = None not in items
            try:
                self._answer([item for item in items if isinstance(item, _Call)])
                self._write([item for item in items if item is not None])
                if monotonic() - beaten >= BEAT_S:
                    self._store.beat()
                    beaten = monotonic()
            except Exception as error:  # noqa: BLE001 - a thread that dies must not leave the others waiting
                self._give_up(error, items)

    def _answer(self, calls: Sequence[_Call]) -> None:
        for each in calls:
            try:
                found = each.call()
            except Exception as error:  # noqa: BLE001 - it is for whoever asked
                self._loop.call_soon_threadsafe(_set, each.answer, None, error)
            else:
                self._loop.call_soon_threadsafe(_set, each.answer, found, None)

    def _write(self, items: Sequence[_Item]) -> None:
        asked = [item for item in items if isinstance(item, _Asked)]
        finished = [item for item in items if isinstance(item, _Finished)]
        if not (asked or finished):
            return
        if self.broken is not None:
            self._loop.call_soon_threadsafe(self._settle, asked, set(), [], len(finished))
            return
        claimed, kept = self._store.write(
            self._execution_id,
            [claim for item in asked for claim in item.claims],
            self._redacted(finished),
            self._again,
        )
        told = [item.event for item in finished if item.key in kept]
        self.lost += len(finished) - len(told)
        self._loop.call_soon_threadsafe(self._settle, asked, claimed, told, len(finished))

    def _give_up(self, error: Exception, items: Sequence[_Item]) -> None:
        """Nothing more can be kept; what was kept is safe, and nobody may wait for ever."""
        message = f"the run store failed: {type(error).__name__}: {error}"
        broken = self.broken = error if isinstance(error, AgentVError) else StoreError(message)
        asked = [item for item in items if isinstance(item, _Asked)]
        finished = sum(isinstance(item, _Finished) for item in items)
        self._loop.call_soon_threadsafe(self._fail, broken)
        self._loop.call_soon_threadsafe(self._settle, asked, set(), [], finished)

    def _settle(self, asked: Sequence[_Asked], claimed: set[str], told: Sequence[RunFinished], finished: int) -> None:
        """On the event loop again: answer, tell, and make room."""
        for item in asked:
            if not item.answer.done():
                item.answer.set_result({claim.key for claim in item.claims if claim.key in claimed})
        for event in told:
            self._tell(event)
        self._waiting -= finished
        if self._room is not None and self._waiting < MOST // 2:
            self._room.set()
            self._room = None


def _set(answer: asyncio.Future[Any], found: Any, error: Exception | None) -> None:
    if answer.done():
        return
    if error is None:
        answer.set_result(found)
    else:
        answer.set_exception(error)
