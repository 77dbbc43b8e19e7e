"""Turns of a case: messages of the user, expected messages and evaluators of each turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import Problem, SpecError
from agentv.evals import iter_evaluators
from agentv.model.request import CONVERSATION, OneTurn, Turn
from agentv.protocols import evaluated_part
from agentv.scoring.turns import golden_segments, is_golden_path
from agentv.spec.evaluators import check_evaluators, has_expected_calls
from agentv.spec.file_format import TurnEntry
from agentv.spec.messages import check_expected_field, check_messages
from agentv.spec.validation import build, short_repr

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentv.evals import ConfiguredEvaluator
    from agentv.model.conversation import Message
    from agentv.spec.messages import VariableFiller


LAST_ANSWER = (
    "forbids a text, and looks at the last answer of the conversation alone: write `over: each_turn`, "
    "or `over: last_turn` if that is meant"
)


class CheckedTurns(NamedTuple):
    """Scripted turns of a case, with their evaluators and the problems of both."""

    turns: tuple[Turn, ...]
    checks: dict[str, list[ConfiguredEvaluator]]
    """Evaluators of each turn, named after it, by the path of their list."""
    problems: list[Problem]
    simulate: tuple[str, dict[str, Any]] | None = None
    """Path and settings of the entry from which on a simulated user goes on; `None` if there is none."""


def check_turns(
    items: Sequence[Any], filler: VariableFiller, objects: Mapping[int, list[Any]] | None = None, path: str = "turns"
) -> CheckedTurns:
    """Read the turns of a case; `objects` are evaluators that were made in Python, by the index of their turn."""
    turns: list[Turn] = []
    checks: dict[str, list[ConfiguredEvaluator]] = {}
    problems: list[Problem] = []
    simulate: tuple[str, dict[str, Any]] | None = None
    if not items:
        problems.append(Problem(path, "the list is empty: add a turn"))
    for index, item in enumerate(items):
        turn_path = f"{path}[{index}]"
        entry, wrong = _build_turn(item, turn_path)
        problems += wrong
        if entry is None:
            continue
        if entry.simulate is not UNSET:
            problems += _check_simulate(item, turn_path, simulate, is_last=index == len(items) - 1)
            simulate = simulate or (f"{turn_path}.simulate", entry.simulate or {})
            continue
        turn, wrong = _check_turn(entry, index, filler, turn_path, is_text=isinstance(item, str))
        problems += wrong
        turns.append(turn)
        try:
            configs = (objects or {}).get(index, entry.evaluators)
            below = f"{turn_path}.evaluators"
            checks[below] = check_turn_evaluators(configs, index + 1, turn.expected_messages, below)
        except SpecError as error:
            problems += error.problems
    return CheckedTurns(tuple(turns), checks, problems, simulate)


def _check_simulate(
    item: Mapping[str, Any], path: str, first: tuple[str, dict[str, Any]] | None, *, is_last: bool
) -> Iterator[Problem]:
    others = [key for key in item if key != "simulate"]
    if others:
        yield Problem(f"{path}.{others[0]}", f"a turn with `simulate` has no {others[0]!r}", "key")
    if first is not None:
        yield Problem(f"{path}.simulate", "a conversation has one `simulate` entry, which continues to the end")
    elif not is_last:
        yield Problem(f"{path}.simulate", "the simulated user continues to the end: no turn can follow this entry")


def _build_turn(item: Any, path: str) -> tuple[TurnEntry | None, list[Problem]]:
    if isinstance(item, str):
        return TurnEntry(user=item), []
    if isinstance(item, Mapping) and "role" in item:
        if item["role"] == "user":
            reason = f"a turn is no message: write `user: {short_repr(item.get('content'))}`"
        else:
            reason = "the agent answers itself: a turn is what the user says, and `expected` what the agent should do"
        return None, [Problem(path, reason, "whole")]
    return build(TurnEntry, msgspec.json.encode(item), path)


def _check_turn(
    entry: TurnEntry, index: int, filler: VariableFiller, path: str, *, is_text: bool
) -> tuple[Turn, list[Problem]]:
    problems: list[Problem] = []
    user = None
    if entry.user is not UNSET and entry.resume is not UNSET:
        problems.append(Problem(f"{path}.resume", "a turn has either `user` or `resume`", "key"))
    elif entry.user is not UNSET:
        user = _user_message(entry.user, filler, path if is_text else f"{path}.user", problems)
    elif entry.resume is UNSET:
        problems.append(Problem(path, "a turn needs a message of the user: add `user`", "whole"))
    elif index == 0:
        problems.append(Problem(f"{path}.resume", "`resume` continues a pending agent, so it cannot be the first turn"))
    try:
        expected = check_expected_field(entry, path)
    except SpecError as error:
        problems += error.problems
        expected = None
    return Turn(user=user, resume=entry.resume, expected_messages=expected), problems


def _user_message(data: Any, filler: VariableFiller, path: str, problems: list[Problem]) -> Message | None:
    if isinstance(data, str) and not data.strip():
        problems.append(Problem(path, "the message of the user is empty"))
        return None
    try:
        (message,) = check_messages(data, path)
    except SpecError as error:
        problems += error.problems
        return None
    if message.role != "user":
        problems.append(Problem(f"{path}.role", f"the message of a turn is the user's; got {short_repr(message.role)}"))
    return filler.fill(message, path if isinstance(data, str) else f"{path}.content")


def check_turn_evaluators(
    configs: Sequence[Any], number: int, expected: tuple[Message, ...] | None, path: str
) -> list[ConfiguredEvaluator]:
    """Return the evaluators of a turn, which look at this turn only; raise `SpecError` with all problems."""
    problems = [
        Problem(f"{path}[{index}].over", "the evaluators of a turn look at this turn: write it below the case", "key")
        for index, config in enumerate(configs)
        if isinstance(config, Mapping) and "over" in config
    ]
    if problems:
        raise SpecError(problems)
    checks = check_evaluators([_for_turn(config, number) for config in configs], path)
    golden = any(item.evaluator.type == "expected_messages" for item in iter_evaluators(checks))
    if has_expected_calls(expected) and not golden:
        checks += check_evaluators([_for_turn({"type": "expected_messages"}, number)], path)
    elif golden and not has_expected_calls(expected):
        raise SpecError([Problem(path, "`expected_messages` needs tool calls in `expected` of this turn")])
    return checks


def _for_turn(config: Any, number: int) -> Any:
    """Return the configuration of an evaluator, named after its turn and restricted to it."""
    if isinstance(config, msgspec.Struct) and "over" in config.__struct_fields__:
        fields: Any = config
        return replace(config, name=turn_name(number, fields.name or fields.type), over=OneTurn(number))
    if not isinstance(config, Mapping):
        return config
    name = config.get("name") or config.get("type")
    return {**config, "name": turn_name(number, name), "over": {"turn": number}}


def warn_of_last_answers(checks: Sequence[ConfiguredEvaluator]) -> list[ConfiguredEvaluator]:
    """Return evaluators of a conversation, with a warning on each that forbids a text without saying in which turns."""
    return [
        replace(checked, warnings=(*checked.warnings, *last_answer_warnings(checked, f"evaluators[{index}]")))
        for index, checked in enumerate(checks)
    ]


def last_answer_warnings(checked: ConfiguredEvaluator, path: str) -> Iterator[str]:
    """Yield a warning if an evaluator of a conversation, or one inside of it, forbids a text in the last answer."""
    evaluator = checked.evaluator
    if "over" in checked.config or evaluated_part(evaluator) != CONVERSATION:
        return
    is_refusal = evaluator.type == "refusal"
    is_forbidden = evaluator.negate or (is_refusal and not getattr(evaluator, "expected", True))
    if is_forbidden and (is_refusal or getattr(evaluator, "on", None) == "answer"):
        yield f"{path}: {LAST_ANSWER}"
    for index, inner in enumerate(evaluator.inner):
        yield from last_answer_warnings(inner, f"{path}.{evaluator.nested}[{index}]")


def turn_name(number: int, name: object) -> str:
    """Return the name of an evaluator of a turn in results."""
    return f"turn {number}: {name}"


def check_golden_path(expected: tuple[Message, ...] | None, turns: int, path: str) -> list[Problem]:
    """Return the problem of a golden path with another number of turns than the case."""
    if expected is None or not is_golden_path(expected):
        return []
    segments = len(golden_segments(expected))
    if segments == turns:
        return []
    message = f"has {segments} turns, as its messages of the user say, and the case has {turns}"
    return [Problem(path, f"{message}: turn by turn they are compared")]
