"""`agentv validate`: every mistake at once, with its place, and nothing is run."""

import sys

import pytest

from tests.support.command import Command, calls, cases, mocked, program, strict_json
from tests.support.conversations import write_conversations

# The sample of the surface, with the three mistakes that its errors name in the lines that they name.
SAMPLE = """\
description: Support agent must research before answering
target: support-agent
targets:
  - name: support-agent
    provider: mock
    reply: ok
cases:
  - id: branch-deactivation
    input: How do I deactivate a branch?
    evaluators:
      - type: tool_trajectory
        mode: anyorder

        minimum: {semanticSearch: 3}
"""
ERRORS = """\
evals/support.eval.yaml:14:9: unknown key 'minimum'; did you mean 'minimums'?
   14 |         minimum: {semanticSearch: 3}
      |         ^^^^^^^
"""
MODE = (
    "evals/support.eval.yaml:12:15: mode: got 'anyorder'; did you mean 'any_order'? "
    "Expected one of exact, in_order, any_order, unordered, superset, subset"
)


@pytest.mark.parametrize("command", ["validate", "eval"])
def test_the_two_errors_of_the_sample(run: Command, command: str) -> None:
    run.write("evals/support.eval.yaml", SAMPLE)
    result = run(command, "evals/")
    assert (result.code, result.out) == (2, "")
    assert ERRORS in result.err
    lines = result.err.split("\n")
    assert MODE in lines
    assert lines[-2:] == ["2 errors, nothing was run", ""]
    assert sum(line.startswith("evals/") for line in lines) == 2
    assert "\x1b" not in result.err


def test_the_errors_for_programs(run: Command) -> None:
    run.write("evals/support.eval.yaml", SAMPLE)
    result = run("validate", "--json", "evals")
    found = strict_json(result.out)
    assert result.code == 2
    assert (found["status"], found["exit_code"]) == ("usage", 2)
    places = [(each["file"], each["line"], each["column"]) for each in found["errors"]]
    assert sorted(places) == [("evals/support.eval.yaml", line, column) for line, column in ((12, 15), (14, 9))]
    messages = {each["line"]: each["message"] for each in found["errors"]}
    assert messages[14] == "unknown key 'minimum'; did you mean 'minimums'?"
    assert messages[12] == MODE.split(":15: ")[1]


def test_errors_of_all_files_come_together(run: Command) -> None:
    good = {"targets": [mocked(calls("search"))], "cases": cases("a")}
    run.write("good.eval.yaml", good)
    run.write("one.eval.yaml", {**good, "casess": []})
    run.write("deep/two.eval.yaml", {**good, "target": "script"})
    run.write("three.eval.yaml", {**good, "dataset": "lines.jsonl"})
    run.write("lines.jsonl", '{"id": "x", "input": "?", "inptu": 1}\nnot JSON\n')
    result = run("validate", ".")
    assert (result.code, result.out) == (2, "")
    for part in (
        "unknown key 'casess'; did you mean 'cases'?",
        "did you mean 'scripted'?",
        "lines.jsonl:1: unknown key 'inptu'",
        "lines.jsonl:2: not JSON",
    ):
        assert part in result.err
    assert result.err.count("checks nothing") <= 1
    assert result.err.endswith(" errors, nothing was run\n")


def test_a_case_that_checks_nothing_is_told_so_whatever_else_is_wrong(run: Command) -> None:
    case = {"id": "a", "input": "?", "inptu": "?"}
    run.write("one.eval.yaml", {"targets": [mocked("ok")], "cases": [case]})
    result = run("validate", "one.eval.yaml")
    assert "unknown key 'inptu'" in result.err
    assert "case 'a' checks nothing" in result.err


def test_what_is_well_is_said_in_a_line(run: Command) -> None:
    run.write("good.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a", "b")})
    result = run("validate", "good.eval.yaml")
    assert result == (0, "good.eval.yaml: ok, 2 cases, 1 target (scripted)\n", "")
    assert run("validate", "-q", "good.eval.yaml") == (0, "", "")
    found = strict_json(run("validate", "--json", "good.eval.yaml").out)
    assert found["evals"] == [{"eval_id": "good", "file": "good.eval.yaml", "cases": 2, "targets": ["scripted"]}]
    assert (found["status"], found["warnings"]) == ("pass", [])


