"""Checks of words: `contains`, `starts_with`, `ends_with`, `word_count`."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from agentv.errors import Problem
from agentv.evaluators.base import Example, Tally
from agentv.evaluators.looking import Looking, Text, Texts, around, ending, excerpt, listed, plain
from agentv.evaluators.on import Seen
from agentv.model.result import EvaluatorResult

Count = Annotated[int, Meta(ge=0)]


class Contains(Looking, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
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

    def judge(self, seen: Seen) -> EvaluatorResult:
        """Every text of `all` and `none` is a constraint, and `any` is one."""
        where, original = seen.where, seen.text
        text = plain(original, ignore_case=self.ignore_case)
        tally = Tally()
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


class Edge(Looking, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Whether a text begins or ends as it should."""

    value: Text | Texts
    """How it must begin or end; of a list, one is enough."""
    ignore_case: bool = False
    """Whether `Dear` and `DEAR` are the same."""
    trim: bool = False
    """Whether white space around the text is left out first."""

    at_start: ClassVar[bool] = True

    def judge(self, seen: Seen) -> EvaluatorResult:
        """One constraint, whichever of the texts holds it."""
        wanted = [self.value] if isinstance(self.value, str) else self.value
        text = plain(seen.text, ignore_case=self.ignore_case, trim=self.trim)
        test = text.startswith if self.at_start else text.endswith
        held = next((each for each in wanted if test(plain(each, ignore_case=self.ignore_case))), None)
        verb, edge = ("start", excerpt) if self.at_start else ("end", ending)
        tally = Tally()
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


class WordCount(Looking, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
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

    def judge(self, seen: Seen) -> EvaluatorResult:
        """One constraint: the number of runs of characters between white space."""
        words = len(seen.text.split())
        bounds = {"minimum": self.min, "maximum": self.max}
        told = ", ".join(f"{name}: {bound}" for name, bound in bounds.items() if bound is not None)
        tally = Tally()
        tally.count(
            good=(self.min is None or words >= self.min) and (self.max is None or words <= self.max),
            sentence=f"{seen.where} has {words} word{'' if words == 1 else 's'} ({told})",
        )
        return self.told(tally, {"words": words})
