"""Claims of runs: blocks, stored results, and runs of other processes."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest

from agentv.errors import SpecError
from agentv.model.stored import ActiveWorker, Outcome, StoredResult
from agentv.run import claims
from agentv.run.claims import ClaimQueue, SharedClaims
from agentv.run.plan import PlannedRun
from tests.fakes.event_loop import instantly
from tests.fakes.stores import FakeStore, FakeWriter
from tests.support.plans import plan

DONE = Outcome("completed", "pass", 1)


class Setting:
    """Claims with a store and a writer in memory, and what they report."""

    def __init__(self, known: dict[str, Outcome] | None = None, **options: Any) -> None:
        self.store = cast("Any", FakeStore())
        self.writer = cast("Any", FakeWriter())
        self.reported: list[tuple[str, bytes]] = []
        self.waits: list[list[ActiveWorker]] = []
        self.claims = SharedClaims(
            self.store,
            self.writer,
            "execution",
            known or {},
            rerun=options.pop("rerun", ()),
            on_stored=lambda planned, result: self.reported.append((planned.case.case.id, result.line)),
            on_wait=self.waits.append,
            **options,
        )

    def keep(self, *runs: PlannedRun, order: int | None = None) -> None:
        """Store a result of each run, at the position of the run or at another one."""
        for planned in runs:
            position = planned.order if order is None else order
            place = str(planned.case.location or "")
            self.store.stored[planned.key] = StoredResult(planned.key, position, place, b"{}", None, None)


def ids(runs: list[PlannedRun]) -> list[str]:
    return [planned.case.case.id for planned in runs]


def drain(queue: ClaimQueue, found: list[str]) -> None:
    """Add the ids of the cases of all runs to a list, in their order."""

    async def take_all() -> None:
        while (planned := await queue.next()) is not None:
            found.append(planned.case.case.id)

    instantly(take_all())


def drained(queue: ClaimQueue) -> list[str]:
    found: list[str] = []
    drain(queue, found)
    return found


class TestSharedClaims:
    def test_runs_without_a_result_are_claimed(self) -> None:
        setting, runs = Setting(), plan("a", "b")
        assert ids(instantly(setting.claims.claim(runs))) == ["a", "b"]
        assert setting.reported == []

    def test_a_stored_result_is_reported_and_its_run_is_not_claimed(self) -> None:
        runs = plan("a", "b")
        setting = Setting({runs[0].key: DONE})
        setting.keep(runs[0])
        assert ids(instantly(setting.claims.claim(runs))) == ["b"]
        assert setting.reported == [("a", b"{}")]
        assert setting.writer.blocks == [[runs[1].key]]
        assert setting.claims.seen == {planned.key for planned in runs}
        assert setting.store.moved == {}

    def test_a_verdict_that_is_run_again_is_claimed_with_its_number_of_rounds(self) -> None:
        runs = plan("a")
        setting = Setting({runs[0].key: Outcome("completed", "fail", 3)}, rerun=("fail",))
        assert ids(instantly(setting.claims.claim(runs))) == ["a"]
        assert setting.reported == []
        assert setting.writer.rounds == {runs[0].key: 3}

    def test_a_superseded_result_whose_case_is_back_is_part_of_the_execution_again(self) -> None:
        runs = plan("a")
        setting = Setting({runs[0].key: DONE._replace(superseded=True)})
        setting.keep(*runs)
        assert instantly(setting.claims.claim(runs)) == []
        assert setting.store.restored == [runs[0].key]
        assert setting.reported == [("a", b"{}")]

    @pytest.mark.parametrize("is_whole", [True, False])
    def test_positions_follow_the_plan_unless_it_is_a_part_only(self, *, is_whole: bool) -> None:
        runs = plan("a", "b")
        setting = Setting({planned.key: DONE for planned in runs}, is_whole=is_whole)
        setting.keep(*runs, order=0)
        instantly(setting.claims.claim(runs))
        place = str(runs[1].case.location or "")
        assert setting.store.moved == ({runs[1].key: (1, place)} if is_whole else {})
        assert len(setting.reported) == 2


class TestWaiting:
    def waiting(self, runs: list[PlannedRun], *polls: dict[str, Outcome]) -> Setting:
        setting = Setting()
        setting.writer.taken = {planned.key for planned in runs}
        setting.store.polls = list(polls)
        assert instantly(setting.claims.claim(runs)) == []
        return setting

    def test_results_of_another_process_are_reported_when_they_are_there(self) -> None:
        runs = plan("a", "b")
        running = {planned.key: Outcome("running", None, 1) for planned in runs}
        done = {planned.key: DONE for planned in runs}
        setting = self.waiting(runs, running, {**running, runs[0].key: DONE}, done)
        setting.keep(*runs)
        assert instantly(setting.claims.wait_for_others()) == []
        assert setting.reported == [("a", b"{}"), ("b", b"{}")]
        assert [worker.pid for workers in setting.waits for worker in workers] == [7, 7]

    @pytest.mark.parametrize("outcome", [None, Outcome("cancelled", None, 1)])
    def test_runs_that_become_free_are_returned(self, outcome: Outcome | None) -> None:
        runs = plan("a", "b")
        found = {runs[1].key: Outcome("running", None, 1)} | ({runs[0].key: outcome} if outcome else {})
        setting = self.waiting(runs, found)
        assert ids(instantly(setting.claims.wait_for_others())) == ["a"]
        assert setting.waits == []

    def test_an_execution_that_is_ending_waits_for_nobody(self) -> None:
        setting = self.waiting(plan("a"), {})
        setting.claims.is_stopping = lambda: True
        assert instantly(setting.claims.wait_for_others()) == []

    def test_a_store_that_failed_is_not_asked_again(self) -> None:
        setting = self.waiting(plan("a"), {})
        setting.writer.error = SpecError([])
        assert instantly(setting.claims.wait_for_others()) == []


class TestClaimQueue:
    def test_every_run_is_returned_once_in_the_order_of_the_plan(self) -> None:
        names = [f"c{at}" for at in range(50)]
        setting = Setting()
        assert drained(ClaimQueue(iter(plan(*names)), setting.claims)) == names

    def test_blocks_grow_while_runs_are_fast(self) -> None:
        setting = Setting()
        drained(ClaimQueue(iter(plan(*[f"c{at}" for at in range(40)])), setting.claims))
        assert [len(block) for block in setting.writer.blocks] == [2, 4, 8, 16, 10]

    def test_a_block_that_nobody_has_taken_from_is_not_followed_by_a_larger_one(self) -> None:
        setting = Setting()
        queue = ClaimQueue(iter(plan(*[f"c{at}" for at in range(40)])), setting.claims)

        async def take_six() -> None:
            for _ in range(6):
                await queue.next()
            await asyncio.sleep(1)

        instantly(take_six())
        assert [len(block) for block in setting.writer.blocks] == [2, 4, 8], "others may claim the rest"

    def test_blocks_shrink_while_runs_are_slow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        clock = iter(range(0, 1000, 10))
        monkeypatch.setattr(claims, "monotonic", lambda: next(clock))
        setting = Setting()
        queue = ClaimQueue(iter(plan(*[f"c{at}" for at in range(9)])), setting.claims)
        queue.size = 8
        drained(queue)
        assert [len(block) for block in setting.writer.blocks] == [4, 2, 1, 1, 1]

    def test_large_cases_are_claimed_a_few_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        runs = plan("a", "b", "c", "d")
        monkeypatch.setattr(claims, "MAX_BLOCK_BYTES", len(runs[0].content) + 1)
        setting = Setting()
        queue = ClaimQueue(iter(runs), setting.claims)
        queue.size = 8
        assert drained(queue) == ["a", "b", "c", "d"]
        assert [len(block) for block in setting.writer.blocks] == [2, 2]

    def test_runs_before_a_row_that_cannot_be_read_are_returned_and_then_the_error(self) -> None:
        def broken() -> Iterator[PlannedRun]:
            yield from plan("a", "b")
            raise SpecError([])

        found: list[str] = []
        with pytest.raises(SpecError):
            drain(ClaimQueue(broken(), Setting().claims), found)
        assert found == ["a", "b"]

    def test_runs_of_other_processes_come_last_when_they_are_free(self, monkeypatch: pytest.MonkeyPatch) -> None:
        runs = plan("a", "b", "c")
        setting = Setting()
        setting.store.polls = [{}]
        setting.writer.taken = {runs[0].key}
        claim = setting.claims.claim

        async def claim_and_release(block: list[PlannedRun]) -> list[PlannedRun]:
            found = await claim(block)
            setting.writer.taken.clear()
            return found

        monkeypatch.setattr(setting.claims, "claim", claim_and_release)  # the other process gives up
        assert drained(ClaimQueue(iter(runs), setting.claims)) == ["b", "c", "a"]

    def test_a_caller_that_is_cancelled_leaves_the_block_to_the_others(self) -> None:
        setting = Setting()
        queue = ClaimQueue(iter(plan("a")), setting.claims)

        async def cancelled_then_next() -> str | None:
            waiting = asyncio.ensure_future(queue.next())
            await asyncio.sleep(0)
            waiting.cancel()
            planned = await queue.next()
            return None if planned is None else planned.case.case.id

        assert instantly(cancelled_then_next()) == "a"
