"""`--shard` and `agentv merge`: parts of an execution, and the whole again."""

import json
from pathlib import Path
from typing import Any

import pytest

import agentv
from tests.support.command import Command, calls, cases, mocked
from tests.support.conversations import write_conversations

COUNT = 23


@pytest.fixture
def sharded(run: Command) -> Command:
    """An eval of 23 cases and two targets, run in three parts and once as a whole."""
    good = {"output_messages": [{"role": "assistant", "tool_calls": [{"tool": "search"}]}]}
    targets = [
        {"name": "b", "provider": "mock", "reply": [good, {"text": "no calls"}]},
        {"name": "a", "provider": "mock", "reply": good},
    ]
    check = {"type": "tool_trajectory", "minimums": {"search": 1}}
    cases = [{"id": f"case-{number}", "input": "x"} for number in range(COUNT)]
    run.write("s.eval.yaml", {"targets": targets, "defaults": {"evaluators": [check]}, "cases": cases})
    for index in (1, 2, 3):
        run("eval", "s.eval.yaml", "--shard", f"{index}/3", "--out", f"{index}.jsonl", "-q")
    run("eval", "s.eval.yaml", "--out", "whole.jsonl", "-q")
    return run


def records(folder: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def timeless(record: dict[str, Any]) -> dict[str, Any]:
    gone = ("execution_id", "run_id", "started_at", "completed_at", "latency_ms")
    return {**{key: value for key, value in record.items() if key not in gone}, "key": record["run_id"].split("-")[-1]}


def test_the_parts_are_even_apart_and_whole(sharded: Command) -> None:
    parts = [records(sharded.folder, f"{index}.jsonl") for index in (1, 2, 3)]
    ids = [{record["case_id"] for record in part} for part in parts]
    assert sorted(map(len, ids)) == [7, 8, 8]
    assert set.union(*ids) == {f"case-{number}" for number in range(COUNT)}
    assert sum(map(len, parts)) == 2 * COUNT


def test_merged_they_are_what_one_machine_would_have_run(sharded: Command) -> None:
    merged = sharded("merge", "3.jsonl", "1.jsonl", "2.jsonl", "--out", "all.jsonl", "--json")
    whole = records(sharded.folder, "whole.jsonl")
    together = records(sharded.folder, "all.jsonl")
    assert list(map(timeless, together)) == list(map(timeless, whole))
    assert len({record["execution_id"] for record in together}) == 1
    *lines, summary = merged.lines
    assert lines == together
    assert (merged.code, summary["exit_code"], summary["runs"], summary["failed"]) == (1, 1, 46, 11)
    assert list(summary["targets"]) == ["b", "a"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["1.jsonl", "2.jsonl"], "runs are missing: nothing of part 3 of 3 is here"),
        (["1.jsonl", "1.jsonl", "2.jsonl", "copy.jsonl"], "copy.jsonl holds a run that another line has too"),
        (["1.jsonl", "2.jsonl", "cut.jsonl"], "1 of 46 runs are missing: a part is not finished"),
        (["1.jsonl", "2.jsonl", "other.jsonl"], "are not parts of one execution"),
        (["whole.jsonl"], "whole.jsonl was not written by `agentv eval --shard`"),
        (["1.jsonl", "torn.jsonl"], "torn.jsonl:2: not a result"),
        (["newer.jsonl"], "newer.jsonl:1: schema 'agentv.result/2'; it was written by a newer agentv"),
        (["missing.jsonl"], "missing.jsonl cannot be read"),
        (["empty.jsonl"], "no results: the files are empty"),
        (["1.jsonl", "2.jsonl", "3.jsonl", "--out", "2.jsonl"], "--out 2.jsonl would overwrite"),
        (["1.jsonl", "2.jsonl", "timeless.jsonl"], "started_at is 'yesterday', which is not a time"),
        (["1.jsonl", "2.jsonl", "zoneless.jsonl"], "completed_at is '2026-11-16T08:30:00', which is not a time"),
    ],
)
def test_a_mixed_or_incomplete_set_is_refused(sharded: Command, files: list[str], said: str) -> None:
    folder = sharded.folder
    (folder / "copy.jsonl").write_text((folder / "1.jsonl").read_text())
    lines = (folder / "3.jsonl").read_text().splitlines(keepends=True)
    (folder / "cut.jsonl").write_text("".join(lines[:-1]))
    (folder / "torn.jsonl").write_text(lines[0] + lines[1][:50])
    (folder / "newer.jsonl").write_text(lines[0].replace("agentv.result/1", "agentv.result/2"))
    (folder / "empty.jsonl").write_text("")
    for name, field, time in (
        ("timeless", "started_at", "yesterday"),
        ("zoneless", "completed_at", "2026-11-16T08:30:00"),
    ):
        changed = [json.dumps(json.loads(line) | {field: time}) + "\n" for line in lines]
        (folder / f"{name}.jsonl").write_text("".join(changed))
    sharded("eval", "s.eval.yaml", "--shard", "3/3", "--out", "other.jsonl", "--target", "a", "-q")
    result = sharded("merge", *files)
    assert result.code == 2
    assert said in result.err


