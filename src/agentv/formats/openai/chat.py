"""OpenAI Chat Completions: request messages, replies and streams."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.fields import OBJECT, Report, describe_value, objects_in
from agentv.formats.messages import decode_messages
from agentv.formats.openai import to_openai
from agentv.formats.sse import ServerEvent
from agentv.formats.unread import with_searched, with_unread_fields
from agentv.formats.usage import read_usage
from agentv.jsonio import parse_json
from agentv.model.conversation import Message, ToolCall
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_REQUEST_FIELDS = ("role", "content", "name", "tool_calls", "tool_call_id", "refusal", "audio")
"""Message fields that the API accepts; it rejects requests with others."""
_THOUGHTS = ("reasoning_content", "reasoning")
"""Keys of the model's reasoning with compatible servers."""
_TRUNCATIONS = {
    "length": "the answer was cut off by the limit of tokens: raise `max_tokens`",
    "content_filter": "the answer was cut off by the provider's content filter",
    "max_tokens": "the answer was cut off by the limit of tokens: raise `max_tokens`",
    "model_context_window_exceeded": "the answer was cut off: the conversation fills the model's context window",
    "pause_turn": "the answer is not complete: the provider paused a long turn",
    "max_output_tokens": "the answer was cut off by the limit of tokens: raise `max_tokens`",
}


def warn_if_truncated(reason: Any, report: Report, path: tuple[str | int, ...]) -> None:
    """Warn if the reply was truncated."""
    if isinstance(reason, str) and reason in _TRUNCATIONS:
        report.warn(path, _TRUNCATIONS[reason])


