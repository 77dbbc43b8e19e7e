"""Runnables of LangChain and graphs of LangGraph as targets, with all runs inside of them."""

from __future__ import annotations

import typing
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.formats.fields import MISSING_CALLS, OBJECT
from agentv.formats.langchain import UNKNOWN_SUM, decode_langchain
from agentv.formats.langgraph import mark_pending
from agentv.formats.langgraph_updates import UpdateCollector, describe_interrupts, message_ids, to_langgraph
from agentv.formats.normalize import failure_from_exception
from agentv.formats.objects import is_class_of, plain, plain_data
from agentv.formats.openai import to_openai
from agentv.formats.reader import read_reply
from agentv.formats.usage import add_usage, decode_usage
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, ResponseError, Unread
from agentv.providers.python.agents import only_prompt, reject_blocks, reject_resume
from agentv.providers.python.hidden_calls import MergedMessages, ToolRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from uuid import UUID

    from agentv.model.request import ConversationMode, Request
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
        messages = decode_langchain([self.raw]).output_messages if self.raw is not None else None
        return messages[0] if messages else None

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
    merged = MergedMessages(response.output_messages or (), {run.id for run in all_runs if isinstance(run, ModelRun)})
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


def _other_usage(merged: MergedMessages) -> Iterator[TokensUsage]:
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
        reason = f"a text beside calls of LangChain's tools does not say who requested them, {MISSING_CALLS}"
        response = replace(response, unread=(*response.unread, Unread(path="text", reason=reason)))
    return messages, response


def _with_usage(response: ProviderResponse, turns: list[TokensUsage | None]) -> ProviderResponse:
    warnings = [text for text in response.warnings if not text.endswith(UNKNOWN_SUM)]
    silent = sum(turn is None for turn in turns)
    if silent and silent < len(turns):
        warnings.append(f"tokens_usage: {silent} of {len(turns)} model calls do not say what they cost, {UNKNOWN_SUM}")
    return replace(response, tokens_usage=add_usage(turns), warnings=tuple(warnings))


_CORE = "langchain_core"
_HISTORY = ("chat_history", "history", "messages")
"""Usual names of the prompt variable for the conversation."""
_NOTES = ("agent_scratchpad", "intermediate_steps", "tools", "tool_names")
"""Prompt variables that an executor fills in itself."""


async def ask_runnable(runnable: Any, request: Request, mode: ConversationMode = "full") -> ProviderResponse:
    """Invoke a chain, a chat model or an executor; callbacks report the calls that its result leaves out."""
    runs = Runs()
    try:
        reject_resume(request)
        given, configurable = _given(runnable, request, mode)
        config = {"callbacks": [runs.handler()], **({"configurable": configurable} if configurable else {})}
        response = read_reply(await runnable.ainvoke(given, config), request.input_messages)
        if mode == "thread":
            response = replace(response, thread_id=_thread_id(request))
    except Exception as error:  # noqa: BLE001 - the calls before the failure are part of the reply
        response = failure_from_exception(error)
    return add_runs(response, runs)


def _thread_id(request: Request) -> str:
    """Return the thread of a conversation, which has our id unless it was begun with another one."""
    return request.thread_id or request.conversation_id or uuid4().hex


def _given(runnable: Any, request: Request, mode: ConversationMode) -> tuple[Any, dict[str, str]]:
    """Return the input of a runnable, and its configuration."""
    messages = to_openai(request.messages_to_send(mode))
    if mode == "thread" and not is_class_of(runnable, "RunnableWithMessageHistory", _CORE):
        msg = f"a {type(runnable).__name__} keeps no thread: leave out `conversation: thread`"
        raise FormatError(msg)
    if is_class_of(runnable, "BaseLanguageModel", _CORE):
        return messages, {}
    if is_class_of(runnable, "RunnableWithMessageHistory", _CORE):
        # A request with the whole conversation starts a new history.
        key = runnable.input_messages_key
        history_id = _thread_id(request) if mode == "thread" else uuid4().hex
        sessions = {spec.id: history_id for spec in runnable.history_factory_config}
        return {key: messages} if key else messages, sessions
    keys = _keys_of(runnable)
    if not keys or "messages" in keys:
        return {"messages": messages}, {}
    history = [key for key in _HISTORY if key in keys]
    others = [key for key in keys if key not in history]
    if len(others) != 1:
        names = ", ".join(repr(key) for key in others)
        msg = f"the input of this {type(runnable).__name__} has the keys {names}: write a function that fills them in"
        raise FormatError(msg)
    is_asked = bool(history) and request.input_messages[-1].role == "user"
    reject_blocks(request.input_messages[-1:])
    prompt = request.prompt if is_asked else only_prompt(request)
    return {others[0]: prompt, **dict.fromkeys(history, messages[:-1])}, {}


def _keys_of(runnable: Any) -> Sequence[str]:
    """Return the input keys of a chain, or of its first prompt; empty if they are unknown."""
    keys = getattr(runnable, "input_keys", None)
    if keys:
        return list(keys)
    is_executor = hasattr(runnable, "agent") and hasattr(runnable, "tools")
    inner = getattr(runnable.agent, "runnable", None) if is_executor else runnable
    steps = getattr(inner, "steps", None) or [inner]
    # In an agent, a step that formats its notes precedes the prompt; in a chain, only the first step counts.
    prompts = [step for step in (steps if is_executor else steps[:1]) if hasattr(step, "input_variables")]
    if not prompts:
        return ["input"] if is_executor else []
    variables = [*prompts[0].input_variables, *(getattr(prompts[0], "optional_variables", None) or ())]
    return [key for key in variables if key not in _NOTES]