def test_nothing_is_run_or_imported(run: Command) -> None:
    """A hostile file may name programs, Python objects and modules; reading it touches none of them."""
    touch = "from pathlib import Path; Path('touched').touch()"
    for module in ("agent", "target", "evaluators", "conftest"):
        run.write(f"{module}.py", touch)
    run.write("hostile.eval.yaml", {"targets": [program("agent.py")], "cases": cases("a")})
    run.write("tagged.eval.yaml", f'cases: !!python/object/apply:os.system ["{sys.executable} agent.py"]\n')
    assert run("validate", "hostile.eval.yaml").code == 0
    result = run("validate", "tagged.eval.yaml")
    assert result.code == 2
    assert "tagged.eval.yaml:1:8: " in result.err
    assert run("eval", "--dry-run", "hostile.eval.yaml").code == 0
    assert not (run.folder / "touched").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nowhere.eval.yaml",), "'nowhere.eval.yaml' does not exist"),
        (("empty",), "no *.eval.yaml in 'empty'"),
        (("empty.eval.yaml",), "got an empty file"),
        ((), "got an empty file"),
    ],
)
def test_nothing_to_check_is_a_mistake_too(run: Command, arguments: tuple[str, ...], words: str) -> None:
    (run.folder / "empty").mkdir()
    run.write("empty.eval.yaml", "")
    result = run("validate", *arguments)
    assert (result.code, result.out) == (2, "")
    assert words in result.err


def test_yaml_surprises_are_told(run: Command) -> None:
    run.write(
        "surprises.eval.yaml",
        "targets: [{name: m, provider: mock, reply: ok}]\n"
        "cases:\n"
        "  - id: no\n"
        "    input: on\n"
        "    vars: {a: 1e3, b: 1:30, c: 012}\n"
        "    evaluators: [{type: tool_trajectory, minimums: {x: 1}}]\n",
    )
    warnings = strict_json(run("validate", "--json", "surprises.eval.yaml").out)["warnings"]
    told = {(each["line"], each["column"]): each["message"] for each in warnings}
    assert {place: message.split(";")[0] for place, message in told.items()} == {
        (3, 9): "read as the text 'no'",
        (4, 12): "read as the text 'on'",
        (5, 15): "read as the number 1000.0",
        (5, 23): "read as the text '1:30'",
        (5, 32): "read as the number 12",
    }
    assert all("quote it" in message for message in told.values())
    assert run("validate", "surprises.eval.yaml").err.count(": warning: read as ") == 5


def test_what_can_never_fail_is_warned_about_where_it_stands(run: Command) -> None:
    (run.folder / "a.eval.yaml").write_text(
        "targets: [{name: t, provider: mock, reply: {text: ok}}]\n"
        "defaults:\n"
        "  evaluators:\n"
        "    - {type: tool_trajectory, mode: in_order, expected: []}\n"
        "    - {type: contains, value: ok}\n"
        "cases:\n"
        "  - id: a\n"
        "    input: hi\n"
        "    evaluators:\n"
        "      - type: tool_trajectory\n"
        "        minimums: {x: 0}\n"
    )
    result = run("validate", "a.eval.yaml")
    assert result.code == 0
    assert "a.eval.yaml:4:57: warning: expected: an empty list in mode 'in_order': this can never fail" in result.err
    assert "a.eval.yaml:11:23: warning: x: a minimum of 0: this can never fail" in result.err


def test_personas_of_a_folder_are_checked(run: Command) -> None:
    write_conversations(run.folder)
    (run.folder / "personas").mkdir()
    path = run.folder / "personas" / "slow.yaml"
    path.write_text("description: Types slowly.\n", encoding="utf-8")
    assert run("validate", "personas/slow.yaml").out == "personas/slow.yaml: ok\n"
    assert run("validate", ".").code == 0
    path.write_text("descripton: Types slowly.\n", encoding="utf-8")
    for name in (".", "refund.eval.yaml", "personas/slow.yaml"):
        result = run("validate", name)
        assert result.code == 2
        assert "personas/slow.yaml:1:1: unknown key 'descripton'; did you mean 'description'?" in result.err
