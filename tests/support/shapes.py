"""Shapes of replies: which keys they have and of which types, and what differs between two replies."""

from collections.abc import Iterator
from typing import Any

TYPES = {dict: "object", list: "list", str: "text", int: "number", float: "number", bool: "boolean", type(None): "null"}
TAGS = ("type", "kind", "part_kind", "block_type", "role")
"""Keys whose words say what an object of a list is."""


def shape(value: Any) -> dict[str, set[str]]:
    """Give the types at each path; objects of a list are told apart by their first tag."""
    found: dict[str, set[str]] = {}
    for path, kind in _places(value, ""):
        found.setdefault(path, set()).add(kind)
    return found


def _places(value: Any, path: str) -> Iterator[tuple[str, str]]:
    yield path, TYPES[type(value)]
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            yield from _places(item, f"{path}[{_tag(item)}]")


def _tag(item: Any) -> str:
    words = [item[key] for key in TAGS if isinstance(item.get(key), str)] if isinstance(item, dict) else []
    return words[0] if words else ""


def differences(before: Any, after: Any) -> list[str]:
    """Name each path that is new (`+`), gone (`-`) or of another type (`~`); below a new or gone path, none."""
    old, new = shape(before), shape(after)
    lines = [f"+ {path}: {_kinds(new[path])}" for path in _highest(new.keys() - old.keys())]
    lines += [f"- {path}: {_kinds(old[path])}" for path in _highest(old.keys() - new.keys())]
    changed = [path for path in old.keys() & new.keys() if old[path] != new[path]]
    return lines + [f"~ {path}: {_kinds(old[path])} -> {_kinds(new[path])}" for path in sorted(changed)]


def _highest(paths: set[str]) -> list[str]:
    return sorted(path for path in paths if not any(above in paths for above in _above(path)))


def _above(path: str) -> Iterator[str]:
    for at, sign in enumerate(path):
        if sign in ".[":
            yield path[:at]


def _kinds(kinds: set[str]) -> str:
    return "/".join(sorted(kinds))
