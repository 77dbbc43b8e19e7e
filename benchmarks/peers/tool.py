"""The interface of tools that run cases: files, a command, verdicts."""

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from subprocess import DEVNULL, PIPE, run
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

from benchmarks.clock import ROOT

_LAUNCHER = ROOT / "benchmarks" / "launcher.py"
_KEPT = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR")
"""All that a tool sees of the user's environment: neither settings nor keys."""


class Cost(NamedTuple):
    """The time and memory of a process, from its start to its end."""

    seconds: float
    peak: int | None
    """Bytes; `None` where the system does not tell."""


class Tool(ABC):
    """A scripted agent, and one check of each of its answers that asks no model."""

    name: str
    rounds: int = 1
    """The number of timed runs; a tool that needs a minute is timed once."""
    as_it_comes: bool = True
    """True if it runs as its users run it; otherwise a bar against it is informational."""
    settings: Mapping[str, str] = MappingProxyType({})
    """Variables of its own."""

    @abstractmethod
    def install(self) -> None:
        """Have it ready, or fail with `OSError` or `CalledProcessError`."""

    @abstractmethod
    def write(self, folder: Path, count: int, *, wrong: bool = False) -> None:
        """Write what it needs for so many cases, all of which pass, or all of which fail when the check is wrong."""

    @abstractmethod
    def command(self) -> list[str]:
        """The command that runs what was written, in its folder, and writes the results there."""

    def start(self) -> list[str]:
        """The command that only starts it: `--help` where there is a command, the import of a library."""
        command = self.command()
        return [*command[: command.index("eval")], "--help"]

    @abstractmethod
    def verdicts(self, folder: Path) -> Iterator[bool]:
        """Return True if each case passed; fails unless exactly one check was made of it."""

    def run(self, count: int, *, wrong: bool = False) -> Cost:
        """Write, run, and see that every case has the verdict that it must have."""
        with TemporaryDirectory() as name:
            folder = Path(name)
            self.write(folder, count, wrong=wrong)
            code, cost = launch(self.command(), folder, self.settings)
            if code and not wrong:
                said = (folder / "stderr").read_text(errors="replace").strip()
                msg = f"it ended with {code}: {said or 'nothing said'}"
                raise RuntimeError(msg)
            verdicts = list(self.verdicts(folder))
        assert len(verdicts) == count, f"{self.name}: {len(verdicts)} verdicts on {count} cases"
        assert set(verdicts) == {not wrong}, f"{self.name} is mistaken about some cases"
        return cost


def launch(command: list[str], folder: Path, settings: Mapping[str, str]) -> tuple[int, Cost]:
    """Run a command in a folder that is also its home, and say how it ended and what it took."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environment = {**kept, "HOME": str(folder), "USERPROFILE": str(folder), **settings}
    launcher = [sys.executable, "-I", "-S", str(_LAUNCHER), *command]
    with (folder / "stderr").open("wb") as stderr:
        done = run(launcher, check=True, cwd=folder, env=environment, stdin=DEVNULL, stdout=PIPE, stderr=stderr)
    told = json.loads(done.stdout)
    return told["code"], Cost(told["seconds"], told["peak"])


def write_lines(path: Path, rows: Iterable[Any]) -> None:
    """Write JSON, one row a line."""
    with path.open("w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def read_lines(path: Path) -> Iterator[Any]:
    """Read JSON, one row a line."""
    with path.open() as file:
        yield from map(json.loads, file)
