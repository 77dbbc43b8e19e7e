"""`agentv convert`: sessions of traces in other forms."""

import gzip
import json
import shutil

import pytest

from agentv.exit_codes import ExitCode
from tests.support.command import Command
from tests.support.traces import FIXTURES, chat, request, said, user, write_lines


@pytest.fixture
def folder(run: Command) -> Command:
    (run.folder / "traces").mkdir()
    for name in ("adk.jsonl", "langchain_openinference.jsonl.gz"):
        shutil.copy(FIXTURES / name, run.folder / "traces" / name)
    return run


def test_messages_of_openai_are_written_to_a_compressed_file(folder: Command) -> None:
    done = folder("convert", "traces", "--to", "openai", "--out", "sessions.jsonl.gz")
    assert done.code == ExitCode.OK
    assert done.out == ""
    assert "wrote 3 sessions to sessions.jsonl.gz" in done.err
    lines = gzip.decompress((folder.folder / "sessions.jsonl.gz").read_bytes()).splitlines()
    first = json.loads(lines[0])
    assert first["messages"][1] == {"role": "user", "content": "add things"} | first["messages"][1]
    assert first["messages"][2]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a":1,"b":2}'}


def test_spans_are_printed_without_a_file(folder: Command) -> None:
    done = folder("convert", "traces", "--to", "otlp", "--where", "agent=math")
    (line,) = [json.loads(each) for each in done.out.splitlines()]
    spans = line["resourceSpans"][0]["scopeSpans"][0]["spans"]
    names = [span["name"] for span in spans]
    assert names[:4] == ["invoke_agent math", "chat test", "execute_tool add", "execute_tool add"]
    assert len({span["spanId"] for span in spans}) == len(spans)
    assert all(int(span["startTimeUnixNano"]) < int(span["endTimeUnixNano"]) for span in spans)


def test_json_says_what_was_written(folder: Command) -> None:
    done = folder("convert", "traces", "--to", "adk", "--out", "x.jsonl", "--json")
    data = json.loads(done.out)
    assert (data["schema"], data["sessions"], data["coverage"]["calls"]) == ("agentv.converted/1", 3, 8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["traces", "--to", "openai", "--json"], "--json needs --out FILE"),
        (["traces", "--to", "openai", "--out", "traces/adk.jsonl"], "would overwrite a file that is read"),
        (["traces", "--to", "openai", "--where", "id=none"], "no sessions to convert"),
        (["traces", "--to", "xml"], "'xml' is not one of"),
        (["traces", "--to", "otlp", "--out", "nowhere/x.jsonl"], "nowhere/x.jsonl cannot be written"),
    ],
)
def test_mistakes_of_the_command_line(folder: Command, arguments: list[str], message: str) -> None:
    done = folder("convert", *arguments)
    assert done.code == ExitCode.USAGE
    assert message in done.err


def test_a_bad_record_is_skipped_and_stays_unknown(folder: Command) -> None:
    path = write_lines(folder.folder / "bad.jsonl", [request(chat(1, 0, 1, [said("hi")], [user("hello")]))])
    path.write_text(path.read_text() + "{oops\n")
    assert folder("convert", "bad.jsonl", "--to", "otlp", "--out", "out.jsonl").code == ExitCode.ERROR
    (folder.folder / "p.eval.yaml").write_text(
        "defaults: {evaluators: [{type: tool_trajectory, forbidden: ['*']}]}", encoding="utf-8"
    )
    assert folder("score", "out.jsonl", "--eval", "p.eval.yaml").code == ExitCode.ERROR
