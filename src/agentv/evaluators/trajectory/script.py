"""Fast path of `tool_trajectory` for exact scripts, and the detection of repeated calls.

Most runs call the expected tools with the expected inputs, or differ in a few arguments. One comparison of the JSON of
all inputs decides those runs without an alignment, in about a quarter of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from agentv.evaluators.base import cached
from agentv.evaluators.trajectory import wording
from agentv.evaluators.trajectory.config import Entry
from agentv.evaluators.trajectory.expectations import CallMatcher, Expectation
from agentv.evaluators.trajectory.index import key_of
from agentv.matching.equality import has_operators, json_equal, json_round_trip, sorted_json
from agentv.matching.text import is_glob

if TYPE_CHECKING:
    from collections.abc import Container, Hashable, Sequence

    from agentv.evaluators.trajectory.expectations import CountedCalls
    from agentv.model.conversation import ToolCall


# Up to this many calls, comparing each with the earlier ones is faster than making keys of all of them.
FEW_CALLS = 32


def repeated_calls(counted: CountedCalls) -> list[int]:
    """Return the numbers of calls equal to an earlier one in tool and input."""
    calls, numbers = counted.calls, counted.numbers
    return [numbers[place] for place in repeated_places([call.tool for call in calls], [call.input for call in calls])]


def repeated_places(names: Sequence[str], inputs: Sequence[Any]) -> list[int]:
    """Return the places of calls (names and inputs) equal to an earlier one; unnamed calls never are."""
    if len(set(names)) == len(names):
        return []
    if len(names) > FEW_CALLS:
        return _repeats_among_many(names, inputs)
    places: list[int] = []
    earlier: dict[str, list[Any]] = {}
    for place, name in enumerate(names):
        value, others = inputs[place], earlier.get(name)
        if others is None:
            earlier[name] = [value]
        else:
            if value in others and name and any(json_equal(value, other) for other in others):
                places.append(place)
            others.append(value)
    return places


def _repeats_among_many(names: Sequence[str], inputs: Sequence[Any]) -> list[int]:
    seen: set[Hashable] = set()
    places: list[int] = []
    for place, name in enumerate(names):
        if name:
            key = (name, key_of(inputs[place]))
            if key in seen:
                places.append(place)
            seen.add(key)
    return places


class Script:
    """Expected calls that consist of names and exact inputs."""

    def __init__(self, mode: str, names: list[str], inputs: list[object]) -> None:
        self.mode = mode
        self.names = names
        self.inputs = inputs
        """`UNSET` where any input is accepted."""
        self.loose = bool([value for value in inputs if value is UNSET])
        self.text = self._encode(inputs)
        """All inputs as JSON; `None` if they are not quite JSON."""
        self._is_read = False

    @cached
    def argument_calls(self) -> int:
        """The number of calls that expect arguments."""
        return len(self.inputs) - self.inputs.count({}) - self.inputs.count(UNSET)

    @cached
    def hit_sentence(self) -> str:
        """The hit of a run that matches the script call by call."""
        return wording.matched(self.mode, self.names, "call", range(len(self.names)))

    @cached
    def matcher(self) -> CallMatcher:
        """The matcher for runs that do not follow the script."""
        entries = [Entry(tool=name, input=value) for name, value in zip(self.names, self.inputs, strict=True)]
        return CallMatcher([Expectation(entry, "exact", None, plain=True) for entry in entries])

    @cached
    def repeats(self) -> list[int]:
        """The places equal to an earlier one."""
        return repeated_places(self.names, self.inputs)

    def arguments(self, calls: Sequence[ToolCall]) -> list[object] | None:
        """Return the inputs of the calls, `UNSET` where any is accepted; `None` if other tools were called."""
        if [call.tool for call in calls] != self.names:
            return None
        inputs = [call.input for call in calls]
        if self.loose:
            return [wanted if wanted is UNSET else value for wanted, value in zip(self.inputs, inputs, strict=True)]
        return inputs

    def normalize_inputs(self, tools: Container[str]) -> None:
        """Replace the inputs of these tools with their JSON values: they may contain dates, sets or NaN."""
        if self._is_read:
            return
        inputs = self.inputs
        places = [place for place, name in enumerate(self.names) if name in tools and inputs[place] is not UNSET]
        for place, value in zip(places, json_round_trip([inputs[place] for place in places]), strict=True):
            inputs[place] = value

    def detach(self) -> None:
        """Normalize all inputs once, so that none of them is shared with the caller."""
        self.normalize_inputs(self.names)
        self._is_read = True

    def unequal(self, actual: list[object]) -> list[int] | None:
        """Return the places of other arguments, if the JSON text of all other arguments is the expected one.

        `None` otherwise: a run that has `1.0` instead of `1` is aligned, with the same verdict.
        """
        places: list[int] = []
        if actual != self.inputs:
            places = [place for place, value in enumerate(self.inputs) if value != actual[place]]
            actual = list(actual)
            for place in places:
                actual[place] = self.inputs[place]
        # To Python `True` and `1` are equal, and only the alignment may treat a tuple as a list. So the JSON of all
        # inputs is compared too, in a quarter of the time that comparing each input by the rules of JSON takes.
        return places if (self._encode(actual) if self.loose else sorted_json(actual)) == self.text else None

    def deviations(self, actual: list[object], unequal: list[int] | None) -> list[int] | None:
        """Return the places of other arguments, if no other alignment can be as good.

        `None` if another alignment might be as good: a deviating call is expected elsewhere, an expectation is met
        elsewhere, or two calls of one tool deviate and could be paired in more than one way.
        """
        inputs, names = self.inputs, self.names
        doubtful = range(len(names)) if unequal is None else unequal
        places = [
            place for place in doubtful if not (inputs[place] is UNSET or json_equal(inputs[place], actual[place]))
        ]
        if len({names[place] for place in places}) < len(places):
            return None
        for place in places:
            tool = names[place]
            for other, name in enumerate(names):
                if name == tool and other != place:
                    wanted = inputs[other]
                    if wanted is UNSET or wanted == actual[place] or actual[other] == inputs[place]:
                        return None
        return places

    def _encode(self, inputs: list[object]) -> bytes | None:
        return sorted_json([value for value in inputs if value is not UNSET] if self.loose else inputs)


def make_script(mode: str, entries: Sequence[Entry | list[Entry]]) -> Script | None:
    """Return the script of these entries; `None` if one has more than a plain name and input."""
    for entry in entries:
        if isinstance(entry, list) or entry.input_match is not None or entry.args is not UNSET:
            return None
        if entry.output is not UNSET or entry.status is not None or entry.max_duration_ms is not None:
            return None
    plain: Sequence[Entry] = entries  # type: ignore[assignment]  # the loop has returned if one is a list
    return plain_script(mode, [entry.tool for entry in plain], [entry.input for entry in plain])


def plain_script(mode: str, names: list[str], inputs: list[object]) -> Script | None:
    """Return the script of these calls; `None` if a name is a glob or an input has a matcher."""
    script = Script(mode, names, inputs)
    return None if is_glob("\n".join(names)) or has_operators(script.text) else script
