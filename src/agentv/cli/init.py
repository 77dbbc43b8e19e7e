"""`agentv init`: a small project that runs without any API key."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import click

from agentv.cli.exit_codes import fail_usage

TEMPLATES = Path(__file__).parent / "template"
FILES = ("agentv.yaml", "agent.py", "support.eval.yaml")
SCHEMA = Path(".agentv", "eval.schema.json")


@click.command()
@click.argument("folder", default=".", metavar="[DIR]", type=click.Path(file_okay=False))
@click.option("--force", is_flag=True, help="Overwrite files of the same names.")
def command(folder: str, *, force: bool) -> None:
    """Make a small project in DIR (here by default): an agent with tools, and an eval with one failure to look at."""
    from agentv.spec.schema import schema_text  # noqa: PLC0415 - `--help` needs none of it

    base = Path(folder)
    there = [name for name in FILES if (base / name).exists()]
    if there and not force:
        fail_usage(f"{base} already has {', '.join(there)}; choose another folder, or overwrite with --force")
    try:
        (base / SCHEMA).parent.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            text = (TEMPLATES / name).read_text(encoding="utf-8").replace("[PYTHON,", f"[{_python()},")
            (base / name).write_text(text, encoding="utf-8")
            click.echo(f"created {base / name}")
        (base / SCHEMA).write_text(schema_text(), encoding="utf-8")
        click.echo(f"created {base / SCHEMA} (your editor completes and checks evals with it)")
    except OSError as error:  # a disk that is full says no name
        fail_usage(f"{error.filename or base} cannot be written: {error.strerror}")
    click.echo(f"next: agentv eval {shlex.quote(folder)}")


def _python() -> str:
    """The name under which a program of the user's finds Python here."""
    return "python3" if shutil.which("python3") else "python"
