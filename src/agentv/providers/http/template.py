"""Templates of HTTP requests: the names that `{{ name }}` may use, and their values."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import UNSET, to_builtins

from agentv.errors import FormatError, Problem
from agentv.formats.conversation import KEY
from agentv.formats.openai import to_openai
from agentv.model.conversation import Message
from agentv.model.request import ConversationMode, Request
from agentv.suggestions import suggest
from agentv.templating import MISSING, Template, check_keys, iter_placeholders, lookup, unescape_placeholders

NAMES = (
    *("prompt", "messages", "new_messages", "id", "vars", "attempt"),
    *("thread_id", "conversation_id", "turn", "resume"),
)
"""Names of placeholders; `vars` also with a path, such as `vars.user.city`."""
_MAX_NAMED = 20

Values = Mapping[str, Any]


def values_of(request: Request, message_format: str, mode: ConversationMode = "full") -> dict[str, Any]:
    """Return the values of the names; `UNSET` are `thread_id` in a new thread, and `prompt` beside a `resume`."""
    return {
        "prompt": request.prompt if request.resume is UNSET else UNSET,
        "messages": write_messages(request.messages_to_send(mode), message_format),
        "new_messages": write_messages(request.messages_to_send("thread"), message_format),
        "id": request.id,
        "vars": request.vars,
        "thread_id": UNSET if request.thread_id is None else request.thread_id,
        "conversation_id": request.conversation_id,
        "turn": request.turn,
        "resume": request.resume,
        "attempt": request.attempt,
    }


def write_messages(messages: Sequence[Message], message_format: str) -> list[Any]:
    """Return messages in the format of the target."""
    if message_format == "compact":
        written: list[Any] = to_builtins(list(messages))
        return written
    return [_without_marker(message) for message in to_openai(messages)]


def _without_marker(message: dict[str, Any]) -> dict[str, Any]:
    """Remove our own metadata from a message, because other servers reject unknown fields."""
    metadata = message.get("metadata")
    if not isinstance(metadata, dict) or KEY not in metadata:
        return message
    kept = {key: value for key, value in metadata.items() if key != KEY}
    return {**message, "metadata": kept} if kept else {key: message[key] for key in message if key != "metadata"}


def is_known(name: str) -> bool:
    """Tell whether a name can be filled; the value of a name in `vars` is looked up only when a case runs."""
    return name in NAMES or (name.startswith("vars.") and all(name.split(".")))


def find_value(values: Values, name: str, path: str = "") -> Any:
    """Return the value of a name, or raise `FormatError` if the `vars` of this case have none."""
    del path
    value = lookup(values, name)
    if value is MISSING:
        names = list(map(str, values["vars"]))
        near = suggest(name.partition(".")[2], names, ". Did")
        msg = (
            f"{{{{ {name} }}}} names no value of this case's `vars`; "
            f"there are {', '.join(names[:_MAX_NAMED]) or 'none'}{near}"
        )
        raise FormatError(msg)
    return value


TEMPLATE = Template(find_value, is_name=lambda written: is_known(written.strip()), unescape=unescape_placeholders)


def check_template(value: Any, path: str) -> Iterator[Problem]:
    """Yield the problems of a template: unknown names, and placeholders in keys."""
    for placeholder in iter_placeholders(value, path):
        if not is_known(placeholder.name):
            yield Problem(placeholder.path, _unknown(placeholder.written, placeholder.name), "whole")
    yield from check_keys(value, path)


def _unknown(written: str, name: str) -> str:
    choices = [*(known for known in NAMES if known != "vars"), "vars.NAME"]
    near = suggest(name, NAMES, ". Did") or (". Did you mean 'vars." + name + "'?" if name.isidentifier() else "")
    return f"{written} stands for nothing; expected one of {', '.join(choices)}{near}"


def names_in(value: Any) -> set[str]:
    """Return all names that are filled in a value."""
    return {placeholder.name for placeholder in iter_placeholders(value) if is_known(placeholder.name)}
