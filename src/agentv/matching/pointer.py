"""JSON pointers (RFC 6901): `/items/0/id`."""

from typing import Any

from agentv.matching.diff import NOTHING

MAX_DIGITS = 12


def bad_pointer(pointer: str) -> str | None:
    """Why this is no JSON pointer; `None` when it is one."""
    if pointer and not pointer.startswith("/"):
        return f"not a JSON pointer: it begins with '/', as {'/' + pointer.replace('.', '/')!r} does"
    at = next(
        (at for at, char in enumerate(pointer) if char == "~" and pointer[at + 1 : at + 2] not in ("0", "1")), None
    )
    if at is not None:
        return f"not a JSON pointer: at character {at + 1}, '~' is written '~0' and a '/' in a key '~1'"
    return None


def pointer_steps(pointer: str) -> tuple[str, ...]:
    """The keys and positions that lead to its place."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def at_steps(value: Any, steps: tuple[str, ...]) -> Any:
    """What stands there, or `NOTHING`."""
    for step in steps:
        value = at_step(value, step)
        if value is NOTHING:
            break
    return value


def at_step(value: Any, step: str) -> Any:
    """What stands under one key or position."""
    if isinstance(value, dict):
        return value.get(step, NOTHING)
    if not isinstance(value, list) or not (step.isascii() and step.isdecimal() and len(step) < MAX_DIGITS):
        return NOTHING
    is_position = step == "0" or step[0] != "0"
    return value[int(step)] if is_position and int(step) < len(value) else NOTHING
