"""Is the table of what is read what the samples show?"""

import os
from collections.abc import Iterable
from pathlib import Path

from tests.support.samples import Agreement, Sample, agreement, samples

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "what-is-read.md"
HEAD = "| system | made by | samples | calls | results | status | usage | answer |"


def share(facts: Iterable[bool | None]) -> str:
    """Write how many of the samples that have something to compare are read as expected."""
    known = [fact for fact in facts if fact is not None]
    if not known:
        return "none"
    return "all" if all(known) else f"{sum(known)} of {len(known)}"


def row(system: str, group: list[tuple[Sample, Agreement]]) -> str:
    made_by = ", ".join(sorted({sample.made_by for sample, _ in group}))
    columns = [share([getattr(found, name) for _, found in group]) for name in Agreement._fields]
    return f"| {system} | {made_by} | {len(group)} | {' | '.join(columns)} |"


def table() -> str:
    groups: dict[str, list[tuple[Sample, Agreement]]] = {}
    for sample in samples():
        groups.setdefault(sample.system, []).append((sample, agreement(sample)))
    rows = [row(system, groups[system]) for system in sorted(groups)]
    return "\n".join([HEAD, "|---|---|---|---|---|---|---|---|", *rows])


def test_the_table_is_what_the_samples_show() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.partition(HEAD)[0], text.rpartition("|\n")[2]
    found = table()
    if os.environ.get("AGENTV_REWRITE_DOCS"):
        PAGE.write_text(f"{before}{found}\n{after}", encoding="utf-8")
        return
    assert text == f"{before}{found}\n{after}"
