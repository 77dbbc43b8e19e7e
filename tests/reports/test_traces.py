"""One file for each attempt, under a name that every file system takes for this id and no other."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import agentv
from agentv.model.conversation import Message, ToolCall, TraceEvent
from agentv.model.events import AttemptFinished
from agentv.redaction import Redactor
from agentv.reports.traces import TraceFolder, safe_file_name
from agentv.scoring.turns import Exchange, combine_turns
from tests.support.events import passed

SAFE = ["deactivate", "refund-1", "a.b_c", "q 1", "日本", "x(2)"]
ODD = [
    "../../x",
    "/etc/passwd",
    "CON",
    "con",
    "con.txt",
    "NUL",
    "com1",
    "a/b",
    "a\\b",
    "A",
    "Ä",
    "",
    ".",
    "..",
    ".hidden",
]
ODD += [
    "x" * 300,
    "日" * 120,
    "a\0b",
    "a\nb",
    "\ud800",
    "e\u0301",
    "ends.",
    "ends ",
    " begins",
    "a:b",
    "a*",
    "a~b",
    "\u202e",
    "ß",
]


def attempt(case_id: str = "a", number: int = 1, **more: Any) -> AttemptFinished:
    values: dict[str, Any] = {
        "eval_id": "support",
        "target": "scripted",
        "repeat": 0,
        "response": agentv.ProviderResponse(),
    }
    return AttemptFinished(**{**values, "execution_id": "e", "case_id": case_id, "attempt": number, **more})


def files(folder: Path) -> dict[str, Any]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): json.loads(path.read_bytes()) for path in found}


@pytest.mark.parametrize("name", SAFE)
def test_a_name_that_every_file_system_takes_is_kept(name: str) -> None:
    assert safe_file_name(name) == name


@pytest.mark.parametrize("name", ODD, ids=range(len(ODD)))
def test_any_other_is_not(name: str, tmp_path: Path) -> None:
    made = safe_file_name(name)
    assert made != name
    assert len(made.encode()) <= 120
    path = tmp_path / f"{made}.attempt-1.json"
    path.touch()
    assert path.parent.resolve() == tmp_path.resolve()


@given(st.sets(st.text(alphabet="aAäÄ/.~-:\\", max_size=4) | st.text(), min_size=2))
def test_two_ids_never_have_one_file_even_where_case_does_not_count(names: set[str]) -> None:
    assert len({safe_file_name(name).casefold() for name in names}) == len(names)


def test_each_attempt_has_its_file_at_once(tmp_path: Path) -> None:
    folder = TraceFolder(tmp_path / "traces", Redactor({}))
    events = (TraceEvent(type="tool_call", name="search"),)
    message = Message(role="assistant", tool_calls=(ToolCall(tool="fetch", input={"url": "x"}, output=None),))
    folder.handle_attempt(attempt())
    folder.handle_attempt(attempt(number=2, response=agentv.ProviderResponse(output_messages=(message,))))
    folder.handle_attempt(attempt(repeat=1, response=agentv.ProviderResponse(trace=events, output_messages=(message,))))
    found = files(tmp_path / "traces" / "support" / "scripted")
    assert found["a.attempt-1.json"] == {
        "case_id": "a",
        "eval_id": "support",
        "execution_id": "e",
        "target": "scripted",
        "repeat": 0,
        "attempt": 1,
        "trace": None,
    }
    assert found["a.attempt-2.json"]["trace"] == [
        {"type": "tool_call", "name": "fetch", "input": {"url": "x"}, "output": None}
    ]
    assert found["a~repeat-2.attempt-1.json"]["trace"] == [{"type": "tool_call", "name": "search"}], "the agent's own"
    assert len(found) == 3


def test_a_run_whose_attempts_nobody_told_of_has_a_file_too(tmp_path: Path) -> None:
    folder = TraceFolder(tmp_path, Redactor({}))
    folder.handle_attempt(attempt("c0"))
    folder.handle(passed(0))
    folder.handle(passed(1))
    found = files(tmp_path)
    assert {name: each["execution_id"] for name, each in found.items()} == {
        "support/scripted/c0.attempt-1.json": "e",
        "support/scripted/c1.attempt-1.json": "20260101T000000-abcdef",
    }


def test_files_and_folders_are_private(tmp_path: Path) -> None:
    folder = TraceFolder(tmp_path / "traces", Redactor({}))
    folder.handle_attempt(attempt())
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "traces").rglob("*")}
    assert modes == {0o700, 0o600}


def test_secrets_are_in_neither_files_nor_names(tmp_path: Path) -> None:
    secret = "hunter2-s3cret"  # noqa: S105 - it opens nothing
    response = agentv.ProviderResponse(trace=(TraceEvent(type="tool_call", name=secret, input={secret: secret}),))
    TraceFolder(tmp_path, Redactor({"KEY": secret})).handle_attempt(attempt(f"id-{secret}", response=response))
    ((name, content),) = files(tmp_path).items()
    assert secret not in name + json.dumps(content)
    assert "[redacted:KEY]" in json.dumps(content)


def test_a_folder_that_cannot_be_written_to_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="exists"):
        TraceFolder(tmp_path / "file", Redactor({}))


def test_turns_of_one_run_have_files_of_their_own(tmp_path: Path) -> None:
    folder = TraceFolder(tmp_path, Redactor({}))
    for conversation, turn, number in (("x", 1, 1), ("x", 2, 1), ("x", 2, 2), ("y", 1, 1), ("y", 2, 1)):
        folder.handle_attempt(attempt(number=number, turn=turn, conversation_id=conversation, persona_id="Bob"))
    folder.handle(passed(0, "a", persona_id="Bob"))
    persona = f"~persona-{safe_file_name('Bob')}"
    assert {Path(name).name for name in files(tmp_path)} == {
        f"a{persona}~turn-1.attempt-1.json",
        f"a{persona}~turn-2.attempt-1.json",
        f"a{persona}~turn-2.attempt-2.json",
        f"a{persona}~conversation-2~turn-1.attempt-1.json",
        f"a{persona}~conversation-2~turn-2.attempt-1.json",
    }


def test_a_conversation_that_was_cut_has_the_traces_of_its_turns(tmp_path: Path) -> None:
    exchanges = [
        Exchange((Message(role="user", content="hi"),), agentv.ProviderResponse(output_messages=())),
        Exchange((), agentv.ProviderResponse(trace=(TraceEvent(type="tool_call", name="search"),)), 0),
    ]
    event = replace(passed(0, "a"), response=combine_turns(exchanges))
    TraceFolder(tmp_path, Redactor({})).handle(event)
    found = {Path(name).name: content["trace"] for name, content in files(tmp_path).items()}
    assert found == {
        "a~turn-1.attempt-1.json": [],
        "a~turn-2.attempt-1.json": [{"type": "tool_call", "name": "search"}],
    }
