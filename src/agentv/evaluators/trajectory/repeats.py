"""Which calls only say again what an earlier one said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from agentv.matching.equality import canonical, same

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from agentv.evaluators.trajectory.plan import Made

# Up to here comparing each call with the ones before it beats making keys of all of them.
FEW = 32


def repeated(made: Made) -> list[int]:
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
