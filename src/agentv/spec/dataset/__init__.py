"""Datasets: cases from files, types of their columns, and the first pass that validates and counts them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import ExitStack
from math import isfinite
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from agentv.errors import FormatError, Location, Problem, SpecError
from agentv.jsonio import find_duplicate_keys
from agentv.spec.dataset.columns import FIELDS, CaseTemplate, RowFilter, missing_column, row_to_case
from agentv.spec.dataset.files import DatasetFileName, find_files, open_file
from agentv.spec.dataset.sampling import Sampler
from agentv.spec.file_format import DatasetEntry
from agentv.spec.project import display_path
from agentv.spec.validation import NOT_JSON, TOO_DEEP, build, find_duplicate_ids, is_too_deep, short_repr, to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from agentv.evals import CheckedCase
    from agentv.spec.cases import CaseReader
    from agentv.spec.dataset.files import DatasetFile, DatasetRow
    from agentv.spec.validation import CaseCounts, IdRegistry

NOT_A_ROW = "expected a row as a mapping of columns"


class DatasetLine(msgspec.Struct, frozen=True):
    """One row of a dataset: a case, or its problems."""

    case: CheckedCase | None
    problems: list[Problem]
    file: int = 0
    offset: int = 0
    number: int = 0
    """Number of the row in the dataset, from 0, before any filter."""


_RowResult = tuple[int, "DatasetRow", int, "CheckedCase | list[Problem]"]
"""Index of the file, the row, its number, and its case or its problems."""


class RowPlan(msgspec.Struct, frozen=True):
    """Settings of a dataset for its rows: template, filter, limit and sampling."""

    template: CaseTemplate | None = None
    where: RowFilter | None = None
    types: ColumnTypes | None = None
    limit: int | None = None
    """Number of rows to read."""
    sampler: Sampler | None = None
    """Rows to run, after all were read; without it rows are run in the order of the files."""


class Dataset:
    """The cases of one or more files."""

    def __init__(self, files: Sequence[DatasetFile], reader: CaseReader, first: int, plan: RowPlan) -> None:
        self.files = files
        self.plan = plan
        self.read = 0
        """Number of rows in the last pass."""
        self._reader = reader
        self._first = first
        """Index of its first row among the cases of the eval."""
        self._as_written = plan.template is None and plan.where is None

    def __iter__(self) -> Iterator[CheckedCase]:
        """Yield the cases to run; all were validated before, so a file that has changed since is an error."""
        rows = self._rows() if self.plan.sampler is None else self._sampled_rows(self.plan.sampler)
        try:
            for _, _, _, case in rows:
                if isinstance(case, list):
                    raise SpecError(case)
                yield case
        except OSError as error:
            msg = f"{error.filename or 'a file of the dataset'} can no longer be read: {error.strerror}"
            raise FormatError(msg) from error

    def lines(self) -> Iterator[DatasetLine]:
        """Yield every row with its problems, for validation."""
        for at, row, number, case in self._rows():
            if isinstance(case, list):
                yield DatasetLine(None, case, at)
            else:
                yield DatasetLine(case, _duplicate_key_problems(case, row), at, row.offset, number)

    def _rows(self) -> Iterator[_RowResult]:
        number = kept = 0
        limit, make = self.plan.limit, self._make
        for at, file in enumerate(self.files):
            with file.open() as stream:
                for row in file.rows(stream):
                    case = make(file, row, number)
                    number += 1
                    if case is not None:
                        yield at, row, number - 1, case
                        kept += 1
                        if kept == limit:
                            self.read = number
                            return
        self.read = number

    def _sampled_rows(self, sampler: Sampler) -> Iterator[_RowResult]:
        """Yield the sampled rows; a file stays open until a row of another file comes."""
        opened = -1
        stream = None
        with ExitStack() as stack:
            for sampled in sampler:
                file = self.files[sampled.file]
                if sampled.file != opened:
                    stack.pop_all().close()
                    stream = stack.enter_context(file.open())
                    opened = sampled.file
                row = next(file.rows(stream, sampled.offset, sampled.line), None)
                case = self._make(file, row, sampled.number) if row else None
                if row is None or case is None:
                    msg = f"{file.name.display} has changed since it was checked"
                    raise FormatError(msg)
                yield sampled.file, row, sampled.number, case

    def _make(self, file: DatasetFile, row: DatasetRow, number: int) -> CheckedCase | list[Problem] | None:
        """Return the row as a case, or its problems, or `None` if it is filtered out."""
        data = row.data
        if row.problem:
            return self._wrong(file, row, [Problem("", row.problem, "whole")])
        if not self._as_written or isinstance(data, dict):
            return self._make_from_columns(file, row, number)
        case, problems = self._reader.read(data, self._first + number, Location(file.name.display, row.line))
        if case is not None:
            return case
        if not data.startswith(b"{") and not problems[0].message.startswith(NOT_JSON):
            problems = [Problem("", f"expected {file.expected_row}", "whole")]
        return self._wrong(file, row, problems)

    def _make_from_columns(self, file: DatasetFile, row: DatasetRow, number: int) -> CheckedCase | list[Problem] | None:
        template, where = self.plan.template, self.plan.where
        cells, problem = (row.data, None) if isinstance(row.data, dict) else _decode_row(row.data)
        if problem:
            return self._wrong(file, row, [problem])
        columns = {**cells, "_file": file.name.relative, "_line": row.line, "_index": number}
        if where is not None and not where.keeps(columns, is_table=file.is_table):
            return None
        if self.plan.types is not None and file.is_table:
            cells, problems = self.plan.types.convert(cells)
            if problems:
                return self._wrong(file, row, problems)
            columns = {**columns, **cells}
        text, problems = self._text(row.data, cells, columns, is_table=file.is_table)
        if text is None:
            return self._wrong(file, row, problems)
        location = Location(file.name.display, row.line)
        files = template.files if template is not None else None
        checked, problems = self._reader.read(text, self._first + number, location, files=files)
        return checked or self._wrong(file, row, problems)

    def _text(
        self, data: bytes | dict[str, str], cells: dict[str, Any], columns: dict[str, Any], *, is_table: bool
    ) -> tuple[bytes | None, list[Problem]]:
        """Return the case of these columns as JSON, or its problems."""
        if self.plan.template is not None:
            case, problems = self.plan.template.fill(columns, is_table=is_table)
            return (None, problems) if problems else to_json(case, "")
        return to_json(row_to_case(cells), "") if isinstance(data, dict) else (data, [])

    def _wrong(self, file: DatasetFile, row: DatasetRow, problems: list[Problem]) -> list[Problem]:
        if self.plan.template is not None:
            # The path in the template is added to the location in the data, since either may be wrong.
            problems = [_in_template(problem) for problem in problems]
        return [file.locate(problem, row) for problem in problems]


def _in_template(problem: Problem) -> Problem:
    if not problem.path:
        return problem
    message = f"{problem.sentence} (in template.{problem.path})"
    return Problem("", message, "whole")


def _decode_row(text: bytes) -> tuple[dict[str, Any], Problem | None]:
    """Parse the columns of a row, or return a problem."""
    if is_too_deep(text):
        return {}, Problem("", TOO_DEEP, "whole")
    try:
        row = msgspec.json.decode(text)
    except UnicodeDecodeError:
        return {}, Problem("", f"{NOT_JSON}: some of it is not valid UTF-8", "whole")
    except (msgspec.MsgspecError, ValueError) as error:
        return {}, Problem("", f"{NOT_JSON}: {str(error).replace('JSON is malformed: ', '')}", "whole")
    return (row, None) if isinstance(row, dict) else ({}, Problem("", NOT_A_ROW, "whole"))


def _duplicate_key_problems(case: CheckedCase, row: DatasetRow) -> list[Problem]:
    if isinstance(row.data, dict):
        return []
    # A quick check: a lost key loses its quotes too.
    whole = msgspec.json.encode(msgspec.json.decode(row.data))
    keys = find_duplicate_keys(row.data) if row.data.count(b'"') != whole.count(b'"') else ()
    return [Problem("", f"duplicate key {key!r}", "whole", case.location) for key in keys]


MAX_PROBLEMS = 100
DATASET_KEY = "dataset"
TYPES_KEY = "dataset.types"


class SearchPaths(msgspec.Struct, frozen=True):
    """Folders in which file names are looked up."""

    root: Path
    folder: Path


def _build_entry(config: Any) -> DatasetEntry | None:
    """Return the settings of `dataset`, or `None` if they are invalid, which is reported with the whole eval."""
    if isinstance(config, (str, list, tuple)):
        config = {"files": config}
    text, _ = to_json(config, DATASET_KEY)
    return build(DatasetEntry, text, DATASET_KEY)[0] if text else None


def open_dataset(
    config: Any, reader: CaseReader, first: int, search_paths: SearchPaths
) -> tuple[Dataset | None, list[Problem]]:
    """Return the dataset of these settings, its cases counted from `first`, or its problems."""
    entry = _build_entry(config)
    if entry is None:
        return None, []
    plan, problems = _make_plan(entry)
    files: dict[Path, DatasetFile] = {}
    files_path = f"{DATASET_KEY}.files" if isinstance(config, Mapping) else DATASET_KEY
    for where, name in _named_paths(entry.files, files_path):
        try:
            for path in find_files(search_paths.root, search_paths.folder, name):
                if path not in files:
                    relative = path.relative_to(search_paths.root.resolve()).as_posix()
                    file_name = DatasetFileName(path, display_path(path), relative)
                    files[path] = open_file(file_name, entry.format, cases=plan.template is None)
        except FormatError as error:
            problems.append(Problem(where, str(error)))
        except SpecError as error:
            problems += error.problems
    if plan.types is not None:
        problems += plan.types.check(TYPES_KEY, list(files.values()))
    return (None, problems) if problems else (Dataset(list(files.values()), reader, first, plan), [])


def _named_paths(files: str | list[str], path: str) -> list[tuple[str, str]]:
    """Return each name with its path in the settings."""
    return [(path, files)] if isinstance(files, str) else [(f"{path}[{at}]", name) for at, name in enumerate(files)]


def _make_plan(entry: DatasetEntry) -> tuple[RowPlan, list[Problem]]:
    plan, problems = RowPlan(limit=entry.limit), list[Problem]()
    if entry.template is not None:
        if is_too_deep(msgspec.json.encode(entry.template)):
            return plan, [Problem(f"{DATASET_KEY}.template", TOO_DEEP)]
        template = CaseTemplate(entry.template)
        plan = replace(plan, template=template)
        problems = [problem._replace(path=f"{DATASET_KEY}.template.{problem.path}") for problem in template.problems]
    if entry.types:
        plan = replace(plan, types=ColumnTypes(entry.types))
    if entry.where:
        plan = replace(plan, where=RowFilter(entry.where))
    if entry.sample or entry.shuffle is not False:
        plan = replace(plan, limit=None, sampler=Sampler(entry))
    return plan, problems


def validate_dataset(dataset: Dataset, ids: IdRegistry, counts: CaseCounts) -> list[Problem]:
    """Count the cases of a dataset, and return all their problems."""
    collector = ProblemCollector(together=dataset.plan.template is not None)
    try:
        _collect_cases(dataset, ids, counts, collector)
    except OSError as error:
        collector.add([Problem(DATASET_KEY, f"{error.filename} cannot be read: {error.strerror}")])
    if dataset.plan.sampler is not None:
        dataset.plan.sampler.finish(counts)
    problems = collector.all()
    where = dataset.plan.where
    if where is not None and dataset.read:
        problems += where.problems()
    if dataset.plan.types is not None and dataset.read:
        problems += dataset.plan.types.problems(TYPES_KEY)
    if not problems and where is not None and not where.kept:
        problems.append(Problem(f"{DATASET_KEY}.where", f"keeps none of {dataset.read:,} rows"))
    if not problems and not counts.count and not ids.named:
        problems.append(Problem(DATASET_KEY, "it has no rows: add one, or correct the path"))
    if ids.has_duplicates():
        problems += find_duplicate_ids(dataset, ids)[:MAX_PROBLEMS]
    return problems


def _collect_cases(dataset: Dataset, ids: IdRegistry, counts: CaseCounts, collector: ProblemCollector) -> None:
    sampler = dataset.plan.sampler
    for line in dataset.lines():
        if line.problems:
            collector.add(line.problems)
            if collector.full:
                break
        case = line.case
        if case is None:
            continue
        ids.hash(case.case.id)
        if sampler is None:
            counts.add(case)
        else:
            sampler.add(case, line.file, line.offset, line.number)


class ProblemCollector:
    """Problems of a dataset; with `together`, equal problems of many rows become one with their number."""

    def __init__(self, *, together: bool) -> None:
        self._together = together
        self._problems: list[Problem] = []
        self._times: dict[str, int] = {}

    @property
    def full(self) -> bool:
        """True if there are so many problems that reading stops."""
        return len(self._problems) >= MAX_PROBLEMS

    def add(self, problems: list[Problem]) -> None:
        """Add the problems of one row."""
        for problem in problems:
            self._times[problem.message] = self._times.get(problem.message, 0) + 1
            if not self._together or self._times[problem.message] == 1:
                self._problems.append(problem)

    def all(self) -> list[Problem]:
        """Return all problems to report."""
        problems = [self._counted(problem) for problem in self._problems] if self._together else self._problems
        more = Problem("", f"more than {MAX_PROBLEMS} problems; the rest was not read", "whole")
        return [*problems, more] if self.full else problems

    def _counted(self, problem: Problem) -> Problem:
        others = self._times[problem.message] - 1
        if not others:
            return problem
        rows = "one other row has" if others == 1 else f"{others:,} other rows have"
        return problem._replace(message=f"{problem.message}; {rows} the same problem")


_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_INTEGER = re.compile(r"[+-]?\d+")
_BOOLEANS = {"true": True, "false": False}
_WORDS = {
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "json": "JSON",
}
_BAD: Any = object()
MAX_DIGITS = 300


class ColumnTypes:
    """The `types` of a dataset: cells of these columns become numbers, booleans or JSON values."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self._types = types
        self._missing = set(types)
        self._columns: tuple[str, ...] = ()

    def check(self, path: str, files: list[DatasetFile]) -> list[Problem]:
        """Return the problems that do not depend on the rows."""
        problems = [
            Problem(f"{path}.{name}", f"{name!r} is a field of a case, which has a type of its own", "key")
            for name in self._types
            if name in FIELDS
        ]
        others = [file.name.display for file in files if not file.is_table]
        if others:
            message = f"is about the columns of a table; the values of {others[0]} have types already"
            problems.append(Problem(path, message, "key"))
        return problems

    def convert(self, cells: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
        """Return the cells with their types, and a problem for each one that is not of its type."""
        problems: list[Problem] = []
        converted = dict(cells)
        for name, kind in self._types.items():
            if name not in cells:
                continue
            self._missing.discard(name)
            value = _convert(cells[name], kind)
            if value is _BAD:
                expected = f"column {name!r}: expected {_WORDS[kind]}, got {short_repr(cells[name])}"
                problems.append(Problem("", expected, "whole"))
            converted[name] = value
        self._columns = tuple(cells)
        return converted, problems

    def problems(self, path: str) -> list[Problem]:
        """Return a problem for each column that no row has."""
        names = sorted(self._missing) if self._columns else []
        return [Problem(f"{path}.{name}", missing_column(repr(name), self._columns), "key") for name in names]


def _convert(cell: str, kind: str) -> Any:
    """Return the value of a cell; an empty one is null, except for text."""
    text = cell.strip()
    if kind == "string":
        return cell
    if not text:
        return None
    if kind == "boolean":
        return _BOOLEANS.get(text.lower(), _BAD)
    return _decode_json(text) if kind == "json" else _number(text, is_whole=kind == "integer")


def _number(text: str, *, is_whole: bool) -> Any:
    if _INTEGER.fullmatch(text) and len(text) <= MAX_DIGITS:
        return int(text)
    if is_whole or not _NUMBER.fullmatch(text):
        return _BAD
    number = float(text)
    return number if isfinite(number) else _BAD


def _decode_json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _BAD
