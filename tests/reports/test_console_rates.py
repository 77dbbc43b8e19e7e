"""Rates in words: how sure they are, and which cases are flaky."""

import io
from pathlib import Path
from typing import Any

import pytest

from agentv.model.results import OutcomeCounts, RepeatedCase, RepeatedTarget, Repeats
from agentv.redaction import Redactor
from agentv.reports.console import Console, format_interval, format_percent
from agentv.reports.markdown import MAX_PAGE, MarkdownFile
from tests.support.events import HOSTILE, failed, passed, tell

DASH = "\N{EN DASH}"


def case(case_id: str = "refund-large", **more: Any) -> RepeatedCase:
    values: dict[str, Any] = {
        "eval_id": "support",
        "case_id": case_id,
        "target": "agent",
        "passed": 3,
        "failed": 2,
        "errors": 0,
        "flaky": True,
        "pass_rate": 0.6,
        "pass_rate_interval": (0.23, 0.88),
    }
    return RepeatedCase(**{**values, **more})


def repeats(*cases: RepeatedCase, **more: Any) -> Repeats:
    values: dict[str, Any] = {
        "k": 5,
        "cases": 12,
        "flaky": len(cases),
        "always_passed": 10,
        "always_failed": 1,
        "unmeasured": 0,
        "pass_rate": 0.8,
        "pass_rate_interval": (0.5, 0.9),
        "measured": 12,
        "pass_at_k": 0.92,
        "pass_at_k_interval": (0.61, 0.99),
        "pass_hat_k": 0.41,
        "pass_hat_k_interval": (0.15, 0.72),
        "per_case": cases,
        "not_listed": 0,
    }
    return Repeats(**{**values, **more})


def printed(encoding: str = "utf-8", verbosity: int = 0, **more: Any) -> list[str]:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    tell(Console(stream, Redactor({}), verbosity=verbosity), [passed(0), failed(1)], **more)
    stream.seek(0)
    return stream.read().splitlines()


@pytest.mark.parametrize(
    ("interval", "words"),
    [
        ((0.3006, 0.9544), f"30{DASH}95 %"),
        ((0.0, 0.05), f"0{DASH}5 %"),
        ((0.896, 0.913), f"89.6{DASH}91.3 %"),
        ((0.99951, 0.99967), f"99.95{DASH}99.97 %"),
    ],
)
def test_an_interval_has_the_digits_that_its_width_makes_sense_of(interval: tuple[float, float], words: str) -> None:
    assert format_interval(interval) == words


def test_a_share_that_is_not_all_is_never_called_all() -> None:
    assert [format_percent(share) for share in (0.0, 0.0001, 0.75, 0.9999, 1.0)] == [
        "0 %",
        "0.1 %",
        "75 %",
        "99.9 %",
        "100 %",
    ]


def test_the_rate_is_told_with_its_interval() -> None:
    lines = printed(pass_rate_interval=(0.0945, 0.9055))
    assert f"1 passed, 1 failed, 0 errors: 50 % of 2 measured passed (95 % CI 9{DASH}91 %)" in lines


def test_flaky_cases_are_named_with_their_fraction_and_the_sums_say_the_rest() -> None:
    shaky = case("shaky", passed=1, failed=1, errors=3, pass_rate=0.5, pass_rate_interval=(0.09, 0.91))
    lines = printed(repeats=repeats(case(), shaky))
    assert f"FLAKY refund-large 3/5 passed  60 % (95 % CI 23{DASH}88 %)  agent" in lines
    assert f"FLAKY shaky 1/2 passed, 3 errors  50 % (95 % CI 9{DASH}91 %)  agent" in lines
    at = next(at for at, line in enumerate(lines) if line.startswith("1 passed, 1 failed"))
    assert lines[at + 1] == (
        f"pass@5 0.92 (95 % CI 0.61{DASH}0.99) · pass^5 0.41 (95 % CI 0.15{DASH}0.72) · 12 cases, 2 flaky"
    )


def test_without_repetitions_there_is_no_word_of_them() -> None:
    text = "\n".join(printed())
    assert "FLAKY" not in text
    assert "pass@" not in text


def test_what_could_not_be_measured_often_enough_is_told() -> None:
    nothing = {"pass_at_k": None, "pass_at_k_interval": None, "pass_hat_k": None, "pass_hat_k_interval": None}
    lines = printed(repeats=repeats(measured=0, **nothing))
    assert "nothing could be measured 5 times · 12 cases, 0 flaky" in lines
    assert any(
        line.endswith("12 cases, 2 measured less often, 0 flaky") for line in printed(repeats=repeats(measured=10))
    )


def test_several_targets_are_told_apart() -> None:
    values: dict[str, Any] = {
        "cases": 6,
        "flaky": 1,
        "measured": 6,
        "pass_at_k_interval": None,
        "pass_hat_k_interval": None,
    }
    one = RepeatedTarget(pass_at_k=1.0, pass_hat_k=0.5, **values)
    none = RepeatedTarget(pass_at_k=None, pass_hat_k=None, **values)
    tallies = {name: OutcomeCounts(runs=2, passed=1, failed=1, pass_rate=0.5) for name in ("old", "new")}
    lines = printed(repeats=repeats(targets={"old": one, "new": none}), targets=tallies)
    assert "  old: 50 %, 1 failed, 0 errors · pass@5 1.00 · pass^5 0.50" in lines
    assert "  new: 50 %, 1 failed, 0 errors" in lines


def test_a_quiet_run_has_the_sums_only_and_ascii_is_enough() -> None:
    lines = printed("ascii", verbosity=-1, repeats=repeats(case()))
    assert not any(line.startswith("FLAKY") for line in lines)
    assert lines[1] == "pass@5 0.92 (95 % CI 0.61-0.99) | pass^5 0.41 (95 % CI 0.15-0.72) | 12 cases, 1 flaky"


def test_many_flaky_cases_are_counted() -> None:
    lines = printed(repeats=repeats(*(case(f"c{at}") for at in range(100)), flaky=5_000))
    assert sum(line.startswith("FLAKY ") for line in lines) == 20
    assert "      4,980 more are flaky" in lines


@pytest.mark.parametrize("text", [*HOSTILE, "|" * 1_000], ids=range(len(HOSTILE) + 1))
def test_a_page_names_them_and_nothing_breaks_it(tmp_path: Path, text: str) -> None:
    bad = 3 if len(text) > 10_000 else 59
    runs = [passed(0), *(failed(at, text, case_id=text, eval_id=f"{at}{text}", target=text) for at in range(bad))]
    flaky = repeats(*(case(text, target=text) for _ in range(100)), flaky=150)
    tell(MarkdownFile(tmp_path / "r.md", Redactor({})), runs, repeats=flaky)
    page = (tmp_path / "r.md").read_bytes().decode()
    assert len(page.encode()) <= MAX_PAGE
    named = [line for line in page.splitlines() if line.startswith("- FLAKY ")]
    assert 1 <= len(named) <= 20
    assert all("3/5 passed · " in line for line in named)
    assert f"- {150 - len(named)} more are flaky" in page
    assert f"Repeated: pass@5 0.92 (95 % CI 0.61{DASH}0.99) · " in page
