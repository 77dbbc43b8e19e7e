"""Files, replies, ids, paths and disks that mean harm: nothing breaks, nothing leaks, and everybody is told."""

import base64
import json
import os
import re
import shlex
import stat
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Command, Json, calls, cases, minimum, mocked, program, statuses, strict_json

MOCK = "targets: [{name: m, provider: mock, reply: ok}]\n"
CASE = "cases: [{id: a, input: b, evaluators: [{type: tool_trajectory, minimums: {x: 1}}]}]\n"
NO_CALLS = {"type": "tool_trajectory", "forbidden": ["x"]}
NEVER = b"\x1b\x07\x08\r\0"
OURS = re.compile(r"\x1b\[(?:0|1|2|31|32|33)m|\r\x1b\[2K")
"""The colours and the progress line; nothing else may look like this."""


def plain(seen: str) -> str:
    """Return the text sent to a terminal without our own control sequences; it must be printable."""
    text = OURS.sub("", seen)
    odd = [char for char in text if char != "\n" and not char.isprintable()]
    assert odd == [], text
    return text


# Eval files


def laughs(levels: int) -> str:
    """Every level says the one before it nine times."""
    names = "abcdefghijklmnop"[:levels]
    first = f"{names[0]}: &{names[0]} [{','.join('l' * 9)}]\n"
    return first + "".join(f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in pairwise(names))


HOSTILE_FILES: dict[str, tuple[str | bytes, str]] = {
    "billion-laughs": (laughs(11), "alias"),
    "small-bomb": (laughs(8), "alias"),
    "deep-flow": (MOCK + "cases: " + "[" * 200_000, "deep"),
    "deep-flow-closed": (MOCK + "cases: " + "[" * 200_000 + "]" * 200_000, "deep"),
    "deep-block": (MOCK + "cases:\n" + "- " * 100_000 + "x\n", "deep"),
    "deep-mapping": (MOCK + "cases: " + "{a: " * 100_000, "deep"),
    "self-reference": (MOCK + "cases: &a [*a]\n", ""),
    "merge-of-itself": (MOCK + "cases: &a {<<: *a}\n", ""),
    "invalid-utf-8": (MOCK.encode() + b"cases: [\xff\xfe\xc3]\n", "UTF-8"),
    "nul": (MOCK.encode() + b"cases: [a\0b]\n", ""),
    "nul-escaped": (MOCK + 'cases: [{id: a, input: "a\\0b"}]\n', "NUL"),
    "half-a-character": (MOCK + 'cases: [{id: a, input: "\\ud800"}]\n', "surrogate"),
    "escape": (MOCK.encode() + b"cases: [\x1b[2J]\n", ""),
    "duplicate-key": (MOCK + CASE + "cases: []\n", "'cases'"),
    "duplicate-deep": (MOCK + "cases: [{id: a, input: b, input: c}]\n", "'input'"),
    "tab": (MOCK + "cases:\n\t- id: a\n", "tab"),
    "python-object": (MOCK + 'cases: !!python/object/apply:os.system ["touch touched"]\n', "!!python"),
    "python-name": (MOCK + "cases: !!python/name:os.system\n", "!!python"),
    "other-tag": (MOCK + "cases: !include other.yaml\n", "!include"),
    "two-documents": (MOCK + CASE + "---\ncases: []\n", "document"),
    "unclosed": (MOCK + 'cases: ["\n', ""),
    "number": ("42\n", "mapping"),
    "not-finite": (MOCK + "cases: [{id: a, input: b, threshold: .nan, evaluators: [{type: x}]}]\n", ""),
    "not-a-key": (MOCK + "cases: [{[a, b]: c, {d: e}: f}]\n", ""),
    "huge-number": (MOCK + f"cases: [{{id: {'9' * 5000}, input: b}}]\n", ""),
    "long-key": (MOCK + "k" * 1_000_000 + ": 1\n", ""),
}


def test_hostile_evals_are_refused_with_their_place_and_run_nothing(run: Command) -> None:
    """All of them at once: one that took us down would take the errors of the others with it."""
    for name, (content, _) in HOSTILE_FILES.items():
        run.write(f"{name}.eval.yaml", content)
    result = run("validate", ".")
    assert (result.code, result.out) == (2, "")
    assert "Traceback" not in result.err
    assert not set(result.err.encode()) & set(NEVER)
    told: dict[str, list[str]] = {}
    for line in result.err.split("\n"):
        if found := re.match(r"([a-z0-9-]+)\.eval\.yaml(:\d+(:\d+)?)?: (.*)", line):
            told.setdefault(found[1], []).append(line)
    assert told.keys() == HOSTILE_FILES.keys(), "each file has an error of its own"
    for name, (_, word) in HOSTILE_FILES.items():
        assert any(word in line for line in told[name]), (name, told[name])
        assert all(len(line) < 1_000 for line in told[name]), f"{name}: an error is read by people"
    assert all(len(line) < 2_000 for line in result.err.split("\n"))
    assert not (run.folder / "touched").exists()


