"""Conversations with programs that stay up: all turns of one go to the same process."""

import asyncio
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from agentv.protocols import ConversationSession
from agentv.providers.cli import Cli
from tests.support.talks import Talk, error_of, opened, texts_of

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs here are for POSIX")

MEMORY = """
import json, os, sys
memory = {}
for line in sys.stdin:
    request = json.loads(line)
    said = memory.setdefault(request["conversation_id"], [])
    said += [message["content"] for message in request["new_messages"]]
    if "die" in said[-1] and not os.path.exists(said[-1]):
        open(said[-1], "w").close()
        os._exit(3)
    reply = {"id": request["id"], "text": f"{os.getpid()} {' '.join(said)}", "thread_id": request["conversation_id"]}
    print(json.dumps(reply), flush=True)
"""


def program(folder: Path, **settings: Any) -> Cli:
    (folder / "agent.py").write_text(MEMORY)
    return Cli(name="agent", mode="stream", command=(sys.executable, "-S", "agent.py"), **settings)


@pytest.mark.parametrize("mode", ["full", "thread"])
def test_conversations_in_flight_each_have_one_process(tmp_path: Path, mode: Any) -> None:
    async def hold() -> list[Talk]:
        async with opened(program(tmp_path, workers=3, conversation=mode), tmp_path) as found:
            assert isinstance(found.session, ConversationSession)
            talks = [Talk(found, f"case-{number}") for number in range(9)]
            for turn in "123":
                await asyncio.gather(*(held.say(f"{held.case_id}.{turn}") for held in talks))
            await asyncio.gather(*(held.end() for held in talks))
            return talks

    talks = asyncio.run(hold())
    by_process = defaultdict(list)
    for held in talks:
        processes = {text.partition(" ")[0] for text in texts_of(held)}
        assert len(processes) == 1
        by_process[processes.pop()].append(held.case_id)
        words = " ".join(f"{held.case_id}.{turn}" for turn in "123")
        assert texts_of(held)[-1].endswith(f" {words}")
    assert sorted(map(len, by_process.values())) == [3, 3, 3]


def test_a_process_that_dies_is_an_error_of_the_turns_that_it_had(tmp_path: Path) -> None:
    async def hold() -> None:
        async with opened(program(tmp_path), tmp_path) as found:
            first, second = Talk(found, "a"), Talk(found, "b")
            await first.say("a1")
            await second.say("b1")
            died = error_of(await first.say("die"))
            assert (died.kind, died.retryable) == ("transport", True)
            assert "exit code 3" in died.message
            # With the whole conversation in each request, another process can go on with both.
            again = await first.say("die")
            assert again.success
            assert (await second.say("b2")).success
            assert again.text.partition(" ")[0] != texts_of(first)[0].partition(" ")[0]

    asyncio.run(hold())


def test_a_process_that_dies_takes_the_threads_with_it(tmp_path: Path) -> None:
    async def hold() -> None:
        async with opened(program(tmp_path, conversation="thread"), tmp_path) as found:
            first, second = Talk(found, "a"), Talk(found, "b")
            await first.say("a1")
            await second.say("b1")
            assert not (await first.say("die")).success
            for lost in (await first.say("die"), await second.say("b2")):
                error = error_of(lost)
                assert (error.kind, error.retryable) == ("transport", True)
                assert "its earlier turns are lost" in error.message
            await first.end()
            again = Talk(found, "a")  # as the engine does: the conversation starts again
            await again.say("a1")
            assert (await again.say("die")).text.endswith(" a1 die")
            assert (await again.say("a3")).text.endswith(" a1 die a3")

    asyncio.run(hold())


def test_the_turn_that_kills_a_process_is_found_out_alone(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(MEMORY.replace("and not os.path.exists(said[-1])", ""))
    deadly = Cli(name="agent", mode="stream", command=(sys.executable, "-S", "agent.py"), conversation="thread")

    async def hold() -> None:
        async with opened(deadly, tmp_path) as found:
            for _ in range(2):
                held = Talk(found, "a")
                await held.say("a1")
                error = error_of(await held.say("die"))
                await held.end()
            assert (error.kind, error.retryable) == ("agent", False)
            assert error.message.startswith("asked nothing else, the program ended with exit code 3")

    asyncio.run(hold())


def test_an_ended_conversation_is_forgotten(tmp_path: Path) -> None:
    async def hold() -> None:
        async with opened(program(tmp_path, workers=2, conversation="thread"), tmp_path) as found:
            processes = set()
            for number in range(6):
                held = Talk(found, f"case-{number}")
                await held.say("one")
                processes.add((await held.say("two")).text.partition(" ")[0])
                await held.end()
                await held.end()
            assert len(processes) == 1, "an idle process takes the next conversation"

    asyncio.run(hold())