def to_completions(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Convert a conversation to the `messages` of a request, with no other fields than the API accepts."""
    written = []
    for message in to_openai([with_error_outputs(message) for message in messages]):
        fields = {key: message[key] for key in _REQUEST_FIELDS if key in message}
        if fields["role"] == "tool":
            fields.pop("name", None)
        if fields["content"] is None and not fields.get("tool_calls"):
            fields["content"] = ""  # null is only valid with calls
        for call in fields.get("tool_calls", ()):
            if call["function"]["arguments"] == "null":
                call["function"]["arguments"] = "{}"
        written.append(fields)
    return written


def with_error_outputs(message: Message) -> Message:
    """Return the message with errors as outputs of failed calls: vendors require an output for every call."""
    if not any(call.output is UNSET and call.error is not None for call in message.tool_calls):
        return message
    return replace(message, tool_calls=tuple(map(_with_error_output, message.tool_calls)))


def _with_error_output(call: ToolCall) -> ToolCall:
    return replace(call, output=call.error) if call.output is UNSET and call.error is not None else call


def error_in_completion(body: Any) -> Any:
    """Return the error of a body without choices, as some servers send with status 200."""
    return body.get("error") if isinstance(body, OBJECT) and not body.get("choices") else None


def decode_completion(body: Any) -> ProviderResponse:
    """Decode a chat completion; its first choice is the answer."""
    choices: Any = body.get("choices") if isinstance(body, OBJECT) else None
    choice: Any = choices[0] if isinstance(choices, (list, tuple)) and choices else None
    raw = choice.get("message") if isinstance(choice, OBJECT) else None
    if not isinstance(raw, OBJECT):
        msg = f"expected a chat completion with `choices[0].message`, got {_describe(body)}"
        raise FormatError(msg, format="openai")
    report = Report()
    path = ("choices", 0, "message")
    messages = decode_messages([_message_fields(raw)], report, path)
    usage, _ = read_usage(body.get("usage"), ("usage",), report)
    metadata = {name: body[name] for name in ("id", "model", "service_tier") if body.get(name) is not None}
    reason = choice.get("finish_reason")
    if reason is not None:
        metadata["finish_reason"] = reason
        warn_if_truncated(reason, report, ("choices", 0, "finish_reason"))
    if len(choices) > 1:
        report.warn(("choices",), f"{len(choices)} answers came, the first is taken")
    refusal = raw.get("refusal")
    if refusal:
        metadata["refusal"] = refusal
    text = messages[-1].text
    return ProviderResponse(
        text=refusal if isinstance(refusal, str) and not text else text,
        output_messages=messages,
        reasoning=next((raw[name] for name in _THOUGHTS if isinstance(raw.get(name), str) and raw[name]), None),
        tokens_usage=usage,
        raw_response=body,
        metadata=metadata or None,
        warnings=report.warnings,
        unread=report.unread(any(message.tool_calls for message in messages)),
    )


def _detect(value: Any) -> bool:
    choices = value.get("choices") if isinstance(value, OBJECT) else None
    first = next(objects_in(choices), None)
    return first is not None and (isinstance(first.get("message"), OBJECT) or isinstance(first.get("text"), str))


def _read(value: Mapping[str, Any], reader: ReplyReader) -> ProviderResponse:
    del reader
    choices = list(objects_in(value["choices"]))
    if not isinstance(choices[0].get("message"), OBJECT):  # legacy completions: text only
        choices = [{**item, "message": {"role": "assistant", "content": item.get("text")}} for item in choices]
    response = with_unread_fields(decode_completion({**value, "choices": choices}), choices[0], _CHOICE)
    # The first choice is read, but the agent may have used another one.
    return with_searched(response, {f"choices[{at}]": item for at, item in enumerate(choices) if at})


_CHOICE = frozenset(("index", "message", "finish_reason", "text", "delta"))
FORMAT = ReplyFormat(
    name="openai_chat",
    detect=_detect,
    read=_read,
    keys=frozenset(("id", "object", "created", "model", "choices", "usage", "service_tier", "system_fingerprint")),
)


def _message_fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message without empty fields and without reasoning, which is read separately."""
    fields = {key: value for key, value in raw.items() if key not in _THOUGHTS}
    non_empty = {key: value for key, value in fields.items() if key == "content" or (value is not None and value != [])}
    return {"role": "assistant", **non_empty}


def _describe(body: Any) -> str:
    if isinstance(body, OBJECT) and body:
        names = ", ".join(repr(str(key)[:40]) for key in list(body)[:8])
        return f"an object with {names}"
    return describe_value(body)


_DONE = "[DONE]"
_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


def event_object(event: ServerEvent) -> Mapping[str, Any]:
    """Return the JSON object of an event, or raise `FormatError`."""
    value = parse_json(event.data)
    if not isinstance(value, OBJECT):
        msg = f"expected events that hold objects, got {event.data[:60]!r}"
        raise FormatError(msg, format="sse")
    return value


class ChatStreamDecoder:
    """Decoder of a streamed completion: `feed` events; once `is_complete`, `body` is the unstreamed reply."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._choices: dict[int, _ChatStreamChoice] = {}
        self._usage: Any = None
        self._done = False
        self.error: Any = None
        """Error chunk that ended the stream."""

    def feed(self, event: ServerEvent) -> None:
        """Process the next event."""
        if event.data.strip() == _DONE:
            self._done = True
            return
        chunk = event_object(event)
        if chunk.get("error") is not None or event.event == "error":
            self.error = chunk
            return
        for name, value in chunk.items():
            if name not in ("choices", "usage") and value is not None:
                self._head.setdefault(name, value)
        # Usage is sent once or cumulatively with every chunk: the last one is complete.
        self._usage = _usage_in(chunk) or self._usage
        choices = chunk.get("choices")
        for position, choice in enumerate(choices if isinstance(choices, list) else ()):
            if isinstance(choice, OBJECT):
                index = choice.get("index")
                self._choices.setdefault(index if isinstance(index, int) else position, _ChatStreamChoice()).feed(
                    choice
                )

    @property
    def is_complete(self) -> bool:
        """True once the reply has ended; false if it was cut off."""
        return self._done or (bool(self._choices) and all(item.reason is not None for item in self._choices.values()))

    @property
    def body(self) -> dict[str, Any]:
        """The assembled completion."""
        choices = [self._choices[index].body(index) for index in sorted(self._choices)]
        usage = {} if self._usage is None else {"usage": self._usage}
        return {**self._head, "object": "chat.completion", "choices": choices, **usage}


def _usage_in(chunk: Mapping[str, Any]) -> Any:
    """Return the usage of a chunk, wherever the server puts it."""
    choices = chunk.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    for place in (chunk, chunk.get("x_groq"), first):
        if isinstance(place, OBJECT) and place.get("usage"):
            return place["usage"]
    return None


class _ChatStreamChoice:
    """A choice assembled from deltas."""

    def __init__(self) -> None:
        self._texts: dict[str, list[str]] = {}
        self._others: dict[str, Any] = {}
        self._calls: list[_ChatStreamCall] = []
        self._at: dict[Any, _ChatStreamCall] = {}
        self.reason: Any = None

    def feed(self, choice: Mapping[str, Any]) -> None:
        if choice.get("finish_reason") is not None:
            self.reason = choice["finish_reason"]
        delta = choice.get("delta")
        if not isinstance(delta, OBJECT):
            return
        for name, value in delta.items():
            if name in _TEXTS and isinstance(value, str):
                self._texts.setdefault(name, []).append(value)
            elif name == "tool_calls":
                for piece in value if isinstance(value, list) else ():
                    if isinstance(piece, OBJECT):
                        self._call(piece).feed(piece)
            elif name == "function_call" and isinstance(value, OBJECT):
                self._call({"index": "function_call"}).feed({"function": value})
            elif value is not None and value != []:
                self._others[name] = value

    def _call(self, piece: Mapping[str, Any]) -> "_ChatStreamCall":
        """Return the call of a delta, by its index, else its id, else the last call."""
        index, call_id = piece.get("index"), piece.get("id")
        key = index if index is not None else call_id
        key = key if isinstance(key, (int, str)) else None
        call = self._at.get(key) if key is not None else (self._calls[-1] if self._calls else None)
        # Some servers send index 0 for every call and distinguish calls by id only.
        if call is not None and not (call_id and call.id and call_id != call.id):
            return call
        new_call = _ChatStreamCall()
        self._calls.append(new_call)
        self._at[key] = new_call
        return new_call

    def body(self, index: int) -> dict[str, Any]:
        texts = {name: "".join(parts) for name, parts in self._texts.items()}
        content = texts.pop("content", "") or None
        calls = {"tool_calls": [call.body() for call in self._calls]} if self._calls else {}
        message = {"role": "assistant", "content": content, **texts, **self._others, **calls}
        return {"index": index, "message": message, "finish_reason": self.reason}


class _ChatStreamCall:
    """A tool call assembled from deltas."""

    def __init__(self) -> None:
        self.id = ""
        self._name = ""
        self._type = "function"
        self._arguments: list[str] = []
        self._parsed_arguments: Any = None
        """Arguments that were sent as a value instead of pieces of text."""

    def feed(self, piece: Mapping[str, Any]) -> None:
        if isinstance(piece.get("id"), str) and piece["id"]:
            self.id = piece["id"]
        if isinstance(piece.get("type"), str) and piece["type"]:
            self._type = piece["type"]
        function, custom = piece.get("function"), piece.get("custom")
        if isinstance(custom, OBJECT):  # its input is text, not JSON
            self._type, function = "custom", {"name": custom.get("name"), "arguments": custom.get("input")}
        if not isinstance(function, OBJECT):
            return
        name, arguments = function.get("name"), function.get("arguments")
        # Some servers repeat the name with every delta; others send it in pieces before the arguments.
        if isinstance(name, str) and name != self._name and not self._arguments:
            self._name += name
        if isinstance(arguments, str):
            if arguments:
                self._arguments.append(arguments)
        elif arguments is not None:
            self._parsed_arguments = arguments

    def body(self) -> dict[str, Any]:
        arguments = self._parsed_arguments if self._parsed_arguments is not None else "".join(self._arguments)
        own_id = {"id": self.id} if self.id else {}
        if self._type == "custom":
            return {**own_id, "type": "custom", "custom": {"name": self._name, "input": arguments}}
        return {**own_id, "type": self._type, "function": {"name": self._name, "arguments": arguments}}
