"""Replies that are only partly understood: stored, exported, evaluated again, and shown where people look."""

import json
import sqlite3
from contextlib import closing
from typing import Any

import pytest

import agentv
from agentv.api import targets as call_history
from tests.support.command import Command, Json, cases, mocked

CHART = "a block of type 'chart' was not understood, so calls may be missing"
PLACES = [
    {"path": "output_messages[0].content[1]", "reason": CHART},
    {"path": "metadata.steps", "reason": "it holds an object in the shape of a call"},
]
AGENT = """
from agentv import Message, ProviderResponse, Unread
from agentv.model import ToolCall

CHART = "a block of type 'chart' was not understood, so calls may be missing"


def reply(text, unread=(), tools=(), **more):
    message = Message(role="assistant", content=text, tool_calls=tuple(ToolCall(tool=tool) for tool in tools))
    return ProviderResponse(output_messages=(message,), unread=tuple(unread), **more)


def ask(prompt):
    if "clear" in prompt:
        return reply("all of it")
    at = len(prompt) % 3
    chart = Unread(path=f"output_messages[0].content[{1 + at}]", reason=CHART)
    other = Unread(path="metadata.steps", reason="it holds an object in the shape of a call")
    return reply("a part", [chart, other], echo_end=1)


def charts(prompt):
    return reply("a part", [Unread(path="output_messages[0].content[1]", reason=CHART)])


def leaks(prompt):
    import os

    return reply("a part", [Unread(path=f"metadata.{os.environ['TOKEN']}", reason=f"it holds {os.environ['TOKEN']}")])


def uses_tools(prompt):
    unread = [Unread(path="output_messages[0].content[1]", reason=CHART)] if "chart" in prompt else ()
    return reply("done", unread, tools=["search"] if "use" in prompt else ())
"""
STORED_REPLY = {"text": "a", "unread": [{"path": "x", "reason": "y"}], "echo_end": 0}
READS_UNREAD = agentv.decode_response(STORED_REPLY).unread != ()
SAYS = {"type": "contains", "value": "part"}


def python(function: str = "ask", **settings: Any) -> Json:
    return {"name": "agent", "provider": "python", "function": f"./agent.py:{function}", **settings}


def write(run: Command, *targets: Json, names: tuple[str, ...] = ("a",), check: Json = SAYS, **more: Any) -> None:
    run.write("agent.py", AGENT)
    listed = [{"id": name, "input": name, "evaluators": [check]} for name in names]
    run.write("a.eval.yaml", {"targets": list(targets) or [python()], "cases": listed, **more})


def shown(run: Command, *args: str) -> Json:
    result = run(*args, "--json")
    assert result.code in (0, 1, 3), result.err
    found: Json = json.loads(result.out.splitlines()[0])
    return found


