"""What the aliases of a YAML file stand for: each gets a copy of its own, and all of them together stay small."""

from __future__ import annotations

from typing import Any, Final

from agentv.spec.scalars import shown

# What an alias stands for is counted before it is copied, so the billion laughs end at their sixth line. A thousand
# cases with 500 values each from aliases still pass, and the worst bomb takes half a second.
MAX_COPIED: Final = 500_000
MAX_COPIED_LENGTH: Final = 100_000_000  # characters: one long text, named often, is a bomb as well
_BOXES = frozenset({dict, list})


class AliasError(ValueError):
    """An alias stands for nothing; the file can be read on."""


class BombError(ValueError):
    """An alias stands for more than is allowed; reading has to end."""


class Anchor:
    """A node that aliases may stand for, and how much it is when written out."""

    __slots__ = ("length", "size", "slot", "value")

    def __init__(self, value: Any, slot: int, size: int, length: int) -> None:
        self.value = value
        self.slot = slot
        self.size = size
        """In nodes; until it ends, minus those copied before it."""
        self.length = length
        """In characters, at most; until it ends, minus those copied before it."""


class Anchors:
    """The anchors read so far, and how much has been copied from them."""

    def __init__(self) -> None:
        self._named: dict[str, Anchor] = {}
        self._copied = 0
        self._copied_length = 0

    def add(self, name: str, text: Any, slot: int, length: int) -> None:
        """Remember a text, a number and the like."""
        self._named[name] = Anchor(text, slot, 1, length)

    def open(self, name: str, box: Any, slot: int) -> Anchor:
        """Remember a list or a mapping that only begins."""
        anchor = self._named[name] = Anchor(box, slot, -self._copied, -self._copied_length)
        return anchor

    def close(self, anchor: Anchor, size: int, length: int) -> None:
        """A list or a mapping ended; it is so many nodes and characters in the file."""
        anchor.size += size + self._copied
        anchor.length += length + self._copied_length

    def copy(self, name: str, levels: int) -> tuple[Any, int]:
        """A copy of what an alias stands for, so that nobody who changes one place changes another, and its slot."""
        anchor = self._named.get(name)
        if anchor is None:
            msg = (
                f"no {shown('&' + name)} is written above; write it there, or put the text in quotes if it is no alias"
            )
            raise AliasError(msg)
        if anchor.size <= 0:
            msg = f"this alias stands inside of {shown('&' + name)} itself"
            raise AliasError(msg)
        self._copied += anchor.size
        self._copied_length += anchor.length
        if self._copied > MAX_COPIED or self._copied_length > MAX_COPIED_LENGTH:
            msg = (
                f"the aliases so far stand for more than {MAX_COPIED:,} values or {MAX_COPIED_LENGTH:,} characters; "
                "put the cases in a file: `dataset: cases.jsonl`"
            )
            raise BombError(msg)
        return _copy(anchor.value, levels), anchor.slot


def _copy(value: Any, levels: int) -> Any:
    if type(value) not in _BOXES:
        return value
    if levels == 0:
        msg = "what this alias stands for is nested too deeply to stand here"
        raise BombError(msg)
    if isinstance(value, dict):
        return {key: _copy(item, levels - 1) if type(item) in _BOXES else item for key, item in value.items()}
    return [_copy(item, levels - 1) if type(item) in _BOXES else item for item in value]
