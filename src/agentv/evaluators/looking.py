"""What every check of one place shares: its `on`, its sentences, its verdict."""

from collections.abc import Sequence
from typing import Annotated, Any

from msgspec import Meta

from agentv.errors import Problem
from agentv.evaluators.away import Finding
from agentv.evaluators.base import EvaluatorBase, Tally, once
from agentv.evaluators.on import Absent, Seen, check_place, look
from agentv.evaluators.places import EXAMPLES, Place, parse_place
from agentv.matching.diff import MAX_QUOTED, quote
from agentv.model.result import EvaluatorResult
from agentv.protocols import Context

MAX_LISTED = 10

Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[list[Text], Meta(min_length=1)]


class Looking(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A check of one place in a run."""

    on: Annotated[str, Meta(examples=["answer", *EXAMPLES.values()])] = "answer"
    """Where it looks: at the answer, a message, or a tool call's input or output."""

    def check(self, path: str) -> list[Problem]:
        """What cannot be meant."""
        return check_place(self.on, f"{path}.on")

    @once
    def place(self) -> Place:
        """Where it looks."""
        return parse_place(self.on)

    def evaluate(self, ctx: Context) -> Finding:
        """What holds at the place; an agent that was measured and has no such place falls short."""
        seen = look(self.place, ctx)
        if isinstance(seen, Absent):
            return self.result("fail", 0.0, (), (seen.sentence,))
        return self.judge(seen)

    def judge(self, seen: Seen) -> Finding:
        """What holds of the value that stands there."""
        raise NotImplementedError

    def told(self, tally: Tally, details: dict[str, Any] | None = None) -> EvaluatorResult:
        """The finding that a tally comes to."""
        status, score = tally.verdict(self.threshold, negate=self.negate)
        if tally.undecided:
            details = {**(details or {}), "undecided": tally.undecided}
        return self.result(status, score, tally.hits, tally.misses, details)


def plain(text: str, *, ignore_case: bool = False, trim: bool = False) -> str:
    """A text without what does not count."""
    if trim:
        text = text.strip()
    return text.casefold() if ignore_case else text


def excerpt(text: str) -> str:
    """The beginning of a text, in quotation marks."""
    # No more of it than is shown: a sentence about a text of megabytes costs as little as any other.
    return quote(text[: MAX_QUOTED + 1])


def ending(text: str) -> str:
    """The end of a text, in quotation marks."""
    if len(text) <= MAX_QUOTED - 2:
        return quote(text)
    tails = (quote("…" + text[-length:]) for length in (MAX_QUOTED - 10, MAX_QUOTED // 2))
    # Escapes make a text longer, and what must not be cut off here is its end.
    return next((tail for tail in tails if not tail.endswith("…")), quote("…" + text[-MAX_QUOTED // 8 :]))


def around(text: str, at: int) -> str:
    """What stands about this character, in quotation marks."""
    start = max(0, at - MAX_QUOTED // 4)
    return quote(("…" if start else "") + text[start : start + MAX_QUOTED])


def listed(texts: Sequence[str]) -> str:
    """`"a", "b"`."""
    more = f" and {len(texts) - MAX_LISTED} more" if len(texts) > MAX_LISTED else ""
    return ", ".join(map(excerpt, texts[:MAX_LISTED])) + more
