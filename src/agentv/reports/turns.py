"""Names of runs with their persona, and the turns of a conversation that results are about."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct

from agentv.redaction import shorten
from agentv.reports.terminal import clean
from agentv.scoring.scorer import TURN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from msgspec import UnsetType

    from agentv.model.results import DiffLabels, EvaluatorResult, RecordedTurn, ResultRecord

MAX_SAID = 200
"""Characters shown of the message of a user."""


def case_name(case_id: str, persona_id: str | UnsetType | None) -> str:
    """Return the id of a case, with its persona if there is one: `refund [impatient]`."""
    return f"{case_id} [{persona_id}]" if persona_id else case_id


def run_label(record: ResultRecord) -> str:
    """Return the name of a case with the number of the repetition from the second on."""
    name = case_name(record.case_id, record.persona_id)
    return f"{name} #{record.repeat + 1}" if record.repeat else name


def turn_of(result: EvaluatorResult) -> int:
    """Return the number of the turn that a result is about, from 1; 0 if it is about the whole reply."""
    turn = result.details.get(TURN)
    return turn if type(turn) is int and turn > 0 else 0


def failed_turn(record: ResultRecord) -> int:
    """Return the number of the turn in which a conversation ended with an error; 0 if there is none."""
    return len(record.turns) if record.turns and record.error is not None and record.ended_by == "error" else 0


class TurnResults(Struct, frozen=True):
    """Results about one turn, each with the labels of its diff; or about the whole conversation."""

    turn: int
    """Number of the turn, from 1; 0 for the whole conversation."""
    results: list[tuple[EvaluatorResult, DiffLabels | None]]


def group_by_turn(
    pairs: Iterable[tuple[EvaluatorResult, DiffLabels | None]], turns: Sequence[RecordedTurn] | UnsetType | None
) -> Iterator[TurnResults]:
    """Yield the results about the whole conversation, then those of each turn; all as they are if it has no turns."""
    if not turns:
        yield TurnResults(0, list(pairs))
        return
    ordered = sorted(pairs, key=lambda pair: turn_of(pair[0]))
    for turn, group in groupby(ordered, key=lambda pair: turn_of(pair[0])):
        yield TurnResults(turn, list(group))


def turn_line(turns: Sequence[RecordedTurn] | UnsetType | None, turn: int, redact: Callable[[str], str]) -> str:
    """Return the number of a turn and the words of the user, on one line, redacted before it is cut."""
    said = _said(turns, turn, redact)
    return f"turn {turn}, the user said: {said}" if said else f"turn {turn}"


def turn_prefix(turns: Sequence[RecordedTurn] | UnsetType | None, turn: int, redact: Callable[[str], str]) -> str:
    """Return `turn 2 (user: "..."): `, to be put before a reason; nothing if it is about no turn."""
    if not turn:
        return ""
    said = _said(turns, turn, redact)
    return f'turn {turn} (user: "{said}"): ' if said else f"turn {turn}: "


def _said(turns: Sequence[RecordedTurn] | UnsetType | None, turn: int, redact: Callable[[str], str]) -> str:
    if not turns or not 0 < turn <= len(turns):
        return ""
    text = turns[turn - 1].user
    return clean(shorten(" ".join(redact(text).split()), MAX_SAID)) if isinstance(text, str) else ""


def result_name(result: EvaluatorResult) -> str:
    """Return the name of a result, with its type unless the name says it."""
    is_said = result.name in (result.type, f"turn {turn_of(result)}: {result.type}")
    return result.name if is_said else f"{result.name} ({result.type})"


def other_failed_turns(result: EvaluatorResult) -> list[int]:
    """Return the other turns in which an evaluator of every turn did not pass."""
    turns = result.details.get("turns")
    own = turn_of(result)
    return [
        each[TURN]
        for each in (turns if own and isinstance(turns, list) else ())
        if isinstance(each, dict) and each.get("status") in ("fail", "error") and each.get(TURN) != own
    ]
