"""Fixtures for tests of the command line."""

from pathlib import Path

import pytest

from tests.support.command import Command, command_in
from tests.support.postgres import PostgresServer


@pytest.fixture
def run(tmp_path: Path) -> Command:
    """Return `agentv` in an empty folder: `run("eval", "a.eval.yaml")` gives its exit code and its output."""
    return command_in(tmp_path)


@pytest.fixture
def server_run(run: Command, postgres_server: PostgresServer) -> Command:
    """Return `agentv` in a project whose runs are on a PostgreSQL server."""
    run.write("agentv.yaml", {"store": postgres_server.address()})
    return run


@pytest.fixture(params=["sqlite", "postgres"])
def stored_run(request: pytest.FixtureRequest, run: Command) -> Command:
    """Return `agentv` in a project with a store of each kind."""
    server: Command = request.getfixturevalue("server_run") if request.param == "postgres" else run
    return server


@pytest.fixture(scope="module")
def module_run(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Return the same for tests that look at one run from many sides."""
    return command_in(tmp_path_factory.mktemp("module"))
