"""JSON Schema validation, without network access and within a time limit."""

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from time import monotonic
from types import ModuleType
from typing import Any

from agentv.errors import EvaluationError, Problem
from agentv.matching.diff import MAX_QUOTED, quote
from agentv.matching.equality import canonical_key
from agentv.matching.matchers import bad_pattern, pattern_of

Schema = dict[str, Any] | bool
Keyword = Callable[[Any, Any, Any, Any], Any]

NOT_INSTALLED = "needs a package that is not installed: pip install 'agentv[schema]'"
SECONDS = 5.0
MAX_LISTED = 10
MAX_SUBSCHEMAS = 10_000
"""The size of a schema, in objects and booleans, that is checked within about two seconds."""
MAX_VALUES = 200_000
"""The size of a schema in values of any kind."""
_clock = threading.local()
"""The deadline of the validation in this thread."""


def _jsonschema() -> ModuleType:
    import jsonschema  # noqa: PLC0415 - an extra, and as slow to import as all of ours

    return jsonschema


def _referencing() -> ModuleType:
    import referencing.jsonschema  # noqa: PLC0415 - comes with jsonschema

    return referencing


def check_schema(schema: Schema, path: str) -> list[Problem]:
    """Return the problems of a schema itself."""
    try:
        library = _jsonschema()
    except ImportError:
        return [Problem(path, NOT_INSTALLED)]
    if (reason := _too_large(schema)) is not None:
        return [Problem(path, reason)]
    try:
        library.validators.validator_for(schema, default=library.Draft202012Validator).check_schema(schema)
    except library.SchemaError as error:
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path)
        return [Problem(path + place, f"not a JSON Schema: {_short(error)}")]
    except RecursionError:
        return [Problem(path, "not a JSON Schema: nested too deeply")]
    return [*_check_patterns(schema, path), *_check_references(schema, path)]


def _too_large(schema: Schema) -> str | None:
    """Return why a schema is too large to be used; parts that a file repeats by alias count each time."""
    subschemas = values = 0
    todo: list[Any] = [schema]
    while todo:
        part = todo.pop()
        values += 1
        subschemas += isinstance(part, (dict, bool))
        if subschemas > MAX_SUBSCHEMAS:
            return f"has more than {MAX_SUBSCHEMAS:,} subschemas; check a part of the value, or use a `code` evaluator"
        if values > MAX_VALUES:
            return f"has more than {MAX_VALUES:,} values; check a part of the value, or use a `code` evaluator"
        if isinstance(part, (dict, list)):
            todo += part.values() if isinstance(part, dict) else part
    return None


def _check_patterns(schema: Schema, path: str) -> Iterator[Problem]:
    parts = list(_parts(schema))
    for part in parts:
        many = part.get("patternProperties")
        for pattern in [part.get("pattern"), *(many if isinstance(many, dict) else ())]:
            if isinstance(pattern, str) and (reason := bad_pattern(pattern)) is not None:
                yield Problem(path, f"{reason} (in {quote(pattern)})")
    # The library searches an agent's keys for these patterns with an engine that has no time limit.
    if any("unevaluatedProperties" in part for part in parts) and any("patternProperties" in part for part in parts):
        yield Problem(path, "`unevaluatedProperties` beside `patternProperties` is not supported")


def _check_references(schema: Schema, path: str) -> Iterator[Problem]:
    referencing = _referencing()
    parts = list(_parts(schema))
    if any("$id" in part for part in parts):
        return  # references may be to any of these; an invalid one is found during validation
    root = referencing.Resource.from_contents(schema, default_specification=referencing.jsonschema.DRAFT202012)
    resolver = referencing.Registry().with_resource("", root).resolver()
    for part in parts:
        reference = part.get("$ref")
        if isinstance(reference, str):
            try:
                resolver.lookup(reference)
            except referencing.exceptions.Unresolvable:
                hint = "a schema may refer to its own parts only, as in '#/$defs/item'"
                yield Problem(path, f"`$ref` {reference!r} leads nowhere; {hint}")