def test_ten_megabytes_of_yaml_are_read_or_refused_in_seconds(run: Command) -> None:
    case = "  - {id: c%d, input: %s, evaluators: [{type: tool_trajectory, minimums: {x: 1}}]}\n"
    run.write("wide.eval.yaml", MOCK + "cases:\n" + "".join(case % (n, "x" * 10_000) for n in range(1_000)))
    result = run("validate", "wide.eval.yaml")
    assert result.code in {0, 2}
    assert ("ok, 1,000 cases" in result.out) if result.code == 0 else ("large" in result.err)
    run.write("blank.eval.yaml", MOCK + CASE + "# nothing\n" * 1_100_000)
    result = run("validate", "blank.eval.yaml")
    assert result.code in {0, 2}
    assert "Traceback" not in result.err


HOSTILE_LINES: list[tuple[bytes, str]] = [
    (b'{"id": "deep", "input": "x", "vars": {"a": ' + b"[" * 200_000 + b"]" * 200_000 + b"}}", ""),
    (b'{"id": "deeper", "input": "x", "vars": {"a": ' + b"[" * 600 + b"]" * 600 + b"}}", "deeper"),
    (b"[" * 200_000, ""),
    (b'{"id": "nul\0", "input": "x"}', ""),
    (b'{"id": "nan", "input": "x", "threshold": NaN}', ""),
    (b'{"id": "half", "input": ', ""),
    (b'{"id": "typo", "input": "x", "evalutors": []}', "did you mean 'evaluators'?"),
    (rb'{"id": "half a character", "input": "\ud800"}', ""),
    (b"null", "object"),
    (b'{"id": "more", "input": "x"} {"id": "on this line", "input": "x"}', ""),
    (b'{"id": "away", "input": "file:///etc/passwd"}', "outside"),
    (b'{"id": "\x1b[2J", "input": "x"}', ""),
]
UNCAUGHT: dict[str, bytes] = {
    "invalid UTF-8 in an id": b'{"id": "\xff\xfe", "input": "x"}',
    "invalid UTF-8 in a key": b'{"id": "a", "input": "x", "vars": {"\xc3": 1}}',
    "a number of 5,000 digits": b'{"id": "a", "input": "x", "vars": {"a": 1' + b"0" * 5_000 + b"}}",
    "a number beyond all bounds": b'{"id": "a", "input": "x", "vars": {"a": 1e999}}',
}
CHECKED = MOCK + "defaults: {evaluators: [{type: tool_trajectory, minimums: {x: 1}}]}\n"


def test_hostile_lines_of_a_dataset_are_refused_with_their_number(run: Command) -> None:
    run.write("lines.jsonl", b"\n".join(line for line, _ in HOSTILE_LINES))
    run.write("data.eval.yaml", CHECKED + "dataset: lines.jsonl\n")
    result = run("validate", "data.eval.yaml")
    assert (result.code, result.out) == (2, "")
    assert "Traceback" not in result.err
    assert not set(result.err.encode()) & set(NEVER)
    for number, (_, word) in enumerate(HOSTILE_LINES, start=1):
        told = re.findall(rf"^lines\.jsonl:{number}: .*", result.err, re.MULTILINE)
        assert any(word in line for line in told), (number, told)
    assert result.err.endswith(f"\n{len(HOSTILE_LINES)} errors, nothing was run\n")


@pytest.mark.parametrize("line", UNCAUGHT.values(), ids=UNCAUGHT)
def test_a_line_that_the_parser_gives_up_on_is_refused_with_its_number(run: Command, line: bytes) -> None:
    run.write("lines.jsonl", line)
    run.write("data.eval.yaml", CHECKED + "dataset: lines.jsonl\n")
    result = run("validate", "data.eval.yaml")
    assert result.code == 2
    assert "lines.jsonl:1" in result.err


@pytest.mark.parametrize(
    "line", ['{"id": "a", "id": "b", "input": "x"}', '{"id": "a", "input": "x", "vars": {"a": 1, "a": 2}}']
)
def test_a_key_given_twice_in_a_dataset_is_an_error_as_in_yaml(run: Command, line: str) -> None:
    run.write("lines.jsonl", line)
    run.write("data.eval.yaml", CHECKED + "dataset: lines.jsonl\n")
    result = run("validate", "data.eval.yaml")
    assert result.code == 2
    assert "lines.jsonl:1" in result.err


def test_the_line_of_a_mistake_is_shown_in_the_encoding_of_its_file(run: Command) -> None:
    run.write("a.eval.yaml", f"{MOCK}{CASE}wrnog: 1\n".encode("utf-16"))
    assert run("validate", "a.eval.yaml").err.splitlines()[1:3] == ["    3 | wrnog: 1", "      | ^^^^^"]


def test_of_a_line_without_end_the_part_around_the_mistake_is_shown(run: Command) -> None:
    """A file that a program wrote is often one line."""
    case = {"id": "a", "input": "é" * 5_000, "evaluators": [NO_CALLS], "wrnog": 1}
    run.write("a.eval.yaml", json.dumps({"targets": [mocked()], "cases": [case]}, ensure_ascii=False))
    _, line, marks, _ = run("validate", "a.eval.yaml").err.splitlines()
    assert len(line) < 250
    start = marks.index("^")
    assert line[start : start + marks.count("^")] == '"wrnog"'


