"""Evaluators of a text: contains, starts_with, ends_with, word_count, regex, levenshtein."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from agentv.errors import EvaluationError, Problem
from agentv.evaluators.base import ConstraintTally, Example, Finding, cached, run_in_thread
from agentv.evaluators.selectors import (
    Selected,
    SelectorEvaluator,
    Text,
    Texts,
    around,
    ending,
    excerpt,
    join_excerpts,
    plain,
)
from agentv.matching.diff import MAX_QUOTED
from agentv.matching.gaps import is_found
from agentv.matching.matchers import (
    JavaScriptPattern,
    Pattern,
    SlowSearchError,
    bad_javascript_pattern,
    bad_pattern,
)
from agentv.matching.text import differing_parts, distance, estimate_microseconds
from agentv.model.results import EvaluatorResult
from agentv.scoring.scorer import reaches

Count = Annotated[int, Meta(ge=0)]


class Contains(SelectorEvaluator, kw_only=True):
    """A text contains the given words."""

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
    """Treats `Refund` and `REFUND` as the same."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "contains", "all": ["refund", "3 days"], "ignore_case": True}, {"text": text}, passes)
        for text, passes in (("Your Refund arrives in 3 days.", True), ("Your refund is on its way.", False))
    )

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the configuration as a whole."""
        problems = super().check(path)
        if self.value is None and self.all is None and self.any is None and self.none is None:
            problems.append(Problem(path, "checks nothing: give `value`, `all`, `any` or `none`", "whole"))
        if self.value is not None and self.all is not None:
            problems.append(Problem(f"{path}.value", "`value` is short for `all` with one entry; give one of them"))
        return problems

    def evaluate_selected(self, selected: Selected) -> EvaluatorResult:
        """Decide one constraint per text of `all` and `none`, and one for `any`."""
        where, original = selected.where, selected.text
        text = plain(original, ignore_case=self.ignore_case)
        tally = ConstraintTally()
        for wanted in self.all or ([self.value] if self.value is not None else ()):
            if self._find(wanted, text) >= 0:
                tally.add_hit(f"{where} contains {excerpt(wanted)}")
            else:
                tally.add_miss(f"{where} does not contain {excerpt(wanted)}: {excerpt(original)}")
        if self.any:
            match = next((wanted for wanted in self.any if self._find(wanted, text) >= 0), None)
            if match is not None:
                tally.add_hit(f"{where} contains {excerpt(match)} (any of {join_excerpts(self.any)})")
            else:
                tally.add_miss(f"{where} contains none of {join_excerpts(self.any)}: {excerpt(original)}")
        for unwanted in self.none or ():
            at = self._find(unwanted, text)
            if at < 0:
                tally.add_hit(f"{where} does not contain {excerpt(unwanted)} (none allowed)")
            else:
                tally.add_miss(f"{where} contains {excerpt(unwanted)} (none allowed): {around(original, at)}")
        return self.to_result(tally)

    def decide_known(self, selected: Selected, reason: str, tally: ConstraintTally) -> None:
        """Decide by the texts that are found outside of the gaps."""
        where = selected.where
        parts = [plain(part, ignore_case=self.ignore_case) for part in selected.known_parts]
        for wanted in self.all or ([self.value] if self.value is not None else ()):
            sentence = f"{where} contains {excerpt(wanted)}"
            tally.decide(good=self._is_in(wanted, parts) or None, sentence=sentence, undecided=f"{sentence}: {reason}")
        if self.any:
            match = next((wanted for wanted in self.any if self._is_in(wanted, parts)), None)
            sentence = (
                f"{where} contains {'one' if match is None else excerpt(match)} (any of {join_excerpts(self.any)})"
            )
            tally.decide(good=None if match is None else True, sentence=sentence, undecided=f"{sentence}: {reason}")
        for unwanted in self.none or ():
            sentence = f"{where} contains {excerpt(unwanted)} (none allowed)"
            is_there = self._is_in(unwanted, parts)
            tally.decide(good=False if is_there else None, sentence=sentence, undecided=f"{sentence}: {reason}")

    def _is_in(self, wanted: str, parts: Sequence[str]) -> bool:
        return any(self._find(wanted, part) >= 0 for part in parts)

    def _find(self, wanted: str, text: str) -> int:
        return text.find(plain(wanted, ignore_case=self.ignore_case))


class Edge(SelectorEvaluator, kw_only=True):
    """Base class of `starts_with` and `ends_with`."""

    value: Text | Texts
    """The expected beginning or end; of a list, one is enough."""
    ignore_case: bool = False
    """Treats `Dear` and `DEAR` as the same."""
    trim: bool = False
    """Ignores white space around the text."""

    at_start: ClassVar[bool] = True

    def evaluate_selected(self, selected: Selected) -> EvaluatorResult:
        """Decide the one constraint."""
        wanted = [self.value] if isinstance(self.value, str) else self.value
        text = plain(selected.text, ignore_case=self.ignore_case, trim=self.trim)
        test = text.startswith if self.at_start else text.endswith
        match = next((option for option in wanted if test(plain(option, ignore_case=self.ignore_case))), None)
        verb, edge = ("start", excerpt) if self.at_start else ("end", ending)
        tally = ConstraintTally()
        if match is not None:
            tally.add_hit(f"{selected.where} {verb}s with {excerpt(match)}")
        else:
            missed = f"does not {verb} with" if len(wanted) == 1 else f"{verb}s with none of"
            tally.add_miss(f"{selected.where} {missed} {join_excerpts(wanted)}: {edge(selected.text)}")
        return self.to_result(tally)

    def decide_known(self, selected: Selected, reason: str, tally: ConstraintTally) -> None:
        """Decide by the part before the first gap, or after the last."""
        wanted = [self.value] if isinstance(self.value, str) else self.value
        part = plain(selected.known_parts[0 if self.at_start else -1], ignore_case=self.ignore_case)
        if self.trim:
            part = part.lstrip() if self.at_start else part.rstrip()
        options = [plain(option, ignore_case=self.ignore_case) for option in wanted]
        is_known = part.startswith if self.at_start else part.endswith
        is_possible = str.startswith if self.at_start else str.endswith
        good = True if any(map(is_known, options)) else None
        if good is None and not any(is_possible(option, part) for option in options):
            good = False
        sentence = f"{selected.where} {'start' if self.at_start else 'end'}s with {join_excerpts(wanted)}"
        tally.decide(good=good, sentence=sentence, undecided=f"{sentence}: {reason}")


class StartsWith(Edge, kw_only=True):
    """A text begins with the given text."""

    type: Literal["starts_with"] = "starts_with"

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "starts_with", "value": ["Hello", "Good morning"]}, {"text": text}, passes)
        for text, passes in (("Good morning, Ada.", True), ("Hey Ada.", False))
    )


class EndsWith(Edge, kw_only=True):
    """A text ends with the given text."""

    type: Literal["ends_with"] = "ends_with"

    at_start: ClassVar[bool] = False
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "ends_with", "value": "?", "trim": True}, {"text": text}, passes)
        for text, passes in (("Which order do you mean?\n", True), ("Done.", False))
    )


class WordCount(SelectorEvaluator, kw_only=True):
    """The number of words of a text is within limits."""

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
        """Return the problems of the configuration as a whole."""
        problems = super().check(path)
        if self.min is None and self.max is None:
            problems.append(Problem(path, "checks nothing: give `min` or `max`", "whole"))
        if self.min is not None and self.max is not None and self.min > self.max:
            problems.append(Problem(f"{path}.min", f"{self.min} is above the `max` of {self.max}"))
        return problems

    def warnings(self, path: str) -> list[str]:
        """Return warnings about constraints that can never fail."""
        return [f"{path}.min: a minimum of 0: this can never fail"] if self.min == 0 and self.max is None else []

    def evaluate_selected(self, selected: Selected) -> EvaluatorResult:
        """Decide the one constraint: the number of words."""
        words = len(selected.text.split())
        bounds = {"minimum": self.min, "maximum": self.max}
        limits = ", ".join(f"{name}: {bound}" for name, bound in bounds.items() if bound is not None)
        tally = ConstraintTally()
        tally.add(
            good=(self.min is None or words >= self.min) and (self.max is None or words <= self.max),
            sentence=f"{selected.where} has {words} word{'' if words == 1 else 's'} ({limits})",
        )
        return self.to_result(tally, {"words": words})

    def decide_known(self, selected: Selected, reason: str, tally: ConstraintTally) -> None:
        """Decide by the least number of words: a gap may stand within one."""
        least = len("".join(selected.known_parts).split())
        bounds = {"minimum": self.min, "maximum": self.max}
        limits = ", ".join(f"{name}: {bound}" for name, bound in bounds.items() if bound is not None)
        good = None
        if self.max is not None and least > self.max:
            good = False
        elif self.max is None and self.min is not None and least >= self.min:
            good = True
        sentence = f"{selected.where} has at least {least} word{'' if least == 1 else 's'} ({limits})"
        tally.decide(good=good, sentence=sentence, undecided=f"{sentence}: {reason}")


Span = tuple[int, int] | None


class Regex(SelectorEvaluator, kw_only=True):
    """A pattern matches in a text."""

    type: Literal["regex"] = "regex"
    pattern: Text
    """The pattern, in Python's syntax."""
    syntax: Literal["python", "javascript"] = "python"
    """The language whose syntax and meaning the pattern has."""
    ignore_case: bool = False
    """Treats `a` and `A` as the same."""
    full: bool = False
    """Requires the whole text to match, rather than a part."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "regex", "pattern": r"order #\d{4}\b"}, {"text": text}, passes)
        for text, passes in (("I found order #1042.", True), ("I found your order.", False))
    )

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the configuration as a whole."""
        problems = super().check(path)
        is_bad = bad_pattern if self.syntax == "python" else bad_javascript_pattern
        if (reason := is_bad(self.pattern)) is not None:
            problems.append(Problem(f"{path}.pattern", reason))
        return problems

    @cached
    def compiled(self) -> Pattern:
        """The pattern, ready to search."""
        kind = Pattern if self.syntax == "python" else JavaScriptPattern
        return kind(self.pattern, ignore_case=self.ignore_case, full=self.full)

    def evaluate_selected(self, selected: Selected) -> Finding:
        """Decide the one constraint; a slow search continues in a thread, up to its limit."""
        text, compiled = selected.text, self.compiled
        try:
            span = compiled.find_quickly(text)
        except SlowSearchError:
            return run_in_thread(lambda: self._span_result(selected, text, compiled.find(text)))
        return self._span_result(selected, text, span)

    def _span_result(self, selected: Selected, text: str, span: Span) -> EvaluatorResult:
        tally = ConstraintTally()
        if span is None:
            as_a_whole = " as a whole" if self.full else ""
            tally.add_miss(f"{selected.where} does not match {self._shown}{as_a_whole}: {excerpt(text)}")
            return self.to_result(tally)
        start, end = span
        tally.add_hit(f"{selected.where} matches {self._shown} at character {start}: {excerpt(text[start:end])}")
        return self.to_result(tally, {"start": start, "end": end})

    def decide_known(self, selected: Selected, reason: str, tally: ConstraintTally) -> None:
        """Decide by a match outside of the gaps; a whole text is never known to match."""
        sentence = f"{selected.where} matches {self._shown}"
        is_plain = self.syntax == "python" and not self.full
        found = is_plain and is_found(self.pattern, selected.known_parts, ignore_case=self.ignore_case)
        tally.decide(good=True if found else None, sentence=sentence, undecided=f"{sentence}: {reason}")

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


