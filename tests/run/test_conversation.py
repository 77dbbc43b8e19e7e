"""Conversations: turns, threads, retries, and the mistakes that other tools made."""

# ruff: noqa: ARG001, ARG005, S311 - agents and answers take what they are given; the numbers are no secrets

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any

import pytest

import agentv
from agentv.evals import Target
from agentv.model.response import ProviderResponse, ResponseError
from agentv.providers.base import ProviderBase, failure
from agentv.run.conversation import LOST_THREAD

if TYPE_CHECKING:
    from agentv.model.request import Request

REFUND = [{"role": "assistant", "tool_calls": [{"tool": "refund", "input": {"order_id": "A-17"}, "output": "ok"}]}]
TWO_TURNS = [{"user": "I want my money back."}, {"user": "It is order A-17."}]


def scripted_agent(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Ask for the order in the first turn, and refund it in the second."""
    if sum(message["role"] == "user" for message in messages) == 1:
        return reply("Which order?", tokens=(10, 5))
    return reply("Done.", REFUND, tokens=(30, 7))


def reply(text: str, messages: list[Any] | None = None, tokens: tuple[int, int] = (1, 1)) -> dict[str, Any]:
    usage = {"input_tokens": tokens[0], "output_tokens": tokens[1]}
    return {"output_messages": [*(messages or []), {"role": "assistant", "content": text}], "tokens_usage": usage}


def run_case(case: dict[str, Any], target: Any = scripted_agent, **options: Any) -> Any:
    """Run one case, and return its result record."""
    (record,) = run_cases([{"id": "a", **case}], target, **options)
    return record


def run_cases(cases: list[dict[str, Any]], target: Any = scripted_agent, **options: Any) -> list[Any]:
    names = [key for key in ("personas", "targets", "defaults") if key in options]
    more: dict[str, Any] = {key: options.pop(key) for key in names}
    if isinstance(target, ProviderBase):
        target = Target("recorder", "recorder", {"name": "recorder"}, instance=target)
    options["target"] = target
    return list(agentv.evaluate({"cases": cases, **more}, **options).results)


def contains(value: str, **more: Any) -> dict[str, Any]:
    return {"type": "contains", "value": value, **more}


class TestTurns:
    def test_each_turn_sees_the_whole_conversation_before_it(self) -> None:
        seen: list[list[str]] = []

        def agent(messages: list[dict[str, Any]]) -> dict[str, Any]:
            seen.append([message["role"] for message in messages])
            return scripted_agent(messages)

        record = run_case({"turns": TWO_TURNS, "evaluators": [contains("Done")]}, agent)
        assert (record.status, seen) == ("pass", [["user"], ["user", "assistant", "user"]])

    def test_evaluators_of_a_turn_look_at_this_turn_only(self) -> None:
        no_calls = {"type": "tool_trajectory", "mode": "exact", "expected": []}
        turns = [{**TWO_TURNS[0], "evaluators": [no_calls]}, {**TWO_TURNS[1], "evaluators": [no_calls]}]
        record = run_case({"turns": turns})
        assert [(result.name, result.status) for result in record.evaluators] == [
            ("turn 1: tool_trajectory", "pass"),
            ("turn 2: tool_trajectory", "fail"),
        ]

    def test_evaluators_of_the_case_look_at_the_whole_conversation(self) -> None:
        record = run_case({"turns": TWO_TURNS, "evaluators": [{"type": "tool_trajectory", "minimums": {"refund": 1}}]})
        assert (record.status, record.candidate) == ("pass", "Done.")

    @pytest.mark.parametrize(
        ("over", "status", "turn"),
        [("conversation", "pass", None), ("each_turn", "fail", 1), ("last_turn", "pass", 2), ({"turn": 1}, "fail", 1)],
    )
    def test_over_names_the_part_of_the_conversation(self, over: Any, status: str, turn: int | None) -> None:
        check = {"type": "tool_trajectory", "minimums": {"refund": 1}, "over": over}
        (result,) = run_case({"turns": TWO_TURNS, "evaluators": [check]}).evaluators
        assert (result.status, result.details.get("turn")) == (status, turn)

    def test_a_turn_that_did_not_take_place_is_an_error(self) -> None:
        defaults = {"evaluators": [contains("Done", over={"turn": 3})]}
        record = run_case({"turns": TWO_TURNS}, defaults=defaults)
        assert record.status == "error"
        assert record.evaluators[0].details["undecided"] == ["there is no turn 3: the conversation has 2 turns"]

    def test_expected_messages_of_several_users_are_compared_turn_by_turn(self) -> None:
        golden = [
            {"role": "user", "content": "money"},
            {"role": "assistant", "content": "Which?"},
            {"role": "user", "content": "A-17"},
            {"role": "assistant", "tool_calls": [{"tool": "refund"}]},
        ]
        assert run_case({"turns": TWO_TURNS, "expected_messages": golden}).status == "pass"
        early = [golden[0], golden[3], golden[2], golden[1]]
        record = run_case({"turns": TWO_TURNS, "expected_messages": early})
        assert record.status == "fail"
        assert record.evaluators[0].misses[0].startswith("turn 1: tool_calls[0]: expected refund")

    def test_the_record_has_the_turns(self) -> None:
        record = run_case({"turns": TWO_TURNS, "evaluators": [contains("Done")]})
        places = [(turn.index, turn.first_message, turn.last_message, turn.calls) for turn in record.turns]
        assert places == [(1, 0, 1, 0), (2, 2, 4, 1)]
        assert (record.ended_by, record.fault, [turn.attempts for turn in record.turns]) == ("user", "none", [1, 1])

    def test_history_comes_before_the_first_turn(self) -> None:
        seen: list[int] = []

        def agent(messages: list[dict[str, Any]]) -> dict[str, Any]:
            seen.append(len(messages))
            return reply("Done.")

        history = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]
        record = run_case({"input": history, "turns": TWO_TURNS[:1], "evaluators": [contains("Done")]}, agent)
        assert (seen, record.turns[0].first_message) == ([3], 2)

    def test_budgets_count_over_all_turns(self) -> None:
        checks = [
            {"type": "token_budget", "max_total": 51},
            {"type": "token_budget", "name": "one", "max_total": 36, "over": "each_turn"},
            {"type": "step_budget", "max": 2},
            {"type": "conversation_turns", "min": 2, "max": 2},
        ]
        record = run_case({"turns": TWO_TURNS, "evaluators": checks})
        assert [result.status for result in record.evaluators] == ["fail", "fail", "fail", "pass"]
        assert record.evaluators[1].details["turn"] == 2


class TestMistakesOfOthers:
    def test_a_case_does_not_pass_if_the_agent_was_never_called(self) -> None:
        def agent(messages: list[Any]) -> Any:
            raise RuntimeError

        record = run_case({"turns": TWO_TURNS, "evaluators": [contains("Done", **{"not": True})]}, agent)
        assert (record.status, record.score, record.error.kind) == ("error", None, "agent")

    def test_tokens_of_all_turns_are_counted(self) -> None:
        usage = run_case({"turns": TWO_TURNS, "evaluators": [contains("Done")]}).tokens_usage
        assert (usage.input_tokens, usage.output_tokens) == (40, 12)

    def test_a_number_that_one_turn_does_not_report_is_unknown(self) -> None:
        def agent(messages: list[dict[str, Any]]) -> dict[str, Any]:
            answer = scripted_agent(messages)
            return answer if len(messages) == 1 else {"output_messages": answer["output_messages"]}

        record = run_case({"turns": TWO_TURNS, "evaluators": [{"type": "token_budget", "max_total": 20}]}, agent)
        assert (record.tokens_usage, record.status) == (None, "error")

    def test_a_judge_sees_the_whole_conversation_with_its_speakers(self) -> None:
        seen: list[str] = []

        def judge(messages: list[dict[str, Any]]) -> str:
            seen.append("\n".join(str(message["content"]) for message in messages))
            return "?"

        run_with_judge(judge, [{"type": "llm_judge", "rubric": ["It is polite"]}])
        for text in ("I want my money back.", "Which order?", "It is order A-17.", "Done.", '"user"', '"assistant"'):
            assert text in seen[0]

    def test_tool_messages_between_turns_are_not_dropped(self) -> None:
        seen: list[list[dict[str, Any]]] = []

        def agent(messages: list[dict[str, Any]]) -> dict[str, Any]:
            seen.append(messages)
            return reply("Done.", REFUND)

        run_case({"turns": TWO_TURNS, "evaluators": [contains("Done")]}, agent)
        assert seen[1][1]["tool_calls"][0]["output"] == "ok"

    def test_the_history_is_not_pasted_into_one_prompt(self) -> None:
        prompts: list[str] = []

        def agent(prompt: str) -> str:
            prompts.append(prompt)
            return "Done."

        run_case({"turns": TWO_TURNS, "evaluators": [contains("Done")]}, agent)
        assert prompts == ["I want my money back.", "It is order A-17."]

    def test_a_conversation_does_not_end_with_an_unanswered_message(self) -> None:
        record = run_case({"turns": TWO_TURNS, "evaluators": [contains("Done")]}, include_messages=True)
        assert [message.role for message in record.messages] == ["user", "assistant", "user", "assistant", "assistant"]

    def test_random_numbers_of_the_program_are_left_alone(self) -> None:
        simulate = {"user": "facts", "opening": "Hello", "stop": {"max_turns": 2}}
        random.seed(7)
        expected = random.random()
        random.seed(7)
        run_case({"simulate": simulate, "evaluators": [contains("Done")]}, lambda prompt: "Done.")
        assert random.random() == expected

    def test_tool_results_are_not_words_of_the_user(self) -> None:
        record = run_case({"turns": TWO_TURNS, "evaluators": [contains("Done")]}, include_messages=True)
        assert [message.text for message in record.messages if message.role == "user"] == [
            "I want my money back.",
            "It is order A-17.",
        ]


def run_with_judge(judge: Any, evaluators: list[dict[str, Any]]) -> Any:
    """Run the two turns with a function as the judge."""
    eval_ = {"cases": [{"id": "a", "turns": TWO_TURNS, "evaluators": evaluators}]}
    return agentv.evaluate(eval_, target=scripted_agent, judge=judge)


class Recorder(ProviderBase, kw_only=True):
    """Target whose replies a test decides, and whose requests it sees."""

    provider: str = "recorder"

    async def invoke(self, request: Request) -> ProviderResponse:
        requests, answer = self.__dict__["requests"], self.__dict__["answer"]
        requests.append(request)
        response: ProviderResponse = answer(request, len(requests))
        return response


def recorder(answer: Any, mode: str = "full", **settings: Any) -> tuple[Recorder, list[Request]]:
    provider = Recorder(conversation=mode, **settings)  # type: ignore[arg-type]  # one of the two
    requests: list[Request] = []
    provider.__dict__.update(requests=requests, answer=answer)
    return provider, requests


def ok(text: str = "Done.", thread_id: str | None = None) -> ProviderResponse:
    return ProviderResponse(text=text, thread_id=thread_id)


THREE_TURNS = {"turns": [{"user": "one"}, {"user": "two"}, {"user": "three"}], "evaluators": [contains("Done")]}


class TestThreads:
    def test_new_messages_and_the_thread_are_in_each_request(self) -> None:
        provider, requests = recorder(lambda request, _: ok(thread_id="t-1"), "thread")
        assert run_case(THREE_TURNS, provider).status == "pass"
        assert [[message.text for message in request.new_messages] for request in requests] == [
            ["one"],
            ["two"],
            ["three"],
        ]
        assert [request.thread_id for request in requests] == [None, "t-1", "t-1"]
        assert [request.turn for request in requests] == [1, 2, 3]
        assert len({request.conversation_id for request in requests}) == 1
        assert len(requests[2].input_messages) == 5

    def test_a_target_that_reports_no_thread_is_a_protocol_error(self) -> None:
        provider, requests = recorder(lambda request, _: ok(), "thread")
        record = run_case(THREE_TURNS, provider)
        assert (record.status, record.error.kind, record.fault, len(requests)) == ("error", "protocol", "agent", 1)
        assert record.error.message.startswith("turn 2: the target reported no thread id in turn 1")

    def test_a_failed_turn_is_sent_again_if_each_turn_holds_the_whole_conversation(self) -> None:
        def answer(request: Request, number: int) -> ProviderResponse:
            return failure("transport", "HTTP 503", retryable=True) if number == 2 else ok()

        provider, requests = recorder(answer)
        record = run_case(THREE_TURNS, provider)
        assert [request.turn for request in requests] == [1, 2, 2, 3]
        assert (record.status, record.attempts, [turn.attempts for turn in record.turns]) == ("pass", 1, [1, 2, 1])

    def test_a_conversation_starts_again_on_a_new_thread_if_its_thread_may_have_changed(self) -> None:
        def answer(request: Request, number: int) -> ProviderResponse:
            return failure("transport", "HTTP 503", retryable=True) if number == 2 else ok(thread_id=f"t-{number}")

        provider, requests = recorder(answer, "thread")
        record = run_case(THREE_TURNS, provider)
        assert [(request.turn, request.thread_id) for request in requests] == [
            (1, None),
            (2, "t-1"),
            (1, None),
            (2, "t-3"),
            (3, "t-4"),
        ]
        assert requests[0].conversation_id != requests[2].conversation_id
        assert (record.status, record.attempts) == ("pass", 2)
        assert "attempt 1 failed (transport): turn 2: HTTP 503; it was tried again" in record.warnings

    @pytest.mark.parametrize(
        ("threads", "settings", "warned"),
        [
            (["a", "b", "c"], {}, "turns 2, 3"),
            (["a", "a", "c"], {}, "turn 3"),
            (["a", None, "a"], {}, None),
            (["a", "b", "c"], {"threads_change": True}, None),
        ],
    )
    def test_a_target_that_loses_its_thread_is_named(self, threads: list[Any], settings: Any, warned: Any) -> None:
        provider, _ = recorder(lambda request, _: ok(thread_id=threads[request.turn - 1]), "thread")
        provider.__dict__.update(settings)
        record = run_case(THREE_TURNS, provider)
        assert record.warnings == (() if warned is None else (f"{warned}: {LOST_THREAD}",))

    def test_a_request_that_was_refused_is_sent_again_on_its_thread(self) -> None:
        def answer(request: Request, number: int) -> ProviderResponse:
            if number == 2:
                return failure("transport", "429", retryable=True, code="rate_limited", retry_after_s=0.01)
            return ok(thread_id="t-1")

        provider, requests = recorder(answer, "thread")
        assert run_case(THREE_TURNS, provider).status == "pass"
        assert [(request.turn, request.thread_id) for request in requests] == [
            (1, None),
            (2, "t-1"),
            (2, "t-1"),
            (3, "t-1"),
        ]

    def test_an_agent_that_never_answers_ends_the_conversation_with_its_turns(self) -> None:
        class Silent(Recorder):
            async def invoke(self, request: Request) -> ProviderResponse:
                if request.turn == 2:
                    await asyncio.sleep(60)
                return ok()

        record = run_case(THREE_TURNS, Silent(timeout_s=0.05))
        assert (record.status, record.error.kind, record.fault) == ("error", "timeout", "agent")
        assert (record.error.message, len(record.turns)) == ("turn 2: no reply within 0.05 s", 2)

    def test_the_time_limit_of_a_run_covers_all_turns_and_keeps_those_that_were_answered(self) -> None:
        class Slow(Recorder):
            async def invoke(self, request: Request) -> ProviderResponse:
                await asyncio.sleep(0.2 if request.turn == 3 else 0)
                return ok()

        record = run_case(THREE_TURNS, Slow(), run_timeout_s=0.1)
        assert (record.status, record.error.kind, len(record.turns)) == ("error", "timeout", 2)

    def test_a_conversation_that_is_cut_in_its_first_turn_is_one_all_the_same(self) -> None:
        async def silent(messages: list[Any]) -> str:
            await asyncio.sleep(60)
            return "Done."

        record = run_case(THREE_TURNS, silent, run_timeout_s=0.05)
        assert (record.error.kind, record.ended_by, record.fault) == ("timeout", "error", "agent")

    def test_no_conversation_begins_after_the_limit_of_cost(self) -> None:
        provider, requests = recorder(
            lambda request, _: ProviderResponse(text="Done.", cost_usd=0.1), max_concurrency=1
        )
        records = run_cases([{"id": name, **THREE_TURNS} for name in "abc"], provider, max_cost=0.35)
        assert [(record.case_id, len(record.turns)) for record in records] == [("a", 3), ("b", 3)]
        assert {request.id for request in requests} == {"a", "b"}

    def test_a_conversation_holds_one_slot_and_no_more_are_in_flight_than_allowed(self) -> None:
        active: set[str] = set()
        most: list[int] = []

        class Counting(Recorder):
            async def invoke(self, request: Request) -> ProviderResponse:
                active.add(request.conversation_id)
                most.append(len(active))
                await asyncio.sleep(0.001)
                if request.turn == 3:
                    active.discard(request.conversation_id)
                return ok()

        cases = [{"id": str(number), **THREE_TURNS} for number in range(12)]
        records = run_cases(cases, Counting(max_concurrency=3), max_concurrency=10)
        assert [record.status for record in records] == ["pass"] * 12
        assert max(most) == 3

    def test_a_slot_is_given_back_after_an_error(self) -> None:
        def answer(request: Request, number: int) -> ProviderResponse:
            return failure("agent", "no") if request.id == "0" else ok()

        provider, _ = recorder(answer, max_concurrency=1)
        cases = [{"id": str(number), **THREE_TURNS} for number in range(3)]
        assert [record.status for record in run_cases(cases, provider)] == ["error", "pass", "pass"]


class TestPersonas:
    PERSONAS = [{"id": "impatient", "vars": {"tone": "now"}, "headers": {"x-user": "${AGENTV_TEST_USER}"}}]

    def test_a_list_of_personas_is_a_matrix(self) -> None:
        provider, requests = recorder(lambda request, _: ok())
        case = {"id": "a", "persona": ["impatient", "default"], "vars": {}, **THREE_TURNS}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("AGENTV_TEST_USER", "u-1")
            records = run_cases([case], provider, personas=self.PERSONAS)
        assert [record.persona_id if isinstance(record.persona_id, str) else None for record in records] == [
            "impatient",
            None,
        ]
        headers = {request.persona_id: request.headers for request in requests}
        assert headers == {"impatient": {"x-user": "u-1"}, None: {}}
        assert len({record.run_id for record in records}) == 2

    def test_variables_of_a_persona_stand_below_those_of_the_case(self) -> None:
        provider, requests = recorder(lambda request, _: ok())
        personas = [{"id": "p", "vars": {"a": "persona", "b": "persona"}}]
        case = {
            "persona": "p",
            "vars": {"b": "case"},
            "input": "{{ a }} {{ b }} {{ c }}",
            "evaluators": [contains("D")],
        }
        run_case(case, provider, personas=personas, defaults={"vars": {"a": "defaults", "c": "defaults"}})
        assert requests[0].prompt == "persona case defaults"

    def test_a_variable_that_is_not_set_is_an_error_before_anything_runs(self) -> None:
        provider, requests = recorder(lambda request, _: ok())
        with pytest.raises(
            agentv.SpecError, match="persona 'impatient' needs the environment variables AGENTV_TEST_USER"
        ):
            run_case({"persona": "impatient", **THREE_TURNS}, provider, personas=self.PERSONAS)
        assert requests == []

    @pytest.mark.parametrize(
        ("glob", "personas"), [("imp*", ["impatient"]), ("default", [None]), ("*", [None, "impatient"])]
    )
    def test_personas_are_selected_by_a_glob(self, glob: str, personas: list[Any]) -> None:
        case = {"id": "a", "persona": ["default", "impatient"], **THREE_TURNS}
        chosen = [{"id": "impatient"}]
        eval_ = {"cases": [case], "personas": chosen}
        records = agentv.evaluate(eval_, target=lambda prompt: "Done.", personas=glob).results
        assert [record.persona_id or None for record in records] == personas


def test_an_error_keeps_its_turns_and_names_the_turn() -> None:
    def answer(request: Request, number: int) -> ProviderResponse:
        return failure("agent", "it broke") if request.turn == 2 else ok("First.")

    provider, _ = recorder(answer)
    record = run_case(THREE_TURNS, provider, include_messages=True)
    assert record.error == ResponseError(kind="agent", message="turn 2: it broke")
    assert (record.ended_by, [message.text for message in record.messages]) == ("error", ["one", "First.", "two"])
