"""Programs that hold conversations: one process for each turn."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from agentv.model.request import Request
from agentv.providers.cli import Cli
from tests.support.talks import Talk, error_of, opened, talk, texts_of, with_open

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs here are for POSIX")

READ = "import json, os, sys; request = json.load(sys.stdin)\n"
SUMS = f"""{READ}
users = [message["content"] for message in request["input_messages"] if message["role"] == "user"]
answer = " + ".join(users)
call = {{"id": f"c{{request['turn']}}", "tool": "add", "input": {{"turn": request["turn"]}}, "output": len(users)}}
added = [{{"role": "assistant", "tool_calls": [call]}}, {{"role": "assistant", "content": answer}}]
print(json.dumps({{"output_messages": [*echo(request), *added]}}))
"""
ECHOES = {
    "nothing": "def echo(request): return []\n",
    "the whole conversation": "def echo(request): return request['input_messages']\n",
    "the new message": "def echo(request): return request['new_messages']\n",
}


def python(code: str, *arguments: str, **settings: Any) -> Cli:
    found = Cli(name="agent", command=(sys.executable, "-S", "-c", code, *arguments), **settings)
    assert found.check("target") == []
    return found


@pytest.mark.parametrize("echo", ECHOES)
def test_each_turn_gets_the_conversation_and_an_echo_of_it_is_cut_once(echo: str) -> None:
    held = talk(python(ECHOES[echo] + SUMS), "1", "2", "3")
    assert texts_of(held) == ["1", "1 + 2", "1 + 2 + 3"]
    assert [[call.id for call in message.tool_calls] for message in held.messages if message.tool_calls] == [
        ["c1"],
        ["c2"],
        ["c3"],
    ]
    assert [message.role for message in held.messages] == ["user", "assistant", "assistant"] * 3
    assert not any(reply.unread or reply.echo_end for reply in held.replies)


def test_a_turn_is_told_what_is_new_and_where_it_belongs() -> None:
    held = talk(python(READ + "print('> ' + json.dumps(request))"), "one", "two", case_id="refund")
    first, second = [json.loads(text.removeprefix("> ")) for text in texts_of(held)]
    assert (first["turn"], second["turn"]) == (1, 2)
    assert first["conversation_id"] == second["conversation_id"] == held.id
    assert first["new_messages"] == first["input_messages"] == [{"role": "user", "content": "one"}]
    assert second["new_messages"] == [{"role": "user", "content": "two"}]
    assert [message["role"] for message in second["input_messages"]] == ["user", "assistant", "user"]
    assert first["id"] == first["case_id"] == "refund"
    assert "thread_id" not in first
    assert "resume" not in first


@pytest.mark.parametrize("answer", ["dict(request, text='done')", "dict(request, output_messages=[ANSWER])"])
def test_a_program_that_sends_the_request_back_answers_all_the_same(answer: str) -> None:
    code = f"{READ}ANSWER = {{'role': 'assistant', 'content': 'done'}}\nprint(json.dumps({answer}))"
    held = talk(python(code), "one", "two")
    assert texts_of(held) == ["done", "done"]
    assert [message.role for message in held.messages] == ["user", "assistant"] * 2
    assert not any(reply.unread for reply in held.replies)


def test_a_thread_is_handed_back_and_its_argument_is_left_out_before() -> None:
    code = "import json, sys; print(json.dumps({'text': ' '.join(sys.argv[1:]), 'thread_id': 't-1'}))"
    arguments = ("{prompt}", "--resume={thread_id}", "{conversation_id}/{turn}")
    target = python(code, *arguments, conversation="thread")
    assert target.conversation_problem is None
    held = talk(target, "one", "two")
    assert texts_of(held) == [f"one {held.id}/1", f"two --resume=t-1 {held.id}/2"]


def test_a_pending_agent_is_told_the_value_that_resumes_it() -> None:
    code = f"{READ}print('> ' + json.dumps([request.get('resume', 'nothing'), request['new_messages']]))"

    async def hold(found: Any) -> list[str]:
        held = Talk(found)
        await held.say("Refund it.")
        await held.resume({"approved": True})
        await held.resume(None)
        return texts_of(held)

    first, second, third = with_open(python(code), hold)
    assert json.loads(first[2:])[0] == "nothing"
    assert json.loads(second[2:]) == [{"approved": True}, []]
    assert json.loads(third[2:]) == [None, []]


def test_a_persona_has_variables_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALE", "en")
    target = python("import os; print(os.environ['LOCALE'], os.environ.get('USER_ID'))", env=("LOCALE",))
    assert target.persona_env_problem is None
    assert texts_of(talk(target, "a", env={"LOCALE": "de", "USER_ID": "7"})) == ["de 7"]
    assert texts_of(talk(target, "a")) == ["en None"]


@pytest.mark.parametrize("env", [{"a=b": "c"}, {"": "c"}, {"a": "b\0"}])
def test_a_variable_that_cannot_be_set_is_an_error_of_the_turn(env: dict[str, str]) -> None:
    async def ask(found: Any) -> Any:
        return await found.session.invoke(Request(id="a", env=env))

    assert "of the persona cannot be set" in error_of(with_open(python("print(1)"), ask)).message


def test_a_batch_cannot_hold_a_conversation_and_says_why() -> None:
    batch = Cli(name="agent", mode="batch", command=("agent",))
    assert batch.conversation_problem == (
        "`mode: batch` sends all cases at once, and a turn needs the reply to the one before it: "
        "use `mode: single`, or `mode: stream` to keep the program running"
    )
    assert Cli(name="agent", mode="stream", command=("agent",)).conversation_problem is None
    assert Cli(name="agent", command=("agent",)).conversation_problem is None


@pytest.mark.parametrize("mode", ["batch", "stream"])
def test_a_process_for_several_cases_has_no_variables_of_a_persona(mode: Any) -> None:
    problem = Cli(name="agent", mode=mode, command=("agent",)).persona_env_problem
    assert problem is not None
    assert f"`mode: {mode}`: use `mode: single`" in problem


@pytest.mark.parametrize(
    ("arguments", "is_possible"),
    [
        (("{prompt}",), False),
        (("{prompt}", "{input_file}"), True),
        (("{prompt}", "{conversation_id}"), True),
        (("{prompt}", "--resume={thread_id}"), True),
        (("{input_file}",), True),
        ((), True),
    ],
)
def test_a_turn_is_never_sent_without_those_before_it(arguments: tuple[str, ...], is_possible: bool) -> None:
    problem = Cli(name="agent", command=("agent", *arguments)).conversation_problem
    assert (problem is None) is is_possible
    assert problem is None or problem.startswith("`{prompt}` is the last message alone")


def test_turns_of_a_conversation_are_refused_as_placeholders_of_long_processes() -> None:
    for mode in ("batch", "stream"):
        for name in ("conversation_id", "thread_id", "turn"):
            (problem,) = Cli(name="agent", mode=mode, command=("agent", f"{{{name}}}")).check("t")
            assert f"`{{{name}}}` is for `mode: single`" in problem.message


def test_the_id_of_a_thread_is_never_run_as_code() -> None:
    (problem,) = Cli(name="agent", command=("sh", "-c", "agent --resume={thread_id}")).check("t")
    assert "`{thread_id}` would be run as code" in problem.message


def test_nothing_of_a_conversation_is_left_in_a_workspace(tmp_path: Path) -> None:
    code = "import json, sys; request = json.load(open(sys.argv[1])); print(request['turn'])"

    async def hold(found: Any) -> list[str]:
        held = Talk(found)
        return [(await held.say(str(number))).text for number in range(2)]

    assert with_open(python(code, "{input_file}"), hold, tmp_path) == ["1", "2"]


def test_two_conversations_at_once_do_not_mix() -> None:
    async def hold() -> None:
        async with opened(python(ECHOES["nothing"] + SUMS)) as found:
            first, second = Talk(found, "a"), Talk(found, "b")
            for number in "12":
                await first.say(f"a{number}")
                await second.say(f"b{number}")
            assert texts_of(first)[-1] == "a1 + a2"
            assert texts_of(second)[-1] == "b1 + b2"

    asyncio.run(hold())
