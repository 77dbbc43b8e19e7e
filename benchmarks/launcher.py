"""Time and memory of a command: a program that does nothing else.

Linux counts what a parent holds towards the peak of its child, and the benchmarks hold more than the tools do.
"""

import json
import subprocess
import sys
from threading import Timer
from time import perf_counter

_LIMIT = 600
"""Seconds: a tool that hangs must not hang the benchmarks."""


def main(command: list[str]) -> None:
    """Run it, its output unseen, and print what it took."""
    start = perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    limit = Timer(_LIMIT, process.kill)  # a wait with a timeout of its own looks only every 50 ms
    limit.start()
    code = process.wait()
    seconds = perf_counter() - start
    limit.cancel()
    print(json.dumps({"code": code, "seconds": seconds, "peak": _peak()}))


def _peak() -> int | None:
    if sys.platform == "win32":
        return None
    from resource import RUSAGE_CHILDREN, getrusage  # noqa: PLC0415 - not on Windows

    return getrusage(RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main(sys.argv[1:])
