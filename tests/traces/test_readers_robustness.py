"""Mutated, truncated and hostile files: never an exception, always a report, and no call is lost without a word."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentv.registry import TRACE_FORMATS
from tests.support.examples import examples
from tests.support.trace_files import ALL, CALLS, LINES
from tests.support.traces import calls, read_traces

HOSTILE: tuple[Any, ...] = (
    None,
    0,
    -1,
    1e308,
    True,
    "",
    "x",
    "\ud800",
    [],
    {},
    [None],
    {"": None},
    [[[[]]]],
    "{",
    "🙂",
)
QUICK = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _is_reported(path: Path, **options: Any) -> tuple[list[tuple[str, Any]], bool]:
    """Return the calls of a file, and whether anything says that some may be missing."""
    sessions, coverage = read_traces(path, **options)
    unread = any(session.response.unread or session.response.incomplete for session in sessions)
    failed = any(session.response.error for session in sessions)
    found = [call for session in sessions for call in calls(session)]
    return found, unread or failed or not sessions or coverage.skipped_records > 0


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in _places(item, (*path, key)))]


def _replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    made = dict(value) if isinstance(value, dict) else list(value)
    made[place[0]] = _replaced(made[place[0]], place[1:], new)
    return made


@pytest.mark.parametrize("name", ALL)
@QUICK
@given(data=st.data())
def test_any_value_may_be_replaced_by_a_hostile_one(name: str, tmp_path: Path, data: st.DataObject) -> None:
    values = ALL[name]()
    place = data.draw(st.sampled_from(_places(values)[1:]))
    made = _replaced(values, place, data.draw(st.sampled_from(HOSTILE)))
    path = tmp_path / "s1.jsonl"
    path.write_text("".join(f"{json.dumps(value)}\n" for value in made))
    read_traces(path)
    read_traces(path, format=name)


@pytest.mark.parametrize("name", ALL)
@QUICK
@given(data=st.data())
def test_a_file_that_ends_within_a_line_never_loses_a_call_without_a_word(
    name: str, tmp_path: Path, data: st.DataObject
) -> None:
    text = "".join(f"{json.dumps(value)}\n" for value in ALL[name]())
    end = data.draw(st.integers(1, len(text) - 2))
    if text[end - 1] == "\n" or text[end] == "\n":
        return  # whole lines: nothing in the file says that there were more
    path = tmp_path / "s1.jsonl"
    path.write_text(text[:end])
    found, is_reported = _is_reported(path, format=name)
    assert is_reported or found == CALLS


@pytest.mark.parametrize("name", LINES)
@QUICK
@given(data=st.data())
def test_a_damaged_line_never_loses_a_call_without_a_word(name: str, tmp_path: Path, data: st.DataObject) -> None:
    lines = [json.dumps(value) for value in LINES[name]()]
    number = data.draw(st.integers(0, len(lines) - 1))
    lines[number] = data.draw(st.sampled_from(['{"a', "null", "[1]", '"text"', "{}}", "\x00"]))
    path = tmp_path / "s1.jsonl"
    path.write_text("\n".join(lines) + "\n")
    found, is_reported = _is_reported(path, format=name)
    assert is_reported or found == CALLS


@pytest.mark.parametrize("name", TRACE_FORMATS)
def test_a_file_of_another_format_is_no_exception(name: str, tmp_path: Path) -> None:
    path = tmp_path / "s1.jsonl"
    for make in ALL.values():
        path.write_text("".join(f"{json.dumps(value)}\n" for value in make()))
        read_traces(path, format=name)
    for content in (b"PK\x03\x04", b"[" * 5000, b'{"a":' * 3000, b"\xff\xfe\x00", b"[{}]", b"{}", b"null\n"):
        path.write_bytes(content)
        read_traces(path, format=name)
