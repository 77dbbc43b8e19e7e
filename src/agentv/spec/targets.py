"""Read target settings: providers, `${ENV}` variables, and judges by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace as with_fields

from agentv.errors import FormatError, Problem, SpecError, suggest
from agentv.evals import Target
from agentv.formats.plain_blocks import plain_block_problem
from agentv.registry import PROVIDERS, find_provider, provider_names
from agentv.spec.validation import as_json, build, join, not_a_choice, shown
from agentv.templating import shield

if TYPE_CHECKING:
    from agentv.evals import ConfiguredEvaluator
    from agentv.protocols import Provider
    from agentv.spec.yaml import SourceFile


_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][A-Za-z0-9_]*)[ \t]*=[ \t]*(.*)")
_QUOTES = ("'", '"')


def read_variables(text: str) -> dict[str, str]:
    """What the file sets; anything else than a variable is passed over, and values are taken as they are.

    Raises `FormatError` for a value that nothing could be given.
    """
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _LINE.fullmatch(line.strip())
        if match is not None:
            found[match[1]] = _value(match[2], f"line {number}")
    return found


def _value(written: str, where: str) -> str:
    if "\0" in written:
        msg = "the value holds a NUL character, which no variable can"
        raise FormatError(msg, path=where)
    if not written.startswith(_QUOTES):
        return written.partition(" #")[0].rstrip()
    end = written.find(written[0], 1)
    if end < 0:
        msg = "the quote is not closed on this line; a value of several lines cannot be given here"
        raise FormatError(msg, path=where)
    return written[1:end]


class JudgeNames:
    """The targets that may judge in one eval, and those that do."""

    def __init__(
        self, targets: Sequence[Target] | None, default: str | None, chosen: Target | str | None = None
    ) -> None:
        self._known = None if targets is None else {target.name: target for target in targets}
        """`None` when the targets could not be read, so that nothing can be said of them."""
        self.default = default
        self._used: dict[str, None] = {}
        self.problems: list[Problem] = []
        """What is wrong with the default itself."""
        if self._known is None or default is None:
            return
        if isinstance(chosen, Target):
            self._known[chosen.name] = chosen
        elif default not in self._known:
            path = "judge" if chosen is None else "--judge"
            self.problems.append(Problem(path, unknown(default, self._known)))
        if chosen is not None:
            # One that the caller names is there for whoever asks, also where every evaluator names another.
            self._used[default] = None

    @property
    def used(self) -> tuple[Target, ...]:
        """The targets that are asked by any evaluator that was checked."""
        known = self._known or {}
        return tuple(known[name] for name in self._used if name in known)

    def check(self, checks: Sequence[ConfiguredEvaluator], path: str) -> list[Problem]:
        """What is wrong with the judges of these evaluators and of those inside them."""
        problems: list[Problem] = []
        for at, checked in enumerate(checks):
            evaluator = checked.evaluator
            asked = getattr(evaluator, "asks", None)
            if asked is not None and not evaluator.skip:
                problems += self._check(asked, f"{path}[{at}]")
            inner = getattr(evaluator, "inner", None)
            if inner:
                problems += self.check(inner, f"{path}[{at}].{getattr(evaluator, 'nested', 'evaluators')}")
        return problems

    def _check(self, asked: Sequence[str | None], path: str) -> Iterator[Problem]:
        if self._known is None:
            return
        for at, written in enumerate(asked):
            name = written or self.default
            if name is None:
                yield Problem(
                    path, f"no judge: add `judge: NAME` here, in the eval, or in agentv.yaml{self._choices}", "whole"
                )
            elif name in self._known:
                self._used[name] = None
            elif written is not None:  # a wrong default is said once, where it stands
                yield Problem(f"{path}.judges[{at}]" if len(asked) > 1 else f"{path}.judge", unknown(name, self._known))

    @property
    def _choices(self) -> str:
        return f"; the targets are {', '.join(self._known)}" if self._known else ""


def judge_name(chosen: Target | str | None, written: Any, shared: str | None) -> str | None:
    """The name of the default judge: the caller's, else the eval's, else the project's."""
    if chosen is not None:
        return chosen if isinstance(chosen, str) else chosen.name
    return written if isinstance(written, str) and written else shared


def without_judge(own: list[Target], shared: list[Target], judge: str | None) -> tuple[list[Target], list[Target]]:
    """The targets that may be meant where nobody says which to test: who judges is not, unless there is no other."""
    tested = [target for target in own if target.name != judge]
    tested_too = [target for target in shared if target.name != judge]
    return (tested, tested_too) if tested or tested_too else (own, shared)


def unknown(name: str, known: Mapping[str, Target]) -> str:
    """That there is no such target, and which one was probably meant."""
    if not known:
        return f"{name!r} is not defined: add it to `targets`, here or in agentv.yaml"
    return f"there is no target {name!r}{suggest(name, known) or '; the targets are ' + ', '.join(known)}"


