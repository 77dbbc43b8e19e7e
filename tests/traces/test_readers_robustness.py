"""Mutated, truncated and hostile files: never an exception, always a report, and no call is lost without a word."""

import io
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import agentv
from agentv.model.session import Session
from agentv.protocols.traces import TraceFormat
from agentv.registry import TRACE_FORMATS, find_trace_format
from agentv.traces import files, reading
from agentv.traces.detection import close_json, detect
from agentv.traces.files import HEAD_BYTES, TraceFile
from agentv.traces.reading import TraceReading
from agentv.traces.spans.store import SpanStore
from tests.support.examples import examples
from tests.support.trace_files import ALL, CALLS, LINES
from tests.support.traces import OTLP, calls, lines_of, read_one, read_traces, write_lines

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
WRONG: tuple[Any, ...] = (0, True, 1e308, "x", "{", [None], [1], ["x"], {"": None}, [[[[]]]])
"""Values in place of others that are not empty, so that something was there."""
TOOLS = ("get_order", "get_city")
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


def _write(path: Path, values: list[Any]) -> Path:
    return write_lines(path / "s1.jsonl", values)


def _passes(path: Path, tools: tuple[str, ...], **options: Any) -> bool:
    """Return whether a session of a file passes a check that forbids tools, and no record was reported as lost."""
    sessions, coverage = read_traces(path, **options)
    check = {"type": "tool_trajectory", "maximums": dict.fromkeys(tools, 0)}
    passed = [agentv.score(each.response, evaluators=[check]).status == "pass" for each in sessions]
    return any(passed) and not coverage.skipped_records


@pytest.mark.parametrize("name", ALL)
@QUICK
@given(data=st.data())
def test_any_value_may_be_replaced_by_a_hostile_one(name: str, tmp_path: Path, data: st.DataObject) -> None:
    values = ALL[name]()
    place = data.draw(st.sampled_from(_places(values)[1:]))
    path = _write(tmp_path, _replaced(values, place, data.draw(st.sampled_from(HOSTILE))))
    read_traces(path)
    read_traces(path, format=name)


@pytest.mark.parametrize("name", ALL)
@QUICK
@given(data=st.data())
def test_a_value_of_another_type_never_lets_a_forbidding_check_pass(
    name: str, tmp_path: Path, data: st.DataObject
) -> None:
    values = ALL[name]()
    place = data.draw(st.sampled_from(_places(values)[1:]))
    path = _write(tmp_path, _replaced(values, place, data.draw(st.sampled_from(WRONG))))
    assert not _passes(path, TOOLS)


@pytest.mark.soak
@pytest.mark.parametrize("name", ALL)
def test_no_value_of_another_type_lets_a_forbidding_check_pass(name: str, tmp_path: Path) -> None:
    values = ALL[name]()
    for place in _places(values)[1:]:
        for wrong in WRONG:
            assert not _passes(_write(tmp_path, _replaced(values, place, wrong)), TOOLS), (place, wrong)


@pytest.mark.parametrize("path", OTLP, ids=lambda path: path.name.partition(".")[0])
@QUICK
@given(data=st.data())
def test_a_value_of_another_type_in_otlp_never_lets_all_calls_vanish(
    path: Path, tmp_path: Path, data: st.DataObject
) -> None:
    values = lines_of(path)
    place = data.draw(st.sampled_from(_places(values)[1:]))
    made = _write(tmp_path, _replaced(values, place, data.draw(st.sampled_from(WRONG))))
    sessions, coverage = read_traces(made)
    texts = [call[0] for session in sessions for call in calls(session)]
    unread = any(session.response.unread for session in sessions)
    assert unread or coverage.skipped_records or any(session.response.error for session in sessions) or texts


@pytest.mark.parametrize("name", LINES)
@QUICK
@given(data=st.data())
def test_lines_may_be_dropped_repeated_and_shuffled(name: str, tmp_path: Path, data: st.DataObject) -> None:
    values = LINES[name]()
    order = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=len(values) + 3))
    path = _write(tmp_path, [values[at] for at in order])
    sessions, _ = read_traces(path, format=name)
    made = [call for session in sessions for call in calls(session)]
    assert all(made.count(call) <= 1 for call in made), "a repeated line is no second call"
    text = path.read_text()
    tells = any(word in text for word in (*TOOLS, '"c1"', '"c2"'))
    assert not (tells and _passes(path, TOOLS, format=name))


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


def _plugin(read: Any, detect: Any = lambda _: True) -> TraceFormat:
    return TraceFormat(name="plugin", description="of a plugin", detect=detect, read=read)


def _fail(*_: Any) -> Any:
    raise KeyError


def _yield_text(*_: Any) -> Any:
    yield "no session"


