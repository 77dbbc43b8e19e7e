"""How deep a foreign value is nested, and what becomes of it when that is too deep."""

from typing import Any

MAX_DEPTH = 128
"""Levels of lists and objects that one foreign value may have."""
CUT = f"[nested deeper than {MAX_DEPTH} levels]"
"""What stands in place of a value below that."""

_WIDE = 100_000
"""Containers on one level that are worth a look whether they are mostly the same object."""
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
        if len(below) > _MAX_WIDTH and len({id(box) for box in below}) < len(below) // 2:
            return True  # few objects that hold each other many times over: written out, they would never end
        level = below
    return True


def cut(value: Any) -> Any:
    """Copy a value down to `MAX_DEPTH` levels, with `CUT` in place of all that is deeper."""
    top = [value]
    level: list[Any] = [top]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        met = set()
        for box in level:
            for key, item in _items(box):
                if isinstance(item, (dict, list, tuple)):
                    box[key] = copy = dict(item) if isinstance(item, dict) else list(item)
                    below.append(copy)
                    met.add(id(item))
        if len(below) > _MAX_WIDTH or (len(below) > _WIDE and len(met) < len(below) // 2):
            break
        level = below
    for box in level:
        for key, item in _items(box):
            if isinstance(item, (dict, list, tuple)):
                box[key] = CUT
    return top[0]


def _items(box: Any) -> Any:
    return list(box.items()) if isinstance(box, dict) else enumerate(box)
