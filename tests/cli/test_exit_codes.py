"""Failing commands: a sentence, the documented exit code, and JSON."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from agentv.cli.main import group
from tests.support.command import (
    DEADLINE_S,
    Command,
    Json,
    calls,
    cases,
    execution_ids,
    mocked,
    strict_json,
    strict_lines,
)

LONG = "x" * 300
"""More than any file system takes as a name."""
FULL = Path("/dev/full")
BELL = "\x1b[31mX\x07"


@pytest.fixture
def project(run: Command) -> Command:
    """An eval with one case that passes."""
    run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a")})
    return run


def told(output: str) -> Json:
    """The one object that a program is told a mistake by."""
    problems = strict_json(output)
    assert problems["schema"] == "agentv.problems/1"
    assert problems["errors"]
    assert all(error["message"] for error in problems["errors"])
    return problems


WRONG = {
    "a file that is not there": ("eval", "missing.yaml"),
    "a name too long": ("eval", LONG),
    "an option that there is none of": ("eval", "a.eval.yaml", "--repaet", "2"),
    "a value that is none": ("eval", "a.eval.yaml", "--repeat", "two"),
    "a format that is none": ("eval", "a.eval.yaml", "--out", "results.txt"),
    "a folder to write that is not there": ("eval", "a.eval.yaml", "--out", "missing/results.jsonl"),
    "an execution that is not there": ("eval", "a.eval.yaml", "--resume", "missing"),
    "an execution with a name too long": ("eval", "a.eval.yaml", "--resume", LONG),
    "what does not go together": ("eval", "a.eval.yaml", "--watch", "--out", "results.jsonl"),
    "nothing to compare": ("compare", "missing.jsonl", "missing.jsonl"),
    "no store": ("executions", "list", "--store", "missing.db"),
    "a store with a name too long": ("executions", "list", "--store", LONG),
    "runs that are none": ("runs", "import", "a.eval.yaml"),
    "results that are none": ("merge", "a.eval.yaml"),
    "an evaluator that is none": ("evaluators", "describe", "missing"),
    "a target that is none": ("target", "check", "missing"),
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG.keys())
def test_with_json_every_mistake_is_an_object_on_standard_output(project: Command, arguments: tuple[str, ...]) -> None:
    result = project(*arguments, "--json")
    assert result.code == 2
    assert "Traceback" not in result.err
    problems = told(result.out)
    assert (problems["status"], problems["exit_code"]) == ("usage", 2)
    assert problems["errors"][0]["message"].split("\n")[0][:60] in result.err.replace("\n", " "), "people read the same"


@pytest.mark.skipif(os.name == "nt", reason="arguments are text there")
@pytest.mark.parametrize(
    "arguments", [("eval", "a.eval.yaml", "--resume"), ("runs", "show"), ("runs", "show", "--case")]
)
def test_an_argument_that_is_no_utf_8_is_a_mistake_of_the_user(project: Command, arguments: tuple[str, ...]) -> None:
    project("eval", "a.eval.yaml")
    result = project(*arguments, os.fsdecode(b"a\xff"), "--json")
    assert (result.code, result.err) == (2, "agentv: 'a\\udcff' is not valid UTF-8\n")
    assert told(result.out)["exit_code"] == 2


def test_format_json_of_a_comparison_is_json_in_any_case(project: Command) -> None:
    result = project("compare", "missing.jsonl", "missing.jsonl", "--format", "json")
    assert result.code == 2
    assert "missing.jsonl" in told(result.out)["errors"][0]["message"]


def test_a_store_that_cannot_be_used_is_told_as_json_with_its_exit_code(project: Command) -> None:
    project.write(".agentv/runs.db", "no database")
    for arguments in (("eval", "a.eval.yaml"), ("eval", "a.eval.yaml", "--out", "results.jsonl")):
        result = project(*arguments, "--json")
        problems = told(result.out)
        assert (result.code, problems["status"], problems["exit_code"]) == (3, "error", 3)
        assert "runs.db" in problems["errors"][0]["message"]


def test_without_json_standard_output_stays_empty(project: Command) -> None:
    for arguments in WRONG.values():
        result = project(*arguments)
        assert (result.code, result.out) == (2, "")


# Standard output that is closed, broken or full

PRINTS = (
    ("evaluators", "list"),
    ("schema",),
    ("completion", "bash"),
    ("eval", "a.eval.yaml", "--dry-run"),
    ("validate", "a.eval.yaml"),
)


def broken(run: Command, *arguments: str) -> tuple[int, str]:
    """The exit code, and what is said, when nobody reads the standard output."""
    reading, writing = os.pipe()
    os.close(reading)
    process = run.start(*arguments, stdout=writing, env={"PYTHONUNBUFFERED": "1"})
    os.close(writing)
    _, err = process.communicate(timeout=DEADLINE_S)
    return process.returncode, err.decode()


@pytest.mark.parametrize("arguments", PRINTS, ids=" ".join)
def test_whoever_closes_the_pipe_has_seen_enough(project: Command, arguments: tuple[str, ...]) -> None:
    assert broken(project, *arguments) == (0, ""), "1 would say that runs failed"


def test_an_execution_that_nobody_reads_is_no_pass(project: Command) -> None:
    code, err = broken(project, "eval", "a.eval.yaml", "--json")
    assert (code, "Traceback" in err) == (3, False)


@pytest.mark.skipif(not FULL.exists(), reason="there is no disk that is always full")
@pytest.mark.parametrize("arguments", PRINTS, ids=" ".join)
def test_a_standard_output_that_is_full_is_said_in_a_sentence(project: Command, arguments: tuple[str, ...]) -> None:
    with FULL.open("wb") as full:
        process = project.start(*arguments, stdout=full)
        _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 3
    assert err.decode() == (
        "agentv: the results cannot be written: No space left on device; make room and run it again\n"
    )


def test_results_for_a_pipe_that_is_no_longer_read_end_the_execution(run: Command) -> None:
    """A pipe holds 64 KiB: whoever holds both of its ends waits for himself."""
    run.write("a.eval.yaml", {"targets": [mocked(calls("x", text="x" * 9_000))], "cases": cases(*map(str, range(40)))})
    os.mkfifo(run.folder / "pipe")
    process = run.start("eval", "a.eval.yaml", "--out", "pipe", "--quiet", "--no-store")
    with (run.folder / "pipe").open("rb") as pipe:
        assert json.loads(pipe.readline())["case_id"] == "0"
    _, err = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 3, err


# Files and folders


def test_a_folder_that_is_gone_is_told(project: Command) -> None:
    gone = project.folder / "gone"
    gone.mkdir()
    line = " ".join(["rmdir ../gone;", *project.line("executions", "list")])
    done = subprocess.run(  # noqa: S602 - our own words
        line, shell=True, cwd=gone, env=project.environment(), capture_output=True, timeout=DEADLINE_S, check=False
    )
    assert (done.returncode, done.stderr) == (
        2,
        b"agentv: the current folder is no longer there; go to one that is\n",
    )


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_names_that_are_no_utf_8_can_be_run_and_kept(project: Command) -> None:
    folder = os.fsencode(project.folder) + b"/b\xffd"
    os.mkdir(folder)  # noqa: PTH102 - a path is made of text
    os.rename(project.folder / "a.eval.yaml", folder + b"/\xfe.eval.yaml")  # noqa: PTH104 - as above
    result = project("eval", ".", "--out", "r.jsonl", "--out", "r.xml", "--out", "r.md", "--out", "r.yaml")
    assert (result.code, result.err) == (0, "")
    assert "b\\xffd/\\xfe.eval.yaml" in result.out
    assert project.records("r.jsonl")[0]["eval_id"] == "\\xfe"
    assert project("eval", "--resume").code == 0
    assert project("runs", "show").code == 0


@pytest.mark.skipif(os.name == "nt", reason="there are no pipes in folders there")
def test_a_pipe_in_a_folder_is_no_eval_and_a_link_that_leads_nowhere_is_a_mistake(project: Command) -> None:
    os.mkfifo(project.folder / "pipe.eval.yaml")
    assert project("validate", ".").code == 0
    (project.folder / "link.eval.yaml").symlink_to("missing")
    result = project("validate", ".")
    assert (result.code, "link.eval.yaml:1: cannot be read: No such file" in result.err) == (2, True)


def test_what_was_imported_does_not_command_the_terminal(project: Command) -> None:
    project("eval", "a.eval.yaml")
    first, run = (json.loads(line) for line in project("executions", "export").out.splitlines())
    name = first["id"] + BELL
    first |= {"id": name, "started_at": BELL, "command": {**first["command"], "paths": [BELL]}}
    run |= {"execution_id": name, "id": f"{name}-{run['key']}", "place": BELL, "case_id": BELL, "started_at": BELL}
    project.write("hostile.jsonl", "".join(json.dumps(each) + "\n" for each in (first, run)))
    shown = [project.on_terminal("runs", "import", "hostile.jsonl"), project.on_terminal("executions", "list")]
    shown += [project.on_terminal("runs", "show", name), project.on_terminal("runs", "show", name, "--case", BELL)]
    shown += [project.on_terminal("runs", "show", name, "--case", f"missing{BELL}")]
    shown += [project.on_terminal("executions", "delete", name)]
    assert [code for code, _ in shown] == [0, 0, 0, 0, 2, 0]
    assert not [text for _, text in shown if "\x07" in text or "\x1b[31mX" in text]


# A standard error that is full, and terminals that cannot do much


@pytest.mark.skipif(not FULL.exists(), reason="there is no disk that is always full")
@pytest.mark.parametrize("arguments", [("eval", "missing"), ("eval", "--repaet"), ("executions", "list")], ids=" ".join)
def test_where_nobody_can_be_told_the_exit_code_counts(project: Command, arguments: tuple[str, ...]) -> None:
    with FULL.open("wb") as full:
        process = project.start(*arguments, "--json", stderr=full)
        out, _ = process.communicate(timeout=DEADLINE_S)
    assert (process.returncode, told(out.decode())["exit_code"]) == (2, 2)


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"TERM": "xterm"}], ids=["dumb", "usual"])
def test_a_terminal_that_cannot_write_over_a_line_gets_no_bar(project: Command, environment: dict[str, str]) -> None:
    code, seen = project.on_terminal("eval", "a.eval.yaml", env=environment)
    assert (code, "\x1b" in seen) == (0, environment["TERM"] != "dumb")


def test_with_json_a_terminal_shows_nothing_but_json(project: Command) -> None:
    code, seen = project.on_terminal("eval", "a.eval.yaml", "--json")
    assert (code, [json.loads(line)["schema"] for line in seen.splitlines()]) == (
        0,
        ["agentv.result/1", "agentv.summary/1"],
    )


def all_commands(command: click.Command, *names: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that is not a group."""
    if not isinstance(command, click.Group):
        yield " ".join(names), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        part = command.get_command(context, name)
        assert part is not None
        yield from all_commands(part, *names, name)


