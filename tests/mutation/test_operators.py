"""Changes of replies that an eval should notice."""

from typing import Any

import pytest
from hypothesis import given, settings
from msgspec import UNSET
from msgspec.structs import replace

import agentv
from agentv.formats.reader import read_any
from agentv.model.conversation import ToolCall
from agentv.model.mutation import OPERATORS, Mutant
from agentv.model.response import ProviderResponse
from agentv.mutation.edits import changed_value
from agentv.mutation.operators import MAX_MUTANTS, make_mutants
from agentv.scoring.calls import resolve_calls
from agentv.scoring.turns import Exchange, combine_turns, split_turns
from tests.support import strategies
from tests.support.examples import examples

REPLY = {
    "text": "I have refunded order A-17.",
    "output_messages": [
        {"role": "assistant", "tool_calls": [{"tool": "get_order", "input": {"id": "A-17"}, "output": {"amount": 30}}]},
        {"role": "assistant", "content": "I have refunded order A-17.", "tool_calls": [
            {"tool": "refund", "input": {"id": "A-17", "amount": 30}, "output": "done", "id": "c2"}]},
    ],
    "tokens_usage": {"input_tokens": 10, "output_tokens": 5},
    "cost_usd": 0.5,
    "latency_ms": 100,
}  # fmt: skip
TRACE = {
    "text": "done",
    "trace": [
        {"type": "tool_call", "name": "a", "input": {"x": 1}, "id": "1"},
        {"type": "model_step", "text": "hm"},
        {"type": "tool_result", "id": "1", "output": "r"},
        {"type": "tool_call", "name": "b", "input": {"y": 2}, "output": 3},
    ],
}


def read(reply: Any) -> ProviderResponse:
    return agentv.decode_response(reply)


def mutants(reply: Any, operator: str) -> list[Mutant]:
    return [mutant for mutant in make_mutants(read(reply)).made if mutant.operator == operator]


def calls_of(response: ProviderResponse) -> tuple[ToolCall, ...]:
    return resolve_calls(response).calls or ()


def tools_of(mutant: Mutant) -> list[str]:
    return [call.tool for call in calls_of(mutant.response)]


@pytest.mark.parametrize(
    ("operator", "sentences"),
    [
        ("drop_call", ["get_order not called", "refund not called"]),
        ("duplicate_call", ["get_order called twice", "refund called twice"]),
        ("swap_calls", ["refund called before get_order"]),
        ("rename_call", ["other_tool called instead of get_order", "other_tool called instead of refund"]),
        (
            "change_argument",
            [
                'get_order called with id="changed" instead of "A-17"',
                'refund called with id="changed" instead of "A-17"',
                "refund called with amount=-31 instead of 30",
            ],
        ),
        ("drop_argument", ["get_order called without id", "refund called without id", "refund called without amount"]),
        ("add_argument", ["get_order called with a further argument", "refund called with a further argument"]),
        ("fail_call", ["get_order failed", "refund failed"]),
        ("deny_call", ["get_order was denied", "refund was denied"]),
        ("blank_output", ["get_order returned nothing", "refund returned nothing"]),
        ("change_output", ["get_order returned something else", "refund returned something else"]),
        ("insert_foreign_call", ["unrelated_tool called as well"]),
        ("insert_destructive_call", ["delete_everything called as well"]),
        ("cut_answer", ["the second half of the answer is missing"]),
        ("negate_answer", ['the answer is "I could not do that."']),
        ("double_tokens", ["twice as many tokens used"]),
        ("double_latency", ["twice the latency"]),
    ],
)
def test_each_operator_changes_one_thing_and_says_so(operator: str, sentences: list[str]) -> None:
    assert [mutant.sentence for mutant in mutants(REPLY, operator)] == sentences


def test_every_operator_is_tried() -> None:
    assert {mutant.operator for mutant in make_mutants(read(REPLY)).made} == set(OPERATORS) - {"drop_turn"}
    whole = combine_turns([Exchange((), read(REPLY)), Exchange((), read(REPLY))])
    assert {mutant.operator for mutant in make_mutants(whole).made} == set(OPERATORS)


