"""The report: the pages of one execution in one file, with compressed data and without any request."""

from __future__ import annotations

import os
from base64 import b64encode
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from zlib import compress

from msgspec import UNSET, json
from msgspec.structs import replace

from agentv.api.listing import execution_item, facet_counts, label_item, run_item
from agentv.api.run_diff import MeasuredRun, diff_measured, measure_run
from agentv.api.runs import decode_record, translate_damage
from agentv.api.stored_traces import StoredTraces
from agentv.errors import DamagedRunError
from agentv.jsonio import dump_json
from agentv.model.comparison import LeftOutRun
from agentv.model.conversation import Message, TokensUsage
from agentv.model.events import ExecutionFinished, RunFinished
from agentv.model.listing import FacetRow, ListedRun
from agentv.model.request import Case
from agentv.model.stored import ExecutionRow, StoredRun
from agentv.redaction import CASE_NAMES, RECORD_NAMES
from agentv.reports.files import open_private, write_all
from agentv.stores.queries import DAMAGED_ROW
from agentv.stores.run_index import index_row, split_names
from agentv.web.assets import frame_html, joined_script, style_sheet
from agentv.web.document import RunDocument
from agentv.web.snippets import command_of, copy_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from agentv.api.run_diff import FollowTrace
    from agentv.model.events import Event
    from agentv.model.listing import RunLabel
    from agentv.model.results import ResultRecord
    from agentv.model.stored import RunRow
    from agentv.protocols import Store
    from agentv.redaction import Redactor

    RepeatKey = tuple[str, str, str, str | None]
    """Eval, case, target and persona."""

BLOCK_BYTES = 256_000
"""Size of the runs that are compressed together; a page decompresses the block of the run that it shows."""
MAX_REPORT_BYTES = 40_000_000
"""Size of all blocks; further runs have only their row."""


MAX_ALIGNED_CALLS = 50_000
"""Calls of all runs up to which repetitions are aligned; the calls of further runs are not kept for it."""
NOT_ALIGNED = "this report is too large to align it; `agentv view` does"