def test_every_command_takes_json() -> None:
    found = dict(all_commands(group))
    assert "executions prune" in found
    assert [name for name, command in found.items() if not any("--json" in each.opts for each in command.params)] == []


def test_commands_that_write_or_delete_something_print_an_object(project: Command) -> None:
    project("eval", "a.eval.yaml")
    (name,) = execution_ids(project)

    def told_of(*arguments: str) -> Json:
        result = project(*arguments, "--json")
        assert result.code == 0
        return strict_json(result.out)

    exported = {"schema": "agentv.exported/1", "file": "e.jsonl", "lines": 2}
    assert told_of("executions", "export", "--out", "e.jsonl") == exported
    assert told_of("runs", "export", "--out", "e.jsonl") == exported
    assert len(strict_lines(project("executions", "export", "--json").out)) == 2
    report = told_of("report")
    size = (project.folder / "report.html").stat().st_size
    assert report == {"schema": "agentv.report/1", "execution": name, "file": "report.html", "bytes": size}
    assert told_of("schema") == json.loads(project("schema").out)
    assert told_of("schema", "--out", "s.json") == {"schema": "agentv.schema_file/1", "file": "s.json"}
    script = told_of("completion", "bash")
    assert script["script"] in project("completion", "bash").out
    gone = {"id": name, "runs": 1}
    would = told_of("executions", "prune", "--keep", "0", "--dry-run")
    assert would == {"schema": "agentv.deleted/1", "dry_run": True, "executions": [gone]}
    assert told_of("runs", "delete", name) == {"schema": "agentv.deleted/1", "dry_run": False, "executions": [gone]}
    assert told_of("runs", "prune", "--keep", "0")["executions"] == []
    assert told(project("executions", "delete", name, "--json").out)["exit_code"] == 2
