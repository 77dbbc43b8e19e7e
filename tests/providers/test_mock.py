"""`mock`: replies that the eval itself holds."""

import asyncio
from typing import Any

import pytest

from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.providers.mock import Mock
from agentv.providers.opening import open_provider


def ask(mock: Mock, **request: Any) -> ProviderResponse:
    async def invoke() -> ProviderResponse:
        session = await mock.open(Scope(root=".", folder="."))
        return await session.invoke(Request(**{"id": "c", **request}))

    return asyncio.run(invoke())


def test_case_i_gets_entry_i_modulo_n() -> None:
    mock = Mock(reply=["a", {"text": "b"}])
    assert [ask(mock, index=index).text for index in range(5)] == ["a", "b", "a", "b", "a"]


def test_a_text_alone_says_nothing_of_calls() -> None:
    assert ask(Mock(reply="a")) == ProviderResponse(text="a")


def test_without_a_reply_it_repeats_the_question() -> None:
    from agentv.model.conversation import Message  # noqa: PLC0415 - once

    assert ask(Mock(), input_messages=(Message(role="user", content="hi"),)).text == "hi"


def test_failures_are_the_same_in_every_run_and_may_pass() -> None:
    mock = Mock(reply="a", fail_rate=0.3)
    failed = [not ask(mock, id=f"c{number}").success for number in range(1000)]
    assert failed == [not ask(mock, id=f"c{number}").success for number in range(1000)]
    assert 230 < sum(failed) < 370
    error = ask(Mock(fail_rate=1.0)).error
    assert error is not None
    assert (error.kind, error.retryable) == ("transport", True)
    assert ask(Mock(reply="a", fail_rate=0.0)).success


@pytest.mark.parametrize(
    ("reply", "path", "said"),
    [
        ([], "t.reply", "it is empty: add a reply"),
        ({"txt": "a"}, "t.reply.txt", "did you mean 'text'?"),
        (["a", {"output_messages": 3}], "t.reply[1]", "output_messages"),
        ({"output_messages": [{"role": "assistant", "tool_calls": 3}]}, "t.reply", "tool_calls"),
    ],
)
def test_a_reply_that_cannot_be_meant_is_refused(reply: Any, path: str, said: str) -> None:
    (problem,) = Mock(reply=reply).check("t")
    assert problem.path == path
    assert said in problem.message


def test_a_subclass_that_replaces_invoke_is_refused_and_not_ignored() -> None:
    class Louder(Mock, kw_only=True):
        async def invoke(self, request: Request) -> ProviderResponse:
            return ProviderResponse(text=request.prompt.upper())

    reason = asyncio.run(open_provider(Louder(reply="a"), Scope(root=".", folder=".")))
    assert reason == (
        "'Louder' replaces `invoke` of a provider that returns a session: "
        "wrap the session that `super().open(scope)` returns"
    )


def talk(mock: Mock, turns: int, **request: Any) -> list[ProviderResponse]:
    return [ask(mock, is_conversation=True, turn=turn, **request) for turn in range(1, turns + 1)]


def test_a_list_of_replies_is_the_turns_of_every_conversation() -> None:
    mock = Mock(reply=["Which order?", {"text": "Refunded."}])
    for index in (0, 1, 2):
        assert [reply.text for reply in talk(mock, 2, index=index)] == ["Which order?", "Refunded."]


def test_a_turn_beyond_the_last_reply_is_an_error_and_no_repetition() -> None:
    *_, beyond = talk(Mock(reply=["a", "b"]), 3)
    assert beyond.error is not None
    assert (beyond.error.kind, beyond.error.retryable) == ("protocol", False)
    assert beyond.error.message == "no reply to turn 3: there are 2 replies to this conversation in `reply`"
    assert "there is 1 reply" in talk(Mock(reply=["a"]), 2)[1].error.message  # type: ignore[union-attr]


def test_a_list_of_lists_has_the_turns_of_case_i_in_entry_i() -> None:
    mock = Mock(reply=[["a1", "a2"], ["b1"], "c"])
    assert mock.check("t") == []
    assert [reply.text for reply in talk(mock, 2, index=0)] == ["a1", "a2"]
    first, beyond = talk(mock, 2, index=4)
    assert (first.text, beyond.success) == ("b1", False)
    assert [reply.text for reply in talk(mock, 2, index=2)] == ["c", "c"]
    assert ask(mock, index=0).text == "a1"


def test_one_reply_answers_every_turn() -> None:
    assert [reply.text for reply in talk(Mock(reply="a"), 3)] == ["a", "a", "a"]


def test_a_problem_in_a_list_of_lists_has_its_place() -> None:
    problems = Mock(reply=[["a", {"txt": "b"}], []]).check("t")
    assert [problem.path for problem in problems] == ["t.reply[1]", "t.reply[0][1].txt"]


def test_failures_differ_between_turns() -> None:
    mock = Mock(reply="a", fail_rate=0.5)
    assert len({tuple(reply.success for reply in talk(mock, 8, id=f"c{number}")) for number in range(8)}) > 1
    assert len({reply.success for reply in talk(mock, 20)}) == 2
