"""The recipes for CI: the files can be read, and every command in them is one that exists."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from agentv.cli.main import group

PAGE = (Path(__file__).parents[2] / "docs" / "guide" / "ci.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^<!-- file: (\S*\.yml) -->\n```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


def commands(value: Any) -> Iterator[str]:
    """Every command line of a workflow."""
    if isinstance(value, dict):
        for name, each in value.items():
            if name in ("run", "script"):
                yield from [each] if isinstance(each, str) else each
            else:
                yield from commands(each)
    elif isinstance(value, list):
        for each in value:
            yield from commands(each)


def ours() -> list[str]:
    told = re.findall(r"`(agentv \w+ [^`]+)`", PAGE)
    written = [line for text in FILES.values() for line in commands(yaml.safe_load(text)) if line.startswith("agentv ")]
    script = re.findall(
        r"^ *(agentv .*?)(?: \|\| .*)?$", PAGE.partition("```sh\n")[2].partition("```")[0], re.MULTILINE
    )
    return [*told, *written, *script]


def test_there_are_recipes_for_the_usual_servers() -> None:
    github = {f".github/workflows/{name}.yml" for name in ("evals", "evals-action", "evals-compared", "evals-matrix")}
    assert set(FILES) == {*github, ".gitlab-ci.yml"}
    assert all(any(commands(yaml.safe_load(text))) for text in FILES.values())
    assert len(ours()) >= 8


@pytest.mark.parametrize("line", ours())
def test_every_command_exists(line: str) -> None:
    line = re.sub(r"\$\{\{.*?\}\}|\$CI_NODE_INDEX", "1", line).replace("$CI_NODE_TOTAL", "4")
    _, name, *arguments = shlex.split(line)
    command = group.get_command(click.Context(group), name)
    assert command is not None, name
    command.make_context(name, arguments)


def test_every_workflow_has_a_limit_and_few_rights() -> None:
    for name, text in FILES.items():
        if name.startswith(".github"):
            permissions = yaml.safe_load(text)["permissions"]
            writes = {"pull-requests"} if "OWNER/agentv@" in text else set()
            assert {key for key, right in permissions.items() if right != "read"} == writes
            # Only to fetch the results of another run.
            assert ("actions" in permissions) == ("gh run download" in text)


def test_the_recipe_of_the_action_names_its_inputs() -> None:
    action = yaml.safe_load((Path(__file__).parents[2] / "action.yml").read_text(encoding="utf-8"))
    (step,) = [
        step
        for step in yaml.safe_load(FILES[".github/workflows/evals-action.yml"])["jobs"]["evals"]["steps"]
        if step.get("uses", "").startswith("OWNER/agentv@")
    ]
    assert set(step["with"]) <= set(action["inputs"])
    table = PAGE.partition("### As an action")[2].partition("\n### ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(action["inputs"])
