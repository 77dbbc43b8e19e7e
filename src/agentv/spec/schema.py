"""JSON Schema of the files, and the documentation of fields."""

from __future__ import annotations

import ast
import copy
import inspect
from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct
from msgspec.inspect import StructType, multi_type_info

from agentv.formats.response import REPLY_KEYS
from agentv.model.response import ProviderResponse
from agentv.registry import EVALUATORS, PROVIDERS, find_evaluator, find_provider
from agentv.spec.cases import CAMEL, LISTS
from agentv.spec.dataset.columns import ASKS
from agentv.spec.file_format import CaseEntry, EvalEntry, ProjectEntry
from agentv.spec.loader import CASE_LISTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


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


Schema = dict[str, Any]
Parts = dict[str, Schema]
Kind = Literal["eval", "project"]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
REF = "#/$defs/"
ITEMS = {"evaluators": "Evaluator", "targets": "Target", **dict.fromkeys(CASE_LISTS, "CaseEntry")}
"""What a list holds whose items the loader checks one by one."""
CALL_SHAPES = ("ToolCall", "OpenAICall", "NamedCall")
NOTHING: tuple[Any, ...] = (None, "", [], (), {})
FOREIGN = "A name that an installed package brings along."


class FunctionCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool and its input as OpenAI writes them."""

    name: Annotated[str, Meta(min_length=1)]
    """The tool's name."""
    arguments: str | dict[str, Any] = "{}"
    """The tool's input as JSON text."""


class OpenAICall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call of a tool in OpenAI's shape."""

    function: FunctionCall
    """The tool and its input."""
    id: str | None = None
    """What a message of `role: tool` names in its `tool_call_id`."""
    type: Literal["function"] = "function"
    """That it is a call of a function."""


class NamedCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One call of a tool in LangChain's shape."""

    name: Annotated[str, Meta(min_length=1)]
    """The tool's name."""
    args: Any = UNSET
    """What the tool is given."""
    id: str | None = None
    """What a message of `role: tool` names in its `tool_call_id`."""
    type: Literal["tool_call"] = "tool_call"
    """That it is a call of a tool."""


def eval_schema() -> Schema:
    """The JSON Schema of an eval."""
    schema = _document("agentv eval", EvalEntry)
    schema["anyOf"] = [{"required": [name]} for name in (*CASE_LISTS, "dataset")]
    return schema


def project_schema() -> Schema:
    """The JSON Schema of `agentv.yaml`."""
    return _document("agentv project", ProjectEntry)


def schema_text(kind: Kind = "eval") -> str:
    """The schema as JSON text, the same on every machine."""
    schema = eval_schema() if kind == "eval" else project_schema()
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def _document(title: str, root: type[Struct]) -> Schema:
    """A schema with all that it refers to, directly or not, and nothing else."""
    parts = _parts(root)
    used: dict[str, Schema] = {}
    waiting = _refs(parts[root.__name__])
    while waiting:
        name = waiting.pop(0)
        if name not in used:
            used[name] = parts[name]
            waiting += _refs(parts[name])
    return {"$schema": DRAFT, "title": title, **parts[root.__name__], "$defs": used}


def _parts(root: type[Struct]) -> Parts:
    """By name, the schemas of this class and of everything that it may hold."""
    evaluators = {name: find_evaluator(name) for name in EVALUATORS}
    providers = {name: find_provider(name) for name in PROVIDERS}
    classes: list[Any] = [root, CaseEntry, *evaluators.values(), *providers.values()]
    classes += [ProviderResponse, OpenAICall, NamedCall]
    _, parts = msgspec.json.schema_components(classes, ref_template=REF + "{name}")
    for cls in structs_in(classes):
        _describe(parts[cls.__name__], field_docs(cls), parts)
    _add_messages(parts)
    _add_replies(parts)
    for name in (root.__name__, "DefaultsEntry", "CaseEntry"):
        for key, schema in parts[name]["properties"].items():
            if key in ITEMS:
                schema["items"] = _ref(ITEMS[key])
    _refine_case(parts["CaseEntry"])
    if "DatasetEntry" in parts:
        parts["Template"] = _template(parts["CaseEntry"])
        parts["DatasetEntry"]["properties"]["template"]["anyOf"][0] = _ref("Template")
    for made in evaluators.values():
        if made is not None and (nested := getattr(made, "nested", None)):
            parts[made.__name__]["properties"][nested]["items"] = _ref("Evaluator")
    parts["Evaluator"] = _choice(parts, evaluators, "type")
    parts["Target"] = _choice(parts, providers, "provider", "name")
    return parts


def _describe(part: Schema, said: Mapping[str, str], parts: Parts) -> None:
    """Give each property its words: those beneath the field, else those of the class that it holds."""
    part.pop("title")  # the class's name, which says nothing to an author
    for name, schema in part["properties"].items():
        if schema.get("default", 0) in NOTHING:
            del schema["default"]  # an editor would write it out
        text = said.get(name) or next((parts[ref].get("description") for ref in _refs(schema)), None)
        if text is not None:
            schema["description"] = text


def _refine_case(case: Schema) -> None:
    properties = case["properties"]
    for name in (*LISTS, *LISTS.values()):
        del properties[name]["anyOf"]
        properties[name] |= _ref("Messages")
    for alias, name in CAMEL.items():
        _add_alias(properties, alias, name)
    case["anyOf"] = [{"required": [name]} for name in ASKS]


