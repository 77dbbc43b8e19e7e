"""Recorded conversations: the replies of their turns, in any form that a file may have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.conversation import last_assistant_text
from agentv.formats.fields import MISSING_CALLS
from agentv.formats.reader import decode_response, read_reply
from agentv.formats.response import CONTENT_KEYS, LIST_KEYS, REPLY_KEYS
from agentv.formats.unread import mark_incomplete
from agentv.model.response import ProviderResponse, Unread
from agentv.providers.base import failure
from agentv.scoring.turns import split_turns

if TYPE_CHECKING:
    from agentv.model.conversation import Message
    from agentv.model.request import Request

EXPORTED_RUN = "agentv.run/"
"""Beginning of the schema of an exported run."""
_NO_MESSAGES = "the turns of this result have no messages: write it with `--include-messages`"
_SOME_CALLS = Unread(path="reply", reason=f"the recorded turn has not all of its calls, {MISSING_CALLS}")


def read_recording(data: Any, request: Request, *, has_gaps: bool) -> ProviderResponse:
    """Read the recorded reply to a request, in any shape; an `id` that names the case is no part of it.

    With `has_gaps` it may have been written without its secrets. Raise `FormatError` if it cannot be one.
    """
    response = _read(_plain_recording(data, request), request)
    return mark_incomplete(response) if has_gaps else response


def _read(data: Any, request: Request) -> ProviderResponse:
    turns = _turns_of(data)
    if not request.is_conversation:
        if turns is not None and (isinstance(data, Mapping) or not all(isinstance(turn, str) for turn in turns)):
            count = f"a conversation of {len(turns)} turn{'s' * (len(turns) != 1)}"
            return failure("protocol", f"the recording of case {request.id!r} is {count}, and the case has none")
        return read_reply(data, request.input_messages)
    if turns is None:
        turns = _split_by_user(data, request) or [data]
    if request.turn > len(turns):
        count = f"{len(turns)} turn{'s' * (len(turns) != 1)}"
        return failure("protocol", f"the recording of case {request.id!r} has {count}, and no turn {request.turn}")
    turn = turns[request.turn - 1]
    return turn if isinstance(turn, ProviderResponse) else read_reply(turn, request.input_messages)


def _plain_recording(data: Any, request: Request) -> Any:
    """Return the reply in a recording: without the id of its case, and of an exported run the part of the agent."""
    if not isinstance(data, Mapping):
        return data
    schema, response = data.get("schema"), data.get("response")
    if isinstance(schema, str) and schema.startswith(EXPORTED_RUN) and isinstance(response, Mapping):
        start, end = data.get("output_from"), data.get("output_to")
        if isinstance(start, int) and isinstance(end, int):
            return {**response, "output_messages": (data.get("messages") or [])[start:end]}
        return response
    named = [key for key in ("id", "case_id") if str(data.get(key)) == request.id]
    return {key: value for key, value in data.items() if key not in named} if named else data


def _turns_of(data: Any) -> list[Any] | None:
    """Return the replies of the turns of a conversation; `None` if the recording does not tell turns apart."""
    if isinstance(data, list):
        return data if data and all(map(_is_reply, data)) else None
    turns = data.get("turns") if isinstance(data, Mapping) else None
    if not isinstance(turns, list) or not turns:
        return None
    if all(isinstance(turn, Mapping) and "first_message" in turn for turn in turns):
        if all("response" in turn for turn in turns):
            return [exchange.response for exchange in split_turns(decode_response(data))]
        return _turns_of_result(data, turns)
    return turns if all(isinstance(turn, (str, list)) or _is_raw_reply(turn) for turn in turns) else None


def _is_reply(value: Any) -> bool:
    """Tell whether an item of a list is a reply in our own form; lists of other items are one reply of a library."""
    if isinstance(value, Mapping):
        return any(key in value for key in CONTENT_KEYS) and value.keys() <= set(REPLY_KEYS)
    return isinstance(value, str)


def _is_raw_reply(value: Any) -> bool:
    """Tell whether an item of `turns` is a reply of any format, and no message of a transcript."""
    return isinstance(value, Mapping) and ("role" not in value or value.get("type") == "message")


def _turns_of_result(data: Mapping[str, Any], turns: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the replies of the turns of a result record, whose messages are those of the whole conversation."""
    messages = data.get("messages")
    if not isinstance(messages, list):
        raise FormatError(_NO_MESSAGES)
    replies: list[Any] = []
    for turn in turns:
        part = messages[turn["first_message"] : turn["last_message"] + 1]
        known = {key: turn.get(key) for key in ("tokens_usage", "cost_usd", "latency_ms")}
        reply = {**known, "thread_id": data.get("thread_id"), "output_messages": part}
        replies.append(_without_user(decode_response(reply), is_known=turn.get("calls") is not None))
    if isinstance(data.get("error"), Mapping):
        failed = decode_response({"error": data["error"]})
        replies[-1] = replace(replies[-1], success=False, error=failed.error)
    return replies


def _without_user(response: ProviderResponse, *, is_known: bool) -> ProviderResponse:
    """Return the part of the agent of a turn; without messages if the agent sent a text only."""
    messages = list(response.output_messages or ())
    while messages and messages[0].role == "user":
        messages.pop(0)
    text = last_assistant_text(tuple(messages))
    if is_known:
        return replace(response, text=text, output_messages=tuple(messages))
    if any(message.tool_calls for message in messages):
        return replace(response, text=text, output_messages=tuple(messages), unread=(*response.unread, _SOME_CALLS))
    return replace(response, text=text, output_messages=None)


def _split_by_user(data: Any, request: Request) -> list[Any] | None:
    """Return the messages after each message of the user; `None` if the recording has none."""
    found = [data[key] for key in LIST_KEYS if key in data] if isinstance(data, Mapping) else [data]
    if not found or not isinstance(found[0], list):
        return None
    messages = decode_response({"output_messages": found[0]}).output_messages or ()
    starts = [at for at, message in enumerate(messages) if message.role == "user"]
    if not starts:
        return None
    ends = [*starts[1:], len(messages)]
    parts = [messages[start + 1 : end] for start, end in zip(starts, ends, strict=True)]
    earlier = _users_before(request)
    is_with_history = earlier and messages[starts[0]].text == _first_user(request.input_messages)
    return [
        ProviderResponse(text=last_assistant_text(part), output_messages=part)
        for part in (parts[earlier:] if is_with_history else parts)
    ]


def _users_before(request: Request) -> int:
    """Return the number of messages of the user in the history of a conversation, before its first turn."""
    users = sum(message.role == "user" for message in request.input_messages)
    return max(users - request.turn, 0)


def _first_user(messages: Sequence[Message]) -> str:
    return next((message.text for message in messages if message.role == "user"), "")
