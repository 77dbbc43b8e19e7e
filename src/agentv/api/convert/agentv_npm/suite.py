"""Conversion of a whole eval of AgentV."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentv.api.convert.agentv_npm.assertions import Graders
from agentv.api.convert.agentv_npm.targets import TargetTable
from agentv.api.convert.base import (
    CaseOrigin,
    Ids,
    UntranslatableError,
    as_mapping,
    finish_case,
    is_number,
    is_share,
    missing_target,
    slug,
)
from agentv.api.convert.files import (
    find_file,
    find_files,
    is_file,
    is_reachable,
    outside,
    read_json_lines,
    read_rows,
    read_structured,
)
from agentv.api.convert.promptfoo.options import TestOptions
from agentv.api.convert.promptfoo.prompts import make_input, read_prompts
from agentv.api.convert.promptfoo.tests import scenario_tests
from agentv.api.convert.source import Place, SourceDocument, TableDocument
from agentv.api.convert.templates import RenderError, has_template, names_in, render_deep
from agentv.api.convert.writer import Commented, Remark
from agentv.errors import FormatError

if TYPE_CHECKING:
    from agentv.api.convert.base import Conversion
    from agentv.api.convert.promptfoo.prompts import PromptSource

CASE_KEYS = ("tests", "evalcases", "cases", "eval_cases")
THRESHOLD = 0.8
"""The score from which a case of AgentV passes unless it says otherwise."""
_NOTHING = "AgentV checks nothing here: add evaluators"
_ALL_LEFT_OUT = "none of its assertions could be converted: add evaluators"
_JUDGE = "AgentV asks the grader of the target: name the model that judges"
_READ = {
    *("name", "description", "suite", "dataset", "target", "targets", "providers", "execution", "prompts", "input"),
    *("input_files", "assert", "assertions", "default_test", "threshold", "evaluate_options", "tags", "$schema"),
    *("timeout_seconds", "scenarios", *CASE_KEYS),
}
_REASONS = {
    "environment": "the folder and the setup of the agent belong to its target",
    "workspace": "the folder and the setup of the agent belong to its target",
    "extensions": "hooks in JavaScript have no counterpart",
    "governance": "it is metadata for people",
    "version": "it is metadata for people",
    "author": "it is metadata for people",
    "license": "it is metadata for people",
}
_CASE_READ = {
    *("id", "input", "input_messages", "input_files", "expected_output", "expected_messages", "reference_answer"),
    *("criteria", "expected_outcome", "outcome", "assert", "assertions", "evaluators", "execution", "rubrics", "vars"),
    *("conversation_id", "metadata", "description", "note", "tags", "threshold", "mode", "turns", "aggregation"),
    *("on_turn_failure", "options"),
}


_MESSAGE = ("role", "content", "name", "tool_calls", "tool_call_id", "id")
_CALL = ("tool", "input", "output", "id", "args", "status", "error")


class AgentVSuite:
    """An eval of AgentV, on its way to evals of ours."""

    def __init__(self, conversion: Conversion, data: Mapping[str, Any], place: Place) -> None:
        self._conversion = conversion
        self._data = data
        self._place = place
        self._execution = as_mapping(data.get("execution"))
        self._default = self._read_default(data.get("default_test"))
        self._targets = TargetTable(conversion)
        self._is_old = "evalcases" in data
        written = _with_raw(data.get("prompts"))
        self._prompts = read_prompts(written, place.at("prompts")) if written else []
        self._groups: dict[tuple[str, ...], tuple[list[Any], list[CaseOrigin], Ids]] = {}
        self._graders = Graders(conversion, self._targets, is_old=self._is_old)

    def convert(self) -> None:
        """Convert everything, and add the evals to the conversion."""
        for key, value in self._data.items():
            if key not in _READ and value is not None:
                self._place.at(key).leave_out(key, _REASONS.get(key, "this key of an eval has no counterpart"))
        for key, value in self._execution.items():
            if key not in {"target", "targets", "evaluators", "assertions", "threshold", "skip_defaults"} and value:
                self._place.at("execution", key).leave_out(f"execution.{key}", "this setting has no counterpart")
        for key, value in self._default.items():
            if key not in {"assert", "vars", "options"} and value:
                where = self._place.at("default_test", key)
                where.leave_out(f"default_test.{key}", "this key of `default_test` has no counterpart")
        for key in as_mapping(self._default.get("options")):
            where = self._place.at("default_test", "options", key)
            where.leave_out(f"options.{key}", "this option has no counterpart")
        self._report_options()
        names = self._targets.select(self._data, self._place)
        shared = self._shared_assertions()
        for case, place in self._cases():
            self._add(case, place, shared, names)
        groups = list(self._groups.items())
        for number, (targets, (cases, origins, _)) in enumerate(groups, start=1):
            suffix = "" if len(groups) == 1 else slug("-".join(targets)) or str(number)
            self._conversion.add_eval(suffix, self._eval(cases, targets), origins, header=self._header())

    def _read_default(self, written: Any) -> Mapping[str, Any]:
        """Return `default_test`, or the content of the file that it names."""
        if not isinstance(written, str):
            return as_mapping(written)
        place = self._place.at("default_test")
        try:
            return as_mapping(read_structured(find_file(written, place.document.folder)))
        except UntranslatableError as error:
            place.leave_out("default_test", str(error))
            return {}

    def _report_options(self) -> None:
        """Report the run options that have no counterpart."""
        options, place = as_mapping(self._data.get("evaluate_options")), self._place.at("evaluate_options")
        for key, value in options.items():
            is_read = key in {"repeat", "max_concurrency", "budget_usd"} and not isinstance(value, Mapping)
            if not is_read and value is not None:
                what = "a strategy over repetitions" if key == "repeat" else "this setting"
                place.at(key).leave_out(f"evaluate_options.{key}", f"{what} has no counterpart")

    def _header(self) -> list[str]:
        """Return the names of the eval that are not its description here."""
        names = {key: self._data.get(key) for key in ("name", "suite", "dataset")}
        if not self._data.get("description"):
            names.pop("name" if names["name"] else "dataset")
        labels = [prompt.label for prompt in self._prompts if prompt.label]
        return [
            *(f"{key}: {value}" for key, value in names.items() if isinstance(value, str) and value),
            *(f"Prompt: {label}" for label in labels),
        ]

    def _shared_assertions(self) -> list[tuple[Any, Place]]:
        """Return the assertions that hold for every case that does not refuse them."""
        found: list[tuple[Any, Place]] = []
        for holder, place in ((self._data, self._place), (self._execution, self._place.at("execution"))):
            for key in ("assertions", "assert", "evaluators"):
                found += [(entry, place.at(key, at)) for at, entry in enumerate(_list(holder.get(key)))]
        default = self._default.get("assert")
        found += [(entry, self._place.at("default_test", "assert", at)) for at, entry in enumerate(_list(default))]
        return found

    def _cases(self) -> list[tuple[Mapping[str, Any], Place]]:
        key = next((key for key in CASE_KEYS if self._data.get(key) is not None), None)
        crossed = scenario_tests(self._data.get("scenarios") or [], self._place.at("scenarios"), self._conversion)
        return [*(self._listed_cases(key) if key else ()), *((test.data, test.place) for test in crossed)]

    def _listed_cases(self, key: str) -> list[tuple[Mapping[str, Any], Place]]:
        entries, place = self._data[key], self._place.at(key)
        if isinstance(entries, str):
            return self._read_files(entries, place)
        found: list[tuple[Mapping[str, Any], Place]] = []
        for at, entry in enumerate(_list(entries)):
            where = place.at(at)
            if isinstance(entry, str) or (isinstance(entry, Mapping) and isinstance(entry.get("path"), str)):
                found += self._read_files(entry if isinstance(entry, str) else entry["path"], where)
            elif isinstance(entry, Mapping):
                found.append((entry, where))
            else:
                where.leave_out("test", "it is no mapping")
        return found

    def _read_files(self, name: str, place: Place) -> list[tuple[Mapping[str, Any], Place]]:
        found: list[tuple[Mapping[str, Any], Place]] = []
        try:
            folder = place.document.folder / name.removeprefix("file://")
            paths = sorted(folder.rglob("*.*")) if folder.is_dir() else find_files(name, place.document.folder)
            for path in paths:
                if path.suffix in {".jsonl", ".ndjson"}:
                    rows = [(line, row) for line, row in read_json_lines(path) if isinstance(row, Mapping)]
                    found += [(row, Place(TableDocument(path, line), place.report)) for line, row in rows]
                elif path.suffix == ".csv":
                    found += [(row, Place(TableDocument(path, line), place.report)) for line, row in read_rows(path)]
                elif path.suffix in {".yaml", ".yml", ".json"}:
                    document = SourceDocument(path, path.name)
                    data, inner = document.data, Place(document, place.report)
                    if isinstance(data, Mapping) and isinstance(data.get("tests"), list):
                        data, inner = data["tests"], inner.at("tests")
                    items = data if isinstance(data, list) else [data]
                    found += [(item, inner.at(at)) for at, item in enumerate(items) if isinstance(item, Mapping)]
        except (UntranslatableError, FormatError) as error:
            place.leave_out(f"tests: {name}", str(error))
        return found

    def _add(
        self, case: Mapping[str, Any], place: Place, shared: list[tuple[Any, Place]], names: tuple[str, ...]
    ) -> None:
        self._report_keys(case, place)
        execution = as_mapping(case.get("execution"))
        own = execution.get("targets", execution.get("target"))
        targets = self._targets.named(own, place.at("execution", "target")) if own else names
        cases, origins, ids = self._groups.setdefault(targets, ([], [], Ids()))
        values = _filled({**as_mapping(self._default.get("vars")), **as_mapping(case.get("vars"))})
        prompts: list[PromptSource | None] = list(self._prompts) or [None]
        for number, prompt in enumerate(prompts, start=1):
            entry: dict[Any, Any] = {}
            name = str(case.get("id") or f"test-{len(cases) + 1}")
            entry["id"] = ids.take(
                name if len(prompts) == 1 else f"{name}-{slug(str(prompt and prompt.label)) or number}"
            )
            description = case.get("description") or case.get("note") or _criteria(case)
            if isinstance(description, str) and description.strip():
                entry["description"] = description.strip()
            skip = self._add_input(entry, case, prompt, values, place)
            expected = self._expected(case, values, place)
            if expected is not None:
                entry["expected_messages"] = expected
            self._add_settings(entry, case, execution)
            evaluators = self._evaluators(case, place, [] if execution.get("skip_defaults") else shared, values)
            if skip:
                entry["skip"] = skip
            reason = _ALL_LEFT_OUT if evaluators else _NOTHING
            has_calls = isinstance(expected, list) and any(
                isinstance(item, Mapping) and item.get("tool_calls") for item in expected
            )
            has_calls |= any("evaluators" in turn for turn in entry.get("turns", ()))
            skipped = finish_case(entry, evaluators, reason, has_defaults=has_calls)
            above, behind = place.document.comments(place.path, ("assert", "assertions", "execution", "evaluators"))
            cases.append(Commented(entry, above, behind) if above or behind else entry)
            origins.append(CaseOrigin(entry["id"], name, "", values, skipped))

    def _report_keys(self, case: Mapping[str, Any], place: Place) -> None:
        for key, value in case.items():
            if key not in _CASE_READ and value not in (None, "", [], {}):
                place.at(key).leave_out(key, _REASONS.get(key, "this key of a test has no counterpart"))
        for key, value in as_mapping(case.get("execution")).items():
            if key not in {"target", "targets", "evaluators", "assertions", "skip_defaults", "threshold"} and value:
                place.at("execution", key).leave_out(f"execution.{key}", "this setting has no counterpart")
        for key in as_mapping(case.get("options")):
            place.at("options", key).leave_out(f"options.{key}", "this option has no counterpart")

    def _add_input(
        self,
        entry: dict[Any, Any],
        case: Mapping[str, Any],
        prompt: PromptSource | None,
        values: dict[str, Any],
        place: Place,
    ) -> str:
        """Add the input of a case; return the reason why it has to be skipped, if it has."""
        if case.get("turns"):
            return self._add_turns(entry, case, values, place)
        if prompt is not None:
            return self._add_prompt(entry, prompt, values, place)
        written = case.get("input", case.get("input_messages"))
        shared = {} if as_mapping(case.get("execution")).get("skip_defaults") else self._data
        prefix = shared.get("input")
        files = [*_list(shared.get("input_files")), *_list(case.get("input_files"))]
        try:
            entry["input"] = self._messages(written, prefix, files, place)
        except UntranslatableError as error:
            place.leave_out("input", str(error))
            entry["input"] = f"({error})"
            return str(error)
        if case.get("vars"):
            entry["vars"] = dict(as_mapping(case["vars"]))
        if has_template(entry["input"]) and entry.get("vars"):
            names = names_in(json.dumps(entry["input"]))
            if names is None or not all(name.partition(".")[0] in entry["vars"] for name in names):
                entry.pop("vars")
        return ""

    def _add_turns(self, entry: dict[Any, Any], case: Mapping[str, Any], values: dict[str, Any], place: Place) -> str:
        """Add the turns of a conversation; return the reason why it has to be skipped, if it has."""
        if case.get("aggregation") == "max":
            reason = "the best turn decides, and here every turn counts"
            place.at("aggregation").leave_out("aggregation", reason)
            entry["input"] = "(a conversation)"
            return f"{reason}: write its turns"
        if case.get("on_turn_failure") == "stop":
            place.at("on_turn_failure").note("on_turn_failure", "all turns are run here, and then evaluated")
        try:
            history = self._history(case, values, place)
            turns = [
                self._turn(turn, case, values, place.at("turns", at)) for at, turn in enumerate(_list(case["turns"]))
            ]
        except UntranslatableError as error:
            place.at("turns").leave_out("turns", str(error))
            entry["input"] = "(a conversation)"
            return f"{error}: write its turns"
        if history:
            entry["input"] = history
        entry["turns"] = turns
        rest = {key: value for key, value in values.items() if key not in {"input", "expected_output"}}
        if rest and not has_template(turns):
            entry["vars"] = rest
        return ""

    def _history(self, case: Mapping[str, Any], values: Mapping[str, Any], place: Place) -> list[dict[str, Any]]:
        """Return the messages before the first turn; raise `UntranslatableError`."""
        before = case.get("input", case.get("input_messages", values.get("input")))
        history = _as_messages(self._messages(before, self._data.get("input"), [], place)) if before else []
        if not isinstance(case["turns"], list):
            msg = "its turns are no list"
            raise UntranslatableError(msg)
        if history and history[-1]["role"] == "user":
            msg = "its input ends with a message of the user, before the first turn"
            raise UntranslatableError(msg)
        return history

    def _turn(self, turn: Any, case: Mapping[str, Any], values: Mapping[str, Any], place: Place) -> dict[Any, Any]:
        if not isinstance(turn, Mapping) or not turn.get("input"):
            msg = "a turn has no input"
            raise UntranslatableError(msg)
        written = self._messages(turn["input"], None, [], place)
        if not isinstance(written, str) and not (len(written) == 1 and written[0]["role"] == "user"):
            msg = "a turn is more than one message of the user"
            raise UntranslatableError(msg)
        entry: dict[Any, Any] = {"user": written if isinstance(written, str) else written[0]}
        expected = self._expected(turn, {}, place)
        if expected is not None:
            entry["expected"] = expected
        for key in turn:
            if key not in {"input", "expected_output", "assert", "assertions"}:
                place.at(key).leave_out(f"turns.{key}", "this key of a turn has no counterpart")
        key = "assert" if turn.get("assert") is not None else "assertions"
        entries = [(item, place.at(key, at)) for at, item in enumerate(_list(turn.get(key)))]
        found = self._graders.translate_all(entries, "", turn.get("expected_output"), values)
        remarks = [item for item in found if isinstance(item, Remark)]
        if len(remarks) == len(found):
            return {**entry, **dict.fromkeys(remarks)}
        if case.get("aggregation") == "min":
            # The worst turn decides: each has to reach the threshold by itself.
            threshold = case.get("threshold", self._execution.get("threshold", self._data.get("threshold")))
            limit = threshold if is_share(threshold) else THRESHOLD
            found = [{"type": "all_of", "threshold": limit, "required": True, "evaluators": found}]
        return {**entry, "evaluators": found}

    def _add_prompt(self, entry: dict[Any, Any], prompt: PromptSource, values: dict[str, Any], place: Place) -> str:
        names = names_in(prompt.text) if prompt.text else None
        if names and len(names) == 1 and prompt.text.strip().startswith("{{") and prompt.text.strip().endswith("}}"):
            value = values.get(names[0])
            if isinstance(value, (list, Mapping)):
                try:
                    entry["input"] = self._messages(value, None, [], place)
                except UntranslatableError as error:
                    place.leave_out("input", str(error))
                    entry["input"] = f"({error})"
                    return str(error)
                rest = {key: item for key, item in values.items() if key not in {names[0], "expected_output"}}
                if rest and not has_template(entry["input"]):
                    entry["vars"] = rest
                return ""
        made = make_input(prompt, values, TestOptions())
        entry["input"] = made.written
        known = {key: value for key, value in made.case_vars.items() if key != "expected_output"}
        if known:
            entry["vars"] = known
        if made.problem:
            place.leave_out("prompt", made.problem)
        return made.problem

    def _messages(self, written: Any, prefix: Any, files: list[Any], place: Place) -> Any:
        """Return an input as ours: a text, or messages whose blocks are texts."""
        if isinstance(written, str) and not prefix and not files:
            return self._text(written, place)
        messages = [*_as_messages(prefix), *_as_messages(written)]
        if not messages:
            msg = "it has no input"
            raise UntranslatableError(msg)
        result = [
            {**_known(message, place), "content": self._content(message.get("content"), place)} for message in messages
        ]
        if files:
            blocks = [self._file_block(str(name), place) for name in files]
            content = result[-1]["content"]
            own = [{"type": "text", "text": content}] if isinstance(content, str) else content
            result[-1] = {**result[-1], "content": [*blocks, *own]}
        only = len(result) == 1 and set(result[0]) == {"role", "content"} and result[0]["role"] == "user"
        return result[0]["content"] if only and isinstance(result[0]["content"], str) else result

    def _text(self, text: str, place: Place) -> str:
        """Return a text; the file that it names is copied. Raise `UntranslatableError` for one that cannot be used."""
        if "\0" in text:
            msg = "its input holds a NUL character"
            raise UntranslatableError(msg)
        if not is_file(text):
            return text
        return f"file://{self._conversion.copy(find_file(text.strip(), place.document.folder))}"

    def _content(self, content: Any, place: Place) -> Any:
        if isinstance(content, str):
            return self._text(content, place)
        if isinstance(content, Mapping):
            return json.dumps(content, ensure_ascii=False)
        blocks: list[dict[str, Any]] = []
        for block in _list(content):
            if isinstance(block, str):
                blocks.append({"type": "text", "text": self._text(block, place)})
            elif isinstance(block, Mapping) and block.get("type") == "text":
                text = str(block.get("value", block.get("text", "")))
                blocks.append({"type": "text", "text": self._text(text, place)})
            elif isinstance(block, Mapping) and block.get("type") == "file":
                blocks.append(self._file_block(str(block.get("value") or block.get("path") or ""), place))
            else:
                msg = "a part of its input is neither a text nor a file"
                raise UntranslatableError(msg)
        return blocks

    def _file_block(self, name: str, place: Place) -> dict[str, Any]:
        folder = place.document.folder
        path = folder / name.lstrip("/")
        for parent in (folder, *folder.resolve().parents):
            if (parent / name.lstrip("/")).is_file():
                path = parent / name.lstrip("/")
                break
        if path.is_file() and not is_reachable(path, folder):
            raise UntranslatableError(outside(name))
        place.note("file", "the text of a file is sent as it is, without a heading that names it")
        return {"type": "text", "text": f"file://{self._conversion.copy(path)}"}

    def _expected(self, case: Mapping[str, Any], values: Mapping[str, Any], place: Place) -> Any:
        """Return the expected messages: those of the first versions with their calls, later ones as a text."""
        written = case.get("expected_messages")
        if isinstance(written, list) and any(isinstance(item, Mapping) and item.get("tool_calls") for item in written):
            return [_expected_message(message, place) for message in written if isinstance(message, Mapping)]
        if written is None:
            written = case.get("expected_output", case.get("reference_answer", values.get("expected_output")))
            written = _filled({**values, "expected_output": written})["expected_output"] if values else written
        if written is None or isinstance(written, str):
            return written or None
        if isinstance(written, Mapping) and "role" not in written:
            return json.dumps(written, ensure_ascii=False)
        return self._reference(written, place)

    def _reference(self, written: Any, place: Place) -> Any:
        """Return the text of the last message of a reference answer."""
        messages = _as_messages(written)
        if any(message.get("tool_calls") for message in messages):
            place.note("expected_output", "its tool calls are a reference for graders, and are not compared")
        texts = [message.get("content") for message in messages if message.get("role", "assistant") == "assistant"]
        if not texts:
            return json.dumps(written, ensure_ascii=False)
        last = texts[-1]
        if isinstance(last, list):
            try:
                last = self._content(last, place)
            except UntranslatableError:
                return None
            return [{"role": "assistant", "content": last}] if not _has_file(last) else None
        return last if isinstance(last, str) else json.dumps(last, ensure_ascii=False) if last is not None else None

    def _add_settings(self, entry: dict[Any, Any], case: Mapping[str, Any], execution: Mapping[str, Any]) -> None:
        metadata = dict(as_mapping(case.get("metadata")))
        if case.get("conversation_id"):
            metadata["conversation_id"] = case["conversation_id"]
        if metadata:
            entry["metadata"] = metadata
        tags = case.get("tags")
        if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags) and tags:
            entry["tags"] = tags
        threshold = execution.get("threshold", case.get("threshold"))
        if is_share(threshold):
            entry["threshold"] = threshold

    def _evaluators(
        self, case: Mapping[str, Any], place: Place, shared: list[tuple[Any, Place]], values: Mapping[str, Any]
    ) -> list[Any]:
        entries: list[tuple[Any, Place]] = []
        for key in ("assertions", "assert", "evaluators"):
            entries += [(entry, place.at(key, at)) for at, entry in enumerate(_list(case.get(key)))]
        inner = as_mapping(case.get("execution"))
        for key in ("evaluators", "assertions"):
            entries += [(entry, place.at("execution", key, at)) for at, entry in enumerate(_list(inner.get(key)))]
        if case.get("rubrics"):
            entries.append(({"type": "rubrics", "criteria": case["rubrics"]}, place.at("rubrics")))
        entries += shared
        criteria = _criteria(case)
        if not entries and criteria:
            # Without assertions, AgentV asks its judge about the criteria.
            entries.append(({"type": "llm-grader"}, place))
        expected = case.get("expected_output", values.get("expected_output"))
        headings = [
            remark
            for key in ("assertions", "assert", "evaluators")
            if isinstance(case.get(key), list)
            for remark in self._conversion.heading(place, key, len(case[key]))
        ]
        return [*headings, *self._graders.translate_all(entries, criteria, expected, values)]

    def _eval(self, cases: list[Any], targets: tuple[str, ...]) -> dict[str, Any]:
        data: dict[str, Any] = {}
        description = self._data.get("description") or self._data.get("name") or self._data.get("dataset")
        if isinstance(description, str) and description:
            data["description"] = self._conversion.with_comments(self._place.at("description"), description)
        listed = self._targets.listed(targets)
        if self._graders.needs_judge:
            listed = [*listed, missing_target("judge", _JUDGE)]
            data["judge"] = "judge"
            self._place.note("judge", _JUDGE)
        if len(listed) > len(targets):
            data["target"] = targets[0] if len(targets) == 1 else list(targets)
        data["targets"] = listed
        threshold = self._execution.get("threshold", self._data.get("threshold"))
        defaults: dict[str, Any] = {"threshold": threshold if is_share(threshold) else THRESHOLD}
        options = as_mapping(self._data.get("evaluate_options"))
        if type(options.get("repeat")) is int and options["repeat"] > 1:
            defaults["repeat"] = options["repeat"]
        if type(options.get("max_concurrency")) is int and options["max_concurrency"] > 0:
            defaults["max_concurrency"] = options["max_concurrency"]
        if is_number(options.get("budget_usd")) and options["budget_usd"] > 0:
            defaults["max_cost"] = options["budget_usd"]
        if is_number(self._data.get("timeout_seconds")) and self._data["timeout_seconds"] > 0:
            defaults["timeout_s"] = self._data["timeout_seconds"]
        tags = self._data.get("tags")
        if isinstance(tags, list) and tags and all(isinstance(tag, str) for tag in tags):
            defaults["tags"] = tags
        elif isinstance(tags, Mapping):
            defaults["tags"] = [str(value) for value in tags.values() if isinstance(value, (str, int))]
        data["defaults"] = defaults
        data["cases"] = cases
        return data


def _known(
    data: Mapping[str, Any], place: Place, keys: Sequence[str] = _MESSAGE, what: str = "message"
) -> dict[str, Any]:
    """Return the parts of a message or a call that ours have, and name the others."""
    for key, value in data.items():
        if key not in keys and value not in (None, "", [], {}):
            place.leave_out(f"{what}.{key}", f"a {what} here has no such key")
    return {key: data[key] for key in keys if data.get(key) is not None}


def _expected_message(message: Mapping[str, Any], place: Place) -> dict[str, Any]:
    kept = _known(message, place)
    if isinstance(kept.get("content"), (list, Mapping)):
        place.leave_out("message.content", "the parts of an expected message are not compared")
        kept.pop("content")
    calls = kept.get("tool_calls")
    if isinstance(calls, list):
        kept["tool_calls"] = [
            _known(call, place, _CALL, "call") if isinstance(call, Mapping) else call for call in calls
        ]
    return kept


def _with_raw(prompts: Any) -> Any:
    """Return prompts as promptfoo writes them, where AgentV names a file with `file`."""
    return [
        {**{key: value for key, value in entry.items() if key != "file"}, "raw": f"file://{entry['file']}"}
        if isinstance(entry, Mapping) and isinstance(entry.get("file"), str)
        else entry
        for entry in _list(prompts)
    ]


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return variables with those that they name filled in, as `{{ name }}` or `{{ vars.name }}`."""
    result: dict[str, Any] = {}
    for key, value in values.items():
        others = {name: other for name, other in values.items() if name != key}
        try:
            result[key] = render_deep(value, {**others, "vars": others}) if has_template(value) else value
        except RenderError:
            result[key] = value
    return result


def _has_file(content: Any) -> bool:
    return any(is_file(block.get("text")) for block in content if isinstance(block, Mapping))


def _criteria(case: Mapping[str, Any]) -> str:
    found = case.get("criteria", case.get("expected_outcome", case.get("outcome")))
    return found.strip() if isinstance(found, str) else ""


def _as_messages(written: Any) -> list[dict[str, Any]]:
    if written is None or written == "":
        return []
    if isinstance(written, Mapping):
        return [dict(written)] if "role" in written else [{"role": "user", "content": dict(written)}]
    if isinstance(written, list):
        if all(isinstance(item, Mapping) and "role" in item for item in written):
            return [dict(item) for item in written]
        return [{"role": "user", "content": written}]
    return [{"role": "user", "content": str(written)}]


def _list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None or isinstance(value, Mapping) else [value]
