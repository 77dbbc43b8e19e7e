"""The report on the terminal: groups, folds, tables, and their order."""

import io
from typing import Any

import pytest

from agentv.model.events import RunFinished
from agentv.model.results import Coverage, OutcomeCounts, RepeatedCase
from agentv.redaction import Redactor
from agentv.reports.console import Console
from agentv.reports.terminal import plain_text, wrap_parts
from tests.reports.test_console_rates import repeats
from tests.support.events import errored, failed, passed, tell


def report(*runs: RunFinished, verbosity: int = 0, **more: Any) -> str:
    stream = io.StringIO()
    tell(Console(stream, Redactor({}), verbosity=verbosity), runs, **more)
    return stream.getvalue()


def heads(text: str) -> list[str]:
    """The verdict and the case of each run that has lines of its own."""
    return [" ".join(line.split()[:2]) for line in text.splitlines() if line.startswith(("PASS", "FAIL", "ERROR"))]


def test_failures_stand_next_to_the_summary() -> None:
    text = report(failed(0), errored(1), passed(2), failed(3, "another reason"))
    assert heads(text) == ["PASS c2", "ERROR c1", "FAIL c0", "FAIL c3"]
    lines = text.splitlines()
    assert lines[lines.index("    x another reason") + 1 :][:2] == ["", "1 passed, 2 failed, 1 error: " + RATE]


RATE = "33.3 % of 3 measured passed"


def test_equal_failures_are_one_with_the_names_of_the_others() -> None:
    runs = [failed(order, "missing call: refund") for order in range(15)]
    text = report(*runs, errored(15), errored(16), failed(17, "something else"))
    assert heads(text) == ["ERROR c15", "FAIL c0", "FAIL c17"]
    assert text.count("missing call: refund") == 1
    assert "  the same in 14 other cases: c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, 4 more\n" in text
    assert "  the same in 1 other case: c16\n" in text


def test_the_first_run_of_the_plan_stands_for_its_group_whichever_finished_first() -> None:
    runs = [failed(order, "missing call: refund") for order in (3, 1, 2, 0)]
    text = report(*runs)
    assert heads(text) == ["FAIL c0"]
    assert "the same in 3 other cases: c1, c2, c3" in text


def test_different_words_of_an_error_are_different_failures() -> None:
    assert heads(report(errored(0, "refused"), errored(1, "timed out"))) == ["ERROR c0", "ERROR c1"]


def test_with_v_every_run_is_shown_by_itself_with_blank_lines_between() -> None:
    text = report(passed(0), passed(1), failed(2), failed(3), verbosity=1)
    assert heads(text) == ["PASS c0", "PASS c1", "FAIL c2", "FAIL c3"]
    lines = text.splitlines()
    assert all(not lines[at - 1] for at, line in enumerate(lines) if at and line.startswith(("PASS", "FAIL")))


@pytest.mark.parametrize(("count", "listed"), [(20, 20), (21, 0), (500, 0)])
def test_more_than_twenty_passing_cases_are_a_number(count: int, listed: int) -> None:
    text = report(*[passed(order) for order in range(count)], failed(count))
    assert heads(text).count(f"FAIL c{count}") == 1
    assert sum(head.startswith("PASS") for head in heads(text)) == listed
    assert (f"{count} cases passed; -v lists them" in text) == (not listed)


def repeated(case_id: str, good: int, bad: int, errors: int = 0) -> RepeatedCase:
    return RepeatedCase(
        eval_id="support",
        case_id=case_id,
        target="scripted",
        passed=good,
        failed=bad,
        errors=errors,
        flaky=bool(good and bad),
        pass_rate=None,
        pass_rate_interval=None,
    )


