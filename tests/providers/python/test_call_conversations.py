"""Conversations with Python code: functions, objects, and classes that are made for each of them."""

import asyncio
import textwrap
from pathlib import Path
from typing import Any

import pytest

from agentv.providers.python import Function, PythonAgent
from tests.support.talks import Talk, error_of, opened, talk, texts_of, with_open


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let agents write their files there."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(params=[None, 2], ids=["here", "workers"])
def workers(request: pytest.FixtureRequest) -> int | None:
    found: int | None = request.param
    return found


def python(folder: Path, code: str, **settings: Any) -> PythonAgent:
    (folder / "agent.py").write_text(textwrap.dedent(code))
    return PythonAgent(name="agent", function="./agent.py:agent", **settings)


MEMORY = """
    import os
    class agent:
        made = 0
        def __init__(self, greeting="Hi", conversation_id=""):
            self.said, self.greeting, self.id = [], greeting, conversation_id
            agent.made += 1
        def __call__(self, prompt):
            self.said.append(prompt)
            return f"{self.greeting} {os.getpid()} {self.id} {agent.made}: {' '.join(self.said)}"
        def close(self):
            with open("closed", "a") as file: file.write(f"{self.id}\\n")
"""


def test_a_function_gets_the_messages_of_the_whole_conversation(tmp_path: Path) -> None:
    code = """
        def agent(messages):
            call = {"id": f"c{len(messages)}", "tool": "look", "output": 1}
            return [*messages, {"role": "assistant", "tool_calls": [call]}, {"role": "assistant", "content": "seen"}]
    """
    held = talk(python(tmp_path, code), "one", "two", "three", folder=tmp_path)
    assert [message.role for message in held.messages] == ["user", "assistant", "assistant"] * 3
    assert [call.id for message in held.messages for call in message.tool_calls] == ["c1", "c4", "c7"]
    assert all(len(reply.output_messages or ()) == 2 and reply.echo_end is None for reply in held.replies)


def test_a_function_that_takes_the_prompt_is_told_to_take_more(tmp_path: Path) -> None:
    held = talk(python(tmp_path, "def agent(prompt): return prompt.upper()"), "one", "two", folder=tmp_path)
    assert texts_of(held) == ["ONE", "TWO"]
    first, second = held.replies
    assert first.warnings == ()
    assert "it takes the prompt alone, so this turn came without those before it" in second.warnings[0]
    told = talk(python(tmp_path, "def agent(prompt, conversation_id): return prompt"), "1", "2", folder=tmp_path)
    assert told.replies[1].warnings == ()


@pytest.mark.parametrize("mode", ["full", "thread"])
def test_a_function_is_handed_the_ids_that_it_takes(tmp_path: Path, mode: Any) -> None:
    code = """
        async def agent(messages, *, thread_id, conversation_id, greeting):
            texts = [message["content"] for message in messages]
            return {"text": f"{greeting} {conversation_id} {thread_id} {len(texts)}", "thread_id": "t-1"}
    """
    settings = {"conversation": mode, "args": {"greeting": "Hi"}}
    held = talk(python(tmp_path, code, **settings), "one", "two", folder=tmp_path)
    sent = 1 if mode == "thread" else 3
    assert texts_of(held) == [f"Hi {held.id} None 1", f"Hi {held.id} t-1 {sent}"]


def test_a_function_that_knows_the_conversation_need_not_report_a_thread(tmp_path: Path) -> None:
    code = """
        memory = {}
        def agent(prompt, conversation_id):
            memory.setdefault(conversation_id, []).append(prompt)
            return " ".join(memory[conversation_id])
    """
    held = talk(python(tmp_path, code, conversation="thread"), "one", "two", folder=tmp_path)
    assert texts_of(held) == ["one", "one two"]
    assert {reply.thread_id for reply in held.replies} == {held.id}


def test_a_function_that_takes_the_thread_has_to_report_it(tmp_path: Path) -> None:
    code = "def agent(prompt, thread_id): return prompt"
    held = talk(python(tmp_path, code, conversation="thread"), "one", folder=tmp_path)
    assert [reply.thread_id for reply in held.replies] == [None]


def test_a_request_has_it_all(tmp_path: Path, workers: int | None) -> None:
    code = """
        def agent(request):
            new = [message.text for message in request.new_messages]
            return f"{request.turn} {request.conversation_id} {new} {len(request.input_messages)} {request.headers}"
    """
    target = python(tmp_path, code, workers=workers)
    held = talk(target, "one", "two", folder=tmp_path, headers={"x-user": "7"})
    assert texts_of(held) == [f"1 {held.id} ['one'] 1 {{'x-user': '7'}}", f"2 {held.id} ['two'] 3 {{'x-user': '7'}}"]


