"""Agents of libraries that are no development dependencies as targets, and the objects that they give back.

Each library is in an environment of its own (`make record-samples`); a test is skipped where that is missing.
"""

import os
from pathlib import Path

import pytest

from agentv.model.response import ProviderResponse
from tests.fakes.library_agents import CODES
from tests.support.environments import ask_there

ENVIRONMENTS = os.environ.get("AGENTV_FRAMEWORKS", ".venv-samples")
REPLIES = {
    "smolagents": ("agent", "returned", "streamed", "memory"),
    "llama_index": ("agent", "workflow", "streamed", "returned"),
    "strands": ("agent", "agent", "forgetful", "returned", "streamed", "repeated"),
    "agno": ("agent", "agent", "team", "returned", "streamed"),
    "autogen": ("agent", "agent", "team", "returned", "streamed"),
    "agent_framework": ("agent", "returned"),
    "haystack": ("agent", "returned"),
    "semantic_kernel": ("agent",),
    "dspy": ("agent", "wrapped", "returned"),
    "crewai": ("agent", "agent", "single", "single", "returned"),
}
"""The targets: the agent itself, and functions that return values of the library."""
UNCOUNTED = ("llama_index", "dspy")
"""Those that do not tell what their models cost."""
CONVERSES = ("llama_index", "strands", "agno", "agent_framework", "haystack", "semantic_kernel")
REFUSES = ("smolagents", "autogen", "dspy", "crewai")
OWN_TOOLS = ("final_answer", "finish")
"""Calls by which some libraries end."""


def ask(system: str, folder: Path, *names: str) -> list[ProviderResponse]:
    return ask_there(f"{ENVIRONMENTS}/{system}", CODES[system], folder, *names)


@pytest.mark.parametrize("system", CODES)
def test_an_agent_is_asked_and_its_calls_are_read(system: str, tmp_path: Path) -> None:
    names = REPLIES[system]
    for name, response in zip(names, ask(system, tmp_path, *names), strict=True):
        assert response.error is None, name
        assert response.unread == (), name
        calls = [call for message in response.output_messages or () for call in message.tool_calls]
        (call,) = [call for call in calls if call.tool not in OWN_TOOLS]
        assert (call.tool.removeprefix("Tools-"), call.input) == ("weather", {"city": "Paris"}), name
        if (system, name) != ("llama_index", "returned"):  # whose output lists calls without their results
            assert call.output == "18 C", name
        assert call.status in (None, "ok")
        assert response.text.startswith(("18", "told")), name
        usage = response.tokens_usage
        assert (None if usage is None else usage.total_tokens) == (None if system in UNCOUNTED else 30), name


@pytest.mark.parametrize("system", CONVERSES)
def test_an_agent_is_told_the_whole_conversation(system: str, tmp_path: Path) -> None:
    (response,) = ask(system, tmp_path, "agent+")
    assert response.error is None
    roles = response.text.removeprefix("told ").strip("[]").replace("'", "").split(", ")
    assert roles[-5:-2] == ["user", "assistant", "user"]
    assert len([message for message in response.output_messages or () if message.role == "assistant"]) == 2


@pytest.mark.parametrize("system", REFUSES)
def test_a_conversation_that_an_agent_cannot_be_told_is_refused(system: str, tmp_path: Path) -> None:
    (response,) = ask(system, tmp_path, "agent+")
    assert response.error is not None
    assert "has 3 messages and this agent takes one text of the user's: write a function" in response.error.message


def test_what_has_no_one_place_for_the_prompt_is_refused(tmp_path: Path) -> None:
    for system, name, words in (
        ("crewai", "fixed", "these are none: write a function"),
        ("dspy", "two", "are 'question', 'city': write a function"),
    ):
        (response,) = ask(system, tmp_path, name)
        assert response.error is not None
        assert words in response.error.message
