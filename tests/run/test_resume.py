"""The resume decision: runs that keep their results, and runs that are run again."""

import pytest

from agentv.model.results import Verdict
from agentv.model.stored import Outcome, RunStatus
from agentv.run.resume import count_kept, find_superseded, keeps_result


@pytest.mark.parametrize(
    ("status", "verdict", "rerun", "kept"),
    [
        ("completed", "pass", (), True),
        ("completed", "fail", (), True),
        ("error", "error", (), True),
        ("completed", "fail", ("fail",), False),
        ("completed", "fail", ("error",), True),
        ("error", "error", ("error",), False),
        ("queued", None, (), False),
        ("running", None, (), False),
        ("cancelled", None, (), False),
        ("running", "fail", (), False),
    ],
)
def test_a_run_with_a_result_is_skipped_unless_its_verdict_is_run_again(
    status: RunStatus, verdict: Verdict | None, rerun: tuple[str, ...], *, kept: bool
) -> None:
    assert keeps_result(Outcome(status, verdict, 1), rerun) is kept


def test_a_run_that_is_not_stored_is_run() -> None:
    assert not keeps_result(None)


def test_results_of_edited_cases_are_not_counted_and_leave_the_execution() -> None:
    known = {
        "kept": Outcome("completed", "pass", 1),
        "removed": Outcome("completed", "pass", 1),
        "edited before": Outcome("completed", "pass", 1, superseded=True),
        "failed": Outcome("completed", "fail", 1),
    }
    assert count_kept(known, ("fail",)) == 2
    assert find_superseded(known, {"kept", "failed"}) == ["removed"]