class ReportBuilder:
    """Collects the runs of one execution; memory grows with the size of the file."""

    def __init__(self, follow: FollowTrace | None = None) -> None:
        self._follow = follow
        self._repeats: dict[RepeatKey, list[MeasuredRun | LeftOutRun]] = {}
        self._kept_calls = 0
        self._runs: list[dict[str, Any]] = []
        self._facets: list[FacetRow] = []
        self._evaluators: dict[tuple[str, str], dict[str, int]] = {}
        self._blocks: list[bytes] = []
        self._pending: dict[str, Any] = {}
        self._pending_bytes = self._bytes = 0

    def add(self, run: StoredRun, execution_id: str, label: RunLabel | None = None) -> None:
        """Add a run; one that is damaged is listed with its damage."""
        try:
            with translate_damage(run):
                record = None if run.line is None else decode_record(run.line)
                document = RunDocument(run, execution_id)
        except DamagedRunError as error:
            self._add_row(ListedRun(_row(run, None, str(error))), execution_id, None, block=None)
            return
        _, failure, calls, tools, tags, words = (0, None, None, "", "", "") if record is None else index_row(0, record)
        row = _row(run, record, None)
        extras = {
            "tools": split_names(tools),
            "tags": split_names(tags),
            "words": words,
            "not_passed": [] if record is None else _not_passed(record),
        }
        entry = {
            "head": {**document.head(), "label": label_item(label), "command": command_of(document)},
            "window": document.window(0),
            "copy": {form: copy_text(document, form) for form in ("case", "pytest", "command")},
        }
        block = self._store(run.key, entry)
        self._keep_calls(run, execution_id)
        self._add_row(ListedRun(row, failure, calls, label), execution_id, extras, block=block)
        if record is not None:
            self._count(record)

    def _add_row(
        self, listed: ListedRun, execution_id: str, extras: dict[str, Any] | None, *, block: int | None
    ) -> None:
        extras = extras or {"tools": (), "tags": (), "words": listed.run.case_id.casefold(), "not_passed": []}
        row = listed.run
        self._runs.append({**run_item(row, execution_id, listed), **extras, "block": block})
        status = row.verdict or ("error" if row.damage else "unfinished")
        self._facets.append(
            FacetRow(row.eval_id, row.target, row.persona_id, status, extras["tools"], extras["tags"], 1)
        )

    def _keep_calls(self, run: StoredRun, execution_id: str) -> None:
        """Keep the calls of a run until all repetitions of its case are there."""
        found: MeasuredRun | LeftOutRun
        if self._kept_calls > MAX_ALIGNED_CALLS:
            found = LeftOutRun(id=run.own_id or f"{execution_id}-{run.key}", reason=NOT_ALIGNED)
        else:
            found = measure_run(run, execution_id, self._follow)
        if isinstance(found, MeasuredRun):
            self._kept_calls += len(found.calls)
        self._repeats.setdefault((run.eval_id, run.case_id, run.target, run.persona_id), []).append(found)

    def _align(self, execution_id: str) -> list[dict[str, Any]]:
        """Put the aligned repetitions of each case into blocks; return where they are."""
        places = []
        for number, ((eval_id, case_id, target, persona_id), runs) in enumerate(self._repeats.items()):
            if len(runs) > 1:
                diff = json.decode(json.encode(diff_measured(runs, (eval_id, case_id), [execution_id])))
                name = f"repeats {number}"
                names = {"eval_id": eval_id, "case_id": case_id, "target": target, "persona_id": persona_id}
                places.append({**names, "name": name, "block": self._store(name, {**diff, "persona_id": persona_id})})
        return places

    def _count(self, record: ResultRecord) -> None:
        counters = {"pass": "passed", "fail": "failed", "error": "errors", "skipped": "skipped"}
        for result in record.evaluators:
            counts = self._evaluators.setdefault((result.name, result.type), dict.fromkeys(counters.values(), 0))
            counts[counters[result.status]] += 1

    def _store(self, key: str, entry: dict[str, Any]) -> int | None:
        """Put a run into the current block; return its number, or `None` if the report is full."""
        if self._bytes > MAX_REPORT_BYTES:
            return None
        number = len(self._blocks)
        self._pending[key] = entry
        self._pending_bytes += len(dump_json(entry))
        if self._pending_bytes > BLOCK_BYTES:
            self._flush()
        return number

    def _flush(self) -> None:
        if self._pending:
            self._blocks.append(_pack(self._pending))
            self._bytes += len(self._blocks[-1])
            self._pending, self._pending_bytes = {}, 0

    def html(self, execution: ExecutionRow) -> bytes:
        """Return the page."""
        repeats = self._align(execution.id)
        self._flush()
        self._runs.sort(key=lambda run: run["position"])
        names = [{"name": name, "type": type_, **counts} for (name, type_), counts in self._evaluators.items()]
        index = {
            "execution": {**execution_item(execution), "summary": execution.summary, "workers": [], "problem": None},
            "runs": self._runs,
            "facets": facet_counts(self._facets),
            "evaluators": names,
            "repeats": repeats,
        }
        blocks = [("agentv-index", _pack(index))]
        blocks += [(f"agentv-block-{number}", block) for number, block in enumerate(self._blocks)]
        return _page(execution, blocks)


def _page(execution: ExecutionRow, blocks: Iterable[tuple[str, bytes]]) -> bytes:
    script, style = f"\n{joined_script()}\n", f"\n{style_sheet()}\n"
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    data = "".join(f'<script type="text/plain" id="{name}">{block.decode()}</script>\n' for name, block in blocks)
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<style>{style}</style>"
    )
    body = f'{data}<script type="module">{script}</script>\n'
    return frame_html(f"agentv report {execution.id}", head, body).encode()


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _pack(value: Any) -> bytes:
    return b64encode(compress(dump_json(value), 9))


