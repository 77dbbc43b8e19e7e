"""Checks of a text: contains, starts_with, ends_with, word_count, regex, levenshtein."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from agentv.errors import EvaluationError, Problem
from agentv.evaluators.base import ConstraintTally, Example, Finding, once, run_in_thread
from agentv.evaluators.selectors import Selected, SelectorEvaluator, Text, Texts, around, ending, excerpt, listed, plain
from agentv.matching.diff import MAX_QUOTED
from agentv.matching.matchers import Pattern, Slow, bad_pattern
from agentv.matching.text import differing_parts, distance, effort
from agentv.model.results import EvaluatorResult
from agentv.scoring.scorer import reaches

Count = Annotated[int, Meta(ge=0)]


class Contains(SelectorEvaluator, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Whether a text holds the given words."""

    type: Literal["contains"] = "contains"
    value: Text | None = None
    """The one text that must be there; short for `all` with one entry."""
    all: Texts | None = None
    """Texts that must all be there; the score is the share that is."""
    any: Texts | None = None
    """Texts of which at least one must be there."""
    none: Texts | None = None
    """Texts of which none may be there."""
    ignore_case: bool = False
    """Whether `Refund` and `REFUND` are the same."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "contains", "all": ["refund", "3 days"], "ignore_case": True}, {"text": text}, passes)
        for text, passes in (("Your Refund arrives in 3 days.", True), ("Your refund is on its way.", False))
    )

    def check(self, path: str) -> list[Problem]:
        """What cannot be meant."""
        found = super().check(path)
        if self.value is None and self.all is None and self.any is None and self.none is None:
            found.append(Problem(path, "checks nothing: give `value`, `all`, `any` or `none`", "whole"))
        if self.value is not None and self.all is not None:
            found.append(Problem(f"{path}.value", "`value` is short for `all` with one entry; give one of them"))
        return found

    def judge(self, seen: Selected) -> EvaluatorResult:
        """Every text of `all` and `none` is a constraint, and `any` is one."""
        where, original = seen.where, seen.text
        text = plain(original, ignore_case=self.ignore_case)
        tally = ConstraintTally()
        for wanted in self.all or ([self.value] if self.value is not None else ()):
            if self._find(wanted, text) >= 0:
                tally.holds(f"{where} contains {excerpt(wanted)}")
            else:
                tally.fails(f"{where} does not contain {excerpt(wanted)}: {excerpt(original)}")
        if self.any:
            held = next((wanted for wanted in self.any if self._find(wanted, text) >= 0), None)
            if held is not None:
                tally.holds(f"{where} contains {excerpt(held)} (any of {listed(self.any)})")
            else:
                tally.fails(f"{where} contains none of {listed(self.any)}: {excerpt(original)}")
        for unwanted in self.none or ():
            at = self._find(unwanted, text)
            if at < 0:
                tally.holds(f"{where} does not contain {excerpt(unwanted)} (none allowed)")
            else:
                tally.fails(f"{where} contains {excerpt(unwanted)} (none allowed): {around(original, at)}")
        return self.told(tally)

    def _find(self, wanted: str, text: str) -> int:
        return text.find(plain(wanted, ignore_case=self.ignore_case))


class Edge(SelectorEvaluator, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Whether a text begins or ends as it should."""

    value: Text | Texts
    """How it must begin or end; of a list, one is enough."""
    ignore_case: bool = False
    """Whether `Dear` and `DEAR` are the same."""
    trim: bool = False
    """Whether white space around the text is left out first."""

    at_start: ClassVar[bool] = True

    def judge(self, seen: Selected) -> EvaluatorResult:
        """One constraint, whichever of the texts holds it."""
        wanted = [self.value] if isinstance(self.value, str) else self.value
        text = plain(seen.text, ignore_case=self.ignore_case, trim=self.trim)
        test = text.startswith if self.at_start else text.endswith
        held = next((each for each in wanted if test(plain(each, ignore_case=self.ignore_case))), None)
        verb, edge = ("start", excerpt) if self.at_start else ("end", ending)
        tally = ConstraintTally()
        if held is not None:
            tally.holds(f"{seen.where} {verb}s with {excerpt(held)}")
        else:
            missed = f"does not {verb} with" if len(wanted) == 1 else f"{verb}s with none of"
            tally.fails(f"{seen.where} {missed} {listed(wanted)}: {edge(seen.text)}")
        return self.told(tally)


