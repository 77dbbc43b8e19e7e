"""Shared by tests of every layer."""

import gc
import os
import signal
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

import agentv
from agentv.evaluators.base import EvaluatorBase
from tests.support.examples import register_profiles
from tests.support.postgres import PostgresServer, remove_shared_server, shared_server
from tests.support.selection import MAX_VARIANTS, is_slow, is_slow_file

# A shell starts background jobs with SIGINT and SIGQUIT ignored, `nohup` ignores SIGHUP, and the commands of the tests
# would inherit that.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.Signals[name] for name in ("SIGHUP", "SIGQUIT") if name in signal.Signals.__members__):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)
# One key of the judge cache for commands and calls, and no file in the home of whoever runs the tests.
os.environ.setdefault("AGENTV_CACHE_KEY", "key of the tests")

register_profiles()

POSTGRES = "AGENTV_TEST_POSTGRES"
"""Environment variable with the file that says where the PostgreSQL server of this test run is."""
STARTS_SERVER = POSTGRES not in os.environ
os.environ.setdefault(POSTGRES, str(Path(tempfile.gettempdir()) / f"agentv-test-postgres-{os.getpid()}"))


@pytest.fixture(scope="session")
def postgres_server() -> PostgresServer:
    """The PostgreSQL server of this test run, which all workers share."""
    return shared_server(Path(os.environ[POSTGRES]))


def pytest_unconfigure() -> None:
    """End what the workers of this test run have shared."""
    if STARTS_SERVER:
        remove_shared_server(Path(os.environ[POSTGRES]))


# Where our own tests are a job of GitHub's, what they run must not take itself for one.
for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE"):
    os.environ.pop(name, None)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no file whose tests are all left out: that takes as long as many tests."""
    is_check = "not slow" in config.getoption("markexpr")
    return True if is_check and collection_path.suffix == ".py" and is_slow_file(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `make check` leaves out."""
    variants: Counter[str] = Counter()
    for item in items:
        if isinstance(item, pytest.Function):
            name = item.nodeid.partition("[")[0]
            variants[name] += 1
            slow = is_slow(item.path, item.function.__name__, *item.fixturenames) or "[postgres" in item.nodeid
            if slow or variants[name] > MAX_VARIANTS:
                item.add_marker(pytest.mark.slow)


def pytest_collection_finish() -> None:
    """Leave the thousands of collected tests out of garbage collection: they took a fifth of the time of all tests."""
    gc.collect()
    gc.freeze()


class Recorder(EvaluatorBase, frozen=True, kw_only=True, dict=True):
    """Keeps what it was handed."""

    type: Literal["recorder"] = "recorder"

    def evaluate(self, ctx: agentv.Context) -> agentv.EvaluatorResult:
        self.__dict__["context"] = ctx
        return self.result("pass", 1.0)


@pytest.fixture
def context_of() -> Callable[..., agentv.Context]:
    """Return the context that evaluators receive for this reply."""

    def record(reply: Any, **options: Any) -> agentv.Context:
        recorder = Recorder()
        agentv.score(reply, [recorder], **options)
        context: agentv.Context = recorder.__dict__["context"]
        return context

    return record


def pytest_xdist_auto_num_workers() -> int:
    """Start one worker more than there are processors: many tests wait for a process or a server."""
    return (os.cpu_count() or 1) + 1
