"""`all_of`, `any_of`, `at_least`: what they make of what is in them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.evaluators.base import EvaluatorBase
from agentv.evaluators.composite import AllOf, AnyOf, AtLeast
from agentv.model.results import EvaluatorResult
from agentv.protocols import Context
from agentv.spec.loader import load_evals

REPLY: list[Any] = [{"role": "assistant", "tool_calls": [{"tool": "a"}], "content": "done"}]
KINDS: dict[str, Any] = {"all_of": AllOf, "any_of": AnyOf, "at_least": AtLeast}


class Gives(EvaluatorBase, frozen=True, kw_only=True, dict=True):
    """A check that finds what it is told to; nothing is an error."""

    type: str = "gives"
    value: float | None = None
    later: bool = False

    def evaluate(self, ctx: Context) -> Any:
        del ctx
        return self._later() if self.later else self._found()

    def _found(self) -> EvaluatorResult:
        if self.value is None:
            return self.result("error", None, details={"error": "no number was reported"})
        return self.result("pass" if self.value >= self.threshold else "fail", self.value)

    async def _later(self) -> EvaluatorResult:
        await asyncio.sleep(0)
        return self._found()


def gives(*values: float | None, **more: Any) -> list[Gives]:
    return [Gives(value=value, **more) for value in values]


def of(kind: str, evaluators: list[Any], **more: Any) -> EvaluatorResult:
    (result,) = agentv.score(REPLY, [KINDS[kind](evaluators=evaluators, **more)]).evaluators
    return result


def called(tool: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_trajectory", "name": tool, "minimums": {tool: 1}, **more}


@pytest.mark.parametrize(
    ("kind", "more", "values", "outcome"),
    [
        ("all_of", {}, (1, 1), ("pass", 1.0)),
        ("all_of", {}, (1, 0.5), ("fail", 0.75)),
        ("all_of", {"threshold": 0.7}, (1, 0.5), ("pass", 0.75)),
        ("all_of", {"threshold": 0.8}, (1, 0.5), ("fail", 0.75)),
        ("all_of", {}, (1, None), ("error", 1.0)),
        ("all_of", {}, (None, None), ("error", None)),
        ("all_of", {}, (0, None), ("fail", 0.0)),  # whatever the other would say
        ("all_of", {"threshold": 0.5}, (0, None), ("error", 0.0)),
        ("all_of", {"threshold": 0.6}, (0, None), ("fail", 0.0)),
        ("any_of", {}, (0, 1), ("pass", 1.0)),
        ("any_of", {}, (0, 0.5), ("fail", 0.5)),
        ("any_of", {"threshold": 0.5}, (0, 0.5), ("pass", 0.5)),
        ("any_of", {}, (1, None), ("pass", 1.0)),  # whatever became of the other
        ("any_of", {}, (0, None), ("error", 0.0)),
        ("any_of", {}, (None,), ("error", None)),
        ("at_least", {"n": 2}, (1, 0, 1), ("pass", 1.0)),
        ("at_least", {"n": 2}, (1, 0, 0.5), ("fail", 0.75)),
        ("at_least", {"n": 2}, (1, 1, None), ("pass", 1.0)),
        ("at_least", {"n": 2}, (1, 0, None), ("error", 0.5)),
        ("at_least", {"n": 2}, (1, None), ("error", 1.0)),
        ("at_least", {"n": 3}, (1, 0, None), ("fail", 1 / 3)),
        ("at_least", {"n": 2, "threshold": 0.75}, (1, 0, 0.5), ("pass", 0.75)),
    ],
)
@pytest.mark.parametrize("later", [False, True])
def test_the_rule(
    kind: str, more: dict[str, Any], values: tuple[float | None, ...], outcome: tuple[str, float | None], later: bool
) -> None:
    status, score = outcome
    result = of(kind, gives(*values, later=later), **more)
    assert result.status == status
    assert result.score == (None if score is None else pytest.approx(score))


@pytest.mark.parametrize("kind", ["all_of", "any_of"])
@pytest.mark.parametrize("values", [(1, 1), (1, 0), (0, 0), (1, 0.5)])
def test_turned_round_it_is_the_opposite(kind: str, values: tuple[float, ...]) -> None:
    plain, turned = of(kind, gives(*values)), of(kind, gives(*values), negate=True)
    assert {plain.status, turned.status} == {"pass", "fail"}
    assert turned.score == (1.0 if turned.status == "pass" else 0.0)


def test_what_cannot_be_decided_stays_so_when_turned_round() -> None:
    assert of("all_of", gives(1, None), negate=True).status == "error"
    assert of("all_of", gives(0, None), negate=True).status == "pass"
    assert of("any_of", gives(1, None), negate=True).status == "fail"


def test_inner_weights_count_in_the_mean() -> None:
    result = of("all_of", [Gives(value=1, weight=3), Gives(value=0, weight=1)], threshold=0.75)
    assert (result.status, result.score) == ("pass", 0.75)


def test_an_inner_threshold_decides_whether_it_passed() -> None:
    result = of("all_of", [Gives(value=0.7, threshold=0.5), Gives(value=1)])
    assert (result.status, result.score) == ("pass", 0.85)


def test_a_required_one_must_pass_whatever_the_mean() -> None:
    result = of("all_of", [Gives(value=0, required=True), Gives(value=1)], threshold=0.5)
    assert (result.status, result.score) == ("fail", 0.5)


@pytest.mark.parametrize("idle", [{"kind": "metric"}, {"skip": True}, {"weight": 0}])
def test_what_does_not_gate_does_not_count(idle: dict[str, Any]) -> None:
    result = of("all_of", [called("a"), called("b", **idle)])
    assert (result.status, result.score) == ("pass", 1.0)
    assert [inner["name"] for inner in result.details["inner"]] == ["a", "b"]
    assert result.hits == ("a: a called 1 time (minimum: 1)",)


def test_not_works_inside() -> None:
    assert of("all_of", [called("a"), called("b", **{"not": True})]).status == "pass"


def test_they_nest_in_files_and_in_python() -> None:
    inner = {"type": "any-of", "evaluators": [called("b"), {"type": "all_of", "evaluators": [called("a")]}]}
    (result,) = agentv.score(REPLY, [{"type": "all_of", "evaluators": [inner, called("a")]}]).evaluators
    assert result.status == "pass"
    hit = "a: a called 1 time (minimum: 1)"
    assert result.hits == (f"any_of: all_of: {hit}", hit)
    assert agentv.score(REPLY, [AllOf(evaluators=[AnyOf(evaluators=gives(0, 1))])]).status == "pass"


def test_its_sentences_name_whoever_says_so() -> None:
    checks = [{"type": "tool_trajectory", "minimums": {"a": 1}}, {"type": "tool_trajectory", "minimums": {"b": 1}}]
    result = of("all_of", checks)
    assert result.hits == ("tool_trajectory[0]: a called 1 time (minimum: 1)",)
    assert result.misses == ("tool_trajectory[1]: b called 0 times (minimum: 1)",)
    assert of("any_of", checks).misses == ()  # it passed: nothing is amiss


def test_what_could_not_be_decided_is_named() -> None:
    result = of("all_of", gives(1, None))
    assert result.details["undecided"] == ["gives[1]: no number was reported"]


def test_one_that_throws_is_one_that_could_not_be_decided() -> None:
    class Broken(Gives, frozen=True, kw_only=True, dict=True):
        def evaluate(self, ctx: Context) -> Any:
            del ctx
            raise ValueError(self.value)

    result = of("any_of", [Broken(value=3), Gives(value=1)])
    assert result.status == "pass"
    assert result.details["inner"][0]["details"] == {"error": "ValueError: 3"}


def test_the_diff_of_an_inner_trajectory_is_drawn() -> None:
    check = {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "b"}]}
    shown = agentv.explain(REPLY, [{"type": "all_of", "evaluators": [check, called("a")]}])
    assert "expected" in shown
    assert "0: a" in shown


def test_every_mistake_inside_has_its_place(tmp_path: Path) -> None:
    file = tmp_path / "a.eval.yaml"
    file.write_text("""
