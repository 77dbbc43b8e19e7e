"""Agents of OpenAI Agents as targets, with the calls of agents that are tools of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.formats.fields import MISSING_CALLS, OBJECT
from agentv.formats.normalize import failure_from_exception
from agentv.formats.objects import plain
from agentv.formats.openai.agents import decode_openai_agents_run, to_openai_items
from agentv.formats.reader import read_reply
from agentv.formats.tool_calls import parse_arguments
from agentv.model.response import ProviderResponse, Unread
from agentv.providers.python.agents import reject_blocks
from agentv.providers.python.hidden_calls import MergedMessages, ToolRun

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentv.model.request import Request


async def ask_openai_agents(agent: Any, request: Request) -> ProviderResponse:
    """Run an agent with the conversation as its input, and record the inputs of all models."""
    from agents import RunConfig, Runner  # noqa: PLC0415 - the agent's own library, loaded before

    reject_blocks(request.input_messages)
    inputs: list[tuple[Any, list[Any]]] = []

    def note(data: Any) -> Any:
        inputs.append((data.agent, list(data.model_data.input)))
        return data.model_data

    # Agents that work as tools inherit it.
    has_filter = "call_model_input_filter" in getattr(RunConfig, "__dataclass_fields__", {})
    options: dict[str, Any] = {"run_config": RunConfig(call_model_input_filter=note)} if has_filter else {}
    run = Runner.run(agent, to_openai_items(request.input_messages), **options)  # type: ignore[arg-type]  # as dicts
    try:
        result: Any = await run
        response = read_reply(result, request.input_messages)
    except Exception as error:
        result = getattr(error, "run_data", None)
        if result is None:
            raise
        response = replace(decode_openai_agents_run(result), success=False, error=failure_from_exception(error).error)
    if not inputs or response.output_messages is None:
        return response
    outer = {id(item.agent) for item in result.new_items} | {id(agent)}
    unread = [place for inner, _ in inputs if id(inner) not in outer for place in _unreported_calls(inner)]
    response = replace(response, unread=(*response.unread, *dict.fromkeys(unread)))
    return _with_hidden(response, [[plain(item) for item in items] for _, items in inputs])


def _with_hidden(response: ProviderResponse, inputs: Sequence[Sequence[Any]]) -> ProviderResponse:
    """Add the calls that are in the inputs of models and not in the result."""
    own = {call.id for message in response.output_messages or () for call in message.tool_calls}
    seen = {run.call_id for run in _runs(inputs[0])}  # calls of earlier turns
    merged, hidden = MergedMessages(response.output_messages or (), set()), list[ToolRun]()
    for items in inputs:
        new = [run for run in _runs(items) if run.call_id not in seen]
        seen |= {run.call_id for run in new}
        inner = [run for run in new if run.call_id not in own]
        outer = [run for run in new if run.call_id in own]
        hidden += inner
        if outer:  # reported only after the agents inside of these calls have ended
            _add(merged, [*outer, *hidden])
            hidden = []
    calls = [call for message in response.output_messages or () for call in message.tool_calls if call.id not in seen]
    _add(merged, [*(ToolRun(call.tool, call.input, call.id) for call in calls), *hidden])
    return replace(response, output_messages=tuple(merged.messages()))


def _add(merged: MergedMessages, runs: Sequence[ToolRun]) -> None:
    for run in runs:
        merged.add_tool(run)


def _runs(items: Sequence[Any]) -> list[ToolRun]:
    """Return the calls of functions among the items of an input, with their results."""
    runs: dict[str, ToolRun] = {}
    for item in items:
        call_id = item.get("call_id") if isinstance(item, OBJECT) else None
        if not isinstance(call_id, str):
            continue
        if item.get("type") == "function_call":
            runs[call_id] = ToolRun(item.get("name"), _given(item), call_id)
        elif item.get("type") == "function_call_output" and call_id in runs:
            runs[call_id].output = item.get("output")
    return list(runs.values())


def _given(item: Mapping[str, Any]) -> Any:
    arguments = item.get("arguments")
    return parse_arguments(arguments)[0] if isinstance(arguments, str) and arguments else {}


def _unreported_calls(agent: Any) -> list[Unread]:
    """Report an agent inside of a tool that may end with a call, which is in the input of no model."""
    if getattr(agent, "tool_use_behavior", "run_llm_again") == "run_llm_again":
        return []
    name = getattr(agent, "name", "")
    reason = f"the agent {name!r} works inside of a tool and may end with a call that is not reported, {MISSING_CALLS}"
    return [Unread(path="run", reason=reason)]
