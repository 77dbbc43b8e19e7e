"""Evaluator configurations made into evaluators, each distinct one checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from agentv.errors import Problem, SpecError
from agentv.evals import ConfiguredEvaluator, iter_evaluators
from agentv.registry import EVALUATORS, evaluator_names, find_evaluator
from agentv.spec.validation import TOO_DEEP, build, encode, is_too_deep, not_a_choice, not_json, shown

if TYPE_CHECKING:
    from agentv.model.conversation import Message


NOTHING_CHECKED = "checks nothing: add `evaluators` or tool calls in `expected_messages`"
NEEDED = ("type", "kind", "weight", "skip", "check", "warnings", "sides", "result")
"""What an evaluator object must have beside `evaluate`."""
Key = tuple[str, bytes]
"""Where a configuration stands (its warnings say so) and what it says."""

_known: dict[Key, ConfiguredEvaluator] = {}
_seen: set[int] = set()
# A suite asks for the same few configurations again and again; a program that makes up a new one for every reply
# must neither fill the memory nor pay for keeping what nobody asks for twice.
MAX_KNOWN = 1024
MAX_SEEN = 16 * MAX_KNOWN


def check_evaluators(configs: Sequence[Any], path: str = "evaluators") -> list[ConfiguredEvaluator]:
    """Every evaluator, or a `SpecError` with everything that is wrong with any of them."""
    if not isinstance(configs, (list, tuple)):
        raise SpecError([Problem(path, "expected a list of evaluators")])
    found, problems = _check_each(configs, path)
    if problems:
        raise SpecError(problems)
    return found


def _check_each(configs: Sequence[Any], path: str) -> tuple[list[ConfiguredEvaluator], list[Problem]]:
    problems: list[Problem] = []
    found: list[ConfiguredEvaluator] = []
    for index, config in enumerate(configs):
        place = f"{path}[{index}]"
        checked, wrong = _checked(config, place)
        problems += wrong
        if checked is not None:
            found.append(checked)
    return found, problems


def _checked(config: Any, path: str) -> tuple[ConfiguredEvaluator | None, list[Problem]]:
    if not isinstance(config, (dict, Mapping)):  # a dict is known at once, an abstract class has to be asked
        return _checked_object(config, path)
    try:
        # What runs is made of the text: it shares nothing with an object that may change later, and a tuple in it is
        # the list that it is in JSON.
        text = encode(config if isinstance(config, dict) else dict(config))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        return None, [not_json(error, path)]
    key = (path, text)
    known = _known.get(key)
    if known is not None:
        return replace(known, config=config), []
    checked, problems = _check(config, text, path)
    if checked is not None:
        _remember(key, checked)
    return checked, problems


def _checked_object(config: Any, path: str) -> tuple[ConfiguredEvaluator | None, list[Problem]]:
    """An evaluator that was made in Python."""
    if not callable(getattr(config, "evaluate", None)):
        return None, [Problem(path, f"expected a mapping with a `type`, got {shown(config)}")]
    if isinstance(config, type):
        return None, [Problem(path, f"{config.__name__!r} is a class of evaluators: write `{config.__name__}()`")]
    lacking = [name for name in NEEDED if not hasattr(config, name)]
    if lacking:
        fix = "derive it from `agentv.evaluators.base.EvaluatorBase`"
        return None, [Problem(path, f"this evaluator lacks {', '.join(lacking)}; {fix}")]
    return _accept(config, {}, path)


def _remember(key: Key, checked: ConfiguredEvaluator) -> None:
    """Keep what is asked for a second time."""
    if hash(key) in _seen:
        if len(_known) >= MAX_KNOWN:
            _known.clear()
        _known[key] = checked
    else:
        if len(_seen) >= MAX_SEEN:
            _seen.clear()
        _seen.add(hash(key))


def _check(config: Mapping[str, Any], text: bytes, path: str) -> tuple[ConfiguredEvaluator | None, list[Problem]]:
    name = config.get("type")
    if not isinstance(name, str):
        return None, [Problem(f"{path}.type", f"required; one of {', '.join(EVALUATORS)}")]
    cls = find_evaluator(name)
    if cls is None:
        return None, [Problem(f"{path}.type", not_a_choice(name, evaluator_names()))]
    if is_too_deep(text):
        return None, [Problem(path, TOO_DEEP)]
    if "-" in name:
        config = {**config, "type": name.replace("-", "_")}
        text = msgspec.json.encode(config)
    evaluator, problems = build(cls, text, path)
    if evaluator is not None:
        return _accept(evaluator, config, path)
    nested = getattr(cls, "nested", None)
    inside = config.get(nested) if nested else None
    # What is wrong further in is told in the same pass.
    further = _check_each(inside, f"{path}.{nested}")[1] if isinstance(inside, (list, tuple)) else []
    return None, [*problems, *further]


def _accept(evaluator: Any, config: Mapping[str, Any], path: str) -> tuple[ConfiguredEvaluator | None, list[Problem]]:
    nested = getattr(evaluator, "nested", None)
    inner, problems = _check_each(getattr(evaluator, nested), f"{path}.{nested}") if nested else ([], [])
    if inner and not problems:
        evaluator = evaluator.with_inner(tuple(inner))
    problems = [*problems, *evaluator.check(path)]
    if problems:
        return None, problems
    warnings = [*evaluator.warnings(path), *(warning for checked in inner for warning in checked.warnings)]
    return ConfiguredEvaluator(evaluator, config, tuple(warnings)), []


def with_expected_messages(
    checked: list[ConfiguredEvaluator], expected: tuple[Message, ...] | None
) -> list[ConfiguredEvaluator]:
    """The golden path runs by itself when there is one, unless it was configured or switched off."""
    golden = [item.evaluator for item in iter_evaluators(checked) if item.evaluator.type == "expected_messages"]
    if expected is None and not golden:
        return checked
    has_calls = any(message.tool_calls for message in expected or () if message.role == "assistant")
    if not has_calls and not all(evaluator.skip for evaluator in golden):
        raise SpecError([Problem("expected_messages", "no assistant message holds tool calls to compare")])
    if golden or not has_calls:
        return checked
    return checked + check_evaluators([{"type": "expected_messages"}])


def can_fail(checks: Sequence[ConfiguredEvaluator]) -> bool:
    """Whether a case can fail by any of these."""
    for checked in checks:
        evaluator = checked.evaluator
        if evaluator.kind == "assertion" and evaluator.weight > 0 and not evaluator.skip:
            return True
    return False


def checks_anything(config: Any, problems: Sequence[Problem], path: str) -> bool:
    """Whether a configuration with these problems would check something if what is wrong in it were left out."""
    if not isinstance(config, Mapping) or not isinstance(config.get("type"), str):
        return True
    wrong = {problem.path.removeprefix(f"{path}.").partition(".")[0].partition("[")[0] for problem in problems}
    kept = {key: value for key, value in config.items() if key == "type" or key not in wrong}
    _, left = _checked(kept, path)
    return not any(problem.message.startswith("checks nothing") for problem in left)
