"""Places of replies that were not understood: grouped by target for the terminal, listed for a single reply."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agentv.reports.terminal import Style, clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentv.model.record import ResultRecord
    from agentv.model.response import Unread

MAX_SHOWN = 5
MAX_KEPT = 200
"""Distinct places that are counted for each target: an execution of any size takes the same memory."""
MAX_LENGTH = 300
"""Characters of one place: its path may be made of an agent's words."""
HINT = "docs/reference/replies.md: what agentv reads; declare block types that hold no calls with `plain_blocks`"
_INDEX = re.compile(r"\[\d+\]")


class UnreadCounts:
    """Counts the partly understood replies of each target, and how many of them have which unread place."""

    def __init__(self) -> None:
        self._targets: dict[str, _Target] = {}

    def add(self, record: ResultRecord) -> None:
        """Count one run, if there was a reply."""
        if record.error is None or record.unread:
            self._targets.setdefault(record.target, _Target()).add(record.unread or ())

    def render(self, targets: Iterable[str], style: Style) -> list[str]:
        """Return the lines for these targets, with one hint below them; none when everything was understood."""
        lines = []
        for name in targets:
            lines += self._targets[name].render(name, style) if name in self._targets else []
        return [*lines, style.paint("dim", HINT)] if lines else []


class _Target:
    """The counts of one target."""

    def __init__(self) -> None:
        self._replies = 0
        self._partly = 0
        self._places: dict[str, int] = {}

    def add(self, unread: Sequence[Unread]) -> None:
        """Count one reply; equal places of different messages are one: `output_messages[*].content[*]`."""
        self._replies += 1
        self._partly += bool(unread)
        for place in {_shown(f"{_INDEX.sub('[*]', place.path)}: {place.reason}"): None for place in unread}:
            if place in self._places or len(self._places) < MAX_KEPT:
                self._places[place] = self._places.get(place, 0) + 1

    def render(self, name: str, style: Style) -> list[str]:
        if not self._partly:
            return []
        verb = "was" if self._replies == 1 else "were"
        share = f"{self._partly:,} of {_replies(self._replies)} {verb} only partly understood"
        lines = [style.paint("yellow", f"target {clean(name)}: {share}, so calls may be missing")]
        often = sorted(self._places.items(), key=lambda each: -each[1])
        lines += [f"  {place} ({_replies(count)})" for place, count in often[:MAX_SHOWN]]
        more = len(often) - MAX_SHOWN
        return [*lines, style.paint("dim", f"  {more:,} more in the results")] if more > 0 else lines


def list_places(unread: Sequence[Unread]) -> list[str]:
    """Return the unread places of one reply as lines, safe to print, under a line that says what they mean."""
    if not unread:
        return []
    more = len(unread) - MAX_SHOWN
    lines = [f"  {_shown(str(place))}" for place in unread[:MAX_SHOWN]]
    return [
        "the reply was only partly understood, so calls may be missing:",
        *lines,
        *([f"  {more:,} more"] if more > 0 else []),
    ]


def other_warnings(warnings: Iterable[str], unread: Sequence[Unread]) -> tuple[str, ...]:
    """Return the warnings without those that name an unread place, which is shown on its own."""
    places = tuple(map(str, unread))
    return tuple([warning for warning in warnings if not any(place in warning for place in places)])


def _shown(text: str) -> str:
    return clean(text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 1]}…")


def _replies(count: int) -> str:
    return f"{count:,} {'reply' if count == 1 else 'replies'}"