async def ask_graph(graph: Any, request: Request, mode: ConversationMode = "full") -> ProviderResponse:
    """Run a graph and collect the updates of its nodes, subgraphs and nested runs."""
    runs = Runs()
    thread = _graph_thread(graph, request, mode)
    is_resumed = request.resume is not UNSET
    sent = () if is_resumed else request.messages_to_send(mode)
    key, known, state_input = _graph_input(graph, replace(request, input_messages=sent))
    config: dict[str, Any] = {"callbacks": [runs.handler()]}
    if thread:
        config["configurable"] = {"thread_id": thread}
    if thread and (is_resumed or (mode == "thread" and request.turn > 1)):
        earlier = plain_data((await graph.aget_state(config)).values)
        known |= message_ids(earlier, key) if isinstance(earlier, dict) else set()
    gathered, state, error = UpdateCollector(key, known), None, None
    try:
        started = _resume_command(request) if is_resumed else state_input
        parts = graph.astream(started, config, stream_mode=["updates", "values"], subgraphs=True)
        async for namespace, mode_of_part, data in parts:
            if mode_of_part == "updates":
                gathered.take_update(plain_data(data), tuple(namespace))
            elif not namespace:
                state = data
    except Exception as raised:  # noqa: BLE001 - the calls before the failure are part of the reply
        error = failure_from_exception(raised).error
    if state is not None and error is None:
        gathered.take_state(plain_data(state))
    response = add_runs(_flat(gathered.response()), runs)
    if error is None and gathered.interrupts is not None:
        response = mark_pending(response, gathered.interrupts)
        # In a conversation, a further turn may resume the graph.
        error = None if thread and request.is_conversation else _waiting(gathered.interrupts)
    return replace(response, success=error is None, error=error, thread_id=thread)


def _graph_thread(graph: Any, request: Request, mode: ConversationMode) -> str | None:
    """Return the thread of a graph with a checkpointer; `None` for one that keeps nothing."""
    is_resumed = request.resume is not UNSET
    if getattr(graph, "checkpointer", None):
        if mode == "thread":
            return _thread_id(request)
        # Each turn has the whole conversation, so it starts a new thread, and so does each retry.
        return request.thread_id if is_resumed and request.thread_id else uuid4().hex
    if mode == "thread" or is_resumed:
        what = "be resumed" if is_resumed else "keep a thread"
        msg = f"this graph has no checkpointer, so it cannot {what}: compile it with one"
        raise FormatError(msg)
    return None


def _resume_command(request: Request) -> Any:
    from langgraph.types import Command  # noqa: PLC0415 - the agent's own library, loaded before

    return Command(resume=request.resume)


def _waiting(interrupts: Sequence[Mapping[str, Any]]) -> ResponseError:
    hint = "write a function that runs the graph and resumes it, or a conversation with a turn `resume: VALUE`"
    return ResponseError(kind="interrupted", message=f"the graph {describe_interrupts(interrupts)}; {hint}")


def _flat(response: ProviderResponse) -> ProviderResponse:
    """Add the rest of the state to the metadata, as for a state that a function returns."""
    metadata = dict(response.metadata or {})
    state = metadata.pop("state", None) or {}
    return replace(response, metadata={**state, **metadata} or None)


def _graph_input(graph: Any, request: Request) -> tuple[str, set[str], Any]:
    """Return the key of the messages, their ids and the whole input of a graph."""
    messages = to_langgraph(request.input_messages)
    known = {message["id"] for message in messages}
    kinds = _input_kinds(graph)
    if not isinstance(kinds, dict):  # a function
        if kinds is str:
            return "messages", known, only_prompt(request)
        is_list = typing.get_origin(kinds) is list or kinds is list
        return "messages", known, messages if is_list else {"messages": messages}
    if "messages" in kinds or not kinds:
        return "messages", known, {"messages": messages}
    lists = [key for key, kind in kinds.items() if _holds_messages(kind)]
    texts = [key for key, kind in kinds.items() if kind is str]
    if len(lists) == 1:
        return lists[0], known, {lists[0]: messages}
    if not lists and len(kinds) == len(texts) == 1:
        return "messages", known, {texts[0]: only_prompt(request)}
    names = ", ".join(map(repr, kinds))
    msg = f"the input of this graph has no key 'messages' but {names}: write a function that fills them in"
    raise FormatError(msg)


def _input_kinds(graph: Any) -> Any:
    """Return the types of a graph's input by key; the type of the argument for a graph that is a function."""
    schema = getattr(getattr(graph, "builder", None), "input_schema", None)
    try:
        return getattr(graph, "InputType", {}) if schema is None else typing.get_type_hints(schema)
    except Exception:  # noqa: BLE001 - type hints may not be resolvable here
        return {}


def _holds_messages(kind: Any) -> bool:
    """Return whether a type is a list of LangChain messages."""
    inner = [part for argument in typing.get_args(kind) for part in (argument, *typing.get_args(argument))]
    return typing.get_origin(kind) is list and any(
        getattr(part, "__module__", "").startswith(f"{_CORE}.messages") for part in inner
    )
