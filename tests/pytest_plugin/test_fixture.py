"""Tests of the fixture `agentv_run`."""

import pytest

from tests.support.command import calls, cases, mocked
from tests.support.pytest_project import Project, failing, support

pytest_plugins = ["pytester"]

AGENT = """
import agentv
import pytest

def agent(prompt):
    return {"output_messages": [{"role": "assistant", "content": prompt, "tool_calls": [{"tool": "search"}]}]}
"""


@pytest.fixture
def outcome(project: Project) -> "Outcome":
    return Outcome(project)


class Outcome:
    """Run one test function in a project with an eval."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def __call__(self, body: str, *args: str) -> pytest.RunResult:
        lines = "".join(f"    {line}\n" for line in body.strip().splitlines())
        self.project.write("tests/test_it.py", f"{AGENT}\ndef test_it(agentv_run):\n{lines}")
        return self.project.here(*args)


def test_a_case_is_run_with_a_function(outcome: Outcome) -> None:
    outcome.project.write("evals/support.eval.yaml", support())
    outcome(
        """
run = agentv_run("evals/support.eval.yaml", case="finds", target=agent)
run.assert_passed()
assert (run.status, run.score) == ("pass", 1.0)
assert run.record.target == "agent"
assert run.response.output_messages[0].content == "question finds"
"""
    ).assert_outcomes(passed=1)


def test_the_failure_is_the_diff_at_the_line_of_the_test(outcome: Outcome) -> None:
    outcome.project.write("evals/support.eval.yaml", support())
    result = outcome('run = agentv_run("evals/support.eval.yaml", "verifies", agent)\nrun.assert_passed()')
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            ">       run.assert_passed()",
            "E       AssertionError: FAIL verifies  0.00  agent  evals/support.eval.yaml:*",
            "E           ✗ missing call: verify (expected after search)",
            "tests/test_it.py:*: AssertionError",
        ]
    )
    result.stdout.no_fnmatch_line("*case.py*")


def test_whatever_the_agent_does_nothing_is_raised(outcome: Outcome) -> None:
    outcome.project.write("a.eval.yaml", support())
    outcome(
        """
def broken(prompt):
    raise RuntimeError("no model")
run = agentv_run("a.eval.yaml", case="finds", target=broken, timeout_s=5)
assert (run.status, run.score) == ("error", None)
assert str(run).startswith("ERROR (agent): RuntimeError: no model")
assert repr(run) == "<CaseRun 'finds' with 'broken': error>"
with pytest.raises(AssertionError, match=r"ERROR .agent.: RuntimeError"):
    run.assert_passed()
"""
    ).assert_outcomes(passed=1)


def test_an_eval_may_be_written_in_python(outcome: Outcome) -> None:
    outcome(
        """
case = {"id": "a", "input": "?", "repeat": 3, "evaluators": [{"type": "tool_trajectory", "minimums": {"search": 1}}]}
agentv_run({"cases": [case]}, target=agent).assert_passed()
"""
    ).assert_outcomes(passed=1)


def test_the_targets_of_the_file_can_be_chosen(outcome: Outcome) -> None:
    targets = [mocked(calls("search"), name="good"), mocked(calls(), name="bad")]
    outcome.project.write("a.eval.yaml", {"targets": targets, "cases": cases("a")})
    outcome('assert [agentv_run("a.eval.yaml", target=t).status for t in ("good", "bad")] == ["pass", "fail"]')


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ('"a.eval.yaml", target=agent', "expected one case and one target, found 2: 'finds' with 'agent', 'verifies'"),
        ('"a.eval.yaml", case="*", target=agent', "choose with `case` and `target`"),
        ('"a.eval.yaml", case="nobody"', "no case selected"),
        ('"missing.eval.yaml"', "does not exist"),
        ('"a.eval.yaml", case="finds", target="who"', "who"),
    ],
)
def test_a_choice_of_none_or_several_is_a_mistake(outcome: Outcome, call: str, message: str) -> None:
    outcome.project.write("a.eval.yaml", support())
    body = f"with pytest.raises(agentv.SpecError) as caught:\n    agentv_run({call})\nassert {message!r} in str(caught)"
    outcome(body.replace("str(caught)", "str(caught.value)")).assert_outcomes(passed=1)


def test_an_unknown_option_is_a_mistake(outcome: Outcome) -> None:
    outcome.project.write("a.eval.yaml", support())
    body = 'with pytest.raises(ValueError, match="timeout"):\n    agentv_run("a.eval.yaml", case="finds", timeout=3)'
    outcome(body).assert_outcomes(passed=1)


def test_it_works_inside_a_running_event_loop(outcome: Outcome) -> None:
    outcome.project.write("a.eval.yaml", support())
    outcome(
        """
import asyncio
async def main():
    return agentv_run("a.eval.yaml", case="finds", target=agent)
asyncio.run(main()).assert_passed()
"""
    ).assert_outcomes(passed=1)


def test_files_are_found_from_the_root_wherever_the_test_is(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome.project.write("evals/a.eval.yaml", support())
    outcome.project.write("pytest.ini", "[pytest]\n")
    (outcome.project.folder / "tests").mkdir()
    monkeypatch.chdir(outcome.project.folder / "tests")
    outcome('agentv_run("evals/a.eval.yaml", case="finds", target=agent).assert_passed()').assert_outcomes(passed=1)


def test_evals_that_are_collected_and_tests_that_run_cases_go_together(outcome: Outcome) -> None:
    outcome.project.write("a.eval.yaml", support(cases=failing("a")))
    result = outcome('agentv_run("a.eval.yaml", target=lambda prompt: agent(prompt)).assert_passed()', "--agentv")
    result.assert_outcomes(failed=2)
