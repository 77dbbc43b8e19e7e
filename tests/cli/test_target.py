"""`agentv target`: what there is, what it needs, and what it says when it is asked."""

import json
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.fakes.endpoint import answering, serving
from tests.support.command import Command, Json

FULL = {
    "output_messages": [
        {"role": "assistant", "tool_calls": [{"tool": "search", "input": {"q": "shoes"}, "output": ["a", "b"]}]},
        {"role": "assistant", "content": "Two pairs."},
    ],
    "tokens_usage": {"input_tokens": 100, "output_tokens": 20},
    "thread_id": "thread-1",
    "metadata": {"model": "gpt-4o"},
}
CASES = [{"id": "a", "input": "x", "evaluators": [{"type": "contains", "value": "x"}]}]
ECHO_ENV = "import os; print(os.environ['TOKEN'])"
LINES = """
import json, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "text": "hello"}), flush=True)
"""
THREADS = """
import json, sys
request = json.load(sys.stdin)
thread = request.get("thread_id")
print(json.dumps({"text": "again" if thread else "first", "thread_id": thread or "made-here"}))
"""


@pytest.fixture
def project(run: Command) -> Command:
    run.write(
        "agentv.yaml",
        {
            "targets": [
                {"name": "full", "provider": "mock", "reply": FULL},
                {"name": "words", "provider": "mock"},
                {"name": "keyed", "provider": "cli", "command": ["echo", "${SHOP_KEY}", "${MODE:-test}"]},
            ]
        },
    )
    run.write("evals/a.eval.yaml", {"target": ["full", "words"], "cases": CASES})
    own = [{"name": "own", "provider": "mock", "reply": "mine"}]
    run.write("evals/b.eval.yaml", {"targets": own, "cases": CASES})
    return run


