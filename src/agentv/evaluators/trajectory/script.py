"""Plain expectations, each at its place: most runs follow them to the letter, and one comparison tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from agentv.matching.equality import encoded, has_operators

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.evaluators.trajectory.config import Entry
    from agentv.model.message import ToolCall


class Script:
    """Names and exact inputs in order."""

    __slots__ = ("_inputs", "_text", "expects_arguments", "names")

    def __init__(self, names: list[str], inputs: list[object], text: bytes) -> None:
        self.names = names
        self._inputs = inputs
        self._text = text
        self.expects_arguments = any([value is not UNSET and value != {} for value in inputs])  # noqa: C419 - faster

    def is_followed_by(self, calls: Sequence[ToolCall]) -> bool:
        """Whether each call is, letter by letter, the one expected at its place.

        A run that says `1.0` for `1` is not, and takes the longer way to the same verdict.
        """
        if [call.tool for call in calls] != self.names:
            return False
        given = [call.input for call, wanted in zip(calls, self._inputs, strict=True) if wanted is not UNSET]
        return UNSET not in given and encoded(given) == self._text


def script_of(entries: Sequence[Entry | list[Entry]]) -> Script | None:
    """The script of these entries, or `None` when one asks for more than a plain name and input."""
    names: list[str] = []
    inputs: list[object] = []
    for entry in entries:
        if (
            isinstance(entry, list)
            or entry.output is not UNSET
            or entry.input_match is not None
            or entry.status is not None
            or entry.max_duration_ms is not None
            or entry.args is not UNSET
        ):
            return None
        names.append(entry.tool)
        inputs.append(entry.input)
    together = "\n".join(names)
    text = encoded([value for value in inputs if value is not UNSET])
    if "*" in together or "?" in together or text is None or has_operators(text):
        return None
    return Script(names, inputs, text)
