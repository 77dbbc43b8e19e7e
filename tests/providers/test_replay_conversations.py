"""Recorded conversations: turn k gets the reply to turn k, whatever form the recording has."""

import json
from pathlib import Path
from typing import Any

import pytest

from agentv.model.conversation import Message
from agentv.model.request import Request
from agentv.providers.replay import Replay
from tests.support.command import Command, command_in
from tests.support.talks import Talk, error_of, talk, texts_of, with_open

CALL = {"tool": "refund", "input": {"order": "A-17"}, "output": "ok", "id": "c1"}
SECOND = [{"role": "assistant", "tool_calls": [CALL]}, {"role": "assistant", "content": "Done."}]
SAID = [
    {"role": "user", "content": "Money back!"},
    {"role": "assistant", "content": "Which order?"},
    {"role": "user", "content": "A-17"},
    *SECOND,
]
RESULT_TURNS = [
    {"index": 1, "first_message": 0, "last_message": 1, "latency_ms": 3.0, "calls": 0, "attempts": 1},
    {"index": 2, "first_message": 2, "last_message": 4, "latency_ms": 4.0, "calls": 1, "attempts": 1},
]
RECORDINGS: dict[str, Any] = {
    "turns": {"turns": ["Which order?", {"output_messages": SECOND, "latency_ms": 4}]},
    "turns of messages": {"turns": [[SAID[1]], SECOND]},
    "a list of replies": [{"text": "Which order?"}, {"output_messages": SECOND}],
    "messages": SAID,
    "a reply with all messages": {"messages": SAID},
    "a result": {"schema": "agentv.result/1", "messages": SAID, "turns": RESULT_TURNS},
    "a stored reply": {
        "output_messages": SAID,
        "text": "Done.",
        "turns": [
            {"index": 1, "first_message": 0, "last_message": 1, "response": {"text": "Which order?"}},
            {
                "index": 2,
                "first_message": 2,
                "last_message": 4,
                "agent_messages": 2,
                "response": {"text": "Done.", "latency_ms": 4.0},
            },
        ],
    },
}


def replay(folder: Path, recording: Any) -> Replay:
    (folder / "refund.json").write_text(json.dumps(recording))
    return Replay(name="recorded", file="{case_id}.json")


@pytest.mark.parametrize("name", RECORDINGS)
def test_turn_k_gets_the_reply_to_turn_k(tmp_path: Path, name: str) -> None:
    held = talk(replay(tmp_path, RECORDINGS[name]), "Money back!", "A-17", folder=tmp_path, case_id="refund")
    assert texts_of(held) == ["Which order?", "Done."]
    assert [
        [call.tool for message in reply.output_messages or () for call in message.tool_calls] for reply in held.replies
    ] == [
        [],
        ["refund"],
    ]
    assert [message.role for message in held.messages] == ["user", "assistant", "user", "assistant", "assistant"]
    assert not any(reply.unread for reply in held.replies)


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_turn_that_was_not_recorded_is_an_error(tmp_path: Path, name: str) -> None:
    async def hold(found: Any) -> Any:
        held = Talk(found, "refund")
        await held.say("Money back!")
        await held.say("A-17")
        return await held.say("Thanks.")

    error = error_of(with_open(replay(tmp_path, RECORDINGS[name]), hold, tmp_path))
    assert (error.kind, error.retryable) == ("protocol", False)
    assert error.message == "the recording of case 'refund' has 2 turns, and no turn 3"


@pytest.mark.parametrize("name", ["turns", "a list of replies", "a result", "a stored reply"])
def test_a_recorded_conversation_is_no_reply_to_a_single_question(tmp_path: Path, name: str) -> None:
    async def ask(found: Any) -> Any:
        return await found.session.invoke(Request(id="refund"))

    error = error_of(with_open(replay(tmp_path, RECORDINGS[name]), ask, tmp_path))
    assert error.message == "the recording of case 'refund' is a conversation of 2 turns, and the case has none"


def test_one_recorded_reply_is_that_of_the_first_turn(tmp_path: Path) -> None:
    async def hold(found: Any) -> list[Any]:
        held = Talk(found, "refund")
        return [await held.say("Money back!"), await held.say("A-17")]

    first, second = with_open(replay(tmp_path, {"text": "Which order?"}), hold, tmp_path)
    assert first.text == "Which order?"
    assert "has 1 turn, and no turn 2" in error_of(second).message