def _not_passed(record: ResultRecord) -> list[str]:
    return [result.name for result in record.evaluators if result.status in ("fail", "error")]


def _row(run: StoredRun, record: ResultRecord | None, damage: str | None) -> RunRow:
    """Return a run as lists show it."""
    row = DAMAGED_ROW._replace(
        key=run.key,
        position=run.position,
        eval_id=run.eval_id,
        case_id=run.case_id,
        persona_id=run.persona_id,
        target=run.target,
        repeat=run.repeat,
        place=run.place,
        status=run.status,
        rounds=run.rounds,
        started_at=run.started_at,
        own_id=run.own_id,
        damage=damage,
    )
    if record is None:
        return row
    usage = record.tokens_usage or TokensUsage()
    return row._replace(
        verdict=record.status,
        score=record.score,
        latency_ms=record.latency_ms,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        cost_usd=record.cost_usd,
        thread_id=record.thread_id,
        completed_at=record.completed_at,
        unread=record.unread or None,
    )


def build_report(store: Store, execution: ExecutionRow) -> bytes:
    """Return the report of a stored execution."""
    labels = {labelled.key: labelled.label for labelled in store.labelled_runs(execution.id)}
    builder = ReportBuilder(StoredTraces(store, execution).follow)
    for run in store.stored_runs(execution.id):
        if not run.superseded:
            builder.add(run, execution.id, labels.get(run.key))
    return builder.html(execution)


class HtmlFile:
    """Reporter that writes the report at the end of an execution."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self.name = str(path)
        self._redactor = redactor
        self._builder = ReportBuilder()
        # Opened before anything runs: a file that cannot be written must not waste an execution.
        self._file, _ = open_private(path)

    def handle(self, event: Event) -> None:
        """Add a result; write the file at the end."""
        if isinstance(event, RunFinished):
            self._builder.add(self._stored_run(event), event.record.execution_id)
        elif isinstance(event, ExecutionFinished):
            try:
                write_all(self._file, self._builder.html(_execution(event)))
            finally:
                with suppress(OSError):
                    os.close(self._file)

    def _stored_run(self, event: RunFinished) -> StoredRun:
        """Return the run as the store would hold it, without secrets."""
        record, redactor = event.record, self._redactor
        plain = replace(record, messages=UNSET, trace=UNSET)
        is_written = event.line is not None and plain == record
        line = event.line if is_written else redactor.line(dump_json(plain), RECORD_NAMES)
        response = replace(event.response, raw_response=None, reasoning=None)
        content = event.content or dump_json([_case(record), []])
        return StoredRun(
            key=record.run_id.rpartition("-")[2],
            position=event.order,
            eval_id=record.eval_id,
            case_id=record.case_id,
            persona_id=record.persona_id or None,
            target=record.target,
            repeat=record.repeat,
            place=event.place,
            status="error" if record.status == "error" else "completed",
            rounds=1,
            started_at=record.started_at,
            created_at=record.started_at,
            updated_at=record.completed_at,
            superseded=False,
            content=redactor.line(content, CASE_NAMES),
            target_settings=b"{}",
            line=line,
            response=redactor.line(dump_json(response)),
            sides=redactor.line(dump_json(event.sides)) if any(event.sides) else None,
        )


def _case(record: ResultRecord) -> Case:
    """Return what a record says of its case, for results that were read from a file."""
    messages = (Message(role="user", content=record.input),) if record.input else ()
    return Case(id=record.case_id, input_messages=messages, tags=record.tags or ())


def _execution(event: ExecutionFinished) -> ExecutionRow:
    summary = event.summary
    return ExecutionRow(
        id=summary.execution_id,
        status=summary.status,
        planned=summary.planned,
        runs=summary.runs,
        passed=summary.passed,
        failed=summary.failed,
        errors=summary.errors,
        started_at=summary.started_at,
        completed_at=summary.completed_at,
        summary=json.decode(dump_json(summary)),
    )