class Levenshtein(SelectorEvaluator, kw_only=True):
    """A text is close to another, by edit distance."""

    type: Literal["levenshtein"] = "levenshtein"
    value: str
    """The text to compare with."""
    max_distance: Annotated[int, Meta(ge=0)] | None = None
    """At most so many characters inserted, deleted or replaced; without it the score is the share that agrees."""
    ignore_case: bool = False
    """Treats `a` and `A` as the same."""
    trim: bool = False
    """Ignores white space around the text."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "levenshtein", "value": "The capital is Paris.", "threshold": 0.9}, {"text": text}, passes)
        for text, passes in (("The capital is Paris", True), ("The capital is not Rome.", False))
    )

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the configuration as a whole."""
        problems = super().check(path)
        if self.max_distance is not None and self.threshold != 1.0:
            reason = "means nothing beside `max_distance`, under which the score is 1 or 0; give one of them"
            problems.append(Problem(f"{path}.threshold", reason))
        return problems

    def warnings(self, path: str) -> list[str]:
        """Return warnings about settings that are allowed but probably a mistake."""
        if self.max_distance is None and self.threshold >= 1.0 and self.kind == "assertion":
            return [f"{path}: only an equal text passes; add `threshold` or `max_distance`, or use `equals`"]
        return []

    def evaluate_selected(self, selected: Selected) -> Finding:
        """Decide one constraint, or return a score from 0 to 1."""
        text = plain(selected.text, ignore_case=self.ignore_case, trim=self.trim)
        wanted = plain(self.value, ignore_case=self.ignore_case)
        longer, least = max(len(text), len(wanted)), abs(len(text) - len(wanted))
        if self.max_distance is not None and least > self.max_distance:
            # The lengths alone decide: a text of megabytes is not compared to find its exact distance.
            return self._distance_result(selected, None, least, longer)
        left, right = differing_parts(text, wanted)
        work = estimate_microseconds(left, right)
        if work <= QUICK_EFFORT:
            return self._distance_result(selected, distance(left, right), least, longer)
        if work > MAX_EFFORT:
            sizes = f"{len(left):,} characters against {len(right):,}"
            msg = f"{selected.where}: {sizes} are too many to compare; `contains` and `regex` read texts of any length"
            raise EvaluationError(msg)
        return run_in_thread(lambda: self._distance_result(selected, distance(left, right), least, longer))

    def _distance_result(self, selected: Selected, exact: int | None, least: int, longer: int) -> EvaluatorResult:
        changes = least if exact is None else exact
        share = 1 - changes / longer if longer else 1.0
        score = share if self.max_distance is None else float(exact is not None and exact <= self.max_distance)
        bound = f"threshold: {self.threshold:g}" if self.max_distance is None else f"maximum: {self.max_distance}"
        count = f"{'at least ' if exact is None else ''}{changes} change{'' if changes == 1 else 's'}"
        sentence = f"{selected.where} is {count} away from {excerpt(self.value)}, likeness {share:.2f} ({bound})"
        details = {"distance": exact, "likeness": None if exact is None else share}
        if reaches(score, self.threshold):
            return self.result("pass", score, (sentence,), (), details)
        return self.result("fail", score, (), (f"{sentence}: {excerpt(selected.text)}",), details)
