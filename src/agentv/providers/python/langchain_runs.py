"""Runs of models and tools inside of a LangChain runnable, as its callbacks tell of them.

A result holds the messages of the outermost agent. What an agent inside of a tool called, and what its model cost, is
known only to those who listened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.fields import MISSING_CALLS, OBJECT
from agentv.formats.langchain import UNKNOWN_SUM, decode_langchain
from agentv.formats.objects import is_class_of, plain
from agentv.formats.usage import add_usage, decode_usage
from agentv.jsonio import dump_json
from agentv.model.message import Message, ToolCall
from agentv.model.response import ProviderResponse, Unread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from agentv.model.usage import TokensUsage

_SOURCE = {"source": "callbacks"}
"""The metadata of messages that only callbacks told of."""


class ToolRun:
    """One run of a tool."""

    def __init__(self, name: Any, given: Any, call_id: Any) -> None:
        self.name = name if isinstance(name, str) else ""
        self.given = given
        self.call_id = call_id if isinstance(call_id, str) else None
        self.output: Any = UNSET
        self.error: BaseException | None = None

    @property
    def result(self) -> dict[str, Any]:
        """The fields of its call that tell how it ended; none when nothing came back."""
        if is_class_of(self.error, "GraphInterrupt", "langgraph"):
            return {"status": "pending"}
        if self.error is not None:
            # A graph leaves a node by an exception, too.
            moves_on = is_class_of(self.error, "GraphBubbleUp", "langgraph")
            return {} if moves_on else {"status": "error", "error": str(self.error)}
        if self.output is UNSET:
            return {}
        output = plain(self.output)
        if isinstance(output, OBJECT) and output.get("type") == "tool":
            failed = {"status": "error"} if output.get("status") == "error" else {}
            return {"output": output.get("content"), **failed}
        return {"output": output}


class ModelRun:
    """One run of a model that ended, with its message where it is a chat model."""

    def __init__(self, result: Any, *, is_structured: bool) -> None:
        self.is_structured = is_structured
        """Whether its calls are the form of an answer, and no calls."""
        generations = getattr(result, "generations", None) or [[]]
        first = generations[0][0] if generations[0] else None
        message = plain(getattr(first, "message", None))
        self.raw: dict[str, Any] | None = dict(message) if isinstance(message, OBJECT) else None
        self.usage = self._usage(getattr(result, "llm_output", None))

    def _usage(self, told: Any) -> TokensUsage | None:
        usage = None if self.raw is None else decode_langchain([self.raw]).tokens_usage
        counts = told.get("token_usage", told.get("usage")) if isinstance(told, OBJECT) else None
        return decode_usage(plain(counts)) if usage is None and counts else usage

    @property
    def id(self) -> str | None:
        """The id of its message."""
        own_id = None if self.raw is None else self.raw.get("id")
        return own_id if isinstance(own_id, str) else None


class Runs:
    """All runs of models and tools within one request, in their order."""

    def __init__(self) -> None:
        self._events: list[tuple[str, UUID, Any]] = []
        """Kind, run and data of each event; nothing is looked at before the end, so that nothing can fail."""

    def handler(self) -> Any:
        """Return a callback handler that takes note of them."""
        from langchain_core.callbacks import BaseCallbackHandler  # noqa: PLC0415 - the runnable's own library

        events = self._events

        class Listener(BaseCallbackHandler):
            """Notes runs of models and tools."""

            run_inline = True  # in their own order

            def on_chat_model_start(self, *_: Any, run_id: UUID, **more: Any) -> None:
                events.append(("model", run_id, more))

            def on_llm_start(self, *_: Any, run_id: UUID, **more: Any) -> None:
                events.append(("model", run_id, more))

            def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
                events.append(("model_end", run_id, response))

            def on_tool_start(self, serialized: Any, input_str: Any, *, run_id: UUID, **more: Any) -> None:
                events.append(("tool", run_id, (serialized, input_str, more)))

            def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
                events.append(("tool_end", run_id, output))

            def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
                events.append(("tool_error", run_id, error))

        return Listener()

    def read(self) -> list[ToolRun | ModelRun]:
        """Return the runs: of tools in the order in which they began, of models in which they ended."""
        found: list[ToolRun | ModelRun] = []
        tools: dict[UUID, ToolRun] = {}
        options: dict[UUID, Any] = {}
        seen: set[str] = set()
        for kind, run_id, data in self._events:
            if kind == "model":
                options[run_id] = data.get("options")
            elif kind == "model_end":
                told = options.get(run_id)
                is_structured = isinstance(told, OBJECT) and bool(told.get("ls_structured_output_format"))
                run = ModelRun(data, is_structured=is_structured)
                if run.id is None or run.id not in seen:  # a model that asks another gives back the same message
                    found.append(run)
                seen |= {run.id} if run.id else set()
            elif kind == "tool":
                serialized, text, more = data
                name = serialized.get("name") if isinstance(serialized, OBJECT) else None
                given = more.get("inputs")
                tools[run_id] = ToolRun(
                    name or more.get("name"), plain(text if given is None else given), more.get("tool_call_id")
                )
                found.append(tools[run_id])
            elif run_id in tools:
                setattr(tools[run_id], "output" if kind == "tool_end" else "error", data)
        return found


def add_runs(response: ProviderResponse, runs: Runs) -> ProviderResponse:
    """Return a reply with the calls that it leaves out, where they were made, and with what all models cost."""
    found = runs.read()
    if not found:
        return response
    merged = _Merged(response.output_messages or (), {run.id for run in found if isinstance(run, ModelRun)})
    for run in found:
        merged.add(run)
    messages = tuple(merged.messages())
    models = [run for run in found if isinstance(run, ModelRun)]
    if response.output_messages is None:
        messages, response = _with_answer(messages, response, has_models=bool(models))
    if messages or response.output_messages is not None:
        response = replace(response, output_messages=messages)
    return _with_usage(response, [*(run.usage for run in models), *merged.other_usage()]) if models else response


def _with_answer(
    messages: tuple[Message, ...], response: ProviderResponse, *, has_models: bool
) -> tuple[tuple[Message, ...], ProviderResponse]:
    """Add the answer to calls that were not in the reply; with no model seen, others may have been made unseen."""
    if has_models and response.text and response.error is None:
        messages = (*messages, Message(role="assistant", content=response.text))
    elif not has_models and messages:
        reason = f"a text beside calls of LangChain's tools does not tell who asked for them, {MISSING_CALLS}"
        response = replace(response, unread=(*response.unread, Unread(path="text", reason=reason)))
    return messages, response


def _with_usage(response: ProviderResponse, turns: list[TokensUsage | None]) -> ProviderResponse:
    warnings = [text for text in response.warnings if not text.endswith(UNKNOWN_SUM)]
    silent = sum(turn is None for turn in turns)
    if silent and silent < len(turns):
        warnings.append(f"tokens_usage: {silent} of {len(turns)} model calls do not say what they cost, {UNKNOWN_SUM}")
    return replace(response, tokens_usage=add_usage(turns), warnings=tuple(warnings))


class _Entry:
    """A message of the reply, or one that callbacks told of."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self.calls = list(message.tool_calls)
        self.is_counted = False
        """Whether a model run gave this message."""
        self.runs: set[int] = set()
        """Places of calls that a run of a tool is known of."""
        self.followers: list[_Entry] = []

    def finish(self) -> Message:
        """Return the message with the results that its calls were given."""
        calls = tuple(self.calls)
        return self.message if calls == self.message.tool_calls else replace(self.message, tool_calls=calls)


