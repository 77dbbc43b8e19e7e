"""How deep a foreign value is nested, and what becomes of it when that is too deep."""

from typing import Any

MAX_DEPTH = 128
"""Levels of lists and objects that one foreign value may have."""
CUT = f"[nested deeper than {MAX_DEPTH} levels]"
"""What stands in place of a value below that."""

_WIDE = 10_000
"""Containers on one level that are worth a look whether some are the same object."""
_MAX_WIDTH = 1_000_000
"""Containers on one level; among deep values only one that holds itself several times over has more."""


def is_deep(value: Any) -> bool:
    """Tell whether a value has more than `MAX_DEPTH` levels, without recursion."""
    level = [value] if isinstance(value, (dict, list, tuple)) else []
    for _ in range(MAX_DEPTH):
        below = [
            item
            for box in level
            for item in (box.values() if isinstance(box, dict) else box)
            if isinstance(item, (dict, list, tuple))
        ]
        if not below:
            return False
        # Once on a level is as deep as twice; without this, a value that holds itself would never end.
        level = below if len(below) < _WIDE else list({id(box): box for box in below}.values())
    return True


def cut(value: Any) -> Any:
    """Copy a value down to `MAX_DEPTH` levels, with `CUT` in place of all that is deeper."""
    top = [value]
    level: list[Any] = [top]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for box in level:
            for key, item in _items(box):
                if isinstance(item, (dict, list, tuple)):
                    box[key] = copy = dict(item) if isinstance(item, dict) else list(item)
                    below.append(copy)
        if len(below) > _MAX_WIDTH:
            break
        level = below
    for box in level:
        for key, item in _items(box):
            if isinstance(item, (dict, list, tuple)):
                box[key] = CUT
    return top[0]


def _items(box: Any) -> Any:
    return list(box.items()) if isinstance(box, dict) else enumerate(box)