_VARIABLE = re.compile(r"\$(\$)?\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
"""`${NAME}`, `${NAME:-otherwise}`, and `$${NAME}` for the text itself."""


def check_targets(
    data: list[Any], source: SourceFile | None, path: str = "targets"
) -> tuple[list[Target], list[Problem]]:
    """The targets of a file, and everything that is wrong with them."""
    found: dict[str, Target] = {}
    problems: list[Problem] = []
    for index, item in enumerate(data):
        place = f"{path}[{index}]"
        target, wrong = _check_target(item, place)
        problems += wrong
        if target is None:
            continue
        if target.name in found:
            problems.append(Problem(f"{place}.name", f"{target.name!r} is already the name of another target"))
        found[target.name] = target._replace(place=source.place(place) if source else None)
    return list(found.values()), problems


def _check_target(data: Any, path: str) -> tuple[Target | None, list[Problem]]:
    if not isinstance(data, Mapping):
        return None, [Problem(path, f"expected a mapping with a `name` and a `provider`, got {shown(data)}")]
    problems = []
    name, provider = data.get("name"), data.get("provider")
    if not isinstance(name, str) or not name:
        problems.append(Problem(f"{path}.name", "required: the name that `target` and results use"))
    if not isinstance(provider, str):
        return None, [*problems, Problem(f"{path}.provider", f"required; one of {', '.join(PROVIDERS)}")]
    cls = find_provider(provider)
    if cls is None:
        return None, [*problems, Problem(f"{path}.provider", not_a_choice(provider, provider_names()))]
    text, wrong = as_json({**data, "provider": provider.replace("-", "_")}, path)
    if text is None:
        return None, [*problems, *wrong]
    made, wrong = build(cls, text, path)
    problems += wrong
    if made is not None:
        problems += [*made.check(path), *_check_plain_blocks(made, path)]
    if problems:
        return None, problems
    return Target(str(name), provider.replace("-", "_"), data), []


def make_provider(target: Target, environment: Mapping[str, str]) -> Provider:
    """The provider with its variables resolved, or a `SpecError` that names those that are not set."""
    if target.instance is not None:
        return target.instance
    missing: list[str] = []
    cls: type[Provider] = find_provider(target.provider)  # type: ignore[assignment]  # it was found when it was checked
    templates = getattr(cls, "templates", ())
    settings = {
        key: _resolved(value, environment, missing, shield if key in templates else str)
        for key, value in target.settings.items()
    }
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        message = f"target {target.name!r} needs the environment variable{'s' * (len(set(missing)) > 1)} {names}"
        raise SpecError([Problem("", f"{message}, which is not set", "whole", target.place)])
    made, problems = build(cls, msgspec.json.encode({**settings, "provider": target.provider}), "")
    if made is not None:
        problems = _check_plain_blocks(made, "")  # a variable may hold what a file must not say
    if made is None or problems:
        raise SpecError([problem._replace(place=target.place) for problem in problems])
    return made


def _check_plain_blocks(provider: Any, path: str) -> list[Problem]:
    """Check `plain_blocks` here, since a provider's own `check` may replace that of its base class."""
    found = enumerate(getattr(provider, "plain_blocks", ()))
    problems = ((index, plain_block_problem(name)) for index, name in found)
    return [Problem(join(path, f"plain_blocks[{index}]"), problem) for index, problem in problems if problem]


def add_plain_blocks(target: Target, names: Sequence[str]) -> Target:
    """Return the target with these block types added to its `plain_blocks`."""
    if not names:
        return target
    blocks = list(dict.fromkeys([*target.settings.get("plain_blocks", ()), *names]))
    made = target.instance
    if isinstance(made, msgspec.Struct) and "plain_blocks" in made.__struct_fields__:
        made = with_fields(made, plain_blocks=tuple(blocks))
    return target._replace(settings={**target.settings, "plain_blocks": blocks}, instance=made)


def variables_of(settings: Any) -> Iterator[str]:
    """The names of the environment variables that these settings use."""
    if isinstance(settings, str):
        yield from (found[2] for found in _VARIABLE.finditer(settings) if not found[1])
    elif isinstance(settings, Mapping):
        for value in settings.values():
            yield from variables_of(value)
    elif isinstance(settings, (list, tuple)):
        for value in settings:
            yield from variables_of(value)


def resolved_settings(settings: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """The settings with these variables replaced; those that are not there are empty."""
    found: dict[str, Any] = _resolved(dict(settings), environment, [])
    return found


def _resolved(
    value: Any, environment: Mapping[str, str], missing: list[str], written: Callable[[str], str] = str
) -> Any:
    """The value with every variable replaced, once: what a variable holds is never read again."""

    def replace(found: re.Match[str]) -> str:
        escaped, name, otherwise = found.groups()
        if escaped:
            return found[0][1:]
        held = environment.get(name, otherwise)
        if held is None:
            missing.append(name)
        return written(held or "")

    if isinstance(value, str):
        return _VARIABLE.sub(replace, value)
    if isinstance(value, Mapping):
        return {key: _resolved(item, environment, missing, written) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_resolved(item, environment, missing, written) for item in value]
    return value


def select_targets(
    wanted: tuple[str, ...], written: str | list[str] | None, own: list[Target], shared: list[Target]
) -> tuple[tuple[Target, ...], list[Problem]]:
    """The targets to test: those asked for on the command line, else by the file, else all that the file defines."""
    known = {target.name: target for target in [*shared, *own]}
    if wanted:
        names = list(wanted)
    elif written is not None:
        names = [written] if isinstance(written, str) else list(written)
    elif own or len(shared) == 1:
        names = [target.name for target in own or shared]
    else:
        fix = (
            f"choose with `target`: {', '.join(known)}" if known else "define one in `targets`, here or in agentv.yaml"
        )
        return (), [Problem("", f"no target to test: {fix}", "whole")]
    unknown = [name for name in names if name not in known]
    path = "--target" if wanted else "target" if written is not None else ""
    if unknown and not known:
        return (), [Problem(path, f"{unknown[0]!r} is not defined: add it to `targets`, here or in agentv.yaml")]
    problems = [Problem(path, not_a_choice(name, list(known))) for name in unknown]
    return tuple(known[name] for name in dict.fromkeys(names) if name in known), problems
