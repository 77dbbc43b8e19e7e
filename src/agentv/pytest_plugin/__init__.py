"""Evals as tests: `pytest --agentv` collects them, and the fixture `agentv_run` runs one case from a Python test.

Every pytest run of anybody who has agentv installed imports this file: what costs time is imported by its first user.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.pytest_plugin.fixture import RunCase

MOST_TIMES = 100_000
MOST_SECONDS = 86_400


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, all of which are about evals that are collected."""
    group = parser.getgroup("agentv", "evals of AI agents")
    group.addoption("--agentv", action="store_true", help="Collect *.eval.yaml: a test for each case and target.")
    group.addoption(
        "--agentv-target",
        action="append",
        default=[],
        metavar="NAME",
        help="Test this target instead of those that the evals choose; may be given again.",
    )
    group.addoption(
        "--agentv-case",
        action="append",
        default=[],
        metavar="GLOB",
        help="Collect cases whose id fits; may be given again.",
    )
    group.addoption("--agentv-repeat", type=_times, metavar="N", help="Run every case N times.")
    group.addoption("--agentv-timeout", type=_seconds, metavar="SECONDS", help="Limit of one attempt; 120 by default.")
    group.addoption(
        "--agentv-max-concurrency",
        type=_times,
        metavar="N",
        help="Runs of one eval under way at once; 10 by default.",
    )
    parser.addini("agentv", "Collect *.eval.yaml, as with --agentv.", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker of every collected case known."""
    config.addinivalue_line("markers", "agentv: a case of an eval that `pytest --agentv` collected")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """An eval, if evals are asked for."""
    config = parent.config
    if not (config.getoption("agentv") or config.getini("agentv")):
        return None
    from agentv.spec.discovery import SUFFIXES  # noqa: PLC0415 - most runs of pytest want no evals

    if not file_path.name.endswith(SUFFIXES):
        return None
    from agentv.pytest_plugin import collect  # noqa: PLC0415 - as above

    if not config.pluginmanager.is_registered(collect):
        config.pluginmanager.register(collect, "agentv-evals")
    return collect.EvalFile.from_parent(parent, path=file_path)


@pytest.fixture(scope="session")
def agentv_run(pytestconfig: pytest.Config) -> RunCase:
    """Run one case: `agentv_run("support.eval.yaml", case="refund", target=my_function).assert_passed()`."""
    from agentv.pytest_plugin.fixture import RunCase  # noqa: PLC0415 - most tests run no case

    return RunCase(pytestconfig.rootpath)


def _times(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MOST_TIMES:
        msg = f"expected a number from 1 to {MOST_TIMES}, got {text!r}"
        raise ArgumentTypeError(msg)
    return int(text)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= MOST_SECONDS:
        msg = f"expected seconds, more than 0 and {MOST_SECONDS} at most; got {text!r}"
        raise ArgumentTypeError(msg)
    return number
