"""Report of an alignment: its details, and the sentences about missing, extra and out-of-order calls."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from msgspec import UNSET, Struct
from msgspec.json import decode

from agentv.evaluators.trajectory import wording
from agentv.evaluators.trajectory.alignment import Alignment, align_calls
from agentv.evaluators.trajectory.expectations import CallMatcher, CountedCalls, Expectation
from agentv.matching.diff import MAX_QUOTED, Difference, differing_keys, plain_differences, plain_key_differences, quote
from agentv.matching.equality import sorted_json
from agentv.matching.json_pointer import NOTHING

DETAILS = ("precision", "recall", "f1", "argument_score", "missing", "extra", "out_of_order", "repeated", "alignment")


def empty_details() -> dict[str, Any]:
    """Return the details of a result without an alignment."""
    return dict.fromkeys(DETAILS)


def fractions_of(matched: int, wanted: int, actual_count: int) -> dict[str, float]:
    """Return `precision`, `recall` and `f1`: 1 if both sides are empty, 0 if one is."""
    if wanted and actual_count:
        mean_count = (wanted + actual_count) / 2
        return {"precision": matched / actual_count, "recall": matched / wanted, "f1": matched / mean_count}
    return dict.fromkeys(("precision", "recall", "f1"), 0.0 if wanted or actual_count else 1.0)


class TimeLimit(Struct, frozen=True):
    """A time limit and the duration of the call it applies to."""

    tool: str
    limit: float
    took: float | None
    was_called: bool


class AlignmentReport(Struct, frozen=True, kw_only=True):
    """Expected and actual units side by side; numbers are those of the unfiltered list."""

    unit: str
    labels: list[str]
    long_labels: list[str]
    """The labels with their inputs, for two of one name."""
    actual_count: int
    matches: list[tuple[int, int]]
    out_of_order: list[tuple[int, int]]
    mismatches: list[tuple[int, int, list[str], list[Difference]]]
    """(expected, number, sentences, differences)"""
    unrelated: list[tuple[int, int, str]]
    """(expected, number, name): leftovers of different tools at the same place."""
    missing: list[int]
    hints: dict[int, list[str]]
    """The differences of the turn that was probably meant for a missing one."""
    extra: list[tuple[int, str]]
    time_limits: list[TimeLimit]
    argument_score: float | None

    @property
    def wanted(self) -> int:
        """The number of expected units."""
        return len(self.labels)

    def fraction(self, kind: str) -> float:
        """Return `recall`, `precision` or `f1` of the matches."""
        return fractions_of(len(self.matches), self.wanted, self.actual_count)[kind]

    def details(self) -> dict[str, Any]:
        """Return the alignment as `details` of a result."""
        rows = match_rows(self.matches)
        rows += [row(e, n, "out_of_order", []) for e, n in self.out_of_order]
        rows += [
            row(e, n, "mismatch", [as_json(d) for d in differences[: wording.MAX_DIFFERENCES]])
            for e, n, _, differences in self.mismatches
        ]
        if len(rows) > len(self.matches):
            rows.sort(key=itemgetter("expected"))
        return {
            **fractions_of(len(self.matches), self.wanted, self.actual_count),
            "argument_score": self.argument_score,
            "missing": self.missing,
            "extra": [number for number, _ in self.extra],
            "out_of_order": sorted([e for e, _ in self.out_of_order]),
            "alignment": rows,
        }

    def order_sentences(self) -> list[str]:
        """Return a sentence per out-of-order unit, relative to an aligned one that it should precede or follow."""
        sentences: list[str] = []
        aligned = [e for e, _ in self.matches] if self.out_of_order else []
        for e, number in self.out_of_order:
            after = bisect_left(aligned, e)
            if after < len(aligned) and self.matches[after][1] < number:
                other, other_number = self.matches[after]
                sentences.append(self._order(e, other, other_number, number))
            else:
                other, other_number = self.matches[after - 1]
                sentences.append(self._order(other, e, number, other_number))
        return sentences

    def _order(self, first: int, second: int, second_number: int, first_number: int) -> str:
        names = self.labels if self.labels[first] != self.labels[second] else self.long_labels
        return wording.order(names[first], names[second], self.unit, second_number, first_number)

    def missing_with_hints(self, e: int, *, ordered: bool) -> list[str]:
        """Return the reasons why an expectation without a unit does not hold."""
        after = self.labels[e - 1] if e else None
        return [wording.missing(self.unit, self.labels[e], after, ordered=ordered), *self.hints.get(e, ())]

    def missing_sentences(self, *, ordered: bool) -> list[str]:
        """Return a sentence for everything expected that is missing, out of order or different."""
        missing = self.order_sentences()
        missing += [sentence for _, _, sentences, _ in self.mismatches for sentence in sentences]
        for e in self.missing:
            missing += self.missing_with_hints(e, ordered=ordered)
        return missing

    def extra_sentences(self) -> list[str]:
        """Return a sentence for each unit that was not expected."""
        return [f"unexpected {self.unit} {number}: {name}" for number, name in self.extra]


def match_rows(pairs: Iterable[tuple[int, int]]) -> list[dict[str, Any]]:
    """Return the rows of `details.alignment` for matching pairs."""
    return [{"expected": e, "actual": number, "verdict": "match", "differences": []} for e, number in pairs]


def row(expected: int, actual: int, verdict: str, differences: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one row of `details.alignment`."""
    return {"expected": expected, "actual": actual, "verdict": verdict, "differences": differences}


