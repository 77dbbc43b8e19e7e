"""JSON Schema of eval and project files, and the documentation of fields from their docstrings."""

from __future__ import annotations

import ast
import copy
import inspect
from functools import cache
from itertools import pairwise
from textwrap import dedent
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct
from msgspec.inspect import StructType, multi_type_info

from agentv.formats.response import REPLY_KEYS
from agentv.model.response import ProviderResponse
from agentv.registry import EVALUATORS, PROVIDERS, find_evaluator, find_provider
from agentv.spec.cases import CAMEL_CASE, MESSAGE_FIELDS
from agentv.spec.dataset.columns import CONVERSATION_FIELDS, INPUT_FIELDS
from agentv.spec.file_format import (
    CaseEntry,
    EvalEntry,
    PersonaEntry,
    ProjectEntry,
    SimulateEntry,
    SimulateTurnEntry,
    TurnEntry,
)
from agentv.spec.loader import CASE_LISTS, TARGET_LISTS
from agentv.spec.messages import TOOL_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

EXPECTED_FIELDS = ("expected_messages", "expected")


def structs_in(classes: Iterable[type]) -> list[type[msgspec.Struct]]:
    """Return these structs and all structs that their fields can contain."""
    structs: dict[type[msgspec.Struct], None] = {}
    queue: list[Any] = list(multi_type_info(classes))
    while queue:
        item = queue.pop()
        if isinstance(item, tuple):
            queue += item
        elif isinstance(item, msgspec.Struct) and not (isinstance(item, StructType) and item.cls in structs):
            if isinstance(item, StructType):
                structs[item.cls] = None
            queue += [getattr(item, name) for name in item.__struct_fields__]
    return list(structs)


def field_docs(cls: type[msgspec.Struct]) -> dict[str, str]:
    """Return the docstring under each field by the field's name in files, including those of base classes."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if base is not msgspec.Struct and issubclass(base, msgspec.Struct):
            docs |= own_docs(base)
    names = {field.name: field.encode_name for field in msgspec.structs.fields(cls)}
    return {names[name]: text for name, text in docs.items() if name in names}


@cache
def own_docs(cls: type) -> dict[str, str]:
    """Return the docstring under each field of a class, without those of its base classes."""
    try:
        source = dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # installed without source files: a schema without descriptions is as strict
        return {}
    (body,) = ast.parse(source).body
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - source of a class
    docs: dict[str, str] = {}
    for statement, following in pairwise(body.body):
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                docs[name] = " ".join(text.split())
    return docs


Schema = dict[str, Any]
Definitions = dict[str, Schema]
Kind = Literal["eval", "project"]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
REF = "#/$defs/"
ITEMS = {
    "evaluators": "Evaluator",
    "turns": "TurnEntry",
    "personas": "PersonaEntry",
    **dict.fromkeys(TARGET_LISTS, "Target"),
    **dict.fromkeys(CASE_LISTS, "CaseEntry"),
}
"""Definitions of the items of lists that the loader checks one by one."""
CALL_FORMATS = ("ToolCall", "OpenAICall", "NamedCall")
EMPTY_VALUES: tuple[Any, ...] = (None, "", [], (), {})
PLUGIN_NAME = "A name that an installed plugin provides."


class FunctionCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool and its arguments in OpenAI's format."""

    name: Annotated[str, Meta(min_length=1)]
    """The tool's name."""
    arguments: str | dict[str, Any] = "{}"
    """The tool's arguments as JSON text."""


class OpenAICall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool call in OpenAI's format."""

    function: FunctionCall
    """The tool and its arguments."""
    id: str | None = None
    """The id that a message of `role: tool` names in its `tool_call_id`."""
    type: Literal["function"] = "function"
    """The kind of call."""


class NamedCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool call in LangChain's format."""

    name: Annotated[str, Meta(min_length=1)]
    """The tool's name."""
    args: Any = UNSET
    """The arguments of the tool."""
    id: str | None = None
    """The id that a message of `role: tool` names in its `tool_call_id`."""
    type: Literal["tool_call"] = "tool_call"
    """The kind of call."""


