"""`labels.jsonl`: replies labelled by people, one per line, for `agentv calibrate`."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentv.errors import FormatError, Location, Problem, SpecError
from agentv.formats.reader import decode_response
from agentv.jsonio import find_duplicate_keys, parse_json
from agentv.model.request import Case
from agentv.model.response import ProviderResponse
from agentv.model.results import RESULT_SCHEMA
from agentv.spec.messages import check_messages
from agentv.spec.validation import short_repr, unknown_key_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

MET_WORDS = {"pass": True, "passed": True, "met": True, "yes": True, "true": True}
NOT_MET_WORDS = {"fail": False, "failed": False, "not met": False, "not_met": False, "no": False, "false": False}
WORDS = {**MET_WORDS, **NOT_MET_WORDS}
KEYS = ("id", "input", "expected", "reply", "candidate", "label", "labels", "note")
ALIASES: dict[str, str] = {"input_messages": "input", "expected_messages": "expected", "case_id": "id"}
MAX_LINE = 10_000_000
MAX_PROBLEMS = 50


class Label(NamedTuple):
    """One reply and its labels."""

    id: str
    line: int
    case: Case
    response: ProviderResponse
    overall: bool | None
    """True if the reply passes; `None` if only items are labelled."""
    items: dict[str, bool]
    """Labels of rubric items by id: True if met; some may be missing."""


def read_labels(path: Path, name: str, ids: frozenset[str]) -> list[Label]:
    """Return the labels of a file, or raise `SpecError` with all problems; `ids` are those of the rubric items."""
    try:
        with path.open("rb") as stream:
            return parse_labels(stream, name, ids)
    except OSError as error:
        raise SpecError([Problem("", f"cannot be read: {error.strerror}", "whole", Location(name, 1))]) from error


def parse_labels(lines: Iterable[bytes], name: str, ids: frozenset[str]) -> list[Label]:
    """Return the labels in these lines, or raise `SpecError` with all problems."""
    labels: list[Label] = []
    problems: list[Problem] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        label, new_problems = _read_line(line, number, ids)
        problems += [problem._replace(location=Location(name, number)) for problem in new_problems]
        labels += [] if label is None else [label]
        if len(problems) >= MAX_PROBLEMS:
            break
    if not labels and not problems:
        empty = "holds no label: one JSON object a line, with a `reply` and a `label`"
        problems.append(Problem("", empty, "whole", Location(name, 1)))
    if problems:
        raise SpecError(problems)
    return labels


def _read_line(line: bytes, number: int, ids: frozenset[str]) -> tuple[Label | None, list[Problem]]:
    if len(line) > MAX_LINE:
        return None, [Problem("", f"{len(line):,} bytes on one line; at most {MAX_LINE:,} are read", "whole")]
    try:
        data = parse_json(line)
    except FormatError as error:
        return None, [Problem("", str(error), "whole")]
    if not isinstance(data, dict):
        return None, [Problem("", f"expected an object with a `reply` and a `label`, got {short_repr(data)}", "whole")]
    with suppress(msgspec.MsgspecError, ValueError):  # stricter than `parse_json`
        duplicates = find_duplicate_keys(line.removeprefix(BOM_UTF8))
        if duplicates:
            return None, [Problem("", f"duplicate key {duplicates[0]!r}", "whole")]
    # A line of a result file may be labelled, with all its other keys.
    is_record = data.get("schema") == RESULT_SCHEMA
    fields: dict[str, Any] = {ALIASES.get(str(key), str(key)): value for key, value in data.items()}
    problems = (
        [] if is_record else [Problem(key, unknown_key_message(key, KEYS), "key") for key in fields if key not in KEYS]
    )
    labels = _labels(fields, ids, problems)
    response = _response(fields, problems)
    case = _case(fields, problems)
    if problems or response is None or case is None:
        return None, problems
    overall, items = labels
    return Label(str(fields.get("id") or f"line {number}"), number, case, response, overall, items), []


def _labels(
    fields: Mapping[str, Any], ids: frozenset[str], problems: list[Problem]
) -> tuple[bool | None, dict[str, bool]]:
    overall = None
    if fields.get("label") is not None:
        overall = _parse_label(fields["label"])
        if overall is None:
            problems.append(Problem("label", _label_message(fields["label"])))
    items: dict[str, bool] = {}
    labels = fields.get("labels")
    if labels is not None and not isinstance(labels, Mapping):
        problems.append(Problem("labels", f"expected a mapping of items to labels, got {short_repr(labels)}"))
        labels = None
    for name, value in (labels or {}).items():
        label = _parse_label(value)
        if name not in ids:
            problems.append(Problem(f"labels.{name}", unknown_key_message(name, sorted(ids)), "key"))
        elif label is None:
            problems.append(Problem(f"labels.{name}", _label_message(value)))
        else:
            items[name] = label
    if overall is None and not items and not problems:
        problems.append(Problem("label", "required: what a person says of this reply (or `labels`, item by item)"))
    return overall, items


def _response(fields: Mapping[str, Any], problems: list[Problem]) -> ProviderResponse | None:
    reply = fields.get("reply", fields.get("candidate"))
    if reply is None:
        problems.append(Problem("reply", "required: a text, messages, or a reply as agents send it"))
        return None
    if isinstance(reply, str):
        return ProviderResponse(text=reply)
    try:
        return decode_response(reply)
    except FormatError as error:
        problems.append(Problem("reply", str(error)))
        return None


def _case(fields: Mapping[str, Any], problems: list[Problem]) -> Case | None:
    messages = dict(_messages(fields, problems))
    return Case(
        id=str(fields.get("id") or ""),
        input_messages=messages.get("input") or (),
        expected_messages=messages.get("expected"),
    )


def _messages(fields: Mapping[str, Any], problems: list[Problem]) -> Iterator[tuple[str, Any]]:
    for name, role in (("input", "user"), ("expected", "assistant")):
        value = fields.get(name)
        if value is not None and not isinstance(value, (str, list, Mapping)):
            problems.append(
                Problem(name, f"expected a text, a message, or a list of messages; got {short_repr(value)}")
            )
        elif value is not None:
            try:
                yield name, check_messages(value, name, role)
            except SpecError as error:
                problems += error.problems


def _parse_label(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return WORDS.get(value.strip().lower()) if isinstance(value, str) else None


def _label_message(value: Any) -> str:
    return f"expected true, false, pass, fail, met or not met; got {short_repr(value)}"
