"""The server, and how tests talk to it."""

from pathlib import Path

import pytest

from tests.fakes.langgraph.server import COMMAND, shared_server
from tests.support.command import Command, command_in


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a real server."""
    if not COMMAND.exists():
        pytest.skip("no LangGraph server in .venv-langgraph: `make test` installs one")
    base = tmp_path_factory.getbasetemp()
    return shared_server(base.parent if base.name.startswith("popen-") else base)


@pytest.fixture
def run(tmp_path: Path) -> Command:
    return command_in(tmp_path)
