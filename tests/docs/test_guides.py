"""The guides and the reference show what happens: their examples run, in order, in a folder of their own.

- `<!-- file: NAME -->` before a block: it is written to that file.
- `<!-- file: NAME, in tests: PATH -->` before a block: that file of this repository is written instead.
- `<!-- patch: NAME -->` before a `diff` block: it is applied to that file.
- `<!-- cases -->`, `<!-- targets -->` before a `yaml` block: an eval with these cases or targets is valid.
- `<!-- same as: PATH -->` before a block: it is part of that file of this repository.
- `<!-- yaml -->` before a `yaml` block: it is YAML for somebody else.
- `console`: each `$ command` is run and must print what stands below it; a line `...` stands for any lines.
- `<!-- server -->` before a `console` block: its one command is started, waited for until it prints what stands below
  it, and stopped at the end of the page.
- `json`, `jsonl`: it is JSON.

`AGENTV_REWRITE_DOCS=1 pytest tests/docs/test_guides.py` writes what was printed into the pages; read the diff.
"""

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from agentv.spec.loader import load_evals
from tests.support.in_process import call_main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    DOCS / "guide" / "getting-started.md",
    DOCS / "guide" / "from-trace-to-output-messages.md",
    DOCS / "guide" / "python.md",
    DOCS / "guide" / "convert-promptfoo.md",
    DOCS / "guide" / "convert-openai-evals.md",
    DOCS / "guide" / "convert-adk.md",
    DOCS / "guide" / "convert-agentv.md",
    DOCS / "guide" / "convert-evalstudio.md",
    DOCS / "guide" / "pytest.md",
    DOCS / "guide" / "ci.md",
    DOCS / "guide" / "datasets.md",
    DOCS / "guide" / "own-evaluators.md",
    DOCS / "guide" / "judges.md",
    DOCS / "guide" / "own-providers.md",
    DOCS / "guide" / "rate-limits-and-cost.md",
    DOCS / "guide" / "runs.md",
    DOCS / "guide" / "migrating-runs.md",
    DOCS / "guide" / "conversions.md",
    DOCS / "guide" / "repeats-and-comparing.md",
    DOCS / "guide" / "mutation.md",
    DOCS / "guide" / "coverage.md",
    DOCS / "guide" / "traces.md",
    DOCS / "guide" / "simulated-users.md",
    DOCS / "reference" / "command-line.md",
    DOCS / "reference" / "commands-for-projects.md",
    DOCS / "reference" / "commands-for-results.md",
    DOCS / "reference" / "conversation-cases.md",
    DOCS / "reference" / "dataset-files.md",
    DOCS / "reference" / "eval-file.md",
    DOCS / "reference" / "providers.md",
    *sorted((DOCS / "reference" / "providers").glob("*.md")),
    DOCS / "reference" / "result-formats.md",
    DOCS / "reference" / "results.md",
]
REWRITE = bool(os.environ.get("AGENTV_REWRITE_DOCS"))
BLOCK = re.compile(r"^(?:<!-- ([^\n]*) -->\n)?```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOCK = "targets: [{name: example, provider: mock}]\n"
CASE = "cases: [{id: example, input: Hello, evaluators: [{type: tool_trajectory, forbidden: [x]}]}]\n"
VARYING = {
    r"\d{8}T\d{6}-[0-9a-f]{6}": "EXECUTION",
    r"\b[0-9a-f]{16}\b": "KEY",
    r"\d{4}-\d\d-\d\dT[\d:.]+Z": "TIME",
    r'(?<="latency_ms":)( ?)[\d.]+': r"\g<1>0",
    r'(?<="duration_ms":)( ?)[\d.]+': r"\g<1>0",
    r'(?<="(?:mean)":)( ?)[\d.]+': r"\g<1>0",
    r'(?<="(?:p50|p95|max)":)( ?)[\d.]+': r"\g<1>0",
    r'(?<=\btime=")[\d.]+': "0",
    r'(?<=\btimestamp=")[\d:T-]+': "TIME",
    r"\b\d+(?:\.\d+)? m?s\b": "0 s",
    r"\b\d+\.\d+s\b": "0s",
    r"\bmax_ms: [\d.]+": "max_ms: 0",
    r"(?m)^agentv: \d+ of \d+.*\n": "",  # progress, of what takes long
    r"(?m)^\[[^\n]*\] loaded in .*\n": "",  # as above
}
"""Parts that differ in every run."""


class Block(NamedTuple):
    """A fenced block, and the comment before it."""

    marker: str
    language: str
    text: str
    start: int
    """The position of its text on the page."""


class Command(NamedTuple):
    """A command, and what the page says it prints."""

    line: str
    shown: str


def blocks(text: str) -> list[Block]:
    return [Block(found[1] or "", found[2], found[3], found.start(3)) for found in BLOCK.finditer(text)]


def commands(block: Block) -> Iterator[Command]:
    for found in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block.text, re.MULTILINE):
        yield Command(found[1], found[2])


def normal(text: str) -> str:
    for pattern, stand_in in VARYING.items():
        text = re.sub(pattern, stand_in, text)
    return text


def fits(shown: str, printed: str) -> bool:
    lines = normal(shown).splitlines(keepends=True)
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line) for line in lines)
    return re.fullmatch(pattern, normal(printed)) is not None


PLAIN = re.compile(r"agentv [\w\s./=:@%,+-]+")
"""Command that needs no shell: it is called in this process."""


