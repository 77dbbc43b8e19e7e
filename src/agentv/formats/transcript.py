"""Put a run together from events that tell it piece by piece: messages, calls by their ids, results and the rest."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.formats.conversation import text_or_none
from agentv.formats.fields import OBJECT, Path, Report, whole_text, word
from agentv.formats.unread import unread_fields
from agentv.formats.vocabulary import is_harmless_type
from agentv.model.response import ProviderResponse, ResponseError
from agentv.protocols import ReplyReader

if TYPE_CHECKING:
    from agentv.model.response import TokensUsage

_NO_REASON = "the run failed, and does not say why"


def without_prompt(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return messages without those at their beginning that the agent was asked with."""
    first = next((at for at, message in enumerate(messages) if not _is_prompt(message)), len(messages))
    return messages[first:]


def _is_prompt(message: Mapping[str, Any]) -> bool:
    """Tell words of the user's or the system's; results of calls may have the same role."""
    content = message.get("content")
    blocks = content if isinstance(content, (list, tuple)) else ()
    is_plain = all(isinstance(block, OBJECT) and is_harmless_type(word(block.get("type"))) for block in blocks)
    return message.get("role") in ("user", "system") and is_plain and not message.get("tool_calls")


class Transcript:
    """A run so far; its messages are objects in our own form, which are read when it is over."""

    def __init__(self) -> None:
        self.report = Report()
        self.messages: list[dict[str, Any]] = []
        self.thoughts: list[str] = []
        self.text: str | None = None
        """The answer, where the events tell it apart from the messages."""
        self.usage: TokensUsage | None = None
        self.cost_usd: float | None = None
        self.thread_id: str | None = None
        self.error: str | None = None
        """Why there is no answer."""
        self.metadata: dict[str, Any] = {}
        self.searched: dict[str, Any] = {}
        """What is not kept and holds no calls, unless something in it looks like one."""
        self.unfinished = ""
        """What has begun and must end, such as a turn."""
        self._calls: dict[str, dict[str, Any]] = {}
        self._turn: dict[str, Any] | None = None
        """The assistant's message that calls are added to."""

    def say(self, text: Any, own_id: Any = None, *, joined: bool = False) -> None:
        """Add words of the assistant; with `joined` they go on with the message that is under way."""
        if not isinstance(text, str):
            return
        turn = self._turn
        if turn is not None and not turn.get("tool_calls") and (joined or (own_id and turn.get("id") == own_id)):
            turn["content"] = (turn["content"] or "") + text
            return
        self._begin(text, own_id)

    def ask(self, text: Any) -> None:
        """Add words of the user."""
        self.end_step()
        self.messages.append({"role": "user", "content": text})

    def think(self, text: Any) -> None:
        """Add a thought."""
        if isinstance(text, str) and text:
            self.thoughts.append(whole_text(text))

    def call(self, call_id: Any, told: Mapping[str, Any]) -> dict[str, Any]:
        """Add a call, or what is told of one that is known; what comes later counts."""
        key = call_id if isinstance(call_id, str) and call_id else None
        known = self._calls.get(key) if key is not None else None
        fields = {name: value for name, value in told.items() if value is not None}
        if known is not None:
            known.update(fields)
            return known
        new = {"tool": None, "id": call_id, **fields}
        turn = self._turn or self._begin(None, None)
        turn.setdefault("tool_calls", []).append(new)
        if key is not None:
            self._calls[key] = new
        return new

    def answer(self, call_id: Any, told: Mapping[str, Any]) -> None:
        """Add the result of a call; one of an unknown call is a message of its own."""
        self.end_step()
        if isinstance(call_id, str) and call_id in self._calls:
            self._calls[call_id].update({name: value for name, value in told.items() if value is not None})
        else:
            fields = {name: value for name, value in told.items() if name != "output"}
            message = {"role": "tool", "tool_call_id": call_id, "content": told.get("output")}
            self.messages.append({**message, "result": fields})

    def knows(self, call_id: Any) -> bool:
        """Tell whether a call of this id was read."""
        return isinstance(call_id, str) and call_id in self._calls

    @property
    def call_count(self) -> int:
        """How many calls were read."""
        return sum(len(message.get("tool_calls") or ()) for message in self.messages)

    def end_step(self) -> None:
        """Begin a new message with the next words or calls."""
        self._turn = None

    def skip_event(self, kind: Any, path: Path) -> None:
        """Report an event that was not understood."""
        word = text_or_none(kind)
        self.report.skip(path, f"an event of type {word[:60]!r}" if word else "an event without a type")

    def search(self, event: Mapping[str, Any], path: Path) -> None:
        """Look into an event that makes no calls of its own."""
        self.searched["".join(f"[{step}]" if isinstance(step, int) else step for step in path)] = event

    def fail(self, reason: Any) -> None:
        """Take note that the run failed: a text, or an object with a `message`."""
        told = reason.get("message") if isinstance(reason, Mapping) else reason
        self.error = text_or_none(told) or _NO_REASON

    def _begin(self, text: str | None, own_id: Any) -> dict[str, Any]:
        turn: dict[str, Any] = {"role": "assistant", "content": text}
        if isinstance(own_id, str):
            turn["id"] = own_id
        self._turn = turn
        self.messages.append(turn)
        return turn

    def finish(self, reader: ReplyReader, *, declared: bool = True) -> ProviderResponse:
        """Return the reply; `declared` says that its messages are nothing but what the agent added."""
        if self.unfinished and self.error is None:
            self.report.skip(("events",), f"a run that ended before {self.unfinished} came")
        told = without_prompt(self.messages) if declared else self.messages
        said = reader.read_messages(told, declared=declared) if told else ProviderResponse()
        metadata = {**self.metadata, **(said.metadata or {})}
        if self.report.malformed:
            metadata["malformed"] = self.report.malformed
        calls_read = any(message.tool_calls for message in said.output_messages or ())
        response = replace(
            said,
            success=self.error is None,
            text=said.text if self.text is None else whole_text(self.text),
            reasoning="\n\n".join(self.thoughts) or said.reasoning,
            tokens_usage=None if said.echo_end is not None else self.usage or said.tokens_usage,
            cost_usd=self.cost_usd,
            thread_id=self.thread_id,
            error=None if self.error is None else ResponseError(kind="agent", message=self.error),
            metadata=metadata or None,
            warnings=(*said.warnings, *self.report.warnings),
            unread=(*said.unread, *self.report.unread(calls_read)),
        )
        found = unread_fields(self.searched, response)
        return replace(response, unread=(*response.unread, *found)) if found else response
