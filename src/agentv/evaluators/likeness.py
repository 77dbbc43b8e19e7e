"""`levenshtein`: how few changes make one text of another."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from agentv.errors import EvaluationError, Problem
from agentv.evaluators.away import Finding, away
from agentv.evaluators.base import Example
from agentv.evaluators.looking import Looking, excerpt, plain
from agentv.evaluators.on import Seen
from agentv.matching.distance import differing_parts, distance, effort
from agentv.model.result import EvaluatorResult
from agentv.scoring.outcome import reaches

QUICK_EFFORT = 5_000
"""Microseconds that an event loop can wait."""
MAX_EFFORT = 1_500_000
"""Microseconds that a comparison may take: two texts of 60,000 characters, or a megabyte against a short one."""


class Levenshtein(Looking, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """How close a text comes to another."""

    type: Literal["levenshtein"] = "levenshtein"
    value: str
    """The text to come close to."""
    max_distance: Annotated[int, Meta(ge=0)] | None = None
    """At most so many characters inserted, deleted or replaced; without it the score is the share that agrees."""
    ignore_case: bool = False
    """Whether `a` and `A` are the same."""
    trim: bool = False
    """Whether white space around the text is left out first."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "levenshtein", "value": "The capital is Paris.", "threshold": 0.9}, {"text": text}, passes)
        for text, passes in (("The capital is Paris", True), ("The capital is not Rome.", False))
    )

    def check(self, path: str) -> list[Problem]:
        """What cannot be meant."""
        found = super().check(path)
        if self.max_distance is not None and self.threshold != 1.0:
            reason = "means nothing beside `max_distance`, under which the score is 1 or 0; give one of them"
            found.append(Problem(f"{path}.threshold", reason))
        return found

    def warnings(self, path: str) -> list[str]:
        """What is allowed and probably not meant."""
        if self.max_distance is None and self.threshold >= 1.0 and self.kind == "assertion":
            return [f"{path}: only an equal text passes; add `threshold` or `max_distance`, or use `equals`"]
        return []

    def judge(self, seen: Seen) -> Finding:
        """One constraint, or a score from 0 to 1."""
        text = plain(seen.text, ignore_case=self.ignore_case, trim=self.trim)
        wanted = plain(self.value, ignore_case=self.ignore_case)
        longer, least = max(len(text), len(wanted)), abs(len(text) - len(wanted))
        if self.max_distance is not None and least > self.max_distance:
            # Their lengths alone tell: a text of megabytes is not compared to find out how wrong it is.
            return self._told(seen, None, least, longer)
        left, right = differing_parts(text, wanted)
        work = effort(left, right)
        if work <= QUICK_EFFORT:
            return self._told(seen, distance(left, right), least, longer)
        if work > MAX_EFFORT:
            sizes = f"{len(left):,} characters against {len(right):,}"
            msg = f"{seen.where}: {sizes} are too many to compare; `contains` and `regex` read texts of any length"
            raise EvaluationError(msg)
        return away(lambda: self._told(seen, distance(left, right), least, longer))

    def _told(self, seen: Seen, found: int | None, least: int, longer: int) -> EvaluatorResult:
        changes = least if found is None else found
        share = 1 - changes / longer if longer else 1.0
        score = share if self.max_distance is None else float(found is not None and found <= self.max_distance)
        bound = f"threshold: {self.threshold:g}" if self.max_distance is None else f"maximum: {self.max_distance}"
        count = f"{'at least ' if found is None else ''}{changes} change{'' if changes == 1 else 's'}"
        told = f"{seen.where} is {count} away from {excerpt(self.value)}, likeness {share:.2f} ({bound})"
        details = {"distance": found, "likeness": None if found is None else share}
        if reaches(score, self.threshold):
            return self.result("pass", score, (told,), (), details)
        return self.result("fail", score, (), (f"{told}: {excerpt(seen.text)}",), details)
