"""OpenAI's Chat Completions: the messages of a request, and the reply to it."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.messages import decode_messages
from agentv.formats.openai import to_openai
from agentv.formats.reading import OBJECT, Report, show
from agentv.formats.usage import read_usage
from agentv.model.message import Message, ToolCall
from agentv.model.response import ProviderResponse

_SENT = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio")
"""What the vendor takes of a message; it refuses a request that says more."""
_THOUGHTS = ("reasoning_content", "reasoning")
"""Under which name compatible servers send what the model thought."""
_ENDINGS = {
    "length": "the answer was cut off by the limit of tokens: raise `max_tokens`",
    "content_filter": "the answer was cut off by the provider's content filter",
    "max_tokens": "the answer was cut off by the limit of tokens: raise `max_tokens`",
    "model_context_window_exceeded": "the answer was cut off: the conversation fills the model's context window",
    "pause_turn": "the answer is not complete: the provider paused a long turn",
    "max_output_tokens": "the answer was cut off by the limit of tokens: raise `max_tokens`",
}


def warn_of_ending(reason: Any, report: Report, path: tuple[str | int, ...]) -> None:
    """Say so when a reply is not all that the model would have said."""
    if isinstance(reason, str) and reason in _ENDINGS:
        report.warn(path, _ENDINGS[reason])


def to_completions(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Write a conversation as a request's `messages`: nothing but what the vendor takes."""
    written = []
    for message in to_openai([with_errors(message) for message in messages]):
        sent = {key: message[key] for key in _SENT if key in message}
        if sent["role"] == "tool":
            sent.pop("name", None)
        if sent["content"] is None and not sent.get("tool_calls"):
            sent["content"] = ""  # null means that there are calls instead
        for call in sent.get("tool_calls", ()):
            if call["function"]["arguments"] == "null":
                call["function"]["arguments"] = "{}"
        written.append(sent)
    return written


def with_errors(message: Message) -> Message:
    """The message, its calls that failed answered by their error: vendors want every call answered."""
    if not any(call.output is UNSET and call.error is not None for call in message.tool_calls):
        return message
    return replace(message, tool_calls=tuple(map(_answered, message.tool_calls)))


def _answered(call: ToolCall) -> ToolCall:
    return replace(call, output=call.error) if call.output is UNSET and call.error is not None else call


def error_in_completion(body: Any) -> Any:
    """The error that stands where a reply should be, as some servers send with status 200."""
    return body.get("error") if isinstance(body, OBJECT) and not body.get("choices") else None


def decode_completion(body: Any) -> ProviderResponse:
    """Read a chat completion; its first choice is the answer."""
    choices: Any = body.get("choices") if isinstance(body, OBJECT) else None
    choice: Any = choices[0] if isinstance(choices, (list, tuple)) and choices else None
    raw = choice.get("message") if isinstance(choice, OBJECT) else None
    if not isinstance(raw, OBJECT):
        msg = f"expected a chat completion with `choices[0].message`, got {_shown(body)}"
        raise FormatError(msg, format="openai")
    report = Report()
    path = ("choices", 0, "message")
    messages = decode_messages([_said(raw)], report, path)
    usage, _ = read_usage(body.get("usage"), ("usage",), report)
    metadata = {name: body[name] for name in ("id", "model", "service_tier") if body.get(name) is not None}
    reason = choice.get("finish_reason")
    if reason is not None:
        metadata["finish_reason"] = reason
        warn_of_ending(reason, report, ("choices", 0, "finish_reason"))
    if len(choices) > 1:
        report.warn(("choices",), f"{len(choices)} answers came, the first is taken")
    refusal = raw.get("refusal")
    if refusal:
        metadata["refusal"] = refusal
    words = messages[-1].text
    return ProviderResponse(
        text=refusal if isinstance(refusal, str) and not words else words,
        output_messages=messages,
        reasoning=next((raw[name] for name in _THOUGHTS if isinstance(raw.get(name), str) and raw[name]), None),
        tokens_usage=usage,
        raw_response=body,
        metadata=metadata or None,
        warnings=report.warnings,
    )


def _said(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The message without what it says nothing with, and without what is told apart from it."""
    told = {key: value for key, value in raw.items() if key not in _THOUGHTS}
    kept = {key: value for key, value in told.items() if key == "content" or (value is not None and value != [])}
    return {"role": "assistant", **kept}


def _shown(body: Any) -> str:
    if isinstance(body, OBJECT) and body:
        names = ", ".join(repr(str(key)[:40]) for key in list(body)[:8])
        return f"an object with {names}"
    return show(body)
