"""One mistake is one error: nothing that only follows from it is reported."""

from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from agentv.errors import SpecError
from agentv.spec.loader import load_data, load_evals
from tests.support.documents import whole

CHECK = {"type": "contains", "value": "x"}


def case(**more: Any) -> dict[str, Any]:
    return {"id": "a", "input": "Hi", "evaluators": [CHECK], **more}


def problems(data: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_data(data)
    return [problem.sentence for problem in caught.value.problems]


ONE: list[tuple[dict[str, Any], str]] = [
    (
        whole(cases=[{"id": "a", "input": "x", "evaluators": [{"type": "contains", "valu": 1}]}]),
        "did you mean 'value'?",
    ),
    (whole(cases=[{"id": "a", "input": "x", "evaluators": [{"type": "containss"}]}]), "did you mean 'contains'?"),
    (whole(cases=[case(evaluators=[{"type": "tool_trajectory", "expcted": []}])]), "did you mean 'expected'?"),
    (
        whole(cases=[case(evaluators=[{"type": "tool_trajectory", "mode": "exact", "expected": [{"name": "s"}]}])]),
        "'tool'",
    ),
    (whole(cases=[{"id": "a", "inptu": "x", "evaluators": [CHECK]}]), "did you mean 'input'?"),
    (whole(cases=[{"id": "a", "input": "x", "expected": [{"role": "assistant", "tool_calls": ["s"]}]}]), 'got "s"'),
    (whole(targets=[{"nam": "t", "provider": "mock"}], target="t"), "did you mean 'name'?"),
    (whole(targets=[{"name": "t", "provider": "mok"}], target="t"), "did you mean 'mock'?"),
    (whole(targets=[{"name": "t", "provider": "cli", "cmd": ["a"]}]), "did you mean 'command'?"),
    ({"targets": [{"name": "t", "provider": "mock"}], "casess": [case()]}, "did you mean 'cases'?"),
    ({"targts": [{"name": "t", "provider": "mock"}], "cases": [case()]}, "did you mean 'targets'?"),
    (whole(evaluators=[CHECK], cases=[{"id": "a", "input": "x"}]), "belong below `defaults`"),
    (whole(defaults={"evaluator": [CHECK]}, cases=[{"id": "a", "input": "x"}]), "did you mean 'evaluators'?"),
    (whole(defaults={"evaluators": [{"type": "contans"}]}, cases=[{"id": "a", "input": "x"}]), "'contains'?"),
]


@pytest.mark.parametrize(("data", "said"), ONE, ids=range(len(ONE)))
def test_one_mistake_is_one_error(data: dict[str, Any], said: str) -> None:
    (found,) = problems(data)
    assert said in found


def test_two_mistakes_are_two_errors() -> None:
    first = {"id": "a", "input": "x", "evaluators": [{"type": "contans"}]}
    found = problems(whole(cases=[first, {"id": "b", "input": "x"}]))
    assert len(found) == 2
    assert "did you mean 'contains'?" in found[0]
    assert found[1].startswith("case 'b' checks nothing")


def test_a_mistake_in_the_project_is_not_one_of_its_evals(tmp_path: Path) -> None:
    (tmp_path / "agentv.yaml").write_text(
        "targets: [{name: t, provider: mok}]\ndefaults: {evaluators: [{type: contains, value: x}]}\n"
    )
    (tmp_path / "a.eval.yaml").write_text("target: t\ncases: [{id: a, input: x}]\n")
    with pytest.raises(SpecError) as caught:
        load_evals([tmp_path])
    (problem,) = caught.value.problems
    assert "did you mean 'mock'?" in problem.message


def test_the_guess_comes_first_and_the_list_after() -> None:
    (found,) = problems(
        whole(cases=[case(evaluators=[{"type": "tool_trajectory", "mode": "inorder", "expected": []}])])
    )
    assert found == (
        "mode: got 'inorder'; did you mean 'in_order'? "
        "Expected one of exact, in_order, any_order, unordered, superset, subset"
    )


def test_a_list_of_names_is_the_calls_that_are_expected() -> None:
    (checked,) = load_data(whole(cases=[{"id": "a", "input": "x", "expected": ["search", "answer"]}])).cases
    assert checked.case.expected_messages is not None
    assert [call.tool for call in checked.case.expected_messages[0].tool_calls] == ["search", "answer"]
    (found,) = problems(whole(cases=[{"id": "a", "input": "x", "expected": ["Hello there."]}]))
    assert found.startswith("expected[0]: 'Hello there.' is no name of a tool")


def test_a_list_of_calls_needs_no_message_around_it() -> None:
    calls = ["search", {"tool": "refund", "input": {"order_id": "A-17"}}]
    turns = [{"user": "x", "expected": calls}]
    for case_ in ({"id": "a", "input": "x", "expected": calls}, {"id": "a", "turns": turns}):
        (checked,) = load_data(whole(cases=[case_])).cases
        case_turns = checked.case.turns
        expected = case_turns[0].expected_messages if isinstance(case_turns, tuple) else checked.case.expected_messages
        assert expected is not None
        assert [(call.tool, call.input) for call in expected[0].tool_calls] == [
            ("search", UNSET),
            ("refund", {"order_id": "A-17"}),
        ]
    (found,) = problems(whole(cases=[{"id": "a", "input": "x", "expected": [{"tool": "refund", "inptu": {}}]}]))
    assert "did you mean 'input'?" in found
    assert problems(whole(cases=[{"id": "a", "input": "x", "expected": [{"tool": "a"}, {"role": "assistant"}]}]))