def listed(run: Command, *args: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    result = run("target", "list", "--json", *args, env=env) if env else run("target", "list", "--json", *args)
    assert result.code == 0, result.err
    data = json.loads(result.out)
    assert data["schema"] == "agentv.targets/1"
    return {target["name"]: target for target in data["targets"]}


def checked(run: Command, *args: str) -> dict[str, Any]:
    result = run("target", "check", *args, "--json")
    data: dict[str, Any] = json.loads(result.out)
    assert data["schema"] == "agentv.target_check/1"
    assert result.code == (0 if data["answered"] else 3)
    return data


class TestList:
    def test_targets_of_the_project_and_of_its_evals_with_their_places(self, project: Command) -> None:
        found = listed(project)
        assert list(found) == ["full", "words", "keyed", "own"]
        assert found["full"]["place"].startswith("agentv.yaml:2:")
        assert found["full"]["evals"] == ["evals/a.eval.yaml"]
        assert found["own"]["place"].startswith("evals/b.eval.yaml:2:")
        assert found["own"]["evals"] == ["evals/b.eval.yaml"]
        assert (found["keyed"]["provider"], found["keyed"]["evals"]) == ("cli", [])

    def test_of_one_file_only_its_own_and_the_projects(self, project: Command) -> None:
        assert list(listed(project, "evals/a.eval.yaml")) == ["full", "words", "keyed"]
        assert "own" in listed(project, "agentv.yaml")

    def test_which_variables_are_needed_and_set_but_never_their_values(self, project: Command) -> None:
        secret = "not-to-be-shown-12345"  # noqa: S105 - that is the point
        assert listed(project)["keyed"]["variables"] == [
            {"name": "SHOP_KEY", "is_set": False, "required": True},
            {"name": "MODE", "is_set": False, "required": False},
        ]
        found = listed(project, env={"SHOP_KEY": secret})
        assert found["keyed"]["variables"][0]["is_set"]
        for args in (["target", "list"], ["target", "list", "--json"]):
            assert secret not in project(*args, env={"SHOP_KEY": secret}).out

    def test_a_file_of_variables_counts(self, project: Command) -> None:
        project.write(".env", "SHOP_KEY=abc\n")
        result = project("target", "list", "--json", "--env-file", ".env")
        assert [each["is_set"] for each in json.loads(result.out)["targets"][2]["variables"]] == [True, False]

    def test_for_people(self, project: Command) -> None:
        out = project("target", "list").out
        assert "SHOP_KEY: not set: the target cannot be asked" in out
        assert "full   mock  agentv.yaml:2:3  1 eval" in out
        assert out.endswith("next: agentv target check NAME\n")

    def test_a_folder_without_any(self, run: Command) -> None:
        result = run("target", "list")
        assert (result.code, "no target is defined here" in result.out) == (0, True)

    def test_what_is_wrong_with_a_target_is_said_with_its_place(self, run: Command) -> None:
        run.write("a.eval.yaml", "targets:\n  - {name: m, provider: mok}\n")
        result = run("target", "list")
        assert result.code == 2
        assert "a.eval.yaml:2:25: " in result.err
        assert "did you mean 'mock'?" in result.err
        assert run("target", "list", "nowhere").code == 2


class TestCheck:
    def test_what_a_full_reply_tells(self, project: Command) -> None:
        found = checked(project, "full")
        assert found["answered"]
        assert found["calls"] == ["search"]
        assert found["response"]["tokens_usage"]["total_tokens"] == 120
        assert found["response"]["cost_usd"] == pytest.approx(0.00045)
        assert found["response"]["text"] == "Two pairs."
        assert found["response"]["output_messages"][0]["tool_calls"][0]["tool"] == "search"
        assert found["undecidable"] == []
        assert found["second_turn"]["same_thread"]

    def test_which_evaluators_a_bare_text_is_not_enough_for(self, project: Command) -> None:
        found = checked(project, "words", "--prompt", "What time is it?")
        assert (found["prompt"], found["response"]["text"]) == ("What time is it?", "What time is it?")
        assert (found["calls"], found["second_turn"]) == (None, None)
        reasons = {each["evaluator"]: each["reason"] for each in found["undecidable"]}
        assert {"tool_trajectory", "token_budget", "cost_budget", "tool_call_count", "tool_order"} <= set(reasons)
        assert {"contains", "regex", "latency_budget", "llm_judge", "all_of", "python"}.isdisjoint(reasons)
        assert reasons["cost_budget"] == "the reply has no `cost_usd`: have the agent send it in its reply"

    def test_for_people(self, project: Command) -> None:
        out = project("target", "check", "full").out
        assert "answered   yes, in " in out
        assert "tokens     100 in, 20 out" in out
        assert "cost       $0.000450" in out
        assert "calls      1: search" in out
        assert "thread     thread-1; a second turn was answered in the same thread" in out
        assert 'assistant  calls search {"q":"shoes"} -> ["a","b"]' in out
        assert "every evaluator could decide with such a reply" in out

    def test_calls_of_a_reply_that_was_partly_understood_are_a_lower_bound(self, run: Command) -> None:
        reply = {"output_messages": [{"role": "assistant", "content": "Hi", "tool_calls": [{"tool": "search"}, {}]}]}
        run.write("agent.py", f"print({json.dumps(json.dumps(reply))})")
        command = [sys.executable, "agent.py"]
        run.write("agentv.yaml", {"targets": [{"name": "t", "provider": "cli", "command": command}]})
        found = checked(run, "t")
        assert found["calls_complete"] is False
        (place,) = found["unread"]
        assert (place["path"], place["reason"]) == ("output_messages[0].tool_calls[1]", "a call without a name")
        out = run("target", "check", "t").out
        assert "calls      at least 2: search, (unnamed)" in out

    def test_a_second_turn_goes_on_in_the_thread_that_the_first_named(self, run: Command) -> None:
        run.write("agent.py", THREADS)
        command = [sys.executable, "agent.py"]
        run.write("a.eval.yaml", {"targets": [{"name": "t", "provider": "cli", "command": command}], "cases": CASES})
        found = checked(run, "t")
        assert found["response"]["thread_id"] == "made-here"
        assert found["second_turn"] == {"answered": True, "same_thread": True, "text": "again", "error": None}

    @pytest.mark.parametrize("mode", ["single", "batch", "stream"])
    def test_in_every_mode_of_a_program(self, run: Command, mode: str) -> None:
        program = "print('hello')" if mode == "single" else LINES
        target = {"name": "t", "provider": "cli", "mode": mode, "command": [sys.executable, "-c", program]}
        run.write("agentv.yaml", {"targets": [target]})
        assert checked(run, "t")["response"]["text"] == "hello"

    def test_one_that_does_not_answer_says_why_and_what_to_do(self, run: Command) -> None:
        run.write("agentv.yaml", {"targets": [{"name": "gone", "provider": "cli", "command": ["no-such-program"]}]})
        found = checked(run, "gone")
        assert not found["answered"]
        assert "no such program" in found["response"]["error"]["message"]
        assert found["hint"] == "is it running, and is its address or command right?"
        out = run("target", "check", "gone").out
        assert "answered   no" in out
        assert "hint       is it running" in out

    def test_one_that_takes_too_long(self, run: Command) -> None:
        slow = {"name": "slow", "provider": "mock", "delay_ms": 60_000, "timeout_s": 0.1}
        run.write("agentv.yaml", {"targets": [slow]})
        found = checked(run, "slow")
        assert found["response"]["error"]["kind"] == "timeout"
        assert "`timeout_s`" in found["hint"]

    def test_a_failure_is_not_tried_again(self, run: Command) -> None:
        run.write("agentv.yaml", {"targets": [{"name": "flaky", "provider": "mock", "fail_rate": 1, "retries": 5}]})
        found = checked(run, "flaky")
        assert found["warnings"] == []

    def test_secrets_are_hidden(self, run: Command) -> None:
        target = {"name": "t", "provider": "cli", "command": [sys.executable, "-c", ECHO_ENV], "env": ["TOKEN"]}
        run.write("agentv.yaml", {"targets": [target]})
        for more in ([], ["--json"]):
            result = run("target", "check", "t", *more, env={"TOKEN": "hush-hush-hush"})
            assert "hush-hush-hush" not in result.out + result.err
            assert "[redacted:TOKEN]" in result.out

    def test_a_variable_that_is_not_set_is_a_mistake_and_nothing_is_asked(self, project: Command) -> None:
        result = project("target", "check", "keyed")
        assert result.code == 2
        assert "needs the environment variable SHOP_KEY, which is not set" in result.err

    def test_a_name_that_is_not_there(self, project: Command) -> None:
        result = project("target", "check", "ful")
        assert (result.code, "did you mean 'full'?" in result.err) == (2, True)

    def test_a_name_that_stands_for_two(self, project: Command) -> None:
        other = [{"name": "own", "provider": "mock", "reply": "another"}]
        project.write("evals/c.eval.yaml", {"targets": other, "cases": CASES})
        result = project("target", "check", "own")
        assert result.code == 2
        assert "evals/b.eval.yaml:2:3, evals/c.eval.yaml:2:3" in result.err
        assert checked(project, "own", "evals/c.eval.yaml")["response"]["text"] == "another"

    def test_what_an_agent_smuggles_in_does_not_reach_the_terminal(self, run: Command) -> None:
        run.write("agentv.yaml", {"targets": [{"name": "t", "provider": "mock", "reply": "a\x1b[31mred\u202e"}]})
        assert "\x1b" not in run("target", "check", "t").out


HOSTILE = "{{ prompt }} {{{ id }}} {prompt} {{vars.x}} { a"


def test_what_a_variable_holds_is_never_read_as_a_placeholder(run: Command) -> None:
    with serving(answering({"text": "done"})) as endpoint:
        web: Json = {
            "name": "web",
            "provider": "http",
            "url": f"{endpoint.url}/x?q=${{HOSTILE}}",
            "query": {"v": "${HOSTILE}"},
        }
        web |= {
            "headers": {"x-v": "${HOSTILE} {{ id }}"},
            "body": {"v": "${HOSTILE}", "w": "{{ prompt }}: {${HOSTILE}"},
        }
        printing = "import sys, json; print(json.dumps({'text': '|'.join(sys.argv[1:])}))"
        cli = {
            "name": "cli",
            "provider": "cli",
            "command": [sys.executable, "-c", printing, "${HOSTILE}", "{prompt} ${HOSTILE}"],
        }
        run.write("agentv.yaml", {"targets": [web, cli]})
        assert run("target", "check", "web", "--prompt", "Hi", env={"HOSTILE": HOSTILE}).code == 0
        (asked,) = endpoint.asked
    assert asked.json == {"v": HOSTILE, "w": "Hi: {" + HOSTILE}
    assert asked.header("x-v") == f"{HOSTILE} check"
    assert parse_qs(urlsplit(asked.path).query)["v"] == [HOSTILE]
    said = json.loads(run("target", "check", "cli", "--prompt", "Hi", "--json", env={"HOSTILE": HOSTILE}).out)
    assert said["response"]["text"] == f"{HOSTILE}|Hi {HOSTILE}"
