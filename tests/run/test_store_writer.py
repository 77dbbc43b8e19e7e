"""Writer of the run store: group commits, redaction, backpressure, and failures of the store."""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from threading import current_thread
from typing import Any, cast
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from agentv.errors import AgentVError, StoreError
from agentv.model.conversation import Message
from agentv.model.events import Attempt, RunFinished
from agentv.model.response import ProviderResponse, ResponseError
from agentv.redaction import Redactor
from agentv.run import heartbeat, store_writer
from agentv.run.store_writer import TAKEN_OVER, WEIGHT_UNIT, StoreWriter, make_pending, read_unwritten
from tests.fakes.stores import FakeStore
from tests.support.events import passed
from tests.support.plans import plan

SECRET = "hunter2-hunter2-hunter2"  # noqa: S105 - of nobody
ATTEMPT = Attempt(number=1)


class Written:
    """A writer on a store in memory, and what it reports."""

    def __init__(self, **options: Any) -> None:
        self.store = cast("Any", FakeStore())
        self.events: list[RunFinished] = []
        self.errors: list[AgentVError] = []
        self.writer = StoreWriter(
            self.store,
            "execution",
            Redactor({"KEY": SECRET}),
            persist=options.pop("persist", "messages"),
            on_written=self._take,
            on_error=self.errors.append,
            **options,
        )

    def _take(self, events: Sequence[RunFinished]) -> None:
        self.events += events

    def do(self, work: Callable[[StoreWriter], Coroutine[Any, Any, Any]]) -> Any:
        """Run the work while the writer is open, and return its result."""

        async def run() -> Any:
            async with self.writer as writer:
                return await work(writer)

        return asyncio.run(run())

    @property
    def rows(self) -> list[Any]:
        return [row for _, rows in self.store.commits for row in rows]


def finished(key: str = "k1", text: str = "fine", **response: Any) -> RunFinished:
    messages = (Message(role="assistant", content=text),)
    reply = ProviderResponse(text=text, output_messages=messages, **response)
    return replace(passed(candidate=text, run_id=f"execution-{key}"), response=reply)


async def enqueue(writer: StoreWriter, *events: RunFinished) -> None:
    for event in events:
        writer.enqueue(event, (ATTEMPT,))


class TestResults:
    def test_results_are_written_and_then_reported(self) -> None:
        written = Written()
        written.do(lambda writer: enqueue(writer, finished("k1"), finished("k2")))
        assert [row.key for row in written.rows] == ["k1", "k2"]
        assert [event.record.run_id for event in written.events] == ["execution-k1", "execution-k2"]
        assert written.errors == []

    def test_results_that_wait_together_are_one_commit(self) -> None:
        written = Written()
        written.do(lambda writer: enqueue(writer, *[finished(f"k{at}") for at in range(20)]))
        assert len(written.store.commits) < 20
        assert len(written.events) == 20

    def test_no_secret_reaches_the_store_or_a_reporter(self) -> None:
        written = Written()
        error = ResponseError(kind="agent", message=f"key {SECRET}")

        async def work(writer: StoreWriter) -> None:
            writer.enqueue(finished("k1", f"it is {SECRET}"), (replace(ATTEMPT, error=error),))
            writer.enqueue(finished("k2", "nothing"), (ATTEMPT,))

        written.do(work)
        secret, plain = written.rows
        assert SECRET not in str(written.rows)
        assert b"[redacted:KEY]" in secret.line
        assert secret.record.candidate == "it is [redacted:KEY]"
        assert secret.attempts[0].error.message == "key [redacted:KEY]"
        assert [SECRET.encode() in (event.line or b"") for event in written.events] == [False, False]
        assert plain.record.candidate == "nothing"

    def test_a_result_that_another_process_took_over_is_not_reported(self) -> None:
        written = Written()
        written.store.taken = {"k1"}
        written.do(lambda writer: enqueue(writer, finished("k1"), finished("k2")))
        assert [event.record.run_id for event in written.events] == ["execution-k2"]
        assert [str(error) for error in written.errors] == [TAKEN_OVER]

    @pytest.mark.parametrize(
        ("persist", "kept"),
        [
            ("summary", None),
            ("messages", {"text", "output_messages"}),
            ("full", {"text", "output_messages", "raw_response", "reasoning"}),
        ],
    )
    def test_as_much_of_a_reply_is_stored_as_was_asked_for(self, persist: Any, kept: set[str] | None) -> None:
        event = finished(raw_response={"id": 1}, reasoning="because")
        response = make_pending(event, (), persist).row.response
        names = {"text", "output_messages", "raw_response", "reasoning"}
        assert (None if response is None else json.loads(response).keys() & names) == kept

    def test_messages_and_trace_are_stored_with_the_reply_only(self) -> None:
        event = finished()
        messages = (Message(role="assistant", content="fine"),)
        pending = make_pending(replace(event, record=replace(event.record, messages=messages)), (), "messages")
        assert "messages" not in json.loads(pending.row.line)
        assert pending.event.line is None, "a result file shows them, so that its line is another one"

    def test_attempts_without_text_of_others_are_not_redacted(self) -> None:
        assert make_pending(finished(), (ATTEMPT,), "full").attempts_json == b""
        assert make_pending(finished(), (replace(ATTEMPT, thread_id="t"),), "full").attempts_json != b""


