"""`agentv mutate`: which mistakes an eval would not notice."""

import pytest

from agentv.model.mutation import OPERATORS
from tests.support.command import Command, cases, execution_ids, mocked, strict_json

CALLS = [{"tool": "search", "input": {"q": "x"}, "output": "3 hits"}, {"tool": "answer", "input": {}}]
REPLY = {"text": "Under Settings.", "output_messages": [{"role": "assistant", "tool_calls": CALLS}]}
GATED = (
    *("drop_call", "duplicate_call", "swap_calls", "rename_call"),
    *("change_argument", "drop_argument", "add_argument", "fail_call", "deny_call"),
)


@pytest.fixture(scope="module")
def passed(module_run: Command) -> Command:
    """A store with one case that passed and one that failed."""
    run = module_run
    run.write("a.eval.yaml", {"targets": [mocked(REPLY, {"text": "?"})], "cases": cases("good", "bad")})
    assert run("eval", "a.eval.yaml").code == 1
    return run


def test_survivors_are_printed_in_words_with_the_yaml_that_would_notice_them(passed: Command) -> None:
    result = passed("mutate")
    assert result.code == 0
    assert "✗ search called twice: not noticed\n      - {type: tool_trajectory, maximums: {search: 1}}" in result.out
    assert "by case\n  good" in result.out
    assert "drop_call" in result.out
    assert "kill rate" in result.out
    assert "bad" not in result.out
    assert "left out: 1 run that did not pass" in result.out


def test_the_json_has_cases_with_their_survivors(passed: Command) -> None:
    data = strict_json(passed("mutate", "last", "--case", "good", "--json").out)
    assert data["schema"] == "agentv.mutation/1"
    assert data["execution_id"] == execution_ids(passed)[0]
    (case,) = data["cases"]
    assert case["case_id"] == "good"
    assert case["killed"] + case["survived"] == case["mutants"]
    assert len(case["survivors"]) == case["survived"]
    first = case["survivors"][0]
    assert {"operator", "tool", "sentence", "suggestion"} <= first.keys()
    assert {count["name"] for count in data["operators"]} <= set(OPERATORS)


def test_a_gate_fails_below_the_share_and_passes_above(passed: Command) -> None:
    few = passed("mutate", "--operator", "drop_call", "--min-kill", "0.9")
    assert few.code == 1
    assert "50.0 % of the changes are noticed (--min-kill 0.9)" in few.err
    assert passed("mutate", "--operator", "drop_call", "--min-kill", "0.5").code == 0


def test_nothing_that_passed_is_an_error(run: Command) -> None:
    run.write("a.eval.yaml", {"targets": [mocked({"text": "?"})], "cases": cases("bad")})
    run("eval", "a.eval.yaml")
    result = run("mutate")
    assert result.code == 3
    assert "no run of" in result.err
    assert "passed that is selected, 1 did not: there is nothing to change" in result.err
    unknown = run("mutate", "--case", "bat")
    assert unknown.code == 2
    assert "has no run of case 'bat'; did you mean 'bad'?" in unknown.err


def test_a_gate_without_measurable_cases_is_an_error(run: Command) -> None:
    judge = {"type": "llm_judge", "criterion": "It is polite."}
    run.write("a.eval.yaml", {"targets": [mocked(REPLY)], "cases": cases("a")})
    run("eval", "a.eval.yaml")
    run.write(
        "a.eval.yaml", {"targets": [mocked(REPLY), mocked(name="j")], "judge": "j", "cases": cases("a", check=judge)}
    )
    result = run("mutate", "--min-kill", "0.5")
    assert result.code == 3, result
    assert "it is evaluated by judges only" in result.out


def test_messages_that_were_not_stored_cannot_be_changed(run: Command) -> None:
    run.write("a.eval.yaml", {"targets": [mocked(REPLY)], "cases": cases("a")})
    run("eval", "a.eval.yaml", "--persist", "summary")
    result = run("mutate")
    assert result.code == 2
    assert "without its messages" in result.err


def test_wrong_options_are_usage_errors(passed: Command) -> None:
    assert passed("mutate", "--judges").code == 2
    assert "max_judge_cost" in passed("mutate", "--judges").err
    assert passed("mutate", "--operator", "drop").code == 2
    assert passed("mutate", "--stored", "--eval", "a.eval.yaml").code == 2
    assert passed("mutate", "20990101").code == 2
    assert passed("mutate", "--min-kill", "2").code == 2


def test_a_broken_eval_file_is_named_with_its_line_and_the_stored_evaluators_still_work(run: Command) -> None:
    run.write("a.eval.yaml", {"targets": [mocked(REPLY)], "cases": cases("a")})
    run("eval", "a.eval.yaml")
    run.write("a.eval.yaml", "cases: [{id: a, input: x, evaluators: [{type: tool_trajectry}]}]\n")
    result = run("mutate")
    assert result.code == 2
    assert "a.eval.yaml:1" in result.err
    assert run("mutate", "--stored").code == 0


def test_an_unknown_operator_in_accept_has_a_place_and_a_suggestion(run: Command) -> None:
    text = "mutate: {accept: [{operator: drop_cal, reason: x}]}\ncases: [{id: a, input: x, evaluators: []}]\n"
    run.write("a.eval.yaml", text)
    result = run("validate", "a.eval.yaml")
    assert result.code == 2
    assert "a.eval.yaml:1:30: operator: got 'drop_cal'; did you mean 'drop_call'?" in result.err


def test_personas_of_a_case_are_kept_apart_and_a_missing_turn_is_noticed(run: Command) -> None:
    personas = [{"id": "one"}, {"id": "two"}]
    talk = {"id": "a", "persona": ["one", "two"], "turns": [{"user": "first"}, {"user": "second"}]}
    check = {"type": "tool_trajectory", "minimums": {"search": 1}}
    case = {**talk, "evaluators": [check]}
    run.write("a.eval.yaml", {"targets": [mocked([REPLY, REPLY])], "personas": personas, "cases": [case]})
    assert run("eval", "a.eval.yaml").code == 0
    data = strict_json(run("mutate", "--json").out)
    assert [(found["case_id"], found["persona_id"]) for found in data["cases"]] == [("a", "one"), ("a", "two")]
    dropped = [each for each in data["cases"][0]["survivors"] if each["operator"] == "drop_turn"]
    assert [each["sentence"] for each in dropped] == ["turn 1 left out", "turn 2 left out"]
    assert {each["suggestion"] for each in dropped} == {"{type: conversation_turns, min: 2}"}
    assert "a [two]" in run("mutate").out


@pytest.mark.parametrize("example", [(), ("--example", "conversation")], ids=["first", "conversation"])
def test_the_project_of_init_notices_nearly_all_changes_of_calls(run: Command, example: tuple[str, ...]) -> None:
    assert run("init", ".", *example).code == 0
    assert run("eval", ".").code == 1
    data = strict_json(run("mutate", *[part for name in GATED for part in ("--operator", name)], "--json").out)
    assert data["mutants"] >= 30
    assert data["kill_rate"] >= 0.9
    assert data["accepted"] <= 0.1 * data["mutants"]


def test_counts_of_minimums_kill_what_they_should(passed: Command) -> None:
    data = strict_json(passed("mutate", "--json").out)
    killed = {count["name"]: count["killed"] for count in data["operators"] if count["killed"]}
    assert killed == {"drop_call": 1, "rename_call": 1, "deny_call": 1}