def _parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield every mapping in a schema."""
    if isinstance(schema, dict):
        yield schema
        schema = list(schema.values())
    if isinstance(schema, list):
        for item in schema:
            yield from _parts(item)


class SchemaCheck:
    """A compiled schema."""

    def __init__(self, schema: Schema) -> None:
        library = _jsonschema()
        version = library.validators.validator_for(schema, default=library.Draft202012Validator)
        ours = {name: keyword for name, keyword in _KEYWORDS.items() if name in version.VALIDATORS}
        keywords = {name: _with_deadline(keyword) for name, keyword in {**version.VALIDATORS, **ours}.items()}
        extended = library.validators.extend(version, keywords)
        # A registry of its own: by default the library fetches what a `$ref` names from the network.
        self._validator: Any = extended(schema, registry=_referencing().Registry())

    def complaints(self, value: Any) -> list[str]:
        """Return the violations of a value, each with its place; empty if it meets the schema."""
        _clock.end = monotonic() + SECONDS
        try:
            errors = list(islice(self._validator.iter_errors(value), MAX_LISTED + 1))
        except _referencing().exceptions.Unresolvable as error:
            msg = f"the schema's `$ref` {error.ref!r} leads nowhere"
            raise EvaluationError(msg) from None
        except RecursionError:
            msg = "the schema refers to itself without end"
            raise EvaluationError(msg) from None
        messages = [_message(error) for error in errors[:MAX_LISTED]]
        return [*messages, "and more"] if len(errors) > MAX_LISTED else messages


def _message(error: Any) -> str:
    place = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in error.absolute_path)
    return f"{place} {_short(error)}" if place else _short(error)


def _short(error: Any) -> str:
    """Return the library's message, which quotes the whole value, unless that is long."""
    if len(error.message) <= MAX_QUOTED:
        return str(error.message)
    return f"{quote(error.instance)} is not what `{error.validator}` asks for"


def _with_deadline(keyword: Keyword) -> Keyword:
    def check(validator: Any, wanted: Any, value: Any, schema: Any) -> Any:
        if monotonic() > _clock.end:
            msg = f"holding the value against the schema took longer than {SECONDS:g} s"
            raise EvaluationError(msg)
        return keyword(validator, wanted, value, schema)

    return check


# The library's own versions search an agent's text with an engine that can be made to run for hours, or compare
# every item with every other.


def _pattern(validator: Any, wanted: str, value: Any, _schema: Any) -> Iterator[Exception]:
    if validator.is_type(value, "string") and pattern_of(wanted).find(value) is None:
        yield _error(f"{quote(value)} does not match {quote(wanted)}")


def _pattern_properties(validator: Any, wanted: dict[str, Any], value: Any, _schema: Any) -> Iterator[Any]:
    if validator.is_type(value, "object"):
        for pattern, inner in wanted.items():
            for key, item in value.items():
                if pattern_of(pattern).find(key) is not None:
                    yield from validator.descend(item, inner, path=key, schema_path=pattern)


def _additional_properties(validator: Any, wanted: Any, value: Any, schema: dict[str, Any]) -> Iterator[Any]:
    if not validator.is_type(value, "object"):
        return
    known, patterns = schema.get("properties", {}), list(map(pattern_of, schema.get("patternProperties", ())))
    for key, item in value.items():
        if key in known or any(pattern.find(key) is not None for pattern in patterns):
            continue
        if wanted is False:
            yield _error(f"{quote(key)} is not allowed")
        elif isinstance(wanted, dict):
            yield from validator.descend(item, wanted, path=key)


def _unique_items(validator: Any, wanted: Any, value: Any, _schema: Any) -> Iterator[Exception]:
    if wanted and validator.is_type(value, "array"):
        seen: dict[Any, int] = {}
        for index, item in enumerate(value):
            first = seen.setdefault(canonical_key(item), index)
            if first != index:
                yield _error(f"items {first} and {index} are both {quote(item)}")
                return


def _error(message: str) -> Exception:
    error: Exception = _jsonschema().ValidationError(message)
    return error


_KEYWORDS: dict[str, Keyword] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
