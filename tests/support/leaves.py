"""Every leaf of a configuration, held against the output and the report of its conversion.

The check knows nothing of the converters: it reads the source with another YAML library, and accepts a leaf only if its
value is in the output, or if a finding names it or something that it is in.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agentv.api.convert import output_files
from agentv.api.convert.base import Conversion

Path = tuple[str | int, ...]
_SPACE = re.compile(r"[\s\\\"'#`]+")
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
TYPES = {
    "icontains": "contains",
    "contains-all": "contains",
    "icontains-all": "contains",
    "contains-any": "contains",
    "icontains-any": "contains",
    "starts-with": "starts_with",
    "is-json": "json",
    "latency": "latency_budget",
    "cost": "cost_budget",
    "llm-rubric": "llm_judge",
    "javascript": "promptfoo_assert.mjs",
    "python": "promptfoo_checks.py",
    "is-refusal": "refusal",
    "assert-set": "all_of",
    "string_check": "equals",
    "text_similarity": "openai_checks.py",
    "label_model": "llm_judge",
    "score_model": "llm_judge",
    "llm-grader": "llm_judge",
    "llm-judge": "llm_judge",
    "rubrics": "llm_judge",
    "g-eval": "llm_judge",
    "model-graded-closedqa": "llm_judge",
    "factuality": "llm_judge",
    "script": "agentv_grader.py",
    "code-grader": "agentv_grader.py",
    "skill-used": "skill",
    "conversation-relevance": "llm_judge",
    "answer-relevance": "llm_judge",
    "context-relevance": "llm_judge",
    "context-recall": "llm_judge",
    "context-faithfulness": "llm_judge",
    "composite": "all_of",
    "execution-metrics": "budget",
    **dict.fromkeys(
        ("trajectory:tool-used", "trajectory:tool-sequence", "trajectory:tool-args-match", "trajectory:step-count"),
        "promptfoo_checks.py",
    ),
}
"""Assertions of the sources whose evaluators have other names."""
SILENT_KEYS = {
    "$schema",
    "$ref",
    "id",
    "invocation_id",
    "invocationId",
    "creation_timestamp",
    "creationTimestamp",
    "eval_id",
}
"""Keys for editors, internal ids and times."""
DEFAULTS: set[tuple[Any, ...]] = {
    ("role", "user"),
    ("role", "assistant"),
    ("role", "model"),
    ("operator", "correctness"),
    ("method", "POST"),
}
DEFAULTS |= {("aggregation", "mean"), ("mode", "conversation"), ("skip_defaults", True), ("mode", "any_order")}
DEFAULTS |= {("type", kind) for kind in ("completions", "responses", "jsonl", "template", "file_content")}
DEFAULTS |= {("type", kind) for kind in ("message", "input_text", "output_text")}
"""Keys whose values are what holds without them."""


def leaves(data: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield the scalars of a document with their paths."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from leaves(value, (*path, str(key)))
    elif isinstance(data, list):
        for at, value in enumerate(data):
            yield from leaves(value, (*path, at))
    else:
        yield path, data


def flat(text: str) -> str:
    """Return a text without spaces and quotes, which differ by the style of YAML."""
    return _SPACE.sub("", text.replace("\\n", "").replace("\\t", ""))


def parse_path(text: str) -> Path:
    """Return the steps of the path of a finding."""
    return tuple(int(number) if number else name for number, name in _STEP.findall(text))


def dropped_leaves(data: Any, conversion: Conversion, file: str) -> list[tuple[Path, Any]]:
    """Return the leaves of a file that are neither in the output nor in the report."""
    if not conversion.evals:
        return [] if conversion.report.findings else list(leaves(data))
    text = flat("".join(content.decode("utf-8", "replace") for _, content in output_files([conversion])))
    named = {
        parse_path(finding.path)
        for finding in conversion.report.findings
        if finding.file.rpartition("/")[2] == file.rpartition("/")[2] and finding.path
    }
    return [
        (path, value)
        for path, value in leaves(data)
        if not _is_default(path, value)
        and not _is_named(path, named)
        and not _is_written(path, value, text)
        and not _is_file_written(value, conversion, text)
    ]


def _is_default(path: Path, value: Any) -> bool:
    return (
        value is None
        or value is False
        or value == ""
        or (bool(path) and path[-1] in SILENT_KEYS)
        or (*path[-1:], value) in DEFAULTS
    )


def _is_named(path: Path, named: set[Path]) -> bool:
    """Return whether a finding is about a leaf, about something that it is in, or about a part of an assertion."""
    return any(path[:length] in named for length in range(1, len(path) + 1))


def _is_written(path: Path, value: Any, text: str) -> bool:
    if isinstance(value, bool):
        return "true" in text or str(path[-1]).replace("_", "").lower() in text.lower()
    if isinstance(value, (int, float)):
        forms = {json.dumps(value), f"{value:g}", f"{value / 1000:g}"}
        return any(form in text for form in forms)
    words = str(value)
    if path[-1] == "type":
        base = words.removeprefix("not-")
        return TYPES.get(base, base.replace("-", "_")) in text or flat(base) in text
    parts = [part for part in re.split(r"\{\{.*?\}\}|\{%.*?%\}|\$\{\w+\}", words, flags=re.DOTALL) if part.strip()]
    if flat(words) in text or all(flat(part) in text for part in parts):
        return True
    # Regular expressions and commands are written in another form: their words are the same.
    if path[-1] == "transformResponse":
        return re.sub(r"[.\[]", "/", words.removeprefix("json")).replace("]", "") in text
    is_pattern = path[-1] in {"value", "pattern"} and re.search(r"[\\^$*+?|()\[\]{}]", words) is not None
    is_other_form = is_pattern or path[-1] == "command" or path[0] == "prompts"
    return is_other_form and all(word in text for word in re.findall(r"\w{2,}", words))


def _is_file_written(value: Any, conversion: Conversion, text: str) -> bool:
    """Return whether the file that a leaf names was read: a line of it is in the output."""
    if not isinstance(value, str) or not re.fullmatch(r"[\w./*:@ -]{1,300}", value):
        return False
    name = value.removeprefix("file://")
    path = conversion.document.folder / name
    if path.is_dir() or ("*" in name and any(conversion.document.folder.glob(name.lstrip("./")))):
        return True
    if not path.is_file():
        return False
    content = path.read_text(encoding="utf-8", errors="replace")
    words = re.findall(r"[^\W\d_]{5,}", content)
    return not words or sum(word in text for word in words) > len(words) / 2
