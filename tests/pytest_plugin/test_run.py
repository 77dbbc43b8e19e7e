"""Tests of the run of collected cases, and of the reports of failures."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from agentv.pytest_plugin.run import BackgroundLoop
from tests.support.command import calls, cases, mocked, program, wait_for
from tests.support.pytest_project import STRICT, Project, failing, support

pytest_plugins = ["pytester"]

COUNTING = """
    import os
    from agentv.providers.mock import Mock

    class Counting(Mock, kw_only=True, tag_field=None):
        async def open(self, scope):
            note("open")
            return CountingSession(await super().open(scope))

    class CountingSession:
        def __init__(self, session):
            self.session = session

        async def invoke(self, request):
            note(f"invoke {request.id}")
            return await self.session.invoke(request)

        async def close(self):
            note("close")

    def note(text):
        with open("log.txt", "a") as stream:
            stream.write(f"{os.getpid()} {text}\\n")

    from agentv import registry
    registry.PROVIDERS["mock"] = "conftest:Counting"
"""


PARTLY = """
    from agentv import ProviderResponse, Unread

    def ask(prompt):
        return ProviderResponse(text="hello", unread=(Unread(path="a[0]", reason="a block was not understood"),))
"""


def log(project: Project) -> list[str]:
    """Return the log of the targets without process ids."""
    return [line.partition(" ")[2] for line in (project.folder / "log.txt").read_text().splitlines()]


def test_the_failure_is_the_diff_and_the_misses(project: Project) -> None:
    project.write("evals/support.eval.yaml", support())
    result = project.here("--agentv")
    result.assert_outcomes(passed=1, failed=1)
    shown = result.stdout.str()
    text = re.search(r"^_+ verifies\[agent\] _+\n(.*?)^=", shown, re.MULTILINE | re.DOTALL)
    assert text is not None
    assert re.sub(r" +\n", "\n", text[1]).splitlines() == [
        "FAIL verifies  0.00  agent  evals/support.eval.yaml:18:3",
        "  FAIL tool_trajectory  0.00",
        "      expected                 │ actual (call number first)",
        "    ✓ search                   │ 0: search",
        "    ✗ verify                   │",
        "    ✗ missing call: verify (expected after search)",
    ]
    result.stdout.fnmatch_lines(["FAILED evals/support.eval.yaml::verifies?agent? - missing call: verify (expected*"])


def test_verbose_shows_what_held_and_the_answer(project: Project) -> None:
    several = [{"type": "tool_trajectory", "minimums": {name: 1}} for name in ("search", "verify")]
    (case,) = cases("a")
    project.write("a.eval.yaml", support(cases=[{**case, "evaluators": several}]))
    assert "search called" not in project.here("--agentv").stdout.str()
    project.here("--agentv", "-v").stdout.fnmatch_lines(["*search called 1 time (minimum: 1)", "  answer done"])


def test_what_could_not_be_measured_is_an_error_and_no_failure(project: Project) -> None:
    targets = [mocked(name="slow", delay_ms=10_000), mocked(name="down", fail_rate=1, retries=0)]
    limit = {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "search", "max_duration_ms": 9}]}
    project.write("a.eval.yaml", {"targets": targets, "cases": cases("a")})
    project.write("b.eval.yaml", {"targets": [mocked(calls("search"), name="t")], "cases": cases("b", check=limit)})
    result = project.here("--agentv", "--agentv-timeout", "0.05")
    result.assert_outcomes(errors=3)
    result.stdout.fnmatch_lines(
        [
            "*ERROR at setup of a?slow?*",
            "ERROR (timeout): no reply within 0.05 s",
            "ERROR a  slow  a.eval.yaml:*",
            "ERROR (transport): the mock target failed*",
            "ERROR (evaluator): *",
            "ERROR a.eval.yaml::a?slow? - timeout: no reply within 0.05 s",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_target_that_is_not_ready_is_an_error_of_its_own_tests(project: Project) -> None:
    targets = [mocked("${NOT_SET}", name="locked"), mocked(calls("search"), name="open")]
    project.write("a.eval.yaml", {"targets": targets, "cases": cases("a", "b")})
    result = project.here("--agentv")
    result.assert_outcomes(passed=2, errors=2)
    result.stdout.fnmatch_lines(["ERROR (setup): a.eval.yaml:2:3: target 'locked' needs*NOT_SET, which is not set*"])
    project.here("--agentv", "-k", "open").assert_outcomes(passed=2)


def test_a_secret_is_shown_to_nobody(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "correct horse battery staple")
    reply = calls("${SOME_KEY}", text="${SOME_KEY}")
    project.write("a.eval.yaml", {"targets": [mocked(reply, name="t")], "cases": failing("a")})
    result = project.here("--agentv", "-vv", "-rA", "--junitxml=junit.xml")
    result.assert_outcomes(failed=1)
    shown = result.stdout.str() + result.stderr.str() + (project.folder / "junit.xml").read_text()
    assert "missing call" in shown
    assert "battery" not in shown


def test_a_junit_file_tells_failures_from_errors_and_has_the_figures(project: Project) -> None:
    reply = {**calls("search"), "tokens_usage": {"input_tokens": 10, "output_tokens": 5}, "cost_usd": 0.25}
    targets = [mocked(reply, name="good"), mocked(name="slow", delay_ms=10_000)]
    project.write("a.eval.yaml", {"targets": targets, "cases": [*cases("a"), *failing("b")]})
    found = project.junit("--agentv-timeout", "0.05")
    assert {name: [each.tag for each in case if each.tag != "properties"] for name, case in found.items()} == {
        "a[good]": [],
        "a[slow]": ["error"],
        "b[good]": ["failure"],
        "b[slow]": ["error"],
    }
    figures = {each.get("name"): each.get("value") for each in found["a[good]"].iter("property")}
    assert float(figures.pop("latency_ms") or "nan") >= 0
    assert figures == {
        "status": "pass",
        "score": "1.0",
        "input_tokens": "10",
        "output_tokens": "5",
        "total_tokens": "15",
        "cost_usd": "0.25",
        "attempts": "1",
    }
    failure = next(found["b[good]"].iter("failure"))
    assert str(failure.get("message")).startswith("missing call: verify")
    unknown = {each.get("name") for each in found["b[slow]"].iter("property")}
    assert unknown == {"status", "latency_ms", "attempts"}


def test_cases_of_an_eval_run_at_once_and_in_the_order_of_pytest(project: Project) -> None:
    names = [f"case-{number}" for number in range(12)]
    target = mocked(calls("search"), name="t", delay_ms=400)
    project.write("a.eval.yaml", {"targets": [target], "cases": cases(*names)})
    began = time.monotonic()
    result = project.here("--agentv", "-v", "--agentv-max-concurrency", "12")
    took = time.monotonic() - began
    result.assert_outcomes(passed=12)
    assert re.findall(r"a\.eval\.yaml::(case-\d+)", result.stdout.str()) == names
    assert took < 12 * 0.4 / 2


def test_only_what_pytest_chose_is_run(project: Project) -> None:
    project.pytester.makeconftest(COUNTING)
    several = [*cases("a", "b", "c"), *cases("skipped", skip=True)]
    project.write("a.eval.yaml", {"targets": [mocked(calls("search"), name="t")], "cases": several})
    project.process("-p", "agentv", "--agentv", "-k", "a or c or skipped", "--deselect", "a.eval.yaml::b[t]")
    assert sorted(log(project)) == ["close", "invoke a", "invoke c", "open"]


def test_a_target_is_opened_once_in_whatever_order_tests_are_run(project: Project) -> None:
    order = "def pytest_collection_modifyitems(items): items.sort(key=lambda item: item.name)"
    project.pytester.makeconftest(f"{dedent(COUNTING)}\n{order}")
    target = mocked(calls("search"), name="t", delay_ms=20)
    project.write("odd.eval.yaml", {"targets": [target], "cases": cases("a", "c", "e")})
    project.write("even.eval.yaml", {"targets": [target], "cases": cases("b", "d")})
    result = project.process("-p", "agentv", "--agentv", "-v")
    result.assert_outcomes(passed=5)
    assert re.findall(r"(\w+)\.eval\.yaml::\w\[t\] P", result.stdout.str()) == ["odd", "even", "odd", "even", "odd"]
    assert log(project).count("open") == log(project).count("close") == 2
    assert len(log(project)) == 5 + 4


def test_a_test_that_is_run_again_asks_the_agent_again(project: Project) -> None:
    again = """
