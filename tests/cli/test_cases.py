"""`agentv cases from-traces`: sessions as cases that pass as they are."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentv.exit_codes import ExitCode
from tests.support.command import Command
from tests.support.trace_files import ALL
from tests.support.traces import FIXTURES, OTLP, chat, request, said, user, write_lines

SECRET = "sk-ant-api03-" + "a1B2c3D4" * 11


def load(run: Command, name: str) -> Any:
    return yaml.safe_load((run.folder / name).read_text(encoding="utf-8"))


def test_a_session_is_a_scripted_conversation_that_passes(run: Command) -> None:
    shutil.copy(FIXTURES / "adk.jsonl", run.folder)
    done = run("cases", "from-traces", "adk.jsonl", "--out", "support.eval.yaml")
    assert done.code == ExitCode.OK
    assert "created support.eval.yaml with 1 case, and support.replies.jsonl" in done.out
    made = load(run, "support.eval.yaml")
    (case,) = made["cases"]
    assert [turn["user"] for turn in case["turns"]] == ["add things", "more"]
    (check,) = case["turns"][1]["evaluators"]
    assert check == {
        "type": "tool_trajectory",
        "mode": "exact",
        "expected": [{"tool": "add", "input": {"a": 5, "b": 6}}],
    }
    assert run("validate", "support.eval.yaml").err == ""
    assert run("eval", "support.eval.yaml").code == ExitCode.OK
    assert run("cases", "from-traces", "adk.jsonl", "--out", "support.eval.yaml").code == ExitCode.USAGE
    assert run("cases", "from-traces", "adk.jsonl", "--out", "support.eval.yaml", "--force").code == ExitCode.OK


def test_a_changed_call_fails_the_case(run: Command) -> None:
    shutil.copy(FIXTURES / "adk.jsonl", run.folder)
    run("cases", "from-traces", "adk.jsonl", "--out", "support.eval.yaml")
    recording = run.folder / "support.replies.jsonl"
    recording.write_text(recording.read_text().replace('"b":6', '"b":60'))
    assert run("eval", "support.eval.yaml").code == ExitCode.FAILED


@pytest.mark.parametrize("path", OTLP, ids=lambda path: path.name.partition(".")[0])
def test_cases_of_real_emitters_pass_with_and_without_a_file(run: Command, path: Path) -> None:
    made = run("cases", "from-traces", str(path))
    if "without_content" in path.name:
        assert made.code == ExitCode.USAGE
        assert "the words of the user were not captured" in made.err
        return
    (run.folder / "inline.eval.yaml").write_text(made.out, encoding="utf-8")
    run("cases", "from-traces", str(path), "--out", "recorded.eval.yaml")
    assert run("validate", "inline.eval.yaml", "recorded.eval.yaml").err == ""
    assert run("eval", "inline.eval.yaml", "recorded.eval.yaml").code == ExitCode.OK


@pytest.mark.parametrize("name", ALL)
def test_cases_of_every_format_pass(run: Command, name: str) -> None:
    write_lines(run.folder / "s1.jsonl", ALL[name]())
    made = run("cases", "from-traces", "s1.jsonl", "--out", "made.eval.yaml")
    if name == "opencode":  # whose stream has no words of the user
        assert "the words of the user were not captured" in made.err
        return
    assert made.code == ExitCode.OK, made.err
    assert run("eval", "made.eval.yaml").code == ExitCode.OK


def test_texts_that_mean_something_in_an_eval_stay_texts(run: Command) -> None:
    odd = {"$ref": "x", "yes": "no", "template": "{{ name }}", "variable": "${HOME}", "n": "1e5", "empty": ""}
    reply = said("{{ name }} ${HOME} y", ("c1", "get", odd))
    write_lines(run.folder / "odd.jsonl", [request(chat(1, 0, 1, [reply], [user("{{ question }} ${HOME}: y # no")]))])
    for arguments in ((), ("--out", "odd.eval.yaml")):
        made = run("cases", "from-traces", "odd.jsonl", *arguments)
        if not arguments:
            (run.folder / "inline.eval.yaml").write_text(made.out, encoding="utf-8")
    done = run("eval", "inline.eval.yaml", "odd.eval.yaml")
    assert done.code == ExitCode.OK, done.out + done.err
    shown = run("runs", "list", "--json").out
    assert json.loads(shown)["runs"]


def test_secrets_are_replaced_and_the_case_passes(run: Command) -> None:
    spans = chat(1, 0, 1, [said(f"done {SECRET}", ("c1", "login", {"key": SECRET}))], [user(f"use {SECRET}")])
    write_lines(run.folder / "secret.jsonl", [request(spans)])
    run("cases", "from-traces", "secret.jsonl", "--out", "made.eval.yaml")
    text = (run.folder / "made.eval.yaml").read_text() + (run.folder / "made.replies.jsonl").read_text()
    assert SECRET not in text
    assert "# Secrets were replaced by <redacted>." in text
    assert run("eval", "made.eval.yaml").code == ExitCode.OK


def test_what_was_not_understood_is_a_comment(run: Command) -> None:
    reply = {"role": "assistant", "parts": [{"type": "tool_request"}, {"type": "text", "content": "hi"}]}
    write_lines(run.folder / "lost.jsonl", [request(chat(1, 0, 1, [reply], [user("hello")]))])
    made = run("cases", "from-traces", "lost.jsonl")
    assert "# Not understood, so that calls may be missing:" in made.out


def test_a_session_without_calls_passes_and_one_without_words_is_left_out(run: Command) -> None:
    image = {"role": "user", "content": [{"type": "image", "source": "x"}]}
    answer = {"role": "assistant", "content": "Hello."}
    silent = {"role": "assistant", "content": None}
    greeting = {"role": "user", "content": "Hi."}
    sessions = [
        {"id": "greeting", "messages": [greeting, answer]},
        {"id": "picture", "messages": [greeting, answer, image, answer]},
        {"id": "history", "messages": [{"role": "system", "content": ""}, greeting, silent, greeting, answer]},
    ]
    write_lines(run.folder / "talks.jsonl", sessions)
    done = run("cases", "from-traces", "talks.jsonl", "--out", "made.eval.yaml")
    assert "session picture (talks.jsonl:2): the words of the user were not captured in turn 2" in done.err
    assert [case["id"] for case in load(run, "made.eval.yaml")["cases"]] == ["greeting", "history"]
    assert run("eval", "made.eval.yaml").code == ExitCode.OK


def test_json_has_the_cases_and_those_left_out(run: Command) -> None:
    shutil.copy(FIXTURES / "adk.jsonl", run.folder)
    shutil.copy(FIXTURES / "pydantic_ai_v2_without_content.jsonl", run.folder)
    data = json.loads(run("cases", "from-traces", ".", "--json").out)
    assert data["schema"] == "agentv.cases/1"
    assert [case["id"] for case in data["cases"]] == ["session-adk"]
    assert len(data["left_out"]) == 1
