"""Histograms of the numbers of runs."""

from typing import Any

from agentv.web.charts import histograms


def latencies(*runs: tuple[str, float]) -> dict[str, Any]:
    """Return the latency chart of runs with these verdicts and times."""
    (chart,) = histograms([(status, None, time, None, None) for status, time in runs])
    return chart


def test_the_times_of_errors_are_drawn_but_do_not_count_for_the_median() -> None:
    chart = latencies(("pass", 100.0), ("fail", 300.0), ("pass", 200.0), *[("error", 30_000.0)] * 9)
    assert (chart["median"], chart["p95"], chart["max"]) == (200.0, 300.0, 30_000.0)
    assert sum(each["error"] for each in chart["bins"]) == 9


def test_where_all_runs_are_errors_their_times_count() -> None:
    assert latencies(("error", 10.0), ("error", 20.0), ("error", 30.0))["median"] == 20.0


def test_values_of_damaged_rows_are_left_out() -> None:
    damaged: list[Any] = ["x", b"y", float("inf")]
    numbers = [*damaged, 10.0, None]
    (chart,) = histograms([("pass", None, number, None, None) for number in numbers])
    assert (chart["median"], chart["missing"]) == (10.0, 4)
    assert histograms([("fail", number, None, None, None) for number in damaged]) == []
