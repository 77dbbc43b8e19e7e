"""How many characters must be inserted, deleted or replaced to make one text of another."""


def effort(left: str, right: str) -> float:
    """About how many microseconds their distance takes: a step a character of the longer text, wider for the other."""
    shorter, longer = sorted((len(left), len(right)))
    return longer * (1 + shorter / 2500)


def differing_parts(left: str, right: str) -> tuple[str, str]:
    """Both texts without the beginning and the end that they share, which never add to their distance."""
    shorter = min(len(left), len(right))
    start = _shared(left, right, shorter)
    left, right = left[start:], right[start:]
    end = _shared(left[::-1], right[::-1], shorter - start)
    return left[: len(left) - end], right[: len(right) - end]


def _shared(left: str, right: str, most: int) -> int:
    """How many characters both begin with, found by halves: comparing slices is done in C."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def distance(left: str, right: str) -> int:
    """The Levenshtein distance of two texts.

    A column of the table is one large integer with a bit a row (Myers 1999, Hyyrö 2001), so that 10,000 characters
    against 10,000 take 50 ms and not a minute.
    """
    left, right = differing_parts(left, right)
    if len(left) < len(right):
        left, right = right, left
    if not right:
        return len(left)
    rows: dict[str, int] = {}
    for index, char in enumerate(right):
        rows[char] = rows.get(char, 0) | (1 << index)
    everything, last = (1 << len(right)) - 1, 1 << (len(right) - 1)
    ups, downs, found = everything, 0, len(right)
    for char in left:
        equal = rows.get(char, 0)
        across = (((equal & ups) + ups) ^ ups) | equal
        more = downs | (everything & ~(across | ups))
        fewer = ups & across
        if more & last:
            found += 1
        elif fewer & last:
            found -= 1
        more, fewer = (more << 1) | 1, fewer << 1
        kept = equal | downs
        ups = (fewer | ~(kept | more)) & everything
        downs = more & kept & everything
    return found
