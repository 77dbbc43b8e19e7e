"""`agentv eval` with simulated users: secrecy, seeds, blame, limits, and runs that become scripted cases."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.fakes.model_server.server import Server, running
from tests.support.command import Command, Json, program

AGENT = """
import json
import pathlib

def call(tool, **given):
    return {"tool": tool, "input": given, "output": "ok"}

def reply(messages):
    said = messages[-1]["content"]
    known = "A-17" in " ".join(message["content"] or "" for message in messages if message["role"] == "user")
    calls = [call("get_order", order_id="A-17"), call("refund", order_id="A-17")] if known else []
    text = "Your refund is done." if known else "Which order is it?"
    return {"output_messages": [{"role": "assistant", "content": text, "tool_calls": calls}]}

def loops(messages):
    return {"output_messages": [{"role": "assistant", "content": "Could you tell me more?"}]}

def user(messages):
    with pathlib.Path("requests.txt").open("a") as file:
        file.write(json.dumps(messages) + "\\n")
    return json.dumps({"message": "It is order A-17.", "stop": False, "reason": "asked"})

def nothing(messages):
    return ""

def stops(messages):
    return json.dumps({"message": "Thanks, bye.", "stop": True, "reason": "done"})
"""
USER_PROGRAM = """
import json, sys
text = sys.stdin.read()
open("requests.txt", "a").write(text)
print(json.dumps({"text": json.dumps({"message": "It is order A-17.", "stop": False, "reason": "asked"})}))
"""
SECRETS = (
    *("Zanzibar rubric of the judge", "quuxvalue", "golden_tool", "the hidden name", "turnvalue", "goldentext"),
    *("argument-of-gold", "defaultvalue", "a note for the reviewers", "vestigial description"),
    *("turn_golden", "words that end it", "note-of-the-goal"),
)
"""Texts of evaluators, expectations and notes, none of which a user knows."""
EXPECTED = [{"role": "assistant", "tool_calls": [{"tool": SECRETS[10]}]}]
MADE = [{"tool": "refund", "input": {"order_id": {"$not": SECRETS[12]}}}]
PERSONA = "In a hurry and short of words."


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as started:
        yield started


def python_target(name: str, function: str) -> Json:
    return {"name": name, "provider": "python", "function": f"agent.py:{function}"}


def brief(**more: Any) -> Json:
    return {
        "user": "model",
        "target": "user",
        "opening": "I want my money back.",
        "goal": "Get order A-17 refunded.",
        "facts": {"order_id": "A-17", "birthday": "unknown"},
        "stop": {"made": [{"tool": "refund"}], "max_turns": 4},
        **more,
    }


def eval_of(user: Json | None, simulate: Json, agent: str = "reply", **case: Any) -> Json:
    targets = [python_target("agent", agent), *([] if user is None else [user])]
    check = {"type": "tool_trajectory", "minimums": {"refund": 1}}
    return {
        "targets": targets,
        "target": "agent",
        "cases": [{"id": "refund", "simulate": simulate, "evaluators": [check], **case}],
    }


def evaluate(run: Command, content: Json, *args: str) -> tuple[Any, Json]:
    """Run an eval, and return the result of the command and the record of its only run."""
    run.write("agent.py", AGENT)
    run.write("a.eval.yaml", content)
    result = run("eval", "a.eval.yaml", "--out", "results.jsonl", *args)
    return result, run.records()[-1]


def secret_case() -> Json:
    """Return parts of a case that hold all secrets."""
    return {
        "description": SECRETS[9],
        "persona": "hasty",
        "metadata": {"note": SECRETS[8]},
        "turns": [{"user": "Hello.", "evaluators": [{"type": "contains", "value": SECRETS[4]}], "expected": EXPECTED}],
        "expected_messages": [{"role": "assistant", "content": SECRETS[5], "tool_calls": [{"tool": SECRETS[2]}]}],
        "evaluators": [
            {"type": "llm_judge", "rubric": [SECRETS[0]], "skip": True},
            {"type": "contains", "value": SECRETS[1], "name": SECRETS[3]},
            {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "x", "input": {"y": SECRETS[6]}}]},
        ],
    }


class TestSecrecy:
    """No byte of an evaluator, an expectation or a note is in a request to a user model."""

    def driver(self, kind: str, run: Command, server: Server) -> tuple[Json, Callable[[], list[str]]]:
        """Return a target for the user model, and a function that returns its requests so far."""
        if kind in ("python", "cli"):
            run.write("user.py", USER_PROGRAM)
            target = python_target("user", "user") if kind == "python" else program("user.py", name="user")
            path = run.folder / "requests.txt"
            return target, lambda: path.read_text("utf-8").splitlines() if path.exists() else []
        before = len(server.seen)
        settings: Json = {"name": "user", "model": "user", "base_url": server.url, "api_key": "k" * 20}
        settings |= {"provider": "anthropic"} if kind == "anthropic" else {"provider": "openai"}
        settings |= {"api": "responses"} if kind == "responses" else {}
        return settings, lambda: [json.dumps([each.body, each.headers]) for each in server.seen[before:]]

    @pytest.mark.parametrize("kind", ["chat", "responses", "anthropic", "python", "cli"])
    def test_in_requests_of_every_kind_of_target(self, run: Command, server: Server, kind: str) -> None:
        target, requests = self.driver(kind, run, server)
        stop = {"made": MADE, "agent_says": SECRETS[11], "max_turns": 4}
        content = eval_of(target, brief(stop=stop), **secret_case())
        content["personas"] = [{"id": "hasty", "description": PERSONA, "vars": {"locale": "de"}}]
        content["defaults"] = {"evaluators": [{"type": "contains", "value": SECRETS[7]}]}
        result, record = evaluate(run, content)
        assert (result.code, record["ended_by"], record["persona_id"]) == (1, "goal", "hasty"), result.out
        sent = requests()
        assert sent
        assert all(PERSONA in request and "A-17" in request for request in sent)
        assert [secret for secret in SECRETS for request in sent if secret in request] == []
        assert run("rescore").code == 1
        assert requests() == sent

    def test_a_text_of_the_brief_is_found_in_the_requests(self, run: Command) -> None:
        """A secret that stands in the brief is seen, so that the test above would see one that leaks."""
        target, requests = python_target("user", "user"), run.folder / "requests.txt"
        evaluate(run, eval_of(target, brief(goal=f"Get A-17 refunded. {SECRETS[0]}"), turns=[{"user": "Hello."}]))
        assert SECRETS[0] in requests.read_text("utf-8")


class TestSeeds:
    def seeds(self, run: Command, server: Server, model: str) -> list[int]:
        before = len(server.seen)
        user = {"name": "user", "provider": "openai", "model": model, "base_url": server.url, "api_key": "k" * 20}
        evaluate(run, eval_of(user, brief()))
        return [each.body["seed"] for each in server.seen[before:]]

    def test_a_new_conversation_has_a_new_seed_and_a_new_execution_the_same(self, run: Command, server: Server) -> None:
        first = self.seeds(run, server, "inventing-user")
        assert len(set(first)) == 2
        assert self.seeds(run, server, "inventing-user") == first


class TestBlame:
    def test_an_invented_value_is_an_error_of_the_simulator(self, run: Command, server: Server) -> None:
        user = {"name": "user", "provider": "openai", "model": "inventing-user", "base_url": server.url, "api_key": "k"}
        content = eval_of(user, brief())
        content["cases"].append({**content["cases"][0], "id": "scripted", "turns": [{"user": "Refund A-17."}]})
        content["cases"][1].pop("simulate")
        result, _ = evaluate(run, content)
        records = {record["case_id"]: record for record in run.records()}
        assert result.code == 3
        assert "1 of 2 conversations could not be measured: simulator" in result.out + result.err
        simulated = records["refund"]
        assert (simulated["status"], simulated["fault"], simulated["ended_by"]) == ("error", "simulator", "error")
        assert simulated["error"]["kind"] == "simulator"
        assert simulated["simulator"]["tokens_usage"]["input_tokens"] == 24
        assert records["scripted"]["status"] == "pass"

    @pytest.mark.parametrize(
        ("user", "message"),
        [
            ("nothing", "the user model's reply could not be read twice"),
            ("stops", "it ended the conversation while a question of the agent was open: 'Which order is it?'"),
        ],
    )
    def test_a_driver_that_fails_is_not_the_agent(self, run: Command, user: str, message: str) -> None:
        result, record = evaluate(run, eval_of(python_target("user", user), brief()))
        assert result.code == 3
        assert "1 of 1 conversations could not be measured: simulator" in result.out + result.err
        assert message in result.out
        assert (record["score"], record["fault"], record["attempts"]) == (None, "simulator", 2)

    def test_a_goal_that_is_never_reached_ends_at_the_limit(self, run: Command) -> None:
        result, record = evaluate(run, eval_of(None, {**brief(), "user": "facts", "target": None}, "loops"))
        assert result.code == 1
        assert (record["ended_by"], record["fault"], len(record["turns"])) == ("limit", "none", 4)

    def test_two_simulate_entries_are_an_error_before_anything_runs(self, run: Command) -> None:
        turns = [{"user": "Hello."}, {"simulate": None}, {"simulate": None}]
        run.write("agent.py", AGENT)
        run.write("a.eval.yaml", eval_of(None, {"user": "facts", "facts": {"order": "A-17"}}, turns=turns))
        result = run("eval", "a.eval.yaml")
        assert result.code == 2
        assert "a conversation has one `simulate` entry" in result.err


class TestFreeze:
    def freeze(self, run: Command, *args: str) -> Any:
        run_id = json.loads(run("runs", "list", "--json").out)["runs"][0]["id"]
        return run("cases", "freeze", run_id, "--out", "frozen.eval.yaml", *args)

    @pytest.mark.parametrize("persona", [None, "hasty"])
    def test_a_simulated_run_becomes_a_scripted_case_that_passes(self, run: Command, persona: str | None) -> None:
        more = {} if persona is None else {"persona": persona}
        content = eval_of(python_target("user", "user"), brief(), **more)
        content["personas"] = [{"id": "hasty", "description": PERSONA}]
        result, before = evaluate(run, content)
        assert (result.code, self.freeze(run).code) == (0, 0)
        frozen = run("eval", "frozen.eval.yaml", "--out", "frozen.jsonl")
        (after,) = run.records("frozen.jsonl")
        assert frozen.code == 0, frozen.out
        assert (after["status"], after.get("persona_id")) == ("pass", persona)
        assert [turn["calls"] for turn in after["turns"]] == [turn["calls"] for turn in before["turns"]] == [0, 2]
        assert "simulator" not in after
        assert len((run.folder / "requests.txt").read_text("utf-8").splitlines()) == 1

    def test_a_frozen_case_fails_when_the_agent_changes(self, run: Command) -> None:
        evaluate(run, eval_of(python_target("user", "user"), brief()))
        self.freeze(run)
        run.write("agent.py", AGENT.replace('order_id="A-17")]', 'order_id="A-18")]'))
        assert run("eval", "frozen.eval.yaml").code == 1

    def test_an_error_cannot_be_frozen(self, run: Command) -> None:
        evaluate(run, eval_of(python_target("user", "nothing"), brief()))
        result = self.freeze(run)
        assert (result.code, (run.folder / "frozen.eval.yaml").exists()) == (2, False)
        assert "freeze one that ended" in result.err

    def test_the_only_run_of_an_execution_needs_no_id(self, run: Command) -> None:
        content = eval_of(python_target("user", "user"), brief())
        evaluate(run, content)
        assert run("cases", "freeze", "last").out.startswith("# Frozen from run ")
        content["cases"].append({**content["cases"][0], "id": "other"})
        evaluate(run, content)
        result = run("cases", "freeze", "last")
        assert (result.code, "name one of its runs" in result.err) == (2, True)

    def test_a_file_is_not_overwritten(self, run: Command) -> None:
        evaluate(run, eval_of(python_target("user", "user"), brief()))
        run.write("frozen.eval.yaml", "mine")
        assert self.freeze(run).code == 2
        assert (run.folder / "frozen.eval.yaml").read_text("utf-8") == "mine"
        assert self.freeze(run, "--force").code == 0
