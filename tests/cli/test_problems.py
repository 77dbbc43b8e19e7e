"""Problems as JSON: code, place and fix of real mistakes, and `--json` on every command."""

from collections.abc import Iterator

import click
import pytest

from agentv.cli.main import group
from tests.support.command import Command, strict_json

TARGET = "targets: [{name: a, provider: mock, reply: x}]\n"
CASE = "cases: [{id: one, input: hi, evaluators: [{type: contains, value: x}]}]\n"
TWICE = "cases:\n- &c {id: one, input: hi, evaluators: [{type: contains, value: x}]}\n- *c\n"
PATTERN = CASE.replace("contains, value: x", "regex, pattern: '('")


def leaf_commands(command: click.Command, *path: str) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaf_commands(found, *path, name)


def test_every_command_takes_json() -> None:
    commands = dict(leaf_commands(group))
    assert len(commands) > 30
    assert [name for name, each in commands.items() if not any("--json" in option.opts for option in each.params)] == []


@pytest.mark.parametrize(
    ("text", "code", "path", "fix"),
    [
        (TARGET + CASE.replace("input", "inptu"), "unknown_key", "cases[0].inptu", "did you mean 'input'?"),
        (TARGET + CASE.replace("contains", "contians"), "unknown_name", "cases[0].evaluators[0].type", "'contains'"),
        (TARGET.replace("mock", "mokc") + CASE, "unknown_name", "targets[0].provider", "did you mean 'mock'?"),
        (TARGET.replace("mock", "cli") + CASE, "missing_key", "targets[0].command", "add `command`"),
        (TARGET + CASE.replace("input: hi", "input: 7"), "wrong_type", "cases[0].input", "give a string or a mapping"),
        (TARGET + CASE.replace(", evaluators: [{type: contains, value: x}]", ""), "checks_nothing", "cases[0]", "add"),
        (TARGET + TWICE, "duplicate", "cases[1].id", "choose another `id`"),
        ("targets: [{name: a\ncases:\n", "syntax", None, "quote it"),
        (TARGET + "cases:\n  - id: a\n   input: x\n", "syntax", None, "indent this line"),
        (TARGET + "cases:\n\t- id: a\n", "syntax", None, "replace it by spaces"),
        (TARGET + "a: 1\na: 2\n" + CASE, "duplicate", None, "remove or rename"),
        (TARGET + "cases: []\n", "checks_nothing", "cases", "add"),
        (CASE, "missing_key", None, "define one in `targets`"),
        (TARGET + CASE + "dataset: rows.csv\n", "not_found", "dataset", "the folder of the file"),
        (TARGET + PATTERN, "syntax", "cases[0].evaluators[0].pattern", "correct"),
        ("targets: [{name: a, provider: http, url: '${NOT_SET_HERE}/x'}]\n" + CASE, "unset_variable", None, "set it"),
    ],
)
def test_a_mistake_in_a_file_has_code_place_and_fix(
    run: Command, text: str, code: str, path: str | None, fix: str
) -> None:
    run.write("a.eval.yaml", text)
    result = run("eval", "a.eval.yaml", "--json")
    assert result.code == 2
    found = {each["code"]: each for each in strict_json(result.out)["errors"]}
    assert code in found
    assert (found[code]["file"], found[code]["path"]) == ("a.eval.yaml", path)
    assert found[code]["line"] >= 1
    assert fix in found[code]["fix"]


@pytest.mark.parametrize(
    ("arguments", "code", "fix"),
    [
        (["eval", "nofile.eval.yaml"], "not_found", "check the path"),
        (["eval", "a.eval.yaml", "--case", "two"], "unknown_name", "there are 'one'"),
        (["eval", "a.eval.yaml", "--bogus"], "unknown_name", "Did you mean"),
        (["eval", "a.eval.yaml", "--repeat", "x"], "invalid_usage", "see `agentv eval --help`"),
        (["eval", "a.eval.yaml", "--out", "r.txt"], "invalid_usage", "must end in .csv"),
        (["eval", "a.eval.yaml", "--max-cost", "x"], "invalid_usage", "see `agentv eval --help`"),
        (["help", "exitcodes"], "unknown_name", "did you mean 'exit-codes'?"),
        (["runs", "list", "--store", "none.db"], "not_found", "check the path"),
        (["runs", "list", "--store", "a.eval.yaml"], "cannot_read", "move it away"),
        (["import", "none.json"], "not_found", "check the path"),
        (["merge", "none.jsonl"], "not_found", "check the path"),
        (["evl"], "unknown_name", "did you mean 'eval'?"),
        (["runs", "show", "123"], "unknown_name", "agentv executions list"),
        (["runs", "prune"], "invalid_usage", "--keep N"),
        (["merge"], "missing_argument", "see `agentv merge --help`"),
        (["providers", "describe", "clii"], "unknown_name", "did you mean 'cli'?"),
        (["compare", "a.jsonl", "b.jsonl"], "not_found", "check the path"),
        (["schema", "--out", "nowhere/x.json"], "cannot_write", "choose another path"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_on_the_command_line_has_code_and_fix(
    run: Command, arguments: list[str], code: str, fix: str
) -> None:
    run.write("a.eval.yaml", TARGET + CASE)
    run("eval", "a.eval.yaml")
    error = strict_json(run(*arguments, "--json").out)["errors"][0]
    assert (error["code"], error["file"], error["line"]) == (code, None, None)
    assert fix in error["fix"]
