"""Exports of Langfuse and LangSmith in their several shapes."""

import csv
import json
from pathlib import Path
from typing import Any

from tests.support.trace_files import CALLS, langfuse, langsmith
from tests.support.traces import calls, read_one, read_traces, write_lines


def _table(path: Path) -> Path:
    rows = langfuse()[0]["observations"]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, columns)
        writer.writeheader()
        for row in rows:
            writer.writerow({key: json.dumps(cell) if isinstance(cell, dict) else cell for key, cell in row.items()})
    return path


def test_a_table_of_langfuse_is_read(tmp_path: Path) -> None:
    path = _table(tmp_path / "observations.csv")
    (session,), coverage = read_traces(tmp_path)
    assert (session.format, calls(session), coverage.skipped_records) == ("langfuse", CALLS, 0)
    path.write_text(f"{path.read_text()}x,y\n")
    (session,), coverage = read_traces(path)
    assert session.response.unread
    assert coverage.skipped[0].place.startswith(f"{path}:")
    path.write_bytes(path.read_bytes()[:200] + b"\0\xff" + b'"' * 3)
    assert read_traces(path)[1].skipped_records


def test_traces_and_observations_of_langfuse_in_files_of_their_own_are_one_session(tmp_path: Path) -> None:
    (trace,) = langfuse()
    rows = trace.pop("observations")
    write_lines(tmp_path / "traces.jsonl", [{**trace, "bookmarked": False}])
    write_lines(tmp_path / "observations.jsonl", rows)
    (session,), coverage = read_traces(tmp_path)
    assert (session.id, calls(session), coverage.skipped_records) == ("s1", CALLS, 0)


def _langfuse_input(tmp_path: Path, **details: int) -> tuple[int | None, int | None]:
    (trace,) = langfuse()
    for row in trace["observations"]:
        if "usageDetails" in row:
            row["usageDetails"] = details
    usage = read_one(write_lines(tmp_path / "t.jsonl", [trace])).response.tokens_usage
    assert usage is not None
    return usage.input_tokens, usage.cache_read_tokens


def test_cached_input_of_langfuse_is_a_part_of_the_input(tmp_path: Path) -> None:
    assert _langfuse_input(tmp_path, input=60, input_cached_tokens=40, output=10, total=110) == (200, 80)
    assert _langfuse_input(tmp_path, input=100, input_cached_tokens=40, output=10, total=110) == (200, 80)
    assert _langfuse_input(tmp_path, input=60, cache_read_input_tokens=40, output=10) == (200, 80)


def test_runs_of_langsmith_may_have_json_texts(tmp_path: Path) -> None:
    def text(run: dict[str, Any]) -> dict[str, Any]:
        return {**run, **{key: json.dumps(run[key]) for key in ("inputs", "outputs", "extra")}}

    session = read_one(write_lines(tmp_path / "runs.jsonl", list(map(text, langsmith()))))
    assert (session.id, calls(session)) == ("s1", CALLS)