def test_names_of_any_length_make_no_message_of_any_length(run: Command) -> None:
    run.write(
        "a.eval.yaml", MOCK + "defaults: {evaluators: [{type: tool_trajectory, forbidden: [x]}]}\ndataset: d.jsonl\n"
    )
    long = "x" * 1_000_000
    lines = [
        {"id": "a", "input": "b", long: 1},
        {"id": long, "input": "b"},
        {"id": long, "input": "b"},
        {"id": "b", "input": "{{ y }}", "vars": {long: 1, **{str(number): 1 for number in range(5_000)}}},
        {"id": "c", "input": "b", "repeat": 10**400},
    ]
    run.write("d.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    result = run("validate", "a.eval.yaml")
    told = [re.match(r"d\.jsonl:(\d):", line) for line in result.err.splitlines()[:-1]]
    assert [found and found[1] for found in told] == ["1", "3", "4", "5"]
    assert len(result.err) < 5_000


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"id": "a",', "write the whole object on one line"),
        ('{"id": "a", "input": "\\ud800"}', "half a character"),
        ('{"id": true, "input": "b"}', "got true"),
    ],
)
def test_what_is_wrong_with_a_line_is_said_in_words_of_json(run: Command, line: str, words: str) -> None:
    run.write(
        "a.eval.yaml", MOCK + "defaults: {evaluators: [{type: tool_trajectory, forbidden: [x]}]}\ndataset: d.jsonl\n"
    )
    run.write("d.jsonl", line + "\n")
    assert words in run("validate", "a.eval.yaml").err


def test_nul_characters_of_a_dataset_reach_no_result(run: Command) -> None:
    run.write("lines.jsonl", rb'{"id": "a\u0000b", "input": "c\u0000d", "vars": {"e": "\u0000"}}')
    run.write("data.eval.yaml", CHECKED.replace(", reply: ok", "") + "dataset: lines.jsonl\n")
    result = run("eval", "data.eval.yaml", "--json", "--include-messages")
    assert result.code in {1, 2}
    assert result.lines
    assert "\\u0000" not in result.out


# Replies

SHOUT = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202eevil\x08\x7f\rgone\0"
DEEP = b'{"text": "deep", "raw": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
REPLIES: dict[str, bytes] = {
    "good": json.dumps(calls("search")).encode(),
    "lone-surrogates": rb'{"text": "a\ud800b", "output_messages": [{"role": "assistant", "content": "\udfff"}]}',
    "surrogate-keys": rb'{"output_messages": [{"role": "assistant", "tool_calls": [{"tool": "\ud800", "\ud801": 1}]}]}',
    "nan": b'{"text": "x", "cost_usd": NaN, "latency_ms": Infinity, "metadata": {"a": -Infinity}}',
    "huge-number": b'{"text": "x", "cost_usd": 1e999, "tokens_usage": {"input_tokens": 1' + b"0" * 400 + b"}}",
    "nul": b'{"text": "a\\u0000b", "thread_id": "\\u0000"}',
    "raw-nul": b"a\0b",
    "escapes": json.dumps(calls(SHOUT, text=SHOUT)).encode(),
    "raw-escapes": SHOUT.encode(),
    "invalid-utf-8": b"\xff\xfe\xc3 text",
    "deep": DEEP,
    "deep-messages": b'{"output_messages": [{"role": "assistant", "content": '
    + b"[" * 200_000
    + b"]" * 200_000
    + b"}]}",
    "deep-bare": b"[" * 200_000,
    "deep-objects": b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
    "wrong-types": b'{"text": {"a": 1}, "output_messages": 7, "trace": "x", "tokens_usage": [], "error": 3}',
    "wrong-items": b'{"output_messages": [1, null, {"role": 5, "tool_calls": {"tool": "x"}}, {"tool_calls": [7]}]}',
    "number": b"42",
    "null": b"null",
    "nothing": b"",
    "half": b'{"output_messages": [{"role": "assistant", "tool_calls": [{"tool": "sear',
    "endless": b"x" * 12_000_000,
}
PRINTS = """
import sys
name = sys.argv[1]
if name == "crash":
    sys.stderr.write(open("shout", newline="").read())
    sys.exit(7)
with open(f"replies/{name}", "rb") as file:
    sys.stdout.buffer.write(file.read())
"""


@pytest.fixture(scope="module")
def hostile_agent(module_run: Command) -> Command:
    run = module_run
    for name, reply in REPLIES.items():
        run.write(f"replies/{name}", reply)
    run.write("agent.py", PRINTS)
    run.write("shout", SHOUT)
    run.write("hostile.eval.yaml", {"targets": [program("agent.py", "{case_id}")], "cases": cases(*REPLIES, "crash")})
    return run


