"""`agentv init`: create a small project that runs without an API key."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import click

from agentv.cli.options import JSON
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_usage
from agentv.spec.schema import schema_text

TEMPLATES = Path(__file__).parent / "template"
EXAMPLES = {
    "support": ("agentv.yaml", "agent.py", "support.eval.yaml"),
    "conversation": ("conversation/agentv.yaml", "conversation/agent.py", "conversation/refund.eval.yaml"),
}
"""Templates of the files of each example."""
SCHEMA = Path(".agentv", "eval.schema.json")
AGENTS = "AGENTS.md"
BEGIN, END = "<!-- agentv:begin -->", "<!-- agentv:end -->"
"""Markers of the section in AGENTS.md: what is between them is replaced by the next `agentv init --agents`."""


class ProjectFile(NamedTuple):
    """A file that the command wrote, or left as it was."""

    file: str
    action: str
    """`created`, `updated` or `unchanged`."""


class AgentsSection(NamedTuple):
    """The content of AGENTS.md around the section."""

    text: str | None
    """The whole content; `None` if there is no such file."""
    before: str
    after: str


@click.command()
@click.argument("folder", default=".", metavar="[DIR]", type=click.Path(file_okay=False))
@click.option(
    "--example",
    type=click.Choice(list(EXAMPLES)),
    default="support",
    show_default=True,
    help="The project to create: an agent that answers single questions, or one that holds conversations.",
)
@click.option("--force", is_flag=True, help="Overwrite files of the same names.")
@click.option(
    "--agents", is_flag=True, help="Also write a section for coding agents in AGENTS.md; a project that is there stays."
)
@JSON
def command(folder: str, example: str, *, force: bool, agents: bool, as_json: bool) -> None:
    """Create a small project in DIR (here by default): an agent with tools, and an eval with one failure."""
    base = Path(folder)
    files: list[ProjectFile] = []
    section = _section_of(base / AGENTS) if agents else None
    try:
        if force or section is None or not _has_project(base):
            files += _write_project(base, example, force=force)
        if section is not None:
            files.append(_write_section(base / AGENTS, section))
    except OSError as error:  # the error of a full disk has no file name
        fail_usage(f"{error.filename or base} cannot be written: {error.strerror}")
    following = f"agentv eval {shlex.quote(folder)}"
    if as_json:
        print_json({"schema": "agentv.init/1", "files": [file._asdict() for file in files], "next": following})
        return
    for file in files:
        note = " (your editor completes and checks evals with it)" if Path(file.file) == base / SCHEMA else ""
        click.echo(f"{file.action} {file.file}{note}")
    click.echo(f"next: {following}")


def _has_project(base: Path) -> bool:
    """Return whether a folder has settings of agentv, or evals in it or in its subfolders."""
    names = ("agentv.yaml", "*.eval.yaml", "*.eval.yml", "*/*.eval.yaml", "*/*.eval.yml")
    return any(next(base.glob(name), None) is not None for name in names)


def _write_project(base: Path, example: str, *, force: bool) -> list[ProjectFile]:
    files = {Path(template).name: TEMPLATES / template for template in EXAMPLES[example]}
    existing = [name for name in files if (base / name).exists()]
    if existing and not force:
        fail_usage(f"{base} already has {', '.join(existing)}; choose another folder, or overwrite with --force")
    (base / SCHEMA).parent.mkdir(parents=True, exist_ok=True)
    for name, template in files.items():
        text = template.read_text(encoding="utf-8").replace("[PYTHON,", f"[{_python()},")
        (base / name).write_text(text, encoding="utf-8")
    (base / SCHEMA).write_text(schema_text(), encoding="utf-8")
    return [ProjectFile(str(base / name), "created") for name in (*files, str(SCHEMA))]


def _section_of(path: Path) -> AgentsSection:
    """Read the file and find the section in it; fail if its end is missing."""
    try:
        # Bytes, because text would lose the line ends of the file.
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return AgentsSection(None, "", "")
    except UnicodeDecodeError:
        fail_usage(f"{path} is not valid UTF-8; save it as UTF-8, then run it again")
    except OSError as error:
        fail_usage(f"{path} cannot be read: {error.strerror}")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if begin and not end:
        line = before.count("\n") + 1
        fail_usage(f"{path}:{line}: the section begins with {BEGIN} and has no end; add {END} after its last line")
    if begin:
        return AgentsSection(text, before, after)
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = newline * (0 if not text.strip() else 1 if text.endswith("\n") else 2)
    return AgentsSection(text, text + gap, newline)


def _write_section(path: Path, section: AgentsSection) -> ProjectFile:
    """Write the section between its markers; what is around it stays as it is."""
    body = f"{BEGIN}\n{(TEMPLATES / AGENTS).read_text(encoding='utf-8')}{END}"
    if section.text is None:
        new, action = f"{body}\n", "created"
    else:
        body = body.replace("\n", "\r\n") if "\r\n" in section.text else body
        new = f"{section.before}{body}{section.after}"
        action = "unchanged" if new == section.text else "updated"
    if action != "unchanged":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(new.encode())
    return ProjectFile(str(path), action)


def _python() -> str:
    """Return the name of the Python command on this machine."""
    return "python3" if shutil.which("python3") else "python"
