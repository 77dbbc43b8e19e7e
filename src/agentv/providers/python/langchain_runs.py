"""Runs of models and tools inside of a LangChain runnable, as its callbacks report them.

A result holds the messages of the outermost agent. What an agent inside of a tool called, and what its model cost, is
known only to those who listened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.formats.fields import MISSING_CALLS, OBJECT
from agentv.formats.langchain import UNKNOWN_SUM, decode_langchain
from agentv.formats.objects import plain
from agentv.formats.usage import add_usage, decode_usage
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, Unread
from agentv.providers.python.hidden_calls import Merged, ToolRun

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from agentv.model.response import TokensUsage


class ModelRun:
    """Run of a model that has ended, with its message if it is a chat model."""

    def __init__(self, result: Any, *, is_structured: bool) -> None:
        self.is_structured = is_structured
        """True if its calls are structured output and not tool calls."""
        generations = getattr(result, "generations", None) or [[]]
        first = generations[0][0] if generations[0] else None
        message = plain(getattr(first, "message", None))
        self.raw: dict[str, Any] | None = dict(message) if isinstance(message, OBJECT) else None
        self.usage = self._usage(getattr(result, "llm_output", None))

    def _usage(self, llm_output: Any) -> TokensUsage | None:
        usage = None if self.raw is None else decode_langchain([self.raw]).tokens_usage
        counts = llm_output.get("token_usage", llm_output.get("usage")) if isinstance(llm_output, OBJECT) else None
        return decode_usage(plain(counts)) if usage is None and counts else usage

    @property
    def said(self) -> Message | None:
        """Its message."""
        said = decode_langchain([self.raw]).output_messages if self.raw is not None else None
        return said[0] if said else None

    @property
    def id(self) -> str | None:
        """The id of its message."""
        own_id = None if self.raw is None else self.raw.get("id")
        return own_id if isinstance(own_id, str) else None


class Runs:
    """Recorder of the runs of models and tools in one request, in order."""

    def __init__(self) -> None:
        self._events: list[tuple[str, UUID, Any]] = []
        """Kind, run and data of each event; they are read only at the end, so that callbacks cannot fail."""

    def handler(self) -> Any:
        """Return a callback handler that records the runs."""
        from langchain_core.callbacks import BaseCallbackHandler  # noqa: PLC0415 - the runnable's own library

        events = self._events

        class RunRecorder(BaseCallbackHandler):
            """Callback handler that records runs of models and tools."""

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

        return RunRecorder()

    def read(self) -> list[ToolRun | ModelRun]:
        """Return the runs: those of tools in the order of their start, those of models in the order of their end."""
        runs: list[ToolRun | ModelRun] = []
        tools: dict[UUID, ToolRun] = {}
        options: dict[UUID, Any] = {}
        seen: set[str] = set()
        for kind, run_id, data in self._events:
            if kind == "model":
                options[run_id] = data.get("options")
            elif kind == "model_end":
                own = options.get(run_id)
                is_structured = isinstance(own, OBJECT) and bool(own.get("ls_structured_output_format"))
                run = ModelRun(data, is_structured=is_structured)
                if run.id is None or run.id not in seen:  # a model that wraps another returns the same message
                    runs.append(run)
                seen |= {run.id} if run.id else set()
            elif kind == "tool":
                serialized, text, more = data
                name = serialized.get("name") if isinstance(serialized, OBJECT) else None
                inputs = more.get("inputs")
                tools[run_id] = ToolRun(
                    name or more.get("name"), plain(text if inputs is None else inputs), more.get("tool_call_id")
                )
                runs.append(tools[run_id])
            elif run_id in tools:
                setattr(tools[run_id], "output" if kind == "tool_end" else "error", data)
        return runs


def add_runs(response: ProviderResponse, runs: Runs) -> ProviderResponse:
    """Add the calls that a reply leaves out, where they were made, and the usage of all models."""
    all_runs = runs.read()
    if not all_runs:
        return response
    merged = Merged(response.output_messages or (), {run.id for run in all_runs if isinstance(run, ModelRun)})
    for run in all_runs:
        if isinstance(run, ToolRun):
            merged.add_tool(run)
        elif run.said is not None:
            merged.add_message(run.said, is_hidden=not run.is_structured)
    messages = tuple(merged.messages())
    models = [run for run in all_runs if isinstance(run, ModelRun)]
    if response.output_messages is None:
        messages, response = _with_answer(messages, response, has_models=bool(models))
    if messages or response.output_messages is not None:
        response = replace(response, output_messages=messages)
    return _with_usage(response, [*(run.usage for run in models), *_other_usage(merged)]) if models else response


def _other_usage(merged: Merged) -> Iterator[TokensUsage]:
    """Return the usage of messages without a model run, which come from a client of the agent's own."""
    for message in merged.uncounted():
        usage = decode_langchain([{**(message.metadata or {}), "type": "ai", "content": ""}]).tokens_usage
        if usage is not None:
            yield usage


def _with_answer(
    messages: tuple[Message, ...], response: ProviderResponse, *, has_models: bool
) -> tuple[tuple[Message, ...], ProviderResponse]:
    """Add the answer to calls that are not in the reply; without a model run, other calls may be missing."""
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
