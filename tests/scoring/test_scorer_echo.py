"""A reply whose messages may begin with an echo of the request: two readings, and one verdict only if both agree."""

import asyncio
from typing import Any, Literal

import pytest
from msgspec.structs import replace

import agentv
from agentv.evaluators.base import EvaluatorBase
from agentv.formats.reader import decode_response
from agentv.model.request import Case
from agentv.model.response import Unread
from agentv.scoring.scorer import CaseScorer
from agentv.spec.evaluators import check_evaluators

MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello", "tool_calls": [{"tool": "greet"}]},
    {"role": "assistant", "content": "How are you?"},
    {"role": "user", "content": "Delete it"},
    {"role": "assistant", "tool_calls": [{"tool": "lookup"}]},
    {"role": "assistant", "content": "Done"},
]
REMEDY = "send only new messages, or the request's messages unchanged at the start"


def echoed(messages: list[dict[str, Any]] | None = None, echo_end: int = 4, **more: Any) -> agentv.ProviderResponse:
    return replace(decode_response({"output_messages": messages or MESSAGES}), echo_end=echo_end, **more)


def run(response: agentv.ProviderResponse, **config: Any) -> agentv.EvaluatorResult:
    config.setdefault("type", "tool_trajectory")
    checks = [config, {"type": "contains", "any": ["Done"]}]
    result = agentv.score(response, checks).evaluators[0]
    assert asyncio.run(agentv.ascore(response, checks)).evaluators[0] == result
    return result


def test_a_verdict_that_depends_on_the_reading_is_an_error_that_names_both() -> None:
    result = run(echoed(), forbidden=["greet"])
    assert (result.status, result.score, result.hits, result.misses) == ("error", None, (), ())
    both = "fail for all 6 messages, pass for the 2 after the last user message"
    assert result.details["error"] == f"the verdict depends on which part of the reply is new: {both}; {REMEDY}"


@pytest.mark.parametrize(
    ("config", "status"),
    [
        ({"forbidden": ["delete"]}, "pass"),
        ({"forbidden": ["lookup"]}, "fail"),
        ({"minimums": {"lookup": 1}}, "pass"),
        ({"minimums": {"greet": 1}}, "error"),
        ({"mode": "exact", "expected": [{"tool": "lookup"}]}, "error"),
        ({"mode": "in_order", "expected": [{"tool": "lookup"}]}, "pass"),
        ({"type": "tool_call_count", "max": 1}, "error"),
        ({"type": "turn_budget", "max": 2}, "error"),
        ({"type": "contains", "any": ["Done"]}, "pass"),
        ({"type": "contains", "on": "messages[0].role", "any": ["user"]}, "error"),
        ({"type": "all_of", "evaluators": [{"type": "tool_trajectory", "forbidden": ["greet"]}]}, "error"),
        ({"forbidden": ["greet"], "not": True}, "error"),
        ({"forbidden": ["greet"], "skip": True}, "skipped"),
    ],
)
def test_readings(config: dict[str, Any], status: str) -> None:
    assert run(echoed(), **config).status == status


def test_where_both_agree_the_whole_reply_is_told_with_the_lower_score() -> None:
    config = {"minimums": {"lookup": 1, "greet": 1, "pay": 1}, "threshold": 0.2}
    result = run(echoed(), **config)
    assert result.status == "pass"
    assert result.score == pytest.approx(1 / 3)
    assert "greet called 1 time (minimum: 1)" in result.hits


def test_a_metric_whose_value_depends_on_the_reading_is_an_error() -> None:
    result = run(echoed(), type="tool_call_count")
    both = "2 for all 6 messages, 1 for the 2 after the last user message"
    assert result.details["error"] == f"the value depends on which part of the reply is new: {both}; {REMEDY}"
    assert run(echoed(), type="tool_call_count", tool="lookup").details["value"] == 1


def test_the_summary_is_that_of_the_whole_reply() -> None:
    result = agentv.score(echoed(), [{"type": "tool_trajectory", "forbidden": ["x"]}])
    assert result.trace_summary is not None
    assert result.trace_summary.tool_calls_by_name == {"greet": 1, "lookup": 1}


def test_without_doubt_there_is_one_reading() -> None:
    response = decode_response({"output_messages": MESSAGES})
    assert run(response, forbidden=["greet"]).status == "fail"
    assert run(replace(response, echo_end=0), forbidden=["greet"]).status == "fail"
    assert (
        agentv.score(
            replace(decode_response({"text": "Done"}), echo_end=3), [{"type": "contains", "any": ["Done"]}]
        ).status
        == "pass"
    )


def test_nothing_after_the_last_user_message() -> None:
    result = run(echoed(echo_end=6), forbidden=["x"])
    assert "pass for all 6 messages, fail for the 0 after" in result.details["error"]


def test_what_one_reading_leaves_undecided_is_named() -> None:
    place = Unread(path="output_messages[5].content[0]", reason="not understood")
    result = run(echoed(unread=(place,)), minimums={"greet": 1})
    assert "pass for all 6 messages, error for the 2 after" in result.details["error"]
    assert result.details["undecided"] == ["greet (minimum: 1): output_messages[5].content[0]: not understood"]


def test_a_place_in_the_echo_is_none_of_the_new_messages() -> None:
    place = Unread(path="output_messages[1].content[0]", reason="not understood")
    result = run(echoed(unread=(place,)), forbidden=["lookup"])
    assert result.status == "fail"
    assert "error for all 6 messages, pass for the 2" in run(echoed(unread=(place,)), forbidden=["x"]).details["error"]


class Later(EvaluatorBase, kw_only=True):
    """Passes for as many messages as it should, after a while."""

    type: Literal["later"] = "later"
    messages: int

    async def evaluate(self, ctx: agentv.Context) -> agentv.EvaluatorResult:
        await asyncio.sleep(0)
        passes = len(ctx.output_messages or ()) == self.messages
        return self.result("pass" if passes else "fail", float(passes))


@pytest.mark.parametrize(("messages", "status"), [(6, "error"), (2, "error"), (3, "fail")])
def test_asynchronous_evaluators(messages: int, status: str) -> None:
    check = Later(messages=messages)
    assert agentv.score(echoed(), [check]).evaluators[0].status == status
    assert asyncio.run(agentv.ascore(echoed(), [check])).evaluators[0].status == status
    negated = Later(messages=messages, negate=True)
    assert agentv.score(echoed(), [negated]).evaluators[0].status == ("pass" if status == "fail" else "error")


def test_runs_of_an_eval_are_read_twice_too() -> None:
    checks = check_evaluators([{"type": "tool_trajectory", "forbidden": ["greet"]}])
    scorer = CaseScorer(checks, Case(), follow=lambda response: response)
    assert asyncio.run(scorer.evaluate(echoed())).status == "error"


def test_the_short_way_leaves_it_to_the_longer_one() -> None:
    config = {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "greet"}, {"tool": "lookup"}]}
    assert agentv.score(echoed(), [config]).status == "error"
    assert agentv.Scorer([config]).score(echoed()).status == "error"
