"""Which cases of a dataset are run and in which order, by chance and yet the same each time."""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from agentv.spec.file_format import ShuffleEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.evals import CheckedCase
    from agentv.spec.file_format import DatasetEntry
    from agentv.spec.validation import CaseCounts


KEY_BYTES = 8
_KEY, _TURN, _REPEAT, _ONLY = 0, 1, 6, 7
_TYPES = "QQIQIIIB"
_SLACK = 1_000
_PARTS_BITS = 4


class Pick(NamedTuple):
    """Where a case is found again."""

    file: int
    offset: int
    line: int
    number: int


class Sampler:
    """The cases to run, in 20 bytes each: a file, an offset, a line, a number.

    Chance is a hash of the seed and the id. So it is the same whatever the order of the rows and the files they are
    in, and a row that is added or taken away changes nothing about the others.
    """

    def __init__(self, entry: DatasetEntry) -> None:
        self._sample = entry.sample
        shuffle = entry.shuffle
        self._seed = shuffle.seed if isinstance(shuffle, ShuffleEntry) else 0 if shuffle else None
        self._limit = entry.limit
        # Of rows that come by chance none but these can be left in the end, and the others need not be remembered.
        self._most = entry.sample.n if entry.sample else entry.limit
        self._arrays = [array(kind) for kind in _TYPES]

    def add(self, case: CheckedCase, file: int, offset: int, number: int) -> None:
        """One more case that may be picked."""
        name = case.case.id
        turn = number if self._seed is None else _chance(name, self._seed, b"shuffle")
        key = _chance(name, self._sample.seed, b"sample") if self._sample else turn
        line = case.place.line if case.place else 0
        repeat = 0 if case.skip else case.repeat
        for column, value in zip(self._arrays, (key, turn, file, offset, line, number, repeat, case.only), strict=True):
            column.append(value)
        if self._most is not None and len(self._arrays[0]) > 2 * self._most + _SLACK:
            self._keep(_ordered(self._arrays[_KEY])[: self._most])

    def settle(self, seen: CaseCounts) -> None:
        """No more will come: choose, put in order, and count."""
        if self._sample:
            self._keep(_ordered(self._arrays[_KEY])[: self._sample.n])
        self._keep(_ordered(self._arrays[_TURN])[: self._limit])
        for repeat, only in zip(self._arrays[_REPEAT], self._arrays[_ONLY], strict=True):
            seen.count += 1
            seen.skipped += not repeat
            seen.repeats += repeat
            seen.only = seen.only or bool(only)
        self._arrays = self._arrays[_TURN + 1 : _REPEAT]

    def __iter__(self) -> Iterator[Pick]:
        return map(Pick, *self._arrays)

    def _keep(self, order: array[int]) -> None:
        self._arrays = [array(each.typecode, map(each.__getitem__, order)) for each in self._arrays]


def _chance(name: str, seed: int, purpose: bytes) -> int:
    salt = seed.to_bytes(KEY_BYTES, "little")
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=KEY_BYTES, salt=salt, person=purpose)
    return int.from_bytes(digest.digest(), "little")


def _ordered(keys: array[int]) -> array[int]:
    """The places of the keys, the smallest first; a part of them at a time, as sorting takes much more than 8 bytes."""
    order = array("I")
    for part in range(1 << _PARTS_BITS):
        some = [at for at, key in enumerate(keys) if key >> (8 * KEY_BYTES - _PARTS_BITS) == part]
        order.extend(sorted(some, key=keys.__getitem__))
    return order
