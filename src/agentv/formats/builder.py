"""Builders of a conversation as plain data in our own form, which the general reader reads."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.conversation import text_or_none
from agentv.formats.fields import OBJECT, Path, Report, clean_text, is_harmless_type, text_or_empty
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.unread import unread_fields
from agentv.model.response import ProviderResponse, ResponseError
from agentv.protocols import ReplyReader

if TYPE_CHECKING:
    from agentv.model.response import TokensUsage

_NO_REASON = "the run failed, and does not say why"
NO_COST = {"input_tokens": 0, "output_tokens": 0}
"""The usage of a message that no model wrote."""


class _MessageBuilderBase:
    """Messages under construction, with their calls by id."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._by_id: dict[str, dict[str, Any]] = {}
        self._turn: dict[str, Any] | None = None
        """The assistant's message that calls are added to."""

    def has_call(self, call_id: Any) -> bool:
        """Return whether a call with this id was added."""
        return self.find_call(call_id) is not None

    def find_call(self, call_id: Any) -> dict[str, Any] | None:
        """Return the call with this id."""
        return self._by_id.get(call_id) if isinstance(call_id, str) else None


class MessageListBuilder(_MessageBuilderBase):
    """Builder of a list of messages whose calls carry their results.

    `usage` of a message is what its model's turn cost: `None` when it is unknown, missing when no model wrote it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[dict[str, Any]] = []

    def add_message(self, role: str, content: Any = None, /, **fields: Any) -> dict[str, Any]:
        """Add a message; empty fields beside its content are dropped."""
        extras = {key: value for key, value in fields.items() if key == "usage" or value not in (None, "", [], {})}
        message = {**extras, "role": role, "content": content}
        self.messages.append(message)
        self._turn = message if role == "assistant" else None
        return message

    def add_unknown(self, item: Any) -> None:
        """Add an item that was not understood: a message unchanged, any other item as an unknown block."""
        if not (isinstance(item, OBJECT) and isinstance(item.get("role"), str)):
            kind = item.get("type") if isinstance(item, OBJECT) else None
            block = {"type": kind if isinstance(kind, str) and kind else "unknown", "item": item}
            item = {"role": "assistant", "content": [block]}
        self.messages.append(item)
        self._turn = None

    def is_open(self, tool: Any) -> bool:
        """Return whether any call of this tool has no result yet."""
        return any(call["tool"] == tool and "output" not in call for call in self._calls)

    @property
    def first_open(self) -> Any:
        """The tool of the first call without a result; `None` if all have one."""
        return next((call["tool"] for call in self._calls if "output" not in call), None)

    def add_call(self, tool: Any, input_: Any = UNSET, call_id: Any = None, /, **fields: Any) -> dict[str, Any]:
        """Add a call to the current message, or return the call with a known id. A text input is parsed as JSON."""
        known = self.find_call(call_id)
        if known is not None:
            return known
        turn = self._turn or self.add_message("assistant")
        call: dict[str, Any] = {**{key: value for key, value in fields.items() if value is not None}, "tool": tool}
        if isinstance(call_id, str) and call_id:
            call["id"] = call_id
            self._by_id[call_id] = call
        if input_ is not UNSET:
            call |= read_arguments(input_)
        turn.setdefault("tool_calls", []).append(call)
        self._calls.append(call)
        return call

    def add_result(self, call_id: Any, output: Any, *, tool: Any = None, status: Any = None, error: Any = None) -> None:
        """Add a result to its call: by id, else the first open call of the tool; otherwise it becomes a message."""
        self._turn = None
        outcome = {key: value for key, value in (("status", status), ("error", error)) if value is not None}
        call = self.find_call(call_id)
        if call is None and not call_id:
            call = next((other for other in self._calls if other["tool"] == tool and "output" not in other), None)
        if call is None:
            self.messages.append({"role": "tool", "tool_call_id": call_id, "name": tool, "content": output, **outcome})
        elif "output" not in call:
            call |= {"output": output, **outcome}

    def build(self) -> list[dict[str, Any]]:
        """Return the messages; if any of them has usage, the default of the others is zero.

        The `arguments` of a call, which may have been streamed, become its input.
        """
        for call in self._calls:
            if "arguments" in call:
                call.update(read_arguments(call.pop("arguments")))
        if any(isinstance(message, OBJECT) and isinstance(message.get("usage"), OBJECT) for message in self.messages):
            for message in self.messages:
                if isinstance(message, dict) and message.get("role") == "assistant":
                    message.setdefault("usage", NO_COST)
        return self.messages


class ReplyBuilder(_MessageBuilderBase):
    """Builder of a reply from the events of a run."""

    def __init__(self) -> None:
        super().__init__()
        self.report = Report()
        self.thoughts: list[str] = []
        self.text: str | None = None
        """The answer, if the events report it separately from the messages."""
        self.usage: TokensUsage | None = None
        self.cost_usd: float | None = None
        self.thread_id: str | None = None
        self.error: str | None = None
        """The reason why there is no answer."""
        self.metadata: dict[str, Any] = {}
        self.searched: dict[str, Any] = {}
        """Dropped values by path, which are searched for calls."""
        self.unfinished = ""
        """The event that must still come, such as the end of a turn."""

    def add_text(self, text: Any, message_id: Any = None, *, joined: bool = False) -> None:
        """Add text of the assistant; with `joined` it continues the current message."""
        if not isinstance(text, str):
            return
        turn = self._turn
        if (
            turn is not None
            and not turn.get("tool_calls")
            and (joined or (message_id and turn.get("id") == message_id))
        ):
            turn["content"] = (turn["content"] or "") + text
            return
        self._begin_message(text, message_id)

    def add_user_text(self, text: Any) -> None:
        """Add a message of the user."""
        self.end_message()
        self.messages.append({"role": "user", "content": text})

    def add_reasoning(self, text: Any) -> None:
        """Add reasoning."""
        if isinstance(text, str) and text:
            self.thoughts.append(clean_text(text))

    def update_call(self, call_id: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Add a call, or update the call with this id; later values take precedence."""
        key = call_id if isinstance(call_id, str) and call_id else None
        known = self.find_call(key)
        values = {name: value for name, value in fields.items() if value is not None}
        if known is not None:
            known.update(values)
            return known
        new = {"tool": None, "id": call_id, **values}
        turn = self._turn or self._begin_message(None, None)
        turn.setdefault("tool_calls", []).append(new)
        if key is not None:
            self._by_id[key] = new
        return new

    def record_result(self, call_id: Any, fields: Mapping[str, Any]) -> None:
        """Add the result of a call; the result of an unknown call becomes a message."""
        self.end_message()
        call = self.find_call(call_id)
        if call is not None:
            call.update({name: value for name, value in fields.items() if value is not None})
        else:
            outcome = {name: value for name, value in fields.items() if name != "output"}
            message = {"role": "tool", "tool_call_id": call_id, "content": fields.get("output")}
            self.messages.append({**message, "result": outcome})

    @property
    def call_count(self) -> int:
        """Number of calls that were read."""
        return sum(len(message.get("tool_calls") or ()) for message in self.messages)

    def end_message(self) -> None:
        """End the current message; further text or calls start a new one."""
        self._turn = None

    def skip_event(self, kind: Any, path: Path) -> None:
        """Report an event that was not understood."""
        name = text_or_none(kind)
        self.report.skip(path, f"an event of type {name[:60]!r}" if name else "an event without a type")

    def add_searched(self, event: Mapping[str, Any], path: Path) -> None:
        """Add an event without calls of its own to the values that are searched for calls."""
        self.searched["".join(f"[{step}]" if isinstance(step, int) else step for step in path)] = event

    def fail(self, reason: Any) -> None:
        """Record that the run failed; `reason` is a text or an object with a `message`."""
        message = reason.get("message") if isinstance(reason, Mapping) else reason
        self.error = text_or_none(message) or _NO_REASON

    def _begin_message(self, text: str | None, message_id: Any) -> dict[str, Any]:
        turn: dict[str, Any] = {"role": "assistant", "content": text}
        if isinstance(message_id, str):
            turn["id"] = message_id
        self._turn = turn
        self.messages.append(turn)
        return turn

    def build_reply(self, reader: ReplyReader, *, declared: bool = True) -> ProviderResponse:
        """Return the reply; `declared` means that its messages are only those that the agent added."""
        if self.unfinished and self.error is None:
            self.report.skip(("events",), f"a run that ended before {self.unfinished} came")
        messages = without_prompt(self.messages) if declared else self.messages
        output = reader.read_messages(messages, declared=declared) if messages else ProviderResponse()
        metadata = {**self.metadata, **(output.metadata or {})}
        if self.report.malformed:
            metadata["malformed"] = self.report.malformed
        calls_read = any(message.tool_calls for message in output.output_messages or ())
        response = replace(
            output,
            success=self.error is None,
            text=output.text if self.text is None else clean_text(self.text),
            reasoning="\n\n".join(self.thoughts) or output.reasoning,
            tokens_usage=None if output.echo_end is not None else self.usage or output.tokens_usage,
            cost_usd=self.cost_usd,
            thread_id=self.thread_id,
            error=None if self.error is None else ResponseError(kind="agent", message=self.error),
            metadata=metadata or None,
            warnings=(*output.warnings, *self.report.warnings),
            unread=(*output.unread, *self.report.unread(calls_read)),
        )
        places = unread_fields(self.searched, response)
        return replace(response, unread=(*response.unread, *places)) if places else response


