"""`regex`: a pattern in a text, which the text cannot make run for ever."""

from typing import ClassVar, Literal

from agentv.errors import Problem
from agentv.evaluators.away import Finding, away
from agentv.evaluators.base import Example, Tally, once
from agentv.evaluators.looking import Looking, Text, excerpt
from agentv.evaluators.on import Seen
from agentv.matching.diff import MAX_QUOTED
from agentv.matching.pattern import Pattern, Slow, bad_pattern
from agentv.model.result import EvaluatorResult

Span = tuple[int, int] | None


class Regex(Looking, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
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

    def judge(self, seen: Seen) -> Finding:
        """One constraint; what does not end at once goes on beside the other cases, up to its limit."""
        text, compiled = seen.text, self.compiled
        try:
            span = compiled.find_quickly(text)
        except Slow:
            return away(lambda: self._told(seen, text, compiled.find(text)))
        return self._told(seen, text, span)

    def _told(self, seen: Seen, text: str, span: Span) -> EvaluatorResult:
        tally = Tally()
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
