"""A reply that says both that it succeeded and what went wrong."""

from typing import Any

import pytest

import agentv
from agentv.formats.reader import read_reply

CHECK = [{"type": "contains", "value": "x"}]


@pytest.mark.parametrize("error", ["boom", {"message": "boom"}, {"kind": "agent", "message": "boom"}])
@pytest.mark.parametrize("answer", [{}, {"text": "x"}, {"output_messages": [{"role": "assistant", "content": "x"}]}])
def test_success_beside_an_error_is_an_error_with_a_warning(error: Any, answer: dict[str, Any]) -> None:
    reply = {"success": True, "error": error, **answer}
    for response in (read_reply(reply), agentv.decode_response(reply)):
        assert (response.success, response.error and response.error.message) == (False, "boom")
        assert sum("`success: true`" in warning for warning in response.warnings) == 1
    result = agentv.score(reply, CHECK)
    assert (result.status, result.score, result.error and result.error.message) == ("error", None, "boom")
    assert any("`success: true`" in warning for warning in result.warnings)


@pytest.mark.parametrize("error", [None, "", {}])
def test_an_empty_error_is_none(error: Any) -> None:
    response = read_reply({"success": True, "error": error, "text": "x"})
    assert (response.success, response.error, response.warnings) == (True, None, ())


def test_a_reply_that_contradicts_nothing_is_not_warned_about() -> None:
    for reply in ({"error": "boom"}, {"success": False, "error": "boom"}, {"success": True, "text": "x"}):
        assert not any("`success" in warning for warning in read_reply(reply).warnings)


def test_a_reply_made_in_python_is_judged_alike() -> None:
    error = agentv.ResponseError(kind="agent", message="boom")
    response = agentv.ProviderResponse(success=True, text="x", error=error)
    assert agentv.score(response, CHECK).status == "error"
