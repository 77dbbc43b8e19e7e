"""`agentv evaluators` and `agentv providers`: list evaluators and providers, and describe one."""

from __future__ import annotations

import sys
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NoReturn

import click
import yaml
from msgspec import to_builtins

from agentv.api.score import Scorer
from agentv.cli.options import JSON
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_usage
from agentv.errors import PluginError
from agentv.evaluators.judge.prompt import scripted
from agentv.matching.diff import quote
from agentv.registry import evaluator_names, find_evaluator, find_provider, provider_names
from agentv.reports.terminal import Style
from agentv.spec.describe import describe, describe_provider
from agentv.suggestions import suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agentv.evaluators.base import Example
    from agentv.spec.describe import EvaluatorDescription, ProviderDescription

WIDTH = 100
SCHEMAS = {
    "evaluators": "agentv.evaluators/1",
    "evaluator": "agentv.evaluator/1",
    "providers": "agentv.providers/1",
    "provider": "agentv.provider/1",
}


@click.group()
def command() -> None:
    """List evaluators, and describe one."""


@command.command("list")
@JSON
def list_all(*, as_json: bool) -> None:
    """List every evaluator, including those of installed packages."""
    print_list("evaluators", evaluator_names(), describe, as_json=as_json)


@command.command("describe")
@click.argument("name")
@JSON
def describe_one(name: str, *, as_json: bool) -> None:
    """Describe the keys of an evaluator, with an example that passes and one that does not."""
    try:
        if find_evaluator(name) is None:
            fail_unknown("evaluator", name, evaluator_names())
        description = describe(name)
    except PluginError as error:
        fail_usage(str(error))
    if as_json:
        print_json(_description_data(description))
    else:
        click.echo("\n".join(render_evaluator(description)))


def print_list(
    kind: str,
    names: Sequence[str],
    describe_one: Callable[[str], EvaluatorDescription | ProviderDescription],
    *,
    as_json: bool,
) -> None:
    """Print the names of evaluators or providers with a sentence each."""
    entries: list[dict[str, str]] = []
    for name in names:
        try:
            entries.append({"name": name, "summary": describe_one(name).summary})
        except PluginError as error:  # a broken plugin must not hide the others
            entries.append({"name": name, "summary": f"does not load: {error.cause}", "error": str(error)})
    if as_json:
        print_json({"schema": SCHEMAS[kind], kind: entries})
        return
    width = max(len(entry["name"]) for entry in entries)
    for entry in entries:
        click.echo(f"{entry['name']:<{width}}  {entry['summary']}")
    click.echo(f"\nnext: agentv {kind} describe NAME")


def fail_unknown(kind: str, name: str, names: Sequence[str]) -> NoReturn:
    """Exit because there is nothing of this name; suggest a similar name, or list all."""
    fail_usage(f"no {kind} {name!r}{suggest(name, names) or '; there are ' + ', '.join(names)}")


def description_data(kind: str, description: EvaluatorDescription | ProviderDescription) -> dict[str, Any]:
    """Return the description of an evaluator or a provider as JSON data."""
    keys = [key._asdict() for key in description.keys]
    return {
        "schema": SCHEMAS[kind],
        "name": description.name,
        "summary": description.summary,
        "executes": description.executes,
        "keys": [{key: value for key, value in entry.items() if key != "own"} for entry in keys],
    }


def _description_data(description: EvaluatorDescription) -> dict[str, Any]:
    examples = [
        {**example._asdict(), "result": _make_scorer(example).score(example.reply)} for example in description.examples
    ]
    return {**description_data("evaluator", description), "examples": to_builtins(examples)}


def render_evaluator(description: EvaluatorDescription) -> list[str]:
    """Return the lines about an evaluator, its keys and its examples."""
    lines = render_keys("evaluator", description)
    for example in description.examples:
        lines += ["", f"An example that {'passes' if example.passes else 'does not pass'}:"]
        lines += [f"  {line}".rstrip() for line in _render_example(example)]
    return lines


def render_keys(kind: str, description: EvaluatorDescription | ProviderDescription) -> list[str]:
    """Return the lines about an evaluator or a provider and its keys."""
    lines = [f"{description.name}: {description.summary}"]
    if description.executes:
        lines.append("It runs code that the eval names; --no-exec refuses it.")
    for title, own in (("Its own keys", True), (f"Keys of every {kind}", False)):
        keys = [key for key in description.keys if key.own == own]
        if keys:
            lines += ["", f"{title}:"]
        for key in keys:
            need = "required" if key.required else "" if key.default is None else f"default {quote(key.default)}"
            lines += _wrap(f"{key.name}: {key.type}" + (f" ({need})" if need else ""), 2)
            lines += _wrap(key.description, 6)
    return lines


def _render_example(example: Example) -> list[str]:
    config: dict[str, Any] = {"evaluators": [example.config]}
    if example.expected_messages is not None:
        config["expected_messages"] = example.expected_messages
    lines = [*_yaml(config), "", *_yaml({"reply": example.reply}), ""]
    if example.judge is not None:
        lines += [*_yaml({"judge": example.judge}), ""]
    return [*lines, *_make_scorer(example).explain(example.reply, style=Style.of(sys.stdout)).splitlines()[2:]]


def _make_scorer(example: Example) -> Scorer:
    judge = None if example.judge is None else scripted(example.judge)
    return Scorer([example.config], expected_messages=example.expected_messages, judge=judge)


def _yaml(data: Any) -> list[str]:
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=WIDTH - 4, default_flow_style=None)
    return text.splitlines()


def _wrap(text: str, indent: int) -> list[str]:
    space = " " * indent
    return wrap(text, WIDTH, initial_indent=space, subsequent_indent=f"{space}  ", break_long_words=False)


@click.group()
def providers_command() -> None:
    """List providers, and describe one."""


@providers_command.command("list")
@JSON
def list_providers(*, as_json: bool) -> None:
    """List every provider, including those of installed packages."""
    print_list("providers", provider_names(), describe_provider, as_json=as_json)


@providers_command.command("describe")
@click.argument("name")
@JSON
def describe_provider_command(name: str, *, as_json: bool) -> None:
    """Describe the keys of a target with this provider."""
    try:
        if find_provider(name) is None:
            fail_unknown("provider", name, provider_names())
        description = describe_provider(name)
    except PluginError as error:
        fail_usage(str(error))
    if as_json:
        print_json(description_data("provider", description))
    else:
        click.echo("\n".join(render_keys("provider", description)))