def _template(case: Schema) -> Schema:
    """A case in which any value may come from a column, so that only its keys are known."""
    kept = ("description", "doNotSuggest")
    properties = {
        name: {key: schema[key] for key in kept if key in schema} for name, schema in case["properties"].items()
    }
    return {
        "description": "A case in which `{{ column }}` stands for a column of the row.",
        "type": "object",
        "properties": properties,
        "required": case["required"],
        "anyOf": case["anyOf"],
        "additionalProperties": False,
    }


def _choice(parts: Parts, classes: Mapping[str, Any], key: str, *others: str) -> Schema:
    """One of ours by the word under this key, or whatever somebody's package takes under a word of its own."""
    ours: list[str] = []
    for name, cls in classes.items():
        part = parts[cls.__name__]
        # Hyphen and underscore are the same in the type of an evaluator.
        spellings = [name, name.replace("_", "-")] if "_" in name and key == "type" else [name]
        part["properties"][key]["enum"] = spellings
        part["required"] = [key, *others, *part["required"]]
        for other in others:
            part["properties"][other]["minLength"] = 1
        ours += spellings
    base = next(parts[cls.__name__]["properties"] for cls in classes.values())
    foreign = {
        "type": "object",
        "properties": {
            key: {"type": "string", "not": {"enum": ours}, "description": FOREIGN},
            **{other: base[other] for other in others},
        },
        "required": [key, *others],
    }
    return {"anyOf": [*[_ref(cls.__name__) for cls in classes.values()], foreign]}


def _add_messages(parts: Parts) -> None:
    """Messages of a case are closed: a misspelled key in an expectation would check nothing."""
    call, message = parts["ToolCall"], parts["Message"]
    _count_from_0(call["properties"]["duration_ms"], "number")
    _add_alias(call["properties"], "durationMs", "duration_ms")
    _add_alias(message["properties"], "toolCallId", "tool_call_id")
    parts |= {"ReplyCall": _reply_call(parts), "ReplyMessage": copy.deepcopy(message)}
    call["required"], call["additionalProperties"] = ["tool"], False
    call["properties"]["tool"]["minLength"] = 1
    _add_alias(call["properties"], "args", "input", rare=False)
    message["required"], message["additionalProperties"] = [], False
    _hold_calls(message, {"anyOf": [_ref(shape) for shape in CALL_SHAPES]}, _ref("FunctionCall"))
    _hold_calls(parts["ReplyMessage"], _ref("ReplyCall"), parts["ReplyCall"]["properties"]["function"])
    parts["Messages"] = {
        "description": "A text, one message, or a list of messages.",
        "anyOf": [
            {"type": "string"},
            _ref("Message"),  # one alone needs no role
            {"type": "array", "items": {**_ref("Message"), "required": ["role"]}},
        ],
    }


def _hold_calls(message: Schema, call: Schema, function: Schema) -> None:
    properties = message["properties"]
    properties["tool_calls"]["items"] = call
    _add_alias(properties, "toolCalls", "tool_calls")
    properties["function_call"] = {**function, "description": "OpenAI's older way to call one tool."}


def _reply_call(parts: Parts) -> Schema:
    """A call in a reply may mix the shapes and hold anything else, for it may come from an agent."""
    properties = {name: schema for shape in CALL_SHAPES for name, schema in parts[shape]["properties"].items()}
    properties["type"] = {"type": "string", "description": "What OpenAI or LangChain call it."}
    properties["function"] = {key: part for key, part in parts["FunctionCall"].items() if key != "additionalProperties"}
    return {
        "description": "One call of a tool, in any shape.",
        "type": "object",
        "properties": copy.deepcopy(properties),
        "anyOf": [{"required": [name]} for name in ("tool", "function", "name")],
    }


def _add_replies(parts: Parts) -> None:
    """A mock's reply is as open as an agent's, but for its own fields, which an author would misspell."""
    reply = parts["ProviderResponse"]
    properties = reply["properties"]
    reply["additionalProperties"] = False
    properties["error"]["anyOf"].append({"type": "string"})
    properties["output_messages"]["anyOf"][0]["items"] = _ref("ReplyMessage")
    for name in ("cost_usd", "latency_ms"):
        _count_from_0(properties[name], "number")
    for alias in [key for key in REPLY_KEYS if key not in properties]:
        _add_alias(properties, alias, _meant(alias, properties))
    _count_from_0(parts["TokensUsage"])
    _count_from_0(parts["TraceSummary"])
    one = [{"type": "string"}, _ref("ProviderResponse")]
    parts["Mock"]["properties"]["reply"]["anyOf"] = [*one, {"type": "array", "minItems": 1, "items": {"anyOf": one}}]


def _meant(alias: str, names: Iterable[str]) -> str:
    """The field of a reply that an alias stands for: itself in snake_case, or the one of which it is a word."""
    plain = "".join(f"_{char.lower()}" if char.isupper() else char for char in alias)
    return next(name for name in names if plain == name or plain in name.split("_"))


def _count_from_0(schema: Any, kind: str = "integer") -> None:
    for inner in _walk(schema):
        if inner.get("type") == kind:
            inner["minimum"] = 0


def _add_alias(properties: dict[str, Schema], alias: str, name: str, *, rare: bool = True) -> None:
    """Another word under which a property is read; editors know `doNotSuggest`."""
    hidden = {"doNotSuggest": True} if rare else {}
    properties[alias] = {**properties[name], "description": f"The same as `{name}`.", **hidden}


def _ref(name: str) -> Schema:
    return {"$ref": REF + name}


def _refs(schema: Any) -> list[str]:
    return [inner["$ref"].removeprefix(REF) for inner in _walk(schema) if isinstance(inner.get("$ref"), str)]


def _walk(value: Any) -> Iterator[Schema]:
    """Every mapping in a schema."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _walk(item)