class TestStored:
    @pytest.mark.parametrize("persist", ["summary", "messages", "full"])
    def test_at_every_level_in_lists_runs_and_exports(self, run: Command, persist: str) -> None:
        write(run, names=("aaa", "clear"), check={"type": "contains", "value": "a"})
        assert run("eval", "a.eval.yaml", "--persist", persist, "--out", "results.jsonl").code == 0
        assert [record.get("unread") for record in run.records()] == [PLACES, None]
        assert shown(run, "executions", "list")["executions"][0]["partly_understood"] == 1
        assert [row["unread"] for row in shown(run, "runs", "show")["runs"]] == [PLACES, None]
        stored = shown(run, "runs", "show", "last", "--case", "aaa")
        assert stored["result"]["unread"] == PLACES
        assert "unread" not in shown(run, "runs", "show", "last", "--case", "clear")["result"]
        if persist == "summary":
            assert stored["response"] is None
        else:
            assert (stored["response"]["unread"], stored["response"]["echo_end"]) == (PLACES, 1)

    @pytest.mark.parametrize("persist", ["summary", "messages"])
    def test_an_export_imports_back_bit_for_bit(self, run: Command, persist: str) -> None:
        write(run, names=("aaa", "clear"))
        run("eval", "a.eval.yaml", "--persist", persist)
        run("executions", "export", "--out", "first.jsonl")
        assert run("runs", "import", "first.jsonl", "--store", "other.db").code == 0
        run("executions", "export", "--out", "second.jsonl", "--store", "other.db")
        assert (run.folder / "second.jsonl").read_bytes() == (run.folder / "first.jsonl").read_bytes()
        listed = shown(run, "runs", "show", "--store", "other.db")
        assert [row["unread"] for row in listed["runs"]] == [PLACES, None]
        assert listed["partly_understood"] == 1

    def test_an_export_of_an_earlier_version_is_read(self, run: Command) -> None:
        write(run, names=("clear",))
        run("eval", "a.eval.yaml")
        run("executions", "export", "--out", "now.jsonl")
        lines = [json.loads(line) for line in (run.folder / "now.jsonl").read_text().splitlines()]
        del lines[0]["partly_understood"]
        assert "unread" not in lines[1]["result"]
        run.write("before.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        assert run("runs", "import", "before.jsonl", "--store", "other.db").code == 0
        assert shown(run, "runs", "show", "--store", "other.db")["runs"][0]["unread"] is None

    def test_what_a_resume_shows_again_has_them(self, run: Command) -> None:
        write(run)
        run("eval", "a.eval.yaml", "--persist", "summary")
        again = run("eval", "--resume", "--out", "results.jsonl")
        assert "nothing is run" in again.err
        assert "target agent: 1 of 1 reply was only partly understood" in again.out
        assert "unread" in run.records()[0]

    def test_places_of_a_trace_file_are_stored_exported_and_kept_without_the_file(self, run: Command) -> None:
        events = [{"type": "tool_call", "name": "search"}, {"type": "errand", "name": "delete", "input": {"id": 1}}]
        run.write("trace.json", json.dumps(events))
        check = {"type": "tool_trajectory", "forbidden": ["delete"]}
        listed = [{"id": "a", "input": "a", "evaluators": [check]}]
        agent = mocked({"text": "x", "trace_ref": "trace.json"})
        run.write("a.eval.yaml", {"targets": [agent], "cases": listed})
        assert run("eval", "a.eval.yaml", "--persist", "full", "--out", "results.jsonl").code == 3
        (record,) = run.records()
        assert [place["path"] for place in record["unread"]] == ["trace[1]"]
        stored = shown(run, "runs", "show", "last", "--case", "a")
        assert stored["response"]["unread"] == record["unread"]
        run("runs", "export", "--out", "first.jsonl")
        exported = json.loads((run.folder / "first.jsonl").read_text().splitlines()[1])
        assert exported["result"]["unread"] == record["unread"]
        (run.folder / "trace.json").unlink()
        assert run("rescore", "--out", "results.jsonl").code == 3
        (again,) = run.records()
        assert again["unread"] == record["unread"]
        assert again["evaluators"] == record["evaluators"]

    def test_secrets_are_redacted(self, run: Command) -> None:
        secret = "open-sesame-4f7c19d2"  # noqa: S105 - it opens nothing
        write(run, python("leaks", secrets=["TOKEN"]))
        result = run("eval", "a.eval.yaml", "--persist", "full", "--json", env={"TOKEN": secret})
        assert result.lines[0]["unread"] == [
            {"path": "metadata.[redacted:TOKEN]", "reason": "it holds [redacted:TOKEN]"}
        ]
        for args in (["eval", "a.eval.yaml"], ["target", "check", "agent"], ["target", "check", "agent", "--json"]):
            assert secret not in run(*args, env={"TOKEN": secret}).out
        for args in (["executions", "export"], ["runs", "show", "--json"], ["runs", "show", "last", "--case", "a"]):
            text = run(*args).out
            assert "[redacted:TOKEN]" in text
            assert secret not in text
        assert secret.encode() not in b"".join(path.read_bytes() for path in run.folder.glob(".agentv/runs.db*"))

    def test_a_newer_store_is_refused(self, run: Command) -> None:
        write(run)
        run("eval", "a.eval.yaml")
        with closing(sqlite3.connect(run.folder / ".agentv/runs.db")) as db, db:
            db.execute("PRAGMA user_version = 99")
        db.close()
        assert "was written by a newer agentv" in run("executions", "list").err


@pytest.mark.xfail(not READS_UNREAD, reason="`decode_response` does not read `unread` and `echo_end` yet")
class TestRescore:
    def test_stored_replies_keep_their_unread_places(self, run: Command) -> None:
        write(run, names=("aaa", "clear"))
        run("eval", "a.eval.yaml")
        result = run("rescore", "--out", "results.jsonl")
        assert [record.get("unread") for record in run.records()] == [PLACES, None], result.out
        stored = shown(run, "runs", "show", "last", "--case", "aaa")
        assert (stored["response"]["unread"], stored["response"]["echo_end"]) == (PLACES, 1)

    def test_blocks_that_are_declared_plain_are_unread_no_more(self, run: Command) -> None:
        write(run, names=("aaa",))
        run("eval", "a.eval.yaml")
        assert run("rescore", "--plain-block", "chart", "--out", "results.jsonl").code == 0
        assert [record.get("unread") for record in run.records()] == [PLACES[1:]]
        assert shown(run, "runs", "show", "last", "--case", "aaa")["target_settings"]["plain_blocks"] == ["chart"]

    def test_another_type_changes_nothing(self, run: Command) -> None:
        write(run, names=("aaa",))
        run("eval", "a.eval.yaml")
        run("rescore", "--plain-block", "map", "--out", "results.jsonl")
        assert [record.get("unread") for record in run.records()] == [PLACES]


class TestTerminal:
    def test_each_place_is_shown_once_for_its_target(self, run: Command) -> None:
        names = ("a", "aa", "aaa", "clear")
        write(run, python(), python("charts", name="second"), names=names, check={"type": "contains", "value": "a"})
        result = run("eval", "a.eval.yaml")
        steps = "  metadata.steps: it holds an object in the shape of a call (3 replies)"
        lines = [line for line in result.out.splitlines() if "not understood" in line or "partly" in line]
        assert lines == [
            "target agent: 3 of 4 replies were only partly understood, so calls may be missing",
            f"  output_messages[*].content[*]: {CHART} (3 replies)",
            "target second: 4 of 4 replies were only partly understood, so calls may be missing",
            f"  output_messages[*].content[*]: {CHART} (4 replies)",
        ]
        assert result.out.count(steps) == 1
        assert result.out.count("declare block types that hold no calls with `plain_blocks`") == 1

    def test_one_run_is_shown_with_its_places(self, run: Command) -> None:
        write(run, names=("aaa", "clear"))
        run("eval", "a.eval.yaml")
        assert "1 only partly understood" in run("executions", "list").out
        text = run("runs", "show").out
        assert text.count("only partly understood") == 2, "once of the execution, once of the run"
        text = run("runs", "show", "last", "--case", "aaa").out
        assert f"so calls may be missing:\n  output_messages[0].content[1]: {CHART}\n  metadata.steps: it holds" in text

    def test_the_sums_alone_say_nothing_of_it(self, run: Command) -> None:
        write(run)
        assert "partly" not in run("eval", "a.eval.yaml", "--quiet").out

    def test_shards_are_merged_with_them(self, run: Command) -> None:
        write(run, names=("a", "b"))
        for part in "12":
            run("eval", "a.eval.yaml", "--shard", f"{part}/2", "--out", f"{part}.jsonl")
        assert "target agent: 2 of 2 replies were" in run("merge", "1.jsonl", "2.jsonl").out


class TestTargetCheck:
    def test_places_are_shown_with_what_to_do(self, run: Command) -> None:
        write(run)
        text = run("target", "check", "agent").out
        assert "calls      none were read, but some may be missing" in text
        assert "2 places of the reply could not be understood, so calls may be missing:\n" in text
        assert "if such blocks hold no calls, add 'chart' to `plain_blocks` of the target" in text
        data = shown(run, "target", "check", "agent")
        fixes = [place.pop("fix") for place in data["unread"]]
        assert data["unread"][1:] == PLACES[1:]
        assert data["response"]["unread"] == data["unread"]
        assert "plain_blocks" in fixes[0]
        assert fixes[1] == "report calls in a form that agentv reads: see docs/reference/replies.md"

    def test_the_option_declares_blocks_for_once(self, run: Command) -> None:
        write(run, python("charts"))
        assert shown(run, "target", "check", "agent")["unread"]
        assert shown(run, "target", "check", "agent", "--plain-block", "chart")["unread"] == []

    def test_calls_that_were_read_are_a_lower_bound(self, run: Command) -> None:
        write(run, python("uses_tools"))
        assert "calls      1: search" in run("target", "check", "agent", "--prompt", "use").out
        assert "calls      at least 1: search" in run("target", "check", "agent", "--prompt", "use chart").out

    def test_a_reply_without_calls_is_compared_with_stored_runs(self, run: Command) -> None:
        write(run, python("uses_tools"), names=("one", "two"))
        data = shown(run, "target", "check", "agent")
        assert data["call_history"] is None
        assert data["calls_note"].startswith("this reply holds no call: if the target uses tools, give a --prompt")
        assert not (run.folder / ".agentv").exists(), "no store is made to look into it"
        run("eval", "a.eval.yaml")
        data = shown(run, "target", "check", "agent")
        assert data["call_history"] == {"runs": 2, "partly_understood": 0, "is_complete": True, "held_call": False}
        note = "no reply of this target ever held a call (2 stored runs and this one): if it does use tools, they are"
        assert data["calls_note"] == f"{note} not reported"
        assert "no reply of this target ever held a call (2 stored runs and this one)" in " ".join(
            run("target", "check", "agent").out.split()
        )

    def test_a_call_in_a_stored_run_or_in_the_reply_is_enough(self, run: Command) -> None:
        write(run, python("uses_tools"), names=("use", "two"))
        assert shown(run, "target", "check", "agent", "--prompt", "use")["calls_note"] == ""
        run("eval", "a.eval.yaml")
        data = shown(run, "target", "check", "agent")
        assert (data["calls_note"], data["call_history"]["held_call"]) == ("", True)

    def test_other_targets_and_failures_do_not_count(self, run: Command) -> None:
        broken = mocked({"error": {"kind": "agent", "message": "no"}}, retries=0)
        write(run, python("uses_tools", name="other"), broken, names=("use",))
        run("eval", "a.eval.yaml")
        run.write("a.eval.yaml", {"targets": [mocked("hello")], "cases": cases("a")})
        data = shown(run, "target", "check", "scripted")
        assert data["call_history"]["runs"] == 0
        assert data["calls_note"].startswith("this reply holds no call")

    def test_what_was_not_understood_may_hold_them(self, run: Command) -> None:
        write(run)
        run("eval", "a.eval.yaml")
        data = shown(run, "target", "check", "agent")
        assert data["call_history"]["partly_understood"] == 1
        assert data["calls_note"].endswith("(1 stored run and this one): if it does use tools, its calls may be in "
                                           "what was not understood")  # fmt: skip

    def test_of_very_many_runs_the_last_are_looked_at(self, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        write(run, python("uses_tools"), names=("use", "b", "c", "d"))
        run("eval", "a.eval.yaml", "--max-concurrency", "1")
        monkeypatch.setattr(call_history, "MAX_RUNS", 3)
        data = shown(run, "target", "check", "agent")
        assert data["calls_note"].startswith("no reply of this target held a call (the last 3 stored runs and this")

    def test_a_store_that_cannot_be_read_is_a_warning(self, run: Command) -> None:
        write(run, python("uses_tools"))
        run.write(".agentv/runs.db", "no database")
        data = shown(run, "target", "check", "agent")
        assert data["answered"]
        assert data["warnings"][0].startswith("stored runs of this target were not looked at: ")

    def test_a_project_without_a_store_has_none(self, run: Command) -> None:
        write(run, python("uses_tools"))
        run.write("agentv.yaml", {"store": "off"})
        assert shown(run, "target", "check", "agent")["call_history"] is None


class TestPlainBlocks:
    def test_every_provider_takes_it_and_target_list_shows_it(self, run: Command) -> None:
        plain = {"plain_blocks": ["chart", "map"]}
        settings: dict[str, Json] = {
            "mock": {},
            "replay": {"file": "replies.jsonl"},
            "cli": {"command": ["echo"]},
            "python": {"function": "./agent.py:ask"},
            "http": {"url": "http://127.0.0.1:9"},
            "openai": {"model": "gpt-4o"},
            "anthropic": {"model": "claude-sonnet-4-5"},
            "langgraph": {"url": "http://127.0.0.1:9", "assistant": "agent"},
        }
        targets = [{"name": name, "provider": name, **more, **plain} for name, more in settings.items()]
        write(run, *targets, {"name": "bare", "provider": "mock"})
        found = {target["name"]: target["plain_blocks"] for target in shown(run, "target", "list")["targets"]}
        assert found == {**{name: ["chart", "map"] for name in settings}, "bare": []}

    @pytest.mark.parametrize(
        ("blocks", "problem"),
        [
            ('["chart", "tool_*"]', "'tool_*' is a glob, which is not allowed here: name each block type in full"),
            ('["chart", toolUse]', "'toolUse' is read as a tool call, so it cannot be declared to hold none"),
            ('["chart", ""]', "expected str of length >= 1; got ''"),
        ],
    )
    def test_a_mistake_is_shown_at_its_place(self, run: Command, blocks: str, problem: str) -> None:
        run.write("a.eval.yaml", f"targets:\n  - name: t\n    provider: mock\n    plain_blocks: {blocks}\ncases: []\n")
        result = run("validate", "a.eval.yaml")
        assert result.code == 2
        assert "a.eval.yaml:4:29: " in result.err
        assert problem in result.err

    def test_a_variable_may_not_smuggle_one_in(self, run: Command) -> None:
        write(run, python("charts", plain_blocks=["${BLOCK}"]))
        assert run("eval", "a.eval.yaml", env={"BLOCK": "chart"}).code == 0
        result = run("eval", "a.eval.yaml", env={"BLOCK": "tool_use"})
        assert result.code == 2
        assert "'tool_use' is read as a tool call" in result.err

    @pytest.mark.parametrize("command", [["eval", "a.eval.yaml"], ["rescore"], ["target", "check", "agent"]])
    @pytest.mark.parametrize("name", ["tool_*", "function_call", ""])
    def test_options_are_checked_alike(self, run: Command, command: list[str], name: str) -> None:
        write(run)
        result = run(*command, "--plain-block", name)
        assert result.code == 2
        assert "Invalid value for '--plain-block': " in result.err

    def test_the_setting_and_the_option_add_up_for_all_targets(self, run: Command) -> None:
        write(run, python("charts", plain_blocks=["map"]), mocked("a part"))
        result = run("eval", "a.eval.yaml", "--plain-block", "chart", "--plain-block", "map")
        assert result.code == 0
        assert "partly" not in result.out
        rows = shown(run, "runs", "show")["runs"]
        found = {
            row["target"]: shown(run, "runs", "show", row["id"])["target_settings"]["plain_blocks"] for row in rows
        }
        assert found == {"agent": ["map", "chart"], "scripted": ["chart", "map"]}

    def test_the_setting_takes_part_in_the_key(self, run: Command) -> None:
        def keys(*args: str) -> list[str]:
            return [line["key"] for line in run("eval", "a.eval.yaml", "--dry-run", "--json", *args).lines[:-1]]

        write(run, python("charts"))
        bare = keys()
        assert keys("--plain-block", "chart") != bare
        write(run, python("charts", plain_blocks=["chart"]))
        assert keys() == keys("--plain-block", "chart") != bare

    def test_a_target_without_it_keeps_its_snapshot(self, run: Command) -> None:
        write(run, python("charts"))
        run("eval", "a.eval.yaml")
        target = shown(run, "runs", "show", "last", "--case", "a")["target_settings"]
        assert target == python("charts")

    def test_a_resume_goes_on_with_the_option(self, run: Command) -> None:
        write(run, python("charts"), names=("a", "b"))
        run("eval", "a.eval.yaml", "--plain-block", "chart", "--case", "a")
        result = run("eval", "--resume", "--case", "*")
        assert "1 result is kept, 2 runs planned" in result.err
        listed = shown(run, "runs", "show")
        assert (listed["command"]["options"]["plain_blocks"], listed["partly_understood"]) == (["chart"], 0)
        assert len(listed["runs"]) == 2

    def test_python_takes_it_too(self, run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(run.folder)
        place = agentv.Unread(path="a", reason=CHART)
        source: Json = {"cases": [{"id": "a", "input": "a", "evaluators": [SAYS]}]}

        def agent(prompt: str) -> agentv.ProviderResponse:
            del prompt
            return agentv.ProviderResponse(text="a part", unread=(place,))

        (before,) = agentv.evaluate(source, target=agent).results
        (after,) = agentv.evaluate(source, target=agent, plain_blocks="chart").results
        assert before.unread == (place,)
        assert not after.unread
        assert before.run_id.rpartition("-")[2] != after.run_id.rpartition("-")[2]
        with pytest.raises(agentv.SpecError, match="'tool_use' is read as a tool call"):
            agentv.evaluate(source, target=agent, plain_blocks=["tool_use"])
