"""Tests of collected cases with a judge."""

from tests.fakes.judges.program import asked, judge_program
from tests.support.pytest_project import Project

pytest_plugins = ["pytester"]


def test_a_judge_decides_here_as_everywhere(project: Project) -> None:
    check = {"type": "llm_judge", "rubric": ["It names Paris."]}
    cases = [{"id": name, "input": "The capital?", "evaluators": [check]} for name in ("right", "wrong")]
    agent = {"name": "agent", "provider": "mock", "reply": ["It is Paris.", "It is Rome."]}
    suite = {"targets": [agent, judge_program(project.folder)], "judge": "judge", "cases": cases}
    project.write("a.eval.yaml", suite)
    result = project.here("--agentv")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*1 is not met: It names Paris. it names a city*"])
    assert len(asked(project.folder)) == 2
