"""An alignment of calls or of turns, told in one vocabulary."""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from msgspec import UNSET, Struct
from msgspec.json import decode

from agentv.evaluators.trajectory import words
from agentv.evaluators.trajectory.pairing import Alignment, align_calls
from agentv.evaluators.trajectory.plan import Expectation, Judge, Made
from agentv.matching.diff import (
    MAX_QUOTED,
    NOTHING,
    Difference,
    plain_differences,
    plain_key_differences,
    quote,
    unlike_keys,
)
from agentv.matching.equality import encoded

DETAILS = ("precision", "recall", "f1", "argument_score", "missing", "extra", "out_of_order", "repeated", "alignment")


def nothing_told() -> dict[str, Any]:
    """The details of a configuration, or of a reply, that tells no sequence."""
    return dict.fromkeys(DETAILS)


class Fractions(Struct, frozen=True):
    """How much of what was expected was done, of what was done was expected, and both in one."""

    recall: float
    precision: float
    f1: float


def fractions_of(matched: int, wanted: int, made: int) -> Fractions:
    """`recall`, `precision` and `f1`: both sides empty is 1, one side empty is 0."""
    if wanted and made:
        return Fractions(matched / wanted, matched / made, matched / ((wanted + made) / 2))
    return Fractions(0.0, 0.0, 0.0) if wanted or made else Fractions(1.0, 1.0, 1.0)


def fraction_of(kind: str, matched: int, wanted: int, made: int) -> float:
    """One of them by its name."""
    value: float = getattr(fractions_of(matched, wanted, made), kind)
    return value


class Timed(NamedTuple):
    """One time limit and what became of it."""

    tool: str
    limit: float
    took: float | None
    was_called: bool


class Laid(Struct, frozen=True, kw_only=True):
    """Expected and actual units side by side; numbers are those of the unfiltered list."""

    unit: str
    labels: list[str]
    long_labels: list[str]
    """The labels with their inputs, for two of one name."""
    made: int
    matches: list[tuple[int, int]]
    out_of_order: list[tuple[int, int]]
    mismatches: list[tuple[int, int, list[str], list[Difference]]]
    """(expected, number, sentences, differences)"""
    strangers: list[tuple[int, int, str]]
    """(expected, number, name): leftovers of different tools that stand at the same place."""
    missing: list[int]
    hints: dict[int, list[str]]
    """For a missing turn, how the turn that it probably should have been differs."""
    extra: list[tuple[int, str]]
    timed: list[Timed]
    argument_score: float | None

    @property
    def wanted(self) -> int:
        """How many units were expected."""
        return len(self.labels)

    def fraction(self, kind: str) -> float:
        """`recall`, `precision` or `f1` of the matches."""
        return fraction_of(kind, len(self.matches), self.wanted, self.made)

    def details(self) -> dict[str, Any]:
        """Everything that a page or a program wants to know about the alignment."""
        rows = match_rows(self.matches)
        rows += [row(e, n, "out_of_order", []) for e, n in self.out_of_order]
        rows += [
            row(e, n, "mismatch", [as_json(d) for d in found[: words.MAX_DIFFERENCES]])
            for e, n, _, found in self.mismatches
        ]
        if len(rows) > len(self.matches):
            rows.sort(key=itemgetter("expected"))
        fractions = fractions_of(len(self.matches), self.wanted, self.made)
        return {
            "precision": fractions.precision,
            "recall": fractions.recall,
            "f1": fractions.f1,
            "argument_score": self.argument_score,
            "missing": self.missing,
            "extra": [number for number, _ in self.extra],
            "out_of_order": sorted([e for e, _ in self.out_of_order]),
            "alignment": rows,
        }

    def order_sentences(self) -> list[str]:
        """One sentence per out-of-order unit, against an aligned one that it should have been before or after."""
        found: list[str] = []
        aligned = [e for e, _ in self.matches] if self.out_of_order else []
        for e, number in self.out_of_order:
            after = bisect(aligned, e)
            if after < len(aligned) and self.matches[after][1] < number:
                other, other_number = self.matches[after]
                found.append(self._order(e, other, other_number, number))
            else:
                other, other_number = self.matches[after - 1]
                found.append(self._order(other, e, number, other_number))
        return found

    def _order(self, first: int, second: int, second_number: int, first_number: int) -> str:
        names = self.labels if self.labels[first] != self.labels[second] else self.long_labels
        return words.order(names[first], names[second], self.unit, second_number, first_number)

    def missing_with_hints(self, e: int, *, ordered: bool) -> list[str]:
        """Why an expectation that no unit stands for does not hold."""
        after = self.labels[e - 1] if e else None
        return [words.missing(self.unit, self.labels[e], after, ordered=ordered), *self.hints.get(e, ())]

    def missing_sentences(self, *, ordered: bool) -> list[str]:
        """Everything that was expected and is not there, or not as it should be."""
        found = self.order_sentences()
        found += [sentence for _, _, sentences, _ in self.mismatches for sentence in sentences]
        for e in self.missing:
            found += self.missing_with_hints(e, ordered=ordered)
        return found

    def extra_sentences(self) -> list[str]:
        """Everything that is there and was not expected."""
        return [f"unexpected {self.unit} {number}: {name}" for number, name in self.extra]