def test_hostile_replies_reach_no_file_raw_and_spoil_no_other_case(hostile_agent: Command) -> None:
    run = hostile_agent
    asked = ("--include-messages", "--include-trace", "--out", "results.jsonl")
    result = run("eval", "hostile.eval.yaml", "--json", *asked)
    *printed, summary = result.lines
    records = {record["case_id"]: record for record in run.records()}
    assert result.code == 3
    assert result.err == ""
    assert len(printed) == len(records) == summary["runs"] == len(REPLIES) + 1
    assert [name for name, record in records.items() if record["status"] == "pass"] == ["good"]
    text = (run.folder / "results.jsonl").read_bytes()
    assert not set(text) & set(NEVER)
    assert all(b"\\u0000" not in line for line in (text, result.out.encode()))
    for name in ("half", "nothing", "crash", "deep", "deep-messages", "wrong-types"):
        assert (name, records[name]["status"]) == (name, "error")
        assert records[name]["error"]["kind"] in {"protocol", "agent"}
    assert "exit code 7" in records["crash"]["error"]["message"]
    assert records["nan"]["cost_usd"] is None
    assert records["huge-number"]["cost_usd"] is None
    assert len(records["endless"]["candidate"]) < 11_000_000
    assert any("10,000,000 bytes" in warning for warning in records["endless"]["warnings"])
    for line in text.split(b"\n")[:-1]:
        assert len(line) < 25_000_000


def test_escape_sequences_of_an_agent_do_not_reach_the_terminal(hostile_agent: Command) -> None:
    globs = ("good", "*escapes", "crash", "lone*", "surr*", "nul", "raw-nul")
    chosen = [part for glob in globs for part in ("--case", glob)]
    code, seen = hostile_agent.on_terminal("eval", "hostile.eval.yaml", "-v", *chosen)
    text = plain(seen)
    assert code == 3
    assert "\\u001b[2J" in text, "it is shown, not obeyed"
    assert "\\u202eevil" in text
    piped = hostile_agent("eval", "hostile.eval.yaml", "-v", *chosen)
    assert plain(piped.out) == piped.out
    assert plain(piped.err) == piped.err


def test_escape_sequences_of_a_file_do_not_reach_the_terminal(run: Command) -> None:
    shout = SHOUT.replace("\0", "")
    case = cases(f"case {shout}", check=minimum(x=1))
    targets = [mocked(calls("x"), name=f"target {shout}")]
    document = json.dumps({"name": f"name {shout}", "targets": targets, "cases": case})  # JSON is YAML, and escapes
    run.write("shout.eval.yaml", document)
    run.write("wrong.eval.yaml", document.replace('"minimums"', json.dumps(f"minimum {shout}")))
    for arguments in (
        ("eval", "shout.eval.yaml", "-v"),
        ("eval", "shout.eval.yaml", "--dry-run"),
        ("eval", "shout.eval.yaml", "--case", f"none {shout}"),
        ("eval", "shout.eval.yaml", "--target", f"none {shout}"),
        ("validate", "wrong.eval.yaml"),
    ):
        _, seen = run.on_terminal(*arguments)
        assert "u001b[2J" in plain(seen), arguments


def test_escape_sequences_in_json_do_not_reach_the_terminal_either(hostile_agent: Command) -> None:
    _, seen = hostile_agent.on_terminal("eval", "hostile.eval.yaml", "--json", "-q", "--case", "*escapes")
    assert not {char for char in seen if char != "\n" and (ord(char) < 32 or 127 <= ord(char) < 160)}


def test_escape_sequences_of_a_target_do_not_reach_the_terminal_in_validate(run: Command) -> None:
    targets = [mocked(calls("x"), name="target \x1b[2J")]
    run.write("shout.eval.yaml", json.dumps({"targets": targets, "cases": cases("a")}))
    _, seen = run.on_terminal("validate", "shout.eval.yaml")
    plain(seen)


def test_a_file_name_with_escape_sequences_does_not_reach_the_terminal(run: Command) -> None:
    run.write("a\x1b[2J.eval.yaml", MOCK + "cases: []\n")
    _, seen = run.on_terminal("validate", ".")
    assert "u001b[2J" in plain(seen)
    _, seen = run.on_terminal("eval", "nowhere\x1b[2J")
    assert "1b[2J' does not exist" in plain(seen)


def test_one_poisoned_reply_among_a_thousand_stops_no_other(run: Command) -> None:
    names = [f"c{number}" for number in range(1_000)]
    lines = [json.dumps({"id": name, **calls("search")}).encode() for name in names]
    lines[500] = b'{"id": "c500", "output_messages": [{"role": "assistant", "tool_calls": [\xff'
    run.write("replies.jsonl", b"\n".join(lines))
    run.write("lines.jsonl", "".join(json.dumps(case) + "\n" for case in cases(*names)))
    target = {"name": "recorded", "provider": "replay", "file": "replies.jsonl"}
    run.write("many.eval.yaml", {"targets": [target], "dataset": "lines.jsonl"})
    result = run("eval", "many.eval.yaml", "--json", "--out", "results.jsonl")
    summary = result.lines[-1]
    assert (result.code, summary["passed"], summary["failed"], summary["errors"]) == (3, 999, 0, 1)
    (bad,) = [record for record in run.records() if record["status"] != "pass"]
    assert (bad["case_id"], bad["error"]["kind"]) == ("c500", "protocol")
    assert "501" in bad["error"]["message"], "the line that cannot be read"


