"""The library as people call it."""

import asyncio
import copy
import json
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest

import agentv
from agentv.evaluators.base import EvaluatorBase

A_THEN_B = [{"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "A"}, {"tool": "B"}]}]


def messages(*tools: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "tool_calls": [{"tool": tool} for tool in tools]}]


def openai_messages(*tools: str) -> list[dict[str, Any]]:
    calls = [
        {"id": str(n), "type": "function", "function": {"name": tool, "arguments": "{}"}}
        for n, tool in enumerate(tools)
    ]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "ok"} for call in calls]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


@pytest.mark.parametrize(
    "reply",
    [
        {"output_messages": messages("A", "B")},
        {"outputMessages": messages("A", "B")},
        {"messages": openai_messages("A", "B")},
        messages("A", "B"),
        openai_messages("A", "B"),
        {"trace": [{"type": "tool_call", "name": "A"}, {"type": "tool_call", "name": "B"}]},
        agentv.decode_response(messages("A", "B")),
    ],
)
def test_a_reply_is_read_in_any_supported_shape(reply: Any) -> None:
    result = agentv.score(reply, evaluators=A_THEN_B, expected_messages=None)
    assert (result.status, result.score) == ("pass", 1.0)
    assert (result.evaluators[0].status, result.evaluators[0].score) == ("pass", 1.0)


def test_the_caller_s_objects_are_never_written_to() -> None:
    reply: Any = {"output_messages": openai_messages("A", "B"), "extra": {"x": [1]}}
    config: Any = [{**A_THEN_B[0], "tools": {"A": {"ignore": ["x"], "defaults": {"y": 1}}}}]
    expected: Any = messages("A")
    before = copy.deepcopy((reply, config, expected))
    agentv.score(reply, config, expected_messages=expected)
    assert (reply, config, expected) == before


def test_a_result_is_not_tied_to_a_configuration_that_changes_later() -> None:
    config: dict[str, Any] = {"type": "tool_trajectory", "minimums": {"A": 1}}
    assert agentv.score(messages("A"), [config]).status == "pass"
    config["minimums"] = {"A": 2}
    assert agentv.score(messages("A"), [config]).status == "fail"


class Slow(EvaluatorBase, frozen=True, kw_only=True):
    """An evaluator that has to wait."""

    type: Literal["slow"] = "slow"

    async def evaluate(self, ctx: agentv.Context) -> agentv.EvaluatorResult:
        await asyncio.sleep(0)
        if ctx.candidate == "boom":
            msg = "no luck"
            raise RuntimeError(msg)
        return self.result("pass", 1.0)


def test_an_asynchronous_evaluator_works_from_synchronous_code() -> None:
    assert agentv.score({"text": "x"}, [Slow()]).status == "pass"


def test_score_works_inside_a_running_event_loop() -> None:
    async def notebook() -> agentv.RunResult:
        return agentv.score({"text": "x"}, [Slow(), *A_THEN_B])

    assert [found.status for found in asyncio.run(notebook()).evaluators] == ["pass", "fail"]
    assert threading.active_count() < 20


def test_ascore_awaits_what_has_to_be_awaited() -> None:
    result = asyncio.run(agentv.ascore(messages("A", "B"), [Slow(), *A_THEN_B]))
    assert (result.status, result.score) == ("pass", 1.0)


@pytest.mark.parametrize("call", [agentv.score, lambda *args: asyncio.run(agentv.ascore(*args))])
def test_an_evaluator_that_throws_is_an_error_and_stops_nobody(call: Any) -> None:
    reply = {"text": "boom", "output_messages": messages("A", "B")}
    result = call(reply, [Slow(), *A_THEN_B])
    assert (result.status, result.score) == ("error", None)
    assert result.evaluators[0].details == {"error": "RuntimeError: no luck"}
    assert result.evaluators[1].status == "pass"


def test_score_many_is_lazy_and_reports_a_wrong_configuration_at_once() -> None:
    asked: list[int] = []

    def replies() -> Iterator[Any]:
        for number in range(1_000_000):
            asked.append(number)
            yield messages("A", "B") if number % 2 else messages("B")

    results = agentv.score_many(replies(), A_THEN_B)
    assert asked == []
    assert [next(results).status, next(results).status] == ["fail", "pass"]
    assert asked == [0, 1]
    with pytest.raises(agentv.SpecError):
        agentv.score_many([], [{"type": "tool_trajectory"}])