def _yield_broken_session(*_: Any) -> Any:
    yield Session(id="s", format="plugin", place="p", response=None)  # type: ignore[arg-type]  # a mistake


@pytest.mark.parametrize("read", [_fail, _yield_text, _yield_broken_session, lambda *_: None])
def test_a_reader_of_a_plugin_may_fail_in_any_way(read: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "find_format", lambda _: _plugin(read))
    path = _write(tmp_path, [{"a": 1}])
    sessions, coverage = read_traces(path, format="plugin")
    assert (sessions, coverage.skipped_records) == ([], 1)
    with pytest.raises(reading.StrictError):
        read_traces(path, format="plugin", strict=True)


def test_a_plugin_that_fails_in_detection_is_noted_and_others_are_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentv.traces.detection.trace_format_names", lambda: ["plugin", *TRACE_FORMATS])
    monkeypatch.setattr(
        "agentv.traces.detection.find_trace_format",
        lambda name: _plugin(_fail, _fail) if name == "plugin" else find_trace_format(name),
    )
    sessions, coverage = read_traces(_write(tmp_path, ALL["codex"]()))
    assert len(sessions) == 1
    assert any("'plugin' cannot be tried: KeyError" in note for note in coverage.notes)


def test_a_session_that_cannot_be_joined_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "join_spans", _fail)
    sessions, coverage = read_traces(_write(tmp_path, ALL["phoenix"]()))
    assert (sessions, coverage.skipped_records) == ([], 1)
    assert "session 's1' cannot be read: KeyError" in coverage.skipped[0].reason


class _CountedFile(TraceFile):
    """A file that counts the bytes that are read of it."""

    read_bytes = 0

    def open(self) -> Any:
        stream = super().open()
        counted = self

        class Counted(io.BufferedIOBase):
            def read(self, size: int | None = -1, /) -> bytes:
                data = stream.read(-1 if size is None else size)
                counted.read_bytes += len(data)
                return data

            def close(self) -> None:
                stream.close()
                super().close()

        return Counted()


@pytest.mark.parametrize("name", ALL)
def test_detection_reads_at_most_64_kb(name: str, tmp_path: Path) -> None:
    path = _write(tmp_path, ALL[name]() * 200)
    file = _CountedFile(str(path), path)
    assert detect(file).format is not None
    assert path.stat().st_size > HEAD_BYTES
    assert file.read_bytes <= HEAD_BYTES


def test_a_document_or_a_line_that_is_too_large_is_refused_with_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_DOCUMENT", 1000)
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(ALL["phoenix"](), indent=1))
    sessions, coverage = read_traces(path)
    assert sessions == []
    assert "is not read: write it as JSON Lines" in coverage.skipped[0].reason
    assert "jq -c" in coverage.skipped[0].reason
    lines = _write(tmp_path, [{"role": "user", "content": "x" * 2000}, {"role": "user", "content": "hi"}])
    (session,), coverage = read_traces(lines, format="messages")
    assert (coverage.skipped[0].place, bool(session.response.unread)) == (f"{lines}:1", True)


def test_spans_beyond_the_limit_of_memory_are_read_from_a_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _write(tmp_path, [line for path in OTLP for line in lines_of(path)])
    expected, _ = read_traces(path)
    stores = []

    def make() -> SpanStore:
        stores.append(SpanStore(memory_bytes=10_000))
        return stores[-1]

    monkeypatch.setattr(reading, "SpanStore", make)
    found = TraceReading((str(path),))
    assert list(found.sessions()) == expected
    assert stores[0].is_spilled


def test_pipes_devices_and_broken_links_of_a_folder_are_no_traces(tmp_path: Path) -> None:
    _write(tmp_path, LINES["codex"]())
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    (tmp_path / "broken.jsonl").symlink_to(tmp_path / "nowhere.jsonl")
    sessions, coverage = read_traces(tmp_path)
    assert [calls(session) for session in sessions] == [CALLS]
    assert (coverage.ignored_files, [record.place for record in coverage.skipped]) == (
        2,
        [str(tmp_path / "broken.jsonl")],
    )


def test_a_pipe_that_is_named_is_read(tmp_path: Path) -> None:
    values = "".join(f"{json.dumps(value)}\n" for value in LINES["codex"]())
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        pool.submit(pipe.write_text, values)
        assert calls(read_one(pipe)) == CALLS


def test_a_short_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = "".join(f"{json.dumps(value)}\n" for value in LINES["codex"]()).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert calls(read_one("-")) == CALLS


def test_a_beginning_of_deep_json_is_closed_in_linear_time() -> None:
    text = '{"a": ' + "[" * 65_000
    assert close_json(text) == text + "]" * 65_000 + "}"