def eval_schema() -> Schema:
    """Return the JSON Schema of an eval file."""
    schema = _document("agentv eval", EvalEntry)
    schema["anyOf"] = [{"required": [name]} for name in (*CASE_LISTS, "dataset")]
    return schema


def project_schema() -> Schema:
    """Return the JSON Schema of `agentv.yaml`."""
    return _document("agentv project", ProjectEntry)


def schema_text(kind: Kind = "eval") -> str:
    """Return the schema as JSON text, the same on every machine."""
    schema = eval_schema() if kind == "eval" else project_schema()
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def _document(title: str, root: type[Struct]) -> Schema:
    """Return a schema with the definitions that it refers to, directly or indirectly, and no others."""
    definitions = _build_definitions(root)
    used: dict[str, Schema] = {}
    queue = _refs(definitions[root.__name__])
    while queue:
        name = queue.pop(0)
        if name not in used:
            used[name] = definitions[name]
            queue += _refs(definitions[name])
    return {"$schema": DRAFT, "title": title, **definitions[root.__name__], "$defs": used}


def _build_definitions(root: type[Struct]) -> Definitions:
    """Return the schemas of this class and of everything that it may contain, by name."""
    evaluators = {name: find_evaluator(name) for name in EVALUATORS}
    providers = {name: find_provider(name) for name in PROVIDERS}
    classes: list[Any] = [root, CaseEntry, TurnEntry, PersonaEntry, SimulateEntry, SimulateTurnEntry]
    classes += [*evaluators.values(), *providers.values(), ProviderResponse, OpenAICall, NamedCall]
    _, definitions = msgspec.json.schema_components(classes, ref_template=REF + "{name}")
    for cls in structs_in(classes):
        _describe(definitions[cls.__name__], field_docs(cls), definitions)
    _add_messages(definitions)
    _add_replies(definitions)
    for name in (root.__name__, "DefaultsEntry", "CaseEntry", "TurnEntry"):
        for key, schema in definitions[name]["properties"].items():
            if key in ITEMS:
                schema["items"] = _ref(ITEMS[key])
    _refine_case(definitions["CaseEntry"])
    _refine_turn(definitions["TurnEntry"])
    definitions["StopEntry"]["properties"]["made"]["items"] = {
        "anyOf": [{"type": "string", "minLength": 1}, _ref("Entry")]
    }
    if "DatasetEntry" in definitions:
        definitions["Template"] = _template(definitions["CaseEntry"])
        definitions["DatasetEntry"]["properties"]["template"]["anyOf"][0] = _ref("Template")
    for evaluator in evaluators.values():
        if evaluator is not None and (nested := evaluator.nested):
            definitions[evaluator.__name__]["properties"][nested]["items"] = _ref("Evaluator")
    for name in ("Cli", "Code"):
        _allow_text(definitions[name]["properties"]["command"])
    definitions["Evaluator"] = _choice(definitions, evaluators, "type")
    definitions["Target"] = _choice(definitions, providers, "provider", "name")
    return definitions


def _allow_text(schema: Schema) -> None:
    """Allow a text in place of a list, which is split like the command of a shell."""
    rest = {key: schema.pop(key) for key in list(schema) if key != "description"}
    schema["anyOf"] = [rest, {"type": "string", "pattern": r"\S"}]


def _describe(part: Schema, docs: Mapping[str, str], definitions: Definitions) -> None:
    """Add descriptions to properties: the docstring under the field, else that of the class of its value."""
    part.pop("title")  # the name of the class, which is of no use to authors
    for name, schema in part["properties"].items():
        if schema.get("default", 0) in EMPTY_VALUES:
            del schema["default"]  # an editor would insert it
        text = docs.get(name) or next((definitions[ref].get("description") for ref in _refs(schema)), None)
        if text is not None:
            schema["description"] = text


