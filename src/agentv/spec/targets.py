"""Targets: settings and providers, and judges by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace as with_fields

from agentv.errors import Problem, SpecError
from agentv.evals import Target
from agentv.formats.plain_blocks import plain_block_problem
from agentv.protocols import ProviderSettings, TemplateProvider, WrittenReplies
from agentv.registry import PROVIDERS, find_provider, provider_names
from agentv.spec.command_line import at_command, split_command
from agentv.spec.environment import substitute
from agentv.spec.validation import build, choice_message, join_path, short_repr, to_json
from agentv.suggestions import closest, suggest
from agentv.templating import escape_placeholders

if TYPE_CHECKING:
    from agentv.evals import ConfiguredEvaluator
    from agentv.model.request import Scope
    from agentv.protocols import Provider
    from agentv.spec.yaml import SourceFile


class JudgeNames:
    """The targets that may be judges of an eval, and those that its evaluators use."""

    def __init__(
        self, targets: Sequence[Target] | None, default: str | None, chosen: Target | str | None = None
    ) -> None:
        self._known = None if targets is None else {target.name: target for target in targets}
        """`None` if the targets are invalid, so that names cannot be checked."""
        self.default = default
        self._used: dict[str, None] = {}
        self.problems: list[Problem] = []
        """Problems of the default judge."""
        if self._known is None or default is None:
            return
        if isinstance(chosen, Target):
            self._known[chosen.name] = chosen
        elif default not in self._known:
            path = "judge" if chosen is None else "--judge"
            self.problems.append(Problem(path, unknown_target(default, self._known)))
        if chosen is not None:
            # The caller's judge is available even if every evaluator names another one.
            self._used[default] = None

    @property
    def used(self) -> tuple[Target, ...]:
        """The judges of all evaluators that were checked."""
        known = self._known or {}
        return tuple(known[name] for name in self._used if name in known)

    def check(self, checks: Sequence[ConfiguredEvaluator], path: str) -> list[Problem]:
        """Return the problems with the judges of these evaluators and of those inside them."""
        problems: list[Problem] = []
        for index, checked in enumerate(checks):
            evaluator = checked.evaluator
            if evaluator.asks is not None and not evaluator.skip:
                problems += self._check(evaluator.asks, f"{path}[{index}]")
            problems += self.check(evaluator.inner, f"{path}[{index}].{evaluator.nested}")
        return problems

    def use(self, name: str, path: str) -> list[Problem]:
        """Return the problem of a target that is asked and does not exist."""
        if self._known is None or name in self._known:
            return []
        return [Problem(path, unknown_target(name, self._known))]

    def find(self, names: Iterable[str]) -> tuple[Target, ...]:
        """Return the targets of these names."""
        known = self._known or {}
        return tuple(known[name] for name in names if name in known)

    def _check(self, judges: Sequence[str | None], path: str) -> Iterator[Problem]:
        if self._known is None:
            return
        for index, own_name in enumerate(judges):
            name = own_name or self.default
            if name is None:
                yield Problem(
                    path, f"no judge: add `judge: NAME` here, in the eval, or in agentv.yaml{self._choices}", "whole"
                )
            elif name in self._known:
                self._used[name] = None
            elif own_name is not None:  # an unknown default is reported once
                key = f"judges[{index}]" if len(judges) > 1 else "judge"
                yield Problem(f"{path}.{key}", unknown_target(name, self._known))

    @property
    def _choices(self) -> str:
        return f"; the targets are {', '.join(self._known)}" if self._known else ""


def default_judge(chosen: Target | str | None, own: Any, shared: str | None) -> str | None:
    """Return the name of the default judge: the caller's, else the eval's, else the project's."""
    if chosen is not None:
        return chosen if isinstance(chosen, str) else chosen.name
    return own if isinstance(own, str) and own else shared


def without_judge(own: list[Target], shared: list[Target], judge: str | None) -> tuple[list[Target], list[Target]]:
    """Return the targets to choose from by default: without the judge, unless there is no other."""
    own_rest = [target for target in own if target.name != judge]
    shared_rest = [target for target in shared if target.name != judge]
    return (own_rest, shared_rest) if own_rest or shared_rest else (own, shared)


def unknown_target(name: str, known: Mapping[str, Target]) -> str:
    """Return the message for an unknown target, with a suggestion."""
    if not known:
        return f"{name!r} is not defined: add it to `targets`, here or in agentv.yaml"
    return f"there is no target {name!r}{suggest(name, known) or '; the targets are ' + ', '.join(known)}"


def check_targets(
    data: list[Any], source: SourceFile | None, path: str = "targets"
) -> tuple[list[Target], list[Problem]]:
    """Return the targets of a file, and all their problems."""
    targets: dict[str, Target] = {}
    problems: list[Problem] = []
    for index, item in enumerate(data):
        target_path = f"{path}[{index}]"
        target, new_problems = _check_target(item, target_path)
        problems += new_problems
        if target is None:
            continue
        if target.name in targets:
            problems.append(Problem(f"{target_path}.name", f"{target.name!r} is already the name of another target"))
        targets[target.name] = with_fields(target, location=source.location(target_path) if source else None)
    return list(targets.values()), problems