def test_an_expression_that_explodes_holds_nobody_up(run: Command) -> None:
    """Each of these takes a backtracking engine longer than the universe is old."""
    explosive = {"one": "^(a+)+$", "two": "^(a|aa)+$", "three": "^(a|a?)+$", "four": "^(.*a){25}$"}
    listed: list[Json] = []
    for name, pattern in explosive.items():
        expected = [{"tool": "search", "input": {"query": {"$regex": pattern}}}]
        listed += cases(name, check={"type": "tool_trajectory", "mode": "exact", "expected": expected})
    call = {"tool": "search", "input": {"query": "a" * 60 + "!"}}
    reply = {"output_messages": [{"role": "assistant", "tool_calls": [call]}]}
    run.write("slow.eval.yaml", {"targets": [mocked(reply)], "cases": [*listed, *cases("plain")]})
    *records, _ = run("eval", "slow.eval.yaml", "--json").lines
    found = statuses(records)
    assert found.pop("plain") == "pass"
    assert found.keys() == explosive.keys()
    assert set(found.values()) <= {"fail", "error"}


def test_values_are_put_in_once_and_never_read_again(run: Command) -> None:
    values = {"a": "{{ b }} ${HOME} file:///etc/passwd {prompt}", "b": "read again"}
    case = {"id": "a", "input": "{{ a }}", "vars": values, "evaluators": [NO_CALLS]}
    run.write("agent.py", "import json, sys; print(json.dumps({'text': sys.argv[1]}))")
    run.write("vars.eval.yaml", {"targets": [mocked(), program("agent.py", "{prompt}")], "cases": [case]})
    *records, _ = run("eval", "vars.eval.yaml", "--json").lines
    assert [record["candidate"] for record in records] == [values["a"]] * 2


# Ids

IDS = [
    "a/b",
    "a\nb",
    "../../etc/passwd",
    "/etc/passwd",
    "CON",
    "nul.txt",
    ".",
    "..",
    "~",
    "-rf",
    "$(touch touched)",
    "; touch touched",
    "{prompt}",
    "%s%n",
    "x" * 300,
    "é" * 150,
    "a\\b",
    " ",
    "*",
    "[",
]


def test_ids_are_names_and_never_paths(run: Command) -> None:
    run.write("agent.py", """import sys; open(sys.argv[1], "w").write('{"text": "x"}')""")
    outside = run.folder.parent / "etc"
    outside.mkdir()
    (outside / "passwd.json").write_text(json.dumps(calls("search", text="OUTSIDE")))
    targets = [
        program("agent.py", "{output_file}", "{case_id}", "{workspace}"),
        {"name": "recorded", "provider": "replay", "file": "replies/{case_id}.json"},
        mocked(calls("search")),
    ]
    run.write("replies/CON.json", json.dumps(calls("search")))
    run.write("ids.eval.yaml", json.dumps({"targets": targets, "cases": cases(*IDS)}))
    result = run("eval", "ids.eval.yaml", "--json", "--out", "results.jsonl")
    *records, _ = result.lines
    assert result.code == 3
    found = {(record["target"], record["case_id"]): record for record in records}
    assert [found["scripted", name]["status"] for name in IDS] == ["pass"] * len(IDS)
    assert [found["program", name]["error"] for name in IDS] == [None] * len(IDS)
    assert [name for name in IDS if found["recorded", name]["status"] == "pass"] == ["CON"]
    assert "OUTSIDE" not in result.out
    left = sorted(path.relative_to(run.folder).as_posix() for path in run.folder.rglob("*"))
    store = [".agentv", ".agentv/.gitignore", ".agentv/runs.db"]
    assert left == [*store, "agent.py", "ids.eval.yaml", "replies", "replies/CON.json", "results.jsonl"]
    assert list(run.temporary.iterdir()) == []
    plain_words = run.on_terminal("eval", "ids.eval.yaml", "--target", "recorded")[1]
    assert "a\\u000ab" in plain(plain_words), "a line break in an id cannot forge a line"


def test_an_id_chosen_by_a_glob_is_an_id_first(run: Command) -> None:
    """`next:` quotes the id, and what it says finds that case."""
    run.write("ids.eval.yaml", {"targets": [mocked("no")], "cases": cases("a b'c")})
    last = run("eval", "ids.eval.yaml").out.splitlines()[-1]
    assert last.startswith("next: agentv eval ids.eval.yaml --case ")
    assert run(*shlex.split(last.removeprefix("next: agentv "))).code == 1


# Paths


@pytest.fixture
def outside(run: Command) -> list[str]:
    """Three ways to a file beside the project that is readable and well formed."""
    reply = {"id": "a", **calls("search", text="OUTSIDE"), "input": "OUTSIDE", "evaluators": [minimum(search=1)]}
    beside = run.folder.parent / "outside"
    beside.mkdir()
    for name in ("file.txt", "file.json", "file.jsonl"):
        (beside / name).write_text(json.dumps(reply) + "\n")
    (beside / "trace.json").write_text(json.dumps([{"type": "tool_call", "name": "search", "text": "OUTSIDE"}]))
    (run.folder / "link").symlink_to(beside)
    (run.folder / "linked.jsonl").symlink_to(beside / "file.jsonl")
    return [str(beside), "../outside", "link", "deep/../../outside"]


