"""Run stores of every kind: exclusive claims, leases, results, and recovery after crashes."""

import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.jsonio import dump_json
from agentv.model.events import Attempt
from agentv.model.response import ResponseError, TokensUsage, Unread
from agentv.model.stored import ExecutionRow
from tests.support.examples import examples
from tests.support.stored_rows import NAME, NOBODY, PLACE, claim, partly, saved, somebody
from tests.support.stores import Store, StorePlace


def after_the_lease(place: StorePlace) -> Store:
    """Return another process, for which the lease of the first one has expired."""
    place.age_leases()
    other = place.open()
    assert other.active_workers(NAME) == []
    return other


class TestClaims:
    def test_a_run_belongs_to_whoever_claims_it_first(self, store: Store, place: StorePlace) -> None:
        other = place.open()
        assert store.write(NAME, [claim("a"), claim("b")], [])[0] == {"a", "b"}
        assert other.write(NAME, [claim("b"), claim("c")], [])[0] == {"c"}
        other.close()

    def test_a_result_is_kept_from_its_owner_only(self, store: Store, place: StorePlace) -> None:
        other = place.open()
        store.write(NAME, [claim("a")], [])
        assert other.write(NAME, [], [saved("a")])[1] == set()
        assert store.write(NAME, [], [saved("a")])[1] == {"a"}
        assert store.write(NAME, [], [saved("a")])[1] == set(), "and only once"
        other.close()

    def test_a_finished_run_is_claimed_again_only_where_its_end_is_named(self, store: Store) -> None:
        store.write(NAME, [claim("a"), claim("b"), claim("c")], [])
        store.write(NAME, [], [saved("a"), saved("b", "fail"), saved("c", "error")])
        again = [claim("a", 1), claim("b", 1), claim("c", 1)]
        assert store.write(NAME, again, [])[0] == set()
        assert store.write(NAME, again, [], ["error"])[0] == {"c"}
        assert store.write(NAME, again, [], ["fail"])[0] == {"b"}

    def test_somebody_who_was_faster_is_noticed_by_the_number_of_tries(self, store: Store, place: StorePlace) -> None:
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [saved("a", "error")])
        other = place.open()
        assert other.write(NAME, [claim("a", 1)], [], ["error"])[0] == {"a"}
        other.write(NAME, [], [saved("a", "error")])
        assert store.write(NAME, [claim("a", 1)], [], ["error"])[0] == set(), "it was an error again, but not ours"
        other.close()

    def test_a_dead_owners_runs_come_back(self, store: Store, place: StorePlace) -> None:
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        other = place.open(somebody(pid=dead.pid, started="1"))
        other.heartbeat()
        assert other.write(NAME, [claim("a")], [])[0] == {"a"}
        assert store.write(NAME, [claim("a")], [])[0] == set()
        assert store.active_workers(NAME) == []
        assert store.write(NAME, [claim("a")], [])[0] == {"a"}
        assert other.write(NAME, [], [saved("a")])[1] == set(), "too late: it is somebody else's now"

    def test_a_living_owner_is_named(self, store: Store, place: StorePlace) -> None:
        other = place.open()
        other.heartbeat()
        other.write(NAME, [claim("a"), claim("b")], [])
        (holder,) = store.active_workers(NAME)
        assert (holder.pid, holder.runs) == (os.getpid(), 2)
        other.close()
        assert store.active_workers(NAME) == []
        assert store.write(NAME, [claim("a")], [])[0] == {"a"}, "whoever leaves gives up what it had"

    def test_an_owner_that_stood_still_notices(self, store: Store, place: StorePlace) -> None:
        store.heartbeat()
        store.write(NAME, [claim("a"), claim("b")], [])
        other = after_the_lease(place)
        assert other.write(NAME, [claim("b")], [])[0] == {"b"}
        assert store.write(NAME, [], [saved("a"), saved("b")])[1] == {"a"}, "nobody has taken the other one"
        other.close()

    def test_an_owner_that_stood_still_and_says_that_it_lives_has_lost_what_others_took(
        self, store: Store, place: StorePlace
    ) -> None:
        store.write(NAME, [claim("a"), claim("b")], [])
        other = after_the_lease(place)
        assert other.write(NAME, [claim("a")], [])[0] == {"a"}
        store.heartbeat()
        assert store.write(NAME, [], [saved("a", "fail")])[1] == set()
        assert other.write(NAME, [], [saved("a")])[1] == {"a"}
        assert other.write(NAME, [claim("b")], [])[0] == set(), "what nobody has taken is claimed again"
        assert store.write(NAME, [], [saved("a", "fail"), saved("b")])[1] == {"b"}
        assert [(row.key, row.verdict) for row in store.runs(NAME)] == [("a", "pass"), ("b", "pass")]
        other.close()

    def test_a_run_that_came_from_elsewhere_while_it_was_running_is_free(self, store: Store, place: StorePlace) -> None:
        store.write(NAME, [claim("a")], [])
        (run,) = store.stored_runs(NAME)
        moved = place.other().open()
        moved.add(ExecutionRow(id=NAME, status="running", planned=1, started_at="x"), [run])
        assert list(moved.stored_runs(NAME)) == [run]
        assert moved.write(NAME, [claim("a")], [])[0] == {"a"}
        moved.close()


