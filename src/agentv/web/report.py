"""The report: the pages of one execution in one file, with compressed data and without any request."""

from __future__ import annotations

import os
from base64 import b64encode
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from zlib import compress

from msgspec import UNSET, json
from msgspec.structs import replace

from agentv.api.listing import execution_item, facet_counts, label_item, run_item
from agentv.api.run_diff import MeasuredRun, diff_measured, measure_run
from agentv.api.runs import translate_damage
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
from agentv.web.snippets import MAX_COPIED, command_of, copy_text, test_parts

if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future
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
LEVEL = 5
"""Higher levels take twice as long, and save three percent."""
SAMPLE_BYTES = 16_000
"""Size of the part of a block in which the words are counted."""
MIN_SHARE = 400
"""A word becomes one byte if this saves more than this part of the sample."""
MAX_PENDING = 2
"""Blocks that wait for their compression."""
_CODES = bytes(code for code in range(32) if code != ord("\n"))
MAX_REPORT_BYTES = 40_000_000
"""Size of all blocks; further runs have only their row."""


SHARED = (
    "id", "execution_id", "key", "eval_id", "case_id", "persona_id", "target", "repeat", "place", "status", "result",
    "started_at", "completed_at", "latency_ms", "cost_usd", "thread_id", "tokens_usage", "calls", "label",
)  # fmt: skip
"""Fields of a run that its row has, too; where both are equal, they are in the file once."""
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
        self._blocks: list[Future[bytes]] = []
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="agentv-report")
        """Compression does not hold the lock of the interpreter."""
        self._pending: list[tuple[str, bytes, bytes]] = []
        self._case_key: tuple[str, str | None, bytes] | None = None
        self._case = ""
        """Copy of the last case, which is often that of the next run."""
        self._pending_bytes = self._bytes = 0

    def add(self, run: StoredRun, execution_id: str, label: RunLabel | None = None) -> None:
        """Add a run; one that is damaged is listed with its damage."""
        try:
            with translate_damage(run):
                document = RunDocument(run, execution_id)
        except DamagedRunError as error:
            self._add_row(ListedRun(_row(run, None, str(error))), execution_id, None)
            return
        record = document.record
        _, failure, calls, tools, tags, words = (0, None, None, "", "", "") if record is None else index_row(0, record)
        row = _row(run, record, None)
        extras = {
            "tools": split_names(tools),
            "tags": split_names(tags),
            "words": words,
            "not_passed": [] if record is None else _not_passed(record),
        }
        item = self._add_row(ListedRun(row, failure, calls, label), execution_id, extras)
        item["block"] = self._store(run.key, *self._entry(document, item, label))
        self._keep_calls(run, execution_id)
        if record is not None:
            self._count(record)

    def _entry(self, document: RunDocument, row: dict[str, Any], label: RunLabel | None) -> tuple[bytes, bytes]:
        """Return what the pages show of a run; if all of its messages are shown, they are in the reply, apart from it.

        The client makes the window and the test of such a reply, so that it is in the file once.
        """
        run, command = document.run, command_of(document)
        head = {**document.head(), "label": label_item(label), "command": command}
        if (run.case_id, run.persona_id, run.content) != self._case_key:
            self._case_key, self._case = (run.case_id, run.persona_id, run.content), copy_text(document, "case")
        copy: dict[str, Any] = {"case": self._case}
        entry: dict[str, Any] = {
            "head": {name: value for name, value in head.items() if name not in SHARED or row[name] != value},
            "copy": copy,
        }
        if run.response is not None and len(run.response) <= MAX_COPIED and document.is_short:
            reply = document.reply()
            if b"\n" not in reply:
                copy["pytest"] = test_parts(document)
                entry["prompt"], entry["added"] = document.messages_around_reply()
                return dump_json(entry), reply
        copy["pytest"] = copy_text(document, "pytest")
        entry["window"] = document.window(0)
        return dump_json(entry), b""

    def _add_row(self, listed: ListedRun, execution_id: str, extras: dict[str, Any] | None) -> dict[str, Any]:
        extras = extras or {"tools": (), "tags": (), "words": listed.run.case_id.casefold(), "not_passed": []}
        row = listed.run
        item = {**run_item(row, execution_id, listed), **extras, "block": None}
        self._runs.append(item)
        status = row.verdict or ("error" if row.damage else "unfinished")
        self._facets.append(
            FacetRow(row.eval_id, row.target, row.persona_id, status, extras["tools"], extras["tags"], 1)
        )
        return item

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
                diff = dump_json(diff_measured(runs, (eval_id, case_id), [execution_id]))
                name = f"repeats {number}"
                names = {"eval_id": eval_id, "case_id": case_id, "target": target, "persona_id": persona_id}
                places.append({**names, "name": name, "block": self._store(name, diff)})
        return places

    def _count(self, record: ResultRecord) -> None:
        counters = {"pass": "passed", "fail": "failed", "error": "errors", "skipped": "skipped"}
        for result in record.evaluators:
            counts = self._evaluators.setdefault((result.name, result.type), dict.fromkeys(counters.values(), 0))
            counts[counters[result.status]] += 1

    def _store(self, name: str, entry: bytes, reply: bytes = b"") -> int | None:
        """Put an entry into the current block; return its number, or `None` if the report is full."""
        if self._bytes > MAX_REPORT_BYTES:
            return None
        number = len(self._blocks)
        self._pending.append((name, entry, reply))
        self._pending_bytes += len(entry) + len(reply)
        if self._pending_bytes > BLOCK_BYTES:
            self._flush()
        return number

    def _flush(self) -> None:
        """Compress the lines of a block: the names of its entries, the entries, and their replies."""
        if self._pending:
            names, entries, replies = zip(*self._pending, strict=True)
            data = encode_words(b"\n".join([dump_json(names), *entries, *replies]))
            self._blocks.append(self._threads.submit(pack, data))
            if len(self._blocks) > MAX_PENDING:
                self._bytes += len(self._blocks[-1 - MAX_PENDING].result())
            self._pending, self._pending_bytes = [], 0

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
            "shared": SHARED,
        }
        blocks = [("agentv-index", pack(encode_words(dump_json(index))))]
        blocks += [(f"agentv-block-{number}", block.result()) for number, block in enumerate(self._blocks)]
        self._threads.shutdown()
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


class _Codes(dict[bytes, bytes]):
    """Codes of words; any other word stays, with the space before it."""

    def __missing__(self, word: bytes) -> bytes:
        plain = self[word] = b" " + word
        return plain


def encode_words(data: bytes) -> bytes:
    """Return JSON lines in which frequent words are single bytes that JSON never has; the first line names them.

    Deflate takes longer codes for words, and longer to find them.
    """
    if len(data) != len(data.translate(None, _CODES)):
        return b"[]\n" + data
    counts = Counter(data[-SAMPLE_BYTES:].split(b" ")[1:-1])
    gains = [(len(word) * times, word) for word, times in counts.items()]
    frequent = sorted([each for each in gains if each[0] > SAMPLE_BYTES // MIN_SHARE], reverse=True)[: len(_CODES)]
    codes = _Codes({word: bytes([code]) for code, (_, word) in zip(_CODES, frequent, strict=False)})
    first, *others = data.split(b" ")
    words = [f" {word.decode(errors='replace')}" for word in codes]
    return b"".join([dump_json(words), b"\n", first, *map(codes.__getitem__, others)])


def pack(data: bytes) -> bytes:
    """Return data as compressed text, whose characters mean nothing in HTML."""
    return b64encode(compress(data, LEVEL))


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
