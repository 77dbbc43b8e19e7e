"""Queries of lists and charts over the runs of an execution, and labels of people."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.errors import StoreError
from agentv.jsonio import dump_json
from agentv.model.listing import (
    CaseCell,
    CasePage,
    EvaluatorCounts,
    FacetRow,
    FailureCount,
    LabelledRun,
    ListedRun,
    RunCursor,
    RunFilter,
    RunLabel,
    RunNumbers,
    RunPage,
)
from agentv.model.stored import DAMAGED
from agentv.stores.database import blocks, placeholders, timestamp
from agentv.stores.queries import EXECUTIONS, ROW_COLUMNS, StoreQueries, decode_execution, decode_run_row
from agentv.stores.run_index import join_names, split_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.model.listing import RunQuery
    from agentv.model.stored import ExecutionRow

SEARCH_S = 0.2
"""Time that one page of a search in transcripts may take."""
STATUS = "CASE WHEN runs.status IN ('completed', 'error') THEN coalesce(runs.verdict, 'error') ELSE 'unfinished' END"
"""Verdict of a run as lists name it."""
LOWEST = -1e308
SORT_KEYS = {
    "position": "runs.position",
    "case": "runs.case_id",
    "target": "runs.target",
    "status": STATUS,
    "score": f"coalesce(runs.score, {LOWEST})",
    "latency": f"coalesce(runs.latency_ms, {LOWEST})",
    "tokens": "coalesce(runs.total_tokens, -1)",
    "cost": f"coalesce(runs.cost_usd, {LOWEST})",
}
FROM = "runs LEFT JOIN run_index ON run_index.run = runs.seq LEFT JOIN labels ON labels.run = runs.seq"
LISTED = f"failure, calls, label, note, labels.updated_at, {ROW_COLUMNS.replace('checksum', 'runs.checksum')}"
FINISHED = "runs.status IN ('completed', 'error')"
LIVE_SUMS = f"""
    SELECT eval_id, count(*) FILTER (WHERE verdict = 'pass'), count(*) FILTER (WHERE verdict = 'fail'),
        count(*) FILTER (WHERE verdict = 'error'), CAST(sum(total_tokens) AS bigint), sum(cost_usd)
    FROM runs WHERE execution = ? AND superseded = 0 AND {FINISHED} GROUP BY eval_id
"""  # noqa: S608 - names of columns, ours

NOT_PASSED_BY = """
    EXISTS (SELECT 1 FROM evaluator_results
        WHERE run = runs.seq AND name = ? AND evaluator_results.status IN ('fail', 'error'))
"""
FLAKY = f"""
    (runs.eval_id, runs.case_id, runs.target, coalesce(runs.persona_id, '')) IN (
        SELECT eval_id, case_id, target, coalesce(persona_id, '') FROM runs
        WHERE execution = ? AND superseded = 0 {{some}}
        GROUP BY eval_id, case_id, target, persona_id
        HAVING count(CASE WHEN verdict = 'pass' AND {FINISHED} THEN 1 END) > 0
            AND count(CASE WHEN verdict = 'fail' AND {FINISHED} THEN 1 END) > 0
    )
