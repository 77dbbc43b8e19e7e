"""`agentv evaluators`: which there are, what each takes, and what it says of a reply."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agentv.cli.exit_codes import fail_usage

if TYPE_CHECKING:
    from agentv.spec.describe import Description

WIDTH = 100


@click.group()
def command() -> None:
    """List the evaluators there are, and describe one."""


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_all(*, as_json: bool) -> None:
    """List every evaluator that can be written, those of installed packages included."""
    from agentv.errors import PluginError  # noqa: PLC0415 - `--help` needs none of it
    from agentv.registry import evaluator_names  # noqa: PLC0415 - as above
    from agentv.spec.describe import describe  # noqa: PLC0415 - as above

    found: list[dict[str, str]] = []
    for name in evaluator_names():
        try:
            found.append({"name": name, "summary": describe(name).summary})
        except PluginError as error:  # its own defect, which hides nobody else
            found.append({"name": name, "summary": f"does not load: {error.cause}", "error": str(error)})
    if as_json:
        _print_json({"schema": "agentv.evaluators/1", "evaluators": found})
        return
    width = max(len(each["name"]) for each in found)
    for each in found:
        click.echo(f"{each['name']:<{width}}  {each['summary']}")
    click.echo("\nnext: agentv evaluators describe NAME")


@command.command("describe")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def describe_one(name: str, *, as_json: bool) -> None:
    """Say what an evaluator takes, with an example that passes and one that does not."""
    from agentv.errors import PluginError, suggest  # noqa: PLC0415 - `--help` needs none of it
    from agentv.registry import evaluator_names, find_evaluator  # noqa: PLC0415 - as above
    from agentv.spec.describe import describe  # noqa: PLC0415 - as above

    try:
        if find_evaluator(name) is None:
            names = evaluator_names()
            fail_usage(f"no evaluator {name!r}{suggest(name, names) or '; there are ' + ', '.join(names)}")
        description = describe(name)
    except PluginError as error:
        fail_usage(str(error))
    if as_json:
        _print_json(_as_data(description))
    else:
        click.echo("\n".join(_page(description)))


def _print_json(data: Any) -> None:
    from agentv.jsonio import dump_json  # noqa: PLC0415 - `--help` needs none of it

    click.echo(dump_json(data))


def _as_data(description: Description) -> dict[str, Any]:
    from msgspec import to_builtins  # noqa: PLC0415 - `--help` needs none of it

    examples = []
    for example in description.examples:
        scorer, reply = _scored(example)
        examples.append({**example._asdict(), "result": scorer.score(reply)})
    keys = [key._asdict() for key in description.keys]
    return {
        "schema": "agentv.evaluator/1",
        "name": description.name,
        "summary": description.summary,
        "executes": description.executes,
        "keys": [{key: value for key, value in each.items() if key != "own"} for each in keys],
        "examples": to_builtins(examples),
    }


def _page(description: Description) -> list[str]:
    lines = [f"{description.name}: {description.summary}"]
    if description.executes:
        lines.append("It runs code that the eval names; --no-exec refuses it.")
    for title, own in (("Its own keys", True), ("Keys of every evaluator", False)):
        keys = [key for key in description.keys if key.own == own]
        if keys:
            lines += ["", f"{title}:"]
        for key in keys:
            need = "required" if key.required else "" if key.default is None else f"default {_short(key.default)}"
            lines += _wrapped(f"{key.name}: {key.type}" + (f" ({need})" if need else ""), 2)
            lines += _wrapped(key.description, 6)
    for example in description.examples:
        lines += ["", f"An example that {'passes' if example.passes else 'does not pass'}:"]
        lines += [f"  {line}".rstrip() for line in _shown(example)]
    return lines


def _shown(example: Any) -> list[str]:
    from agentv.reports.terminal import Style  # noqa: PLC0415 - `--help` needs none of it

    scorer, reply = _scored(example)
    written: dict[str, Any] = {"evaluators": [example.config]}
    if example.expected_messages is not None:
        written["expected_messages"] = example.expected_messages
    words = [*_yaml(written), "", *_yaml({"reply": example.reply}), ""]
    if example.judge is not None:
        words += [*_yaml({"judge": example.judge}), ""]
    return [*words, *scorer.explain(reply, style=Style.of(sys.stdout)).splitlines()[2:]]


def _scored(example: Any) -> tuple[Any, Any]:
    from agentv.api.score import Scorer  # noqa: PLC0415 - `--help` needs none of it

    judge = None
    if example.judge is not None:
        from agentv.evaluators.judge.prompt import scripted  # noqa: PLC0415 - as above

        judge = scripted(example.judge)
    return Scorer([example.config], expected_messages=example.expected_messages, judge=judge), example.reply


def _yaml(data: Any) -> list[str]:
    import yaml  # noqa: PLC0415 - `--help` needs none of it

    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=WIDTH - 4, default_flow_style=None)
    return text.splitlines()


def _short(value: Any) -> str:
    from agentv.matching.diff import quote  # noqa: PLC0415 - `--help` needs none of it

    return quote(value)


def _wrapped(text: str, indent: int) -> list[str]:
    from textwrap import wrap  # noqa: PLC0415 - `--help` needs none of it

    space = " " * indent
    return wrap(text, WIDTH, initial_indent=space, subsequent_indent=f"{space}  ", break_long_words=False)
