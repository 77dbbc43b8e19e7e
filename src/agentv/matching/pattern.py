"""A regular expression that an agent's text cannot make run for ever."""

from functools import lru_cache
from typing import Any

from agentv.errors import EvaluationError

# The rules of `$regex`: one dialect for every pattern that an author writes.
from agentv.matching.values import REGEX_SECONDS, _bad_regex, _python_syntax

QUICK_SECONDS = 0.005
"""What an event loop can wait for: nearly every search ends within a hundredth of it."""
QUICK_LENGTH = 50_000
"""On longer texts the engine looks at its clock too rarely for that."""


class Slow(Exception):  # noqa: N818 - no error: the same search with more time may well end
    """A search did not end within the few milliseconds that it was given."""


class Pattern:
    """A pattern in Python's syntax, ready to search any number of texts."""

    def __init__(self, pattern: str, *, ignore_case: bool = False, full: bool = False) -> None:
        import regex  # noqa: PLC0415 - costs as much as starting Python, and few suites use it

        self._pattern = pattern
        compiled = regex.compile(_python_syntax(pattern), regex.IGNORECASE if ignore_case else 0)
        self._search = compiled.fullmatch if full else compiled.search

    def find(self, text: str) -> tuple[int, int] | None:
        """Where it is found, within the limit; the other threads of this process go on meanwhile."""
        try:
            return self._span(text, REGEX_SECONDS)
        except TimeoutError:
            limit = f"took longer than {REGEX_SECONDS:g} s on a text of {len(text)} characters"
            msg = f"the pattern {self._pattern!r} {limit}"
            raise EvaluationError(msg) from None

    def find_quickly(self, text: str) -> tuple[int, int] | None:
        """The same within milliseconds, or `Slow`."""
        if len(text) > QUICK_LENGTH:
            raise Slow
        try:
            return self._span(text, QUICK_SECONDS)
        except TimeoutError:
            raise Slow from None

    def _span(self, text: str, seconds: float) -> tuple[int, int] | None:
        # The agent wrote this text: the standard library's engine could be made to run for hours on it.
        found = self._search(text, timeout=seconds)
        return None if found is None else found.span()


def bad_pattern(pattern: Any) -> str | None:
    """Why this is no pattern; `None` when it is one."""
    return _bad_regex(pattern)


@lru_cache(maxsize=256)
def pattern_of(pattern: str) -> Pattern:
    """A pattern that is asked for again and again, compiled once."""
    return Pattern(pattern)
