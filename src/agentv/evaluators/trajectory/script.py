"""Plain expectations, each at its place: most runs follow them to the letter, and one comparison tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from agentv.evaluators.base import once
from agentv.evaluators.trajectory import words
from agentv.evaluators.trajectory.repeats import repeats
from agentv.matching.equality import encoded, has_operators, same
from agentv.matching.glob import is_glob

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.evaluators.trajectory.config import Entry
    from agentv.model.message import ToolCall


class Script:
    """Names and exact inputs in order."""

    def __init__(self, mode: str, names: list[str], inputs: list[object]) -> None:
        self.mode = mode
        self.names = names
        self.inputs = inputs
        """`UNSET` where anything will do."""
        self.loose = bool([value for value in inputs if value is UNSET])
        self.text = self._written(inputs)
        """All inputs as JSON; `None` when they are not quite that."""

    @once
    def expecting(self) -> int:
        """How many calls can agree or disagree with an argument."""
        return len(self.inputs) - self.inputs.count({}) - self.inputs.count(UNSET)

    @once
    def followed(self) -> str:
        """The hit of a run that does what the script says, call by call."""
        return words.matched(self.mode, self.names, "call", range(len(self.names)))

    @once
    def repeats(self) -> list[int]:
        """The places that say again what an earlier one says."""
        return repeats(self.names, self.inputs)

    def arguments(self, calls: Sequence[ToolCall]) -> list[object] | None:
        """What the calls were given, `UNSET` where anything will do; `None` when other tools were called."""
        if [call.tool for call in calls] != self.names:
            return None
        given = [call.input for call in calls]
        if self.loose:
            return [wanted if wanted is UNSET else value for wanted, value in zip(self.inputs, given, strict=True)]
        return given

    def is_met(self, given: list[object]) -> bool:
        """Whether each call has, letter by letter, the arguments expected at its place.

        A run that says `1.0` for `1` has not, and takes the longer way to the same verdict.
        """
        # Python's equality as well: in JSON a tuple is a list and NaN is null, which only the longer way may say.
        return given == self.inputs and self._written(given) == self.text

    def deviations(self, given: list[object]) -> list[int] | None:
        """The places at which a run has other arguments, where that is all there is to say about it.

        `None` when another alignment might be as good: a call that deviates is expected elsewhere, an expectation was
        met elsewhere, or two deviations of one tool could be told apart in more than one way.
        """
        places, inputs, names = self._other_places(given), self.inputs, self.names
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

    def _other_places(self, given: list[object]) -> list[int]:
        wanted = self.inputs
        unequal = [place for place, value in enumerate(wanted) if value != given[place]]
        mended = list(given)
        for place in unequal:
            mended[place] = wanted[place]
        # Python calls `True` and `1` equal. Where it sees no difference, the letters of all inputs together tell in a
        # quarter of the time that asking for each would take.
        doubtful = unequal if self._written(mended) == self.text else range(len(wanted))
        return [place for place in doubtful if not (wanted[place] is UNSET or same(wanted[place], given[place]))]

    def _written(self, inputs: list[object]) -> bytes | None:
        return encoded([value for value in inputs if value is not UNSET] if self.loose else inputs)


def script_of(mode: str, entries: Sequence[Entry | list[Entry]]) -> Script | None:
    """The script of these entries, or `None` when one asks for more than a plain name and input."""
    for entry in entries:
        if isinstance(entry, list) or entry.input_match is not None or entry.args is not UNSET:
            return None
        if entry.output is not UNSET or entry.status is not None or entry.max_duration_ms is not None:
            return None
    plain: Sequence[Entry] = entries  # type: ignore[assignment]  # none of them is a list, as was just seen
    return plain_script(mode, [entry.tool for entry in plain], [entry.input for entry in plain])


def plain_script(mode: str, names: list[str], inputs: list[object]) -> Script | None:
    """The script of these calls, or `None` when a name is a glob or an input holds a matcher."""
    script = Script(mode, names, inputs)
    return None if is_glob("\n".join(names)) or has_operators(script.text) else script