class TestBackpressure:
    def test_many_results_make_the_caller_wait_until_they_are_written(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(store_writer, "MAX_PENDING", 4)
        written = Written()

        async def work(writer: StoreWriter) -> list[bool]:
            waits = []
            for at in range(8):
                room = writer.enqueue(finished(f"k{at}"), ())
                waits.append(room is not None)
                if room is not None:
                    await room.wait()
            return waits

        waits = written.do(work)
        assert waits[:3] == [False, False, False]
        assert any(waits)
        assert len(written.events) == 8

    def test_a_large_result_weighs_more(self) -> None:
        assert make_pending(finished(), (), "messages").weight == 1
        assert make_pending(finished(text="x" * WEIGHT_UNIT), (), "messages").weight > 2


class TestClaims:
    def test_the_keys_that_were_claimed_are_returned(self) -> None:
        runs = plan("a", "b")
        written = Written()
        written.store.taken = {runs[0].key}
        assert written.do(lambda writer: writer.claim(runs, lambda _: 2)) == {runs[1].key}
        ((claims, _),) = written.store.commits
        assert [(claim.case_id, claim.position, claim.rounds) for claim in claims] == [("a", 0, 2), ("b", 1, 2)]
        assert json.loads(claims[0].target_settings)["name"] == "scripted"

    def test_no_claim_holds_a_secret(self) -> None:
        runs = plan("a", reply=f"say {SECRET}")
        runs[0] = replace(runs[0], content=runs[0].content.replace(b"question a", f"question {SECRET}".encode()))
        written = Written()
        written.do(lambda writer: writer.claim(runs, lambda _: 0))
        (((claim,), _),) = written.store.commits
        assert SECRET not in str(claim)
        assert b"question [redacted:KEY]" in claim.content
        assert json.loads(claim.target_settings)["reply"] == "say [redacted:KEY]"
        assert (claim.case_id, claim.target) == ("a", "scripted")

    def test_no_runs_are_claimed_without_a_transaction(self) -> None:
        written = Written()
        assert written.do(lambda writer: writer.claim([], lambda _: 0)) == set()
        assert written.store.commits == []


class TestCalls:
    def test_other_calls_are_made_in_the_thread_of_the_store(self) -> None:
        name = Written().do(lambda writer: writer.call(lambda: current_thread().name))
        assert name == "agentv-store"

    def test_the_caller_gets_the_exception_and_writing_goes_on(self) -> None:
        written = Written()

        async def work(writer: StoreWriter) -> None:
            with pytest.raises(ZeroDivisionError):
                await writer.call(lambda: 1 // 0)
            await enqueue(writer, finished())

        written.do(work)
        assert len(written.events) == 1
        assert written.errors == []


class TestFailures:
    @pytest.mark.parametrize(
        ("failure", "message"),
        [
            (StoreError("the disk is full"), "the disk is full"),
            (ValueError("odd"), "the run store failed: ValueError: odd"),
        ],
    )
    def test_the_first_failure_is_told_and_nothing_is_reported_as_written(
        self, failure: Exception, message: str
    ) -> None:
        written = Written()
        written.store.failure = failure
        written.do(lambda writer: enqueue(writer, finished()))
        assert [str(error) for error in written.errors] == [message]
        assert written.events == []

    def test_nothing_is_written_after_a_failure(self) -> None:
        written = Written()
        written.store.failure = StoreError("the disk is full")

        async def work(writer: StoreWriter) -> set[str]:
            assert await writer.claim(plan("a"), lambda _: 0) == set()
            written.store.failure = None
            await enqueue(writer, finished())
            return await writer.claim(plan("a"), lambda _: 0)

        assert written.do(work) == set()
        assert written.store.commits == []
        assert written.events == []

    def test_a_result_is_kept_once_although_the_heartbeat_fails_too(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        lost = StoreError("the connection was lost")
        file = tmp_path / "unwritten" / "execution.jsonl"
        written = Written(unwritten=file)
        monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.0)
        monkeypatch.setattr(written.store, "heartbeat", Mock(side_effect=lost))

        async def work(writer: StoreWriter) -> None:
            await writer.claim(plan("a"), lambda _: 0)
            written.store.failure = lost
            for key in ("k1", "k2"):
                await enqueue(writer, finished(key))
                await writer.call(lambda: None)

        written.do(work)
        assert written.errors == [lost]
        assert [row.key for row in read_unwritten(file)] == ["k1", "k2"]
        assert "2 results that could not be written are in" in str(written.writer.explain(lost))

    def test_a_result_that_was_written_is_not_kept_when_the_heartbeat_fails(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        lost = StoreError("the connection was lost")
        written = Written(unwritten=tmp_path / "execution.jsonl")
        monkeypatch.setattr(heartbeat, "HEARTBEAT_S", 0.0)
        monkeypatch.setattr(written.store, "heartbeat", Mock(side_effect=lost))
        written.do(lambda writer: enqueue(writer, finished("k1")))
        assert (len(written.events), written.errors) == (1, [lost])
        assert not (tmp_path / "execution.jsonl").exists()

    def test_a_caller_that_waits_for_room_is_released(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(store_writer, "MAX_PENDING", 2)
        written = Written()
        written.store.failure = StoreError("the disk is full")

        async def work(writer: StoreWriter) -> None:
            assert writer.enqueue(finished("k1"), ()) is None
            room = writer.enqueue(finished("k2"), ())
            assert room is not None
            await asyncio.wait_for(room.wait(), 60)

        written.do(work)
        assert written.writer.error is written.store.failure
