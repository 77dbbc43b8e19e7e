"""Rubrics: items that are met or not, or that are scored on a scale."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, NamedTuple

from msgspec import Meta, Struct

from agentv.errors import Problem

_RANGE = re.compile(r"(\d{1,6})(?:\s*-\s*(\d{1,6}))?")
Words = Annotated[str, Meta(min_length=1, max_length=20_000)]


class RubricItem(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An item of a rubric."""

    criterion: Words
    """The criterion as a sentence that is either true or not; with `scores`, what is to be rated."""
    id: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    """The name in results; by default its place, from 1."""
    weight: Annotated[float, Meta(gt=0, le=1e9)] = 1.0
    """The share in the score."""
    required: bool = False
    """Must be met, whatever the score."""
    scores: Annotated[dict[str, Words], Meta(min_length=2)] | None = None
    """Ranges of whole numbers and what each means, as `0-3: rude`; without them it is met or not."""
    min: Annotated[int, Meta(ge=0)] | None = None
    """With `scores`: the score from which it counts as met."""


class Scale(NamedTuple):
    """The ranges of an item, lowest first."""

    ranges: tuple[tuple[int, int, str], ...]

    @property
    def low(self) -> int:
        """The lowest score."""
        return self.ranges[0][0]

    @property
    def high(self) -> int:
        """The highest score."""
        return self.ranges[-1][1]

    def holds(self, score: int) -> bool:
        """Return whether the score is in one of the ranges."""
        return any(low <= score <= high for low, high, _ in self.ranges)

    def share(self, score: float) -> float:
        """Return the score as a share from 0 to 1."""
        return (score - self.low) / (self.high - self.low)


class RubricPoint(NamedTuple):
    """A rubric item with its id and parsed scale."""

    id: str
    criterion: str
    weight: float = 1.0
    required: bool = False
    scale: Scale | None = None
    least: int | None = None
    evidence: tuple[str, ...] | None = None
    """The texts that a quotation for it may come from; `None` for all texts of the agent."""
    words: tuple[str, str] | None = None
    """The texts of results for met and not met, if the criterion would be too long."""

    def summarize(self, value: float, score: int | None) -> str:
        """Return the decision in a few words."""
        met = self.is_met(value)
        if self.words is not None:
            return self.words[0 if met else 1]
        if self.scale is not None and score is not None:
            return f"{self.id} scores {score} of {self.scale.high}: {_truncate(self.criterion)}"
        return f"{self.id} is {'met' if met else 'not met'}: {_truncate(self.criterion)}"

    @property
    def line(self) -> str:
        """The line about it in the prompt."""
        if self.scale is None:
            return f'- id "{self.id}" (met or not met): {self.criterion}'
        ranges = [f"    {_shown(low, high)}: {means}" for low, high, means in self.scale.ranges]
        head = f'- id "{self.id}" (a whole score from {self.scale.low} to {self.scale.high}): {self.criterion}'
        return "\n".join([head, *ranges])

    def is_met(self, value: float) -> bool:
        """Return whether this share, from 0 to 1, counts as met."""
        if self.scale is None or self.least is None:
            return value > 0.5  # noqa: PLR2004 - half of a panel is no majority
        return value >= self.scale.share(self.least) - 1e-9


def points_of(rubric: Sequence[str | RubricItem], criterion: str | None) -> tuple[RubricPoint, ...]:
    """Return the points to decide, in order."""
    items = [RubricItem(criterion=item) if isinstance(item, str) else item for item in rubric]
    if criterion is not None:
        items = [*items, RubricItem(criterion=criterion, id="criterion")]
    return tuple(
        RubricPoint(
            item.id or str(number),
            item.criterion,
            item.weight,
            item.required,
            _scale(item.scores) if item.scores else None,
            item.min,
        )
        for number, item in enumerate(items, 1)
    )


def check_rubric(rubric: Sequence[str | RubricItem], path: str) -> Iterator[Problem]:
    """Return the problems of the items."""
    seen: dict[str, int] = {}
    for at, item in enumerate(rubric):
        place = f"{path}.rubric[{at}]"
        if isinstance(item, str):
            name = str(at + 1)
            if not item.strip():
                yield Problem(place, "an empty criterion decides nothing")
        else:
            name = item.id or str(at + 1)
            yield from _check_item(item, place)
        if name in seen:
            yield Problem(f"{place}.id", f"{name!r} is already the id of item {seen[name]}; ids are unique")
        seen.setdefault(name, at + 1)


def _check_item(item: RubricItem, place: str) -> Iterator[Problem]:
    if not item.criterion.strip():
        yield Problem(f"{place}.criterion", "an empty criterion decides nothing")
    if item.scores is None:
        if item.min is not None:
            yield Problem(f"{place}.min", "belongs to `scores`: without them an item is met or not")
        return
    try:
        scale = _scale(item.scores)
    except ValueError as error:
        yield Problem(f"{place}.scores", str(error))
        return
    if item.min is not None and not scale.holds(item.min):
        yield Problem(f"{place}.min", f"{item.min} is in none of the ranges of `scores`")
    if item.required and item.min is None:
        yield Problem(f"{place}.required", "needs `min`: the score from which the item counts as met")


def _scale(scores: Mapping[str, str]) -> Scale:
    ranges = []
    for written, means in scores.items():
        match = _RANGE.fullmatch(written.strip())
        if match is None:
            msg = f"{written!r} is neither a whole number nor a range such as '0-3'"
            raise ValueError(msg)
        low = int(match[1])
        high = int(match[2]) if match[2] is not None else low
        if high < low:
            msg = f"{written!r} runs backwards; write '{high}-{low}'"
            raise ValueError(msg)
        ranges.append((low, high, means))
    ranges.sort()
    for (low, high, _), (other, top, _) in pairwise(ranges):
        if other <= high:
            msg = f"{_shown(low, high)} and {_shown(other, top)} overlap"
            raise ValueError(msg)
    return Scale(tuple(ranges))


def _truncate(text: str, most: int = 200) -> str:
    text = " ".join(text.split())
    text = text if len(text) <= most else f"{text[: most - 1]}…"
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


def _shown(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}-{high}"
