"""A request as it is written, in which `{{ prompt }}` and the like stand for values, filled once and never again."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import UNSET, to_builtins

from agentv.errors import FormatError, Problem, suggest
from agentv.formats.conversation import KEY
from agentv.formats.openai import to_openai
from agentv.jsonio import dump_json
from agentv.model.request import Request
from agentv.templating import unshield

NAMES = ("prompt", "messages", "id", "vars", "thread_id", "attempt")
"""What may stand between the braces; of `vars` also a part, as `vars.user.city`."""
# Linear on any text: what is between the braces holds none.
PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")
_WHOLE = 3
"""Parts of a text that is one name: nothing, the name, nothing."""
_MAX_NAMED = 20

Values = Mapping[str, Any]
Fill = Callable[[Values], Any]
AsText = Callable[[str], str]


def values_of(request: Request, message_format: str) -> dict[str, Any]:
    """What the names stand for; without a conversation so far, `thread_id` is `UNSET`."""
    return {
        "prompt": request.prompt,
        "messages": write_messages(request, message_format),
        "id": request.id,
        "vars": request.vars,
        "thread_id": UNSET if request.thread_id is None else request.thread_id,
        "attempt": request.attempt,
    }


def write_messages(request: Request, message_format: str) -> list[Any]:
    """The messages as the endpoint wants them."""
    if message_format == "compact":
        written: list[Any] = to_builtins(list(request.input_messages))
        return written
    return [_without_marker(message) for message in to_openai(request.input_messages)]


def _without_marker(message: dict[str, Any]) -> dict[str, Any]:
    """A message without what only we would read in it: other servers refuse fields that they do not know."""
    metadata = message.get("metadata")
    if not isinstance(metadata, dict) or KEY not in metadata:
        return message
    kept = {key: value for key, value in metadata.items() if key != KEY}
    return {**message, "metadata": kept} if kept else {key: message[key] for key in message if key != "metadata"}


def compile_value(value: Any, as_text: AsText = str) -> Fill:
    """How to fill any JSON value; `as_text` is what becomes of a value that stands within a text."""
    if isinstance(value, str):
        return _compile_text(value, as_text)
    if isinstance(value, list):
        items = [compile_value(item, as_text) for item in value]
        return lambda values: [None if (filled := fill(values)) is UNSET else filled for fill in items]
    if isinstance(value, Mapping):
        fields = {key: compile_value(item, as_text) for key, item in value.items()}
        return lambda values: {key: filled for key, fill in fields.items() if (filled := fill(values)) is not UNSET}
    return lambda values: value  # noqa: ARG005 - one of several that are called alike


def compile_text(text: str, as_text: AsText = str) -> Callable[[Values], str]:
    """How to fill a text that stays one, whatever it is filled with."""
    between, names = _split(text)

    def fill(values: Values) -> str:
        made = [between[0]]
        for name, rest in zip(names, between[1:], strict=True):
            made += [as_text(_words(find_value(values, name))), rest]
        return "".join(made)

    return fill


def _compile_text(text: str, as_text: AsText) -> Fill:
    between, names = _split(text)
    if not names:
        return lambda values: between[0]  # noqa: ARG005 - one of several that are called alike
    if len(names) == 1 and not any(between):
        return lambda values: find_value(values, names[0])
    return compile_text(text, as_text)


def _split(text: str) -> tuple[list[str], list[str]]:
    """What stands between the placeholders, and their names; what is none stays text."""
    between, names = [""], []
    end = 0
    for found in PLACEHOLDER.finditer(text):
        name = found[1].strip()
        if is_known(name):
            between[-1] += text[end : found.start()]
            between.append("")
            names.append(name)
            end = found.end()
    between[-1] += text[end:]
    return [unshield(each) for each in between], names


def is_known(name: str) -> bool:
    """Whether this can be filled; whether a case has such a value in `vars` is known only when it runs."""
    return name in NAMES or (name.startswith("vars.") and all(name.split(".")))


def find_value(values: Values, name: str) -> Any:
    """What a name stands for, or `FormatError` when this case has nothing of that name in `vars`."""
    if name in values:
        return values[name]
    first, *parts = name.split(".")
    value = values[first]
    for part in parts:
        if not isinstance(value, Mapping) or part not in value:
            there = ", ".join(map(str, list(values["vars"])[:_MAX_NAMED])) or "none"
            near = suggest(".".join(parts), list(map(str, values["vars"])), ". Did")
            msg = f"{{{{ {name} }}}} names no value of this case's `vars`; there are {there}{near}"
            raise FormatError(msg)
        value = value[part]
    return value


def _words(value: Any) -> str:
    if value is UNSET:
        return ""
    return value if isinstance(value, str) else dump_json(value).decode()


def check_template(value: Any, path: str) -> Iterator[Problem]:
    """What is wrong with a value as it is written: names that stand for nothing, and names in keys."""
    if isinstance(value, str):
        for found in PLACEHOLDER.finditer(value):
            if not is_known(found[1].strip()):
                yield Problem(path, _unknown(found[0], found[1].strip()), "whole")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if PLACEHOLDER.search(key):
                yield Problem(f"{path}.{key}", f"{key!r} is a key; only values are filled", "key")
            yield from check_template(item, f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for at, item in enumerate(value):
            yield from check_template(item, f"{path}[{at}]")


def _unknown(written: str, name: str) -> str:
    choices = [*(each for each in NAMES if each != "vars"), "vars.NAME"]
    near = suggest(name, NAMES, ". Did") or (". Did you mean 'vars." + name + "'?" if name.isidentifier() else "")
    return f"{written} stands for nothing; expected one of {', '.join(choices)}{near}"


def names_in(value: Any) -> set[str]:
    """Every name that is filled somewhere in a value."""
    if isinstance(value, str):
        return set(_split(value)[1])
    if isinstance(value, Mapping):
        value = list(value.values())
    return {name for item in value for name in names_in(item)} if isinstance(value, (list, tuple)) else set()