class TestLifeCycle:
    def test_a_claimed_run_waits_until_it_starts(self, store: Store) -> None:
        store.write(NAME, [claim("a"), claim("b")], [])
        assert [(row.status, row.started_at) for row in store.runs(NAME)] == [("queued", None)] * 2
        store.write(NAME, [], [], starts=[("a", "2026-11-16T00:00:07.000Z"), ("unknown", "x")])
        found = {row.key: (row.status, row.started_at) for row in store.runs(NAME)}
        assert found == {"a": ("running", "2026-11-16T00:00:07.000Z"), "b": ("queued", None)}
        store.write(NAME, [], [saved("a")])
        assert {row.key: row.status for row in store.runs(NAME)} == {"a": "completed", "b": "queued"}

    def test_a_run_that_waits_in_one_process_is_not_taken_by_another(self, store: Store, place: StorePlace) -> None:
        store.write(NAME, [claim("a")], [])
        other = place.open()
        assert other.write(NAME, [claim("a", rounds=1)], [], {"error", "fail"})[0] == set()
        assert other.outcomes(NAME)["a"].claimed
        other.close()

    def test_runs_of_a_dead_process_do_not_stay_running(self, place: StorePlace) -> None:
        dead = place.open(somebody(pid=NOBODY, started=""))
        dead.begin(ExecutionRow(id=NAME, status="running", planned=2, started_at="x"))
        dead.write(NAME, [claim("a"), claim("b")], [])
        dead.write(NAME, [], [], starts=[("a", "x")])
        place.abandon(dead)
        reader = place.open()
        reader.release_dead_claims()
        assert {row.status for row in reader.runs(NAME)} == {"queued"}
        reader.close()

    def test_runs_of_a_living_process_are_left_alone(self, store: Store, place: StorePlace) -> None:
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [], starts=[("a", "x")])
        reader = place.open()
        reader.release_dead_claims()
        assert [row.status for row in reader.runs(NAME)] == ["running"]
        reader.close()