class StartsWith(Edge, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Whether a text begins as it should."""

    type: Literal["starts_with"] = "starts_with"

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "starts_with", "value": ["Hello", "Good morning"]}, {"text": text}, passes)
        for text, passes in (("Good morning, Ada.", True), ("Hey Ada.", False))
    )


class EndsWith(Edge, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Whether a text ends as it should."""

    type: Literal["ends_with"] = "ends_with"

    at_start: ClassVar[bool] = False
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "ends_with", "value": "?", "trim": True}, {"text": text}, passes)
        for text, passes in (("Which order do you mean?\n", True), ("Done.", False))
    )


class WordCount(SelectorEvaluator, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Whether a text is neither too short nor too long."""

    type: Literal["word_count"] = "word_count"
    min: Count | None = None
    """At least so many words."""
    max: Count | None = None
    """At most so many words."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "word_count", "min": 2, "max": 5}, {"text": text}, passes)
        for text, passes in (("Your order has shipped.", True), ("Well, let me think about that.", False))
    )

    def check(self, path: str) -> list[Problem]:
        """What cannot be meant."""
        found = super().check(path)
        if self.min is None and self.max is None:
            found.append(Problem(path, "checks nothing: give `min` or `max`", "whole"))
        if self.min is not None and self.max is not None and self.min > self.max:
            found.append(Problem(f"{path}.min", f"{self.min} is above the `max` of {self.max}"))
        return found

    def warnings(self, path: str) -> list[str]:
        """What can never fail."""
        return [f"{path}.min: a minimum of 0: this can never fail"] if self.min == 0 and self.max is None else []

    def judge(self, seen: Selected) -> EvaluatorResult:
        """One constraint: the number of runs of characters between white space."""
        words = len(seen.text.split())
        bounds = {"minimum": self.min, "maximum": self.max}
        told = ", ".join(f"{name}: {bound}" for name, bound in bounds.items() if bound is not None)
        tally = ConstraintTally()
        tally.count(
            good=(self.min is None or words >= self.min) and (self.max is None or words <= self.max),
            sentence=f"{seen.where} has {words} word{'' if words == 1 else 's'} ({told})",
        )
        return self.told(tally, {"words": words})


Span = tuple[int, int] | None


class Regex(SelectorEvaluator, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Whether a pattern is found in a text."""

    type: Literal["regex"] = "regex"
    pattern: Text
    """What to look for, in Python's syntax."""
    ignore_case: bool = False
    """Whether `a` and `A` are the same."""
    full: bool = False
    """Whether it must fit the whole text rather than a part."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "regex", "pattern": r"order #\d{4}\b"}, {"text": text}, passes)
        for text, passes in (("I found order #1042.", True), ("I found your order.", False))
    )

    def check(self, path: str) -> list[Problem]:
        """What cannot be meant."""
        found = super().check(path)
        if (reason := bad_pattern(self.pattern)) is not None:
            found.append(Problem(f"{path}.pattern", reason))
        return found

    @once
    def compiled(self) -> Pattern:
        """The pattern, ready to search."""
        return Pattern(self.pattern, ignore_case=self.ignore_case, full=self.full)

    def judge(self, seen: Selected) -> Finding:
        """One constraint; what does not end at once goes on beside the other cases, up to its limit."""
        text, compiled = seen.text, self.compiled
        try:
            span = compiled.find_quickly(text)
        except Slow:
            return run_in_thread(lambda: self._told(seen, text, compiled.find(text)))
        return self._told(seen, text, span)

    def _told(self, seen: Selected, text: str, span: Span) -> EvaluatorResult:
        tally = ConstraintTally()
        if span is None:
            as_a_whole = " as a whole" if self.full else ""
            tally.fails(f"{seen.where} does not match {self._shown}{as_a_whole}: {excerpt(text)}")
            return self.told(tally)
        start, end = span
        tally.holds(f"{seen.where} matches {self._shown} at character {start}: {excerpt(text[start:end])}")
        return self.told(tally, {"start": start, "end": end})

    @property
    def _shown(self) -> str:
        """The pattern between slashes, for quotation marks would double its backslashes."""
        if len(self.pattern) < MAX_QUOTED and self.pattern.isprintable():
            return f"/{self.pattern}/"
        return excerpt(self.pattern)


QUICK_EFFORT = 5_000
"""Microseconds that an event loop can wait."""
MAX_EFFORT = 1_500_000
"""Microseconds that a comparison may take: two texts of 60,000 characters, or a megabyte against a short one."""


class Levenshtein(SelectorEvaluator, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
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

    def judge(self, seen: Selected) -> Finding:
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
        return run_in_thread(lambda: self._told(seen, distance(left, right), least, longer))

    def _told(self, seen: Selected, found: int | None, least: int, longer: int) -> EvaluatorResult:
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
