"""Datasets: cases from files, and the first pass over them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentv.errors import FormatError, Place, Problem, SpecError
from agentv.spec.dataset.files import Name, find_files, open_file
from agentv.spec.file_format import DatasetEntry
from agentv.spec.project import display
from agentv.spec.validation import NOT_JSON, TOO_DEEP, as_json, build, find_twins, is_too_deep

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from agentv.evals import CheckedCase
    from agentv.spec.cases import CaseReader
    from agentv.spec.dataset.columns import RowFilter, Template
    from agentv.spec.dataset.files import DatasetRow, RowFile
    from agentv.spec.dataset.sampling import Sampler
    from agentv.spec.validation import CaseCounts, IdRegistry


NOT_A_ROW = "expected a row as a mapping of columns"


class DatasetLine(NamedTuple):
    """One row of a dataset: a case, or what is wrong with it."""

    case: CheckedCase | None
    problems: list[Problem]
    file: int = 0
    offset: int = 0
    number: int = 0
    """Which row of the dataset it is, from 0, whatever is left out."""


_Read = tuple[int, "DatasetRow", int, "CheckedCase | list[Problem]"]
"""A file, a row, its number, and what it was made into."""


class Plan(NamedTuple):
    """What becomes of the rows."""

    template: Template | None = None
    where: RowFilter | None = None
    limit: int | None = None
    """How many are read."""
    picks: Sampler | None = None
    """Those to run, once all were read; without it they are run as they come."""


class Dataset:
    """The cases of some files."""

    def __init__(self, files: Sequence[RowFile], reader: CaseReader, first: int, plan: Plan) -> None:
        self.files = files
        self.plan = plan
        self.read = 0
        """How many rows there were when they were read last."""
        self._reader = reader
        self._first = first
        """The place of its first row in the eval."""
        self._as_written = plan.template is None and plan.where is None

    def __iter__(self) -> Iterator[CheckedCase]:
        """The cases to run, which were all checked before anything ran; a file that has changed since is an error."""
        rows = self._rows() if self.plan.picks is None else self._picked(self.plan.picks)
        try:
            for _, _, _, case in rows:
                if isinstance(case, list):
                    raise SpecError(case)
                yield case
        except OSError as error:
            msg = f"{error.filename or 'a file of the dataset'} can no longer be read: {error.strerror}"
            raise FormatError(msg) from error

    def lines(self) -> Iterator[DatasetLine]:
        """Every row that becomes a case, or should, looked at more closely than while running."""
        for at, row, number, case in self._rows():
            if isinstance(case, list):
                yield DatasetLine(None, case, at)
            else:
                yield DatasetLine(case, _repeated(case, row), at, row.offset, number)

    def _rows(self) -> Iterator[_Read]:
        number = given = 0
        limit, make = self.plan.limit, self._make
        for at, file in enumerate(self.files):
            with file.open() as stream:
                for row in file.rows(stream):
                    case = make(file, row, number)
                    number += 1
                    if case is not None:
                        yield at, row, number - 1, case
                        given += 1
                        if given == limit:
                            self.read = number
                            return
        self.read = number

    def _picked(self, picks: Sampler) -> Iterator[_Read]:
        """The rows at these places; a file stays open until one of another file comes."""
        opened = -1
        stream = None
        with ExitStack() as stack:
            for pick in picks:
                file = self.files[pick.file]
                if pick.file != opened:
                    stack.pop_all().close()
                    stream = stack.enter_context(file.open())
                    opened = pick.file
                row = next(file.rows(stream, pick.offset, pick.line), None)
                case = self._make(file, row, pick.number) if row else None
                if row is None or case is None:
                    msg = f"{file.name.shown} has changed since it was checked"
                    raise FormatError(msg)
                yield pick.file, row, pick.number, case

    def _make(self, file: RowFile, row: DatasetRow, number: int) -> CheckedCase | list[Problem] | None:
        """The row as a case, or what is wrong with it; nothing when it is left out."""
        data = row.data
        if row.problem:
            return self._wrong(file, row, [Problem("", row.problem, "whole")])
        if not self._as_written or isinstance(data, dict):
            return self._make_from_columns(file, row, number)
        case, problems = self._reader.read(data, self._first + number, Place(file.name.shown, row.line))
        if case is not None:
            return case
        if not data.startswith(b"{") and not problems[0].message.startswith(NOT_JSON):
            problems = [Problem("", f"expected {file.wanted}", "whole")]
        return self._wrong(file, row, problems)

    def _make_from_columns(self, file: RowFile, row: DatasetRow, number: int) -> CheckedCase | list[Problem] | None:
        template, where = self.plan.template, self.plan.where
        cells, problem = (row.data, None) if isinstance(row.data, dict) else _decoded(row.data)
        if problem:
            return self._wrong(file, row, [problem])
        columns = {**cells, "_file": file.name.below, "_line": row.line, "_index": number}
        if where is not None and not where.keeps(columns, is_table=file.is_table):
            return None
        text, problems = self._text(row, columns, is_table=file.is_table)
        if text is None:
            return self._wrong(file, row, problems)
        place = Place(file.name.shown, row.line)
        files = template.files if template is not None else None
        checked, problems = self._reader.read(text, self._first + number, place, files=files)
        return checked or self._wrong(file, row, problems)

    def _text(self, row: DatasetRow, columns: dict[str, Any], *, is_table: bool) -> tuple[bytes | None, list[Problem]]:
        """The case of these columns as JSON."""
        if self.plan.template is not None:
            case, problems = self.plan.template.fill(columns, is_table=is_table)
            return (None, problems) if problems else as_json(case, "")
        return as_json(_case_of(row.data), "") if isinstance(row.data, dict) else (row.data, [])

    def _wrong(self, file: RowFile, row: DatasetRow, problems: list[Problem]) -> list[Problem]:
        if self.plan.template is not None:
            # Where in the template is said beside where in the data, since either may be at fault.
            problems = [_in_template(problem) for problem in problems]
        return [file.locate(problem, row) for problem in problems]


def _case_of(cells: dict[str, Any]) -> dict[str, Any]:
    from agentv.spec.dataset.columns import case_of  # noqa: PLC0415 - only a table needs it, and then it is loaded by now

    return case_of(cells)


def _in_template(problem: Problem) -> Problem:
    if not problem.path:
        return problem
    message = f"{problem.sentence} (in template.{problem.path})"
    return Problem("", message, "whole")


def _decoded(text: bytes) -> tuple[dict[str, Any], Problem | None]:
    """The columns of a row."""
    if is_too_deep(text):
        return {}, Problem("", TOO_DEEP, "whole")
    try:
        row = msgspec.json.decode(text)
    except UnicodeDecodeError:
        return {}, Problem("", f"{NOT_JSON}: some of it is not valid UTF-8", "whole")
    except (msgspec.MsgspecError, ValueError) as error:
        return {}, Problem("", f"{NOT_JSON}: {str(error).replace('JSON is malformed: ', '')}", "whole")
    return (row, None) if isinstance(row, dict) else ({}, Problem("", NOT_A_ROW, "whole"))


def _repeated(case: CheckedCase, row: DatasetRow) -> list[Problem]:
    keys = () if isinstance(row.data, dict) else repeated_keys(row.data)
    return [Problem("", f"duplicate key {key!r}", "whole", case.place) for key in keys]


def repeated_keys(text: bytes) -> list[str]:
    """Keys that an object of this JSON has twice; readers would silently take the last."""
    again = msgspec.json.encode(msgspec.json.decode(text))
    # A key that is gone takes its quotes with it; a text written otherwise is read again, which costs more.
    if text.count(b'"') == again.count(b'"'):
        return []
    from json import loads  # noqa: PLC0415 - nearly no line needs it

    found: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        names = [name for name, _ in pairs]
        found.extend(name for name in dict.fromkeys(names) if names.count(name) > 1)

    loads(text, object_pairs_hook=note)
    return found


MAX_PROBLEMS = 100
KEY = "dataset"


class SearchPaths(NamedTuple):
    """Where names are looked for."""

    root: Path
    folder: Path


def _entry(written: Any) -> DatasetEntry | None:
    """What is written below `dataset`; if it is nothing of the kind, that is said where the whole is read."""
    if isinstance(written, (str, list, tuple)):
        written = {"files": written}
    text, _ = as_json(written, KEY)
    return build(DatasetEntry, text, KEY)[0] if text else None


def open_dataset(
    written: Any, reader: CaseReader, first: int, within: SearchPaths
) -> tuple[Dataset | None, list[Problem]]:
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
        from agentv.spec.dataset.columns import Template  # noqa: PLC0415 - as above

        if is_too_deep(msgspec.json.encode(entry.template)):
            return plan, [Problem(f"{KEY}.template", TOO_DEEP)]
        template = Template(entry.template)
        plan = plan._replace(template=template)
        problems = [problem._replace(path=f"{KEY}.template.{problem.path}") for problem in template.problems]
    if entry.where:
        from agentv.spec.dataset.columns import RowFilter  # noqa: PLC0415 - as above

        plan = plan._replace(where=RowFilter(entry.where))
    if entry.sample or entry.shuffle is not False:
        from agentv.spec.dataset.sampling import Sampler  # noqa: PLC0415 - as above

        plan = plan._replace(limit=None, picks=Sampler(entry))
    return plan, problems


def validate_dataset(dataset: Dataset, ids: IdRegistry, seen: CaseCounts) -> list[Problem]:
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


def _read(dataset: Dataset, ids: IdRegistry, seen: CaseCounts, notes: _Notes) -> None:
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
