"""`trace_ref` from the reply to the verdict, the result file, the store, and back by `rescore`."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Command, Json, calls, cases, execution_ids, mocked

EVENTS = [{"type": "tool_call", "name": "search", "input": {"q": 1}}, {"type": "tool_result", "output": "3 hits"}]
REPLY = {"text": "x", "trace_ref": "trace.json"}


def write(run: Command, reply: Json = REPLY, events: Any = EVENTS, **settings: Any) -> None:
    run.write("trace.json", json.dumps(events))
    run.write("a.eval.yaml", {"targets": [mocked(reply, **settings)], "cases": cases("a")})


def evaluate(run: Command, *options: str) -> tuple[int, Json]:
    code = run("eval", "a.eval.yaml", "--out", "results.jsonl", *options).code
    (record,) = run.records()
    return code, record


def stored_reply(run: Command) -> Json:
    shown = json.loads(run("runs", "show", "last", "--case", "a", "--json").out)
    return dict(shown["response"])


def rescore(run: Command, *options: str) -> tuple[int, Json]:
    code = run("rescore", "--out", "rescored.jsonl", *options).code
    (record,) = run.records("rescored.jsonl")
    return code, record


def test_resolved_events_are_in_the_result_that_asks_for_the_trace(run: Command) -> None:
    write(run)
    code, record = evaluate(run, "--include-trace")
    assert (code, record["trace"]) == (0, EVENTS)
    assert evaluate(run)[1].get("trace") is None


def test_full_stores_the_events_and_needs_no_file_any_more(run: Command) -> None:
    write(run)
    _, first = evaluate(run, "--persist", "full")
    reply = stored_reply(run)
    assert (reply["trace"], reply["trace_ref"]) == (EVENTS, "trace.json")
    (run.folder / "trace.json").unlink()
    code, again = rescore(run)
    assert (code, again["evaluators"]) == (0, first["evaluators"])


def test_messages_stores_the_hash_and_reads_the_file_again(run: Command) -> None:
    write(run)
    _, first = evaluate(run)
    reply = stored_reply(run)
    assert "trace" not in reply
    assert reply["trace_hash"].startswith("sha256:")
    code, again = rescore(run)
    assert (code, again["evaluators"], again["trace_summary"]) == (0, first["evaluators"], first["trace_summary"])
    assert rescore(run)[0] == 0, "an execution that was rescored itself"


def test_the_file_is_found_from_another_folder_too(run: Command) -> None:
    write(run)
    (run.folder / "deep").mkdir()
    for name in ("trace.json", "a.eval.yaml"):
        (run.folder / name).rename(run.folder / "deep" / name)
    run.write("agentv.yaml", {})
    assert run("eval", "deep/a.eval.yaml").code == 0
    assert rescore(run)[0] == 0


def test_a_file_that_changed_is_an_error_and_never_a_new_verdict(run: Command) -> None:
    write(run)
    evaluate(run)
    run.write("trace.json", json.dumps([{"type": "tool_call", "name": "delete"}]))
    code, record = rescore(run)
    assert (code, record["status"], record["score"], record["evaluators"]) == (3, "error", None, [])
    assert "'trace.json' changed since it was read" in record["error"]["message"]
    assert "persist: full" in record["error"]["message"]


def test_a_file_that_is_gone_is_an_error_that_says_so(run: Command) -> None:
    write(run)
    evaluate(run)
    (run.folder / "trace.json").unlink()
    code, record = rescore(run)
    assert (code, record["status"]) == (3, "error")
    assert "'trace.json' is not a file below" in record["error"]["message"]


def test_a_resumed_execution_includes_the_trace_too(run: Command) -> None:
    write(run)
    evaluate(run)
    assert run("eval", "a.eval.yaml", "--resume", "--include-trace", "--out", "again.jsonl").code == 0
    (record,) = run.records("again.jsonl")
    assert record["trace"] == EVENTS


def test_exported_runs_keep_the_hash(run: Command) -> None:
    write(run)
    evaluate(run)
    run("runs", "export", "--out", "runs.jsonl")
    (execution,) = execution_ids(run)
    assert run("executions", "delete", execution).code == 0
    assert run("runs", "import", "runs.jsonl").code == 0
    assert stored_reply(run)["trace_hash"].startswith("sha256:")


def test_messages_beside_it_get_the_warning_of_a_trace(run: Command) -> None:
    write(run, {**calls("search"), "trace_ref": "trace.json"}, [{"type": "tool_call", "name": "other"}])
    code, record = evaluate(run)
    assert code == 0, "the messages are read"
    (warning,) = record["warnings"]
    assert "both `output_messages` and `trace` (from `trace_ref`)" in warning
    assert "output_messages [search], trace [other]" in warning


def test_only_a_file_gets_the_deprecation(run: Command) -> None:
    write(run)
    _, record = evaluate(run)
    (warning,) = record["warnings"]
    assert warning.startswith("`trace_ref` is deprecated: send `output_messages`")


def test_messages_that_tell_all_calls_do_not_need_the_file(run: Command) -> None:
    write(run, {**calls("search"), "trace_ref": "gone.json"})
    code, record = evaluate(run)
    assert (code, record["status"]) == (0, "pass")
    both, unread = record["warnings"]
    assert "both" in both
    assert unread.startswith("trace_ref: 'gone.json' is not a file")


@pytest.mark.parametrize("name", ["gone.json", "../a.json", "/etc/passwd", "run-42", "s3://bucket/42", ".", "~"])
@pytest.mark.parametrize("silent", [{}, {"output_messages": [{"role": "assistant", "content": "x"}]}])
def test_what_cannot_be_resolved_is_an_error(run: Command, name: str, silent: Json) -> None:
    write(run, {"text": "x", **silent, "trace_ref": name})
    code, record = evaluate(run)
    assert (code, record["status"], record["score"]) == (3, "error", None)
    assert "No trace available" not in json.dumps(record)
    (undecided,) = record["evaluators"][0]["details"]["undecided"]
    assert "trace_ref: " in undecided


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_an_error(run: Command) -> None:
    write(run)
    (run.folder / "trace.json").chmod(0)
    code, record = evaluate(run)
    assert (code, record["status"]) == (3, "error")
    assert "Permission denied" in json.dumps(record)


def test_a_file_of_any_size_is_refused_above_the_limit(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentv.files.MAX_BYTES", 20)
    write(run)
    code, record = evaluate(run)
    assert (code, record["status"]) == (3, "error")
    assert "is larger than" in json.dumps(record)


class TestTraceStore:
    """`trace_store` on the target: a folder or a pattern that resolves identifiers."""

    @pytest.mark.parametrize(
        ("store", "file"),
        [
            ("traces", "traces/run-42.json"),
            ("traces/", "traces/run-42.jsonl"),
            ("./traces", "traces/run-42"),
            ("traces/{id}.json", "traces/run-42.json"),
            ("traces/{trace_ref}/events.json", "traces/run-42/events.json"),
            ("traces/*/{id}.json", "traces/2026-01-01/run-42.json"),
            ("traces/*.json", "traces/run-42.json"),
            ("**/{id}.json", "traces/deep/er/run-42.json"),
        ],
    )
    def test_an_identifier_is_resolved(self, run: Command, store: str, file: str) -> None:
        write(run, {"text": "x", "trace_ref": "run-42"}, trace_store=store)
        run.write(file, json.dumps(EVENTS))
        code, record = evaluate(run, "--include-trace")
        assert (code, record["trace"]) == (0, EVENTS)
        assert rescore(run)[0] == 0

    def test_a_store_of_the_project_serves_evals_in_subfolders(self, run: Command) -> None:
        agent = mocked({"text": "x", "trace_ref": "run-42"}, trace_store="traces")
        run.write("agentv.yaml", {"targets": [agent]})
        run.write("deep/a.eval.yaml", {"cases": cases("a")})
        run.write("traces/run-42.json", json.dumps(EVENTS))
        assert run("eval", "deep/a.eval.yaml").code == 0
        assert rescore(run)[0] == 0

    def test_an_environment_variable_may_name_it(self, run: Command) -> None:
        variables = {"TRACES": "traces"}
        write(run, {"text": "x", "trace_ref": "run-42"}, trace_store="${TRACES}")
        run.write("traces/run-42.json", json.dumps(EVENTS))
        assert run("eval", "a.eval.yaml", env=variables).code == 0
        assert run("rescore", env=variables).code == 0

    def test_a_path_below_the_eval_is_still_read(self, run: Command) -> None:
        write(run, trace_store="traces")
        assert evaluate(run)[0] == 0

    def test_an_unknown_identifier_is_an_error_that_names_the_store(self, run: Command) -> None:
        write(run, {"text": "x", "trace_ref": "run-43"}, trace_store="traces")
        code, record = evaluate(run)
        assert (code, record["status"]) == (3, "error")
        assert "`trace_store` 'traces' has no file for it" in json.dumps(record)

    def test_without_a_store_the_error_says_what_to_set(self, run: Command) -> None:
        write(run, {"text": "x", "trace_ref": "run-43"})
        assert "`trace_store` of the target" in json.dumps(evaluate(run)[1])

    def test_several_files_for_one_identifier_are_an_error(self, run: Command) -> None:
        write(run, {"text": "x", "trace_ref": "run-42"}, trace_store="traces/*/{id}.json")
        for day in ("mon", "tue"):
            run.write(f"traces/{day}/run-42.json", json.dumps(EVENTS))
        code, record = evaluate(run)
        assert (code, record["status"]) == (3, "error")
        assert "has several files for it" in json.dumps(record)

    @pytest.mark.parametrize(
        "name", ["../secret", "..", "a/../../secret", "/secret", "*", "?ecret", "[s]ecret", "\\..\\secret"]
    )
    def test_an_identifier_never_leads_out_of_it_and_is_no_pattern(self, run: Command, name: str) -> None:
        write(run, {"text": "x", "trace_ref": name}, trace_store="traces")
        run.write("secret.json", json.dumps(EVENTS))
        run.write("traces/secret.json", json.dumps(EVENTS))
        assert evaluate(run)[1]["status"] == "error"

    @pytest.mark.parametrize("store", ["../outside", "/", "link"])
    def test_a_store_outside_of_the_project_is_refused(self, run: Command, store: str) -> None:
        outside = run.folder.parent / "outside"
        outside.mkdir()
        (outside / "run-42.json").write_text(json.dumps(EVENTS))
        (run.folder / "link").symlink_to(outside)
        write(run, {"text": "x", "trace_ref": "run-42"}, trace_store=store)
        assert evaluate(run)[1]["status"] == "error"


class TestWarnedBeforehand:
    """`validate` and `target check` show what results would warn about."""

    def test_target_check_shows_the_deprecation(self, run: Command) -> None:
        write(run)
        assert "`trace_ref` is deprecated" in run("target", "check", "scripted").out
        write(run, {"text": "x", "trace": EVENTS})
        assert "`trace` is deprecated" in run("target", "check", "scripted").out

    def test_target_check_shows_that_both_were_sent(self, run: Command) -> None:
        write(run, {**calls("search"), "trace_ref": "trace.json"})
        assert "both `output_messages` and `trace` (from `trace_ref`)" in run("target", "check", "scripted").out

    def test_target_check_resolves_identifiers(self, run: Command) -> None:
        write(run, {"text": "x", "trace_ref": "run-42"}, trace_store="traces")
        run.write("traces/run-42.json", json.dumps(EVENTS))
        assert "1: search" in run("target", "check", "scripted").out

    @pytest.mark.parametrize(
        ("reply", "word"),
        [
            ({"text": "x", "trace": EVENTS}, "`trace` is deprecated"),
            ({"text": "x", "trace_ref": "run-42"}, "`trace_ref` is deprecated"),
            ({**calls("search"), "trace": EVENTS}, "both `output_messages` and `trace`"),
            ({**calls("search"), "traceRef": "trace.json"}, "both `output_messages` and `trace` (from `trace_ref`)"),
        ],
    )
    def test_validate_shows_both(self, run: Command, reply: Json, word: str) -> None:
        write(run, reply)
        result = run("validate", "a.eval.yaml")
        assert result.code == 0
        assert word in result.err
        assert "a.eval.yaml:" in result.err

    def test_validate_shows_both_for_targets_of_the_project(self, run: Command) -> None:
        run.write("agentv.yaml", {"targets": [mocked(REPLY)]})
        run.write("a.eval.yaml", {"cases": cases("a")})
        result = run("validate", "a.eval.yaml")
        assert result.err.count("`trace_ref` is deprecated") == 1
        assert "agentv.yaml:" in result.err

    def test_validate_shows_both_for_recorded_replies(self, run: Command) -> None:
        lines = [{"id": "a", **REPLY}, {"id": "b", **calls("search"), "trace": EVENTS}, {"id": "c", **calls("search")}]
        run.write("replies.jsonl", "".join(f"{json.dumps(line)}\n" for line in lines))
        target = {"name": "recorded", "provider": "replay", "file": "replies.jsonl"}
        run.write("a.eval.yaml", {"targets": [target], "cases": cases("a")})
        result = run("validate", "a.eval.yaml")
        assert result.code == 0
        assert "replies.jsonl:1: `trace_ref` is deprecated" in result.err
        assert "replies.jsonl:2: the reply holds both" in result.err
        assert "replies.jsonl:3" not in result.err

    def test_plain_replies_are_not_warned_about(self, run: Command) -> None:
        write(run, calls("search"))
        assert run("validate", "a.eval.yaml").err == ""


def test_json_of_validate_has_the_warnings_too(run: Command, tmp_path: Path) -> None:
    del tmp_path
    write(run)
    (found,) = json.loads(run("validate", "a.eval.yaml", "--json").out)["warnings"]
    assert "`trace_ref` is deprecated" in found["message"]