def match_rows(pairs: Iterable[tuple[int, int]]) -> list[dict[str, Any]]:
    """The rows of an alignment for expectations and calls that match."""
    return [{"expected": e, "actual": number, "verdict": "match", "differences": []} for e, number in pairs]


def row(expected: int, actual: int, verdict: str, differences: list[dict[str, Any]]) -> dict[str, Any]:
    """One row of an alignment."""
    return {"expected": expected, "actual": actual, "verdict": verdict, "differences": differences}


def bisect(values: list[int], value: int) -> int:
    """Where `value` belongs among the sorted values."""
    from bisect import bisect_left  # noqa: PLC0415 - only a failing order needs it

    return bisect_left(values, value)


def as_json(difference: Difference) -> dict[str, Any]:
    """A difference as plain data; an absent side has no key."""
    found: dict[str, Any] = {"path": difference.path}
    for side, value in (("expected", difference.expected), ("actual", difference.actual)):
        if value is not NOTHING:
            found[side] = _plain_json(value)
    return found


def _plain_json(value: Any) -> Any:
    """A copy that any JSON writer takes; what is too long or not quite JSON is quoted."""
    if value is None or (isinstance(value, str) and value.isascii() and len(value) < MAX_QUOTED):
        return value
    text = encoded(value)
    return quote(value) if text is None or len(text) > MAX_QUOTED else decode(text)


def lay_calls(judge: Judge, made: Made, *, ordered: bool) -> Laid:
    """The calls along the expectations."""
    expectations = judge.expectations
    found = align_calls(judge, made, ordered=ordered)
    numbers = made.numbers
    return Laid(
        unit="call",
        labels=[expectation.tool for expectation in expectations],
        long_labels=[words.label(expectation) for expectation in expectations] if found.out_of_order else [],
        made=len(made),
        matches=[(e, numbers[a]) for e, a in found.matches],
        out_of_order=[(e, numbers[a]) for e, a in found.out_of_order],
        mismatches=[
            (p.expected, numbers[p.actual], [words.mismatch(made, p.actual, p.differences)], p.differences)
            for p in found.mismatches
        ],
        strangers=[(e, numbers[a], made.name(a)) for e, a in found.strangers],
        missing=found.missing,
        hints={},
        extra=[(numbers[a], made.name(a)) for a in found.extra],
        timed=_timed(expectations, made, found),
        argument_score=mean(agreements(expectations, made, found)),
    )


def deviation(wanted: Any, given: Any) -> tuple[list[Difference], float | None]:
    """How arguments differ, and the share of the expected ones that agree; `None` when there are none."""
    if isinstance(wanted, dict) and isinstance(given, dict):
        unlike = unlike_keys(wanted, given)
        share = (len(wanted) - len(unlike)) / len(wanted) if wanted else None
        return plain_key_differences(wanted, given, unlike, "input"), share
    share = None if wanted == {} else 0.0
    return plain_differences(wanted, NOTHING if given is UNSET else given, "input"), share


def _timed(expectations: Sequence[Expectation], made: Made, found: Alignment) -> list[Timed]:
    limits = [(e, item) for e, item in enumerate(expectations) if item.limit is not None]
    if not limits:
        return []
    calls = dict(found.matches)
    return [
        Timed(item.tool, item.limit or 0.0, made.calls[calls[e]].duration_ms if e in calls else None, e in calls)
        for e, item in limits
    ]


def agreements(expectations: Sequence[Expectation], made: Made, found: Alignment) -> list[float]:
    """For each pair of one tool that expects arguments, the share of them that agree."""
    calls = made.calls
    whole = (expectations[e].expects_arguments(calls[a].tool) for e, a in [*found.matches, *found.out_of_order])
    if not found.mismatches:
        # They all agree: one is as good as a thousand.
        return [1.0] if any(whole) else []
    parts = [expectations[p.expected].agreement(calls[p.actual], p.differences) for p in found.mismatches]
    return [1.0] * sum(whole) + [share for share in parts if share is not None]


def mean(values: list[float]) -> float | None:
    """The mean; `None` of nothing."""
    return sum(values) / len(values) if values else None
