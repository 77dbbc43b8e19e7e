"""Lists of a store: pages, filters, facets, failure groups, charts and labels."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agentv.errors import StoreError
from agentv.model.listing import RunFilter, RunLabel, RunQuery
from agentv.model.stored import DAMAGED, ExecutionRow
from agentv.stores.sqlite import migrations
from agentv.stores.sqlite.store import SqliteStore
from tests.support.command import Command, command_in
from tests.support.viewer import open_store, store_file, write_store

MISSING = "missing call: ask_approval"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Command:
    return command_in(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def execution(run: Command) -> str:
    return write_store(run, "--repeat", "2")


@pytest.fixture
def store(run: Command, execution: str) -> Iterator[SqliteStore]:
    del execution
    store = open_store(run)
    yield store
    store.close()


def cases(store: SqliteStore, execution: str, **where: object) -> list[str]:
    page = store.run_page(execution, RunQuery(where=RunFilter(**where), limit=1000))  # type: ignore[arg-type] # by name
    assert page.total in (len(page.runs), None)
    return [f"{each.run.case_id}/{each.run.target}#{each.run.repeat}" for each in page.runs]


class TestPages:
    @pytest.mark.parametrize("sort", ["position", "case", "target", "status", "score", "latency", "tokens", "cost"])
    @pytest.mark.parametrize("descending", [False, True])
    def test_pages_hold_every_run_once_in_order(
        self, store: SqliteStore, execution: str, sort: str, descending: bool
    ) -> None:
        whole = store.run_page(execution, RunQuery(sort=sort, descending=descending, limit=1000))  # type: ignore[arg-type]
        found, query = [], RunQuery(sort=sort, descending=descending, limit=3)  # type: ignore[arg-type]
        while True:
            page = store.run_page(execution, query)
            found += [each.run.key for each in page.runs]
            if page.next is None:
                break
            query = RunQuery(sort=sort, descending=descending, limit=3, after=page.next)  # type: ignore[arg-type]
        assert found == [each.run.key for each in whole.runs]
        assert len(set(found)) == whole.total == 20

    def test_executions_carry_their_summaries(self, store: SqliteStore, execution: str) -> None:
        (row,) = store.execution_page(10)
        assert row.id == execution
        assert row.summary is not None
        assert row.summary["evals"]["support"]["runs"] == 20
        assert store.execution_page(10, before=row.seq) == []

    def test_an_unfinished_execution_has_the_sums_so_far(self, store: SqliteStore) -> None:
        store.db.execute(
            "UPDATE executions SET status = 'running', completed_at = NULL, summary = NULL, checksum = NULL"
        )
        (row,) = store.execution_page(1)
        assert row.summary is not None
        assert row.summary["evals"]["support"] == {"runs": 20, "passed": 12, "failed": 8, "errors": 0}
        assert row.summary["cost_usd"] == pytest.approx(0.04)

    def test_a_damaged_run_is_listed_with_its_damage(self, run: Command) -> None:
        store = open_store(run)
        (row,) = store.execution_page(1)
        store.db.execute("BEGIN")
        store.db.execute("UPDATE runs SET score = 0.25 WHERE seq = 1")
        page = store.run_page(row.id, RunQuery(limit=1000))
        assert [each.run.key for each in page.runs if each.run.damage] != []
        store.db.execute("ROLLBACK")
        store.db.execute("BEGIN")
        store.db.execute("UPDATE executions SET status = 7, checksum = 1")
        assert store.execution_page(1)[0].status == DAMAGED
        store.db.execute("ROLLBACK")
        store.close()


class TestFilters:
    def test_by_verdict_target_and_case(self, store: SqliteStore, execution: str) -> None:
        assert len(cases(store, execution, status=("fail",))) == 8
        assert len(cases(store, execution, status=("pass", "fail"))) == 20
        assert cases(store, execution, status=("unfinished",)) == []
        assert len(cases(store, execution, target="hasty", case_id="refund-0")) == 2
        assert len(cases(store, execution, eval_id="support", persona="")) == 20
        assert cases(store, execution, persona="impatient") == []

    def test_by_tool_tag_and_evaluator(self, store: SqliteStore, execution: str) -> None:
        assert {name.split("/")[1] for name in cases(store, execution, tool="ask_approval")} == {
            "careful#0",
            "careful#1",
        }
        assert cases(store, execution, tool="approval") == []
        assert len(cases(store, execution, tag="n1")) == 8
        assert len(cases(store, execution, evaluator="approval first")) == 8

    def test_text_is_found_in_ids_inputs_answers_and_misses(self, store: SqliteStore, execution: str) -> None:
        assert len(cases(store, execution, text="REFUND-3")) == 4
        assert len(cases(store, execution, text="order b-41,")) == 4
        assert len(cases(store, execution, text="done, FRIEND")) == 8
        assert len(cases(store, execution, text=MISSING)) == 8
        assert cases(store, execution, text="One moment") == []

    def test_transcripts_are_searched_on_request(self, store: SqliteStore, execution: str) -> None:
        assert len(cases(store, execution, text="one MOMENT", transcripts=True)) == 18
        assert len(cases(store, execution, text="refund-3", transcripts=True)) == 4

    def test_a_long_search_stops_and_goes_on(
        self, store: SqliteStore, execution: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("agentv.stores.listing.SEARCH_S", -1.0)
        where = RunFilter(text="one moment", transcripts=True)
        found, page = [], store.run_page(execution, RunQuery(where=where))
        while page.next is not None:
            assert page.is_partial
            found += page.runs
            page = store.run_page(execution, RunQuery(where=where, after=page.next))
        assert len(found) == 18

    def test_flaky_cases_both_passed_and_failed(self, store: SqliteStore, execution: str) -> None:
        assert cases(store, execution, flaky=True) == []
        store.db.execute("BEGIN")
        store.db.execute(
            "UPDATE runs SET verdict = 'pass' WHERE seq = (SELECT max(seq) FROM runs WHERE verdict = 'fail')"
        )
        assert cases(store, execution, flaky=True) == ["refund-3/hasty#0", "refund-3/hasty#1"]
        store.db.execute("ROLLBACK")


class TestSums:
    def test_equal_failures_are_counted_together(self, store: SqliteStore, execution: str) -> None:
        (group,) = store.failure_counts(execution, RunFilter(), 10)
        assert (group.failure, group.status, group.runs) == (MISSING, "fail", 8)
        assert len(cases(store, execution, failure=group.failure)) == 8
        assert store.failure_counts(execution, RunFilter(target="careful"), 10) == []

    def test_facets_count_runs(self, store: SqliteStore, execution: str) -> None:
        rows = store.facets(execution)
        assert sum(row.runs for row in rows) == 20
        assert {tag for row in rows for tag in row.tags} == {"money", "n0", "n1"}
        assert sum(row.runs for row in rows if "ask_approval" in row.tools) == 10

    def test_evaluators_are_counted_by_verdict(self, store: SqliteStore, execution: str) -> None:
        by_name = {row.name: row for row in store.evaluator_counts(execution)}
        assert (by_name["approval first"].passed, by_name["approval first"].failed) == (8, 8)

    def test_the_case_table_has_a_cell_for_each_target(self, store: SqliteStore, execution: str) -> None:
        page = store.case_page(execution, RunFilter(), 2)
        assert page.total == 5
        names = [(cell.case_id, cell.target, cell.passed, cell.failed) for cell in page.cells]
        assert sorted(names[:2]) == [("refund-0", "careful", 2, 0), ("refund-0", "hasty", 0, 2)]
        rest = store.case_page(execution, RunFilter(), 10, page.next)
        assert {cell.case_id for cell in rest.cells} == {"refund-2", "refund-3", "greeting"}
        assert rest.next is None

    def test_numbers_of_all_runs(self, store: SqliteStore, execution: str) -> None:
        numbers = store.run_numbers(execution, RunFilter(status=("fail",)))
        assert [score for _, score, *_ in numbers] == [0.0] * 8


class TestLabels:
    def test_a_label_is_set_changed_listed_and_removed(self, store: SqliteStore, execution: str) -> None:
        key = store.run_page(execution, RunQuery()).runs[0].run.key
        before = store.change_token()
        store.set_label(execution, key, RunLabel(label="fail", note="too slow"))
        store.set_label(execution, key, RunLabel(label="pass", note="fine"))
        assert store.change_token() != before
        (labelled,) = store.labelled_runs()
        assert (labelled.key, labelled.label.label, labelled.label.note) == (key, "pass", "fine")
        assert store.run_label(execution, key) == labelled.label
        assert len(cases(store, execution, label="pass")) == 1
        store.set_label(execution, key, None)
        assert store.labelled_runs(execution) == []

    def test_the_state_of_a_finished_execution_changes_with_its_labels(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        execution = write_store(run)
        store = open_store(run)
        (first, *_) = store.runs(execution)
        states = [store.finished_state(execution)]
        for label in (RunLabel(label="pass"), None):
            store.set_label(execution, first.key, label)
            states.append(store.finished_state(execution))
        assert states[0] == states[2] != states[1]
        store.begin(ExecutionRow(id="running", status="running", planned=1, started_at="x"))
        assert store.finished_state("running") is None
        store.close()

    def test_a_run_that_is_not_there_cannot_be_labelled(self, store: SqliteStore, execution: str) -> None:
        with pytest.raises(StoreError, match="holds no run"):
            store.set_label(execution, "nothing", RunLabel(label="pass"))


def test_runs_of_earlier_versions_are_indexed_when_the_store_is_opened(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    run = command_in(tmp_path_factory.mktemp("old"))
    execution = write_store(run)
    store = open_store(run)
    steps = [file.stem for file in migrations.migration_files()]
    for table in ("run_index", "labels"):
        store.db.execute(f"DROP TABLE {table}")
    for index in ("runs_in_order", "runs_of_cases"):
        store.db.execute(f"DROP INDEX {index}")
    store.db.execute("ALTER TABLE attempts DROP COLUMN worker")
    store.db.execute(f"PRAGMA user_version = {steps.index('0008_run_index')}")
    store.close()
    store = open_store(run)
    assert len(cases(store, execution, text=MISSING, tool="refund")) == 4
    store.close()


class TestPlans:
    """Indexes that the lists of large executions need; which of two SQLite takes depends on the words of a query."""

    def plan(self, store: SqliteStore, act: Callable[[], object], word: str) -> str:
        statements: list[str] = []
        store.db.set_trace_callback(statements.append)
        act()
        store.db.set_trace_callback(None)
        (statement,) = [each for each in statements if word in each]
        return "; ".join(row[-1] for row in store.db.execute(f"EXPLAIN QUERY PLAN {statement}"))

    def test_a_page_in_plan_order_is_not_sorted(self, store: SqliteStore, execution: str) -> None:
        plan = self.plan(store, lambda: store.run_page(execution, RunQuery(limit=3)), "ORDER BY runs.position")
        assert "runs_in_order" in plan
        assert "TEMP B-TREE" not in plan

    def test_cases_are_grouped_in_the_order_of_an_index(self, store: SqliteStore, execution: str) -> None:
        plan = self.plan(store, lambda: store.case_page(execution, RunFilter(), 3), "count(*) OVER")
        assert "runs_of_cases" in plan
        assert "TEMP B-TREE FOR GROUP BY" not in plan

    def test_executions_count_only_runs_that_were_partly_understood(self, store: SqliteStore) -> None:
        assert "runs_unread" in self.plan(store, lambda: store.execution_page(3), "unread IS NOT NULL")

    def test_labels_are_read_before_their_runs(self, store: SqliteStore) -> None:
        assert self.plan(store, store.labelled_runs, "label, note").startswith("SCAN labels")


def test_a_store_that_is_gone_is_an_error(tmp_path_factory: pytest.TempPathFactory) -> None:
    run = command_in(tmp_path_factory.mktemp("gone"))
    write_store(run)
    store = open_store(run)
    store_file(run).unlink()
    with pytest.raises(StoreError, match="deleted or replaced"):
        store.change_token()
    store.close()
