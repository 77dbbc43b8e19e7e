"""The pytest plugin: `pytest --agentv` collects evals, and the fixture `agentv_run` runs one case from a Python test.

pytest imports this module in every environment that has agentv installed, so slow imports stand in the functions.
"""

from __future__ import annotations

from argparse import ArgumentTypeError
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.pytest_plugin.fixture import RunCase

MAX_COUNT = 100_000
MAX_SECONDS = 86_400


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options for collected evals."""
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
    group.addoption(
        "--agentv-persona",
        action="append",
        default=[],
        metavar="GLOB",
        help="Collect cases of personas whose id fits, `default` for none; may be given again.",
    )
    group.addoption("--agentv-repeat", type=_count, metavar="N", help="Run every case N times.")
    group.addoption("--agentv-timeout", type=_seconds, metavar="SECONDS", help="Limit of one attempt; 120 by default.")
    group.addoption(
        "--agentv-max-concurrency",
        type=_count,
        metavar="N",
        help="Runs of one eval under way at once; 10 by default.",
    )
    parser.addini("agentv", "Collect *.eval.yaml, as with --agentv.", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of collected cases."""
    config.addinivalue_line("markers", "agentv: a case of an eval that `pytest --agentv` collected")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return a collector for an eval file if collecting evals is enabled."""
    config = parent.config
    if not (config.getoption("agentv") or config.getini("agentv")):
        return None
    from agentv.spec.discovery import SUFFIXES  # noqa: PLC0415 - most pytest runs collect no evals

    if not file_path.name.endswith(SUFFIXES):
        return None
    from agentv.pytest_plugin import collect  # noqa: PLC0415 - as above

    if not config.pluginmanager.is_registered(collect):
        config.pluginmanager.register(collect, "agentv-evals")
    return collect.EvalFile.from_parent(parent, path=file_path)


@pytest.fixture(scope="session")
def agentv_run(pytestconfig: pytest.Config) -> RunCase:
    """Run one case: `agentv_run("support.eval.yaml", case="refund", target=my_function).assert_passed()`."""
    from agentv.pytest_plugin.fixture import RunCase  # noqa: PLC0415 - most pytest runs do not use the fixture

    return RunCase(pytestconfig.rootpath)


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_COUNT:
        msg = f"expected a number from 1 to {MAX_COUNT}, got {text!r}"
        raise ArgumentTypeError(msg)
    return int(text)


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= MAX_SECONDS:
        msg = f"expected seconds, more than 0 and {MAX_SECONDS} at most; got {text!r}"
        raise ArgumentTypeError(msg)
    return number
