"""A dataset found, and read once before anything runs: how many cases it holds, and what is wrong with any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentv.errors import FormatError, Problem, SpecError
from agentv.spec.check import TOO_DEEP, as_json, build, is_too_deep
from agentv.spec.dataset import Dataset, Plan
from agentv.spec.entries import DatasetEntry
from agentv.spec.globs import find_files
from agentv.spec.ids import find_twins
from agentv.spec.project import display
from agentv.spec.rows import Name, open_file

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.spec.cases import CaseReader
    from agentv.spec.ids import Ids, Seen
    from agentv.spec.rows import RowFile

MAX_PROBLEMS = 100
KEY = "dataset"


class Folders(NamedTuple):
    """Where names are looked for."""

    root: Path
    folder: Path


def _entry(written: Any) -> DatasetEntry | None:
    """What is written below `dataset`; if it is nothing of the kind, that is said where the whole is read."""
    if isinstance(written, (str, list, tuple)):
        written = {"files": written}
    text, _ = as_json(written, KEY)
    return build(DatasetEntry, text, KEY)[0] if text else None


def open_dataset(written: Any, reader: CaseReader, first: int, within: Folders) -> tuple[Dataset | None, list[Problem]]:
    """The dataset that is written so, its cases counted from `first`; or what is wrong with it."""
    entry = _entry(written)
    if entry is None:
        return None, []
    plan, problems = _plan(entry)
    files: dict[Path, RowFile] = {}
    for where, name in _names(entry.files, f"{KEY}.files" if isinstance(written, Mapping) else KEY):
        try:
            for path in find_files(within.root, within.folder, name):
                if path not in files:
                    below = path.relative_to(within.root.resolve()).as_posix()
                    called = Name(path, display(path), below)
                    files[path] = open_file(called, entry.format, cases=plan.template is None)
        except FormatError as error:
            problems.append(Problem(where, str(error)))
        except SpecError as error:
            problems += error.problems
    return (None, problems) if problems else (Dataset(list(files.values()), reader, first, plan), [])


def _names(files: str | list[str], path: str) -> list[tuple[str, str]]:
    """Each name, and where it is written."""
    return [(path, files)] if isinstance(files, str) else [(f"{path}[{at}]", name) for at, name in enumerate(files)]


def _plan(entry: DatasetEntry) -> tuple[Plan, list[Problem]]:
    plan, problems = Plan(limit=entry.limit), list[Problem]()
    # Most datasets are plain files of cases, and pay for none of this.
    if entry.template is not None:
        from agentv.spec.template import Template  # noqa: PLC0415 - as above

        if is_too_deep(msgspec.json.encode(entry.template)):
            return plan, [Problem(f"{KEY}.template", TOO_DEEP)]
        template = Template(entry.template)
        plan = plan._replace(template=template)
        problems = [problem._replace(path=f"{KEY}.template.{problem.path}") for problem in template.problems]
    if entry.where:
        from agentv.spec.where import Where  # noqa: PLC0415 - as above

        plan = plan._replace(where=Where(entry.where))
    if entry.sample or entry.shuffle is not False:
        from agentv.spec.picks import Picks  # noqa: PLC0415 - as above

        plan = plan._replace(limit=None, picks=Picks(entry))
    return plan, problems


def survey(dataset: Dataset, ids: Ids, seen: Seen) -> list[Problem]:
    """Count its cases, and find everything that is wrong with them."""
    notes = _Notes(together=dataset.plan.template is not None)
    try:
        _read(dataset, ids, seen, notes)
    except OSError as error:
        notes.add([Problem(KEY, f"{error.filename} cannot be read: {error.strerror}")])
    if dataset.plan.picks is not None:
        dataset.plan.picks.settle(seen)
    found = notes.all()
    where = dataset.plan.where
    if where is not None and dataset.read:
        found += where.problems()
    if not found and where is not None and not where.kept:
        found.append(Problem(f"{KEY}.where", f"keeps none of {dataset.read:,} rows"))
    if not found and not seen.count and not ids.named:
        found.append(Problem(KEY, "holds no case"))
    if ids.has_twins():
        found += find_twins(dataset, ids)[:MAX_PROBLEMS]
    return found


def _read(dataset: Dataset, ids: Ids, seen: Seen, notes: _Notes) -> None:
    picks = dataset.plan.picks
    for line in dataset.lines():
        if line.problems:
            notes.add(line.problems)
            if notes.full:
                break
        case = line.case
        if case is None:
            continue
        ids.hash(case.case.id)
        if picks is None:
            seen.add(case)
        else:
            picks.add(case, line.file, line.offset, line.number)


class _Notes:
    """The problems of a dataset, and of those that a template makes in many rows the first one with their number."""

    def __init__(self, *, together: bool) -> None:
        self._together = together
        self._problems: list[Problem] = []
        self._times: dict[str, int] = {}

    @property
    def full(self) -> bool:
        """Whether there are more than anybody wants to read."""
        return len(self._problems) >= MAX_PROBLEMS

    def add(self, problems: list[Problem]) -> None:
        """What is wrong with one row."""
        for problem in problems:
            self._times[problem.message] = self._times.get(problem.message, 0) + 1
            if not self._together or self._times[problem.message] == 1:
                self._problems.append(problem)

    def all(self) -> list[Problem]:
        """All that is to be told."""
        told = [self._counted(problem) for problem in self._problems] if self._together else self._problems
        more = Problem("", f"more than {MAX_PROBLEMS} problems; the rest was not read", "whole")
        return [*told, more] if self.full else told

    def _counted(self, problem: Problem) -> Problem:
        others = self._times[problem.message] - 1
        if not others:
            return problem
        rows = "one other row has" if others == 1 else f"{others:,} other rows have"
        return problem._replace(message=f"{problem.message}; {rows} the same problem")
