"""Measure all groups, or the named ones, and fail unless every bar is met."""

import argparse
import sys

from benchmarks import (
    cli_modes,
    convert,
    dataset,
    decoding,
    display,
    evaluators,
    executors,
    growth,
    loop,
    memory,
    mutation,
    providers,
    server_store,
    startup,
    store,
    throughput,
    traces,
    turns,
    viewer,
)
from benchmarks.clock import timed
from benchmarks.table import keep, report

_GROUPS = {
    "startup": startup.measure,
    "decoding": decoding.measure,
    "evaluators": evaluators.measure,
    "growth": growth.measure,
    "throughput": throughput.measure,
    "loop": loop.measure,
    "display": display.measure,
    "turns": turns.measure,
    "traces": traces.measure,
    "providers": providers.measure,
    "cli": cli_modes.measure,
    "memory": memory.measure,
    "dataset": dataset.measure,
    "convert": convert.measure,
    "store": store.measure,
    "server_store": server_store.measure,
    "viewer": viewer.measure,
    "mutation": mutation.measure,
    "executors": executors.measure,
}


def main() -> int:
    """Measure, show, and keep what a whole run found."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="group", help=f"some of {', '.join(_GROUPS)}; all by default")
    chosen = parser.parse_args().groups
    unknown = [name for name in chosen if name not in _GROUPS]
    if unknown:
        parser.error(f"unknown group {unknown[0]!r}; expected some of {', '.join(_GROUPS)}")
    rows = []
    for name, measure in _GROUPS.items():
        if not chosen or name in chosen:
            print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
            seconds, found = timed(measure)
            print(f"{seconds:.0f} s", file=sys.stderr)
            rows += found
    print(*report(rows), sep="\n\n")
    if not chosen:  # a part of the table must not replace the whole
        keep(rows)
    return int(any(row.failed or row.unmeasured for row in rows))


if __name__ == "__main__":
    sys.exit(main())
