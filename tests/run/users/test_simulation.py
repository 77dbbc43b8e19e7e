"""Simulated users in whole conversations: stop rules, blame, secrecy."""

# ruff: noqa: ARG001 - agents take what they are given

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import agentv

STEPS = ("order", "mail", "street", "city", "phone", "reason", "colour", "size", "shop", "date", "bank")
FACTS = {step: {"value": f"value-{number}", "asked": [step]} for number, step in enumerate(STEPS)}


def refund_agent(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Ask for one thing after the other, then refund."""
    turn = sum(message["role"] == "user" for message in messages)
    if turn <= len(STEPS):
        step = STEPS[turn - 1]
        calls = [{"tool": f"save_{step}", "input": {"value": messages[-1]["content"]}}]
        return {"output_messages": [{"role": "assistant", "tool_calls": calls, "content": f"And the {step}?"}]}
    return {"output_messages": [{"role": "assistant", "tool_calls": [{"tool": "refund"}], "content": "It is done."}]}


def simulate(case: dict[str, Any], agent: Any, **more: Any) -> Any:
    """Run one case, and return its result record."""
    case = {"id": "a", "evaluators": [{"type": "tool_trajectory", "minimums": {"refund": 1}}], **case}
    options = {key: more.pop(key) for key in list(more) if key not in ("targets", "personas")}
    (record,) = agentv.evaluate({"cases": [case], **more}, target=agent, **options).results
    return record


def facts_user(**more: Any) -> dict[str, Any]:
    return {"simulate": {"user": "facts", "opening": "I want my money back.", "facts": FACTS, **more}}


def says(*texts: str) -> Any:
    """Return an agent that gives these answers, the last one again and again."""

    def agent(messages: list[dict[str, Any]]) -> dict[str, Any]:
        turn = sum(message["role"] == "user" for message in messages)
        return {"output_messages": [{"role": "assistant", "content": texts[min(turn, len(texts)) - 1]}]}

    return agent


class TestStopRules:
    @pytest.mark.parametrize("call", [{"tool": "refund"}, "refund"])
    def test_the_calls_of_the_goal_end_the_conversation(self, call: Any) -> None:
        record = simulate(facts_user(stop={"made": [call]}), refund_agent)
        assert (record.status, record.ended_by, len(record.turns)) == ("pass", "goal", 12)

    def test_a_failed_call_does_not_reach_the_goal(self) -> None:
        def agent(messages: list[dict[str, Any]]) -> dict[str, Any]:
            calls = [{"tool": "refund", "status": "error"}]
            return {"output_messages": [{"role": "assistant", "tool_calls": calls, "content": "Hm?"}]}

        record = simulate(facts_user(stop={"made": [{"tool": "refund"}], "max_turns": 3}), agent)
        assert (record.ended_by, len(record.turns)) == ("limit", 3)

    def test_words_of_the_agent_end_it(self) -> None:
        record = simulate(
            facts_user(stop={"agent_says": ["refund(ed)? .*done"]}), says("Wait?", "Your REFUND is done.")
        )
        assert (record.ended_by, len(record.turns)) == ("agent", 2)

    def test_it_does_not_end_before_the_smallest_number_of_turns(self) -> None:
        stop = {"agent_says": ["done"], "min_turns": 3}
        assert len(simulate(facts_user(stop=stop), says("Done?")).turns) == 3

    def test_a_limit_is_evaluated_as_usual(self) -> None:
        record = simulate(facts_user(stop={"max_turns": 2}), says("Really?"))
        assert (record.status, record.ended_by, record.fault, len(record.turns)) == ("fail", "limit", "none", 2)

    def test_an_agent_that_only_waits_ends_after_three_nudges(self) -> None:
        record = simulate(facts_user(), says("One moment."))
        assert (record.ended_by, len(record.turns)) == ("limit", 4)

    def test_tool_errors_in_a_row_end_it(self) -> None:
        def agent(messages: list[dict[str, Any]]) -> dict[str, Any]:
            calls = [{"tool": "x", "status": "error"}, {"tool": "x", "status": "error"}]
            return {"output_messages": [{"role": "assistant", "tool_calls": calls, "content": "Again?"}]}

        record = simulate(facts_user(stop={"max_tool_errors": 5}), agent)
        assert (record.ended_by, len(record.turns)) == ("limit", 3)

    def test_scripted_turns_come_first_and_count(self) -> None:
        case = {"turns": [{"user": "Hello."}, {"user": "Help."}, {"simulate": {"max_turns": 4}}], **facts_user()}
        record = simulate(case, says("Done? What?"), include_messages=True)
        said = [message.text for message in record.messages if message.role == "user"]
        assert (said[:2], len(said)) == (["Hello.", "Help."], 4)
        assert "I want my money back." not in said

    def test_stop_rules_do_not_end_a_script(self) -> None:
        case = {"turns": [{"user": "one"}, {"user": "two"}], **facts_user(stop={"agent_says": ["done"]})}
        assert len(simulate(case, says("Done.")).turns) == 2

    @pytest.mark.parametrize("stop", [{"max_turns": 2}, {"max_tool_errors": 1}])
    def test_limits_do_not_end_a_script(self, stop: dict[str, Any]) -> None:
        def agent(messages: list[dict[str, Any]]) -> dict[str, Any]:
            calls = [{"tool": "x", "status": "error"}]
            return {"output_messages": [{"role": "assistant", "tool_calls": calls, "content": "Again?"}]}

        case = {"turns": [{"user": "one"}, {"user": "two"}, {"user": "three"}], **facts_user(stop=stop)}
        record = simulate(case, agent)
        assert (record.ended_by, len(record.turns)) == ("limit", 3)


def test_a_fact_may_be_unknown_and_have_patterns() -> None:
    facts = {"birthday": {"value": "unknown", "asked": ["born"]}}
    case = {"simulate": {"opening": "Hi.", "facts": facts, "stop": {"max_turns": 2}}}
    record = simulate(case, says("When were you born?"), include_messages=True)
    assert [message.text for message in record.messages if message.role == "user"] == ["Hi.", "I do not know."]


def test_an_empty_fact_is_an_error_before_anything_runs() -> None:
    with pytest.raises(agentv.SpecError, match="the fact is empty"):
        simulate({"simulate": {"opening": "Hi.", "facts": {"order": " "}}}, says("Hm."))


def test_the_words_of_the_facts_user_are_no_fault() -> None:
    """All of them are the author's, also those that a model must not write."""
    facts = {"order": "I want my money back.", "role": "My persona is in my brief."}
    case = {"simulate": {"opening": "I want my money back.", "facts": facts, "stop": {"max_turns": 3}}}
    record = simulate(case, says("Which order?", "Your role?"))
    assert (record.fault, len(record.turns)) == ("none", 3)


@pytest.mark.parametrize(("number", "told"), [(1234567.25, "1234567.25"), (12.0, "12"), (7, "7"), (0.1, "0.1")])
def test_numbers_are_told_with_all_digits(number: float, told: str) -> None:
    case = {"simulate": {"opening": "Hi.", "facts": {"price": number}, "stop": {"max_turns": 2}}}
    record = simulate(case, says("What was the price?"), include_messages=True)
    assert [message.text for message in record.messages if message.role == "user"] == ["Hi.", told]


def flow(seed: int, count: int) -> set[bytes]:
    """Run the same flow many times in random order, and return the different trajectories."""
    case = {
        **facts_user(stop={"made": [{"tool": "refund"}]}),
        "evaluators": [{"type": "conversation_turns", "max": 12}],
    }
    cases = [{"id": f"c{number}", **case} for number in range(count)]
    random.Random(seed).shuffle(cases)  # noqa: S311 - an order
    results = agentv.evaluate({"cases": cases}, target=refund_agent, max_concurrency=50, include_messages=True).results
    assert {record.ended_by for record in results} == {"goal"}
    assert {len(record.turns or ()) for record in results} == {12}
    return {msgspec.json.encode(record.messages) for record in results}


def trajectories(hash_seed: int, order: int, count: int) -> set[bytes]:
    """Run the flow in a process with another order of sets and dictionaries, and return the different trajectories."""
    code = f"import sys; from {__name__} import flow; print(*(each.hex() for each in flow({order}, {count})))"
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=True)
    return {bytes.fromhex(word) for word in done.stdout.split()}


