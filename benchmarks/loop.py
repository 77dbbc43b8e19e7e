"""Cases per second of `agentv eval`, from start to exit, and of other tools."""

import subprocess
import sys
from statistics import median

from benchmarks.ours import Agentv
from benchmarks.peers.homes import reason
from benchmarks.peers.npm_agentv import NpmAgentv
from benchmarks.peers.promptfoo import Promptfoo
from benchmarks.peers.pydantic_evals_peer import PydanticEvals
from benchmarks.peers.tool import Cost, Tool
from benchmarks.table import Bar, Row

_COUNT = 10_000
_FEW = 10
_BARS: dict[Tool, Bar] = {
    NpmAgentv(): Bar("at least", 15),
    Promptfoo(database=True): Bar("at least", 15),
    Promptfoo(database=False): Bar("at least", 15),
    PydanticEvals(): Bar("at least", 2),
}
_UNKEPT = Bar("at least", 2.8)
_WAITING, _DELAY_MS, _AT_ONCE = 1_000, 50, 50
_WAITS = Bar("at most", 1.25)
_ROUNDS = 5


def measure() -> list[Row]:
    """The same number of cases for all, then cases that wait."""
    _check(Agentv())
    rows = [row for peer, bar in _BARS.items() for row in _against(peer, bar)]
    unkept = Agentv(options=("--no-store",))
    return [*rows, *_against(PydanticEvals(), _UNKEPT, unkept, ", without the run store"), _unkept(), _waiting()]


def _against(peer: Tool, bar: Bar, tool: Agentv | None = None, variant: str = "") -> list[Row]:
    """Ours and the peer's, taking turns, ours first and last."""
    tool = tool or Agentv()
    ours, theirs = [], []
    if _ready(peer):
        ours.append(tool.run(_COUNT))
        for _ in range(peer.rounds):
            theirs.append(peer.run(_COUNT))
            ours.append(tool.run(_COUNT))
    speed = Row(
        name=f"loop: {_COUNT:,} cases{variant}, against {peer.name}",
        unit="per second",
        ours=_COUNT / _seconds(ours) if ours else None,
        other=_COUNT / _seconds(theirs) if theirs else None,
        bar=bar,
        gates=peer.as_it_comes,
        runs=_rates(ours) if peer.rounds > 1 else (),
        other_runs=_rates(theirs) if peer.rounds > 1 else (),
    )
    peak = Row(
        name=f"loop: {_COUNT:,} cases{variant}, peak, {peer.name}", unit="bytes", ours=_peak(ours), other=_peak(theirs)
    )
    return [speed, peak]


def _ready(peer: Tool) -> bool:
    try:
        peer.install()
        _check(peer)
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        # To the terminal only: an installer's words may name an index, and the results are committed.
        print(f"{peer.name} cannot be had, so nothing is measured against it: {reason(error)}", file=sys.stderr)
        return False
    return True


def _check(tool: Tool) -> None:
    """See that its check decides, case by case; `run` sees the same of every run that is timed."""
    tool.run(_FEW, wrong=True)
    tool.run(_FEW)


def _seconds(costs: list[Cost]) -> float:
    return median(cost.seconds for cost in costs)


def _rates(costs: list[Cost]) -> tuple[float, ...]:
    return tuple([_COUNT / cost.seconds for cost in costs])


def _peak(costs: list[Cost]) -> float | None:
    peaks = [cost.peak for cost in costs if cost.peak is not None]
    return max(peaks, default=None)


def _unkept() -> Row:
    """The cost of the run store; no peer except promptfoo keeps anything that could be resumed."""
    tools = Agentv(options=("--no-store",)), Agentv()
    pairs = [[tool.run(_COUNT) for tool in tools] for _ in range(_ROUNDS)]
    bare, kept = (list(costs) for costs in zip(*pairs, strict=True))
    return Row(
        name=f"loop: {_COUNT:,} cases, without the run store, against with it",
        unit="per second",
        ours=_COUNT / _seconds(bare),
        other=_COUNT / _seconds(kept),
        runs=_rates(bare),
        other_runs=_rates(kept),
    )


def _waiting() -> Row:
    tool = Agentv(delay_ms=_DELAY_MS, options=("--max-concurrency", str(_AT_ONCE)))
    costs = [tool.run(_WAITING) for _ in range(_ROUNDS)]
    return Row(
        name=f"loop: {_WAITING:,} cases of {_DELAY_MS} ms, {_AT_ONCE} at once, against the ideal",
        unit="seconds",
        ours=_seconds(costs),
        other=_WAITING * _DELAY_MS / 1_000 / _AT_ONCE,
        bar=_WAITS,
        runs=tuple([cost.seconds for cost in costs]),
    )
