"""promptfoo's assertions as evaluators; AgentV's current ones have the same names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from agentv.api.convert.base import UntranslatableError, check_evaluator, counts, is_number, is_share
from agentv.api.convert.files import is_file, load_value
from agentv.api.convert.promptfoo import judged, scripts, text, trajectory
from agentv.api.convert.templates import RenderError, has_template, js_text, render_deep
from agentv.api.convert.writer import Commented, Remark

if TYPE_CHECKING:
    from agentv.api.convert.base import Conversion
    from agentv.api.convert.source import Place


class Assertion(Struct, frozen=True):
    """An assertion with its value rendered for one test."""

    type: str
    """Type without `not-`."""
    value: Any
    entry: Mapping[str, Any]
    negated: bool
    graded: bool
    """True if its score counts, not only its verdict."""
    place: Place
    scope: AssertionScope

    @property
    def transform(self) -> str | None:
        """Code that changes the output before it is checked."""
        own = self.entry.get("transform")
        parts = [part for part in (self.scope.transform, own) if isinstance(part, str)]
        return "\n\0\n".join(parts) if parts else None

    @property
    def threshold(self) -> float | None:
        """The threshold, if it is a number."""
        threshold = self.entry.get("threshold")
        return threshold if isinstance(threshold, (int, float)) and not isinstance(threshold, bool) else None

    def text_value(self) -> str:
        """Return the value as a text; raise `UntranslatableError`."""
        if isinstance(self.value, (str, int, float)) and self.value != "":
            return js_text(self.value)
        msg = "its value is no text"
        raise UntranslatableError(msg)

    def negate(self, evaluator: dict[str, Any], *, is_partial: bool = False) -> dict[str, Any]:
        """Return the evaluator inverted if the assertion is; one with partial scores is wrapped first."""
        if not self.negated:
            return evaluator
        if is_partial:
            return {"type": "all_of", "not": True, "evaluators": [evaluator]}
        return {**evaluator, "not": True}


Convert = Callable[["Assertion"], dict[str, Any]]

DETERMINISTIC: dict[str, Convert] = {
    **text.CONVERTERS,
    **trajectory.CONVERTERS,
    **scripts.CONVERTERS,
}
"""Assertions that no model decides, and the functions that translate them."""
JUDGED: dict[str, Convert] = judged.CONVERTERS
"""Assertions that a model decides."""
_NO_PARSER = "it needs a parser or a word list that agentv does not bring along"
_NO_MODEL = "it needs a model of text (embeddings) or a service"
_MANY = "it compares answers with one another: `agentv compare --judge` does so for two results"
WITHOUT: dict[str, str] = {
    **dict.fromkeys(
        ("is-sql", "contains-sql", "is-html", "contains-html", "bleu", "gleu", "meteor", "rouge-n"), _NO_PARSER
    ),
    **dict.fromkeys(("perplexity", "perplexity-score"), "it needs log-probabilities, which are no part of a reply"),
    **dict.fromkeys(
        ("similar", "similar:cosine", "similar:dot", "similar:euclidean", "classifier", "moderation", "pi"), _NO_MODEL
    ),
    **dict.fromkeys(("select-best", "max-score"), _MANY),
    "human": "nobody is asked while an eval runs",
}
"""Assertions without a counterpart, and the reasons."""
NOT_DETERMINISTIC = {
    *("similar", "similar:cosine", "similar:dot", "similar:euclidean", "classifier", "moderation", "pi"),
    *("select-best", "human", "perplexity", "perplexity-score"),
}
WITHOUT_TEXT = {"cost", "latency"}
"""Assertions that look at figures of a run."""
KNOWN_KEYS = {
    *("type", "value", "threshold", "weight", "metric", "config", "transform", "provider", "rubricPrompt"),
    *("contextTransform", "name", "description", "required", "negate", "not", "assert", "id", "enabled"),
}


View = Literal["answer", "turn", "transcript"]
"""Part that an assertion looks at: one answer, that of a turn, or a whole conversation with the words of the user."""
_TRANSCRIPT = (
    "promptfoo checks the whole conversation as one text, with the words of the user: choose a part with `over`"
)
_TURN_VARS = "its code may use the variables of one turn, and a conversation here has one set of variables"


class AssertionScope(Struct, frozen=True):
    """Settings that hold for all assertions of a test."""

    conversion: Conversion
    vars: Mapping[str, Any]
    graded: bool = False
    """True if scores count, not only verdicts: the test or a set of assertions has a threshold."""
    view: View = "answer"
    transform: str | None = None
    """Code that changes the output before it is checked."""
    tools: tuple[Any, ...] | None = None
    """Tools of the provider, if all providers have the same."""
    parses_json: bool = False
    """True if the provider hands over structured output as an object."""
    judges: Callable[[Any, Place], str | None] | None = None
    """Returns the name of the target that judges, for a provider of the source."""
    judge: Any = None
    """Provider that grades, from the options of the test."""
    judge_place: Place | None = None
    """Place of this provider."""
    rubric_prompt: Any = None


def translate(entry: Any, place: Place, scope: AssertionScope, *, graded: bool | None = None) -> list[Any]:
    """Return the evaluators for one assertion, or the comment that says why it was left out."""
    if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
        finding = place.leave_out("assertion", "it has no type")
        place.report.count(place, is_translated=False, is_deterministic=True)
        return [Remark(finding.remark)]
    if entry["type"] == "assert-set":
        return _translate_set(entry, place, scope)
    name = str(entry["type"])
    negated = name.startswith("not-")
    base = name.removeprefix("not-")
    is_deterministic = base not in JUDGED and base not in NOT_DETERMINISTIC and ":redteam:" not in base
    try:
        convert = _converter(base)
        _check_threshold(base, entry)
        _check_view(base, entry, scope)
        value = entry.get("value")
        rendered = _render(value, scope.vars)
        if base not in scripts.CONVERTERS:
            rendered = _load(rendered, place)
        assertion = Assertion(
            type=base,
            value=rendered,
            entry=entry,
            negated=negated,
            graded=scope.graded if graded is None else graded,
            place=place,
            scope=scope,
        )
        if assertion.transform is not None and base in DETERMINISTIC and base not in scripts.CONVERTERS:
            evaluator = scripts.convert_transformed(assertion)
        else:
            evaluator = convert(assertion)
        evaluator = finish(evaluator, assertion)
        check_evaluator(evaluator)
    except UntranslatableError as error:
        place.report.count(place, is_translated=False, is_deterministic=is_deterministic)
        return [Remark(place.leave_out(name, str(error)).remark)]
    place.report.count(place, is_translated=True, is_deterministic=is_deterministic)
    _report_other_keys(entry, place)
    return [_described(entry, scope.conversion.with_comments(place, evaluator))]


def _described(entry: Mapping[str, Any], evaluator: Any) -> Any:
    """Return an evaluator with the description and the reason of its assertion as comments."""
    texts = [entry[key] for key in ("description", "reason") if isinstance(entry.get(key), str) and entry[key].strip()]
    if not texts:
        return evaluator
    noted = evaluator if isinstance(evaluator, Commented) else Commented(evaluator)
    return Commented(noted.value, (*texts, *noted.above), noted.behind)


def finish(evaluator: dict[str, Any], assertion: Assertion) -> dict[str, Any]:
    """Add the keys that every assertion may have: metric and weight."""
    entry = assertion.entry
    result: dict[str, Any] = {}
    metric = entry.get("metric")
    if isinstance(metric, str) and metric.strip():
        result["name"] = metric if not has_template(metric) else str(_render(metric, assertion.scope.vars))
    result.update(evaluator)
    weight = entry.get("weight")
    if isinstance(weight, (int, float)) and not isinstance(weight, bool) and weight not in {1, None}:
        if weight < 0:
            msg = f"its weight of {weight} is negative"
            raise UntranslatableError(msg)
        result["weight"] = weight
    return result


def _translate_set(entry: Mapping[str, Any], place: Place, scope: AssertionScope) -> list[Any]:
    """Translate an `assert-set`: all of its assertions, or a share of their weighted score."""
    threshold = entry.get("threshold")
    has_threshold = is_share(threshold)
    items = entry.get("assert")
    inner: list[Any] = []
    for at, item in enumerate(items if isinstance(items, list) else []):
        inner += translate(item, place.at("assert", at), scope, graded=scope.graded or has_threshold)
    kept = [item for item in inner if not isinstance(item, Remark)]
    lost = [item for item in inner if isinstance(item, Remark)]
    if has_threshold and lost:
        # The share of the rest would be another share: with one assertion less, the set may pass where it did not.
        reason = "its threshold is about all of its assertions, and not all of them could be kept"
        return [*lost, Remark(place.leave_out("assert-set", reason).remark)]
    if not kept:
        return [*lost, Remark(place.leave_out("assert-set", "none of its assertions could be kept").remark)]
    if not any(map(counts, kept)):
        if scope.graded or has_threshold:
            reason = "all of its assertions have a weight of 0, so that it has no score"
            return [*lost, Remark(place.leave_out("assert-set", reason).remark)]
        place.note("assert-set", "all of its assertions have a weight of 0: they are written without it")
        return inner
    result: dict[str, Any] = {}
    if isinstance(entry.get("metric"), str):
        result["name"] = entry["metric"]
    result["type"] = "all_of"
    if threshold is not None and not has_threshold:
        place.at("threshold").leave_out("assert-set.threshold", "it is no number from 0 to 1")
    if isinstance(threshold, (int, float)) and has_threshold and threshold < 1:
        result["threshold"] = threshold
    weight: Any = entry.get("weight")
    # A set of weight 0 counts for nothing in a score, but fails a test without a threshold.
    if is_number(weight) and weight != 1 and (weight > 0 or (weight == 0 and scope.graded)):
        result["weight"] = weight
    result["evaluators"] = inner
    _report_set_keys(entry, place)
    return [scope.conversion.with_comments(place, result)]


def _report_set_keys(entry: Mapping[str, Any], place: Place) -> None:
    for key in entry:
        if key not in {"type", "assert", "threshold", "weight", "metric"}:
            place.at(str(key)).leave_out(f"assert-set.{key}", "this key of a set has no counterpart")


def _render(value: Any, values: Mapping[str, Any]) -> Any:
    try:
        return render_deep(value, values) if has_template(value) else value
    except RenderError as error:
        raise UntranslatableError(str(error)) from error


def _load(value: Any, place: Place) -> Any:
    """Return a value with the files that it names read; raise `UntranslatableError`."""
    if isinstance(value, list):
        return [load_value(item, place) for item in value]
    return load_value(value, place)


def _converter(base: str) -> Convert:
    """Return the function for a type of assertions; raise `UntranslatableError`."""
    convert = DETERMINISTIC.get(base) or JUDGED.get(base)
    if convert is not None:
        return convert
    unknown = "promptfoo has no assertion of this name"
    reason = "red teaming judges attacks that a model writes" if ":redteam:" in base else unknown
    raise UntranslatableError(WITHOUT.get(base, reason))


def _check_threshold(base: str, entry: Mapping[str, Any]) -> None:
    """Refuse a threshold that is no number; raise `UntranslatableError`."""
    threshold = entry.get("threshold")
    if threshold is not None and not is_number(threshold):
        msg = f"its threshold {threshold!r} is no number"
        raise UntranslatableError(msg)
    if base in judged.CONVERTERS and threshold is not None and not is_share(threshold):
        msg = f"its threshold of {threshold} is no number from 0 to 1"
        raise UntranslatableError(msg)


def _check_view(base: str, entry: Mapping[str, Any], scope: AssertionScope) -> None:
    """Refuse an assertion that looks at a conversation in another way than evaluators here do."""
    is_text = (base in text.CONVERTERS and base not in WITHOUT_TEXT) or base in scripts.CONVERTERS
    if scope.view == "transcript" and is_text:
        raise UntranslatableError(_TRANSCRIPT)
    code = str(entry.get("value"))
    if scope.view == "turn" and base in scripts.CONVERTERS and ("vars" in code or is_file(code)):
        raise UntranslatableError(_TURN_VARS)


def _report_other_keys(entry: Mapping[str, Any], place: Place) -> None:
    base = str(entry["type"]).removeprefix("not-")
    if entry.get("config") and base not in scripts.CONVERTERS:
        place.at("config").leave_out(f"{entry['type']}.config", "this assertion has no settings here")
    for key in entry:
        if key not in KNOWN_KEYS and key != "reason":
            place.at(key).leave_out(f"{entry['type']}.{key}", "this key of an assertion has no counterpart")
