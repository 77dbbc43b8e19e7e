"""Objects that all converters share: the conversion of one source, its output, and what it may raise."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from agentv.api.convert.source import ConversionReport, Place
from agentv.api.convert.writer import Commented, Remark, find_remarks, plain_data, write_eval
from agentv.errors import SpecError
from agentv.spec.evaluators import check_evaluators

if TYPE_CHECKING:
    from agentv.api.convert.source import ConversionFinding, SourceDocument

_NOT_SLUG = re.compile(r"[^a-z0-9]+")
MAX_SLUG = 60
MAX_CASES = 1_000
"""Number of cases up to which they are in the eval file; more of them are a file beside it."""
NOTHING_CHECKED = "checked nothing: add evaluators"


class UntranslatableError(ValueError):
    """A part of the source has no counterpart here; the message is the reason."""


class CaseOrigin(NamedTuple):
    """The test of the source that a case was made of, to find its results."""

    case_id: str
    test_id: str
    """Id or description in the source; empty if it has none."""
    prompt: str
    """The rendered prompt, if the source renders one."""
    vars: Mapping[str, Any]
    source_skip: str = ""
    """The reason why the case is skipped, if it is."""


class ConvertedEval(Struct):
    """An eval file to write."""

    name: str
    """Name of the file without `.eval.yaml`, relative to the output folder."""
    data: dict[str, Any]
    header: list[str] = field(default_factory=list)
    origins: list[CaseOrigin] = field(default_factory=list)

    @property
    def file(self) -> str:
        """Name of the file."""
        return f"{self.name}.eval.yaml"

    def text(self) -> str:
        """Return the content of the file."""
        return write_eval(self.data, self.header)


class Conversion:
    """The conversion of one source file or folder: what it reads, and what it will write."""

    def __init__(self, document: SourceDocument, tool: str, name: str, folder: str = "") -> None:
        self.document = document
        self.tool = tool
        self.name = name
        self.folder = folder
        """Folder of its files, relative to the output folder."""
        self.report = ConversionReport()
        self.evals: list[ConvertedEval] = []
        self.files: dict[str, bytes] = {}
        self.user_turns: int | None = None
        """Largest number of turns of a simulated user, if the source has a setting for it."""
        self.case_count = 0
        """Number of test cases of the source that are in the output."""

    def rename(self, name: str) -> None:
        """Give the evals another name."""
        for eval_ in self.evals:
            eval_.name = name + eval_.name.removeprefix(self.name)
        self.name = name

    def place(self, path: str = "", document: SourceDocument | None = None) -> Place:
        """Return a place in a document, by default in the main one."""
        return Place(document or self.document, self.report, path)

    def add_eval(
        self, suffix: str, data: dict[str, Any], origins: list[CaseOrigin], *, header: list[str] | None = None
    ) -> None:
        """Add an eval file; several of one source have different suffixes."""
        if not origins:
            self.place().leave_out("tests", "there are none: nothing is written")
            return
        name = f"{self.name}-{suffix}" if suffix else self.name
        origin = f"Converted from {Path(self.document.file).name} ({self.tool}) by `agentv convert-eval`."
        comments = [text for text in self.document.header() if not text.startswith("yaml-language-server")]
        self.evals.append(ConvertedEval(name, data, [origin, *comments, *(header or [])], origins))
        self.case_count += len(origins)

    def finish(self) -> None:
        """Add everything that was left out, and is not yet a comment at its place, to the top of the first eval."""
        if not self.evals:
            return
        for eval_ in self.evals:
            self._move_cases(eval_)
        placed = {str(remark) for eval_ in self.evals for remark in find_remarks(eval_.data)}
        missing: dict[tuple[str, str], list[ConversionFinding]] = {}
        for item in self.report.findings:
            if item.kind == "left_out" and item.remark not in placed:
                missing.setdefault((item.what, item.reason), []).append(item)
        self.evals[0].header += [_remark_of(found) for found in missing.values()]

    def _move_cases(self, eval_: ConvertedEval) -> None:
        """Write many cases to a file of their own, one a line: an eval file of them is slow to read, or too large."""
        written = eval_.data.get("cases", ())
        cases = written.value if isinstance(written, Commented) else written
        has_comments = any(isinstance(case, Commented) for case in cases)
        if len(cases) <= MAX_CASES or has_comments or "dataset" in eval_.data:
            return
        try:
            lines = [json.dumps(plain_data(case), ensure_ascii=False, allow_nan=False) for case in cases]
        except ValueError:  # a number that JSON does not have
            return
        name = f"{eval_.name}.cases.jsonl"
        self.add_file(name, "\n".join(lines) + "\n")
        value = Commented(name, written.above, written.behind) if isinstance(written, Commented) else name
        eval_.data = {key: each for key, each in eval_.data.items() if key != "cases"} | {"dataset": value}

    def helper(self, name: str) -> str:
        """Add a helper file to the output and return its name for an evaluator."""
        self.files[name] = files("agentv.api.convert.helpers").joinpath(name).read_bytes()
        return f"./{name}"

    def copy(self, path: Path) -> str:
        """Add a copy of a file to the output and return its name there; raise `UntranslatableError`."""
        folder = self.document.folder.resolve()
        resolved = path.resolve()
        name = resolved.relative_to(folder).as_posix() if resolved.is_relative_to(folder) else resolved.name
        try:
            content = resolved.read_bytes()
        except OSError as error:
            msg = f"the file {path.name!r} cannot be read: {error.strerror}"
            raise UntranslatableError(msg) from error
        if self.files.setdefault(name, content) != content:
            name = f"copy-{len(self.files)}-{Path(name).name}"
            self.files[name] = content
        return name

    def add_file(self, name: str, content: str) -> str:
        """Add a file to the output and return its name."""
        self.files[name] = content.encode()
        return name

    @staticmethod
    def heading(place: Place, key: str, count: int) -> list[Remark]:
        """Return the comments of a key whose value is a list, without those of its items."""
        above, behind = place.document.comments(place.at(key).path, tuple(f"[{at}]" for at in range(count)))
        return [Remark(text) for text in (*above, behind) if text]

    def with_comments(self, place: Place, value: Any) -> Any:
        """Return a value with the comments of its place in the source."""
        above, behind = place.document.comments(place.path)
        return Commented(value, above, behind) if above or behind else value


def _remark_of(findings: list[ConversionFinding]) -> str:
    """Return one comment for findings that differ in their places alone."""
    first = findings[0]
    others = {item.where for item in findings} - {first.where}
    if not others:
        return first.remark
    places = f"{len(others)} other place{'s' if len(others) > 1 else ''}"
    return first.remark.replace(f"): {first.reason}", f" and {places}): {first.reason}")


class Ids:
    """Ids of cases: unique, and made of what people call a case."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str) -> str:
        """Return the wanted id, with a number if it is taken."""
        name, number = wanted, 1
        while name in self._taken:
            number += 1
            name = f"{wanted}-{number}"
        self._taken.add(name)
        return name


