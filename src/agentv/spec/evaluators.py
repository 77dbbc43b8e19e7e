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


Key = tuple[str, bytes]
"""Where a configuration stands (its warnings say so) and what it says."""

_known: dict[Key, Checked] = {}
_seen: set[int] = set()
# A suite asks for the same few configurations again and again; a program that makes up a new one for every reply
# must neither fill the memory nor pay for keeping what nobody asks for twice.
MAX_KNOWN = 1024
MAX_SEEN = 16 * MAX_KNOWN


def check_evaluators(configs: Sequence[Any], path: str = "evaluators") -> list[Checked]:
    """Every evaluator, or a `SpecError` with everything that is wrong with any of them."""
    if not isinstance(configs, (list, tuple)):
        raise SpecError([Problem(path, "expected a list of evaluators")])
    problems: list[Problem] = []
    found: list[Checked] = []
    for index, config in enumerate(configs):
        place = f"{path}[{index}]"
        # The same object a second time is probably the same configuration; only its text tells for sure.
        text = _text(config) if _seen_before(id(config)) else None
        known = None if text is None else _known.get((place, text))
        if known is not None:
            found.append(known._replace(config=config))
            continue
        again = text is not None and _seen_before(hash((place, text)))
        checked, wrong = _check(config, text if again else None, place)
        problems += wrong
        if checked is not None:
            found.append(checked)
            if again and text is not None:
                _remember((place, text), checked)
    if problems:
        raise SpecError(problems)
    return found


def _text(config: Any) -> bytes | None:
    """The configuration as JSON; `None` when it is none."""
    try:
        return msgspec.json.encode(config) if isinstance(config, dict) else None
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError):
        return None


def _seen_before(mark: int) -> bool:
    """Whether this is at least the second time: only then a configuration is worth a closer look, then worth keeping.

    A mark that two share by chance costs that look and nothing else.
    """
    if mark in _seen:
        return True
    if len(_seen) >= MAX_SEEN:
        _seen.clear()
    _seen.add(mark)
    return False


def _remember(key: Key, checked: Checked) -> None:
    if len(_known) >= MAX_KNOWN:
        _known.clear()
    _known[key] = checked


def _check(config: Any, text: bytes | None, path: str) -> tuple[Checked | None, list[Problem]]:
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
    if "-" in name:
        config, text = {**config, "type": name.replace("-", "_")}, None
    evaluator, problems = build(cls, config, path, text)
    return (None, problems) if evaluator is None else _accept(evaluator, config, path)


def _accept(evaluator: Evaluator, config: Mapping[str, Any], path: str) -> tuple[Checked | None, list[Problem]]:
    problems = evaluator.check(path)
    if problems:
        return None, problems
    return Checked(evaluator, config, tuple(evaluator.warnings(path))), []