class _Merged:
    """The messages of a reply, each followed by those that callbacks told of until the next one."""

    def __init__(self, messages: tuple[Message, ...], ids: set[str | None]) -> None:
        self._ids = ids - {None}
        """The ids of messages that models are known to have given."""
        self._head = _Entry(Message(role="assistant"))
        self._entries = [_Entry(message) for message in messages]
        self._all = list(self._entries)
        self._anchor = self._head

    def add(self, run: ToolRun | ModelRun) -> None:
        """Find the message that a run belongs to, or add one."""
        if isinstance(run, ToolRun):
            self._add_tool(run)
        elif run.raw is not None:
            self._add_model(run, run.raw)

    def messages(self) -> Iterator[Message]:
        """Return all messages in order."""
        for entry in (self._head, *self._entries):
            if entry is not self._head:
                yield entry.finish()
            yield from (each.finish() for each in entry.followers)

    def other_usage(self) -> Iterator[TokensUsage | None]:
        """Return what messages say that they cost which came from no model run: a client of its own was asked."""
        for entry in self._entries:
            if entry.message.role == "assistant" and not entry.is_counted:
                usage = decode_langchain([{**(entry.message.metadata or {}), "type": "ai", "content": ""}]).tokens_usage
                if usage is not None:
                    yield usage

    def _add_model(self, run: ModelRun, raw: dict[str, Any]) -> None:
        said = decode_langchain([raw]).output_messages or ()
        if not said:
            return
        entry = self._find_message(said[0])
        if entry is not None:
            entry.is_counted = True
            self._move(entry)
        elif said[0].tool_calls and not run.is_structured:
            self._insert(_told(said[0]))

    def _find_message(self, said: Message) -> _Entry | None:
        """Find a message by its id, else by its calls, else by its words: nodes may write a copy of it."""
        waiting = [entry for entry in self._entries if entry.message.role == "assistant" and not entry.is_counted]
        for entry in waiting:
            if said.id is not None and entry.message.id == said.id:
                return entry
        for entry in (each for each in waiting if each.message.id not in self._ids):
            if said.tool_calls and _holds_calls(entry, said):
                return entry
            if not said.tool_calls and not entry.calls and said.text and entry.message.text == said.text:
                return entry
        return None

    def _add_tool(self, run: ToolRun) -> None:
        place = self._find_call(run)
        if place is None:
            call = ToolCall(tool=run.name, input=run.given, id=run.call_id)
            place = self._insert(Message(role="assistant", tool_calls=(call,), metadata=dict(_SOURCE))), 0
        entry, at = place
        entry.runs.add(at)
        self._move(entry)
        call = entry.calls[at]
        if call.output is UNSET and call.status is None:
            entry.calls[at] = replace(call, **run.result)

    def _find_call(self, run: ToolRun) -> tuple[_Entry, int] | None:
        """Find the call that a tool was run for; ids alone do not tell, for some models count anew in every reply."""
        named = [(entry, at) for entry in self._all for at, call in enumerate(entry.calls) if call.tool == run.name]
        owned = [(entry, at) for entry, at in named if run.call_id and entry.calls[at].id == run.call_id]
        equal = [(entry, at) for entry, at in owned if _is_same_input(entry.calls[at].input, run.given)]
        free = [(entry, at) for entry, at in equal if at not in entry.runs]
        if free or equal:  # a tool that is tried again is run for the same call
            return (free or equal)[0]
        if len(owned) == 1 and owned[0][1] not in owned[0][0].runs:  # with an input that was completed on the way
            return owned[0]
        for entry, at in named if not owned else ():
            if at not in entry.runs and _is_same_input(entry.calls[at].input, run.given):
                return entry, at
        return None

    def _insert(self, message: Message) -> _Entry:
        entry = _Entry(message)
        self._anchor.followers.append(entry)
        self._all.append(entry)
        return entry

    def _move(self, entry: _Entry) -> None:
        if entry in self._entries:
            self._anchor = entry


def _holds_calls(entry: _Entry, said: Message) -> bool:
    """Tell a message that has all calls of another."""
    own = [(call.id, call.tool, call.input) for call in entry.calls]
    return all((call.id, call.tool, call.input) in own for call in said.tool_calls)


def _told(message: Message) -> Message:
    return replace(message, metadata={**(message.metadata or {}), **_SOURCE})


def _is_same_input(call: Any, run: Any) -> bool:
    """Compare inputs; a tool that takes one text is given that text alone."""
    if call == run:
        return True
    if isinstance(call, OBJECT) and isinstance(run, str):
        return (len(call) == 1 and next(iter(call.values())) == run) or dump_json(call).decode() == run
    return isinstance(run, OBJECT) and isinstance(call, str) and len(run) == 1 and next(iter(run.values())) == call
