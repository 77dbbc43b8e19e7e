"""What an evaluator takes, told by its class: for people who ask on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentv.registry import find_evaluator
from agentv.spec.schema import field_docs

if TYPE_CHECKING:
    from collections.abc import Mapping

REF = "{name}"
NO_WORDS = "(it does not say)"
WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "nothing",
    "object": "mapping",
    "array": "list",
}


class Key(NamedTuple):
    """One key of an evaluator."""

    name: str
    type: str
    required: bool
    default: Any
    """`None` when there is none to speak of."""
    description: str
    own: bool
    """Whether other evaluators do not have it."""


class Description(NamedTuple):
    """An evaluator in words."""

    name: str
    summary: str
    executes: bool
    keys: list[Key]
    examples: tuple[Any, ...]


def describe(name: str) -> Description:
    """The description of an evaluator that is there."""
    cls: Any = find_evaluator(name)
    shared = _shared(cls)
    _, parts = msgspec.json.schema_components([cls], ref_template=REF)
    schemas, said = parts[cls.__name__]["properties"], field_docs(cls)
    nested = getattr(cls, "nested", None)
    keys = [
        Key(
            name=field.encode_name,
            type="list of evaluators" if field.name == nested else type_words(schemas[field.encode_name], parts),
            required=field.required,
            default=_default(schemas[field.encode_name]),
            description=said.get(field.encode_name) or _said(schemas[field.encode_name], parts),
            own=field.name not in shared,
        )
        for field in msgspec.structs.fields(cls)
        if field.name != "type"
    ]
    keys.sort(key=lambda key: not key.required)
    return Description(
        name=name.replace("-", "_"),
        summary=first_sentence(cls.__doc__),
        executes=getattr(cls, "executes", False),
        keys=keys,
        examples=tuple(getattr(cls, "examples", ())),
    )


def _shared(cls: Any) -> frozenset[str]:
    """What every evaluator has: the fields of the class that all are derived from."""
    bases = [base for base in cls.__mro__ if base is not msgspec.Struct and issubclass(base, msgspec.Struct)]
    return frozenset(bases[-1].__struct_fields__) if len(bases) > 1 else frozenset()


def _default(schema: Mapping[str, Any]) -> Any:
    default = schema.get("default")
    return default if default or (default == 0 and default is not False) else None


def first_sentence(text: str | None) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((text or NO_WORDS).strip().partition("\n\n")[0].split())


def _said(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    refs = [part["$ref"] for part in (schema, *schema.get("anyOf", ())) if "$ref" in part]
    return next((parts[ref]["description"] for ref in refs if parts[ref].get("description")), NO_WORDS)


def type_words(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    """A JSON Schema in a few words."""
    if "$ref" in schema:
        part = parts[schema["$ref"]]
        return f"mapping of {', '.join(part['properties'])}" if "properties" in part else type_words(part, parts)
    if "anyOf" in schema:
        words = [type_words(choice, parts) for choice in schema["anyOf"] if choice.get("type") != "null"]
        return " or ".join(dict.fromkeys(words))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    kind = schema.get("type")
    if kind == "array" and schema.get("items"):
        return f"list of: {type_words(schema['items'], parts)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict) and schema["additionalProperties"]:
        return f"mapping of names to: {type_words(schema['additionalProperties'], parts)}"
    return WORDS.get(str(kind), "anything") + _bounds(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    words = []
    if "minimum" in schema:
        words.append(f"from {schema['minimum']:g}")
    if "exclusiveMinimum" in schema:
        words.append(f"above {schema['exclusiveMinimum']:g}")
    if "maximum" in schema:
        words.append(f"up to {schema['maximum']:g}")
    return f" {' '.join(words)}" if words else ""