def slug(text: str) -> str:
    """Return a text as an id: lower case, words joined by hyphens."""
    short = _NOT_SLUG.sub("-", text.lower()).strip("-")
    if len(short) > MAX_SLUG:
        short = short[:MAX_SLUG].rpartition("-")[0] or short[:MAX_SLUG]
    return short


class Watched(Mapping[str, Any]):
    """A mapping of the source that knows which of its keys were read: the others were dropped."""

    __slots__ = ("_data", "_unread")

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._data = data
        self._unread = set(data)

    def __getitem__(self, key: str) -> Any:
        self._unread.discard(key)
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def report(self, place: Place, what: str, ignored: Iterable[str] = ()) -> None:
        """Name the keys that nobody read and that say something."""
        for key, value in self._data.items():
            if key in self._unread and key not in ignored and value not in (None, "", [], {}, False):
                place.at(str(key)).leave_out(f"{what}.{key}", "this key has no counterpart")


def missing_target(name: str, message: str) -> dict[str, Any]:
    """Return a target that answers every request with an error: the place of one that could not be converted."""
    return {"name": name, "provider": "mock", "reply": {"error": {"kind": "agent", "message": message}}}


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a mapping as it is, and an empty one for anything else."""
    return value if isinstance(value, Mapping) else {}


def as_list(value: Any) -> list[Any]:
    """Return a list as it is, and an empty one for anything else."""
    return value if isinstance(value, list) else []


def is_number(value: Any) -> bool:
    """Return whether a value is a number, which `true` is not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_share(value: Any) -> bool:
    """Return whether a value is a number from 0 to 1."""
    return is_number(value) and 0 <= value <= 1


def check_evaluator(evaluator: Mapping[str, Any]) -> None:
    """Raise `UntranslatableError` for an evaluator that would not be valid, with odd values of the source in it."""
    try:
        check_evaluators([plain_data(evaluator)])
    except SpecError as error:
        msg = f"its values do not fit: {error.problems[0].message}"
        raise UntranslatableError(msg) from error


def counts(evaluator: Any) -> bool:
    """Return whether an evaluator can fail a case: comments, metrics and those of weight 0 cannot."""
    data = evaluator.value if isinstance(evaluator, Commented) else evaluator
    if not isinstance(data, Mapping):
        return False
    inner = data.get("evaluators")
    return data.get("weight") != 0 and data.get("kind") != "metric" and (not inner or any(map(counts, inner)))


def finish_case(entry: dict[Any, Any], evaluators: list[Any], reason: str, *, has_defaults: bool) -> str:
    """Add the evaluators of a case; skip it if nothing is checked, and return the reason for that."""
    remarks = [item for item in evaluators if isinstance(item, Remark)]
    if len(remarks) < len(evaluators):
        entry["evaluators"] = evaluators
    else:
        entry.update(dict.fromkeys(remarks))
    if any(map(counts, evaluators)) or has_defaults or entry.get("skip"):
        skip = entry.get("skip")
        return str(skip) if skip else ""
    entry["skip"] = reason
    return reason


Converter = Callable[[Conversion], None]
