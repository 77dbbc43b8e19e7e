"""Globs and edit distances."""

from collections.abc import Callable

MOST_NEAR = 16
"""The largest distance searched for among nearly equal texts; the cost grows with its square."""


def estimate_microseconds(left: str, right: str) -> float:
    """Estimate the microseconds that the distance takes: a step per character of the longer text."""
    shorter, longer = sorted((len(left), len(right)))
    return longer * (1 + shorter / 2500)


def differing_parts(left: str, right: str) -> tuple[str, str]:
    """Return both texts without their common beginning and end, which never add to their distance."""
    shorter = min(len(left), len(right))
    start = _common_prefix(left, right, shorter)
    left, right = left[start:], right[start:]
    end = _common_prefix(left[::-1], right[::-1], shorter - start)
    return left[: len(left) - end], right[: len(right) - end]


def _common_prefix(left: str, right: str, most: int) -> int:
    """Return the length of the common prefix, by bisection: comparing slices is done in C."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def distance(left: str, right: str) -> int:
    """Return the Levenshtein distance of two texts."""
    left, right = differing_parts(left, right)
    if len(left) < len(right):
        left, right = right, left
    if not right:
        return len(left)
    near = _near_distance(left, right, min(MOST_NEAR, len(right) // 100))
    return _column_distance(left, right) if near is None else near


def _near_distance(left: str, right: str, most: int) -> int | None:
    """Return a small distance by the furthest place that so many changes reach on each diagonal (Ukkonen 1985).

    Nearly equal texts are the usual ones: a dozen changes in 1,500 characters are found in a third of the time.
    """
    goal = len(left) - len(right)
    if abs(goal) > most:
        return None
    reached = {0: 0}  # they differ in the first character
    for changes in range(1, most + 1):
        further: dict[int, int] = {}
        for diagonal in range(-changes, changes + 1):
            at = max(reached.get(diagonal, -2) + 1, reached.get(diagonal - 1, -2) + 1, reached.get(diagonal + 1, -1))
            at = min(at, len(left), len(right) + diagonal)
            if at >= max(0, diagonal):
                further[diagonal] = at + _common_length(left, right, at, at - diagonal)
        if further.get(goal, -1) >= len(left):
            return changes
        reached = further
    return None


def _common_length(left: str, right: str, here: int, there: int) -> int:
    """Return the number of characters in common from these places on."""
    most = min(len(left) - here, len(right) - there)
    length, step = 0, 8
    while length < most:  # double the slices while they agree, then bisect
        step = min(step, most - length)
        one, other = left[here + length : here + length + step], right[there + length : there + length + step]
        if one != other:
            return length + _common_prefix(one, other, step)
        length += step
        step *= 4
    return length


def _column_distance(left: str, right: str) -> int:
    """Return the distance of any two texts.

    A column of the table is one large integer with a bit a row (Myers 1999, Hyyrö 2001), so that 10,000 characters
    against 10,000 take 50 ms and not a minute.
    """
    rows: dict[str, int] = {}
    for index, char in enumerate(right):
        rows[char] = rows.get(char, 0) | (1 << index)
    everything, last = (1 << len(right)) - 1, 1 << (len(right) - 1)
    ups, downs, changes = everything, 0, len(right)
    for char in left:
        equal = rows.get(char, 0)
        across = (((equal & ups) + ups) ^ ups) | equal
        more = downs | (everything & ~(across | ups))
        fewer = ups & across
        if more & last:
            changes += 1
        elif fewer & last:
            changes -= 1
        more, fewer = (more << 1) | 1, fewer << 1
        kept = equal | downs
        ups = (fewer | ~(kept | more)) & everything
        downs = more & kept & everything
    return changes


def is_glob(pattern: str) -> bool:
    """Return whether the pattern is a glob."""
    return "*" in pattern or "?" in pattern


def glob_match(pattern: str, text: str) -> bool:
    """Return whether the whole text matches the glob.

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
    """Return a test of a glob for many texts, with shortcuts for common shapes."""
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
    """Return whether a tool name matches the pattern."""
    return pattern == name or (is_glob(pattern) and glob_match(pattern, name))