class Shell:
    """Runs the commands of one page in its folder."""

    def __init__(self, folder: Path, *paths: Path, **env: str) -> None:
        self._folder = folder
        self._code = 0
        self._servers: list[subprocess.Popen[str]] = []
        self._env = {
            "PATH": os.pathsep.join([*map(str, paths or [Path(sys.executable).parent]), "/usr/bin", "/bin"]),
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "PYTHONIOENCODING": "utf-8",
            "PYTHONDONTWRITEBYTECODE": "1",
            # Of all plugins that may be installed here, ours alone.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTEST_ADDOPTS": "-p agentv",
            **env,
        }

    def run(self, line: str) -> str:
        """Return what the command prints on stdout and stderr; `$?` is the exit code of the previous one."""
        if self._env["PATH"].startswith(str(Path(sys.executable).parent)) and PLAIN.fullmatch(line):
            self._code, out, _ = call_main(line.split()[1:], self._folder, self._env, merged=True)
            return out.decode().replace(str(self._folder), "/project")
        done = subprocess.run(
            ["sh", "-c", f"(exit {self._code})\n{line}"],
            cwd=self._folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=30,
            check=False,
        )
        self._code = done.returncode
        return done.stdout.replace(str(self._folder), "/project")

    def start(self, line: str, shown: str) -> str:
        """Start a server and read what it prints, as many lines as are shown; its end is waited for by `stop`."""
        server = subprocess.Popen(
            line.split(),
            cwd=self._folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        self._servers.append(server)
        assert server.stdout is not None
        return "".join(server.stdout.readline() for _ in shown.splitlines())

    def stop(self) -> None:
        """End the servers."""
        for server in self._servers:
            server.terminate()
            server.communicate()


def patched(text: str, diff: str) -> str:
    """The text with the one place that a diff describes changed."""
    lines = [line for line in diff.splitlines(keepends=True) if not line.startswith("@@")]
    before = "".join(line[1:] for line in lines if line[0] in " -")
    after = "".join(line[1:] for line in lines if line[0] in " +")
    assert text.count(before) == 1, f"the diff fits {text.count(before)} places:\n{before}"
    return text.replace(before, after)


def check_snippet(block: Block, folder: Path) -> None:
    """Hold a block that is not written to a file against what it is part of."""
    if block.language in ("json", "jsonl"):
        for text in block.text.splitlines() if block.language == "jsonl" else [block.text]:
            json.loads(text)
        return
    data = f"{block.marker}:\n{textwrap.indent(block.text, '  ')}"
    if block.marker in ("cases", "targets"):
        path = folder / "snippet.eval.yaml"
        path.write_text(data + (MOCK if block.marker == "cases" else CASE), encoding="utf-8")
        load_evals([path])
        path.unlink()
    elif block.marker == "yaml":
        yaml.safe_load(block.text)


def run_page(text: str, folder: Path, shell: Shell | None = None) -> tuple[str, list[str]]:
    """The page with what was really printed, and where that is something else than it shows."""
    shell = shell or Shell(folder)
    try:
        return _run_blocks(text, folder, shell)
    finally:
        shell.stop()


def _run_blocks(text: str, folder: Path, shell: Shell) -> tuple[str, list[str]]:
    wrong: list[str] = []
    moved = 0
    for block in blocks(text):
        kind, _, name = block.marker.partition(": ")
        if kind == "file":
            name, _, stand_in = name.partition(", in tests: ")
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((ROOT / stand_in).read_text(encoding="utf-8") if stand_in else block.text, encoding="utf-8")
        elif kind == "patch":
            path = folder / name
            path.write_text(patched(path.read_text(encoding="utf-8"), block.text), encoding="utf-8")
        elif kind == "same as":
            assert block.text in (ROOT / name).read_text(encoding="utf-8"), f"this is not in {name}:\n{block.text}"
        elif block.language == "console":
            rewritten = ""
            for command in commands(block):
                printed = shell.start(*command) if kind == "server" else shell.run(command.line)
                same = fits(command.shown, printed)
                rewritten += f"$ {command.line}\n{command.shown if same else printed}"
                if not same:
                    wrong.append(f"$ {command.line}\n--- the page shows\n{command.shown}--- printed\n{printed}")
            start = block.start + moved
            text = text[:start] + rewritten + text[start + len(block.text) :]
            moved += len(rewritten) - len(block.text)
        else:
            check_snippet(block, folder)
    return text, wrong


@pytest.mark.skipif(sys.platform == "win32", reason="the examples are for a POSIX shell")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_do_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    printed, wrong = run_page(text, tmp_path)
    if REWRITE and wrong:
        page.write_text(printed, encoding="utf-8")
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_example_is_run(page: Path) -> None:
    known = re.compile(r"(file|patch|same as): .+|cases|targets|evaluator|yaml|server|")
    for block in blocks(page.read_text(encoding="utf-8")):
        assert known.fullmatch(block.marker), block.marker
        needs_marker = block.language in ("yaml", "python", "toml", "diff")
        assert block.marker or not needs_marker, f"this {block.language} is not run:\n{block.text}"
        if block.language == "console":
            assert block.text.startswith("$ "), block.text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_lines_are_short(page: Path) -> None:
    def kept(block: re.Match[str]) -> str:
        return "" if block[2] in ("console", "jsonl") else block[3]

    text = BLOCK.sub(kept, page.read_text(encoding="utf-8"))
    assert [line for line in text.splitlines() if len(line) > 120 and not line.startswith("|")] == []


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of this page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", sorted(DOCS.glob("*/**/*.md")), ids=lambda page: page.stem)
def test_every_link_to_a_heading_leads_to_one(page: Path) -> None:
    for name, anchor in re.findall(r"\]\(([^)#]*)#([^)]+)\)", page.read_text(encoding="utf-8")):
        assert anchor in anchors(page.parent / name if name else page), f"{name}#{anchor}"
