"""Report of a conversion: everything that was left out or that means something else here, with its location."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from agentv.api.convert.source import SourceDocument
    from agentv.errors import Location

Kind = Literal["left_out", "note"]


class ConversionFinding(Struct, frozen=True):
    """One thing that was not translated, or was translated with a difference."""

    kind: Kind
    """`left_out`: it is not in the output; `note`: it is, and the reason says what to know."""
    file: str
    line: int
    column: int
    path: str
    """Path in the file, such as `tests[2].assert[0]`."""
    what: str
    """The name of the assertion, key or provider."""
    reason: str

    @property
    def where(self) -> str:
        """Position as `file:line:column`."""
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"

    @property
    def remark(self) -> str:
        """The comment that stands in the output."""
        word = "left out" if self.kind == "left_out" else "note"
        return f"{word}: {self.what} ({self.where.rpartition('/')[2]}): {self.reason}"


class AssertionCounts(Struct, frozen=True):
    """Number of assertions of the source, and of those that were translated."""

    total: int = 0
    translated: int = 0
    """Assertions that are in the output, in every case that they belong to."""
    deterministic: int = 0
    """Assertions that no model decides."""
    deterministic_translated: int = 0


class ConversionReport:
    """Findings and counts of the conversion of one source."""

    def __init__(self) -> None:
        self.findings: list[ConversionFinding] = []
        self._assertions: dict[tuple[str, str], tuple[bool, bool]] = {}
        self._seen: dict[tuple[str, str, str, str], ConversionFinding] = {}

    def add(self, kind: Kind, location: Location, path: str, what: str, reason: str) -> ConversionFinding:
        """Add a finding; the same one about the same place is listed once."""
        key = (str(location), path, what, reason)
        finding = self._seen.get(key)
        if finding is None:
            finding = ConversionFinding(kind, location.file, location.line, location.column, path, what, reason)
            self._seen[key] = finding
            self.findings.append(finding)
        return finding

    @property
    def counts(self) -> AssertionCounts:
        """Number of assertions; one that many cases share counts once."""
        found = list(self._assertions.values())
        return AssertionCounts(
            len(found),
            sum(translated for translated, _ in found),
            sum(deterministic for _, deterministic in found),
            sum(translated and deterministic for translated, deterministic in found),
        )

    def count(self, place: Place, *, is_translated: bool, is_deterministic: bool) -> None:
        """Count an assertion of the source; it counts as translated if it was in every case."""
        key = (str(place.location), place.path)
        before, _ = self._assertions.get(key, (True, is_deterministic))
        self._assertions[key] = (before and is_translated, is_deterministic)


class Place:
    """A place in a source file, with the report that findings about it go to."""

    __slots__ = ("document", "path", "report")

    def __init__(self, document: SourceDocument, report: ConversionReport, path: str = "") -> None:
        self.document = document
        self.report = report
        self.path = path

    def at(self, *keys: str | int) -> Place:
        """Return the place of a key or an index below this one."""
        path = self.path
        for key in keys:
            path = f"{path}[{key}]" if isinstance(key, int) else f"{path}.{key}" if path else key
        return type(self)(self.document, self.report, path)

    def sibling(self, key: str) -> Place:
        """Return the place of another key beside this one."""
        return type(self)(self.document, self.report, self.path.rpartition(".")[0]).at(key)

    @property
    def location(self) -> Location:
        """Location in the file."""
        return self.document.location(self.path, "key")

    def leave_out(self, what: str, reason: str) -> ConversionFinding:
        """Report that something has no counterpart."""
        return self.report.add("left_out", self.location, self.path, what, reason)

    def note(self, what: str, reason: str) -> ConversionFinding:
        """Report a difference that users should know of."""
        return self.report.add("note", self.location, self.path, what, reason)
