"""Files of sessions and exported runs with damaged and hostile values: never an exception, always a report."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agentv
from agentv.api.sessions.convert import convert_session
from agentv.traces.session_files import Form
from tests.support.examples import examples
from tests.support.trace_files import claude_code
from tests.support.traces import read_one, read_traces, write_lines

HOSTILE: list[Any] = [
    None,
    [],
    {},
    "",
    "x",
    -1,
    10**30,
    True,
    [[]],
    {"a": []},
    "\ud800".encode("utf-8", "replace").decode(),
]
FORBIDS = [{"type": "tool_trajectory", "maximums": {"get_order": 0, "get_city": 0}}]


def places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place, *(inner for key, item in items for inner in places(item, (*place, key)))]


def replaced(value: Any, place: tuple[Any, ...], new: Any) -> Any:
    if not place:
        return new
    made = dict(value) if isinstance(value, dict) else list(value)
    made[place[0]] = replaced(made[place[0]], place[1:], new)
    return made


@pytest.mark.parametrize("form", ["compact", "openai", "adk"])
@settings(max_examples=examples(200), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_any_value_of_a_line_may_be_hostile(form: Form, tmp_path: Path, data: st.DataObject) -> None:
    session = read_one(write_lines(tmp_path / "s1.jsonl", claude_code()))
    line = json.loads(convert_session(session, form))
    place = data.draw(st.sampled_from(places(line)[1:]))
    path = write_lines(tmp_path / "line.jsonl", [replaced(line, place, data.draw(st.sampled_from(HOSTILE)))])
    for sessions, coverage in (read_traces(path), read_traces(path, format="session")):
        assert sessions or coverage.skipped_records or coverage.notes
        for each in sessions:
            agentv.score(each.response, FORBIDS)


@pytest.mark.parametrize("form", ["compact", "openai", "adk", "otlp"])
def test_a_line_that_is_cut_off_is_reported_and_the_others_are_read(form: Form, tmp_path: Path) -> None:
    session = read_one(write_lines(tmp_path / "s1.jsonl", claude_code()))
    line = convert_session(session, form)
    path = tmp_path / "cut.jsonl"
    path.write_bytes(line + b"\n" + line[: len(line) // 2])
    sessions, coverage = read_traces(path)
    assert len(sessions) == 1
    assert coverage.skipped_records == 1
