"""Long transcripts made short by one stated rule, and never silently.

The first 5 and the last 10 steps stay whole. While the whole is too long, the texts of the steps between them are
shortened to 400 characters each, then to 80; then so many of those steps as do not fit are left out, from the middle
outwards, in one line that counts them; then the texts that are left are shortened to an equal share each. Of a
shortened text the beginning and the end stay, and what was left out is counted where it stood.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from agentv.evaluators.judge.transcript import LEFT_OUT, Step, as_text

FIRST, LAST = 5, 10
SHORT, SHORTEST = 400, 80
MAX_NAMED = 20
RULE = (
    f"the first {FIRST} and the last {LAST} steps are whole, the others are shortened, "
    "and those in the middle left out where that is not enough"
)


class Folded(NamedTuple):
    """Steps that fit, and what was done to them."""

    steps: tuple[Step, ...]
    shortened: int = 0
    """How many steps are not whole."""
    left_out: int = 0
    """How many are only counted."""
    total: int = 0

    @property
    def details(self) -> dict[str, Any]:
        """For the result; empty when everything was shown."""
        if not self.shortened and not self.left_out:
            return {}
        return {"steps": self.total, "shortened": self.shortened, "left_out": self.left_out, "rule": RULE}

    @property
    def note(self) -> str:
        """For the judge; empty when everything is shown."""
        if not self.shortened and not self.left_out:
            return ""
        left = f", and {self.left_out} are only counted" if self.left_out else ""
        what = f"Of its {self.total} steps, {self.shortened} are shown shortened{left}"
        return f"{what}: {RULE}. What was left out is not evidence for or against the agent."


def fold_steps(steps: Sequence[Step], most: int) -> Folded:
    """The steps within so many characters."""
    total = len(steps)
    if _size(steps) <= most:
        return Folded(tuple(steps), total=total)
    middle = range(FIRST, total - LAST)
    for limit in (SHORT, SHORTEST):
        kept = [_short_step(step, limit) if at in middle else step for at, step in enumerate(steps)]
        if _size(kept) <= most:
            return _folded(steps, kept)
    kept, left_out = _without_middle(steps, most) if middle else (list(steps), 0)
    if _size(kept) > most:
        texts = sum(len(step.fields) for step in kept) or 1
        kept = [_short_step(step, max(SHORTEST, most // texts)) for step in kept]
    return _folded(steps, kept, left_out)


def _without_middle(steps: Sequence[Step], most: int) -> tuple[list[Step], int]:
    """The ends of a run and as many short steps next to them as fit; how many are left out."""
    head, tail = FIRST, len(steps) - LAST
    before: list[Step] = []
    after: list[Step] = []
    room = most - _size((*steps[:head], *steps[tail:], _counted(steps[head:tail])))
    while head < tail:
        at_start = len(before) <= len(after)
        step = _short_step(steps[head if at_start else tail - 1], SHORTEST)
        room -= step.size
        if room < 0:
            break
        (before if at_start else after).append(step)
        head, tail = (head + 1, tail) if at_start else (head, tail - 1)
    counted = [_counted(steps[head:tail])] if head < tail else []
    return [*steps[:FIRST], *before, *counted, *reversed(after), *steps[len(steps) - LAST :]], tail - head


def shorten(text: str, most: int) -> str:
    """The beginning and the end of a text, and how much stood between them."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    gone = len(text) - head - tail
    return f"{text[:head]}[… {gone:,} characters left out …]{text[len(text) - tail :]}"


def _short_step(step: Step, most: int) -> Step:
    fields = tuple((name, _short_value(value, most)) for name, value in step.fields)
    return step if fields == step.fields else step._replace(fields=fields)


def _short_value(value: Any, most: int) -> Any:
    text = as_text(value)
    return value if len(text) <= most else shorten(text, most)


def _counted(steps: Sequence[Step]) -> Step:
    kinds = Counter(f"{step.type} {step.name}" if step.name else step.type for step in steps)
    named = [f"{times} of {name}" for name, times in kinds.most_common(MAX_NAMED)]
    more = ["…"] if len(kinds) > MAX_NAMED else []
    said = f"steps {steps[0].number} to {steps[-1].number} are left out: {', '.join([*named, *more])}"
    return Step(steps[0].number, LEFT_OUT, None, (("text", said),))


def _folded(steps: Sequence[Step], kept: Sequence[Step], left_out: int = 0) -> Folded:
    whole = {step.number: step for step in steps}
    shortened = sum(step.type != LEFT_OUT and step is not whole[step.number] for step in kept)
    return Folded(tuple(kept), shortened, left_out, len(steps))


def _size(steps: Sequence[Step]) -> int:
    return sum(step.size for step in steps)