def without_prompt(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages without the leading messages of the request."""
    first = next((at for at, message in enumerate(messages) if not _is_prompt(message)), len(messages))
    return messages[first:]


def _is_prompt(message: Mapping[str, Any]) -> bool:
    """Return whether a message is text of the user or the system; results of calls may have the same role."""
    content = message.get("content")
    blocks = content if isinstance(content, (list, tuple)) else ()
    is_plain = all(isinstance(block, OBJECT) and is_harmless_type(text_or_empty(block.get("type"))) for block in blocks)
    return message.get("role") in ("user", "system") and is_plain and not message.get("tool_calls")


def read_arguments(arguments: Any, field: str = "input") -> dict[str, Any]:
    """Return the input of a call, parsed if it is a JSON text, and the parse error, if any."""
    if not isinstance(arguments, str):
        return {field: {} if arguments is None else arguments}
    if not arguments:
        return {field: {}}
    value, error = parse_arguments(arguments)
    return {field: value} if error is None else {field: value, "arguments_error": error}


def status_of(is_error: Any) -> str | None:
    """Return the status of a call by the error flag of its result; `None` without a flag."""
    return None if not isinstance(is_error, bool) else "error" if is_error else "ok"


def as_content(blocks: list[Any]) -> Any:
    """Return blocks as the content of a message: a text if there is only one text block."""
    if len(blocks) == 1 and isinstance(blocks[0], OBJECT) and blocks[0].keys() == {"type", "text"}:
        return blocks[0]["text"]
    return blocks or None


def join_texts(parts: Any, *keys: str) -> str | None:
    """Join the texts of a list of parts, each a text or an object with one of these keys; `None` if there is none."""
    if isinstance(parts, str):
        return parts
    if not isinstance(parts, (list, tuple)):
        return None
    texts = [text for part in parts if (text := _text(part, keys)) is not None]
    return "".join(texts) if texts else None


def _text(part: Any, keys: tuple[str, ...]) -> str | None:
    if isinstance(part, str):
        return part
    if not isinstance(part, OBJECT):
        return None
    return next((part[key] for key in keys if isinstance(part.get(key), str)), None)


def other_fields(value: Mapping[str, Any], *read: str) -> dict[str, Any]:
    """Return the fields of an object that were not read."""
    return {str(key): item for key, item in value.items() if key not in read}
