"""Plain expectations, each at its place: most runs follow them to the letter, and one comparison tells."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from msgspec import UNSET

from agentv.matching.equality import encoded, has_operators, same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.evaluators.trajectory.config import Entry
    from agentv.model.message import ToolCall

# Ten entries at a time in C: every run with expectations of its own passes here.
_asks = attrgetter("output", "input_match", "status", "max_duration_ms", "args")
_tool, _input = attrgetter("tool"), attrgetter("input")
NOTHING_MORE = (UNSET, None, None, None, UNSET)


class Script:
    """Names and exact inputs in order."""

    __slots__ = ("_given", "_text", "entries", "expects_arguments", "inputs", "names")

    def __init__(self, entries: Sequence[Entry], names: list[str], inputs: list[object], text: bytes) -> None:
        self.entries = entries
        self.names = names
        self.inputs = inputs
        self._given = [value for value in inputs if value is not UNSET]
        self._text = text
        self.expects_arguments = any([value is not UNSET and value != {} for value in inputs])  # noqa: C419 - faster

    def is_followed_by(self, calls: Sequence[ToolCall]) -> bool:
        """Whether each call is, letter by letter, the one expected at its place.

        A run that says `1.0` for `1` is not, and takes the longer way to the same verdict.
        """
        if [call.tool for call in calls] != self.names:
            return False
        given = [call.input for call, wanted in zip(calls, self.inputs, strict=True) if wanted is not UNSET]
        # Python's equality as well: in JSON a tuple is a list and NaN is null, which only the longer way may say.
        return given == self._given and encoded(given) == self._text

    def deviations(self, calls: Sequence[ToolCall]) -> list[int] | None:
        """The places at which a run has other arguments, where that is all there is to say about it.

        `None` when another alignment might be as good: a call that deviates is expected elsewhere, an expectation was
        met elsewhere, or two deviations of one tool could be told apart in more than one way.
        """
        if [call.tool for call in calls] != self.names:
            return None
        inputs, names = self.inputs, self.names
        given = [call.input for call in calls]
        places = [
            place for place, wanted in enumerate(inputs) if wanted is not UNSET and not same(wanted, given[place])
        ]
        if len({names[place] for place in places}) < len(places):
            return None
        for place in places:
            tool = names[place]
            for other, name in enumerate(names):
                if name == tool and other != place:
                    wanted = inputs[other]
                    if wanted is UNSET or wanted == given[place] or given[other] == inputs[place]:
                        return None
        return places


def script_of(entries: Sequence[Entry | list[Entry]]) -> Script | None:
    """The script of these entries, or `None` when one asks for more than a plain name and input."""
    try:
        if not {NOTHING_MORE}.issuperset(map(_asks, entries)):
            return None
    except (AttributeError, TypeError):  # a turn of several calls; an output, which may have no hash
        return None
    names: list[str] = list(map(_tool, entries))
    inputs: list[object] = list(map(_input, entries))
    together = "\n".join(names)
    text = encoded([value for value in inputs if value is not UNSET])
    if "*" in together or "?" in together or text is None or has_operators(text):
        return None
    return Script(entries, names, inputs, text)  # type: ignore[arg-type]  # no turns among them, as just seen