def _refine_case(case: Schema) -> None:
    properties = case["properties"]
    for name in (*MESSAGE_FIELDS, *MESSAGE_FIELDS.values()):
        del properties[name]["anyOf"]
        properties[name] |= _ref("ExpectedReply" if name in EXPECTED_FIELDS else "Messages")
    for alias, name in CAMEL_CASE.items():
        _add_alias(properties, alias, name)
    properties["turns"]["minItems"] = 1
    properties["turns"]["items"] = {"anyOf": [{"type": "string", "pattern": r"\S"}, _ref("TurnEntry")]}
    _set_schema(properties["simulate"], _ref("SimulateEntry"))
    case["anyOf"] = [{"required": [name]} for name in (*INPUT_FIELDS, *CONVERSATION_FIELDS)]


def _refine_turn(turn: Schema) -> None:
    properties = turn["properties"]
    for name in EXPECTED_FIELDS:
        _set_schema(properties[name], _ref("ExpectedReply"))
    _set_schema(properties["user"], {"anyOf": [{"type": "string", "pattern": r"\S"}, _ref("Message")]})
    _set_schema(properties["simulate"], {"anyOf": [_ref("SimulateTurnEntry"), {"type": "null"}]})
    properties["evaluators"]["items"]["not"] = {"required": ["over"]}
    turn["anyOf"] = [{"required": [name]} for name in ("user", "resume", "simulate")]


def _set_schema(schema: Schema, new: Schema) -> None:
    """Replace a schema, and keep its description."""
    for key in [key for key in schema if key != "description"]:
        del schema[key]
    schema |= new


def _template(case: Schema) -> Schema:
    """Return the schema of a template: the keys of a case with any values, since values may come from columns."""
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


def _choice(definitions: Definitions, classes: Mapping[str, Any], key: str, *others: str) -> Schema:
    """Return the schema of a built-in class by the name under this key, or of a plugin with another name."""
    built_in: list[str] = []
    for name, cls in classes.items():
        part = definitions[cls.__name__]
        # Hyphen and underscore are equivalent in the type of an evaluator.
        spellings = [name, name.replace("_", "-")] if "_" in name and key == "type" else [name]
        part["properties"][key]["enum"] = spellings
        part["required"] = [key, *others, *part["required"]]
        for other in others:
            part["properties"][other]["minLength"] = 1
        built_in += spellings
    base = next(definitions[cls.__name__]["properties"] for cls in classes.values())
    plugin = {
        "type": "object",
        "properties": {
            key: {"type": "string", "not": {"enum": built_in}, "description": PLUGIN_NAME},
            **{other: base[other] for other in others},
        },
        "required": [key, *others],
    }
    return {"anyOf": [*[_ref(cls.__name__) for cls in classes.values()], plugin]}


def _add_messages(definitions: Definitions) -> None:
    """Add the schemas of messages; those of a case have no other keys, since a misspelt key would check nothing."""
    call, message = definitions["ToolCall"], definitions["Message"]
    _set_minimum_0(call["properties"]["duration_ms"], "number")
    _add_alias(call["properties"], "durationMs", "duration_ms")
    _add_alias(message["properties"], "toolCallId", "tool_call_id")
    definitions |= {"ReplyCall": _reply_call(definitions), "ReplyMessage": copy.deepcopy(message)}
    call["required"], call["additionalProperties"] = ["tool"], False
    call["properties"]["tool"]["minLength"] = 1
    _add_alias(call["properties"], "args", "input", rare=False)
    message["required"], message["additionalProperties"] = [], False
    _set_call_schema(message, {"anyOf": [_ref(shape) for shape in CALL_FORMATS]}, _ref("FunctionCall"))
    _set_call_schema(definitions["ReplyMessage"], _ref("ReplyCall"), definitions["ReplyCall"]["properties"]["function"])
    definitions["Messages"] = {
        "description": "A text, one message, or a list of messages.",
        "anyOf": [
            {"type": "string"},
            _ref("Message"),  # a single message needs no role
            {"type": "array", "items": {**_ref("Message"), "required": ["role"]}},
        ],
    }
    name = {"type": "string", "pattern": f"^{TOOL_NAME.pattern}$"}
    definitions["ExpectedReply"] = {
        "description": "A text, one message, a list of messages, or a list of calls and names of tools.",
        "anyOf": [_ref("Messages"), {"type": "array", "items": {"anyOf": [name, _ref("ToolCall")]}, "minItems": 1}],
    }


