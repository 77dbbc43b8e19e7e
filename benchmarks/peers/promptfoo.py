"""promptfoo: its echo provider and `contains`, with the results in a JSON file, and in its database or not."""

import json
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

from benchmarks.peers.homes import node_home
from benchmarks.peers.tool import Tool, write_lines

_CONCURRENCY = 50
"""Its default of 4 is slower, and more than 50 brings nothing."""
_QUIET = ("--no-cache", "--no-table", "--no-progress-bar", "--no-share")
_MACHINES = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
_SYSTEMS = {"linux": "linux-{}-gnu", "darwin": "darwin-{}", "win32": "win32-{}-msvc"}


class Promptfoo(Tool):
    """Keeps every eval in a database unless told not to."""

    settings = MappingProxyType({"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1"})

    def __init__(self, *, database: bool) -> None:
        self.as_it_comes = database
        self._options = [] if database else ["--no-write"]
        self.name = " ".join(["promptfoo 0.123", *self._options])

    def install(self) -> None:
        """Bring it, and the newer Node that it needs."""
        _modules()

    def write(self, folder: Path, count: int, *, wrong: bool = False) -> None:
        """A configuration and a dataset."""
        config = {
            "prompts": ["{{question}}"],
            "providers": ["echo"],
            "defaultTest": {"assert": [{"type": "contains", "value": "never said" if wrong else "question"}]},
            "tests": "file://cases.jsonl",
        }
        (folder / "promptfooconfig.json").write_text(json.dumps(config))
        write_lines(folder / "cases.jsonl", ({"vars": {"question": f"question {n}"}} for n in range(count)))

    def command(self) -> list[str]:
        """Its command, called as npm's own link to it would."""
        script = [_modules() / "node" / "bin" / "node", _modules() / "promptfoo" / "dist/src/entrypoint.js"]
        files = ["--config", "promptfooconfig.json", "--output", "results.json"]
        return [*map(str, script), "eval", *files, *_QUIET, *self._options, "--max-concurrency", str(_CONCURRENCY)]

    def verdicts(self, folder: Path) -> Iterator[bool]:
        """From its JSON file."""
        results = json.loads((folder / "results.json").read_text())["results"]
        assert results["stats"]["errors"] == 0
        for row in results["results"]:
            (check,) = row["gradingResult"]["componentResults"]
            yield check["pass"] and row["success"]


def _modules() -> Path:
    machine = _MACHINES.get(platform.machine().lower(), platform.machine())
    # Optional by name, but nothing works without it.
    sqlite = _SYSTEMS.get(sys.platform, sys.platform + "-{}").format(machine)
    return node_home("promptfoo", "promptfoo@0.123.1", "node@22.23.3", f"@libsql/{sqlite}@0.5.29")
