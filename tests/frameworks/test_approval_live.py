"""Is a call that waits for somebody `pending`, as the pages of the frameworks say? With the real libraries."""

import os
from pathlib import Path

import pytest

from tests.support.environments import ask_there

AGENTS = sorted((Path(__file__).parents[1] / "data" / "approvals").glob("*.py"))


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.stem)
def test_a_call_that_waits_is_pending(agent: Path, tmp_path: Path) -> None:
    environment = Path(os.environ.get("AGENTV_FRAMEWORKS", ".venv-samples")) / agent.stem
    (response,) = ask_there(str(environment), agent.read_text(encoding="utf-8"), tmp_path, "agent")
    calls = [call for message in response.output_messages or () for call in message.tool_calls]
    assert [(call.tool, call.input, call.status) for call in calls] == [
        ("delete_file", {"path": "notes.txt"}, "pending")
    ]
    assert response.unread == ()