def test_one_unreadable_reply_stops_nobody() -> None:
    mixed: Any = [messages("A", "B"), None, messages("A", "B")]
    results = list(agentv.score_many(mixed, A_THEN_B))
    assert [result.status for result in results] == ["pass", "error", "pass"]
    assert results[1].error is not None
    assert results[1].error.kind == "protocol"


def test_assert_trajectory_passes_in_silence_and_fails_with_the_aligned_diff() -> None:
    agentv.assert_trajectory(messages("A", "B"), expected=[{"tool": "A"}], mode="in_order")
    agentv.assert_trajectory(messages("A"), minimums={"A": 1})
    with pytest.raises(AssertionError) as caught:
        agentv.assert_trajectory(messages("A", "C"), expected=[{"tool": "A"}, {"tool": "B"}], mode="exact")
    text = str(caught.value)
    assert "FAIL" in text
    assert "missing call: B (expected after A)" in text
    assert "unexpected call 1: C" in text
    assert "\x1b" not in text
    trace = {"trace": [{"type": "tool_call", "name": "A"}]}
    with pytest.raises(AssertionError, match="has no turns"):
        agentv.assert_trajectory(trace, [[{"tool": "A"}]], "in_order", unit="turn")
    with pytest.raises(agentv.SpecError, match="expected a list"):
        agentv.assert_trajectory(messages("A"), 5, "exact")  # type: ignore[arg-type]
    with pytest.raises(agentv.SpecError, match="did you mean 'minimums'"):
        agentv.assert_trajectory(messages("A"), minimum={"A": 1})


def test_a_case_that_checks_nothing_is_an_authoring_error() -> None:
    for evaluators in (
        [],
        [{**A_THEN_B[0], "skip": True}],
        [{**A_THEN_B[0], "kind": "metric"}],
        [{**A_THEN_B[0], "weight": 0}],
    ):
        with pytest.raises(agentv.SpecError, match="checks nothing"):
            agentv.score(messages("A"), evaluators)


@pytest.mark.parametrize(
    ("evaluators", "words"),
    [
        ([{"type": "tool_trajektory"}], "did you mean 'tool_trajectory'"),
        ([{"type": "nothing like it"}], "expected one of all_of, any_of, at_least, code"),
        ([{"mode": "exact"}], "evaluators[0].type: required"),
        (["tool_trajectory"], "expected a mapping"),
        ({"type": "tool_trajectory"}, "expected a list"),
        ([{**A_THEN_B[0], "weight": -1}], "evaluators[0].weight"),
        ([{**A_THEN_B[0], "threshold": 2}], "evaluators[0].threshold"),
        ([{**A_THEN_B[0], "kind": "metrics"}], "Did you mean 'metric'"),
        (
            [A_THEN_B[0], {**A_THEN_B[0], "treshold": 1}],
            "evaluators[1].treshold: unknown key 'treshold'; did you mean 'threshold'?",
        ),
    ],
)
def test_a_wrong_configuration_names_the_place_the_choices_and_a_suggestion(evaluators: Any, words: str) -> None:
    with pytest.raises(agentv.SpecError) as caught:
        agentv.score(messages("A"), evaluators)
    assert words.lower() in str(caught.value).lower()


def test_an_evaluator_object_that_lacks_something_is_told_what() -> None:
    class Bare:
        def evaluate(self, ctx: agentv.Context) -> None:
            raise NotImplementedError

    with pytest.raises(agentv.SpecError, match="EvaluatorBase"):
        agentv.score(messages("A"), [Bare()])


def test_hyphen_and_underscore_are_the_same_in_a_type() -> None:
    assert agentv.score(messages("A", "B"), [{**A_THEN_B[0], "type": "tool-trajectory"}]).status == "pass"


@pytest.mark.parametrize("types", ["text", [""], ["tool-*"], ["a", "b?"], [1], {"text"}])
def test_plain_blocks_are_names_of_types(types: Any) -> None:
    with pytest.raises(agentv.SpecError, match="plain_blocks"):
        agentv.score(messages("A"), [{"type": "tool_call_count", "max": 1}], plain_blocks=types)


