"""`agentv rescore`: kept runs evaluated again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.eval import DOLLARS, PLAIN_BLOCKS, stop_on_signals
from agentv.cli.exit_codes import exit_with_problems, fail_usage

if TYPE_CHECKING:
    from agentv.api.rescore import Rescored
    from agentv.model.stored import ExecutionRow
    from agentv.protocols import Reporter

MAX_NAMED = 5


@click.command()
@click.argument("name", default="last", metavar="[ID]")
@click.option(
    "--eval",
    "evals",
    multiple=True,
    metavar="FILE|DIR",
    help="Use the cases and evaluators of this eval as it is now; may be given again.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False),
    multiple=True,
    metavar="FILE",
    help="Write results to FILE: .jsonl, .yaml, .xml (JUnit) or .md; may be given again.",
)
@click.option("--case", "cases", multiple=True, metavar="GLOB", help="Only cases whose id fits; may be given again.")
@PLAIN_BLOCKS
@click.option("--max-judge-cost", type=DOLLARS, metavar="USD", help="Ask no judge once so much is spent on them.")
@click.option("--no-cache", is_flag=True, help="Ask judges again, whatever they said before.")
@click.option("--store", type=click.Path(dir_okay=False), metavar="FILE", help="The store; that of this project.")
@click.option("--json", "as_json", is_flag=True, help="Print result records as JSON lines, then a summary; no more.")
@click.option("-v", "--verbose", is_flag=True, help="Show passing cases in full, too.")
@click.option("-q", "--quiet", is_flag=True, help="Show the sums only.")
def command(name: str, **given: Any) -> None:
    """Evaluate the kept replies of an execution again, without asking any agent; the last one by default.

    The results are an execution of their own in the store: the earlier ones stay as they are. Exit code as of
    `agentv eval`.
    """
    from agentv.api.rescore import prepare_rescore  # noqa: PLC0415 - as above
    from agentv.api.resume import existing_store, find, open_store  # noqa: PLC0415 - `--help` needs none of it
    from agentv.errors import AgentVError, SpecError  # noqa: PLC0415 - as above
    from agentv.run.options import RunOptions  # noqa: PLC0415 - as above

    try:
        store: Any = open_store(Path(given["store"])) if given["store"] else existing_store()
        execution = find(store, name)
        options = RunOptions(
            cases=given["cases"],
            max_judge_cost=given["max_judge_cost"],
            cache=not given["no_cache"],
            plain_blocks=given["plain_blocks"],
        )
        rescored = prepare_rescore(store, execution, options, given["evals"])
    except SpecError as error:
        exit_with_problems(error, as_json=given["as_json"])
    except AgentVError as error:
        fail_usage(str(error))
    if rescored.unmatched and not given["quiet"]:
        some = ", ".join(rescored.unmatched[:MAX_NAMED]) + (", …" if len(rescored.unmatched) > MAX_NAMED else "")
        click.echo(f"{len(rescored.unmatched):,} kept cases are not in the eval and left out: {some}", err=True)
    sys.exit(_run(store, execution, rescored, given))


def _run(store: Any, execution: ExecutionRow, rescored: Rescored, given: dict[str, Any]) -> int:
    import asyncio  # noqa: PLC0415 - only a real run needs it

    from agentv.api import resume as api  # noqa: PLC0415 - as above
    from agentv.api.execution import execute  # noqa: PLC0415 - as above
    from agentv.cli.exit_codes import report_abort  # noqa: PLC0415 - as above
    from agentv.cli.outputs import open_files, printer  # noqa: PLC0415 - as above
    from agentv.cli.resume import judge_cache  # noqa: PLC0415 - as above
    from agentv.errors import AgentVError  # noqa: PLC0415 - as above
    from agentv.model.stored import StoredCommand  # noqa: PLC0415 - as above

    prepared = rescored.prepared
    inputs = sorted({file for each in prepared.evals for file in each.inputs})
    reporters: list[Reporter] = open_files(given["out"], inputs, prepared.redactor)
    reporters.append(printer(given, prepared.redactor))
    command = StoredCommand(folder=str(Path.cwd()), rescored=execution.id)
    has_begun = False
    # Replies are read on the event loop while results are written in a thread: two connections.
    written = api.open_store(Path(store.name))
    try:
        keeping = api.begin(written, api.new_execution(prepared, command, execution.persist))
        with judge_cache(prepared, given, Path(store.name)) as ready:
            has_begun = True
            summary = asyncio.run(execute(ready, reporters, out=given["out"], watch=stop_on_signals, keeping=keeping))
    except AgentVError as error:
        return report_abort(error, has_begun=has_begun)
    finally:
        written.close()
        store.close()
    return summary.exit_code
