"""What went wrong at a LangGraph server, in words for whoever reads the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.jsonio import dump_json, scrub_text
from agentv.model.response import ResponseError
from agentv.providers.wire import failure_from

if TYPE_CHECKING:
    from agentv.providers.wire import Answer

MAX_WORDS = 2000
"""Characters of an error or a question that a message quotes."""
_UNKNOWN = (404, 422)
_ENDS = {
    "interrupted": "the run was cancelled on the server before it was done",
    "gone": "the run is not on the server any more: something else rolled it back or deleted its thread",
}


def refused(answer: Answer, assistant: str, thread_id: str | None) -> ResponseError:
    """The error for a status that is not success; where the server does not know a name, it says which."""
    error = failure_from(answer).error
    if error is None:
        return ResponseError(kind="protocol", message=f"{answer.url} answered {answer.status}")
    said = error.message.partition("; check the address")[0].rstrip(".")
    if answer.status not in _UNKNOWN or (answer.status == _UNKNOWN[1] and "assistant" not in said.lower()):
        return error
    thread = f", and that the thread {thread_id!r} is still there" if thread_id else ""
    hint = f"check the `assistant` {assistant!r}, a graph of the server's `langgraph.json` or an assistant's id{thread}"
    return replace(error, kind="transport", code="not_found", message=f"{said}; {hint}, and the `url`")


def agent_error(told: Any) -> ResponseError:
    """The error for a graph that raised one, with the name that the server gives it."""
    said = [told.get("error"), told.get("message")] if isinstance(told, dict) else [told]
    words = [_quoted(each) for each in said if each]
    return ResponseError(kind="agent", message=": ".join(words) or "the graph failed and did not say why")


def asked(interrupts: list[dict[str, Any]], after: int = 0) -> ResponseError:
    """The error for a graph that waits for somebody."""
    questions = [_quoted(item.get("value", item)) for item in interrupts]
    what = f"asks: {'; '.join(questions)}" if questions else "stopped at a breakpoint"
    if after:
        return ResponseError(kind="interrupted", message=f"after {after} answers the graph still {what}")
    hint = "give the target a `resume` value to answer with"
    return ResponseError(kind="interrupted", message=f"the graph {what}; {hint}")


def ended(status: str) -> ResponseError:
    """The error for a run that ended in any way but well, without a word in the reply itself."""
    if status == "timeout":
        return ResponseError(kind="timeout", message="the run took longer than the server allows")
    if status in _ENDS:
        return ResponseError(kind="interrupted", message=_ENDS[status])
    message = f"the reply is over, but the server says of the run that its status is {status!r}"
    return ResponseError(kind="agent" if status == "error" else "protocol", message=message)


def _quoted(value: Any) -> str:
    text = scrub_text(value) if isinstance(value, str) else dump_json(value).decode()
    return text if len(text) <= MAX_WORDS else text[:MAX_WORDS] + "…"
