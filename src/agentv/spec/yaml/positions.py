"""Where in its file each key and each value of a document is written."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


MERGE = "\0<<"
"""The name under which a merge key is kept: no key of a document can hold a NUL."""
_INDEX = re.compile(r"\[([0-9]{1,9})\]")
_LINE_BREAK = re.compile(r"\r\n?|\n")


class Mark(NamedTuple):
    """A place in a file."""

    line: int
    """Counted from 1."""
    column: int
    """Counted from 1, in characters."""
    width: int
    """How many characters of this line belong to it, at least 1."""


class Positions:
    """The places of a document's parts, found by their path."""

    # Nodes stand in flat arrays, in the order of the file and named by their slot: 20 bytes each, where a tree of
    # objects would take hundreds. A mapping's keys and values are the slots behind its own, in turn.
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
        """The slot of a new node; a key has a name."""
        slot = len(self._starts)
        self._starts.append(start)
        self._ends.append(end)
        self._after.append(slot + 1)
        self._names.append(name)
        return slot

    def close(self, slot: int) -> None:
        """Everything added since this slot is inside of it."""
        self._after[slot] = len(self._starts)

    def link(self, slot: int, original: int) -> None:
        """An alias at this slot stands for the node at the other."""
        self._originals[slot] = original

    def find(self, path: str, about: Literal["value", "key", "whole"] = "value") -> Mark:
        """The place of what a path such as `cases[0].id` leads to, or of the deepest part of it that is there."""
        if not self._starts:
            return Mark(1, 1, 1)
        key: int | None = None
        node = 0
        rest = path
        while rest:
            step = self._step(node, rest)
            if step is None:
                return self.of(node)
            key, node, rest = step
        return self.of(node if key is None or about != "key" else key)

    def of(self, slot: int) -> Mark:
        """The place of a node."""
        start, end = self._starts[slot], self._ends[slot]
        if start == end and slot + 1 < self._after[slot] and self._starts[slot + 1] == start:
            end = self._ends[slot + 1]  # a block mapping is written nowhere itself: its first key stands for it
        return self.at(start, end)

    def start(self, slot: int) -> int:
        """Where a node begins, in characters from the beginning of the file."""
        return self._starts[slot]

    def at(self, start: int, end: int = 0) -> Mark:
        """The place of a stretch of text, as far as it is on its first line."""
        line = bisect_right(self._lines, start)
        begin = self._lines[line - 1]
        stop = self._lines[line] if line < len(self._lines) else len(self._text)
        width = len(self._text[start : min(end, stop)].rstrip("\r\n"))
        return Mark(line, start - begin + 1, max(width, 1))

    def first(self, mapping: int, name: str) -> int:
        """The slot of the first key of this name."""
        return self._table(mapping)[name][0]

    def _step(self, node: int, rest: str) -> tuple[int | None, int, str] | None:
        place = self._originals.get(node, node)
        if self._after[place] == place + 1:
            return None
        if self._names[place + 1] is None:
            index = _INDEX.match(rest)
            items = self._children(place)
            if index is None or int(index[1]) >= len(items):
                return None
            return None, items[int(index[1])], rest[index.end() :]
        table = self._table(place)
        # Between a mapping and its key is a dot, except before the outermost key, where it may be left out.
        names = [rest[1:]] if rest[0] == "." else []
        for text in [rest, *names] if node == 0 else names:
            for end in _ends_of_names(text):
                if text[:end] in table:
                    return *table[text[:end]], text[end:]
        return None

    def _table(self, mapping: int) -> dict[str, tuple[int, int]]:
        """The slots of key and value by name: a mapping's own ones first, then those it merges, in their order."""
        table = self._keys.get(mapping)
        if table is not None:
            return table
        table = self._keys[mapping] = {}
        todo = [mapping]
        while todo:
            merged: list[int] = []
            pairs = self._slots(todo.pop())
            for key, value in zip(pairs, pairs, strict=False):  # a file that breaks off may leave a key without value
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
        return array("I", [0, *(found.end() for found in _LINE_BREAK.finditer(self._text))])


def _ends_of_names(text: str) -> Iterator[int]:
    end = len(text)
    while end >= 0:
        yield end
        end = max(text.rfind(".", 0, end), text.rfind("[", 0, end))
