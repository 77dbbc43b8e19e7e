"""Evaluator configurations made into evaluators, each distinct one checked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentv.errors import Problem, SpecError
from agentv.registry import EVALUATORS, evaluator_names, find_evaluator
from agentv.spec.check import build, not_a_choice

if TYPE_CHECKING:
    from agentv.protocols import Evaluator


class Checked(NamedTuple):
    """An evaluator that may run."""

    evaluator: Evaluator
    config: Mapping[str, Any]
    warnings: tuple[str, ...] = ()


_known: dict[bytes, Checked] = {}
# Enough for a suite of many cases; a program that makes up expectations without end must not grow without end.
MAX_KNOWN = 4096


def check_evaluators(configs: Sequence[Any], path: str = "evaluators") -> list[Checked]:
    """Every evaluator, or a `SpecError` with everything that is wrong with any of them."""
    problems: list[Problem] = []
    found: list[Checked] = []
    if isinstance(configs, (str, Mapping)) or not isinstance(configs, Sequence):
        raise SpecError([Problem(path, "expected a list of evaluators")])
    for index, config in enumerate(configs):
        place = f"{path}[{index}]"
        key = _key(config, place)
        checked = _known.get(key) if key is not None else None
        if checked is None:
            checked, wrong = _check(config, place)
            problems += wrong
            if checked is not None and key is not None:
                if len(_known) >= MAX_KNOWN:
                    _known.clear()
                _known[key] = checked
        if checked is not None:
            found.append(checked)
    if problems:
        raise SpecError(problems)
    return found


def _key(config: Any, path: str) -> bytes | None:
    if not isinstance(config, Mapping):
        return None
    try:
        # The place is part of the key, because warnings name it.
        return path.encode() + msgspec.json.encode(config)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return None


def _check(config: Any, path: str) -> tuple[Checked | None, list[Problem]]:
    if not isinstance(config, Mapping):
        if callable(getattr(config, "evaluate", None)):
            return _accept(config, {}, path)
        return None, [Problem(path, f"expected a mapping with a `type`, got {config!r}")]
    name = config.get("type")
    if not isinstance(name, str):
        return None, [Problem(f"{path}.type", f"required; one of {', '.join(EVALUATORS)}")]
    cls = find_evaluator(name)
    if cls is None:
        return None, [Problem(f"{path}.type", not_a_choice(name, evaluator_names()))]
    canonical = {**config, "type": name.replace("-", "_")}
    evaluator, problems = build(cls, canonical, path)
    return (None, problems) if evaluator is None else _accept(evaluator, config, path)


def _accept(evaluator: Evaluator, config: Mapping[str, Any], path: str) -> tuple[Checked | None, list[Problem]]:
    problems = evaluator.check(path)
    if problems:
        return None, problems
    return Checked(evaluator, config, tuple(evaluator.warnings(path))), []
