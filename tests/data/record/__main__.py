"""Record the replies in `../replies` anew: `python tests/data/record [SYSTEM ...]`, or `make record-samples`."""

import json
import sys
from collections import defaultdict
from pathlib import Path

from environments import HERE, SYSTEMS, interpreter, run_script


def record(system: str) -> bool:
    """Record one system; return whether its script ran to its end."""
    python = interpreter(system)
    if not isinstance(python, Path):
        print(f"{system}: its packages are not available here, its replies stay as they are: {python}", flush=True)
        return True
    print(f"{system} ...", flush=True)
    failed = run_script(system, python)
    if failed:
        print(f"{system}: {failed}")
    return not failed


def write_table() -> None:
    """Write the table at the end of the replies' README: one row per system that a script records."""
    replies = HERE.parent / "replies"
    rows: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for path in sorted(replies.glob("*.json")):
        reply = json.loads(path.read_text(encoding="utf-8"))
        if "source" in reply:  # made elsewhere, and listed in SOURCES.md
            continue
        head = (reply["system"], f"{reply['library']} {reply['version']}", reply["made_by"])
        rows[head].append(path.name.removesuffix(".json").partition(".")[2])
    lines = ["| system | library | made by | replies |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(head)} | {', '.join(names)} |" for head, names in sorted(rows.items())]
    page = replies / "README.md"
    kept, mark, _ = page.read_text(encoding="utf-8").partition("<!-- table -->\n")
    page.write_text(kept + mark + "\n" + "\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    """Record each system in an environment of its own, one after the other."""
    chosen = sys.argv[1:] or SYSTEMS
    for unknown in set(chosen) - set(SYSTEMS):
        print(f"{unknown}: no such system; there are {', '.join(SYSTEMS)}")
        return 2
    failed = [system for system in chosen if not record(system)]
    write_table()
    if failed:
        print(f"Not recorded: {', '.join(failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