@pytest.mark.parametrize("reply", [REPLY, TRACE], ids=["messages", "trace"])
def test_calls_are_changed_where_they_are_told(reply: Any) -> None:
    first, second = (call.tool for call in calls_of(read(reply)))
    assert tools_of(mutants(reply, "drop_call")[0]) == [second]
    assert tools_of(mutants(reply, "drop_call")[1]) == [first]
    assert tools_of(mutants(reply, "duplicate_call")[0]) == [first, first, second]
    assert tools_of(mutants(reply, "swap_calls")[0]) == [second, first]
    assert tools_of(mutants(reply, "insert_foreign_call")[0]) == [first, second, "unrelated_tool"]
    assert [calls_of(each.response)[each.call or 0].status for each in mutants(reply, "fail_call")] == [
        "error",
        "error",
    ]
    for mutant in make_mutants(read(reply)).made:
        untouched = [call for index, call in enumerate(calls_of(read(reply))) if index != mutant.call]
        if mutant.operator not in ("swap_calls", "duplicate_call"):
            found = calls_of(mutant.response)
            assert all(any((call.tool, call.input) == (each.tool, each.input) for each in found) for call in untouched)


def test_results_of_a_trace_stay_with_their_calls() -> None:
    (changed,) = mutants(TRACE, "swap_calls")
    assert [(call.tool, call.output) for call in calls_of(changed.response)] == [("b", 3), ("a", "r")]


def test_the_answer_is_changed_in_the_last_message_too() -> None:
    (changed,) = mutants(REPLY, "negate_answer")
    assert changed.response.text == "I could not do that."
    assert changed.response.output_messages is not None
    assert changed.response.output_messages[-1].text == "I could not do that."


def test_tokens_and_cost_are_doubled() -> None:
    (changed,) = mutants(REPLY, "double_tokens")
    usage = changed.response.tokens_usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (20, 10, 30)
    assert changed.response.cost_usd == 1.0


def test_a_failed_call_has_an_error_and_a_denied_one_no_output() -> None:
    failed = calls_of(mutants(REPLY, "fail_call")[1].response)[1]
    assert (failed.status, failed.error, failed.output) == ("error", "simulated failure", "simulated failure")
    denied = calls_of(mutants(REPLY, "deny_call")[1].response)[1]
    assert (denied.status, denied.output) == ("denied", UNSET)


def test_a_reply_that_tells_nothing_of_its_calls_has_only_another_answer() -> None:
    found = {mutant.operator for mutant in make_mutants(read({"text": "It is done."})).made}
    assert found == {"cut_answer", "negate_answer"}


def test_of_equal_calls_in_a_row_only_one_is_dropped_or_made_once_more() -> None:
    calls = [{"tool": "s", "input": {"q": 1}, "id": str(index)} for index in range(3)]
    calls.append({"tool": "s", "input": {"q": 2}})
    reply = agentv.decode_response({"output_messages": [{"role": "assistant", "tool_calls": calls}]})
    made = make_mutants(reply).made
    changed = [(each.operator, each.call) for each in made if each.operator in {"drop_call", "duplicate_call"}]
    assert changed == [("drop_call", 0), ("drop_call", 3), ("duplicate_call", 0), ("duplicate_call", 3)]


def test_a_call_without_a_name_is_not_changed() -> None:
    calls = [{"tool": "search", "input": {"q": 1}}, {"input": {"q": 2}}]
    response = read_any({"text": "Done.", "output_messages": [{"role": "assistant", "tool_calls": calls}]}, None)
    made = make_mutants(response).made
    assert {each.call for each in made} == {0, None}
    assert not [each for each in made if each.operator == "swap_calls"]


def test_equal_calls_are_not_swapped() -> None:
    twice = [
        {"role": "assistant", "tool_calls": [{"tool": "a", "input": {"x": 1}}, {"tool": "a", "input": {"x": 1.0}}]}
    ]
    assert mutants({"output_messages": twice}, "swap_calls") == []


