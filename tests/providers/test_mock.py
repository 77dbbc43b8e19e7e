"""`mock`: replies that the eval itself holds."""

import asyncio
from typing import Any

import pytest

from agentv.api.providers import open_provider
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.providers.mock import Mock


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
        ([], "t.reply", "holds no reply"),
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
