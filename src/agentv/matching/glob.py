"""Names with `*` and `?`: the only two characters that are special."""

from collections.abc import Callable


def is_glob(pattern: str) -> bool:
    """Whether the pattern stands for more than itself."""
    return "*" in pattern or "?" in pattern


def glob_match(pattern: str, text: str) -> bool:
    """Whether the whole text fits the pattern.

    Not a regular expression: the text is an agent's, and `*a*a*a*b` must not stall a run. Between two stars the
    leftmost place is always as good as any other, so nothing is ever tried twice.
    """
    head, *parts = pattern.split("*")
    if not parts:
        return len(text) == len(head) and _fits(head, text, 0)
    tail = parts.pop()
    end = len(text) - len(tail)
    if len(head) > end or not _fits(head, text, 0) or not _fits(tail, text, end):
        return False
    at = len(head)
    for part in parts:
        at = _find(part, text, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def glob_test(pattern: str) -> Callable[[str], bool]:
    """The same, ready for many texts: the shapes that most patterns have are not taken apart again for each."""
    head, *parts = pattern.split("*")
    if "?" not in pattern:
        if len(parts) == 1:
            tail, shortest = parts[0], len(head) + len(parts[0])
            return lambda text: text.startswith(head) and text.endswith(tail) and len(text) >= shortest
        if len(parts) == 2 and not head and not parts[1]:  # noqa: PLR2004 - `*part*`
            middle = parts[0]
            return lambda text: middle in text
    return lambda text: glob_match(pattern, text)


def _fits(part: str, text: str, at: int) -> bool:
    if "?" not in part:
        return text.startswith(part, at)
    return len(text) - at >= len(part) and all(wanted in ("?", text[at + n]) for n, wanted in enumerate(part))


def _find(part: str, text: str, start: int, end: int) -> int:
    if "?" not in part:
        return text.find(part, start, end)
    return next((at for at in range(start, end - len(part) + 1) if _fits(part, text, at)), -1)


def name_match(pattern: str, name: str) -> bool:
    """Whether a tool of this name is meant by the pattern."""
    return pattern == name or (is_glob(pattern) and glob_match(pattern, name))