def test_a_long_run_has_a_limited_number_of_mutants_from_all_of_its_parts() -> None:
    calls = [{"tool": f"t{index}", "input": {"a": 1, "b": 2}} for index in range(400)]
    made = make_mutants(read({"output_messages": [{"role": "assistant", "tool_calls": calls}]}))
    assert len(made.made) <= MAX_MUTANTS * 1.2
    assert made.left_out > 3_000
    assert max(mutant.call or 0 for mutant in made.made) > 350


@settings(max_examples=examples(300))
@given(strategies.conversations, strategies.words)
def test_no_mutant_is_the_reply_itself(messages: tuple[agentv.Message, ...], text: str) -> None:
    response = ProviderResponse(output_messages=messages, text=text)
    for mutant in make_mutants(response).made:
        assert mutant.response != response, mutant.operator


@pytest.mark.parametrize("value", [-0.5, float("nan"), 0, -1, 1e300, float("inf"), True, "changed", [], {}])
def test_a_changed_argument_has_another_value(value: object) -> None:
    other = changed_value(value)
    assert other != value
    assert other == other  # noqa: PLR0124 - no number that differs from itself


def test_no_call_is_renamed_to_its_own_name() -> None:
    reply = {"output_messages": [{"role": "assistant", "tool_calls": [{"tool": "other_tool"}]}]}
    assert mutants(reply, "rename_call") == []


class TestConversations:
    first = replace(
        read({"output_messages": [{"role": "assistant", "tool_calls": [{"tool": "look"}], "content": "Which order?"}]}),
        latency_ms=5,
    )
    second = read(REPLY)
    user = (agentv.Message(role="user", content="hello"),)
    whole = combine_turns([Exchange(user, first), Exchange(user, second)])

    def test_each_turn_is_changed_and_the_others_stay(self) -> None:
        made = [each for each in make_mutants(self.whole).made if each.operator == "cut_answer"]
        assert [each.sentence for each in made] == [
            "turn 1: the second half of the answer is missing",
            "turn 2: the second half of the answer is missing",
        ]
        answers = [[turn.response.text for turn in split_turns(each.response)] for each in made]
        assert answers == [["Which", self.second.text], [self.first.text, "I have refund"]]

    def test_calls_are_numbered_over_all_turns(self) -> None:
        made = [each for each in make_mutants(self.whole).made if each.operator == "drop_call"]
        assert [(each.call, each.tool) for each in made] == [(0, "look"), (1, "get_order"), (2, "refund")]
        assert [tools_of(each) for each in made] == [["get_order", "refund"], ["look", "refund"], ["look", "get_order"]]

    def test_the_latency_is_that_of_the_whole_conversation(self) -> None:
        (made,) = [each for each in make_mutants(self.whole).made if each.operator == "double_latency"]
        assert (self.whole.latency_ms, made.response.latency_ms) == (105, 210)

    def test_an_evaluator_of_a_turn_notices_a_change_of_its_answer(self) -> None:
        turns = [turn.response.text for turn in split_turns(self.whole)]
        for mutant in make_mutants(self.whole).made:
            changed = [turn.response.text for turn in split_turns(mutant.response)]
            assert (changed != turns) == (mutant.operator in ("cut_answer", "negate_answer", "drop_turn"))

    def test_each_turn_is_left_out_if_there_are_several(self) -> None:
        made = [each for each in make_mutants(self.whole).made if each.operator == "drop_turn"]
        assert [each.sentence for each in made] == ["turn 1 left out", "turn 2 left out"]
        assert [[turn.index for turn in each.response.turns] for each in made] == [[1], [1]]
        assert [tools_of(each) for each in made] == [["get_order", "refund"], ["look"]]
        single = combine_turns([Exchange(self.user, self.second)])
        assert "drop_turn" not in {each.operator for each in make_mutants(single).made}