def test_messages_before_the_first_turn_are_no_turn(tmp_path: Path) -> None:
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    provider = replay(tmp_path, {"messages": [*history, *SAID]})
    earlier = (Message(role="user", content="Hi"), Message(role="assistant", content="Hello"))

    async def hold(found: Any) -> list[str]:
        held = Talk(found, "refund")
        held.messages = earlier
        await held.say("Money back!")
        await held.say("A-17")
        return texts_of(held)

    assert with_open(provider, hold, tmp_path) == ["Which order?", "Done."]


def test_what_a_result_does_not_know_stays_unknown(tmp_path: Path) -> None:
    unknown = [{**turn, "calls": None} for turn in RESULT_TURNS]
    provider = replay(tmp_path, {"messages": SAID, "turns": unknown, "error": None})
    first, second = talk(provider, "Money back!", "A-17", folder=tmp_path, case_id="refund").replies
    assert (first.output_messages, first.latency_ms) == (None, 3.0)
    assert "the recorded turn has not all of its calls" in str(second.unread[0])


def test_a_recorded_error_is_that_of_the_last_turn(tmp_path: Path) -> None:
    error = {"kind": "timeout", "message": "too late"}
    provider = replay(tmp_path, {"messages": SAID, "turns": RESULT_TURNS, "error": error})

    async def hold(found: Any) -> list[Any]:
        held = Talk(found, "refund")
        return [await held.say("Money back!"), await held.say("A-17")]

    first, second = with_open(provider, hold, tmp_path)
    assert first.success
    assert error_of(second).message == "too late"


def test_a_result_without_messages_says_what_is_missing(tmp_path: Path) -> None:
    async def hold(found: Any) -> Any:
        return await Talk(found, "refund").say("Money back!")

    error = error_of(with_open(replay(tmp_path, {"turns": RESULT_TURNS}), hold, tmp_path))
    assert "write it with `--include-messages`" in error.message


def test_each_persona_has_a_recording_of_its_own(tmp_path: Path) -> None:
    lines = [{"id": "refund", "persona_id": name, "turns": [str(name)]} for name in ("calm", "angry", None)]
    (tmp_path / "all.jsonl").write_text("\n".join(map(json.dumps, lines)))
    provider = Replay(name="recorded", file="all.jsonl")
    for name in ("calm", "angry", None):
        held = talk(provider, "Hi", folder=tmp_path, case_id="refund", persona_id=name)
        assert texts_of(held) == [str(name)]

    async def ask(found: Any) -> Any:
        return await Talk(found, "refund", persona_id="bored").say("Hi")

    message = error_of(with_open(provider, ask, tmp_path)).message
    assert message == "all.jsonl holds no reply for case 'refund' and persona 'bored'"


TURNS = [
    {"user": "Money back!", "evaluators": [{"type": "contains", "value": "order"}]},
    {"user": "A-17", "evaluators": [{"type": "tool_trajectory", "minimums": {"refund": 1}}]},
]


@pytest.fixture
def run(tmp_path: Path) -> Command:
    return command_in(tmp_path)


def test_results_and_exports_of_ours_are_recordings(run: Command) -> None:
    cases = [{"id": "refund", "turns": TURNS}]
    first = {"name": "m", "provider": "mock", "reply": ["Which order?", {"output_messages": SECOND}]}
    run.write("first.eval.yaml", {"targets": [first], "cases": cases})
    assert run("eval", "first.eval.yaml", "--out", "results.jsonl", "--include-messages").code == 0
    exported = run("runs", "export")
    (run.folder / "exported.jsonl").write_text(exported.out)
    for file in ("results.jsonl", "exported.jsonl"):
        again = {"name": "again", "provider": "replay", "file": file}
        run.write("again.eval.yaml", {"targets": [again], "cases": cases})
        done = run("eval", "again.eval.yaml", "--out", "again.jsonl", "--include-messages")
        assert done.code == 0, (file, done.out)
        assert run.records("again.jsonl")[0]["messages"] == run.records("results.jsonl")[0]["messages"]
