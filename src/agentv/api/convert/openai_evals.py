"""OpenAI Evals: an eval of the hosted product (`data_source_config`, `testing_criteria`) with its runs and rows."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from agentv.api.convert.base import (
    CaseOrigin,
    UntranslatableError,
    Watched,
    as_mapping,
    check_evaluator,
    finish_case,
    is_number,
    missing_target,
    slug,
)
from agentv.api.convert.files import read_json_lines
from agentv.api.convert.openai_text import (
    OUTPUT,
    OUTPUT_JSON,
    SAMPLE,
    fill,
    make_input,
    pointer,
    prompt_remarks,
    read_messages,
    reference_text,
    same_text,
    select,
    text_of,
)
from agentv.api.convert.source import Place, TableDocument
from agentv.api.convert.templates import has_template
from agentv.api.convert.writer import Remark

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.api.convert.base import Conversion

CHECKS = "openai_checks.py"
MAX_INLINE = 30
"""Number of rows up to which they are cases in the file; more of them are a dataset."""
_NO_ROWS = "the export holds no rows: put them beside it as JSONL of the same name, or into `dataset`"
_NO_PROMPT = "the export names no prompt (`input_messages` of a run): write the input"
_SAMPLE_KEPT = "it is a recorded output, not a part of the case: `agentv score` evaluates those"
_ROW_KEPT = "it is about a run, not a part of the case"
_ROW_KEYS = ("id", "object", "created_at", "datasource_item_id", "eval_id", "run_id", "status")
ROWS = ("items", "rows", "output_items", "dataset")
"""Keys of an export that hold its rows."""
_RUN_KEYS = (
    *("id", "object", "eval_id", "name", "status", "model", "created_at", "error", "report_url", "data_source"),
    *("result_counts", "per_model_usage", "per_testing_criteria_results"),
)
"""Keys of a run that are read, or hold its results."""
_NO_VALUE = "the row lacks a value of the prompt"
_MEASURES = {"fuzzy_match", *(f"rouge_{number}" for number in range(1, 6)), "rouge_l"}
_NO_THRESHOLD = "it names no `pass_threshold`: what passes is not written"
_TARGET = "the export names no model: define the target that is tested"


def is_openai_eval(data: Any, path: Path) -> bool:
    """Return whether a document is an eval, or a list or an export that holds some."""
    del path
    return bool(_find_evals(data, ""))


def _find_evals(data: Any, path: str) -> list[tuple[Mapping[str, Any], str, Mapping[str, Any]]]:
    """Return the evals of a document with their paths, and the object that their runs are in."""
    if not isinstance(data, Mapping):
        if not isinstance(data, list):
            return []
        return [found for at, item in enumerate(data) for found in _find_evals(item, f"{path}[{at}]")]
    if isinstance(data.get("testing_criteria"), list) and ("data_source_config" in data or "name" in data):
        return [(data, path, data)]
    prefix = f"{path}." if path else ""
    if isinstance(data.get("eval"), Mapping):
        return [(found, where, data) for found, where, _ in _find_evals(data["eval"], f"{prefix}eval")]
    for key in ("evals", "data"):
        if isinstance(data.get(key), list):
            return _find_evals(data[key], f"{prefix}{key}")
    return []


def convert(conversion: Conversion) -> None:
    """Convert all evals of a document."""
    found = _find_evals(conversion.document.data, "")
    for number, (eval_, path, around) in enumerate(found, start=1):
        suffix = "" if len(found) == 1 else slug(str(eval_.get("name") or number)) or str(number)
        _EvalConversion(conversion, eval_, around, conversion.place(path)).convert(suffix)


class _EvalConversion:
    """Conversion of one eval."""

    def __init__(
        self, conversion: Conversion, eval_: Mapping[str, Any], around: Mapping[str, Any], place: Place
    ) -> None:
        self._conversion = conversion
        self._eval = eval_
        self._place = place
        self._around = around
        self._around_place = place if around is eval_ else conversion.place(place.path[: -len("eval")].rstrip("."))
        self._placed_runs = self._find_runs()
        self._targets: list[dict[str, Any]] = []
        self._judges: dict[str, str] = {}
        """Names of the targets that judge, by their settings."""

    def convert(self, suffix: str) -> None:
        """Add the eval to the conversion."""
        self._report_keys()
        self._report_runs()
        tested = self._read_targets()
        rows = self._rows()
        data: dict[str, Any] = {}
        if isinstance(self._eval.get("name"), str) and self._eval["name"]:
            data["description"] = self._eval["name"]
        as_dataset = len(rows) > MAX_INLINE and self._has_texts(rows)
        template = self._template()
        body: dict[str, Any] = {}
        origins: list[CaseOrigin] = []
        if as_dataset:
            body, origins = self._dataset(rows, template, suffix)
        else:
            cases = [self._case(row, template, number, origins) for number, row in enumerate(rows, start=1)]
            body["cases"] = cases or [self._empty_case(template, origins)]
        if self._judges:
            data["target"] = tested[0] if len(tested) == 1 else tested
        data["targets"] = self._targets
        names = [f"run: {run['name']}" for run, _ in self._placed_runs if run.get("name")]
        self._conversion.add_eval(suffix, {**data, **body}, origins, header=names)

    def _report_keys(self) -> None:
        known = {
            *("id", "object", "name", "data_source_config", "testing_criteria", "created_at", "runs", "run", *ROWS),
        }
        for key, value in self._eval.items():
            if key not in known and value not in (None, {}, []):
                self._place.at(key).leave_out(key, "this key of an eval has no counterpart")
        if self._around is not self._eval:
            for key, value in self._around.items():
                if key not in {"eval", "run", "runs", *ROWS} and value not in (None, "", {}, []):
                    self._around_place.at(key).leave_out(key, "this key of an export has no counterpart")
        config = self._eval.get("data_source_config")
        kind = config.get("type") if isinstance(config, Mapping) else None
        if kind in {"logs", "stored_completions"}:
            reason = "its rows are logs on the server: export them as JSONL"
            self._place.at("data_source_config").leave_out(f"data_source_config.{kind}", reason)
        elif isinstance(config, Mapping):
            self._place.at("data_source_config").note("data_source_config", "rows are not checked against their schema")

    def _find_runs(self) -> list[tuple[Mapping[str, Any], Place]]:
        """Return the runs of the eval with their places."""
        for holder, where, key in (
            (self._around, self._around_place, "runs"),
            (self._eval, self._place, "runs"),
            (self._around, self._around_place, "run"),
        ):
            if key in holder:
                runs, place = holder[key], where.at(key)
                if isinstance(runs, Mapping) and "data" in runs:
                    runs, place = runs["data"], place.at("data")
                listed = (
                    [(run, place.at(at)) for at, run in enumerate(runs)] if isinstance(runs, list) else [(runs, place)]
                )
                return [(run, where) for run, where in listed if isinstance(run, Mapping)]
        return []

    def _report_runs(self) -> None:
        """Name what runs hold beside their prompt, their model and their rows."""
        for run, place in self._placed_runs:
            Watched(run).report(place, "run", _RUN_KEYS)
            source, where = as_mapping(run.get("data_source")), place.at("data_source")
            known = ("type", "model", "sampling_params", "input_messages", "source")
            Watched(source).report(where, "data_source", known)
            rows, inside = as_mapping(source.get("source")), where.at("source")
            Watched(rows).report(inside, "source", ("type", "content"))
            for at, row in enumerate(_list(rows.get("content"))):
                for key in as_mapping(row):
                    if key != "item":
                        inside.at("content", at, str(key)).leave_out(f"row.{key}", _SAMPLE_KEPT)
            written, where = as_mapping(source.get("input_messages")), where.at("input_messages")
            Watched(written).report(where, "input_messages", ("type", "template", "item_reference"))
            for at, message in enumerate(_list(written.get("template"))):
                Watched(as_mapping(message)).report(where.at("template", at), "message", ("role", "content", "type"))
                if text_of(as_mapping(message).get("content")) is None:
                    where.at("template", at).leave_out("message", "it holds more than a text")

    def _read_targets(self) -> list[str]:
        names: list[str] = []
        for run, place in self._placed_runs:
            source = run.get("data_source")
            source = source if isinstance(source, Mapping) else {}
            model = source.get("model") or run.get("model")
            if not isinstance(model, str) or not model:
                continue
            target: dict[str, Any] = {"name": model, "provider": "openai", "model": model}
            if source.get("type") == "responses":
                target["api"] = "responses"
            target |= self._sampling(source.get("sampling_params"))
            if "api" in target and target.pop("seed", None) is not None:
                place.at("data_source", "sampling_params", "seed").leave_out(
                    f"{model}: seed", "the Responses API has no seed"
                )
            if target not in self._targets:
                number = sum(name.partition(" ")[0] == model for name in names)
                target["name"] = model if not number else f"{model} {number + 1}"
                self._targets.append(target)
                names.append(str(target["name"]))
        if not names:
            self._place.note("model", _TARGET)
            self._targets.append(missing_target("model", _TARGET))
            names.append("model")
        return names

    def _sampling(self, params: Any) -> dict[str, Any]:
        settings: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, value in params.items() if isinstance(params, Mapping) else ():
            if value is None:
                continue
            if key in {"temperature", "seed", "tools"}:
                settings[key] = value
            elif key in {"max_completion_tokens", "max_completions_tokens", "max_tokens"}:
                settings["max_completion_tokens"] = value
            else:
                extra[key] = value
        return {**settings, "extra_body": extra} if extra else settings

    def _rows(self) -> list[Mapping[str, Any]]:
        """Return the rows of the runs, of the export itself, or of the JSONL file beside it."""
        found = self._rows_of_runs()
        for key in ROWS:
            rows, where = _list(self._around.get(key)), self._around_place.at(key)
            if found and rows:
                where.leave_out(key, "other rows of the export are the cases")
            elif rows:
                found = [_row(item, where.at(at)) for at, item in enumerate(rows)]
        beside = self._conversion.document.path.with_suffix(".jsonl")
        if not found and beside.is_file():
            found = [
                _row(item, Place(TableDocument(beside, line), self._place.report))
                for line, item in read_json_lines(beside)
            ]
        return [row if "item" in row else {"item": row} for row in found if row]

    def _rows_of_runs(self) -> list[Mapping[str, Any]]:
        """Return the rows that stand in the runs; those that several runs have are cases once."""
        found: list[Mapping[str, Any]] = []
        known: Counter[str] = Counter()
        for run, place in self._placed_runs:
            inner = as_mapping(as_mapping(run.get("data_source")).get("source"))
            where = place.at("data_source", "source")
            own: Counter[str] = Counter()
            for at, row in enumerate(_list(inner.get("content"))):
                if not isinstance(row, Mapping):
                    where.at("content", at).leave_out("row", "it is no object")
                    continue
                key = json.dumps(row.get("item", row), sort_keys=True, default=str)
                own[key] += 1
                if own[key] > known[key]:
                    known[key] += 1
                    found.append(row)
            if inner.get("type") in {"file_id", "stored_completions", "responses"}:
                where.leave_out("source", f"its rows are on the server ({inner.get('type')})")
        return found

    def _template(self) -> Any:
        """Return the prompt of the runs: messages with placeholders, or `None`."""
        found: list[Any] = []
        for run, place in self._placed_runs:
            source = run.get("data_source")
            written = source.get("input_messages") if isinstance(source, Mapping) else None
            if isinstance(written, Mapping):
                messages = read_messages(written)
                if messages is not None and messages not in found:
                    found.append(messages)
                    if len(found) > 1:
                        where = place.at("data_source", "input_messages")
                        where.leave_out("input_messages", "the prompt of another run is used for all")
        return found[0] if found else None

    def _has_texts(self, rows: list[Mapping[str, Any]]) -> bool:
        """Return whether all values of the rows are texts, so that a template gives what the server compares."""
        return all(isinstance(value, str) for row in rows for value in row["item"].values())

    def _case(self, row: Mapping[str, Any], template: Any, number: int, origins: list[CaseOrigin]) -> dict[Any, Any]:
        item = row["item"]
        case: dict[Any, Any] = {"id": f"row-{number}"}
        written = make_input(template, item)
        skip = "" if written is not None else _NO_PROMPT if template is None else _NO_VALUE
        case["input"] = written if written is not None else json.dumps(item, ensure_ascii=False)
        if isinstance(item, Mapping) and not has_template(item):
            case["vars"] = {"item": dict(item)}
        if skip:
            case["skip"] = skip
            self._place.leave_out("input_messages", skip)
            case |= prompt_remarks(template)
            if "{{" in case["input"]:
                case.pop("vars", None)
        reason = finish_case(case, self._evaluators(item), "none of its graders could be converted", has_defaults=False)
        origins.append(CaseOrigin(str(case["id"]), "", json.dumps(written), {"item": item}, reason))
        return case

    def _empty_case(self, template: Any, origins: list[CaseOrigin]) -> dict[Any, Any]:
        self._place.leave_out("rows", _NO_ROWS)
        evaluators = self._evaluators(None)
        case: dict[Any, Any] = {"id": "rows", "input": "(no rows)", "skip": _NO_ROWS}
        case |= prompt_remarks(template)
        finish_case(case, evaluators, _NO_ROWS, has_defaults=False)
        origins.append(CaseOrigin("rows", "", "", {}, _NO_ROWS))
        return case

    def _dataset(
        self, rows: list[Mapping[str, Any]], template: Any, suffix: str
    ) -> tuple[dict[str, Any], list[CaseOrigin]]:
        name = f"{self._conversion.name}{f'-{suffix}' if suffix else ''}.jsonl"
        lines = [json.dumps({"item": row["item"]}, ensure_ascii=False) for row in rows]
        self._conversion.add_file(name, "\n".join(lines) + "\n")
        case: dict[Any, Any] = {"id": "row-{{ _line }}"}
        case["input"] = template if template is not None else "{{ item }}"
        if template is None:
            case["skip"] = _NO_PROMPT
            self._place.leave_out("input_messages", _NO_PROMPT)
        case["vars"] = {"item": "{{ item }}"}
        reason = finish_case(case, self._evaluators(None), "none of its graders could be converted", has_defaults=False)
        origins = [
            CaseOrigin(f"row-{number}", "", "", {"item": row["item"]}, reason)
            for number, row in enumerate(rows, start=1)
        ]
        return {"dataset": {"files": name, "template": case}}, origins

    def _evaluators(self, item: Any) -> list[Any]:
        """Return the evaluators for one row; without a row, with placeholders."""
        result: list[Any] = []
        for at, criterion in enumerate(self._eval["testing_criteria"]):
            result += self._evaluator(criterion, self._place.at("testing_criteria", at), item)
        return result

    def _evaluator(self, criterion: Any, place: Place, item: Any) -> list[Any]:
        criterion = criterion if isinstance(criterion, Mapping) else {}
        kind = str(criterion.get("type"))
        asks_model = kind in {"label_model", "score_model"} or criterion.get("evaluation_metric") == "cosine"
        is_deterministic = not asks_model
        graders: dict[str, Callable[[Mapping[str, Any], Any, Place], dict[str, Any]]] = {
            "string_check": self._string_check,
            "text_similarity": self._text_similarity,
            "python": self._python,
            "label_model": self._label_model,
            "score_model": self._score_model,
        }
        watched = Watched(criterion)
        try:
            evaluator = graders.get(kind, _refuse)(watched, item, place)
            check_evaluator(evaluator)
        except UntranslatableError as error:
            place.report.count(place, is_translated=False, is_deterministic=is_deterministic)
            return [Remark(place.leave_out(kind, str(error)).remark)]
        place.report.count(place, is_translated=True, is_deterministic=is_deterministic)
        watched.report(place, kind, ("type", "name", "id"))
        name = criterion.get("name")
        return [{"name": name, **evaluator} if isinstance(name, str) and name else evaluator]

    def _string_check(self, criterion: Mapping[str, Any], item: Any, place: Place) -> dict[str, Any]:
        del place
        written, reference = str(criterion.get("input") or ""), criterion.get("reference")
        operation = criterion.get("operation")
        if operation in {"eq", "ne"} and not SAMPLE.search(written) and SAMPLE.search(str(reference)):
            written, reference = str(reference), written
        wanted = fill(reference, item)
        if operation in {"like", "ilike"}:
            evaluator: dict[str, Any] = {"type": "contains", **select(written), "value": reference_text(wanted)}
            return {**evaluator, "ignore_case": True} if operation == "ilike" else evaluator
        if operation not in {"eq", "ne"}:
            msg = f"its operation {operation!r} is unknown"
            raise UntranslatableError(msg)
        path = OUTPUT_JSON.fullmatch(written.strip())
        if path is not None:
            evaluator = {"type": "json", "pointer": pointer(path[1]), "equals": same_text(reference_text(wanted))}
        else:
            evaluator = {"type": "equals", **select(written), "value": reference_text(wanted)}
        return {**evaluator, "not": True} if operation == "ne" else evaluator

    def _text_similarity(self, criterion: Mapping[str, Any], item: Any, place: Place) -> dict[str, Any]:
        measure = str(criterion.get("evaluation_metric"))
        if measure not in _MEASURES:
            msg = f"{measure!r} needs embeddings, or a measure that is not documented"
            raise UntranslatableError(msg)
        if not OUTPUT.fullmatch(str(criterion.get("input") or "").strip()):
            msg = "its input is not the output text"
            raise UntranslatableError(msg)
        place.note("text_similarity", "it needs the library that OpenAI names: pip install rapidfuzz, or rouge-score")
        config = {"reference": reference_text(fill(criterion.get("reference"), item)), "measure": measure}
        evaluator = {
            "type": "python",
            "function": f"{self._conversion.helper(CHECKS)}:text_similarity",
            "config": config,
        }
        return self._with_threshold(evaluator, criterion, place)

    def _python(self, criterion: Mapping[str, Any], item: Any, place: Place) -> dict[str, Any]:
        del item
        source = criterion.get("source")
        if not isinstance(source, str) or "def grade" not in source:
            msg = "it has no function `grade`"
            raise UntranslatableError(msg)
        name = slug(str(criterion.get("name") or "grader")).replace("-", "_") or "grader"
        file = f"graders/{name}.py"
        if self._conversion.files.get(file, source.encode()) != source.encode():
            file = f"graders/{name}_{len(self._conversion.files)}.py"
        self._conversion.add_file(file, source if source.endswith("\n") else source + "\n")
        if criterion.get("image_tag"):
            place.note("python", "it ran in an image with packages of its own: install what it imports")
        helper = self._conversion.helper(CHECKS)
        evaluator = {"type": "python", "function": f"{helper}:run_grader", "config": {"file": file}}
        return self._with_threshold(evaluator, criterion, place)

    def _label_model(self, criterion: Mapping[str, Any], item: Any, place: Place) -> dict[str, Any]:
        """Return a judge that picks one of the labels: those that pass stand above the others on its scale."""
        passing = [str(label) for label in _list(criterion.get("passing_labels"))]
        labels = [str(label) for label in _list(criterion.get("labels"))]
        others = [label for label in dict.fromkeys(labels) if label not in passing]
        if not passing or not others:
            msg = "it has no passing labels" if not passing else "all of its labels pass, or it names no others"
            raise UntranslatableError(msg)
        if not set(passing) <= set(labels):
            msg = "a passing label is none of its labels"
            raise UntranslatableError(msg)
        ordered = [*others, *dict.fromkeys(passing)]
        scores = {str(number): f"the label is {label!r}" for number, label in enumerate(ordered)}
        evaluator = self._rating(criterion, item, scores, len(others) / (len(ordered) - 1))
        place.note("label_model", "the judge is asked in our form, and answers with the number of the label")
        return evaluator

    def _score_model(self, criterion: Mapping[str, Any], item: Any, place: Place) -> dict[str, Any]:
        """Return a judge that rates on the scale of the source; raise `UntranslatableError` for one with fractions."""
        span = criterion.get("range")
        low, high = span if isinstance(span, list) and len(span) == 2 else (0, 1)  # noqa: PLR2004 - its two ends
        threshold = criterion.get("pass_threshold")
        if threshold is None or not is_number(threshold):
            raise UntranslatableError(_NO_THRESHOLD)
        if not all(is_number(end) and end == int(end) and end >= 0 for end in (low, high)) or high - low <= 1:
            msg = f"its scale from {low} to {high} has fractions, and a judge here gives whole numbers"
            raise UntranslatableError(msg)
        if not low < threshold <= high:
            msg = f"with a threshold of {threshold} on a scale from {low} to {high} the score decides nothing"
            raise UntranslatableError(msg)
        least = math.ceil(threshold)
        below = f"{int(low)}-{least - 1}" if least - 1 > low else str(int(low))
        above = f"{least}-{int(high)}" if high > least else str(least)
        scores = {below: "not enough to pass", above: "enough to pass"}
        evaluator = self._rating(criterion, item, scores, (least - low) / (high - low))
        place.note("score_model", "the judge is asked in our form, and gives whole numbers only")
        return evaluator

    def _rating(
        self, criterion: Mapping[str, Any], item: Any, scores: Mapping[str, str], threshold: float
    ) -> dict[str, Any]:
        rubric = [{"id": "rating", "criterion": self._instructions(criterion, item), "scores": dict(scores)}]
        # Rounded down, so that the lowest score that passes is never below it.
        least = math.floor(threshold * 10**6) / 10**6
        return {"type": "llm_judge", "judge": self._judge(criterion), "rubric": rubric, "threshold": least}

    def _instructions(self, criterion: Mapping[str, Any], item: Any) -> str:
        messages = criterion.get("input")
        texts: list[str] = []
        for message in messages if isinstance(messages, list) else [messages]:
            content = text_of(message.get("content") if isinstance(message, Mapping) else message)
            if content is None:
                msg = "its instructions hold more than texts"
                raise UntranslatableError(msg)
            texts.append(OUTPUT.sub("(the answer)", content))
        text = str(fill("\n".join(texts), item)).strip()
        if not text or SAMPLE.search(text):
            msg = "its instructions use more of the sample than its text"
            raise UntranslatableError(msg)
        return text

    def _judge(self, criterion: Mapping[str, Any]) -> str:
        """Return the name of the target for the model of a grader; other settings make another target."""
        model = str(criterion.get("model") or "")
        settings = {"provider": "openai", "model": model, **self._sampling(criterion.get("sampling_params"))}
        key = json.dumps(settings, sort_keys=True, default=str)
        if key not in self._judges:
            name = f"judge {model}".strip()
            number = sum(own == name or own.startswith(f"{name} #") for own in self._judges.values())
            name = f"{name} #{number + 1}" if number else name
            target = {"name": name, **settings} if model else missing_target(name, "name the model that judges")
            self._targets.append(target)
            self._judges[key] = name
        return self._judges[key]

    @staticmethod
    def _with_threshold(evaluator: dict[str, Any], criterion: Mapping[str, Any], place: Place) -> dict[str, Any]:
        threshold = criterion.get("pass_threshold")
        if isinstance(threshold, (int, float)) and 0 <= threshold <= 1:
            return {**evaluator, "threshold": threshold}
        if threshold is None:
            place.leave_out("pass_threshold", f"{_NO_THRESHOLD}; its score is measured, and decides nothing")
            return {**evaluator, "kind": "metric"}
        msg = f"its threshold of {threshold} is not between 0 and 1"
        raise UntranslatableError(msg)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _refuse(criterion: Mapping[str, Any], item: Any, place: Place) -> dict[str, Any]:
    """Say why a grader has no counterpart."""
    del item, place
    is_multi = criterion.get("type") == "multi"
    msg = "a grader of several others is a formula" if is_multi else "this grader has no counterpart"
    raise UntranslatableError(msg)


def _row(row: Any, place: Place) -> Mapping[str, Any]:
    """Return a row of an export, and name what it holds beside its item; nothing for what is no row."""
    if not isinstance(row, Mapping):
        place.leave_out("row", "it is no object")
        return {}
    name = next((key for key in ("item", "datasource_item") if isinstance(row.get(key), Mapping)), None)
    if name is None:
        return row
    for key, value in row.items():
        if key not in {name, *_ROW_KEYS} and value not in (None, "", [], {}):
            place.at(key).leave_out(f"row.{key}", _SAMPLE_KEPT if key == "sample" else _ROW_KEPT)
    return {"item": row[name]}