def test_repetitions_are_shown_by_case() -> None:
    runs = [
        *[passed(at, "good", repeat=at) for at in range(3)],
        *[failed(3 + at, "missing call: refund", case_id="bad", repeat=at) for at in range(3)],
        failed(6, "missing call: refund", case_id="mixed", repeat=0),
        passed(7, "mixed", repeat=1),
        failed(8, "wrong amount", case_id="mixed", repeat=2),
        *[errored(9 + at, case_id="down", repeat=at) for at in range(3)],
    ]
    found = repeats(repeated("good", 3, 0), repeated("bad", 0, 3), repeated("mixed", 1, 2), repeated("down", 0, 0, 3))
    text = report(*runs, repeats=found)
    assert heads(text) == ["PASS good", "ERROR down", "FAIL bad", "FAIL mixed"]
    assert "PASS good  3/3 passed" in text
    assert "ERROR down  3 errors" in text
    assert "FAIL bad  0/3 passed  0.00  scripted  support.eval.yaml:13:5\n  runs 1 to 3\n" in text
    assert "  the same in 1 other run: mixed (run 1)\n" in text
    assert "FAIL mixed  1/3 passed  0.00  scripted  support.eval.yaml:18:5\n  run 3\n" in text


def test_several_targets_make_a_table_of_cases_and_targets() -> None:
    runs = [
        passed(0, "refund", target="small"),
        failed(1, case_id="refund", target="large"),
        errored(2, case_id="lookup-by-name", target="small"),
        passed(3, "lookup-by-name", target="large"),
    ]
    text = report(*runs)
    assert ("case            small  large\nrefund          pass   FAIL\nlookup-by-name  ERROR  pass\n") in text
    assert "PASS" not in text


def test_the_table_of_many_cases_has_those_that_did_not_pass_everywhere() -> None:
    runs = []
    for order in range(0, 60, 2):
        runs.append(passed(order, f"case-{order}", target="small"))
        target = {"case_id": f"case-{order}", "target": "large"}
        runs.append(failed(order + 1, **target) if order == 8 else passed(order + 1, **target))
    text = report(*runs)
    assert "case    small  large\ncase-8  pass   FAIL\n29 more cases passed with every target\n" in text


def test_a_table_that_is_too_wide_is_cut_into_blocks() -> None:
    runs = [passed(order, "case", target=f"a-target-with-a-long-name-{order}") for order in range(6)]
    lines = report(*runs).splitlines()
    assert max(map(len, lines)) <= 100
    assert [line.count("a-target") for line in lines if line.startswith("case  a-")] == [3, 3]


def test_repetitions_with_several_targets_are_shares() -> None:
    runs = [
        *[passed(at, "refund", target="small", repeat=at) for at in range(2)],
        failed(2, case_id="refund", target="large", repeat=0),
        errored(3, case_id="refund", target="large", repeat=1),
    ]
    assert "refund  2/2    0/1, 1 error\n" in report(*runs, repeats=repeats())


def test_pass_rates_are_told_by_tag() -> None:
    tags = {
        "refund": OutcomeCounts(runs=1, passed=1, pass_rate=1.0),
        "slow": OutcomeCounts(runs=2, passed=1, failed=1, errors=1, pass_rate=0.5, pass_rate_interval=(0.09, 0.91)),
    }
    lines = report(passed(0), failed(1), tags=tags).splitlines()
    assert "  tag refund: 100 %, 0 failed, 0 errors" in lines
    assert "  tag slow: 50 % (95 % CI 9-91 %), 1 failed, 1 error" in lines


def test_a_tag_that_every_run_has_tells_nothing() -> None:
    assert "tag " not in report(passed(0), passed(1), tags={"all": OutcomeCounts(runs=2, passed=2, pass_rate=1.0)})


def test_one_run_is_no_runs() -> None:
    assert "interrupted: 1 of 2 runs is missing" in report(passed(0), status="interrupted", planned=2)
    spent = report(errored(0), cost_usd=0.5, reported=Coverage(cost_usd=0))
    assert "cost $0.5000 (0 of 1 run)" in spent


def test_a_very_long_error_is_cut() -> None:
    text = report(errored(0, "\n".join(["x" * 100_000] * 1_000)))
    assert len(text) < 120_000
    assert "950 more lines" in text


def test_lines_are_broken_between_their_parts() -> None:
    assert wrap_parts(["1 passed, 0 failed:", "100 % of 1"], " ", 24) == ["1 passed, 0 failed:", "  100 % of 1"]
    assert wrap_parts(["a" * 5, "b" * 5, "c" * 5], " · ", 13) == ["aaaaa · bbbbb ·", "  ccccc"]
    assert wrap_parts(["\x1b[32mok\x1b[0m", "b"], ", ", 5) == ["\x1b[32mok\x1b[0m, b"]
    assert plain_text("\x1b[32mok\x1b[0m") == "ok"