def as_json(difference: Difference) -> dict[str, Any]:
    """Return a difference as plain data; an absent side has no key."""
    data: dict[str, Any] = {"path": difference.path}
    for side, value in (("expected", difference.expected), ("actual", difference.actual)):
        if value is not NOTHING:
            data[side] = _plain_json(value)
    return data


def _plain_json(value: Any) -> Any:
    """Return a JSON copy of the value; a long value, or one that is not quite JSON, is quoted."""
    if value is None or (isinstance(value, str) and value.isascii() and len(value) < MAX_QUOTED):
        return value
    text = sorted_json(value)
    return quote(value) if text is None or len(text) > MAX_QUOTED else decode(text)


def report_alignment(
    matcher: CallMatcher, counted: CountedCalls, *, ordered: bool, rows: list[int] | None = None
) -> AlignmentReport:
    """Align the calls with the expectations, of which the rows may be given, and report the result."""
    expectations = matcher.expectations
    alignment = align_calls(matcher, counted, ordered=ordered, rows=rows)
    numbers = counted.numbers
    return AlignmentReport(
        unit="call",
        labels=[expectation.tool for expectation in expectations],
        long_labels=[wording.label(expectation) for expectation in expectations] if alignment.out_of_order else [],
        actual_count=len(counted),
        matches=[(e, numbers[a]) for e, a in alignment.matches],
        out_of_order=[(e, numbers[a]) for e, a in alignment.out_of_order],
        mismatches=[
            (p.expected, numbers[p.actual], [wording.mismatch(counted, p.actual, p.differences)], p.differences)
            for p in alignment.mismatches
        ],
        unrelated=[(e, numbers[a], counted.name(a)) for e, a in alignment.unrelated],
        missing=alignment.missing,
        hints={},
        extra=[(numbers[a], counted.name(a)) for a in alignment.extra],
        time_limits=_time_limits(expectations, counted, alignment),
        argument_score=mean(argument_scores(expectations, counted, alignment)),
    )


def argument_difference(wanted: Any, actual: Any) -> tuple[list[Difference], float | None]:
    """Return the differences of arguments, and the share of expected arguments that agree, `None` if there are none."""
    if isinstance(wanted, dict) and isinstance(actual, dict):
        unlike = differing_keys(wanted, actual)
        share = (len(wanted) - len(unlike)) / len(wanted) if wanted else None
        return plain_key_differences(wanted, actual, unlike, "input"), share
    share = None if wanted == {} else 0.0
    return plain_differences(wanted, NOTHING if actual is UNSET else actual, "input"), share


def _time_limits(expectations: Sequence[Expectation], counted: CountedCalls, alignment: Alignment) -> list[TimeLimit]:
    limits = [(e, item) for e, item in enumerate(expectations) if item.limit is not None]
    if not limits:
        return []
    calls = dict(alignment.matches)
    return [
        TimeLimit(item.tool, item.limit or 0.0, counted.calls[calls[e]].duration_ms if e in calls else None, e in calls)
        for e, item in limits
    ]


def argument_scores(expectations: Sequence[Expectation], counted: CountedCalls, alignment: Alignment) -> list[float]:
    """Return the share of agreeing arguments for each pair of one tool that expects any."""
    calls = counted.calls
    pairs = [*alignment.matches, *alignment.out_of_order]
    expecting = (expectations[e].expects_arguments(calls[a].tool) for e, a in pairs)
    if not alignment.mismatches:
        # All agree, so that the mean is the same for one as for all.
        return [1.0] if any(expecting) else []
    parts = [expectations[p.expected].agreement(calls[p.actual], p.differences) for p in alignment.mismatches]
    return [1.0] * sum(expecting) + [share for share in parts if share is not None]


def mean(values: list[float]) -> float | None:
    """Return the mean; `None` for an empty list."""
    return sum(values) / len(values) if values else None
