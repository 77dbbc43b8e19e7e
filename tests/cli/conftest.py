"""Fixtures for tests of the command line."""

from pathlib import Path

import pytest

from tests.support.command import Command, command_in


@pytest.fixture
def run(tmp_path: Path) -> Command:
    """Return `agentv` in an empty folder: `run("eval", "a.eval.yaml")` gives its exit code and its output."""
    return command_in(tmp_path)


@pytest.fixture(scope="module")
def module_run(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Return the same for tests that look at one run from many sides."""
    return command_in(tmp_path_factory.mktemp("module"))
