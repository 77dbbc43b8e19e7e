"""Agents of libraries that keep something in themselves: asked one by one, and never two at once."""

import asyncio
import time
from typing import Any

import pytest

from agentv.errors import FormatError
from agentv.model.conversation import Message, ToolCall
from agentv.model.request import Request
from agentv.providers.python.agents import find_agent, text_turns


def request(*messages: Message) -> Request:
    return Request(id="a", input_messages=messages or (Message(role="user", content="Hi"),))


class MultiStepAgent:
    """Stands in for an agent of smolagents: it takes its time, and notes how many runs are under way."""

    __module__ = "smolagents.agents"

    def __init__(self) -> None:
        self.running = self.most = self.ended = 0
        self.interrupted = False
        self.go_on = asyncio.Event()

    def run(self, task: str, *, return_full_result: bool) -> str:
        assert return_full_result
        self.running += 1
        self.most = max(self.most, self.running)
        while not self.go_on.is_set():
            time.sleep(0.005)
        self.running -= 1
        self.ended += 1
        return f"done: {task}"

    def interrupt(self) -> None:
        self.interrupted = True


def test_a_run_that_was_given_up_ends_before_the_next_one_begins() -> None:
    async def main() -> tuple[Any, MultiStepAgent]:
        agent = MultiStepAgent()
        ask = find_agent(agent)
        assert ask is not None
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await ask(request())
        assert (agent.interrupted, agent.running) == (True, 1)
        second = asyncio.ensure_future(_awaited(ask))
        await asyncio.sleep(0.05)
        agent.go_on.set()
        return await second, agent

    async def _awaited(ask: Any) -> Any:
        return await ask(request())

    answer, agent = asyncio.run(main())
    assert answer == "done: Hi"
    assert (agent.most, agent.ended) == (1, 2)


class Agent:
    """Somebody's own, in a package that is called like a library."""

    __module__ = "agno.mine"

    def __call__(self, prompt: str) -> str:
        return prompt


def test_a_class_that_is_only_called_like_a_library_s_is_none() -> None:
    assert find_agent(Agent()) is None


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Message(role="tool", content="x", tool_call_id="c"), "a message of role 'tool'"),
        (Message(role="assistant", tool_calls=(ToolCall(tool="find"),)), "has earlier calls"),
        (Message(role="user", content=[{"type": "image_url", "image_url": {}}]), "a block of type 'image_url'"),
    ],
)
def test_what_texts_cannot_tell_is_refused(message: Message, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        text_turns(request(message, Message(role="user", content="Hi")))


def test_a_conversation_ends_with_the_user() -> None:
    with pytest.raises(FormatError, match="does not end with a message of the user's"):
        text_turns(request(Message(role="user", content="Hi"), Message(role="assistant", content="Hello")))