def test_the_same_facts_give_the_same_trajectory() -> None:
    assert len(flow(1, 25) | trajectories(7, 2, 25)) == 1


@pytest.mark.soak
def test_the_same_facts_give_the_same_trajectory_a_thousand_times() -> None:
    """Two hash seeds, 50 conversations at once, in random order: one trajectory of twelve turns."""
    assert len(trajectories(0, 3, 1000) | trajectories(4_294_967_295, 4, 1000)) == 1


class TestUserModel:
    def model_case(self, **more: Any) -> dict[str, Any]:
        brief = {
            "user": "model",
            "target": "user-model",
            "goal": "Get order A-17 refunded.",
            "facts": {"order_id": "A-17"},
        }
        return {"simulate": {**brief, "opening": "I want my money back.", **more}}

    def run(self, replies: list[Any], agent: Any = None, **more: Any) -> Any:
        waiting = list(replies)
        targets = [python_target(lambda _: waiting.pop(0))]
        return simulate(self.model_case(**more), agent or says("Which order?", "Anything else?"), targets=targets)

    def test_a_stop_with_a_message_waits_for_the_answer(self) -> None:
        record = self.run([step("It is A-17."), step("Thanks, bye.", stop=True)])
        assert (record.ended_by, len(record.turns), record.simulator.requests) == ("user", 3, 2)

    def test_the_use_of_the_user_model_is_recorded_apart(self) -> None:
        usage = {
            "text": json.dumps({"message": "", "stop": True}),
            "tokens_usage": {"input_tokens": 90, "output_tokens": 9},
        }
        record = self.run([usage], says("Anything else?"))
        assert record.simulator.tokens_usage.input_tokens == 90
        assert record.tokens_usage is None

    def test_an_unreadable_reply_is_asked_for_once_more(self) -> None:
        record = self.run(["nonsense", step("", stop=True)], says("Anything else?"))
        assert (record.fault, record.simulator.requests) == ("none", 2)

    def test_two_unreadable_replies_are_a_fault_of_the_simulator(self) -> None:
        record = self.run(["nonsense"] * 4, retries=1)
        assert (record.status, record.error.kind, record.fault) == ("error", "simulator", "simulator")
        assert (record.simulator.conversations, record.attempts) == (2, 2)

    def test_a_premature_stop_is_not_a_failure_of_the_agent(self) -> None:
        record = self.run([step("", stop=True)] * 2)
        assert (record.status, record.score, record.fault) == ("error", None, "simulator")
        assert "while a question of the agent was open: 'Which order?'" in record.error.message

    def test_a_goodbye_is_no_answer_to_an_open_question(self) -> None:
        record = self.run([step("Thanks, bye.", stop=True)] * 2)
        assert (record.status, record.score, record.fault) == ("error", None, "simulator")

    def test_a_short_answer_may_be_the_last_message(self) -> None:
        record = self.run([step("It is A-17.", stop=True)])
        assert (record.ended_by, record.fault) == ("user", "none")

    def test_a_last_message_before_min_turns_is_not_the_last(self) -> None:
        record = self.run([step("It is A-17.", stop=True), *[step("", stop=True)] * 3], stop={"min_turns": 3})
        assert (record.ended_by, len(record.turns)) == ("user", 3)

    def test_an_invented_value_is_not_a_failure_of_the_agent(self) -> None:
        record = self.run([step("It is order B-99.")] * 2)
        assert record.error.message.startswith("turn 2: the simulated user made a mistake: it told the id 'B-99'")

    def test_a_new_conversation_with_another_seed_may_succeed(self) -> None:
        record = self.run([step("It is order B-99."), step("It is order A-17."), step("", stop=True)])
        assert (record.fault, record.simulator.conversations, len(record.simulator.faults)) == ("none", 2, 1)

    def test_a_user_model_that_fails_is_no_fault_of_the_agent(self) -> None:
        targets = [{"name": "user-model", "provider": "mock", "reply": {"error": "down"}}]
        record = simulate(self.model_case(), says("Which order?"), targets=targets)
        assert (record.status, record.error.kind, record.fault) == ("error", "transport", "environment")

    def test_the_user_has_seen_the_history_and_not_the_system_prompt(self) -> None:
        requests: list[str] = []

        def user_model(messages: list[dict[str, Any]]) -> str:
            requests.append(messages[0]["content"])
            return step("It is A-17.")

        history = [
            {"role": "system", "content": "Never refund more than 40."},
            {"role": "user", "content": "Are you open on Sunday?"},
            {"role": "assistant", "content": "Yes. What is it about?"},
        ]
        case = {**self.model_case(stop={"max_turns": 2}, opening=None), "input": history}
        simulate(case, says("Hm."), targets=[python_target(user_model)])
        lines = [
            json.dumps({"speaker": who, "text": text}, separators=(",", ":"))
            for who, text in (
                ("you", "Are you open on Sunday?"),
                ("agent", "Yes. What is it about?"),
                ("you", "It is A-17."),
            )
        ]
        assert "\n".join(lines[:2]) in requests[0]
        assert "\n".join(lines) in requests[1]
        assert "Never refund" not in "".join(requests)

    def test_no_byte_of_an_evaluator_reaches_the_user_model(self) -> None:
        requests: list[str] = []
        secrets = ("Zanzibar criterion of the judge", "quuxvalue", "golden_tool", "the secret name", "turnvalue")

        def user_model(messages: list[dict[str, Any]]) -> str:
            requests.append(json.dumps(messages))
            return json.dumps({"message": "It is A-17.", "stop": len(requests) > 2})

        evaluators = [
            {"type": "llm_judge", "rubric": [secrets[0]], "skip": True},
            {"type": "contains", "value": secrets[1], "name": secrets[3]},
            {"type": "tool_trajectory", "expected": [{"tool": secrets[2]}], "mode": "in_order"},
        ]
        expected = [{"role": "assistant", "tool_calls": [{"tool": secrets[2]}]}]
        turns = [{"user": "Hello.", "evaluators": [{"type": "contains", "value": secrets[4]}]}]
        case = {**self.model_case(), "evaluators": evaluators, "expected_messages": expected, "turns": turns}
        simulate(case, says("Which order?"), targets=[python_target(user_model)], judge=says("x"))
        assert requests
        assert [secret for secret in secrets for request in requests if secret in request] == []


def step(message: str, *, stop: bool = False) -> str:
    return json.dumps({"message": message, "stop": stop, "reason": "x"})


def python_target(function: Any) -> dict[str, Any]:
    """Return the settings of a target that calls a function of this module."""
    globals()["_user_model"] = function
    return {"name": "user-model", "provider": "python", "function": f"{__name__}:_user_model"}
