"""The server, and how tests talk to it."""

import pytest

from tests.langgraph.server import COMMAND, shared_server


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a real server."""
    if not COMMAND.exists():
        pytest.skip("no LangGraph server in .venv-langgraph: `make test` installs one")
    base = tmp_path_factory.getbasetemp()
    return shared_server(base.parent if base.name.startswith("popen-") else base)
