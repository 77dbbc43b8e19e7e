"""YAML keys of `tool_trajectory`, and their validation."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

from msgspec import UNSET, Meta, Struct

from agentv.errors import Problem
from agentv.matching.equality import has_operators, sorted_json
from agentv.matching.inputs import PLAIN_RULE, InputMode, InputRule, lookup
from agentv.matching.json_pointer import NOTHING
from agentv.matching.matchers import check_expected, has_matcher, is_matcher
from agentv.matching.text import is_glob, name_match
from agentv.model.conversation import Status

Mode = Literal["exact", "in_order", "any_order", "unordered", "superset", "subset"]
ORDERED = ("exact", "in_order")
CLOSED = ("exact", "unordered", "subset")
"""The modes in which an extra call is a miss."""
FRACTIONS = ("recall", "precision", "f1")
Count = Annotated[int, Meta(ge=0)]
ToolName = Annotated[str, Meta(min_length=1)]
WrittenMode = Literal["exact", "partial", "subset", "ignore"] | list[str]


class Entry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One expected call."""

    tool: ToolName
    """The tool's name; `*` and `?` make it a glob."""
    input: Any = UNSET
    """The input that the tool must be given; absent means anything."""
    args: Any = UNSET
    """Another word for `input`."""
    output: Any = UNSET
    """The output that the tool must return; absent means anything."""
    input_match: WrittenMode | None = None
    """Overrides the evaluator's and the tool's."""
    max_duration_ms: Annotated[float, Meta(ge=0, le=1e15)] | None = None
    """The longest that the call may take."""
    status: Status | None = None
    """The status with which the call must have ended."""

    @property
    def wanted_input(self) -> Any:
        """The expected input under either word."""
        return self.args if self.input is UNSET else self.input


class ToolRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Comparison rules for the calls of one tool."""

    input_match: WrittenMode | None = None
    """The mode in which inputs of this tool are compared; overrides the evaluator's."""
    ignore: list[str] = []
    """Keys that are removed from both sides; a dotted path reaches deeper."""
    defaults: dict[str, Any] = {}
    """An absent key counts as given with this value."""


def as_input_mode(mode: WrittenMode | None) -> InputMode | None:
    """Return an input match mode in hashable form."""
    return tuple(mode) if isinstance(mode, list) else mode


def rule_for(tools: dict[str, ToolRule] | None, tool: str) -> ToolRule | None:
    """Return the rule of this tool: an exact key first, then the globs in the order written."""
    if not tools:
        return None
    if tool in tools:
        return tools[tool]
    return next((rule for key, rule in tools.items() if is_glob(key) and name_match(key, tool)), None)


def input_rule(rule: ToolRule | None) -> InputRule:
    """Return the part of a tool's rule that applies in every mode."""
    return InputRule(tuple(rule.ignore), rule.defaults) if rule and (rule.ignore or rule.defaults) else PLAIN_RULE


def check_entry(entry: Entry, path: str, excluded: frozenset[str]) -> Iterator[Problem]:
    """Yield the problems of one expected call."""
    if entry.input is not UNSET and entry.args is not UNSET:
        yield Problem(f"{path}.args", "`args` is another word for `input`; give one of them")
    for part in ("input", "args", "output"):
        value = getattr(entry, part)
        if value is not UNSET and has_operators(sorted_json(value)):
            yield from check_expected(value, f"{path}.{part}")
    if entry.wanted_input is UNSET and isinstance(entry.input_match, list):
        yield Problem(f"{path}.input_match", "names paths of an input, but the entry has no `input`")
    if entry.status in excluded:
        fix = f"add `calls: {{{entry.status}: include}}`"
        yield Problem(f"{path}.status", f"asks for {entry.status!r} calls, which `calls` excludes; {fix}")


def check_counts(minimums: dict[str, int] | None, maximums: dict[str, int] | None, path: str) -> Iterator[Problem]:
    """Yield a problem for each minimum above the maximum of the same key."""
    for key, least in (minimums or {}).items():
        most = (maximums or {}).get(key)
        if most is not None and least > most:
            yield Problem(f"{path}.minimums.{key}", f"{least} is above the maximum of {most} for the same key")


def check_rules(tools: dict[str, ToolRule] | None, path: str) -> Iterator[Problem]:
    """Yield the problems of the per-tool rules."""
    for key, rule in (tools or {}).items():
        for name, value in rule.defaults.items():
            if has_matcher(value):
                yield Problem(f"{path}.{key}.defaults.{name}", "a default is a plain value, not a matcher")


def check_paths(
    entries: list[Entry], input_match: WrittenMode | None, tools: dict[str, ToolRule] | None, path: str
) -> Iterator[Problem]:
    """Yield a problem for each path that no expected input has: a typo would compare nothing and pass."""
    places: list[tuple[str, list[str], list[tuple[Any, InputRule]]]] = []
    for index, entry in enumerate(entries):
        if isinstance(entry.input_match, list) and entry.wanted_input is not UNSET:
            inputs = [(entry.wanted_input, input_rule(rule)) for rule in reachable_rules(entry, tools)]
            places.append((f"{path}.expected[{index}].input_match", entry.input_match, inputs))
    for key, rule in (tools or {}).items():
        if isinstance(rule.input_match, list):
            inputs = [
                (entry.wanted_input, input_rule(rule))
                for entry in entries
                if entry.input_match is None and any(rule is tool_rule for tool_rule in reachable_rules(entry, tools))
            ]
            places.append((f"{path}.tools.{key}.input_match", rule.input_match, inputs))
    if isinstance(input_match, list):
        inputs = [
            (entry.wanted_input, input_rule(rule))
            for entry in entries
            if entry.input_match is None
            for rule in reachable_rules(entry, tools)
            if rule is None or rule.input_match is None
        ]
        places.append((f"{path}.input_match", input_match, inputs))
    for where, paths, inputs in places:
        for index, dotted in enumerate(paths):
            if not any(_holds(expected, rule, dotted) for expected, rule in inputs):
                yield Problem(
                    f"{where}[{index}]", f"no expected input holds the path {dotted!r}, so it compares nothing"
                )


def reachable_rules(entry: Entry, tools: dict[str, ToolRule] | None) -> list[ToolRule | None]:
    """Return the rules that may apply to a call that meets this entry."""
    if not is_glob(entry.tool):
        return [rule_for(tools, entry.tool)]
    keys = [rule for key, rule in (tools or {}).items() if is_glob(key) or name_match(entry.tool, key)]
    return [None, *keys]


def _holds(expected: Any, rule: InputRule, dotted: str) -> bool:
    if not isinstance(expected, dict) or is_matcher(expected):
        return False
    return lookup({**rule.defaults, **expected}, dotted) is not NOTHING


MODES: tuple[str, ...] = get_args(Mode)
