"""Commands for GitHub's log: those that we mean, and none that an agent means."""

import io
import re
from pathlib import Path
from typing import Any

import pytest

from agentv.errors import Location, Problem
from agentv.model.events import RunFinished
from agentv.redaction import Redactor
from agentv.reports.github import Annotations, CommandEscapingStream, annotate_problems
from tests.support.events import HOSTILE, errored, failed, passed, tell


def obeyed(log: str) -> list[tuple[str, dict[str, str], str]]:
    """Return the commands that the runner finds in a log: lines beginning with `::` or containing `##[name]`."""
    found = []
    for line in re.split(r"\r\n|\r|\n", log):
        command = re.match(r"\s*::(?P<name>[^ :]+)(?: (?P<properties>[^:]*))?::(?P<data>.*)", line)
        if command:
            pairs = (pair.split("=", 1) for pair in (command["properties"] or "").split(",") if pair)
            properties = {name: _plain(value) for name, value in pairs}
            found.append((command["name"], properties, _plain(command["data"])))
        else:
            found += [(name, {}, "") for name in re.findall(r"##\[([^\]]+)\]", line)]
    return found


def _plain(text: str) -> str:
    for escaped, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escaped, char)
    return text


def annotations(
    *runs: RunFinished, redactor: Redactor | None = None, **more: Any
) -> list[tuple[str, dict[str, str], str]]:
    stream = io.StringIO()
    tell(Annotations(stream, redactor or Redactor({}), **more), runs)
    return obeyed(stream.getvalue())


def test_failures_and_errors_point_at_their_case() -> None:
    first, second = annotations(errored(1, "line one\nline two: 50 %"), passed(2), failed(0))
    assert first == (
        "error",
        {"file": "support.eval.yaml", "line": "10", "col": "5", "title": "c0 failed, target scripted"},
        "search called 0 times",
    )
    assert second[1]["title"] == "c1 error (transport), target scripted"
    assert second[2] == "line one\nline two: 50 %"


def test_ten_are_shown_and_the_rest_is_counted() -> None:
    *errors, note = annotations(*(failed(order) for order in reversed(range(25))))
    assert [each[1]["line"] for each in errors] == [str(line) for line in range(10, 20)]
    assert {each[0] for each in errors} == {"error"}
    assert note == ("notice", {"title": "agentv"}, "15 more runs did not pass; GitHub shows 10 of a step")


def test_repetitions_that_failed_for_the_same_reason_are_one_annotation() -> None:
    runs = [failed(at, case_id="refund", repeat=at) for at in range(3)]
    first, second, third = annotations(*reversed(runs), failed(3, "other", case_id="refund", repeat=3), errored(4))
    assert first[1]["title"] == "refund failed (runs 1 to 3), target scripted"
    assert (first[1]["line"], first[2]) == ("10", "search called 0 times")
    assert second[1]["title"] == "refund #4 failed, target scripted"
    assert third[0] == "error"


def test_nothing_is_said_when_all_passed() -> None:
    assert annotations(passed(0)) == []


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_an_agent_adds_no_command(text: str) -> None:
    found = annotations(failed(0, text, case_id=text), errored(1, text, target=text))
    assert [each[0] for each in found] == ["error", "error"]
    assert all(set(properties) == {"file", "line", "col", "title"} for _, properties, _ in found)
    assert all(len(message) < 25_000 for _, _, message in found)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_guarded_stream_holds_no_command(text: str) -> None:
    stream = io.StringIO()
    CommandEscapingStream(stream).write(f"  {text}\n{text}")
    CommandEscapingStream(stream).write(text)
    assert obeyed(stream.getvalue()) == []


def test_a_guarded_stream_leaves_the_rest_alone() -> None:
    stream = io.StringIO()
    guarded = CommandEscapingStream(stream)
    guarded.write("a::b\n# [x] ##\n  12:30\n")
    assert stream.getvalue() == "a::b\n# [x] ##\n  12:30\n"
    assert guarded.isatty() is False


def test_files_are_named_as_the_repository_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "evals").mkdir()
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    monkeypatch.chdir(tmp_path / "evals")
    assert annotations(failed(0))[0][1]["file"] == "evals/support.eval.yaml"
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path / "elsewhere"))
    assert annotations(failed(0))[0][1]["file"] == "support.eval.yaml"


def test_problems_and_warnings_of_files_are_shown_too() -> None:
    problem = Problem("", "odd, is it: meant?", "whole", Location("a,b:c.yaml", 3, 7))
    assert obeyed(str(annotate_problems([problem])[0])) == [
        ("error", {"file": "a,b:c.yaml", "line": "3", "col": "7", "title": "agentv"}, "odd, is it: meant?")
    ]
    assert [each[0] for each in annotations(passed(0), warnings=[problem] * 20)] == ["warning"] * 10
    assert obeyed(str(annotate_problems([Problem("", "nowhere")])[0])) == [("error", {"title": "agentv"}, "nowhere")]


def test_secrets_are_not_in_the_log() -> None:
    secret = "p%a:s,s::w0rd"  # noqa: S105 - it opens nothing
    found = annotations(failed(0, f"got {secret}", case_id=secret), redactor=Redactor({"KEY": secret}))
    assert "w0rd" not in str(found)
    assert found[0][2] == "got [redacted:KEY]"
