"""`labels.jsonl`: replies with what people say of them, one a line, for `agentv calibrate`."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentv.errors import FormatError, Place, Problem, SpecError
from agentv.formats.reader import decode_response
from agentv.jsonio import parse_json
from agentv.model.request import Case
from agentv.model.response import ProviderResponse
from agentv.model.results import RESULT_SCHEMA
from agentv.spec.cases import check_messages
from agentv.spec.dataset import repeated_keys
from agentv.spec.validation import shown, unknown_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MET = {"pass": True, "passed": True, "met": True, "yes": True, "true": True}
NOT_MET = {"fail": False, "failed": False, "not met": False, "not_met": False, "no": False, "false": False}
WORDS = {**MET, **NOT_MET}
KEYS = ("id", "input", "expected", "reply", "candidate", "label", "labels", "note")
ALIASES: dict[str, str] = {"input_messages": "input", "expected_messages": "expected", "case_id": "id"}
MAX_LINE = 10_000_000
MAX_PROBLEMS = 50


class Label(NamedTuple):
    """One reply, and what a person says of it."""

    id: str
    line: int
    case: Case
    response: ProviderResponse
    overall: bool | None
    """Whether it passes; `None` when only items are labelled."""
    items: dict[str, bool]
    """Whether the items of the rubric are met, by id; not all need be labelled."""


def read_labels(path: Path, name: str, ids: frozenset[str]) -> list[Label]:
    """Every label of a file, or a `SpecError` with everything that is wrong; `ids` are those of the rubric."""
    labels: list[Label] = []
    problems: list[Problem] = []
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if not line.strip():
                    continue
                label, wrong = _read(line, number, ids)
                problems += [problem._replace(place=Place(name, number)) for problem in wrong]
                labels += [] if label is None else [label]
                if len(problems) >= MAX_PROBLEMS:
                    break
    except OSError as error:
        raise SpecError([Problem("", f"cannot be read: {error.strerror}", "whole", Place(name, 1))]) from error
    if not labels and not problems:
        empty = "holds no label: one JSON object a line, with a `reply` and a `label`"
        problems.append(Problem("", empty, "whole", Place(name, 1)))
    if problems:
        raise SpecError(problems)
    return labels


def _read(line: bytes, number: int, ids: frozenset[str]) -> tuple[Label | None, list[Problem]]:
    if len(line) > MAX_LINE:
        return None, [Problem("", f"{len(line):,} bytes on one line; at most {MAX_LINE:,} are read", "whole")]
    try:
        data = parse_json(line)
    except FormatError as error:
        return None, [Problem("", str(error), "whole")]
    if not isinstance(data, dict):
        return None, [Problem("", f"expected an object with a `reply` and a `label`, got {shown(data)}", "whole")]
    with suppress(msgspec.MsgspecError, ValueError):  # what was forgiven above may repeat itself
        again = repeated_keys(line.removeprefix(BOM_UTF8))
        if again:
            return None, [Problem("", f"duplicate key {again[0]!r}", "whole")]
    # A line of a result file may be labelled as it is.
    is_record = data.get("schema") == RESULT_SCHEMA
    given: dict[str, Any] = {ALIASES.get(str(key), str(key)): value for key, value in data.items()}
    problems = [] if is_record else [Problem(key, unknown_key(key, KEYS), "key") for key in given if key not in KEYS]
    labels = _labels(given, ids, problems)
    response = _response(given, problems)
    case = _case(given, problems)
    if problems or response is None or case is None:
        return None, problems
    overall, items = labels
    return Label(str(given.get("id") or f"line {number}"), number, case, response, overall, items), []


def _labels(
    given: Mapping[str, Any], ids: frozenset[str], problems: list[Problem]
) -> tuple[bool | None, dict[str, bool]]:
    overall = None
    if given.get("label") is not None:
        overall = _said(given["label"])
        if overall is None:
            problems.append(Problem("label", _expected(given["label"])))
    items: dict[str, bool] = {}
    written = given.get("labels")
    if written is not None and not isinstance(written, Mapping):
        problems.append(Problem("labels", f"expected a mapping of items to labels, got {shown(written)}"))
        written = None
    for name, value in (written or {}).items():
        said = _said(value)
        if name not in ids:
            problems.append(Problem(f"labels.{name}", unknown_key(name, sorted(ids)), "key"))
        elif said is None:
            problems.append(Problem(f"labels.{name}", _expected(value)))
        else:
            items[name] = said
    if overall is None and not items and not problems:
        problems.append(Problem("label", "required: what a person says of this reply (or `labels`, item by item)"))
    return overall, items


def _response(given: Mapping[str, Any], problems: list[Problem]) -> ProviderResponse | None:
    reply = given.get("reply", given.get("candidate"))
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


def _case(given: Mapping[str, Any], problems: list[Problem]) -> Case | None:
    found = dict(_messages(given, problems))
    asked, golden = found.get("input"), found.get("expected")
    return Case(id=str(given.get("id") or ""), input_messages=asked or (), expected_messages=golden)


def _messages(given: Mapping[str, Any], problems: list[Problem]) -> Iterator[tuple[str, Any]]:
    for name, role in (("input", "user"), ("expected", "assistant")):
        written = given.get(name)
        if written is not None and not isinstance(written, (str, list, Mapping)):
            problems.append(Problem(name, f"expected a text, a message, or a list of messages; got {shown(written)}"))
        elif written is not None:
            try:
                yield name, check_messages(written, name, role)
            except SpecError as error:
                problems += error.problems


def _said(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return WORDS.get(value.strip().lower()) if isinstance(value, str) else None


def _expected(value: Any) -> str:
    return f"expected true, false, pass, fail, met or not met; got {shown(value)}"
