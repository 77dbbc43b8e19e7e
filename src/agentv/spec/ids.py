"""What is counted on the way through the cases: how many there are, and which ids came before."""

from __future__ import annotations

from array import array
from itertools import pairwise
from typing import TYPE_CHECKING

from agentv.errors import Place, Problem
from agentv.spec.check import shown

MAX_DOUBTS = 20

if TYPE_CHECKING:
    from agentv.checked import CheckedCase
    from agentv.spec.dataset import Dataset


class Seen:
    """What was met on the way through the cases."""

    def __init__(self) -> None:
        self.count = self.skipped = self.repeats = 0
        self.only = False
        self.doubts: list[Problem] = []
        """What is allowed in the cases' own checks and probably not meant; of very many, the first."""

    def add(self, case: CheckedCase, listed_as: str | None = None) -> None:
        """One more case, of a file's list of this name or of a dataset."""
        self.count += 1
        if case.warnings and len(self.doubts) < MAX_DOUBTS:
            below, place = (f"{listed_as}[{case.index}].", None) if listed_as else ("", case.place)
            own = [warning for warning in case.warnings if warning.startswith("evaluators[")]
            self.doubts += [doubt(warning, below, place) for warning in own]
        self.only = self.only or case.only
        if case.skip:
            self.skipped += 1
        else:
            self.repeats += case.repeat


def doubt(warning: str, below: str = "", place: Place | None = None) -> Problem:
    """A check's warning, which begins with its path, as something to be told with its place."""
    path, _, message = warning.partition(": ")
    return Problem(f"{below}{path}", message, place=place)


class Ids:
    """Which ids there were: by name for the cases of a file, by hash for a dataset of any length."""

    def __init__(self) -> None:
        self.named: dict[str, Place | None] = {}
        self._hashes = array("q")

    def add(self, name: str, place: Place | None) -> Place | str | None:
        """The place of the first case of this name, if there was one."""
        if name in self.named:
            return self.named[name] or "above"
        self.named[name] = place
        return None

    def hash(self, name: str) -> None:
        """Remember eight bytes of it."""
        self._hashes.append(hash(name))

    def has_twins(self) -> bool:
        """Whether two may be the same."""
        if not self._hashes:
            return False
        known = sorted([*map(hash, self.named), *self._hashes])
        return any(first == second for first, second in pairwise(known))


def find_twins(dataset: Dataset, ids: Ids) -> list[Problem]:
    """The ids that come twice; only a dataset that has some is held by name."""
    found = []
    for line in dataset.lines():
        if line.case is None:
            continue
        first = ids.add(line.case.case.id, line.case.place)
        if first is not None:
            found.append(Problem("id", twice(line.case.case.id, first), place=line.case.place))
    return found


def twice(name: object, first: Place | str) -> str:
    """That an id is not unique."""
    where = f"at {first.file}:{first.line}" if isinstance(first, Place) else first
    return f"{shown(str(name))} is the id of another case, {where}; ids are unique in an eval"