targets: [{name: t, provider: mock}]
cases:
  - id: a
    input: Hi
    evaluators:
      - type: all_of
        evaluators:
          - {type: tool_trajectory, minimum: {a: 1}}
          - type: at_least
            n: 0
            evaluators: [{type: tool_trajectry}, 3]
""")
    with pytest.raises(agentv.SpecError) as caught:
        load_evals([file])
    inner = "cases[0].evaluators[0].evaluators"
    found = {problem.path: problem for problem in caught.value.problems}
    assert {
        f"{inner}[0].minimum",
        f"{inner}[1].n",
        f"{inner}[1].evaluators[0].type",
        f"{inner}[1].evaluators[1]",
    } <= set(found)
    place = found[f"{inner}[0].minimum"].location
    assert place is not None
    assert (place.line, place.column) == (9, 37)
    assert "did you mean 'minimums'" in found[f"{inner}[0].minimum"].message


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"type": "all_of"}, "evaluators: required"),
        ({"type": "all_of", "evaluators": []}, "length >= 1"),
        ({"type": "all_of", "evaluators": [called("a", kind="metric")]}, "checks nothing"),
        ({"type": "at_least", "n": 2, "evaluators": [called("a")]}, "only 1 of the evaluators can pass, not 2"),
        (
            {"type": "at_least", "n": 2, "evaluators": [called("a"), called("b", skip=True)]},
            "only 1 of the evaluators can pass, not 2; metrics and those that say `skip` do not count",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(agentv.SpecError, match=message):
        agentv.score(REPLY, [config])


def test_warnings_come_out_with_their_place() -> None:
    check = {"type": "tool_trajectory", "minimums": {"a": 0}}
    result = agentv.score(REPLY, [{"type": "any_of", "evaluators": [check, called("a", required=True)]}])
    assert [warning.partition(": ")[0] for warning in result.warnings] == [
        "evaluators[0].evaluators[1].required",
        "evaluators[0].evaluators[0].minimums.a",
    ]


def test_a_golden_path_inside_is_not_run_a_second_time() -> None:
    golden = [{"role": "assistant", "tool_calls": [{"tool": "b"}]}]
    checks = [{"type": "any_of", "evaluators": [{"type": "expected_messages"}, called("a")]}]
    result = agentv.score(REPLY, checks, expected_messages=golden)
    assert [each.type for each in result.evaluators] == ["any_of"]
    assert result.status == "pass"
    with pytest.raises(agentv.SpecError, match="no assistant message has tool calls"):
        agentv.score(REPLY, checks)


def test_a_configuration_that_changes_later_changes_nothing() -> None:
    inner = called("a")
    config = {"type": "all_of", "evaluators": [inner]}
    for _ in range(3):  # from the second time on it is remembered
        scorer = agentv.Scorer([config])
    inner["minimums"] = {"b": 1}
    assert scorer.score(REPLY).status == "pass"
    assert agentv.score(REPLY, [config]).status == "fail"
