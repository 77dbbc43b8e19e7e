"""What the source says about a struct's fields: the bare string beneath each, which Python itself throws away."""

from __future__ import annotations

import ast
import inspect
from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.inspect import StructType, multi_type_info

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOR_AUTHORS = {
    "EvaluatorBase.type": "Which check this is.",
    "EvaluatorBase.skip": "Not carried out; results say that it was skipped.",
    "ToolTrajectory.score": "`binary` makes it all or nothing, the others make `expected` worth that fraction; "
    "by default the score is the mean over all constraints.",
    "ToolTrajectory.unit": "`call` by default; with `turn` the calls of one assistant message are one unordered group.",
    "Entry.max_duration_ms": "How long the call may take.",
    "Entry.status": "How the call must have ended.",
    "ToolRule.input_match": "How inputs of this tool are compared; overrides the evaluator's.",
    "CallFilter.ok": "Whether calls that went well count.",
    "CallFilter.error": "Whether calls that ended in an error count.",
    "CallFilter.denied": "Whether calls that were not permitted count.",
    "CallFilter.pending": "Whether calls that have not ended count.",
    "ProviderBase.provider": "What talks to the target.",
    "EvalEntry.schema": "Where an editor finds the JSON Schema of this file.",
    "ProjectEntry.schema": "Where an editor finds the JSON Schema of this file.",
    "Message.role": "Who speaks: `system`, `user`, `assistant` or `tool`.",
    "Message.content": "What is said: a text, or a list of content blocks.",
    "Message.tool_calls": "The tools that the assistant called in this message.",
    "Message.tool_call_id": "In a message of `role: tool`, the id of the call that it answers.",
    "Message.name": "Whose message it is; in one of `role: tool`, the tool's name.",
    "Message.id": "The message's own id.",
    "Message.timestamp": "When it was sent.",
    "Message.metadata": "Whatever else belongs to the message.",
    "ToolCall.tool": "The tool's name.",
    "ToolCall.input": "What the tool is given; absent is not the same as `{}`.",
    "ToolCall.output": "What the tool gives back; absent is not the same as `null`.",
    "ToolCall.id": "What a message of `role: tool` names in its `tool_call_id`.",
    "ToolCall.timestamp": "When it was called.",
    "ToolCall.duration_ms": "How long the call took.",
    "ToolCall.error": "What went wrong.",
    "ToolCall.metadata": "Whatever else belongs to the call.",
    "ProviderResponse.success": "Whether there is a usable reply; by default, whether there is no `error`.",
    "ProviderResponse.output_messages": "What the agent adds to the conversation, its tool calls included.",
    "ProviderResponse.trace_ref": "Deprecated: a file that holds the trace. Send `output_messages` instead.",
    "ProviderResponse.reasoning": "What the model thought before it answered.",
    "ProviderResponse.cost_usd": "What the reply cost, in US dollars.",
    "ProviderResponse.thread_id": "The conversation that the reply belongs to.",
    "ProviderResponse.raw_response": "The reply as the agent's own interface gave it.",
    "ResponseError.kind": "Where it went wrong.",
    "ResponseError.message": "What went wrong, for people.",
    "ResponseError.retryable": "Whether trying again may help.",
    "TokensUsage.cache_read_tokens": "The part of the input that came from a cache.",
    "TokensUsage.cache_write_tokens": "The part of the input that was put into a cache.",
    "TokensUsage.reasoning_tokens": "The part of the output that is reasoning.",
    "TraceEvent.type": "What kind of event it is.",
    "TraceEvent.timestamp": "When it happened; the order of the list is what counts.",
    "TraceEvent.name": "The tool's name.",
    "TraceEvent.input": "What the tool was given.",
    "TraceEvent.output": "What the tool gave back.",
    "TraceEvent.text": "The words of a message or an error.",
    "TraceEvent.metadata": "Whatever else belongs to the event.",
    "TraceSummary.tool_calls_by_name": "How often each tool was called.",
    "TraceSummary.error_count": "How many events or calls were errors.",
}
"""By class and field: what the source leaves unsaid, or says to programmers rather than to authors of files."""


def structs_in(classes: Iterable[type]) -> list[type[msgspec.Struct]]:
    """These structs and every struct that a field of theirs can hold."""
    found: dict[type[msgspec.Struct], None] = {}
    waiting: list[Any] = list(multi_type_info(classes))
    while waiting:
        item = waiting.pop()
        if isinstance(item, tuple):
            waiting += item
        elif isinstance(item, msgspec.Struct) and not (isinstance(item, StructType) and item.cls in found):
            if isinstance(item, StructType):
                found[item.cls] = None
            waiting += [getattr(item, name) for name in item.__struct_fields__]
    return list(found)


def field_docs(cls: type[msgspec.Struct]) -> dict[str, str]:
    """The string beneath each field by the field's name in files; what a class leaves unsaid its bases may say."""
    said: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base is not msgspec.Struct and issubclass(base, msgspec.Struct):
            said |= dict(_own_docs(base))
            said |= {
                name: text for name in base.__struct_fields__ if (text := FOR_AUTHORS.get(f"{base.__name__}.{name}"))
            }
    names = {field.name: field.encode_name for field in msgspec.structs.fields(cls)}
    return {names[name]: text for name, text in said.items() if name in names}


def _own_docs(cls: type) -> Iterator[tuple[str, str]]:
    try:
        source = dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # installed without its source: the schema says less, and is as strict as ever
        return
    (body,) = ast.parse(source).body
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - the source of a class is one
    for statement, following in pairwise(body.body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, " ".join(text.split())