def _set_call_schema(message: Schema, call: Schema, function: Schema) -> None:
    properties = message["properties"]
    properties["tool_calls"]["items"] = call
    _add_alias(properties, "toolCalls", "tool_calls")
    properties["function_call"] = {**function, "description": "A tool call in OpenAI's deprecated format."}


def _reply_call(definitions: Definitions) -> Schema:
    """Return the schema of a call in a reply, which may mix formats and have other keys, since agents send it."""
    properties = {name: schema for shape in CALL_FORMATS for name, schema in definitions[shape]["properties"].items()}
    properties["type"] = {"type": "string", "description": "The kind of call in OpenAI's or LangChain's format."}
    properties["function"] = {
        key: part for key, part in definitions["FunctionCall"].items() if key != "additionalProperties"
    }
    return {
        "description": "A tool call in any format.",
        "type": "object",
        "properties": copy.deepcopy(properties),
        "anyOf": [{"required": [name]} for name in ("tool", "function", "name")],
    }


def _add_replies(definitions: Definitions) -> None:
    """Add the schemas of replies of a mock: as open as an agent's, except for misspelt keys of the reply itself."""
    reply = definitions["ProviderResponse"]
    properties = reply["properties"]
    reply["additionalProperties"] = False
    properties["error"]["anyOf"].append({"type": "string"})
    properties["output_messages"]["anyOf"][0]["items"] = _ref("ReplyMessage")
    for name in ("cost_usd", "latency_ms"):
        _set_minimum_0(properties[name], "number")
    _set_minimum_0(definitions["ResponseError"]["properties"]["retry_after_s"], "number")
    for alias in [key for key in REPLY_KEYS if key not in properties]:
        _add_alias(properties, alias, _field_of_alias(alias, properties))
    _set_minimum_0(definitions["TokensUsage"])
    _set_minimum_0(definitions["TraceSummary"])
    one = [{"type": "string"}, _ref("ProviderResponse")]
    definitions["Mock"]["properties"]["reply"]["anyOf"] = [
        *one,
        {"type": "array", "minItems": 1, "items": {"anyOf": one}},
    ]


def _field_of_alias(alias: str, names: Iterable[str]) -> str:
    """Return the field of a reply for an alias: its snake_case name, or the field that has it as a word."""
    snake_case = "".join(f"_{char.lower()}" if char.isupper() else char for char in alias)
    return next(name for name in names if snake_case == name or snake_case in name.split("_"))


def _set_minimum_0(schema: Any, kind: str = "integer") -> None:
    for inner in _walk(schema):
        if inner.get("type") == kind:
            inner["minimum"] = 0


def _add_alias(properties: dict[str, Schema], alias: str, name: str, *, rare: bool = True) -> None:
    """Add another name of a property; with `rare`, editors do not suggest it."""
    hidden = {"doNotSuggest": True} if rare else {}
    properties[alias] = {**properties[name], "description": f"The same as `{name}`.", **hidden}


def _ref(name: str) -> Schema:
    return {"$ref": REF + name}


def _refs(schema: Any) -> list[str]:
    return [inner["$ref"].removeprefix(REF) for inner in _walk(schema) if isinstance(inner.get("$ref"), str)]


def _walk(value: Any) -> Iterator[Schema]:
    """Yield all mappings in a schema."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _walk(item)