def test_content_and_datasets_stay_below_the_root(run: Command, outside: list[str]) -> None:
    (run.folder / "deep").mkdir()
    for number, way in enumerate(outside):
        contents = [{**cases("a")[0], "input": f"file://{way}/file.txt"}]
        run.write(f"content{number}.eval.yaml", {"targets": [mocked()], "cases": contents})
        run.write(f"dataset{number}.eval.yaml", {"targets": [mocked()], "dataset": f"{way}/file.jsonl"})
    run.write("dataset9.eval.yaml", {"targets": [mocked()], "dataset": "linked.jsonl"})
    run.write("absent.eval.yaml", {"targets": [mocked()], "cases": [{**cases("a")[0], "input": "file://nowhere.txt"}]})
    result = run("eval", ".", "--json")
    errors = strict_json(result.out)["errors"]
    assert result.code == 2
    assert "OUTSIDE" not in result.out + result.err
    told = {error["file"]: error["message"] for error in errors}
    assert len(told) == 2 * len(outside) + 2
    assert all("lies outside" in message for name, message in told.items() if name != "absent.eval.yaml")
    assert "nowhere.txt" in told["absent.eval.yaml"]


def test_recorded_replies_and_traces_stay_below_the_root(run: Command, outside: list[str]) -> None:
    (run.folder / "deep").mkdir()
    targets: list[Json] = []
    for number, way in enumerate(outside):
        targets += [
            {"name": f"lines{number}", "provider": "replay", "file": f"{way}/file.jsonl"},
            {"name": f"whole{number}", "provider": "replay", "file": f"{way}/file.json"},
            {"name": f"named{number}", "provider": "replay", "file": f"{way}/{{case_id}}.json"},
            mocked({"text": "x", "trace_ref": f"{way}/trace.json"}, name=f"trace{number}"),
        ]
    run.write("agent.py", "import sys; open(sys.argv[1] + '/t', 'w').write('[]'); print(open('reply').read())")
    run.write("reply", json.dumps({"trace_ref": f"{outside[0]}/trace.json"}))
    targets.append(program("agent.py", "{workspace}"))
    run.write("paths.eval.yaml", {"targets": targets, "cases": cases("file")})
    result = run("eval", "paths.eval.yaml", "--json", "--include-trace", "--include-messages")
    *records, _ = result.lines
    assert result.code == 3
    assert len(records) == len(targets)
    assert "OUTSIDE" not in result.out + result.err
    for record in records:
        assert (record["target"], record["status"]) != (record["target"], "pass")
        told = json.dumps([record["error"], record["warnings"]])
        assert "lies outside" in told, record["target"]


def test_what_lies_below_the_root_may_be_linked_and_reached_from_a_subfolder(run: Command) -> None:
    run.write("agentv.yaml", {"targets": [mocked()]})
    run.write("shared/question.txt", "search?")
    (run.folder / "deep").mkdir()
    (run.folder / "deep/link.txt").symlink_to("../shared/question.txt")
    listed = [
        {"id": name, "input": f"file://{name}", "evaluators": [NO_CALLS]}
        for name in ("../shared/question.txt", "link.txt")
    ]
    run.write("deep/a.eval.yaml", {"cases": listed})
    *records, _ = run("eval", "deep", "--json").lines
    assert [record["candidate"] for record in records] == ["search?"] * 2, "a mock repeats the question"


# Results that cannot be written

