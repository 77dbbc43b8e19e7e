"""Sampling and shuffling of a dataset, seeded: random, but the same cases in the same order each time."""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import Struct

from agentv.spec.file_format import ShuffleEntry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.evals import CheckedCase
    from agentv.spec.file_format import DatasetEntry
    from agentv.spec.validation import CaseCounts


KEY_BYTES = 8
_KEY, _ORDER, _REPEAT, _ONLY = 0, 1, 6, 7
_TYPES = "QQIQIIIB"
_SLACK = 1_000
_PARTS_BITS = 4


class SampledRow(Struct, frozen=True):
    """Position of a sampled case."""

    file: int
    offset: int
    line: int
    number: int


class Sampler:
    """The cases to run, in 20 bytes column: a file, an offset, a line, a number.

    The random number of a case is a hash of the seed and the id. So it does not depend on the order of rows and files,
    and adding or removing a row does not change the others.
    """

    def __init__(self, entry: DatasetEntry) -> None:
        self._sample = entry.sample
        shuffle = entry.shuffle
        self._seed = shuffle.seed if isinstance(shuffle, ShuffleEntry) else 0 if shuffle else None
        self._limit = entry.limit
        # No more rows than these can remain in the end, so the others are dropped early.
        self._most = entry.sample.n if entry.sample else entry.limit
        self._arrays = [array(kind) for kind in _TYPES]

    def add(self, case: CheckedCase, file: int, offset: int, number: int) -> None:
        """Add a case to sample from."""
        name = case.case.id
        order = number if self._seed is None else _random_key(name, self._seed, b"shuffle")
        key = _random_key(name, self._sample.seed, b"sample") if self._sample else order
        line = case.location.line if case.location else 0
        repeat = 0 if case.skip else case.repeat
        for column, value in zip(
            self._arrays, (key, order, file, offset, line, number, repeat, case.only), strict=True
        ):
            column.append(value)
        if self._most is not None and len(self._arrays[0]) > 2 * self._most + _SLACK:
            self._keep(_sorted_indexes(self._arrays[_KEY])[: self._most])

    def finish(self, counts: CaseCounts) -> None:
        """Choose the cases, sort them, and count them, after all were added."""
        if self._sample:
            self._keep(_sorted_indexes(self._arrays[_KEY])[: self._sample.n])
        self._keep(_sorted_indexes(self._arrays[_ORDER])[: self._limit])
        for repeat, only in zip(self._arrays[_REPEAT], self._arrays[_ONLY], strict=True):
            counts.count += 1
            counts.skipped += not repeat
            counts.repeats += repeat
            counts.only = counts.only or bool(only)
        self._arrays = self._arrays[_ORDER + 1 : _REPEAT]

    def __iter__(self) -> Iterator[SampledRow]:
        return map(SampledRow, *self._arrays)

    def _keep(self, order: array[int]) -> None:
        self._arrays = [array(column.typecode, map(column.__getitem__, order)) for column in self._arrays]


def _random_key(name: str, seed: int, purpose: bytes) -> int:
    salt = seed.to_bytes(KEY_BYTES, "little")
    digest = blake2b(name.encode(errors="surrogatepass"), digest_size=KEY_BYTES, salt=salt, person=purpose)
    return int.from_bytes(digest.digest(), "little")


def _sorted_indexes(keys: array[int]) -> array[int]:
    """Return the indexes of the keys in ascending order; sorted in parts, since sorting takes much memory per key."""
    order = array("I")
    for part in range(1 << _PARTS_BITS):
        some = [at for at, key in enumerate(keys) if key >> (8 * KEY_BYTES - _PARTS_BITS) == part]
        order.extend(sorted(some, key=keys.__getitem__))
    return order