def pytest_runtest_protocol(item, nextitem):
    from _pytest.runner import runtestprotocol
    runtestprotocol(item, log=False, nextitem=None)
"""
    project.pytester.makeconftest(f"{dedent(COUNTING)}\n{again}")
    project.write("a.eval.yaml", {"targets": [mocked(calls("search"), name="t")], "cases": cases("a", "b")})
    project.process("-p", "agentv", "--agentv").assert_outcomes(passed=2)
    assert sorted(log(project)) == ["close", "invoke a", "invoke a", "invoke b", "invoke b", "open"]


def test_nothing_more_is_begun_after_the_first_failure_when_pytest_stops_there(project: Project) -> None:
    project.pytester.makeconftest(COUNTING)
    several = [*failing("a"), *cases(*(f"later-{number}" for number in range(20)))]
    project.write("a.eval.yaml", {"targets": [mocked(calls("search"), name="t", delay_ms=20)], "cases": several})
    result = project.process("-p", "agentv", "--agentv", "-x", "--agentv-max-concurrency", "2")
    result.assert_outcomes(failed=1)
    assert len([line for line in log(project) if line.startswith("invoke")]) <= 3


def test_a_failure_far_away_does_not_keep_the_tests_before_it_waiting(project: Project) -> None:
    order = "def pytest_collection_modifyitems(items): items.reverse()"
    project.pytester.makeconftest(order)
    several = [*failing("last"), *cases("a", "b", "c")]
    project.write("a.eval.yaml", {"targets": [mocked(calls("search"), name="t")], "cases": several})
    project.here("--agentv", "-x", "--agentv-max-concurrency", "1").assert_outcomes(passed=3, failed=1)


def test_what_is_under_way_ends_with_the_session(project: Project) -> None:
    agent = project.write("agent.py", "import time\ntime.sleep(600)\n")
    several = [*cases("a", "b")]
    targets = [mocked(calls("nothing"), name="quick"), program(str(agent), name="hangs")]
    project.write("a.eval.yaml", {"targets": targets, "cases": several})
    began = time.monotonic()
    result = project.here("--agentv", "--maxfail=1", "-k", "quick or hangs")
    result.assert_outcomes(failed=1)
    assert time.monotonic() - began < 60


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for one process")
def test_an_interrupt_ends_pytest_and_the_agent(project: Project) -> None:
    agent = "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(600)\n"
    project.write("agent.py", agent)
    project.write("a.eval.yaml", {"targets": [program("agent.py", name="hangs")], "cases": cases("a")})
    process = project.pytester.popen(
        [sys.executable, "-m", "pytest", "-p", "agentv", *STRICT, "--agentv"], stdin=subprocess.DEVNULL
    )
    pid = project.folder / "pid"
    wait_for(lambda: pid.exists() and pid.read_text(), "the agent started")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == pytest.ExitCode.INTERRUPTED
    wait_for(lambda: not Path(f"/proc/{pid.read_text()}").exists(), "the agent ended")


def test_a_test_that_is_expected_to_fail_may_and_one_that_is_not_to_be_run_is_not(project: Project) -> None:
    project.pytester.makeconftest(
        COUNTING
        + """
    import pytest
    def pytest_collection_modifyitems(items):
        marks = {"fails": pytest.mark.xfail, "never": pytest.mark.xfail(run=False), "off": pytest.mark.skipif("True")}
        for item in items:
            name = item.name.partition("[")[0]
            if name in marks:
                item.add_marker(marks[name])
    """
    )
    several = [*failing("fails"), *failing("never"), *cases("off", "passes")]
    project.write("a.eval.yaml", {"targets": [mocked(calls("search"), name="t")], "cases": several})
    result = project.process("-p", "agentv", "--agentv")
    result.assert_outcomes(passed=1, xfailed=2, skipped=1)
    assert sorted(log(project)) == ["close", "invoke fails", "invoke passes", "open"]


def test_a_program_is_a_target_too(project: Project) -> None:
    project.write("agent.py", 'print(\'{"text": "hi", "output_messages": []}\')\n')
    project.write("a.eval.yaml", {"targets": [program("agent.py", name="cli")], "cases": cases("a")})
    project.here("--agentv").assert_outcomes(failed=1)


def test_warnings_about_a_reply_stand_beside_the_failure(project: Project) -> None:
    reply = {"trace": [{"type": "tool_call", "name": "search"}]}
    project.write("a.eval.yaml", {"targets": [mocked(reply, name="t")], "cases": failing("a")})
    result = project.here("--agentv")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*Captured agentv warnings setup*", "*`trace` is deprecated*"])


def test_unread_places_stand_in_the_failure(project: Project) -> None:
    project.write("agent.py", dedent(PARTLY))
    target = {"name": "t", "provider": "python", "function": "./agent.py:ask"}
    check = {"type": "contains", "value": "goodbye"}
    project.write("a.eval.yaml", {"targets": [target], "cases": cases("a", check=check)})
    result = project.here("--agentv")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*the reply was only partly understood, so calls may be missing:", "*a[[]0[]]: a block was not understood"]
    )
    assert str(result.stdout).count("a block was not understood") == 1


def test_the_plugin_is_found_by_its_entry_point_and_works_with_xdist(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    project.pytester.makeconftest(COUNTING)
    names = [f"case-{number}" for number in range(6)]
    target = mocked(calls("search"), name="t", delay_ms=20)
    project.write("a.eval.yaml", {"targets": [target], "cases": [*cases(*names), *failing()]})
    project.write("test_python.py", "def test_python(): pass")
    result = project.process("--agentv", "-n2", "-rA")
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines(["FAILED a.eval.yaml::verifies?t? - missing call: verify*"])
    assert sorted(line for line in log(project) if line.startswith("invoke")) == [
        *(f"invoke {name}" for name in names),
        "invoke verifies",
    ]
    assert log(project).count("open") == log(project).count("close") <= 2


def test_a_loop_that_has_ended_refuses_work_and_closes_quietly() -> None:
    async def never() -> Any:
        raise AssertionError

    loop = BackgroundLoop()
    loop.close()
    loop.close()
    with pytest.raises(RuntimeError):
        loop.start_task(never)
