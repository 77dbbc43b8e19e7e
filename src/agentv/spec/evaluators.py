"""Evaluators from their configurations; each distinct configuration is validated once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec.structs import replace

from agentv.errors import Problem, SpecError
from agentv.evals import ConfiguredEvaluator, iter_evaluators
from agentv.other_tools import assertion_hint
from agentv.registry import EVALUATORS, evaluator_names, find_evaluator
from agentv.spec.command_line import split_command
from agentv.spec.validation import (
    TOO_DEEP,
    build,
    choice_message,
    encode,
    is_too_deep,
    not_json_problem,
    short_repr,
)

if TYPE_CHECKING:
    from agentv.model.conversation import Message
    from agentv.protocols import CompositeEvaluator, Evaluator


NEVER_FAILS = "this can never fail: every score reaches a threshold of 0; use `kind: metric` to record without judging"
CASE_NEVER_FAILS = "this can never fail: every score reaches a threshold of 0, and no evaluator is `required`"
NOTHING_CHECKED = "checks nothing: add `evaluators` or tool calls in `expected_messages`"
REQUIRED_ATTRIBUTES = (
    *("type", "name", "kind", "weight", "threshold", "required", "skip", "negate", "executes", "nested"),
    *("asks", "inner", "check", "warnings", "sides", "result"),
)
"""Attributes that an evaluator object must have, besides `evaluate`."""
Key = tuple[str, bytes]
"""Path of a configuration (its warnings contain the path), and its JSON."""

_Checked = tuple[ConfiguredEvaluator | None, list[Problem]]
"""An evaluator, or `None` and its problems."""

_known: dict[Key, ConfiguredEvaluator] = {}
_seen: set[int] = set()
# A suite uses the same few configurations again and again. A program that makes a new one for every reply must not fill
# the memory, so a configuration is cached when it is used for the second time.
MAX_KNOWN = 1024
MAX_SEEN = 16 * MAX_KNOWN


def check_evaluators(configs: Sequence[Any], path: str = "evaluators") -> list[ConfiguredEvaluator]:
    """Return the evaluators, or raise `SpecError` with all problems."""
    if not isinstance(configs, (list, tuple)):
        raise SpecError([Problem(path, "expected a list of evaluators")])
    evaluators, problems = _check_each(configs, path)
    if problems:
        raise SpecError(problems)
    return evaluators


def _check_each(configs: Sequence[Any], path: str) -> tuple[list[ConfiguredEvaluator], list[Problem]]:
    problems: list[Problem] = []
    evaluators: list[ConfiguredEvaluator] = []
    for index, config in enumerate(configs):
        evaluator, new_problems = _check_config(config, f"{path}[{index}]")
        problems += new_problems
        if evaluator is not None:
            evaluators.append(evaluator)
    return evaluators, problems


def _check_config(config: Any, path: str) -> _Checked:
    if not isinstance(config, (dict, Mapping)):  # `dict` first, since `isinstance` of an abstract class is slow
        return _check_object(config, path)
    try:
        # The evaluator is built from this text, so it shares nothing with an object that may change later, and tuples
        # are lists.
        text = encode(config if isinstance(config, dict) else dict(config))
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        return None, [not_json_problem(error, path)]
    key = (path, text)
    known = _known.get(key)
    if known is not None:
        return replace(known, config=config), []
    checked, problems = _check_mapping(config, text, path)
    if checked is not None:
        _cache(key, checked)
    return checked, problems


def _check_object(config: Any, path: str) -> _Checked:
    """Check an evaluator object that was created in Python."""
    if not callable(getattr(config, "evaluate", None)):
        return None, [Problem(path, f"expected a mapping with a `type`, got {short_repr(config)}")]
    if isinstance(config, type):
        return None, [Problem(path, f"{config.__name__!r} is a class of evaluators: write `{config.__name__}()`")]
    missing = [name for name in REQUIRED_ATTRIBUTES if not hasattr(config, name)]
    if missing:
        fix = "derive it from `agentv.evaluators.base.EvaluatorBase`"
        return None, [Problem(path, f"this evaluator lacks {', '.join(missing)}; {fix}")]
    return _configure(config, {}, path)


def _cache(key: Key, checked: ConfiguredEvaluator) -> None:
    """Cache a configuration that is used for the second time."""
    if hash(key) in _seen:
        if len(_known) >= MAX_KNOWN:
            _known.clear()
        _known[key] = checked
    else:
        if len(_seen) >= MAX_SEEN:
            _seen.clear()
        _seen.add(hash(key))


def _check_mapping(config: Mapping[str, Any], text: bytes, path: str) -> _Checked:
    name = config.get("type")
    if not isinstance(name, str):
        return None, [Problem(f"{path}.type", f"required; one of {', '.join(EVALUATORS)}")]
    cls = find_evaluator(name)
    if cls is None:
        return None, [Problem(f"{path}.type", _unknown_type(name))]
    if is_too_deep(text):
        return None, [Problem(path, TOO_DEEP)]
    if "-" in name:
        config = {**config, "type": name.replace("-", "_")}
        text = msgspec.json.encode(config)
    if isinstance(config.get("command"), str):
        split, problems = split_command(config, name, path)
        if problems:
            return None, problems
        text = msgspec.json.encode(split)
    evaluator, problems = build(cls, text, path)
    if evaluator is not None:
        return _configure(evaluator, config, path)
    nested = cls.nested
    inside = config.get(nested) if nested else None
    # Problems of nested evaluators are reported in the same pass.
    inner = _check_each(inside, f"{path}.{nested}")[1] if isinstance(inside, (list, tuple)) else []
    return None, [*problems, *inner]


def _unknown_type(name: str) -> str:
    """Return the message for an unknown type: what to write for an assertion of another tool, or a suggestion."""
    names = evaluator_names()
    hint = assertion_hint(name)
    if not hint:
        return choice_message(name, names)
    return f"got {short_repr(name)}, which is a name of another tool: {hint}. Expected one of {', '.join(names)}"


def _configure(evaluator: Evaluator, config: Mapping[str, Any], path: str) -> _Checked:
    nested = evaluator.nested
    inner, problems = _check_each(getattr(evaluator, nested), f"{path}.{nested}") if nested else ([], [])
    if inner and not problems:
        evaluator = cast("CompositeEvaluator", evaluator).with_inner(tuple(inner))
    problems = [*problems, *evaluator.check(path)]
    if problems:
        return None, problems
    warnings = [*evaluator.warnings(path), *(warning for checked in inner for warning in checked.warnings)]
    if evaluator.threshold == 0 and evaluator.kind == "assertion" and evaluator.weight > 0:
        warnings.append(f"{path}.threshold: {NEVER_FAILS}")
    return ConfiguredEvaluator(evaluator, config, tuple(warnings)), []


def with_expected_messages(
    checked: list[ConfiguredEvaluator], expected: tuple[Message, ...] | None
) -> list[ConfiguredEvaluator]:
    """Add an `expected_messages` evaluator if there are expected tool calls, unless one is configured or skipped."""
    golden = [item.evaluator for item in iter_evaluators(checked) if item.evaluator.type == "expected_messages"]
    if expected is None and not golden:
        return checked
    has_calls = has_expected_calls(expected)
    if not has_calls and not all(evaluator.skip for evaluator in golden):
        raise SpecError([Problem("expected_messages", "no assistant message has tool calls to compare")])
    if golden or not has_calls:
        return checked
    return checked + check_evaluators([{"type": "expected_messages"}])


def has_expected_calls(expected: Sequence[Message] | None) -> bool:
    """Return whether expected messages hold tool calls to compare."""
    return any(message.tool_calls for message in expected or () if message.role == "assistant")


def can_fail(checks: Sequence[ConfiguredEvaluator]) -> bool:
    """Return whether any of these evaluators can fail a case."""
    for checked in checks:
        evaluator = checked.evaluator
        if evaluator.kind == "assertion" and evaluator.weight > 0 and not evaluator.skip:
            return True
    return False