def test_more_parts_than_cases_leave_some_without_work(run: Command) -> None:
    target = {"name": "t", "provider": "mock", "reply": {"output_messages": [{"role": "assistant"}]}}
    check = {"type": "tool_trajectory", "maximums": {"a": 0}}
    run.write("s.eval.yaml", {"targets": [target], "cases": [{"id": "only", "input": "x", "evaluators": [check]}]})
    names = []
    for index in range(1, 5):
        names.append(f"{index}.jsonl")
        assert run("eval", "s.eval.yaml", "--shard", f"{index}/4", "--out", names[-1], "-q").code == 0
    assert run("merge", *names, "-q").code == 0


@pytest.mark.parametrize("shard", ["0/3", "4/3", "1", "a/b", "1/0", "-1/3", "1/3/5"])
def test_a_part_that_cannot_be_is_refused(run: Command, shard: str) -> None:
    result = run("eval", "s.eval.yaml", "--shard", shard)
    assert result.code == 2
    assert "is not a part such as 2/4" in result.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_a_full_disk_is_told_by_name_and_is_no_verdict(sharded: Command) -> None:
    result = sharded("merge", "1.jsonl", "2.jsonl", "3.jsonl", "--out", "/dev/full", "--json")
    assert (result.code, result.lines[-1]["exit_code"], result.lines[-1]["out"]) == (3, 3, [])
    assert "/dev/full cannot be written: No space left on device" in result.err
    assert "Traceback" not in result.err


def test_from_python_a_part_beyond_the_last_is_refused_as_on_the_command_line() -> None:
    case = {"id": "a", "input": "x", "evaluators": [{"type": "contains", "value": "x"}]}
    with pytest.raises(agentv.SpecError, match="shard: expected a part from 1 to 2; got 3"):
        agentv.evaluate({"cases": [case]}, target=str, shard=(3, 2))


@pytest.mark.parametrize("time", ["yesterday", "", "2026-01-31T12:00:00"])
def test_a_time_that_is_none_is_named(run: Command, time: str) -> None:
    run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
    run("eval", "a.eval.yaml", "--shard", "1/1", "--out", "1.jsonl")
    (record,) = run.records("1.jsonl")
    run.write("1.jsonl", json.dumps({**record, "started_at": time}))
    result = run("merge", "1.jsonl")
    assert (result.code, f"started_at is {time!r}, which is not a time" in result.err) == (2, True)


def test_conversations_and_personas_come_together_again(run: Command) -> None:
    write_conversations(run.folder)
    for index in (1, 2):
        run("eval", "refund.eval.yaml", "--shard", f"{index}/2", "--out", f"{index}.jsonl", "-q")
    whole = run("eval", "refund.eval.yaml", "--out", "whole.jsonl", "--no-store")
    merged = run("merge", "1.jsonl", "2.jsonl", "--out", "all.jsonl")

    def untimed(record: dict[str, Any]) -> dict[str, Any]:
        turns = [{**turn, "latency_ms": 0} for turn in record["turns"]]
        return timeless({**record, "turns": turns})

    together = records(run.folder, "all.jsonl")
    assert list(map(untimed, together)) == list(map(untimed, records(run.folder, "whole.jsonl")))
    for result in (whole, merged):
        assert "turn 2, the user said: It is order A-17." in result.out
        assert "  persona polite: 100 % " in result.out
