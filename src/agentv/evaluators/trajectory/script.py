"""Exact scripts of calls, compared in one step, and repeated calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from agentv.evaluators.base import once
from agentv.evaluators.trajectory import wording
from agentv.evaluators.trajectory.config import Entry
from agentv.evaluators.trajectory.expectations import CallMatcher, Expectation
from agentv.matching.equality import canonical, encoded, has_operators, read_back, same
from agentv.matching.text import is_glob

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Sequence

    from agentv.evaluators.trajectory.expectations import CountedCalls
    from agentv.model.conversation import ToolCall


# Up to here comparing each call with the ones before it beats making keys of all of them.
FEW = 32


def repeated(made: CountedCalls) -> list[int]:
    """Calls equal to an earlier one in tool and input."""
    calls, numbers = made.calls, made.numbers
    return [numbers[place] for place in repeats([call.tool for call in calls], [call.input for call in calls])]


def repeats(names: Sequence[str], inputs: Sequence[Any]) -> list[int]:
    """The places of calls, each a name and an input, that are equal to an earlier one; unnamed ones never are."""
    if len(set(names)) == len(names):
        return []
    if len(names) > FEW:
        return _repeats_among_many(names, inputs)
    found: list[int] = []
    earlier: dict[str, list[Any]] = {}
    for place, name in enumerate(names):
        value, others = inputs[place], earlier.get(name)
        if others is None:
            earlier[name] = [value]
        else:
            if value in others and name and any(same(value, other) for other in others):
                found.append(place)
            others.append(value)
    return found


def _repeats_among_many(names: Sequence[str], inputs: Sequence[Any]) -> list[int]:
    seen: set[Hashable] = set()
    found: list[int] = []
    for place, name in enumerate(names):
        if name:
            key = (name, UNSET if inputs[place] is UNSET else canonical(inputs[place]))
            if key in seen:
                found.append(place)
            seen.add(key)
    return found


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
        self._is_read = False

    @once
    def expecting(self) -> int:
        """How many calls can agree or disagree with an argument."""
        return len(self.inputs) - self.inputs.count({}) - self.inputs.count(UNSET)

    @once
    def followed(self) -> str:
        """The hit of a run that does what the script says, call by call."""
        return wording.matched(self.mode, self.names, "call", range(len(self.names)))

    @once
    def judge(self) -> CallMatcher:
        """Which calls meet which of its expectations, for runs that do not follow it."""
        entries = [Entry(tool=name, input=value) for name, value in zip(self.names, self.inputs, strict=True)]
        return CallMatcher([Expectation(entry, "exact", None, plain=True) for entry in entries])

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

    def read_back(self, tools: Container[str]) -> None:
        """Take the inputs of these tools for what their JSON says: a date, a set or NaN may be among them till now."""
        if self._is_read:
            return
        inputs = self.inputs
        places = [place for place, name in enumerate(self.names) if name in tools and inputs[place] is not UNSET]
        for place, value in zip(places, read_back([inputs[place] for place in places]), strict=True):
            inputs[place] = value

    def settle(self) -> None:
        """Read all inputs back, once: from now on nothing of it is the caller's."""
        self.read_back(self.names)
        self._is_read = True

    def unequal(self, given: list[object]) -> list[int] | None:
        """The places at which a call has other arguments, if all others have, letter by letter, those expected there.

        `None` when they have not: a run that says `1.0` for `1` takes the longer way to the same verdict.
        """
        places: list[int] = []
        if given != self.inputs:
            places = [place for place, value in enumerate(self.inputs) if value != given[place]]
            given = list(given)
            for place in places:
                given[place] = self.inputs[place]
        # Python calls `True` and `1` equal, and only the longer way may say that a tuple is a list. Where it sees no
        # difference, the letters of all inputs together tell in a quarter of the time that asking for each would take.
        return places if (self._written(given) if self.loose else encoded(given)) == self.text else None

    def deviations(self, given: list[object], unequal: list[int] | None) -> list[int] | None:
        """The places at which a run has other arguments, where that is all there is to say about it.

        `None` when another alignment might be as good: a call that deviates is expected elsewhere, an expectation was
        met elsewhere, or two deviations of one tool could be told apart in more than one way.
        """
        inputs, names = self.inputs, self.names
        doubtful = range(len(names)) if unequal is None else unequal
        places = [place for place in doubtful if not (inputs[place] is UNSET or same(inputs[place], given[place]))]
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
