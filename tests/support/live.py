"""Samples that were recorded just now, held against the committed ones."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.support.samples import Agreement, Sample, agreement, read_samples
from tests.support.shapes import differences


class Finding(NamedTuple):
    """The outcome of one sample."""

    name: str
    lost: tuple[str, ...] = ()
    """Facts that are not read as expected, and were before, or of a sample that is new."""
    unread: tuple[str, ...] = ()
    """Facts that are not read as expected, and were not before."""
    changes: tuple[str, ...] = ()
    """The differences of its shape from the committed sample."""
    is_new: bool = False
    is_gone: bool = False


class Report(NamedTuple):
    """The outcomes of the samples of one system."""

    system: str
    version: str = ""
    findings: tuple[Finding, ...] = ()
    problem: str = ""
    """The reason why it did not run to its end."""

    @property
    def lost(self) -> list[Finding]:
        """Samples that are no longer read as expected."""
        return [each for each in self.findings if each.lost]

    @property
    def row(self) -> list[str]:
        """A row of the table: system, version, samples, read, changed, note."""
        made = [each for each in self.findings if not each.is_gone]
        read = len(made) - len([each for each in made if each.lost or each.unread])
        changed = len([each for each in self.findings if each.changes or each.is_new or each.is_gone])
        note = self.problem or ("" if self.findings else "its page alone runs it")
        return [self.system, self.version or "-", str(len(made)), str(read), str(changed), note]


HEAD = ["system", "version", "samples", "read", "changed", ""]


def wrong_facts(sample: Sample) -> tuple[str, ...]:
    """Name the facts of a sample that are not read as they are expected."""
    found = agreement(sample)
    return tuple(name for name in Agreement._fields if getattr(found, name) is False)


def compare(recorded: Iterable[Sample], committed: Iterable[Sample]) -> tuple[Finding, ...]:
    """Hold recorded samples against the committed ones of the same names."""
    known = {sample.name: sample for sample in committed}
    findings = []
    for sample in recorded:
        before = known.pop(sample.name, None)
        wrong = wrong_facts(sample)
        already = wrong_facts(before) if before else ()
        findings.append(
            Finding(
                sample.name,
                lost=tuple(name for name in wrong if name not in already),
                unread=tuple(name for name in wrong if name in already),
                changes=tuple(differences(before.reply, sample.reply)) if before else (),
                is_new=before is None,
            )
        )
    return (*findings, *(Finding(name, is_gone=True) for name in known))


def look(system: str, folder: Path, committed: Iterable[Sample], problem: str = "") -> Report:
    """Report on the samples that a system's script wrote into a folder."""
    recorded = read_samples(folder)
    systems = {sample.system for sample in recorded}
    before = [sample for sample in committed if sample.system in systems and sample.is_recorded]
    findings = compare(recorded, before)
    if problem:  # a script that broke off says nothing about what it did not come to
        findings = tuple(each for each in findings if not each.is_gone)
    return Report(system, ", ".join(sorted({sample.version for sample in recorded})), findings, problem)


def describe(report: Report, limit: int = 8) -> list[str]:
    """Say what is no longer read and how shapes changed, the same change of several samples once."""
    lines = [f"{each.name}: no longer read: {', '.join(each.lost)}" for each in report.lost]
    lines += [
        f"{each.name}: not read before either: {', '.join(each.unread)}" for each in report.findings if each.unread
    ]
    lines += [f"{each.name}: is new" for each in report.findings if each.is_new]
    lines += [f"{each.name}: was not recorded" for each in report.findings if each.is_gone]
    places: dict[str, list[str]] = {}
    for each in report.findings:
        for change in each.changes:
            places.setdefault(change, []).append(each.name)
    for change, names in list(places.items())[:limit]:
        lines.append(f"{change} ({names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''})")
    return lines + ([f"and {len(places) - limit} more changes of shape"] if len(places) > limit else [])


def table(reports: Iterable[Report]) -> str:
    """Write all reports as a table of text."""
    rows = [HEAD, *(report.row for report in reports)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def exit_code(reports: Iterable[Report]) -> int:
    """Return 1 when something is no longer read, else 3 when something could not be checked, else 0."""
    seen = list(reports)
    return 1 if any(report.lost for report in seen) else 3 if any(report.problem for report in seen) else 0