TOUCH = "from pathlib import Path; Path('touched').touch(); print('{}')"


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A file system of its own, if we may make one."""
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a file system")
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(sys.platform != "linux", reason="file systems are mounted in another way elsewhere")
def test_a_read_only_folder_is_told_before_anything_runs(run: Command) -> None:
    run.write("agent.py", TOUCH)
    run.write("a.eval.yaml", {"targets": [program("agent.py")], "cases": cases("a")})
    with mounted(run.folder / "fixed", "size=64k,ro"):
        result = run.process("eval", "a.eval.yaml", "--out", "fixed/results.jsonl")
    assert (result.code, result.out) == (2, "")
    assert "fixed/results.jsonl cannot be written: Read-only file system" in result.err
    assert not (run.folder / "touched").exists()


@pytest.mark.parametrize("out", ["nowhere/results.jsonl", "agent.py/results.jsonl", ".", "n" * 300])
def test_a_file_that_cannot_be_made_is_told_before_anything_runs(run: Command, out: str) -> None:
    run.write("agent.py", TOUCH)
    run.write("a.eval.yaml", {"targets": [program("agent.py")], "cases": cases("a")})
    result = run("eval", "a.eval.yaml", "--out", out)
    assert (result.code, result.out) == (2, "")
    assert out in result.err
    assert not (run.folder / "touched").exists()


FULL = {"targets": [mocked(calls("search", text="x" * 4_000))], "cases": cases(*[f"c{n}" for n in range(100)])}


@pytest.mark.skipif(sys.platform != "linux", reason="file systems are mounted in another way elsewhere")
def test_a_full_disk_keeps_what_was_finished(run: Command) -> None:
    run.write("a.eval.yaml", FULL)
    with mounted(run.folder / "small", "size=64k"):
        result = run.process("eval", "a.eval.yaml", "--out", "small/results.jsonl", "--json")
        records = run.records("small/results.jsonl")
    assert result.code == 3
    assert "No space left on device" in result.err
    assert "Traceback" not in result.err
    assert 1 <= len(records) < 100
    assert {record["status"] for record in records} == {"pass"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_the_message_about_a_full_disk_names_the_path_and_what_to_do(run: Command) -> None:
    run.write("a.eval.yaml", FULL)
    result = run("eval", "a.eval.yaml", "--out", "/dev/full")
    assert result.code == 3
    assert "/dev/full cannot be written: No space left on device" in result.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_a_standard_output_that_is_full_is_told_too(run: Command) -> None:
    run.write("a.eval.yaml", FULL)
    with Path("/dev/full").open("wb") as full:
        process = run.start("eval", "a.eval.yaml", "--json", stdout=full)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert b"No space left on device" in err
    assert b"Traceback" not in err


def swapped(run: Command) -> None:
    """An eval whose first run ends last, so that results must be put in order."""
    targets = [mocked(calls("search"), name="slow", delay_ms=200), mocked(calls("search"), name="fast")]
    run.write("a.eval.yaml", {"targets": targets, "cases": cases("a")})


def test_results_are_private_even_where_a_file_was_not(run: Command) -> None:
    swapped(run)
    run.write("results.jsonl", "old\n").chmod(0o644)
    (run.folder / "link.jsonl").symlink_to("results.jsonl")
    assert run("eval", "a.eval.yaml", "--out", "results.jsonl").code == 0
    assert stat.S_IMODE((run.folder / "results.jsonl").stat().st_mode) == 0o600
    assert [record["target"] for record in run.records()] == ["slow", "fast"]


def test_results_go_where_a_link_leads(run: Command) -> None:
    swapped(run)
    run.write("real/results.jsonl", "")
    (run.folder / "results.jsonl").symlink_to("real/results.jsonl")
    assert run("eval", "a.eval.yaml", "--out", "results.jsonl").code == 0
    assert (run.folder / "results.jsonl").is_symlink()
    assert [record["target"] for record in run.records("real/results.jsonl")] == ["slow", "fast"]


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root may make a device")
def test_a_device_stays_a_device(run: Command) -> None:
    """As root, `--out /dev/null` must leave that as it is."""
    swapped(run)
    null = run.folder / "null"
    os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    assert run("eval", "a.eval.yaml", "--out", "null").code == 0
    assert stat.S_ISCHR(null.stat().st_mode)


@pytest.mark.parametrize("out", ["a.eval.yaml", "lines.jsonl", "agentv.yaml", "./sub/../lines.jsonl", "recorded.jsonl"])
def test_results_never_overwrite_what_is_read(run: Command, out: str) -> None:
    """A slip of the shell's completion must not cost a dataset."""
    (run.folder / "sub").mkdir()
    run.write("agentv.yaml", {"targets": [{"name": "recorded", "provider": "replay", "file": "recorded.jsonl"}]})
    run.write("a.eval.yaml", {"target": "recorded", "dataset": "lines.jsonl"})
    run.write("lines.jsonl", "".join(json.dumps(case) + "\n" for case in cases("a", "b", "c")))
    run.write("recorded.jsonl", "".join(json.dumps({"id": name, **calls("search")}) + "\n" for name in "abc"))
    before = (run.folder / out).read_bytes()
    result = run("eval", "a.eval.yaml", "--out", out)
    assert (run.folder / out).read_bytes() == before
    assert result.code == 2
    assert out in result.err


def test_runs_that_were_planned_and_not_made_are_no_pass(run: Command) -> None:
    """Here the agent empties the dataset while it is read: most of the cases are never measured."""
    run.write("agent.py", f"open('lines.jsonl', 'w').close(); print({json.dumps(calls('search'))!r})")
    many = [f"{number}-{'x' * 2000}" for number in range(300)]
    run.write("lines.jsonl", "".join(json.dumps(case) + "\n" for case in cases(*many)))
    run.write("a.eval.yaml", {"targets": [program("agent.py")], "cases": cases("a"), "dataset": "lines.jsonl"})
    result = run("eval", "a.eval.yaml", "--json", "--max-concurrency", "1")
    *records, summary = result.lines
    assert summary["planned"] == 301
    assert 1 <= len(records) < 100
    assert summary["status"] != "pass"
    assert result.code == 3, "the measurement is incomplete"


# Secrets