def test_input_messages_are_messages() -> None:
    check = [{"type": "tool_call_count", "max": 1}]
    with pytest.raises(agentv.SpecError, match="input_messages"):
        agentv.Scorer(check, input_messages=5)  # type: ignore[arg-type]
    with pytest.raises(agentv.SpecError, match="input_messages"):
        agentv.Scorer(check, input_messages=[{"role": "user", "contnet": "Hi"}])
    asked = [{"role": "user", "content": "Hi"}]
    assert agentv.score(messages("A"), check, input_messages=asked, plain_blocks=["chart"]).status == "pass"
    assert "PASS" in agentv.explain(messages("A"), check, input_messages=asked)
    (result,) = agentv.score_many([messages("A")], check, plain_blocks=("chart",))
    assert result.status == "pass"


def test_weights_thresholds_and_names() -> None:
    half = {"type": "tool_trajectory", "mode": "any_order", "expected": [{"tool": "A"}, {"tool": "B"}]}
    result = agentv.score(messages("A"), [{**half, "threshold": 0.5, "name": "soft", "weight": 3}, half])
    assert [found.status for found in result.evaluators] == ["pass", "fail"]
    assert (result.status, result.score, result.evaluators[0].name) == ("fail", 0.5, "soft")
    assert agentv.score(messages("A"), [half], threshold=0.5).status == "pass"
    assert agentv.score(messages("A"), [{**half, "required": True}], threshold=0.5).status == "fail"
    for wrong in (1.5, float("nan"), "x"):
        with pytest.raises(agentv.SpecError, match="threshold"):
            agentv.score(messages("A"), [half], threshold=wrong)  # type: ignore[arg-type]


def test_a_failure_without_a_reason_says_that_there_is_none() -> None:
    result = agentv.score({"success": False, "text": "Hm."}, [{"type": "contains", "any": ["Hm"]}])
    assert result.status == "error"
    assert result.error is not None
    assert "says that it failed, and not why" in result.error.message


def test_a_reply_that_is_an_error_could_not_be_measured() -> None:
    result = agentv.score({"success": False, "error": {"kind": "timeout", "message": "60 s"}}, A_THEN_B)
    assert (result.status, result.score, result.evaluators) == ("error", None, ())
    assert result.error is not None
    assert (result.error.kind, result.error.message) == ("timeout", "60 s")


@pytest.mark.parametrize("reply", [5, None, True])
def test_what_is_no_reply_at_all(reply: Any) -> None:
    with pytest.raises(agentv.FormatError):
        agentv.score(reply, A_THEN_B)


def test_every_evaluator_is_handed_its_configuration(context_of: Any) -> None:
    context = context_of({"text": "hi"}, expected_messages=messages("A"))
    assert context.candidate == "hi"
    assert context.expected_messages[0].tool_calls[0].tool == "A"
    assert context.case.expected_messages == context.expected_messages


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"x": value}
    return value


CYCLE: dict[str, Any] = {}
CYCLE["a"] = CYCLE


@pytest.mark.parametrize(
    "value",
    [
        nested(3000),
        CYCLE,
        10**5000,
        b"x",
        {1, 2},
        float("nan"),
        "\ud800",
        {"\ud800": 1},
        {1: 2},
        (1, 2),
        object(),
        [[]],
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_an_agent_sends_is_measured(value: Any) -> None:
    reply = [
        {"role": "assistant", "tool_calls": [{"tool": "A", "input": {"v": value}, "output": value}, {"tool": "B"}]}
    ]
    golden: Any = {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "A", "input": {"v": "y"}}]}
    result = agentv.score(reply, [golden, *A_THEN_B])
    assert [found.status for found in result.evaluators] == ["fail", "pass"]
    assert json.loads(json.dumps(result.evaluators[0].details, allow_nan=False))["missing"] == []
    assert "A" in agentv.explain(reply, [golden])


@pytest.mark.parametrize("value", [nested(3000), CYCLE], ids=["deep", "cyclic"])
def test_a_hostile_configuration_is_refused_and_not_a_traceback(value: Any) -> None:
    with pytest.raises(agentv.SpecError, match="nested deeper"):
        agentv.score(
            messages("A"), [{"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "A", "input": value}]}]
        )


def test_one_scorer_serves_many_threads() -> None:
    entries = [{"tool": "A", "input": {"n": n}, "input_match": "partial"} for n in range(60)]
    calls = [{"tool": "A", "input": {"n": n, "more": 1}} for n in range(60)] + [{"tool": "B"}]
    reply = [{"role": "assistant", "tool_calls": calls}]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            scorer = agentv.Scorer([{"type": "tool_trajectory", "mode": "in_order", "expected": entries}])
            with ThreadPoolExecutor(8) as threads:
                found = list(threads.map(lambda _, one=scorer: one.score(reply).score, range(16)))
            assert found == [1.0] * 16
    finally:
        sys.setswitchinterval(interval)


def test_the_same_configuration_always_gives_the_same_verdict() -> None:
    config: Any = [
        {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "A", "input": {"ids": (1, 2)}}]}
    ]
    for calls in ([{"tool": "A", "input": {"ids": [1, 2]}}], [{"tool": "A", "input": {"ids": (1, 2)}}, {"tool": "B"}]):
        reply = [{"role": "assistant", "tool_calls": calls}]
        assert {agentv.score(reply, config).status for _ in range(5)} == {"pass"}


