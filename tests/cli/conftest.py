"""What every test of the command line starts from."""

from pathlib import Path

import pytest

from tests.cli.command import Command


@pytest.fixture
def run(tmp_path: Path) -> Command:
    """`agentv` in an empty folder: `run("eval", "a.eval.yaml")` gives its exit code and what it printed."""
    return command_in(tmp_path)


@pytest.fixture(scope="module")
def module_run(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """The same for tests that look at one run from many sides."""
    return command_in(tmp_path_factory.mktemp("module"))


def command_in(path: Path) -> Command:
    """`agentv` in a new folder below this one."""
    folder, temporary = path / "project", path / "temporary"
    folder.mkdir()
    temporary.mkdir()
    return Command(folder, temporary)