class TestKeeping:
    def test_lists_read_no_payload(self, store: Store) -> None:
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [saved("a")])
        store.db.execute("DROP TABLE payloads")
        assert [row.case_id for row in store.runs(NAME)] == ["case-a"]
        assert [row.id for row in store.executions()] == [NAME]

    def test_the_order_of_executions_is_that_of_beginning_whatever_the_clock_says(self, store: Store) -> None:
        store.begin(ExecutionRow(id="19990101T000000-000000", status="running", started_at="1999-01-01T00:00:00.000Z"))
        assert [row.id for row in store.executions()] == ["19990101T000000-000000", NAME]

    def test_a_case_that_many_runs_share_is_kept_once(self, store: Store) -> None:
        store.write(NAME, [claim("a")._replace(key=key) for key in "abc"], [])
        assert store.db.execute("SELECT count(*) FROM snapshots").fetchone() == (2,)

    def test_a_run_that_is_run_once_more_has_no_verdict_until_it_ends(self, store: Store) -> None:
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [saved("a", "fail")])
        store.write(NAME, [claim("a", 1)], [], ["fail"])
        (row,) = store.runs(NAME)
        assert (row.status, row.verdict, row.score) == ("queued", None, None)
        store.write(NAME, [], [saved("a")])
        (row,) = store.runs(NAME)
        assert (row.status, row.verdict, row.score) == ("completed", "pass", 1.0)

    def test_every_round_of_attempts_is_kept(self, store: Store) -> None:
        error = ResponseError(kind="transport", message="down", retryable=True, code="rate_limited", retry_after_s=2.0)
        attempts = (Attempt(number=1, error=error, waited_ms=3.0), Attempt(number=2, latency_ms=4.0, thread_id="t"))
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [saved("a", "error")._replace(attempts=attempts)])
        store.write(NAME, [claim("a", 1)], [], ["error"])
        store.write(NAME, [], [saved("a")])
        (run,) = store.stored_runs(NAME)
        assert run.attempt_log == ((1, attempts[0]), (1, attempts[1]), (2, Attempt(number=1, latency_ms=1.5)))
        assert store.db.execute("SELECT count(*) FROM evaluator_results").fetchone() == (1,)

    def test_unread_places_are_in_the_list_and_counted(self, store: Store) -> None:
        store.write(NAME, [claim("a"), claim("b"), claim("c")], [])
        other = Unread(path="metadata", reason="it holds a call")
        store.write(NAME, [], [saved("a"), partly("b"), partly("c", PLACE, other)])
        assert [row.unread for row in store.runs(NAME)] == [None, (PLACE,), (PLACE, other)]
        assert store.find_execution(NAME)[0].partly_understood == 2
        store.mark_superseded(NAME, ["c"])
        assert store.executions()[0].partly_understood == 1

    def test_a_reply_that_is_understood_the_second_time_counts_no_more(self, store: Store) -> None:
        whole = partly("a")
        record = replace(whole.record, status="error", score=None)
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [whole._replace(record=record, line=dump_json(record))])
        store.write(NAME, [claim("a", 1)], [], ["error"])
        assert store.executions()[0].partly_understood == 0, "it is being run again"
        store.write(NAME, [], [saved("a")])
        assert [row.unread for row in store.runs(NAME)] == [None]

    def test_the_records_of_a_target_come_newest_first_and_no_more_than_asked_for(self, store: Store) -> None:
        store.write(NAME, [claim(key) for key in "abc"] + [claim("d")._replace(target="another")], [])
        store.write(NAME, [], [saved(key) for key in "abd"])
        assert list(store.target_records("target", 10)) == [saved("b").line, saved("a").line]
        assert list(store.target_records("target", 1)) == [saved("b").line]
        assert list(store.target_records("nobody", 10)) == []

    def test_a_number_that_no_column_can_hold_is_in_the_record_alone(self, store: Store) -> None:
        usage = TokensUsage(input_tokens=10**30, output_tokens=1, total_tokens=10**30 + 1)
        record = replace(saved("a").record, tokens_usage=usage)
        store.write(NAME, [claim("a"), claim("b")], [])
        written = saved("a")._replace(record=record, line=dump_json(record))
        assert store.write(NAME, [], [written, saved("b")])[1] == {"a", "b"}
        first = next(store.runs(NAME))
        assert (first.input_tokens, first.output_tokens, first.total_tokens) == (None, 1, None)
        assert [kept.line for kept in store.results(NAME, ["a"])] == [written.line]

    @pytest.mark.parametrize(("name", "counted"), [("one", ["b"]), ("key [redacted]", ["a", "b"])])
    def test_a_result_takes_the_place_of_one_of_the_same_case_unless_its_name_was_redacted(
        self, store: Store, name: str, counted: list[str]
    ) -> None:
        store.resume(ExecutionRow(id=NAME, status="running", planned=1))
        for key in "ab":
            store.write(NAME, [claim(key)._replace(case_id=name)], [])
            assert store.write(NAME, [], [saved(key)])[1] == {key}
        assert [row.key for row in store.runs(NAME)] == counted
        assert store.executions()[0].runs == len(counted)

    @pytest.mark.parametrize("key", ["2", "f"], ids=["the same run again", "an edited case"])
    def test_a_run_that_is_resumed_alone_keeps_its_position_in_the_whole_plan(self, store: Store, key: str) -> None:
        store.write(NAME, [claim("1"), claim("2"), claim("3")], [])
        store.write(NAME, [], [saved("1"), saved("2", "fail"), saved("3")])
        store.resume(ExecutionRow(id=NAME, status="running", planned=3), is_whole=False)
        alone = claim(key, rounds=int(key == "2"))._replace(case_id="case-2", position=0)
        assert store.write(NAME, [alone], [], ("fail",))[0] == {key}
        store.write(NAME, [], [saved(key)])
        assert [(row.key, row.position) for row in store.runs(NAME)] == [("1", 1), (key, 2), ("3", 3)]

    def test_a_case_that_is_new_and_resumed_alone_comes_last(self, store: Store) -> None:
        store.write(NAME, [claim("1"), claim("2")], [])
        store.resume(ExecutionRow(id=NAME, status="running", planned=3), is_whole=False)
        store.write(NAME, [claim("f")._replace(position=0)], [])
        assert [row.key for row in store.runs(NAME)] == ["1", "2", "f"]

    def test_a_run_has_its_checksum_however_it_was_claimed(self, store: Store, place: StorePlace) -> None:
        full = partly("a")
        usage = TokensUsage(input_tokens=1, output_tokens=0, total_tokens=2**70)
        record = replace(full.record, latency_ms=3, cost_usd=2, thread_id="thread-\u00e9", tokens_usage=usage)
        full = full._replace(record=record, line=dump_json(record))
        claims = [claim("a")._replace(persona_id="b\u00f6se"), claim("b"), claim("c")]
        assert store.write(NAME, claims, [])[0] == {"a", "b", "c"}
        store.write(NAME, [], [full, saved("b", "error")])
        assert store.write(NAME, [claim("b", 1)], [], ["error"])[0] == {"b"}
        store.write(NAME, [], [saved("b")])
        other = after_the_lease(place)
        assert other.restore(NAME, [saved("c")]) == {"c"}
        runs = {row.key: row for row in other.runs(NAME)}
        assert {key: (row.status, row.damage) for key, row in runs.items()} == dict.fromkeys("abc", ("completed", None))
        other.db.execute("UPDATE runs SET case_id = 'case-x' WHERE key = 'c'")
        assert [row.key for row in other.runs(NAME) if row.damage] == ["c"]
        other.close()

    def test_deleting_takes_everything_with_it(self, store: Store) -> None:
        store.write(NAME, [claim("a")], [])
        store.write(NAME, [], [saved("a")])
        store.delete([NAME])
        for table in ("executions", "runs", "attempts", "evaluator_results", "payloads", "snapshots"):
            assert store.db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table  # noqa: S608 - ours

    def test_an_execution_that_is_deleted_while_it_runs_is_noticed(self, store: Store, place: StorePlace) -> None:
        store.write(NAME, [claim("a")], [])
        other = place.open()
        other.delete([NAME])
        other.close()
        with pytest.raises(StoreError, match=f"execution {NAME} was deleted while it was running"):
            store.write(NAME, [claim("b")], [])
        with pytest.raises(StoreError, match="was deleted while it was running"):
            store.write(NAME, [], [saved("a")])
        assert store.db.execute("SELECT count(*) FROM runs").fetchone() == (0,)


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["claim", "save", "kill", "leave", "beat"]), st.integers(0, 7), st.integers(0, 1)),
    max_size=20,
)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ACTIONS)
def test_any_interleaving_of_writes_and_kills_leaves_every_result_once(
    place: StorePlace, actions: list[tuple[str, int, int]]
) -> None:
    place = place.other()
    first = place.open()
    first.begin(ExecutionRow(id=NAME, status="running", planned=8, started_at="x"))
    processes = [first, place.open()]
    finished: set[str] = set()
    for action, number, who in actions:
        process, key = processes[who], f"{number:x}"
        if action == "claim":
            process.write(NAME, [claim(key)], [])
        elif action == "save":
            _, kept = process.write(NAME, [], [saved(key)])
            assert not kept & finished, "a result is kept once"
            finished |= kept
        elif action == "beat":
            process.heartbeat()
        else:
            if action == "kill":
                place.kill(process)
            else:
                process.close()
            processes[who] = place.open()
    for process in processes:
        process.close()
    last = place.open()
    last.resume(replace(ExecutionRow(id=NAME, status="running"), planned=8))
    assert [row.id for row in last.executions()] == [NAME]
    assert {each.key for each in last.results(NAME)} == finished
    todo = {f"{number:x}" for number in range(8)} - finished
    assert last.write(NAME, [claim(key) for key in sorted(todo)], [])[0] == todo
    assert last.write(NAME, [], [saved(key) for key in todo])[1] == todo
    assert len(list(last.results(NAME))) == 8
    last.close()