"""  # noqa: S608 - names of columns, ours


class ListingQueries(StoreQueries):
    """Lists of a store, for the viewer."""

    def execution_page(self, limit: int, before: int | None = None) -> list[ExecutionRow]:
        """Return executions with their summaries, newest first; those with a smaller `seq` than `before`."""
        where, values = ("", []) if before is None else ("WHERE seq < ?", [before])
        query = f"{EXECUTIONS} {where} ORDER BY seq DESC LIMIT ?"
        with self.translate_errors():
            rows = [decode_execution(row) for row in self.db.execute(query, [*values, limit]).fetchall()]
            return [self.with_live_summary(self.with_counts(row)) for row in rows]

    def with_live_summary(self, row: ExecutionRow) -> ExecutionRow:
        """Return an execution without a summary with one of the sums that are known so far."""
        if row.summary is not None or row.status == DAMAGED:
            return row
        evals, tokens, costs = {}, [], []
        for eval_id, passed, failed, errors, total, cost in self.db.execute(LIVE_SUMS, (row.seq,)):
            evals[str(eval_id)] = {
                "runs": passed + failed + errors,
                "passed": passed,
                "failed": failed,
                "errors": errors,
            }
            tokens += [] if total is None else [total]
            costs += [] if cost is None else [cost]
        summary = {
            "evals": evals,
            "tokens_usage": {"total_tokens": sum(tokens)} if tokens else None,
            "cost_usd": sum(costs) if costs else None,
        }
        return replace(row, summary=summary)

    def run_page(self, execution_id: str, query: RunQuery, *, count: bool = True) -> RunPage:
        """Return a page of the runs of an execution; `count` counts all that meet the conditions."""
        where, values = self._conditions(execution_id, query.where)
        key = SORT_KEYS[query.sort]
        order, relation = ("DESC", "<") if query.descending else ("ASC", ">")
        rest, after = "", []
        if query.after is not None:
            rest, after = f" AND ({key}, runs.seq) {relation} (?, ?)", [*query.after]
        tables = _tables(query.where)
        is_transcript_search = bool(query.where.transcripts and query.where.text)
        # A search that looks at every run counts what it finds; others stop at the end of the page.
        counts_all = count and not rest and not is_transcript_search and bool(query.where.text or query.where.flaky)
        columns = f"{key}, runs.seq{', count(*) OVER ()' if counts_all else ''}"
        found = f"SELECT {columns} FROM {tables} WHERE {where}{rest} ORDER BY {key} {order}, runs.seq {order}"  # noqa: S608 - names of columns, ours
        with self.translate_errors():
            if is_transcript_search:
                return self._search_transcripts(found, [*values, *after], query)
            rows = self.db.execute(f"{found} LIMIT ?", [*values, *after, query.limit + 1]).fetchall()
            total = None
            if counts_all:
                total = rows[0][2] if rows else 0
            elif count:
                counted = f"SELECT count(*) FROM {tables} WHERE {where}"  # noqa: S608 - as above
                total = self.db.execute(counted, values).fetchone()[0]
            runs = self._listed_runs([row[1] for row in rows[: query.limit]])
        end = RunCursor(*rows[query.limit - 1][:2]) if len(rows) > query.limit else None
        return RunPage(runs, end, total)

    def listed_runs(self, execution_id: str, keys: Sequence[str]) -> dict[str, ListedRun]:
        """Return runs of an execution as lists show them, by their keys."""
        execution = self.execution_seq(execution_id)
        with self.translate_errors():
            seqs = [
                row[0]
                for block in blocks(list(keys))
                for row in self.db.execute(
                    f"SELECT seq FROM runs WHERE execution = ? AND key IN {placeholders(len(block))}",  # noqa: S608 - placeholders
                    (execution, *block),
                ).fetchall()
            ]
            return {listed.run.key: listed for listed in self._listed_runs(seqs)}

    def _listed_runs(self, seqs: list[int]) -> list[ListedRun]:
        """Return the runs with these row numbers: only those of a page are read as a whole."""
        rows: dict[int, ListedRun] = {}
        for block in blocks(seqs):
            query = f"SELECT runs.seq, {LISTED} FROM {FROM} WHERE runs.seq IN {placeholders(len(block))}"  # noqa: S608 - names of columns, ours
            rows |= {seq: _listed_run(row) for seq, *row in self.db.execute(query, block)}
        return [rows[seq] for seq in seqs if seq in rows]

    def _search_transcripts(self, found: str, values: list[Any], query: RunQuery) -> RunPage:
        """Return the next runs whose reply or searchable text has this text, as far as the time allows."""
        text = query.where.text
        needle = dump_json(text)[1:-1].decode().casefold()
        deadline = monotonic() + SEARCH_S
        seqs: list[int] = []
        for cursor in self.db.execute(found, values):
            seq = cursor[1]
            row = self.db.execute(
                "SELECT words, response FROM run_index LEFT JOIN payloads ON payloads.run = run_index.run"
                " WHERE run_index.run = ?",
                (seq,),
            ).fetchone()
            if row and (text.casefold() in row[0] or needle in (row[1] or b"").decode(errors="replace").casefold()):
                seqs.append(seq)
            is_late = monotonic() > deadline
            if len(seqs) == query.limit or is_late:
                return RunPage(self._listed_runs(seqs), RunCursor(*cursor), None, is_partial=is_late)
        return RunPage(self._listed_runs(seqs), None, None)

    def case_page(self, execution_id: str, where: RunFilter, limit: int, after: int | None = None) -> CasePage:
        """Return a page of cases in plan order, with the outcomes of each target and persona."""
        conditions, values = self._conditions(execution_id, where)
        cases = f"""
            SELECT eval_id, case_id, min(position) AS first, count(*) OVER () FROM {_tables(where)} WHERE {conditions}
            GROUP BY eval_id, case_id HAVING min(position) > ? ORDER BY first LIMIT ?
        """  # noqa: S608 - names of columns, ours
        cells = f"""
            SELECT eval_id, case_id, target, persona_id,
                count(*) FILTER (WHERE verdict = 'pass'), count(*) FILTER (WHERE verdict = 'fail'),
                count(*) FILTER (WHERE verdict = 'error'), count(*) - count(verdict),
                avg(score), avg(latency_ms), sum(cost_usd),
                coalesce(min(CASE WHEN verdict <> 'pass' THEN position END), min(position))
            FROM (
                SELECT position, eval_id, case_id, target, persona_id,
                    CASE WHEN {FINISHED} THEN coalesce(verdict, 'error') END AS verdict,
                    CASE WHEN {FINISHED} THEN score END AS score, latency_ms, cost_usd
                FROM {_tables(where)} WHERE {{conditions}} AND {{some}}
            ) AS chosen
            GROUP BY eval_id, case_id, target, persona_id
        """  # noqa: S608 - names of columns, ours
        with self.translate_errors():
            names = self.db.execute(cases, [*values, -1 if after is None else after, limit + 1]).fetchall()
            shown = names[:limit]
            pairs = [part for name in shown for part in name[:2]]
            some = f"(eval_id, case_id) IN (VALUES {', '.join(['(?, ?)'] * len(shown))})"
            conditions, values = self._conditions(execution_id, where, some, pairs)
            query = cells.format(conditions=conditions, some=some)
            rows = self.db.execute(query, [*values, *pairs]).fetchall() if shown else []
            keys = self._keys_at(values[0], [row[-1] for row in rows])
        order = {tuple(name[:2]): at for at, name in enumerate(shown)}
        found = sorted((CaseCell._make([*row[:-1], keys[row[-1]]]) for row in rows), key=lambda cell: order[cell[:2]])
        total = names[0][3] if names else 0
        return CasePage(found, shown[-1][2] if len(names) > limit else None, total if after is None else None)

    def _keys_at(self, execution: int, positions: list[int]) -> dict[int, str]:
        """Return the keys of the runs at these positions of a plan."""
        query = f"""
            SELECT position, key FROM runs
            WHERE execution = ? AND superseded = 0 AND position IN {placeholders(len(positions))}
        """  # noqa: S608 - placeholders
        return dict(self.db.execute(query, [execution, *positions]).fetchall()) if positions else {}

    def finished_state(self, execution_id: str) -> str | None:
        """Return a text that changes with the runs and the labels of a finished execution; `None` if it is not."""
        query = f"""
            SELECT completed_at, seq, checksum,
                (SELECT count(*) FROM runs WHERE execution = executions.seq AND superseded = 0),
                (SELECT count(*) || ' ' || coalesce(max(labels.updated_at), '')
                    FROM labels {self.ordered_join} runs ON run = runs.seq WHERE execution = executions.seq)
            FROM executions WHERE seq = ?
        """  # noqa: S608 - a kind of join
        with self.translate_errors():
            row = self.db.execute(query, (self.execution_seq(execution_id),)).fetchone()
        return None if row is None or row[0] is None else repr(tuple(row))

    def facets(self, execution_id: str) -> list[FacetRow]:
        """Return the numbers of runs by eval, target, persona, verdict, tools and tags."""
        query = f"""
            SELECT coalesce(tags, ''), coalesce(tools, ''), {STATUS}, eval_id, target, persona_id, count(*)
            FROM runs LEFT JOIN run_index ON run = seq WHERE execution = ? AND superseded = 0 GROUP BY 1, 2, 3, 4, 5, 6
        """  # noqa: S608 - names of columns, ours
        with self.translate_errors():
            rows = self.db.execute(query, (self.execution_seq(execution_id),)).fetchall()
        return [
            FacetRow(eval_id, target, persona_id, status, split_names(tools), split_names(tags), runs)
            for tags, tools, status, eval_id, target, persona_id, runs in rows
        ]

    def evaluator_counts(self, execution_id: str) -> list[EvaluatorCounts]:
        """Return the numbers of results of each evaluator."""
        counts = ", ".join(
            f"count(*) FILTER (WHERE evaluator_results.status = '{status}')"
            for status in ("pass", "fail", "error", "skipped")
        )
        query = f"""
            SELECT name, type, {counts} FROM runs {self.ordered_join} evaluator_results ON run = seq
            WHERE execution = ? AND superseded = 0 AND {FINISHED}
            GROUP BY name, type ORDER BY min(evaluator_results.position)
        """  # noqa: S608 - names of columns, ours
        with self.translate_errors():
            rows = self.db.execute(query, (self.execution_seq(execution_id),)).fetchall()
        return [EvaluatorCounts(*row) for row in rows]

    def failure_counts(self, execution_id: str, where: RunFilter, limit: int) -> list[FailureCount]:
        """Return the most frequent reasons of failures among the runs that meet the conditions."""
        conditions, values = self._conditions(execution_id, where)
        query = f"""
            SELECT failure, verdict, count(*), min(position) FROM {_tables(where, "run_index")}
            WHERE {conditions} AND failure IS NOT NULL AND {FINISHED}
            GROUP BY failure, verdict ORDER BY 3 DESC, 4 LIMIT ?
        """  # noqa: S608 - names of columns, ours
        with self.translate_errors():
            rows = self.db.execute(query, [*values, limit]).fetchall()
            keys = self._keys_at(values[0], [row[-1] for row in rows])
        return [FailureCount._make([*row[:-1], keys[row[-1]]]) for row in rows]

    def run_numbers(self, execution_id: str, where: RunFilter) -> list[RunNumbers]:
        """Return the numbers of the runs that meet the conditions, in no order."""
        conditions, values = self._conditions(execution_id, where)
        query = f"SELECT {STATUS}, score, latency_ms, cost_usd, total_tokens FROM {_tables(where)} WHERE {conditions}"  # noqa: S608 - names of columns, ours
        with self.translate_errors():
            return list(self.db.execute(query, values))

    def _conditions(
        self, execution_id: str, where: RunFilter, some: str = "", some_values: Sequence[str] = ()
    ) -> tuple[str, list[Any]]:
        """Return the SQL of the conditions, and their values; `some` is one on the cases that are looked at."""
        execution = self.execution_seq(execution_id)
        parts = ["runs.execution = ? AND runs.superseded = 0"]
        values: list[Any] = [execution]
        if where.status:
            parts.append(f"{STATUS} IN ({', '.join('?' * len(where.status))})")
            values += where.status
        conditions = (
            ("runs.eval_id = ?", where.eval_id),
            ("runs.case_id = ?", where.case_id),
            ("runs.target = ?", where.target),
            ("coalesce(runs.persona_id, '') = ?", where.persona),
            (self.contains.format(column="tools"), where.tool and join_names((where.tool,))),
            (self.contains.format(column="tags"), where.tag and join_names((where.tag,))),
            (self.contains.format(column="words"), None if where.transcripts else where.text.casefold() or None),
            ("failure = ?", where.failure),
            ("label = ?", where.label),
            (NOT_PASSED_BY, where.evaluator),
        )
        given = [(sql, value) for sql, value in conditions if value is not None]
        parts += [sql for sql, _ in given]
        values += [value for _, value in given]
        if where.flaky:
            parts.append(FLAKY.format(some=f"AND {some}" if some else ""))
            values += [execution, *some_values]
        return " AND ".join(parts), values

    def run_label(self, execution_id: str, key: str) -> RunLabel | None:
        """Return the label of a run."""
        query = (
            "SELECT label, note, labels.updated_at FROM labels JOIN runs ON run = seq WHERE execution = ? AND key = ?"
        )
        with self.translate_errors():
            row = self.db.execute(query, (self.execution_seq(execution_id), key)).fetchone()
        return None if row is None else _label(*row)

    def set_label(self, execution_id: str, key: str, label: RunLabel | None) -> None:
        """Set or remove the label of a run."""
        execution = self.execution_seq(execution_id)

        def write() -> None:
            row = self.db.execute("SELECT seq FROM runs WHERE execution = ? AND key = ?", (execution, key)).fetchone()
            if row is None:
                msg = f"{self.name} holds no run {execution_id}-{key}"
                raise StoreError(msg)
            self.db.execute("DELETE FROM labels WHERE run = ?", row)
            if label is not None:
                values = (row[0], label.label, label.note, timestamp())
                self.db.execute("INSERT INTO labels (run, label, note, updated_at) VALUES (?, ?, ?, ?)", values)

        self.in_transaction(write)

    def labelled_runs(self, execution_id: str | None = None) -> list[LabelledRun]:
        """Return the labels of all executions, or of one, in the order of their runs."""
        where, values = "superseded = 0", []
        if execution_id is not None:
            where, values = f"{where} AND execution = ?", [self.execution_seq(execution_id)]
        query = f"""
            SELECT executions.id, key, label, note, labels.updated_at
            FROM labels {self.ordered_join} runs ON run = runs.seq JOIN executions ON executions.seq = execution
            WHERE {where} ORDER BY execution, position
        """  # noqa: S608 - names of columns, ours
        with self.translate_errors():
            rows = self.db.execute(query, values).fetchall()
        return [LabelledRun(row[0], row[1], _label(*row[2:])) for row in rows]


def _tables(where: RunFilter, *needed: str) -> str:
    """Return the tables that the conditions need: a join that is not needed doubles the time of a query."""
    index = "run_index" in needed or where.tool or where.tag or where.failure or where.text
    tables = "runs LEFT JOIN run_index ON run_index.run = runs.seq" if index else "runs"
    return f"{tables} LEFT JOIN labels ON labels.run = runs.seq" if where.label else tables


def _listed_run(row: Sequence[Any]) -> ListedRun:
    failure, calls, label, note, updated_at = row[:5]
    run = decode_run_row(tuple(row[5:]))
    return ListedRun(run, failure, calls, None if label is None else _label(label, note, updated_at))


def _label(label: Any, note: Any, updated_at: Any) -> RunLabel:
    return RunLabel(label="pass" if label == "pass" else "fail", note=str(note), updated_at=str(updated_at))