def _check_target(data: Any, path: str) -> tuple[Target | None, list[Problem]]:
    if not isinstance(data, Mapping):
        return None, [Problem(path, f"expected a mapping with a `name` and a `provider`, got {short_repr(data)}")]
    problems = []
    name, provider = data.get("name"), data.get("provider")
    if (not isinstance(name, str) or not name) and not any(key != "name" and closest(key, ("name",)) for key in data):
        problems.append(Problem(f"{path}.name", "required: the name that `target` and results use"))
    if not isinstance(provider, str):
        return None, [*problems, Problem(f"{path}.provider", f"required; one of {', '.join(PROVIDERS)}")]
    cls = find_provider(provider)
    if cls is None:
        return None, [*problems, Problem(f"{path}.provider", choice_message(provider, provider_names()))]
    is_text = isinstance(data.get("command"), str)
    data, command_problems = split_command(data, provider, path)
    problems += command_problems
    text, json_problems = to_json({**data, "provider": provider.replace("-", "_")}, path)
    if text is None or command_problems:
        return None, [*problems, *json_problems]
    settings, new_problems = build(cls, text, path)
    problems += new_problems
    if settings is not None:
        problems += [*settings.check(path), *_check_plain_blocks(settings, path)]
    if problems:
        return None, [at_command(problem, path) for problem in problems] if is_text else problems
    return Target(str(name), provider.replace("-", "_"), data), []


def reply_warnings(target: Target, scope: Scope) -> list[Problem]:
    """Return the warnings about replies that are written in the settings of a target, or in a file that they name."""
    cls: Any = find_provider(target.provider)
    if target.instance is not None or cls is None:
        return []
    provider, _ = build(cls, msgspec.json.encode({**target.settings, "provider": target.provider}), "")
    if not isinstance(provider, WrittenReplies):
        return []
    return [
        Problem(place, f"{place}: {warning}", "whole", target.location)
        for place, warning in provider.reply_warnings(scope)
    ]


def make_provider(target: Target, environment: Mapping[str, str]) -> Provider:
    """Return the provider with `${ENV}` variables resolved, or raise `SpecError` with those that are not set."""
    if target.instance is not None:
        return target.instance
    missing: list[str] = []
    cls: type[Provider] = find_provider(target.provider)  # type: ignore[assignment]  # found by `check_targets`
    templates = cls.templates if isinstance(cls, TemplateProvider) else ()
    settings = {
        key: substitute(value, environment, missing, escape_placeholders if key in templates else str)
        for key, value in target.settings.items()
    }
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        message = f"target {target.name!r} needs the environment variable{'s' * (len(set(missing)) > 1)} {names}"
        many = len(set(missing)) > 1
        fix = f"set {'them' if many else 'it'}, or read a file with `--env-file .env`"
        message = f"{message}, which {'are' if many else 'is'} not set: {fix}"
        raise SpecError([Problem("", message, "whole", target.location)])
    provider, problems = build(cls, msgspec.json.encode({**settings, "provider": target.provider}), "")
    if provider is not None:
        problems = _check_plain_blocks(provider, "")  # a variable may contain an invalid name
    if provider is None or problems:
        raise SpecError([problem._replace(location=target.location) for problem in problems])
    return provider


def _check_plain_blocks(provider: Any, path: str) -> list[Problem]:
    """Check `plain_blocks` here, since a provider's own `check` may replace that of its base class."""
    names = enumerate(ProviderSettings.of(provider).plain_blocks)
    problems = ((index, plain_block_problem(name)) for index, name in names)
    return [Problem(join_path(path, f"plain_blocks[{index}]"), problem) for index, problem in problems if problem]


def add_plain_blocks(target: Target, names: Sequence[str]) -> Target:
    """Return the target with these block types added to its `plain_blocks`."""
    if not names:
        return target
    blocks = list(dict.fromkeys([*target.settings.get("plain_blocks", ()), *names]))
    provider = target.instance
    if isinstance(provider, msgspec.Struct) and "plain_blocks" in provider.__struct_fields__:
        provider = with_fields(provider, plain_blocks=tuple(blocks))
    return with_fields(target, settings={**target.settings, "plain_blocks": blocks}, instance=provider)


def select_targets(
    requested: tuple[str, ...], own_names: str | list[str] | None, own: list[Target], shared: list[Target]
) -> tuple[tuple[Target, ...], list[Problem]]:
    """Return the targets to test: those of the command line, else of `target` in the file, else all of the file."""
    known = {target.name: target for target in [*shared, *own]}
    if requested:
        names = list(requested)
    elif own_names is not None:
        names = [own_names] if isinstance(own_names, str) else list(own_names)
    elif own or len(shared) == 1:
        names = [target.name for target in own or shared]
    else:
        fix = (
            f"choose with `target`: {', '.join(known)}" if known else "define one in `targets`, here or in agentv.yaml"
        )
        return (), [Problem("", f"no target to test: {fix}", "whole")]
    unknown = [name for name in names if name not in known]
    path = "--target" if requested else "target" if own_names is not None else ""
    if unknown and not known:
        return (), [Problem(path, f"{unknown[0]!r} is not defined: add it to `targets`, here or in agentv.yaml")]
    problems = [Problem(path, choice_message(name, list(known))) for name in unknown]
    return tuple(known[name] for name in dict.fromkeys(names) if name in known), problems
