"""JSON Pointer (RFC 6901): its syntax, and the value that it leads to."""

from typing import Any

MAX_DIGITS = 12


class Nothing:
    """The value of a path that leads nowhere; the absent side of a difference."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = Nothing()


def bad_pointer(pointer: str) -> str | None:
    """Return why this is no JSON pointer; `None` if it is one."""
    if pointer and not pointer.startswith("/"):
        return f"not a JSON pointer: it begins with '/', as {'/' + pointer.replace('.', '/')!r} does"
    at = next(
        (at for at, char in enumerate(pointer) if char == "~" and pointer[at + 1 : at + 2] not in ("0", "1")), None
    )
    if at is not None:
        return f"not a JSON pointer: at character {at + 1}, '~' is written '~0' and a '/' in a key '~1'"
    return None


def pointer_steps(pointer: str) -> tuple[str, ...]:
    """Return the keys and positions of a JSON pointer."""
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def at_steps(value: Any, steps: tuple[str, ...]) -> Any:
    """Return the value at the end of these steps, or `NOTHING`."""
    for step in steps:
        value = at_step(value, step)
        if value is NOTHING:
            break
    return value


def at_step(value: Any, step: str) -> Any:
    """Return the value under one key or position, or `NOTHING`."""
    if isinstance(value, dict):
        return value.get(step, NOTHING)
    if not isinstance(value, list) or not (step.isascii() and step.isdecimal() and len(step) < MAX_DIGITS):
        return NOTHING
    is_position = step == "0" or step[0] != "0"
    return value[int(step)] if is_position and int(step) < len(value) else NOTHING
