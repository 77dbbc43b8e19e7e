"""promptfoo's tests: inline ones, rows of tables, files of them, scenarios, and variables with several values."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.api.convert.base import UntranslatableError, as_list, as_mapping
from agentv.api.convert.files import (
    PREFIX,
    SCRIPTS,
    find_file,
    find_files,
    is_file,
    read_json_lines,
    read_rows,
    read_structured,
    read_text,
)
from agentv.api.convert.promptfoo.assertions import DETERMINISTIC, JUDGED, WITHOUT
from agentv.api.convert.promptfoo.options import report_test_keys
from agentv.api.convert.promptfoo.text import split_values
from agentv.api.convert.source import Place, SourceDocument, TableDocument
from agentv.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.api.convert.base import Conversion

_ASSERTION = re.compile(r"(not-)?([a-z][a-z0-9:-]*?)(?:\((\d+(?:\.\d+)?)\))?(?::([\s\S]*))?")
_PREFIXES = {
    "javascript:": "javascript",
    "fn:": "javascript",
    "eval:": "javascript",
    "grade:": "llm-rubric",
    "llm-rubric:": "llm-rubric",
    "python:": "python",
}
_WITH_THRESHOLD = {
    *("answer-relevance", "classifier", "context-faithfulness", "context-recall", "context-relevance", "cost"),
    *("latency", "levenshtein", "perplexity-score", "perplexity", "rouge-n", "similar", "starts-with"),
}
_LISTS = {"contains-all", "contains-any", "icontains-all", "icontains-any"}
_THRESHOLD = re.compile(r"__config:__expected(\d*):threshold")
_TEXTS = {"__description": "description", "__providerOutput": "providerOutput", "__metric": "metric"}


def assertion_from_text(text: str) -> dict[str, Any]:
    """Return the assertion that a cell of a table stands for; a text of no other form has to be equal."""
    for prefix, kind in _PREFIXES.items():
        if text.startswith(prefix):
            value = text.removeprefix(prefix)
            return {"type": kind, "value": value if kind == "llm-rubric" else value.strip()}
    if is_file(text):
        return {"type": "python" if ".py" in text else "javascript", "value": text}
    match = _known_assertion(text)
    if match is None:
        return {"type": "equals", "value": text}
    negation, name, threshold, value = match.groups()
    entry: dict[str, Any] = {"type": f"{negation or ''}{name}"}
    if name in _LISTS:
        entry["value"] = split_values(value) if value else value
    elif value is not None:
        entry["value"] = value if name in {"contains-json", "is-json"} else value.strip()
    if name in _WITH_THRESHOLD:
        entry["threshold"] = float(threshold) if threshold else 0.8 if name == "similar" else 0.75
    return entry


def _known_assertion(text: str) -> re.Match[str] | None:
    """Match a text that begins with the name of an assertion; names with a colon in them come first."""
    for name in sorted((*DETERMINISTIC, *JUDGED, *WITHOUT), key=len, reverse=True):
        if text.removeprefix("not-").startswith(name):
            pattern = rf"(not-)?({re.escape(name)})(?:\((\d+(?:\.\d+)?)\))?(?::([\s\S]*))?"
            match = re.fullmatch(pattern, text)
            if match is not None:
                return match
    return None


def test_from_row(row: Mapping[str, str], place: Place) -> dict[str, Any]:
    """Return the test of a row."""
    test: dict[str, Any] = {"vars": {name: value for name, value in row.items() if not name.startswith("__")}}
    asserts: list[dict[str, Any]] = []
    thresholds: dict[int, float] = {}
    for name, value in row.items():
        if not name.startswith("__") or not value.strip():
            continue
        if name.startswith("__expected"):
            asserts.append(assertion_from_text(value.strip()))
        elif (setting := _THRESHOLD.fullmatch(name)) is not None:
            thresholds[int(setting[1] or 1) - 1] = _number(value, name, place) or 0.0
        else:
            _add_setting(test, name, value, place)
    for at, number in thresholds.items():
        if at < len(asserts):
            asserts[at]["threshold"] = number
    metric = test.pop("metric", None)
    test["assert"] = [{**entry, "metric": metric} for entry in asserts] if metric else asserts
    return test


def _add_setting(test: dict[str, Any], name: str, value: str, place: Place) -> None:
    if name in {"__prefix", "__suffix"}:
        test.setdefault("options", {})[name.removeprefix("__")] = value
    elif name in _TEXTS:
        test[_TEXTS[name]] = value
    elif name == "__threshold":
        test["threshold"] = _number(value, name, place)
    elif name.startswith("__metadata:"):
        key = name.removeprefix("__metadata:")
        items = [part.strip().replace("\\,", ",") for part in re.split(r"(?<!\\),", value)]
        test.setdefault("metadata", {})[key.removesuffix("[]")] = items if key.endswith("[]") else value
    else:
        place.leave_out(name, "this column has no counterpart")


def _number(text: str, name: str, place: Place) -> float | None:
    try:
        return float(text)
    except ValueError:
        place.leave_out(name, f"{text!r} is no number")
        return None


_MEDIA = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf", ".mp3", ".wav", ".mp4", ".mov", ".bmp", ".svg")


class TestSource(Struct, frozen=True):
    """One test as it is written, with its place; `vars` are not expanded yet."""

    __test__ = False

    data: Mapping[str, Any]
    place: Place
    row: int = 0
    """Line in a table; the place is then the file."""


class TestTable(Struct, frozen=True):
    """A table of variables that stays a file: no column but variables."""

    __test__ = False

    path: Path
    columns: tuple[str, ...]
    place: Place
    line_count: int


def read_tests(entries: Any, place: Place, conversion: Conversion) -> list[TestSource | TestTable]:
    """Return the tests of `tests`; what cannot be read is reported."""
    if entries is None:
        return []
    if isinstance(entries, Mapping):
        items: list[tuple[Any, Place]] = [(entries, place)]
    elif isinstance(entries, list):
        items = [(entry, place.at(at)) for at, entry in enumerate(entries)]
    else:
        items = [(entries, place)]
    found: list[TestSource | TestTable] = []
    for entry, where in items:
        if isinstance(entry, Mapping) and not (isinstance(entry.get("path"), str) and "assert" not in entry):
            found.append(TestSource(entry, where))
            continue
        name = entry.get("path") if isinstance(entry, Mapping) else entry
        try:
            found += _read_files(str(name), where, conversion)
        except UntranslatableError as error:
            where.leave_out(f"tests: {name}", str(error))
    return found


def _read_files(name: str, place: Place, conversion: Conversion) -> Iterator[TestSource | TestTable]:
    plain = name.removeprefix(PREFIX)
    if "://" in plain:
        msg = "it is not a file on this machine: download it first"
        raise UntranslatableError(msg)
    base, _, _ = plain.partition(":")
    if Path(base).suffix.lower() in SCRIPTS:
        msg = f"the tests are made by the program {base}: write them to a file first"
        raise UntranslatableError(msg)
    if Path(base.partition("#")[0]).suffix.lower() in {".xlsx", ".xls"}:
        msg = "spreadsheets are not read: save it as CSV first"
        raise UntranslatableError(msg)
    for path in find_files(plain, place.document.folder):
        yield from _read_file(path, place, conversion)


def _read_file(path: Path, place: Place, conversion: Conversion) -> Iterator[TestSource | TestTable]:
    suffix = path.suffix.lower()
    if suffix in {".csv", ".tsv"}:
        rows = read_rows(path, "\t" if suffix == ".tsv" else ",")
        where = Place(TableDocument(path), place.report)
        columns = tuple(rows[0][1]) if rows else ()
        if rows and not any(name.startswith("__") for name in columns) and all(columns):
            yield TestTable(path, columns, where, len(rows))
            return
        for line, row in rows:
            yield TestSource(
                test_from_row(row, where.at(f"line {line}")), Place(TableDocument(path, line), place.report), line
            )
        return
    if suffix in {".jsonl", ".ndjson"}:
        for line, data in read_json_lines(path):
            if isinstance(data, Mapping):
                yield TestSource(data, Place(TableDocument(path, line), place.report), line)
            else:
                Place(TableDocument(path, line), place.report).leave_out("test", "it is no object")
        return
    try:
        document = SourceDocument(path, path.name)
    except FormatError as error:
        raise UntranslatableError(str(error)) from error
    data = document.data
    inner = Place(document, place.report)
    if isinstance(data, Mapping) and isinstance(data.get("tests"), list):
        data, inner = data["tests"], inner.at("tests")
    yield from read_tests(data, inner, conversion)


def expand_vars(test: TestSource, defaults: Mapping[str, Any], *, expands: bool) -> list[dict[str, Any]]:
    """Return the variables of a test for each combination of their values; raise `UntranslatableError`."""
    own = test.data.get("vars")
    if isinstance(own, (str, list)):
        own = _vars_from_files(own, test.place.document.folder)
    values = {**defaults, **(own if isinstance(own, Mapping) else {})}
    choices: list[list[tuple[str, Any]]] = []
    for name, value in values.items():
        options = _options(value, test.place.document.folder) if expands else [value]
        choices.append([(name, _loaded(option, test.place.document.folder)) for option in options])
    return [dict(combination) for combination in product(*choices)]


def _options(value: Any, folder: Path) -> list[Any]:
    if is_file(value) and any(letter in value for letter in "*?["):
        return [f"{PREFIX}{path.relative_to(folder)}" for path in find_files(value, folder)]
    if isinstance(value, list) and value and isinstance(value[0], str):
        return value
    return [value]


def _vars_from_files(names: str | list[Any], folder: Path) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for name in [names] if isinstance(names, str) else names:
        for path in find_files(str(name), folder):
            data = read_structured(path)
            if not isinstance(data, Mapping):
                msg = f"{path.name} holds no variables"
                raise UntranslatableError(msg)
            merged |= data
    return merged


def _loaded(value: Any, folder: Path) -> Any:
    """Return a variable, or the text of the file that it names."""
    if not is_file(value):
        return value.removesuffix("\n") if isinstance(value, str) else value
    suffix = Path(value.removeprefix(PREFIX).partition(":")[0]).suffix.lower()
    if suffix in SCRIPTS:
        msg = f"a variable is made by the program {value.removeprefix(PREFIX)}"
        raise UntranslatableError(msg)
    if suffix in _MEDIA:
        msg = f"a variable is the file {value.removeprefix(PREFIX)}, which is no text"
        raise UntranslatableError(msg)
    path = find_file(value, folder)
    if suffix in {".yaml", ".yml"}:
        return json.dumps(read_structured(path), ensure_ascii=False, separators=(",", ":"))
    return read_text(path).strip()


def scenario_tests(entries: Any, place: Place, conversion: Conversion) -> list[TestSource]:
    """Return the tests of `scenarios`: each of their tests with each of their configurations."""
    found: list[TestSource] = []
    for at, scenario in enumerate(entries if isinstance(entries, list) else [entries]):
        where = place.at(at) if isinstance(entries, list) else place
        if is_file(scenario):
            try:
                document = SourceDocument(find_file(scenario, where.document.folder), scenario.removeprefix(PREFIX))
            except (UntranslatableError, FormatError) as error:
                where.leave_out("scenario", str(error))
                continue
            found += scenario_tests(document.data, Place(document, where.report), conversion)
            continue
        if not isinstance(scenario, Mapping):
            where.leave_out("scenario", "it is no mapping")
            continue
        found += _scenario(scenario, where, conversion)
    return found


def _scenario(scenario: Mapping[str, Any], place: Place, conversion: Conversion) -> Iterator[TestSource]:
    for key in scenario:
        if key not in {"config", "tests", "description"}:
            place.at(str(key)).leave_out(f"scenario.{key}", "this key of a scenario has no counterpart")
    configs = read_tests(scenario.get("config") or [{}], place.at("config"), conversion)
    tests = read_tests(scenario.get("tests") or [{}], place.at("tests"), conversion)
    for config in configs:
        for test in tests:
            if isinstance(config, TestTable) or isinstance(test, TestTable):
                place.leave_out("scenario", "tables of scenarios are not read: write their rows out")
                continue
            report_test_keys(config.data, config.place)
            data = {**config.data, **test.data}
            for key in ("vars", "options", "metadata"):
                merged = {**as_mapping(config.data.get(key)), **as_mapping(test.data.get(key))}
                if merged:
                    data[key] = merged
            if isinstance(scenario.get("description"), str):
                data["metadata"] = {"scenario": scenario["description"], **as_mapping(data.get("metadata"))}
            data["assert"] = [*as_list(config.data.get("assert")), *as_list(test.data.get("assert"))]
            yield replace(test, data=data)


def expand_table(table: TestTable) -> list[TestSource]:
    """Return the rows of a table as tests."""
    delimiter = "\t" if table.path.suffix.lower() == ".tsv" else ","
    return [
        TestSource({"vars": row}, Place(TableDocument(table.path, line), table.place.report), line)
        for line, row in read_rows(table.path, delimiter)
    ]
