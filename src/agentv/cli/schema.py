"""`agentv schema`: print the JSON Schema that editors check eval files with."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from agentv.cli.options import JSON
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_usage
from agentv.spec.schema import schema_text


@click.command()
@click.option("--project", is_flag=True, help="The schema of agentv.yaml instead.")
@click.option("--out", metavar="FILE", type=click.Path(dir_okay=False), help="Write it to FILE.")
@JSON
def command(*, project: bool, out: str | None, as_json: bool) -> None:
    """Print the JSON Schema of eval files, with which an editor completes and checks them.

    In a file: # yaml-language-server: $schema=path/to/the/schema.json
    """
    text = schema_text("project" if project else "eval")
    if out is None:
        if as_json:
            text = msgspec.json.format(text, indent=-1) + "\n"
        click.echo(text, nl=False)
        return
    try:
        Path(out).write_text(text, encoding="utf-8")
    except OSError as error:
        fail_usage(f"{out} cannot be written: {error.strerror}")
    if as_json:
        print_json({"schema": "agentv.schema_file/1", "file": out})
