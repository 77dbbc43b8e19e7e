"""AgentV's assertions and graders as evaluators."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentv.api.convert.agentv_npm import graders
from agentv.api.convert.base import UntranslatableError, Watched, check_evaluator
from agentv.api.convert.files import is_reachable, outside, read_structured
from agentv.api.convert.promptfoo.assertions import DETERMINISTIC, JUDGED, WITHOUT, AssertionScope, translate
from agentv.api.convert.promptfoo.text import javascript_pattern, literal
from agentv.api.convert.templates import RenderError, has_template, js_text, render_deep
from agentv.api.convert.writer import Commented, Remark
from agentv.matching.javascript import JavaScriptRegexError, without_flags

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.api.convert.agentv_npm.targets import TargetTable
    from agentv.api.convert.base import Conversion
    from agentv.api.convert.source import Place

GRADER = "agentv_grader.py"
_MODES = {"any_order", "in_order", "exact", "superset", "subset"}
_MATCH = {"exact": "exact", "superset": "partial", "subset": "subset", "ignore": "ignore"}
_INNER = ("assertions", "assert", "evaluators", "graders")
_JUDGED = ("llm-grader", "llm-judge", "llm-rubric", "rubrics", "rubric", "agent-rubric")
_SCRIPTS = ("code-grader", "code-judge", "script")
_SCRIPT_KEYS = {"name", "type", "command", "script", "cwd", "config", "weight", "metric", "required", "negate", "id"}


class Graders:
    """Translation of all graders of an eval."""

    def __init__(self, conversion: Conversion, targets: TargetTable, *, is_old: bool) -> None:
        self._conversion = conversion
        self._targets = targets
        self._is_old = is_old
        self.needs_judge = False
        self._criteria = ""
        self._expected: Any = None
        self._values: Mapping[str, Any] = {}
        self._included: list[Path] = []
        """Files of assertions that are being read."""

    def translate_all(
        self, entries: list[tuple[Any, Place]], criteria: str, expected: Any, values: Mapping[str, Any]
    ) -> list[Any]:
        """Return the evaluators of a case; plain sentences become one rubric, as AgentV does."""
        self._criteria, self._expected, self._values = criteria, expected, values
        sentences = [(entry, place) for entry, place in entries if isinstance(entry, str)]
        result: list[Any] = []
        if sentences:
            result += self._rubric(sentences)
        for entry, place in entries:
            if not isinstance(entry, str):
                result += self.translate(entry, place)
        return result

    def _rubric(self, sentences: list[tuple[str, Place]]) -> list[Any]:
        """Return one judge for all plain sentences, each of which has to be met."""
        texts: list[str] = []
        lost: list[Any] = []
        for sentence, place in sentences:
            try:
                text = str(self._rendered(sentence)).strip()
                if not text:
                    lost.append(Remark(place.leave_out("assertion", "it is empty").remark))
                    continue
                texts.append(text)
                place.report.count(place, is_translated=True, is_deterministic=False)
            except UntranslatableError as error:
                lost.append(Remark(place.leave_out("assertion", str(error)).remark))
                place.report.count(place, is_translated=False, is_deterministic=False)
        self.needs_judge |= bool(texts)
        if len(texts) == 1:
            return [*lost, {"type": "llm_judge", "criterion": texts[0]}]
        rubric = [{"criterion": text, "required": True} for text in texts]
        return [*lost, {"type": "llm_judge", "rubric": rubric}] if rubric else lost

    def translate(self, entry: Any, place: Place) -> list[Any]:
        """Return the evaluators for one grader, or the comment that says why it was left out."""
        if isinstance(entry, str):
            return self._rubric([(entry, place)])
        if isinstance(entry, Mapping) and isinstance(entry.get("include"), str):
            return self._include(entry["include"], place)
        if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
            place.report.count(place, is_translated=False, is_deterministic=True)
            return [Remark(place.leave_out("assertion", "it has no type").remark)]
        kind = entry["type"].replace("_", "-")
        return (
            self._composite(entry, place) if kind in {"composite", "assert-set"} else self._single(entry, kind, place)
        )

    def _single(self, entry: Mapping[str, Any], kind: str, place: Place) -> list[Any]:
        """Return the evaluator for a grader that is not made of others."""
        base = kind.removeprefix("not-")
        watched = Watched(entry)
        try:
            found = self._convert(watched, kind, place)
            if found is not None:
                found = self._finish(found, watched)
                check_evaluator(found)
        except UntranslatableError as error:
            place.report.count(place, is_translated=False, is_deterministic=base not in _JUDGED and base not in JUDGED)
            return [Remark(place.leave_out(entry["type"], str(error)).remark)]
        if found is None:
            return self._promptfoo(entry, kind, place)
        place.report.count(place, is_translated=True, is_deterministic=base not in _JUDGED)
        watched.report(place, str(entry["type"]), ("type", "id"))
        return [self._conversion.with_comments(place, found)]

    def _convert(self, entry: Mapping[str, Any], kind: str, place: Place) -> dict[str, Any] | None:
        """Return our evaluator; `None` for an assertion that AgentV shares with promptfoo."""
        own: dict[str, Callable[[Mapping[str, Any], Place], dict[str, Any]]] = {
            "equals": self._text("equals"),
            "starts-with": self._text("starts_with"),
            "ends-with": self._text("ends_with"),
            "regex": self._regex,
            "tool-trajectory": self._trajectory,
            "expected-tool-calls": self._expected_calls,
            "expected-messages": self._expected_calls,
            "skill-trigger": self._skill,
            "field-accuracy": lambda item, _: graders.field_accuracy(item, self._expected),
            **dict.fromkeys(_SCRIPTS, self._script),
            **dict.fromkeys(_JUDGED, self._judged),
            **graders.CONVERTERS,
        }
        return own[kind](entry, place) if kind in own else None

    def _promptfoo(self, entry: Mapping[str, Any], kind: str, place: Place) -> list[Any]:
        base = kind.removeprefix("not-")
        if base not in DETERMINISTIC and base not in JUDGED and base not in WITHOUT:
            place.report.count(place, is_translated=False, is_deterministic=True)
            return [Remark(place.leave_out(entry["type"], "it is an assertion of your own, or unknown").remark)]
        scope = AssertionScope(
            self._conversion, {"vars": self._values, **self._values}, graded=True, judges=self._find_judge
        )
        negated = {**entry, "type": f"not-{kind}" if entry.get("negate") is True else kind}
        found = translate({key: value for key, value in negated.items() if key != "negate"}, place, scope)
        return [item if isinstance(item, Remark) else self._with_required(item, entry) for item in found]

    def _find_judge(self, provider: Any, place: Place) -> str | None:
        name = self._targets.judge(provider, place)
        self.needs_judge |= name is None
        return name

    def _with_required(self, item: Any, entry: Mapping[str, Any]) -> Any:
        inner = item.value if isinstance(item, Commented) else item
        changed = dict(inner)
        name = entry.get("name") or entry.get("id")
        if name and "name" not in changed:
            changed = {"name": str(name), **changed}
        if entry.get("required"):
            changed["required"] = True
        return Commented(changed, item.above, item.behind) if isinstance(item, Commented) else changed

    def _finish(self, evaluator: dict[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
        name = entry.get("name") or entry.get("metric") or entry.get("id")
        result = {"name": str(name), **evaluator} if isinstance(name, str) and name else dict(evaluator)
        if entry.get("negate") is True:
            result = {
                **{key: result[key] for key in ("name",) if key in result},
                "type": "all_of",
                "not": True,
                "evaluators": [{key: value for key, value in result.items() if key != "name"}],
            }
        weight = entry.get("weight")
        if isinstance(weight, (int, float)) and not isinstance(weight, bool) and weight >= 0 and weight != 1:
            result["weight"] = weight
        if entry.get("required"):
            result["required"] = True
        return result

    def _rendered(self, value: Any) -> Any:
        if not has_template(value):
            return value
        try:
            return render_deep(value, {**self._values, "vars": self._values})
        except RenderError as error:
            raise UntranslatableError(str(error)) from error

    def _text(self, type_: str) -> Callable[[Mapping[str, Any], Place], dict[str, Any]]:
        def convert(entry: Mapping[str, Any], place: Place) -> dict[str, Any]:
            del place
            value = self._rendered(entry.get("value"))
            if not isinstance(value, (str, int, float)) or value == "":
                msg = "its value is no text"
                raise UntranslatableError(msg)
            return {"type": type_, "value": js_text(value).strip(), "trim": True}

        return convert

    def _regex(self, entry: Mapping[str, Any], place: Place) -> dict[str, Any]:
        del place
        pattern = self._rendered(entry.get("value", entry.get("pattern")))
        if not isinstance(pattern, str) or not pattern:
            msg = "its value is no pattern"
            raise UntranslatableError(msg)
        flags = str(entry.get("flags") or "")
        try:
            keys = javascript_pattern(without_flags(pattern, flags))
        except JavaScriptRegexError as error:
            raise UntranslatableError(str(error)) from error
        evaluator: dict[str, Any] = {"type": "regex", **keys}
        # Without regard to case, JavaScript and Python differ in letters such as the long s.
        return {**evaluator, "syntax": "javascript", "ignore_case": True} if "i" in flags else evaluator

    def _trajectory(self, entry: Mapping[str, Any], place: Place) -> dict[str, Any]:
        mode = entry.get("mode")
        if mode not in _MODES:
            msg = f"its mode {mode!r} is unknown"
            raise UntranslatableError(msg)
        evaluator: dict[str, Any] = {"type": "tool_trajectory"}
        minimums = entry.get("minimums")
        expected = entry.get("expected")
        if isinstance(minimums, Mapping) and minimums:
            evaluator["minimums"] = dict(minimums)
        if mode == "subset":
            items = [item for item in expected or () if isinstance(item, Mapping)]
            if any(item.get("args") not in (None, "any") for item in items) or not items:
                msg = "in its `subset` an expected call may be made any number of times, with these arguments"
                raise UntranslatableError(msg)
            return {**evaluator, "allowed": [str(item["tool"]) for item in items]}
        if isinstance(expected, list) and expected:
            evaluator["mode"] = {"superset": "any_order"}.get(str(mode), mode)
            evaluator["expected"] = [self._expected_call(item, entry) for item in expected]
            if mode == "in_order":
                evaluator["score"] = "recall"
                place.note("tool_trajectory", "a missing call does not hide the next one here")
        if len(evaluator) == 1:
            msg = "it has neither `minimums` nor `expected`"
            raise UntranslatableError(msg)
        return evaluator

    def _expected_call(self, item: Any, entry: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(item, Mapping) or not isinstance(item.get("tool"), str):
            msg = "an expected call names no tool"
            raise UntranslatableError(msg)
        call: dict[str, Any] = {"tool": item["tool"]}
        wanted = item.get("args", item.get("input"))
        mode = item.get("args_match", item.get("argsMatch", entry.get("args_match", entry.get("argsMatch"))))
        if mode is None:
            mode = "superset" if self._is_old else "exact"
        if wanted is not None and wanted != "any" and mode != "ignore":
            if isinstance(mode, list):
                present = [
                    name for name in mode if isinstance(wanted, Mapping) and str(name).partition(".")[0] in wanted
                ]
                call |= {"input": literal(wanted), "input_match": present} if present else {}
            elif mode in _MATCH:
                call["input"] = _whole_values(wanted) if mode == "superset" else literal(wanted)
                if mode != "exact":
                    call["input_match"] = _MATCH[mode]
            else:
                msg = f"its `args_match` {mode!r} is unknown"
                raise UntranslatableError(msg)
        duration = item.get("max_duration_ms", item.get("maxDurationMs"))
        return {**call, "max_duration_ms": duration} if isinstance(duration, (int, float)) else call

    def _expected_calls(self, entry: Mapping[str, Any], place: Place) -> dict[str, Any]:
        del entry, place
        return {"type": "expected_messages"}

    def _skill(self, entry: Mapping[str, Any], place: Place) -> dict[str, Any]:
        del place
        skill = entry.get("skill")
        if not isinstance(skill, str) or not skill:
            msg = "it names no skill"
            raise UntranslatableError(msg)
        expected = [{"tool": "Skill", "input": {"skill": skill}}]
        evaluator = {"type": "tool_trajectory", "mode": "superset", "input_match": "partial", "expected": expected}
        return {**evaluator, "not": True} if entry.get("should_trigger") is False else evaluator

    def _script(self, entry: Mapping[str, Any], place: Place) -> dict[str, Any]:
        written = entry.get("command", entry.get("script"))
        if isinstance(written, str):
            try:
                written = shlex.split(written)
            except ValueError as error:
                msg = f"its command cannot be read: {error}"
                raise UntranslatableError(msg) from error
        if not isinstance(written, list) or not written:
            msg = "it has no command"
            raise UntranslatableError(msg)
        if entry.get("provider") or entry.get("target"):
            msg = "it asks a model through AgentV"
            raise UntranslatableError(msg)
        folder = place.document.folder / str(entry.get("cwd") or ".")
        command: list[str] = []
        for part in map(str, written):
            path = folder / part
            is_script = not part.startswith("-") and path.is_file() and is_reachable(path, folder)
            command.append(f"./{self._conversion.copy(path)}" if is_script else part)
        if not any(part.startswith("./") for part in command):
            place.note("script", "its files were not found beside the eval: copy them")
        config = dict(entry["config"]) if isinstance(entry.get("config"), Mapping) else {}
        config |= {key: value for key, value in entry.items() if key not in _SCRIPT_KEYS}
        settings: dict[str, Any] = {"config": config} if config else {}
        if self._criteria:
            settings["criteria"] = self._criteria
        helper = self._conversion.helper(GRADER)
        evaluator: dict[str, Any] = {"type": "code", "command": ["python3", helper, *command]}
        return {**evaluator, "config": settings} if settings else evaluator

    def _judged(self, entry: Mapping[str, Any], place: Place) -> dict[str, Any]:
        found = graders.convert_judge(entry, self._criteria, place, self._rendered)
        name = self._find_judge(entry.get("target", entry.get("provider")), place)
        return {**found, "judge": name} if name is not None else found

    def _composite(self, entry: Mapping[str, Any], place: Place) -> list[Any]:
        key = next((key for key in _INNER if isinstance(entry.get(key), list)), None)
        aggregator = entry.get("aggregator") if isinstance(entry.get("aggregator"), Mapping) else {}
        kind = str(aggregator.get("type", "weighted_average")).replace("-", "_") if aggregator else "weighted_average"
        inner: list[Any] = []
        weights = aggregator.get("weights") if aggregator else None
        for at, item in enumerate(entry[key] if key else ()):
            changed = item
            if isinstance(weights, Mapping) and isinstance(item, Mapping) and item.get("name") in weights:
                changed = {**item, "weight": weights[item["name"]]}
            inner += self.translate(changed, place.at(key or "", at))
        lost = [item for item in inner if isinstance(item, Remark)]
        if kind not in {"weighted_average", "threshold"} or lost or not inner:
            reason = "not all of its graders could be kept, and its score is about all of them"
            if kind not in {"weighted_average", "threshold"}:
                reason = "its aggregator is a program or a model"
            return [*lost, Remark(place.leave_out(str(entry["type"]), reason).remark)]
        evaluator: dict[str, Any] = {"type": "all_of"}
        threshold = entry.get("threshold", aggregator.get("threshold") if aggregator else None)
        if isinstance(threshold, (int, float)) and 0 <= threshold < 1:
            evaluator["threshold"] = threshold
        evaluator["evaluators"] = inner
        watched = Watched(entry)
        made = self._finish(evaluator, watched)
        watched.report(place, str(entry["type"]), ("type", "id", "threshold", "aggregator", key or ""))
        return [self._conversion.with_comments(place, made)]

    def _read_included(self, path: Path, name: str, folder: Path) -> Any:
        if path in self._included:
            msg = "it includes itself"
            raise UntranslatableError(msg)
        if not is_reachable(path, folder):
            raise UntranslatableError(outside(name))
        return read_structured(path)

    def _include(self, name: str, place: Place) -> list[Any]:
        folder = place.document.folder
        names = (
            [folder / name]
            if "/" in name
            else [parent / ".agentv" / "templates" / f"{name}.yaml" for parent in (folder, *folder.resolve().parents)]
        )
        path = next((each for each in names if each.is_file()), None)
        if path is None:
            place.report.count(place, is_translated=False, is_deterministic=True)
            return [Remark(place.leave_out(f"include: {name}", "the file does not exist").remark)]
        try:
            data = self._read_included(path, name, folder)
        except UntranslatableError as error:
            place.report.count(place, is_translated=False, is_deterministic=True)
            return [Remark(place.leave_out(f"include: {name}", str(error)).remark)]
        items = (
            data
            if isinstance(data, list)
            else data.get("assertions", data.get("assert", []))
            if isinstance(data, Mapping)
            else []
        )
        self._included.append(path)
        found = [evaluator for item in items for evaluator in self.translate(item, place)]
        self._included.pop()
        return found


def _whole_values(wanted: Any) -> Any:
    """Return arguments whose inner objects have to be equal: AgentV's `superset` looks at the top level only."""
    if not isinstance(wanted, Mapping):
        return wanted
    return {key: {"$literal": value} if isinstance(value, Mapping) else value for key, value in wanted.items()}
