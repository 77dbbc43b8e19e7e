"""`agentv validate`: check eval files without running anything."""

from __future__ import annotations

import sys

import click

from agentv.cli.exit_codes import exit_with_problems, fail_usage, problem_data


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
def command(paths: tuple[str, ...], *, as_json: bool, quiet: bool) -> None:
    """Check eval files without running anything: every mistake at once, with its place.

    Exit code: 0 all is well, 2 something is wrong.
    """
    from agentv.errors import AgentVError, SpecError  # noqa: PLC0415 - `--help` needs none of it
    from agentv.reports.terminal import Style, clean, counted, render_warnings  # noqa: PLC0415 - as above  # noqa: PLC0415 - as above
    from agentv.spec.loader import load_evals, load_projects  # noqa: PLC0415 - as above
    from agentv.spec.project import NAME  # noqa: PLC0415 - as above

    projects = [path for path in paths if path.replace("\\", "/").rpartition("/")[2] == NAME]
    try:
        load_projects(projects)
        evals = load_evals([path for path in paths if path not in projects])
    except SpecError as error:
        exit_with_problems(error, as_json=as_json)
    except AgentVError as error:
        fail_usage(str(error))
    warnings = list(dict.fromkeys(warning for each in evals for warning in each.warnings))
    if as_json:
        from agentv.jsonio import dump_json  # noqa: PLC0415 - as above

        data = {
            "schema": "agentv.validation/1",
            "status": "pass",
            "evals": [
                {
                    "eval_id": each.id,
                    "file": each.file,
                    "cases": each.count,
                    "targets": [target.name for target in each.targets],
                }
                for each in evals
            ],
            "warnings": [problem_data(warning) for warning in warnings],
        }
        click.echo(dump_json(data))
        return
    if warnings:
        click.echo(render_warnings(warnings, Style.of(sys.stderr)), err=True)
    if quiet:
        return
    for path in projects:
        click.echo(f"{path}: ok")
    for each in evals:
        names = clean(", ".join(target.name for target in each.targets))
        counts = f"{counted(each.count, 'case')}, {counted(len(each.targets), 'target')}"
        click.echo(f"{clean(each.file or '')}: ok, {counts} ({names})")
