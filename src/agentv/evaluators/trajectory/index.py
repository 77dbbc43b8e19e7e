"""The expectations of one tool, filed so that a call finds its few candidates without asking all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from agentv.matching.equality import canonical

if TYPE_CHECKING:
    from collections.abc import Hashable

    from agentv.evaluators.trajectory.plan import Expectation
    from agentv.matching.inputs import ExpectedInput
    from agentv.model.message import ToolCall

Filed = tuple[int, "Expectation"]


class ToolIndex:
    """Expectations by what a call they accept must have: an equal input, certain arguments, or nothing special."""

    def __init__(self) -> None:
        self._sample: ExpectedInput | None = None
        """Any of the expected inputs: all share the tool's rule."""
        self._equal: dict[object, tuple[ExpectedInput, dict[Hashable, int]]] = {}
        self._allowing: dict[Hashable, int] = {}
        self._allowing_all = 0
        self._anchored: list[tuple[int, Expectation, list[tuple[str, Hashable]]]] = []
        self._by_anchor: dict[Hashable, list[Filed]] = {}
        self._others: list[Filed] = []

    def add(self, bits: int, expectation: Expectation) -> None:
        """File one expectation (or several alike) in the cheapest place."""
        if expectation.input is UNSET:
            self._others.append((bits, expectation))
            return
        wanted = self._sample = expectation.input_for(expectation.tool)
        plain = wanted.is_plain and expectation.only_input
        if plain and (wanted.mode == "exact" or isinstance(wanted.mode, tuple)):
            _, filed = self._equal.setdefault(wanted.mode, (wanted, {}))
            key = wanted.projection(wanted.expected)
            filed[key] = filed.get(key, 0) | bits
        elif plain and wanted.mode == "subset" and isinstance(wanted.expected, dict):
            self._allowing_all |= bits
            for key, value in wanted.expected.items():
                argument = (key, canonical(value))
                self._allowing[argument] = self._allowing.get(argument, 0) | bits
        elif anchors := wanted.anchors():
            self._anchored.append((bits, expectation, anchors))
        else:
            self._others.append((bits, expectation))

    def row(self, call: ToolCall) -> int:
        """The expectations that this call meets, as bits."""
        row = 0
        if self._sample is not None and call.input is not UNSET:
            prepared = self._sample.rule.prepare(call.input)
            for wanted, filed in self._equal.values():
                row |= filed.get(wanted.projection(prepared), 0)
            if isinstance(prepared, dict) and (self._allowing_all or self._anchored):
                row |= self._by_arguments(call, [(key, canonical(value)) for key, value in prepared.items()])
        for bits, expectation in self._others:
            if expectation.accepts(call):
                row |= bits
        return row

    def _by_arguments(self, call: ToolCall, arguments: list[tuple[str, Hashable]]) -> int:
        row = self._allowing_all
        for argument in arguments:
            row &= self._allowing.get(argument, 0)
        if self._anchored:
            for argument in arguments:
                for bits, expectation in self._by_anchor.get(argument, ()):
                    if expectation.accepts(call):
                        row |= bits
        return row

    def choose_anchors(self) -> None:
        """Once all expectations are there: file those with fixed arguments under their rarest one."""
        frequency: dict[Hashable, int] = {}
        for _, _, anchors in self._anchored:
            for anchor in anchors:
                frequency[anchor] = frequency.get(anchor, 0) + 1
        for bits, expectation, anchors in self._anchored:
            # The rarest argument leaves the fewest expectations to ask in full.
            rarest = min(anchors, key=frequency.__getitem__)
            self._by_anchor.setdefault(rarest, []).append((bits, expectation))
