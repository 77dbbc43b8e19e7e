"""One assertion of promptfoo, ready to be translated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentv.api.convert.base import UntranslatableError
from agentv.api.convert.templates import js_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.api.convert.promptfoo.assertions import AssertionScope
    from agentv.api.convert.report import Place


class Assertion(Struct, frozen=True):
    """An assertion with its value rendered for one test."""

    type: str
    """Type without `not-`."""
    value: Any
    entry: Mapping[str, Any]
    negated: bool
    graded: bool
    """True if its score counts, not only its verdict."""
    place: Place
    scope: AssertionScope

    @property
    def transform(self) -> str | None:
        """Code that changes the output before it is checked."""
        own = self.entry.get("transform")
        parts = [part for part in (self.scope.transform, own) if isinstance(part, str)]
        return "\n\0\n".join(parts) if parts else None

    @property
    def threshold(self) -> float | None:
        """The threshold, if it is a number."""
        threshold = self.entry.get("threshold")
        return threshold if isinstance(threshold, (int, float)) and not isinstance(threshold, bool) else None

    def text_value(self) -> str:
        """Return the value as a text; raise `UntranslatableError`."""
        if isinstance(self.value, (str, int, float)) and self.value != "":
            return js_text(self.value)
        msg = "its value is no text"
        raise UntranslatableError(msg)

    def negate(self, evaluator: dict[str, Any], *, is_partial: bool = False) -> dict[str, Any]:
        """Return the evaluator inverted if the assertion is; one with partial scores is wrapped first."""
        if not self.negated:
            return evaluator
        if is_partial:
            return {"type": "all_of", "not": True, "evaluators": [evaluator]}
        return {**evaluator, "not": True}