SECRET = 'pä"ss/w+rd %&=42\\tail'  # noqa: S105 - it opens nothing
FORMS = {
    "raw": SECRET,
    "percent-encoded": urllib.parse.quote(SECRET, safe=""),
    "percent-encoded, with slashes": urllib.parse.quote(SECRET),
    "of a form": urllib.parse.quote_plus(SECRET),
    "base64": base64.b64encode(SECRET.encode()).decode().rstrip("="),
    "base64 for addresses": base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
    "JSON": json.dumps(SECRET)[1:-1],
    "JSON, beyond ASCII": json.dumps(SECRET, ensure_ascii=False)[1:-1],
    "JSON in JSON": json.dumps(json.dumps(SECRET))[3:-3],
    "in an address": base64.b64encode(f"user:{SECRET}".encode()).decode()[8:-4],
}
LEAKS = """
import base64, json, os, sys, urllib.parse
secret, how = os.environ["MY_SECRET"], sys.argv[1]
forms = [secret, urllib.parse.quote(secret, safe=""), urllib.parse.quote(secret), urllib.parse.quote_plus(secret)]
forms += [base64.b64encode(secret.encode()).decode(), base64.urlsafe_b64encode(secret.encode()).decode()]
forms += [json.dumps(secret), json.dumps(secret, ensure_ascii=False), json.dumps(json.dumps(secret))]
forms += ["Authorization: Basic " + base64.b64encode(f"user:{secret}".encode()).decode()]
if how == "fails":
    print(*forms, sep="\\n", file=sys.stderr)
    sys.exit(1)
if how == "text":
    print(*forms, sep="\\n")
    sys.exit()
calls = [{"tool": "search " + form, "input": {"query": form, form: [form]}, "output": form} for form in forms]
message = {"role": "assistant", "content": " ".join(forms), "tool_calls": calls, "metadata": dict.fromkeys(forms, 1)}
print(json.dumps({"output_messages": [message], "thread_id": secret, "reasoning": secret, "trace": [], secret: secret}))
"""


@pytest.mark.parametrize("options", [("--json",), ("-v",), ("-q", "--include-messages", "--include-trace")])
def test_a_secret_is_in_nothing_that_a_run_leaves(run: Command, options: tuple[str, ...]) -> None:
    run.write("agent.py", LEAKS)
    target = program("agent.py", "{case_id}", env=["MY_SECRET"])
    check: Json = {
        "type": "tool_trajectory",
        "mode": "exact",
        "expected": [{"tool": "search", "input": {"query": "x"}}],
    }
    run.write("secret.eval.yaml", {"targets": [target], "cases": cases("calls", "text", "fails", check=check)})
    before = set(run.folder.iterdir())
    more = ("--include-messages", "--include-trace") if options == ("--json",) else ()
    result = run("eval", "secret.eval.yaml", "--out", "results.jsonl", *options, *more, env={"MY_SECRET": SECRET})
    assert result.code == 3
    texts: dict[str, str] = {"standard output": result.out, "standard error": result.err}
    left = [path for path in run.folder.rglob("*") if path not in before and path.is_file()]
    texts |= {path.name: path.read_text(encoding="utf-8", errors="replace") for path in left}
    assert "runs.db" in texts
    assert list(run.temporary.rglob("*")) == []
    for place, text in texts.items():
        found = [name for name, form in FORMS.items() if form in text or form.lower() in text.lower()]
        assert found == [], place
    assert "[redacted:MY_SECRET]" in texts["results.jsonl"], "its name says what stood there"
    assert run.records()[0]["case_id"] == "calls"


def test_variables_of_a_target_are_secrets_and_stored_as_names(run: Command) -> None:
    reply = {**calls("search", text="my key is ${MY_KEY}")}
    run.write("key.eval.yaml", {"targets": [mocked(reply)], "cases": cases("a")})
    result = run("eval", "key.eval.yaml", "--json", "--out", "results.jsonl", env={"MY_KEY": "k3y-0f-the-h0use"})
    assert result.code == 0
    assert "k3y-0f-the-h0use" not in result.out + (run.folder / "results.jsonl").read_text()
    assert result.lines[0]["candidate"] == "my key is [redacted:MY_KEY]"


def test_a_program_sees_no_variable_that_it_was_not_given(run: Command) -> None:
    run.write("agent.py", "import os; print(' '.join(sorted(os.environ)))")
    run.write("env.eval.yaml", {"targets": [program("agent.py", env=["GIVEN"])], "cases": cases("a", check=NO_CALLS)})
    held = {"GIVEN": "1", "OPENAI_API_KEY": "x", "LD_PRELOAD": "", "PYTHONSTARTUP": "x"}
    record, _ = run("eval", "env.eval.yaml", "--json", env=held).lines
    seen = set(record["candidate"].split())
    assert {"PATH", "HOME", "LANG", "TMPDIR", "GIVEN"} <= seen
    assert not seen & {"OPENAI_API_KEY", "LD_PRELOAD", "PYTHONSTARTUP", "TERM"}


def test_prompts_are_arguments_and_never_a_shell_s(run: Command) -> None:
    run.write("agent.py", "import json, sys; print(json.dumps({'text': sys.argv[1]}))")
    words = [
        "$(touch touched)",
        "`touch touched`",
        "; touch touched",
        "{case_id} {output_file}",
        "--help",
        "a\nb",
        "%s",
    ]
    listed: list[dict[str, Any]] = [
        {"id": f"c{number}", "input": word, "evaluators": [NO_CALLS]} for number, word in enumerate(words)
    ]
    listed.append({"id": "long", "input": "x" * 200_000, "evaluators": [NO_CALLS]})
    target = program("agent.py", "{prompt}")
    run.write("words.eval.yaml", json.dumps({"targets": [target], "cases": listed}))
    *records, _ = run("eval", "words.eval.yaml", "--json").lines
    found = {record["case_id"]: record for record in records}
    assert [found[f"c{number}"]["candidate"] for number in range(len(words))] == words
    assert found["long"]["status"] == "error"
    assert "{input_file}" in found["long"]["error"]["message"]
    assert not (run.folder / "touched").exists()
