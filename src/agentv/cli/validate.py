"""`agentv validate`: check eval files without running anything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agentv.cli.options import TRUST_PROJECT
from agentv.cli.problems import exit_with_problems, fail_usage, problem_data
from agentv.errors import AgentVError, SpecError
from agentv.jsonio import dump_json
from agentv.model.request import Scope
from agentv.reports.terminal import Style, clean, pluralize, render_warnings
from agentv.spec.loader import load_evals, load_projects
from agentv.spec.personas import is_persona_file, load_persona_files
from agentv.spec.project import PROJECT_FILE, evals_here
from agentv.spec.targets import reply_warnings

if TYPE_CHECKING:
    from agentv.errors import Problem
    from agentv.evals import Eval


def _warnings_of(eval_: Eval) -> list[Problem]:
    """Return the warnings about a file, and about the replies that its targets have written down."""
    scopes = [(target, Scope(root=eval_.root, folder=target.folder or eval_.folder)) for target in eval_.targets]
    return [*eval_.warnings, *(warning for target, scope in scopes for warning in reply_warnings(target, scope))]


@click.command()
@click.argument("paths", nargs=-1, metavar="[PATH]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@TRUST_PROJECT
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
def command(paths: tuple[str, ...], *, as_json: bool, quiet: bool) -> None:
    """Check eval files without running anything; report all problems with their locations.

    Without a PATH, the project of the current folder is checked.

    Exit code: 0 no problem, 2 some problems.
    """
    if not paths:
        here = evals_here(Path.cwd())
        if here is None:
            fail_usage("no evals here: name an eval file or a folder of them")
        paths = (here,)
    projects = [path for path in paths if path.replace("\\", "/").rpartition("/")[2] == PROJECT_FILE]
    personas = [path for path in paths if is_persona_file(Path(path))]
    try:
        load_projects(projects)
        load_persona_files([(Path(path), path) for path in personas])
        evals = load_evals([path for path in paths if path not in projects and path not in personas])
    except SpecError as error:
        exit_with_problems(error, as_json=as_json)
    except AgentVError as error:
        fail_usage(str(error))
    warnings = list(dict.fromkeys(warning for eval_ in evals for warning in _warnings_of(eval_)))
    if as_json:
        data = {
            "schema": "agentv.validation/1",
            "status": "pass",
            "evals": [
                {
                    "eval_id": eval_.id,
                    "file": eval_.file,
                    "cases": eval_.count,
                    "targets": [target.name for target in eval_.targets],
                }
                for eval_ in evals
            ],
            "warnings": [problem_data(warning) for warning in warnings],
        }
        click.echo(dump_json(data))
        return
    if warnings:
        click.echo(render_warnings(warnings, Style.of(sys.stderr)), err=True)
    if quiet:
        return
    for path in (*projects, *personas):
        click.echo(f"{clean(path)}: ok")
    for eval_ in evals:
        names = clean(", ".join(target.name for target in eval_.targets))
        counts = f"{pluralize(eval_.count, 'case')}, {pluralize(len(eval_.targets), 'target')}"
        click.echo(f"{clean(eval_.file or '')}: ok, {counts} ({names})")
