"""YAML positions: line and column of each key and each value of a document."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


MERGE = "\0<<"
"""Name of a merge key (`<<`): no other key can contain a NUL."""
_INDEX = re.compile(r"\[([0-9]{1,9})\]")
_LINE_BREAK = re.compile(r"\r\n?|\n")


class Position(NamedTuple):
    """Line, column and width of a key or a value."""

    line: int
    """Counted from 1."""
    column: int
    """Counted from 1, in characters."""
    width: int
    """Number of its characters on this line, at least 1."""


class Positions:
    """Positions of all nodes of a document, found by their path."""

    # Nodes are stored in flat arrays in the order of the file, indexed by slot: 20 bytes each, where a tree of objects
    # would take hundreds. Keys and values of a mapping alternate in the slots after its own.
    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = array("I")
        self._ends = array("I")
        self._after = array("I")
        self._names: list[str | None] = []
        self._originals: dict[int, int] = {}
        self._keys: dict[int, dict[str, tuple[int, int]]] = {}
        self._items: dict[int, array[int]] = {}

    def __len__(self) -> int:
        return len(self._starts)

    def add(self, start: int, end: int, name: str | None = None) -> int:
        """Add a node and return its slot; a key has a name."""
        slot = len(self._starts)
        self._starts.append(start)
        self._ends.append(end)
        self._after.append(slot + 1)
        self._names.append(name)
        return slot

    def close(self, slot: int) -> None:
        """End a list or mapping: all nodes added since its slot are inside it."""
        self._after[slot] = len(self._starts)

    def link(self, slot: int, original: int) -> None:
        """Record that the node at this slot is an alias of another one."""
        self._originals[slot] = original

    def find(self, path: str, about: Literal["value", "key", "whole"] = "value") -> Position:
        """Return the position of a path such as `cases[0].id`, or of the deepest part of it that exists."""
        if not self._starts:
            return Position(1, 1, 1)
        key: int | None = None
        node = 0
        rest = path
        while rest:
            step = self._step(node, rest)
            if step is None:
                return self.of(node)
            key, node, rest = step
        return self.of(node if key is None or about != "key" else key)

    def lines(self, path: str) -> tuple[int, int]:
        """Return the first and the last line of the node of a path, with everything in it."""
        node = self._node(path)
        last = max(range(node, self._after[node]), key=self._ends.__getitem__)
        return self.at(self._starts[node]).line, self.at(max(self._ends[last] - 1, self._starts[last])).line

    def scalar_lines(self) -> set[int]:
        """Return the lines that continue a text of several lines: a `#` in them is a part of the text."""
        found: set[int] = set()
        for slot in range(len(self._starts)):
            if self._after[slot] == slot + 1 and self._ends[slot] > self._starts[slot]:
                first, last = self.at(self._starts[slot]).line, self.at(self._ends[slot] - 1).line
                found.update(range(first + 1, last + 1))
        return found

    def _node(self, path: str) -> int:
        node, rest = 0, path
        while rest:
            step = self._step(node, rest)
            if step is None:
                break
            _, node, rest = step
        return node

    def of(self, slot: int) -> Position:
        """Return the position of a node."""
        start, end = self._starts[slot], self._ends[slot]
        if start == end and slot + 1 < self._after[slot] and self._starts[slot + 1] == start:
            end = self._ends[slot + 1]  # a block mapping has no text of its own: use its first key
        return self.at(start, end)

    def start(self, slot: int) -> int:
        """Return the index of a node in the text."""
        return self._starts[slot]

    def at(self, start: int, end: int = 0) -> Position:
        """Return the position of a range of text, up to the end of its first line."""
        line = bisect_right(self._lines, start)
        begin = self._lines[line - 1]
        stop = self._lines[line] if line < len(self._lines) else len(self._text)
        width = len(self._text[start : min(end, stop)].rstrip("\r\n"))
        return Position(line, start - begin + 1, max(width, 1))

    def first(self, mapping: int, name: str) -> int:
        """Return the slot of the first key of this name."""
        return self._table(mapping)[name][0]

    def _step(self, node: int, rest: str) -> tuple[int | None, int, str] | None:
        slot = self._originals.get(node, node)
        if self._after[slot] == slot + 1:
            return None
        if self._names[slot + 1] is None:
            index = _INDEX.match(rest)
            items = self._children(slot)
            if index is None or int(index[1]) >= len(items):
                return None
            return None, items[int(index[1])], rest[index.end() :]
        table = self._table(slot)
        # A dot separates a mapping and its key; before the outermost key it is optional.
        names = [rest[1:]] if rest[0] == "." else []
        for text in [rest, *names] if node == 0 else names:
            for end in _ends_of_names(text):
                if text[:end] in table:
                    return *table[text[:end]], text[end:]
        return None

    def _table(self, mapping: int) -> dict[str, tuple[int, int]]:
        """Return the slots of key and value by name: those of the mapping first, then merged ones in their order."""
        table = self._keys.get(mapping)
        if table is not None:
            return table
        table = self._keys[mapping] = {}
        todo = [mapping]
        while todo:
            merged: list[int] = []
            pairs = self._slots(todo.pop())
            for key, value in zip(pairs, pairs, strict=False):  # in a truncated file a key may have no value
                name = self._names[key]
                if name is not None:
                    table.setdefault(name, (key, value))
                if name == MERGE:
                    merged += self._merged(value)
            todo += reversed(merged)
        return table

    def _merged(self, value: int) -> list[int]:
        value = self._originals.get(value, value)
        if self._after[value] == value + 1 or self._names[value + 1] is not None:
            return [value]
        return [self._originals.get(item, item) for item in self._slots(value)]

    def _children(self, sequence: int) -> array[int]:
        if sequence not in self._items:
            self._items[sequence] = array("I", self._slots(sequence))
        return self._items[sequence]

    def _slots(self, node: int) -> Iterator[int]:
        stop = self._after[node]
        slot = node + 1
        while slot < stop:
            yield slot
            slot = self._after[slot]

    @cached_property
    def _lines(self) -> array[int]:
        return array("I", [0, *(match.end() for match in _LINE_BREAK.finditer(self._text))])


def _ends_of_names(text: str) -> Iterator[int]:
    end = len(text)
    while end >= 0:
        yield end
        end = max(text.rfind(".", 0, end), text.rfind("[", 0, end))
