"""What a check of the user's gave back, made into a result: a yes or no, a number, or words with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from agentv.errors import EvaluationError, suggest
from agentv.jsonio import scrub, scrub_text
from agentv.matching.diff import quote
from agentv.model.result import EvaluatorResult
from agentv.scoring.outcome import reaches

if TYPE_CHECKING:
    from agentv.evaluators.base import EvaluatorBase

KEYS = ("score", "hits", "misses", "details", "error")
EXPECTED = "true or false, a score from 0 to 1, a mapping with a `score`, or a pair of one of these and a reason"
MAX_SENTENCE = 1_000
_PAIR = 2


class Finding(NamedTuple):
    """A score and what there is to say about it."""

    score: float
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    details: dict[str, Any] = {}
    reason: str | None = None
    """A hit or a miss, as the score may be."""


def result_of(value: Any, evaluator: EvaluatorBase) -> EvaluatorResult:
    """The result under this evaluator's name and by its threshold; `EvaluationError` when the value means nothing."""
    if isinstance(value, EvaluatorResult):
        if value.status in ("error", "skipped"):
            return evaluator.result(value.status, None, value.hits, value.misses, value.details)
        score = value.score if value.score is not None else float(value.status == "pass")
        value = {"score": score, "hits": value.hits, "misses": value.misses, "details": value.details}
    found = _read(value)
    passed = reaches(found.score, evaluator.threshold)
    hits, misses = found.hits, found.misses
    if not hits and not misses:
        sentence = found.reason or _plainly(evaluator, found.score)
        hits, misses = ((sentence,), ()) if passed else ((), (sentence,))
    return evaluator.result("pass" if passed else "fail", found.score, hits, misses, found.details)


def _plainly(evaluator: EvaluatorBase, score: float) -> str:
    name = evaluator.name or evaluator.type
    if score in (0.0, 1.0):
        return f"{name} {'holds' if score else 'does not hold'}"
    return f"{name} gives {score:.2f}, and {evaluator.threshold:g} is wanted"


def _read(value: Any) -> Finding:
    if isinstance(value, Mapping):
        return _of_mapping(value)
    if isinstance(value, tuple) and len(value) == _PAIR and isinstance(value[1], str):
        return Finding(_score(value[0]), reason=_sentence(value[1]))
    return Finding(_score(value))


def _of_mapping(value: Mapping[Any, Any]) -> Finding:
    for key in value:
        if key not in KEYS:
            hint = suggest(key, KEYS) or f"; expected one of {', '.join(KEYS)}"
            msg = f"the check gave an unknown key {key!r}{hint}"
            raise EvaluationError(msg)
    if value.get("error") is not None:
        raise EvaluationError(_sentence(value["error"]))
    if value.get("score") is None:
        msg = "the check gave a mapping without a `score`"
        raise EvaluationError(msg)
    details = value.get("details") or {}
    if not isinstance(details, Mapping):
        msg = f"the check gave `details` that are no mapping: {quote(details)}"
        raise EvaluationError(msg)
    return Finding(
        _score(value["score"]),
        _sentences(value.get("hits"), "hits"),
        _sentences(value.get("misses"), "misses"),
        scrub(details),
    )


def _score(value: Any) -> float:
    if value is None:
        msg = f"the check returned nothing; expected {EXPECTED}"
        raise EvaluationError(msg)
    if isinstance(value, bool):
        return float(value)
    # Numbers of other libraries say what they are when they are asked.
    number = None if isinstance(value, (str, bytes)) else _number(value)
    if number is None:
        msg = f"the check returned a {type(value).__name__}; expected {EXPECTED}"
        raise EvaluationError(msg)
    if not 0.0 <= number <= 1.0:
        msg = f"a score lies between 0 and 1; the check gave {number:g}"
        raise EvaluationError(msg)
    return number


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _sentences(value: Any, key: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (_sentence(value),)
    if not isinstance(value, Sequence):
        msg = f"the check gave `{key}` that are no list of sentences: {quote(value)}"
        raise EvaluationError(msg)
    return tuple(map(_sentence, value))


def _sentence(value: Any) -> str:
    text = scrub_text(value if isinstance(value, str) else quote(value))
    return text if len(text) <= MAX_SENTENCE else f"{text[:MAX_SENTENCE]}…"
