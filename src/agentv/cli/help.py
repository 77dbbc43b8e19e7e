"""`agentv help`: print a short text about a topic; `agentv docs`: print the address of the documentation."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from textwrap import dedent

import click

from agentv.cli.evaluators import render_evaluator, render_keys
from agentv.cli.options import JSON
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_usage
from agentv.registry import evaluator_names, find_evaluator, find_provider, provider_names
from agentv.spec.describe import describe, describe_provider
from agentv.suggestions import suggest

TOPICS = {
    "eval-file": """\
        An eval file is named NAME.eval.yaml. It has targets (the agents) and cases:

          targets:
            - {name: mine, provider: python, function: "./agent.py:agent"}
          cases:
            - id: refund
              input: I want my money back for order B-42
              evaluators:
                - type: tool_trajectory
                  mode: in_order
                  expected: [{tool: get_order}, {tool: refund, input: {order_id: B-42}}]

        Check it with `agentv validate`, which runs nothing; run it with `agentv eval`.
        More: docs/reference/eval-file.md, and `agentv schema` for editors.""",
    "targets": """\
        A target is the agent under test: a name, a provider and the keys of that provider.

          {name: mine, provider: python, function: "./agent.py:agent"}    a function or an agent object
          {name: mine, provider: cli, command: [node, agent.js]}          a program
          {name: mine, provider: http, url: "http://localhost:8000/chat"} an endpoint

        `agentv providers list` shows all, `agentv providers describe NAME` the keys of one.
        `agentv target check NAME` asks a target once and shows what it reports.
        More: docs/reference/providers.md.""",
    "evaluators": """\
        An evaluator decides about one run: pass, fail, or error if it cannot decide.
        A case passes if all of its evaluators pass. The one to begin with is tool_trajectory:

          type: tool_trajectory
          mode: in_order        # or exact, any_order, unordered, superset, subset
          expected: [{tool: search, input: {query: {$contains: branch}}}, {tool: answer}]
          maximums: {"*": 5}
          forbidden: ["delete_*"]

        `agentv evaluators list` shows all, `agentv evaluators describe NAME` the keys of one.
        More: docs/reference/evaluators/index.md.""",
    "results": """\
        A run passes, fails, or is an error. An error was not measured: it is no pass and no zero.

        `agentv eval --out results.jsonl --out report.html` writes files; the suffix is the format.
        Results are kept in .agentv/runs.db. `agentv runs list` and `agentv runs show ID` read it,
        `agentv view` shows it in the browser, `agentv compare A B` compares two executions.
        More: docs/reference/results.md.""",
    "exit-codes": """\
        0    every run passed
        1    at least one run failed
        2    a mistake in the command line or in a file; nothing was run
        3    at least one run is an error: it could not be measured
        4    a bug in agentv
        130  interrupted; finished runs are stored, and `agentv eval --resume` goes on""",
    "json": """\
        Every command takes --json and prints objects with a `schema`, one per line.
        A mistake is one object:

          {"schema": "agentv.problems/1", "status": "usage", "exit_code": 2,
           "errors": [{"code", "file", "line", "column", "path", "message", "fix"}]}

        Programs and coding agents can rely on `code` and on the exit code; messages may change.
        `agentv init --agents` writes a section about agentv to AGENTS.md.
        More: docs/reference/command-line.md.""",
}
"""Short texts by topic."""
DOCS = Path("docs") / "index.md"


@click.command()
@click.argument("topic", nargs=-1)
@JSON
@click.pass_context
def command(context: click.Context, topic: tuple[str, ...], *, as_json: bool) -> None:
    """Print a short text about TOPIC: a subject, a command, an evaluator or a provider. Without it, list subjects."""
    name = " ".join(topic)
    text = _topic_text(context, name) if name else _overview()
    if as_json:
        print_json({"schema": "agentv.help/1", "topic": name or None, "topics": list(TOPICS), "text": text})
    else:
        click.echo(text)


@click.command()
@JSON
def docs_command(*, as_json: bool) -> None:
    """Print the address of the documentation."""
    address = documentation_address()
    if as_json:
        print_json({"schema": "agentv.docs/1", "address": address})
    else:
        click.echo(
            address or "This copy was built without an address; its documentation is docs/index.md of its source."
        )


def documentation_address() -> str | None:
    """Return the address of the documentation: that of the release, or the file in a source tree; else `None`."""
    try:
        urls = metadata("agentv").get_all("Project-URL") or []
    except PackageNotFoundError:
        urls = []
    for url in urls:
        name, _, address = str(url).partition(", ")
        if name == "Documentation":
            return address
    source = Path(__file__).parents[3] / DOCS
    return str(source) if source.is_file() else None


def _overview() -> str:
    subjects = ", ".join(TOPICS)
    return dedent(f"""\
        Subjects: {subjects}
        `agentv help SUBJECT` prints a short text; so does the name of a command, an evaluator or a provider:

          agentv help exit-codes
          agentv help runs show
          agentv help tool_trajectory
          agentv help python

        `agentv --help` lists the commands, `agentv docs` prints the address of the documentation.""")


def _topic_text(context: click.Context, name: str) -> str:
    if name in TOPICS:
        return dedent(TOPICS[name])
    # `python` is an evaluator too; somebody who asks for it has an agent to connect first.
    if name in provider_names() and find_provider(name) is not None:
        return "\n".join(render_keys("provider", describe_provider(name)))
    if name in evaluator_names() and find_evaluator(name) is not None:
        return "\n".join(render_evaluator(describe(name)))
    group = context.find_root().command
    text = _command_help(context.find_root(), group, name.split())
    if text is not None:
        return text
    commands = group.list_commands(context) if isinstance(group, click.Group) else []
    known = [*TOPICS, *provider_names(), *evaluator_names(), *commands]
    return fail_usage(f"no topic {name!r}{suggest(name, known) or '; there are ' + ', '.join(TOPICS)}")


def _command_help(parent: click.Context, group: click.Command, words: list[str]) -> str | None:
    """Return the help of a command such as `runs show`, or `None` if there is no such command."""
    for word in words:
        found = group.get_command(parent, word) if isinstance(group, click.Group) else None
        if found is None:
            return None
        group, parent = found, click.Context(found, info_name=word, parent=parent)
    return group.get_help(parent)