def test_a_class_is_made_once_for_each_conversation(tmp_path: Path, workers: int | None) -> None:
    target = python(tmp_path, MEMORY, conversation="thread", workers=workers, args={"greeting": "Ho"})

    async def hold() -> tuple[Talk, Talk]:
        async with opened(target, tmp_path) as found:
            first, second = Talk(found, "a"), Talk(found, "b")
            for number in "12":
                await asyncio.gather(first.say(f"a{number}"), second.say(f"b{number}"))
            await first.end()
            await first.end()
            await second.say("b3")
            return first, second

    first, second = asyncio.run(hold())
    for held, said in ((first, "a1 a2"), (second, "b1 b2 b3")):
        processes = {text.split()[1] for text in texts_of(held)}
        assert len(processes) == 1
        assert texts_of(held)[-1].startswith(f"Ho {processes.pop()} {held.id} ")
        assert texts_of(held)[-1].endswith(f": {said}")
        assert {reply.thread_id for reply in held.replies} == {held.id}


def test_the_object_of_a_conversation_is_closed_with_it(tmp_path: Path, workers: int | None) -> None:
    target = python(tmp_path, MEMORY, conversation="thread", workers=workers)

    async def hold() -> None:
        async with opened(target, tmp_path) as found:
            first, second = Talk(found), Talk(found)
            await first.say("a")
            await second.say("b")
            await first.end()
            assert (tmp_path / "closed").read_text().split() == [first.id]
            await second.end()
            assert (tmp_path / "closed").read_text().split() == [first.id, second.id]

    asyncio.run(hold())


def test_a_single_question_has_an_object_of_its_own(tmp_path: Path) -> None:
    target = python(tmp_path, MEMORY, conversation="thread")

    async def ask(found: Any) -> list[str]:
        return [(await Talk(found, is_conversation=False, conversation_id="").say(text)).text for text in ("a", "b")]

    assert [text.partition(": ")[2] for text in with_open(target, ask, tmp_path)] == ["a", "b"]
    assert (tmp_path / "closed").read_text() == "\n\n"


def test_without_threads_a_class_is_made_once_for_all(tmp_path: Path) -> None:
    target = python(tmp_path, MEMORY)

    async def hold(found: Any) -> list[str]:
        return [(await Talk(found).say(text)).text for text in ("a", "b")]

    assert [text.partition(": ")[2] for text in with_open(target, hold, tmp_path)] == ["a", "a b"]


def test_a_worker_that_dies_takes_its_conversations_with_it(tmp_path: Path) -> None:
    dying = "prompt == 'die' and os.kill(os.getpid(), 9); self.said.append(prompt)"
    code = MEMORY.replace("self.said.append(prompt)", dying)

    async def hold(found: Any) -> None:
        first, second = Talk(found, "a"), Talk(found, "b")
        await first.say("a1")
        await second.say("b1")
        assert error_of(await first.say("die")).retryable
        assert "its earlier turns are lost" in error_of(await first.say("a2")).message
        assert (await second.say("b2")).text.endswith(": b1 b2")

    with_open(python(tmp_path, code, conversation="thread", workers=2), hold, tmp_path)


def test_a_conversation_that_was_ended_is_not_begun_in_the_middle(tmp_path: Path) -> None:
    async def hold(found: Any) -> None:
        held = Talk(found)
        await held.say("one")
        await held.end()
        assert "its earlier turns are lost" in error_of(await held.say("two")).message

    with_open(python(tmp_path, MEMORY, conversation="thread"), hold, tmp_path)


@pytest.mark.parametrize("code", ["def agent(prompt): return prompt", "def agent(messages): return 'x'"])
def test_what_cannot_tell_conversations_apart_is_sent_no_threads(tmp_path: Path, code: str) -> None:
    async def ask(found: Any) -> Any:
        return await Talk(found).say("one")

    error = error_of(with_open(python(tmp_path, code, conversation="thread"), ask, tmp_path))
    assert "could not tell whose it is: take the `conversation_id`" in error.message
    assert error.code == "not_started"


def test_a_function_is_resumed_with_a_value(tmp_path: Path) -> None:
    code = """
        def agent(prompt, resume=None):
            if resume is None:
                call = {"tool": "refund", "id": "c1", "status": "pending"}
                return {"output_messages": [{"role": "assistant", "tool_calls": [call]}]}
            return f"{prompt!r} {resume}"
    """

    async def hold(found: Any) -> Talk:
        held = Talk(found)
        await held.say("Refund it.")
        await held.resume({"approved": True})
        return held

    first, second = with_open(python(tmp_path, code), hold, tmp_path).replies
    assert [call.status for message in first.output_messages or () for call in message.tool_calls] == ["pending"]
    assert second.text == "'' {'approved': True}"


def test_a_function_without_resume_says_so(tmp_path: Path) -> None:
    async def hold(found: Any) -> Any:
        held = Talk(found)
        await held.say("Refund it.")
        return await held.resume("yes")

    error = error_of(with_open(python(tmp_path, "def agent(messages): return 'x'"), hold, tmp_path))
    assert "the function takes neither `resume` nor the `request`" in error.message


def test_a_function_of_the_caller_holds_conversations_too() -> None:
    def agent(messages: list[dict[str, Any]]) -> str:
        return " ".join(message["content"] for message in messages if message["role"] == "user")

    assert texts_of(talk(Function(function=agent), "one", "two")) == ["one", "one two"]
