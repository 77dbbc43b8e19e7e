"""OTLP in protobuf tells the same sessions as in JSON, in both forms in which files are written."""

import json
from pathlib import Path

import pytest

from tests.support.otlp_protobuf import encode_request
from tests.support.traces import FIXTURES, OTLP, calls, lines_of, read_one, read_traces, request, span, write_lines


@pytest.mark.parametrize("path", OTLP, ids=lambda path: path.name.partition(".")[0])
@pytest.mark.parametrize("prefixed", [False, True], ids=["plain", "prefixed"])
def test_protobuf_is_read_as_json_is(path: Path, tmp_path: Path, *, prefixed: bool) -> None:
    made = tmp_path / "requests.pb"
    requests = [encode_request(value) for value in lines_of(path)]
    made.write_bytes(b"".join((len(each).to_bytes(4, "big") if prefixed else b"") + each for each in requests))
    read, coverage = read_traces(made)
    expected, _ = read_traces(path)
    assert coverage.skipped_records == 0
    assert [each.response for each in read] == [each.response for each in expected]
    assert [each.input_messages for each in read] == [each.input_messages for each in expected]


def test_a_request_that_is_cut_off_is_reported_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "requests.pb"
    data = encode_request(lines_of(OTLP[0])[0])
    path.write_bytes(data + data[:-5])
    _, coverage = read_traces(path)
    assert [each.place for each in coverage.skipped] == [f"{path}:2"]


def test_spans_beside_a_malformed_one_are_read(tmp_path: Path) -> None:
    values = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add"}
    spans = [span(number, "execute_tool add", 0, 1, attributes=values) for number in (1, 2, 3)]
    del spans[1]["spanId"]
    path = write_lines(tmp_path / "spans.jsonl", [request(spans[0], spans[1], None, spans[2])])
    (session,), coverage = read_traces(path)
    assert len(session.response.output_messages or ()) == 2
    assert (coverage.skipped_records, bool(session.response.unread)) == (2, True)


def test_a_result_of_the_third_api_of_jaeger_is_read(tmp_path: Path) -> None:
    (value,) = lines_of(FIXTURES / "adk.jsonl")
    path = tmp_path / "result.json"
    path.write_text(json.dumps({"result": value}), encoding="utf-8")
    assert calls(read_one(path)) == calls(read_one(FIXTURES / "adk.jsonl"))
