"""`agentv init`: create a small project that runs without an API key."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import click

from agentv.cli.problems import fail_usage
from agentv.spec.schema import schema_text

TEMPLATES = Path(__file__).parent / "template"
EXAMPLES = {
    "support": ("agentv.yaml", "agent.py", "support.eval.yaml"),
    "conversation": ("conversation/agentv.yaml", "conversation/agent.py", "conversation/refund.eval.yaml"),
}
"""Templates of the files of each example."""
SCHEMA = Path(".agentv", "eval.schema.json")


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
def command(folder: str, example: str, *, force: bool) -> None:
    """Create a small project in DIR (here by default): an agent with tools, and an eval with one failure."""
    base = Path(folder)
    files = {Path(template).name: TEMPLATES / template for template in EXAMPLES[example]}
    existing = [name for name in files if (base / name).exists()]
    if existing and not force:
        fail_usage(f"{base} already has {', '.join(existing)}; choose another folder, or overwrite with --force")
    try:
        (base / SCHEMA).parent.mkdir(parents=True, exist_ok=True)
        for name, template in files.items():
            text = template.read_text(encoding="utf-8").replace("[PYTHON,", f"[{_python()},")
            (base / name).write_text(text, encoding="utf-8")
            click.echo(f"created {base / name}")
        (base / SCHEMA).write_text(schema_text(), encoding="utf-8")
        click.echo(f"created {base / SCHEMA} (your editor completes and checks evals with it)")
    except OSError as error:  # the error of a full disk has no file name
        fail_usage(f"{error.filename or base} cannot be written: {error.strerror}")
    click.echo(f"next: agentv eval {shlex.quote(folder)}")


def _python() -> str:
    """Return the name of the Python command on this machine."""
    return "python3" if shutil.which("python3") else "python"
