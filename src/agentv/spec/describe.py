"""Descriptions of evaluators and providers with their keys, for `describe` of their commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentv.registry import find_evaluator, find_provider
from agentv.spec.schema import field_docs

if TYPE_CHECKING:
    from collections.abc import Mapping

REF = "{name}"
UNDOCUMENTED = "(it does not say)"
TYPE_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "null": "nothing",
    "object": "mapping",
    "array": "list",
}


class EvaluatorKey(NamedTuple):
    """One key of an evaluator or a provider."""

    name: str
    type: str
    required: bool
    default: Any
    """`None` if there is none, or an empty one."""
    description: str
    own: bool
    """False for keys that all evaluators, or all providers, have."""


class EvaluatorDescription(NamedTuple):
    """Description of an evaluator type."""

    name: str
    summary: str
    executes: bool
    nested: str | None
    """The key that holds nested evaluators, if any."""
    keys: list[EvaluatorKey]
    examples: tuple[Any, ...]


class ProviderDescription(NamedTuple):
    """Description of a provider."""

    name: str
    summary: str
    executes: bool
    keys: list[EvaluatorKey]


def describe(name: str) -> EvaluatorDescription:
    """Return the description of a registered evaluator type."""
    cls: Any = find_evaluator(name)
    return EvaluatorDescription(
        name=name.replace("-", "_"),
        summary=first_paragraph(cls.__doc__),
        executes=cls.executes,
        nested=cls.nested,
        keys=_describe_keys(cls, "type", cls.nested),
        examples=cls.examples,
    )


def describe_provider(name: str) -> ProviderDescription:
    """Return the description of a registered provider."""
    cls: Any = find_provider(name)
    return ProviderDescription(
        name=name.replace("-", "_"),
        summary=first_paragraph(cls.__doc__),
        executes=cls.executes,
        keys=_describe_keys(cls, "provider"),
    )


def _describe_keys(cls: Any, tag: str, nested: str | None = None) -> list[EvaluatorKey]:
    """Return the keys of a class, the required ones first, without the key that chooses the class."""
    common = _common_fields(cls)
    _, parts = msgspec.json.schema_components([cls], ref_template=REF)
    schemas, docs = parts[cls.__name__]["properties"], field_docs(cls)
    keys = [
        EvaluatorKey(
            name=field.encode_name,
            type="list of evaluators" if field.name == nested else describe_type(schemas[field.encode_name], parts),
            required=field.required,
            default=_default(schemas[field.encode_name]),
            description=docs.get(field.encode_name) or _class_description(schemas[field.encode_name], parts),
            own=field.name not in common,
        )
        for field in msgspec.structs.fields(cls)
        if field.name != tag
    ]
    keys.sort(key=lambda key: not key.required)
    return keys


def _common_fields(cls: Any) -> frozenset[str]:
    """Return the fields of the base class of all evaluators, or of all providers."""
    bases = [base for base in cls.__mro__ if base is not msgspec.Struct and issubclass(base, msgspec.Struct)]
    return frozenset(bases[-1].__struct_fields__) if len(bases) > 1 else frozenset()


def _default(schema: Mapping[str, Any]) -> Any:
    default = schema.get("default")
    return default if default or (default == 0 and default is not False) else None


def first_paragraph(text: str | None) -> str:
    """Return the first paragraph of a docstring, on one line."""
    return " ".join((text or UNDOCUMENTED).strip().partition("\n\n")[0].split())


def _class_description(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    refs = [part["$ref"] for part in (schema, *schema.get("anyOf", ())) if "$ref" in part]
    return next((parts[ref]["description"] for ref in refs if parts[ref].get("description")), UNDOCUMENTED)


def describe_type(schema: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    """Return a short description of a JSON Schema."""
    if "$ref" in schema:
        part = parts[schema["$ref"]]
        return f"mapping of {', '.join(part['properties'])}" if "properties" in part else describe_type(part, parts)
    if "anyOf" in schema:
        words = [describe_type(choice, parts) for choice in schema["anyOf"] if choice.get("type") != "null"]
        return " or ".join(dict.fromkeys(words))
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    kind = schema.get("type")
    if kind == "array" and schema.get("items"):
        return f"list of: {describe_type(schema['items'], parts)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict) and schema["additionalProperties"]:
        return f"mapping of names to: {describe_type(schema['additionalProperties'], parts)}"
    return TYPE_WORDS.get(str(kind), "anything") + _bounds(schema)


def _bounds(schema: Mapping[str, Any]) -> str:
    words = []
    if "minimum" in schema:
        words.append(f"from {_number(schema['minimum'])}")
    if "exclusiveMinimum" in schema:
        words.append(f"above {_number(schema['exclusiveMinimum'])}")
    if "maximum" in schema:
        words.append(f"up to {_number(schema['maximum'])}")
    return f" {' '.join(words)}" if words else ""


def _number(value: float) -> str:
    return f"{value:.15g}"