def test_a_scorer_shares_nothing_with_a_configuration_that_changes_later() -> None:
    entry: Any = {"tool": "A", "input": {"x": {"$gt": 1}}}
    golden: Any = [{"role": "assistant", "tool_calls": [{"tool": "A", "input": {"x": 2}}]}]
    config = [{"type": "tool_trajectory", "mode": "exact", "expected": [entry]}]
    scorer = agentv.Scorer(config, expected_messages=golden)
    reply = copy.deepcopy(golden)
    entry["input"]["x"]["$gt"] = 5
    golden[0]["tool_calls"][0]["input"]["x"] = 9
    assert scorer.score(reply).status == "pass"


def test_many_threads_may_score_at_once() -> None:
    def work(number: int) -> list[str]:
        config = [{"type": "tool_trajectory", "minimums": {f"t{number % 3}": 1}}]
        return [agentv.score(messages(f"t{(number + n) % 3}"), config).status for n in range(300)]

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(work, range(8)))
    assert all(statuses == ["pass", "fail", "fail"] * 100 for statuses in found)


class TestTraceRef:
    """A trace that lies in a file of its own."""

    config: Any = [{"type": "tool_trajectory", "minimums": {"A": 1}}]

    def test_it_is_read_below_the_root_when_nothing_better_is_there(self, tmp_path: Path) -> None:
        (tmp_path / "trace.json").write_text('[{"type": "tool_call", "name": "A"}]')
        assert agentv.score({"trace_ref": "trace.json"}, self.config, root=str(tmp_path)).status == "pass"
        (tmp_path / "wrapped.json").write_text('{"trace": [{"type": "tool_call", "name": "A"}]}')
        assert agentv.score({"traceRef": "wrapped.json"}, self.config, root=str(tmp_path)).status == "pass"

    def test_it_is_not_needed_when_the_messages_tell(self, tmp_path: Path) -> None:
        result = agentv.score(
            {"output_messages": messages("A"), "trace_ref": "missing.json"}, self.config, root=str(tmp_path)
        )
        both, missing = result.warnings
        assert result.status == "pass"
        assert "both `output_messages` and `trace`" in both
        assert missing.startswith("trace_ref: 'missing.json' is not a file")

    def test_it_goes_before_messages_that_hold_no_call(self, tmp_path: Path) -> None:
        (tmp_path / "trace.json").write_text('[{"type": "tool_call", "name": "A"}]')
        for silent in ({"output_messages": [{"role": "assistant", "content": "hi"}]}, {"trace": [{"type": "message"}]}):
            reply = {**silent, "trace_ref": "trace.json"}
            assert agentv.score(reply, self.config, root=str(tmp_path)).status == "pass"

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        assert "not a file" in agentv.score({"trace_ref": "pipe"}, self.config, root=str(tmp_path)).warnings[1]

    def test_without_a_root_it_says_what_to_do(self) -> None:
        result = agentv.score({"trace_ref": "trace.json"}, self.config)
        assert (result.status, result.evaluators[0].misses) == ("error", ())
        assert "pass `root`" in result.warnings[1]

    @pytest.mark.parametrize(
        "name", ["../secret.json", "/etc/hostname", "link.json", "a\0b", "deep/../../secret.json", "."]
    )
    def test_it_never_leaves_the_root(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "secret.json").write_text('[{"type": "tool_call", "name": "A"}]')
        root = tmp_path / "root"
        root.mkdir()
        (root / "link.json").symlink_to(tmp_path / "secret.json")
        result = agentv.score({"trace_ref": name}, self.config, root=str(root))
        assert result.status == "error"
        assert result.warnings[1].startswith("trace_ref: ")
