"""Memory for many scored replies and many cases."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import agentv
from benchmarks.clock import ROOT, child_environment
from benchmarks.conversations import Json, compact, expect, make_calls, wrong_call
from benchmarks.ours import Agentv
from benchmarks.table import Bar, Row

_FEW, _MANY = 1_000, 100_000
_BAR = Bar("at most", 1.3)
_ROUNDS = 5
_STATUS = Path("/proc/self/status")
_KILO = 1024


def measure() -> list[Row]:
    """The highest memory of two processes, one of which does a hundred times as much."""
    scored = (None, None) if sys.platform == "win32" else (_peak_of(_MANY), _peak_of(_FEW))
    name = f"memory: score_many over {_MANY:,} replies against {_FEW:,}"
    return [Row(name=name, unit="bytes", ours=scored[0], other=scored[1], bar=_BAR), _cases()]


def _cases() -> Row:
    """The highest peak of the many, and the median of the few."""
    pairs = [(Agentv().run(_MANY).peak, Agentv().run(_FEW).peak) for _ in range(_ROUNDS)]
    many, few = [peak for peak, _ in pairs if peak is not None], [peak for _, peak in pairs if peak is not None]
    return Row(
        name=f"memory: agentv eval of {_MANY:,} cases against {_FEW:,}",
        unit="bytes",
        ours=max(many, default=None),
        other=median(few) if few else None,
        bar=_BAR,
        runs=tuple(many),
        other_runs=tuple(few),
    )


def _peak_of(count: int) -> int:
    command = [sys.executable, "-m", "benchmarks.memory", str(count)]
    done = subprocess.run(command, check=True, cwd=ROOT, env=child_environment(), capture_output=True, text=True)
    return int(done.stdout)


def _replies(count: int) -> Iterator[list[Json]]:
    for number in range(count):
        yield compact(make_calls(0, number, wrong_call(number)))


def peak() -> int:
    """The highest memory of this process, in bytes."""
    if _STATUS.exists():
        # Linux counts what the parent held when it started us towards `ru_maxrss`; this it does not.
        line = next(line for line in _STATUS.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * _KILO
    from resource import RUSAGE_SELF, getrusage  # noqa: PLC0415 - not on Windows

    return getrusage(RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else _KILO)


def _main(count: int) -> None:
    trajectory = {"type": "tool_trajectory", "mode": "in_order", "expected": expect(make_calls(0, 0))}
    results = agentv.score_many(_replies(count), evaluators=[trajectory])
    passed = sum(result.status == "pass" for result in results)
    assert 0 < passed < count
    print(peak())


if __name__ == "__main__":
    _main(int(sys.argv[1]))
