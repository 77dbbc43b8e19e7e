"""Ours beside its peers: seconds to start, for ten cases and for a thousand, and the memory of the thousand."""

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import agentv
from benchmarks.ours import Agentv
from benchmarks.peers.azure_peer import AzureEvaluation
from benchmarks.peers.deepeval_peer import DeepEval
from benchmarks.peers.homes import reason
from benchmarks.peers.inspect_peer import InspectAI
from benchmarks.peers.npm_agentv import NpmAgentv
from benchmarks.peers.promptfoo import Promptfoo
from benchmarks.peers.pydantic_evals_peer import PydanticEvals
from benchmarks.peers.tool import Tool, launch
from benchmarks.table import RESULTS

_FEW, _MANY = 10, 1_000
_SHORT, _LONG = 5, 3
"""The number of timed runs of each tool."""
_SLOW = 60
"""Seconds: what takes longer than this is run once, as more rounds would show the same."""
_PEERS: tuple[Tool, ...] = (
    NpmAgentv(),
    PydanticEvals(),
    Promptfoo(database=True),
    Promptfoo(database=False),
    DeepEval(),
    InspectAI(),
    AzureEvaluation(),
)
_BUSY = 0.5
"""Load a core above which other work counts."""
_HEAD = ("", "`--help`", f"{_FEW} cases", f"{_MANY:,} cases", f"peak MB at {_MANY:,}")
_NOT = "not measured"
_FAULTS = (OSError, subprocess.CalledProcessError, RuntimeError, AssertionError, LookupError, TypeError, ValueError)
"""Of a peer: not to be had, not to be run, or with results that are not what they must be."""


class _Fault(NamedTuple):
    """The reason why a peer is not measured."""

    name: str
    stage: str
    said: str
    """For the terminal only: an installer's words may name an index, and the results are committed."""


def main() -> int:
    """Install all, measure one after the other, show, and keep."""
    load = _load()
    faults = [fault for peer in _PEERS if (fault := _install(peer))]
    missing = {fault.name for fault in faults}
    lines = [_floor(node=NpmAgentv.name not in missing), (f"**agentv {agentv.__version__}**", *_figures(Agentv()))]
    for peer in _PEERS:
        cells: Sequence[str] = [_NOT] * (len(_HEAD) - 1)
        if peer.name not in missing:
            try:
                cells = _figures(peer)
            except _FAULTS as error:
                faults.append(_Fault(peer.name, "run", reason(error)))
        lines.append((peer.name, *cells))
    _show(lines, faults, load)
    return 0


def _install(peer: Tool) -> _Fault | None:
    try:
        peer.install()
    except _FAULTS as error:
        return _Fault(peer.name, "installed", reason(error))
    return None


def _floor(*, node: bool) -> tuple[str, ...]:
    bare = [_shown(_starts([sys.executable, "-c", "pass"]))]
    bare += [_shown(_starts([NpmAgentv().command()[0], "-e", "0"])) if node else _NOT]
    return ("floor: `python -c pass` / `node -e 0`", " / ".join(bare), "", "", "")


def _figures(tool: Tool) -> tuple[str, ...]:
    """The cells of a tool, whose check is first seen to fail where it must."""
    print(f"{tool.name} ...", file=sys.stderr)
    tool.run(_FEW, wrong=True)
    command = tool.start()
    start = _shown(_starts(command, tool))
    few = median(tool.run(_FEW).seconds for _ in range(_SHORT))
    many = [tool.run(_MANY)]
    if many[0].seconds < _SLOW:
        many += [tool.run(_MANY) for _ in range(_LONG - 1)]
    peaks = [cost.peak for cost in many if cost.peak is not None]
    return (
        start if command[-1] == "--help" else f"import {start}",
        _shown(few),
        _shown(median(cost.seconds for cost in many)),
        f"{max(peaks) / 1e6:.0f}" if peaks else _NOT,
    )


def _starts(command: list[str], tool: Tool | None = None) -> float:
    """Seconds from the start of a command to its end, after one that warms the disk cache."""
    times = []
    for _ in range(_SHORT + 1):
        with TemporaryDirectory() as folder:
            code, cost = launch(command, Path(folder), tool.settings if tool else {})
        if code:
            msg = f"its start ended with {code}"
            raise RuntimeError(msg)
        times.append(cost.seconds)
    return median(times[1:])


def _show(lines: Sequence[Sequence[str]], faults: Sequence[_Fault], load: float | None) -> None:
    """Print the table, and keep it with what machine this is, but not which."""
    rule = ["---", *["---:"] * (len(_HEAD) - 1)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in [_HEAD, rule, *lines])
    cores = os.cpu_count() or 1
    facts = [
        f"python {platform.python_implementation()} {platform.python_version()}",
        f"system {platform.system()} {platform.machine()}",
        f"cores {cores}",
        f"date {datetime.now(UTC).date().isoformat()}",
        *([] if load is None else [f"load at the start {load:.1f}"]),
    ]
    busy = load is not None and load > _BUSY * cores
    warning = ["**Other work was going on: the figures are too high, and not all alike.**"] if busy else []
    notes = [f"{fault.name}: {_NOT}, as it could not be {fault.stage} here." for fault in faults]
    head = [
        "# Side by side",
        f"{', '.join(facts)}. Seconds, medians. How to read this: [README](../README.md#side-by-side).",
    ]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "peers.md").write_text("\n\n".join([*head, *warning, table, *notes]) + "\n")
    said = [f"{note} It said: {fault.said}" for note, fault in zip(notes, faults, strict=True)]
    print("\n\n".join([*warning, table, *said]))


def _load() -> float | None:
    """Return the load average of the last minute, if the system reports it."""
    return None if sys.platform == "win32" else os.getloadavg()[0]


def _shown(seconds: float) -> str:
    if seconds < 0.1:  # noqa: PLR2004 - digits enough to tell figures apart
        return f"{seconds:.3f}"
    return f"{seconds:.2f}" if seconds < 10 else f"{seconds:.1f}"  # noqa: PLR2004 - likewise


if __name__ == "__main__":
    sys.exit(main())
