"""Simulated users of cases: their brief, and the rules that end their conversations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET

from agentv.errors import Problem, SpecError
from agentv.matching.matchers import bad_pattern
from agentv.model.simulation import Fact, Simulation, StopRules
from agentv.spec.evaluators import check_evaluators
from agentv.spec.file_format import FactEntry, SimulateEntry, SimulateTurnEntry, StopEntry
from agentv.spec.validation import build

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agentv.evals import ConfiguredEvaluator

UNKNOWN = "unknown"
"""Fact that the user does not know."""
_STOP_KEYS = frozenset(StopEntry.__struct_fields__)
_MAX_PLAIN = 1e15
_RUNS = re.compile(r"[^\W\d_]+|[0-9]+")


class CheckedSimulation(NamedTuple):
    """Brief of a simulated user, the evaluator of its goal, and the problems of both."""

    simulation: Simulation | None
    goal: ConfiguredEvaluator | None = None
    problems: list[Problem] = []


def check_simulation(
    data: Mapping[str, Any] | None, turn: Mapping[str, Any] | None = None, turn_path: str = ""
) -> CheckedSimulation:
    """Read the `simulate` of a case, and the settings of a `- simulate` entry of its turns, which take precedence."""
    entry, problems = build(SimulateEntry, msgspec.json.encode(data or {}), "simulate")
    own: SimulateTurnEntry | None = None
    if turn is not None:
        own, wrong = build(SimulateTurnEntry, msgspec.json.encode(turn), turn_path)
        problems = [*problems, *wrong]
    problems = [_with_hint(problem) for problem in problems]
    if entry is None or problems:
        return CheckedSimulation(None, None, problems)
    entry = entry if own is None else _merge(entry, own)
    path = "simulate" if data is not None else turn_path
    problems = [*_check_patterns(entry, path), *_check_user(entry, path)]
    goal, wrong = _goal(entry.stop, f"{path}.stop.made")
    problems += wrong
    return CheckedSimulation(None if problems else _simulation(entry), goal, problems)


def _with_hint(problem: Problem) -> Problem:
    """Return a problem with what to write instead, where that is known."""
    parent, _, key = problem.path.rpartition(".")
    if parent == "simulate" and key in _STOP_KEYS and problem.about == "key":
        return problem._replace(message=f"unknown key {key!r} here: it belongs below `stop`: `stop: {{{key}: ...}}`")
    if parent.endswith("simulate.facts"):
        if problem.message.endswith("got nothing"):
            hint = "write `unknown` for what the user does not know"
        else:
            hint = "write what the user says as a text"
        return problem._replace(message=f"{problem.message}: {hint}")
    if problem.path.endswith("stop.made"):
        return problem._replace(message=f"{problem.message}: write `made: [{{tool: NAME}}]`")
    return problem


def _merge(entry: SimulateEntry, own: SimulateTurnEntry) -> SimulateEntry:
    """Return the settings of the case with those of its turn over them."""
    stop: dict[str, Any] = {**msgspec.to_builtins(entry.stop), **msgspec.to_builtins(own.stop)}
    if own.max_turns is not UNSET:
        stop["max_turns"] = own.max_turns
    written = {key: value for key, value in msgspec.to_builtins(own).items() if key != "max_turns"}
    return msgspec.convert({**msgspec.to_builtins(entry), **written, "stop": stop}, SimulateEntry)


def _check_patterns(entry: SimulateEntry, path: str) -> Iterator[Problem]:
    for name, fact in entry.facts.items():
        value = fact.value if isinstance(fact, FactEntry) else fact
        if isinstance(value, str) and not value.strip():
            message = "the fact is empty: give a value, or `unknown` if the user does not know it"
            yield Problem(f"{path}.facts.{name}", message)
        if isinstance(fact, FactEntry):
            yield from _bad_patterns(_listed(fact.asked), f"{path}.facts.{name}.asked")
    yield from _bad_patterns(_listed(entry.stop.agent_says), f"{path}.stop.agent_says")


def _bad_patterns(patterns: Sequence[str], path: str) -> Iterator[Problem]:
    for index, pattern in enumerate(patterns):
        reason = bad_pattern(pattern)
        if reason is not None:
            yield Problem(path if len(patterns) == 1 else f"{path}[{index}]", reason)


def _check_user(entry: SimulateEntry, path: str) -> Iterator[Problem]:
    user = entry.user or "facts"
    if user == "model" and entry.target is None:
        yield Problem(path, "`user: model` needs a `target` that writes the messages", "whole")
    if user != "model" and entry.target is not None:
        yield Problem(f"{path}.target", f"`user: {user}` asks no model: write `user: model`, or remove `target`")
    if user == "facts" and entry.opening is None and entry.goal is None:
        yield Problem(path, "the simulated user has nothing to say first: add `opening` or `goal`", "whole")
    if user == "model" and entry.goal is None:
        yield Problem(path, "`user: model` needs a `goal`", "whole")
    low, high = entry.stop.min_turns or 1, entry.stop.max_turns or max(12, entry.stop.min_turns or 1)
    if low > high:
        yield Problem(f"{path}.stop.min_turns", f"is larger than `max_turns` ({high})")


def _goal(stop: StopEntry, path: str) -> tuple[ConfiguredEvaluator | None, list[Problem]]:
    """Return the evaluator that passes when the calls of the goal were made."""
    if not stop.made:
        return None, []
    expected = [{"status": "ok", **call} for call in _made(stop)]
    try:
        config = {"type": "tool_trajectory", "name": "goal", "mode": "any_order", "expected": expected}
        return check_evaluators([config], path)[0], []
    except SpecError as error:
        prefix = f"{path}[0].expected"
        return None, [problem._replace(path=f"{path}{problem.path.removeprefix(prefix)}") for problem in error.problems]


def _simulation(entry: SimulateEntry) -> Simulation:
    given = {
        name: value
        for name in ("user", "opening", "goal", "fallback", "nudge", "target", "retries")
        if (value := getattr(entry, name)) is not UNSET and value is not None
    }
    facts = {name: _fact(name, fact) for name, fact in entry.facts.items()}
    return Simulation(**given, facts=facts, stop=_stop_rules(entry.stop))


def _fact(name: str, written: FactEntry | str | float) -> Fact:
    words = tuple(re.escape(word) for word in _words_of(name))
    if isinstance(written, FactEntry):
        value = None if written.value == UNKNOWN else _text(written.value)
        return Fact(value=value, asked=_listed(written.asked) or words, tell=written.tell)
    return Fact(value=None if written == UNKNOWN else _text(written), asked=words)


def _words_of(name: str) -> Iterator[str]:
    """Yield the words of a key: of `order_id`, of `orderId`, of `OrderID`, in every alphabet."""
    for run in _RUNS.findall(name):
        start = 0
        for at in range(1, len(run)):
            is_camel = run[at].isupper() and not run[at - 1].isupper()
            is_after_acronym = run[at].islower() and run[at - 1].isupper() and at - 1 > start
            if is_camel or is_after_acronym:
                end = at if is_camel else at - 1
                yield run[start:end]
                start = end
        yield run[start:]


def _text(value: str | float) -> str:
    """Return a value as it is told: a number with all of its digits, and without a fraction of zero."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _MAX_PLAIN:
        return str(int(value))
    return str(value)


def _stop_rules(stop: StopEntry) -> StopRules:
    numbers = {
        name: value
        for name in ("max_turns", "min_turns", "max_tool_errors")
        if (value := getattr(stop, name)) is not UNSET
    }
    if "min_turns" in numbers and "max_turns" not in numbers:
        numbers["max_turns"] = max(numbers["min_turns"], StopRules().max_turns)
    return StopRules(agent_says=_listed(stop.agent_says), made=_made(stop), **numbers)


def _made(stop: StopEntry) -> tuple[dict[str, Any], ...]:
    return tuple([{"tool": call} if isinstance(call, str) else call for call in stop.made])


def _listed(names: Any) -> tuple[str, ...]:
    return () if names is UNSET else (names,) if isinstance(names, str) else tuple(names)
