"""Expected calls made ready to judge any number of actual ones."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from agentv.evaluators.call_checks import is_any_name, is_result_unread
from agentv.evaluators.trajectory.config import Entry, ToolRule, input_rule, reachable_rules, rule_for, written
from agentv.evaluators.trajectory.index import ExpectationIndex, key_of
from agentv.matching.diff import NOTHING, Difference, differences, plain_differences, unlike_keys
from agentv.matching.equality import encoded, has_operators, same
from agentv.matching.inputs import ExpectedInput, InputMode
from agentv.matching.matchers import Predicate, equals
from agentv.matching.text import glob_test, is_glob
from agentv.model.conversation import ToolCall

UNNAMED = "(unnamed)"
ANY_NAME = "\0"
"""A name that every glob accepts and no tool has."""
# Up to here asking every expectation is cheaper than filing them first.
FEW_PAIRS = 256


class CountedCalls(Struct, frozen=True, eq=False):
    """The calls that count, with their places in the unfiltered list."""

    calls: Sequence[ToolCall]
    numbers: Sequence[int]

    def __len__(self) -> int:
        return len(self.calls)

    @property
    def is_whole(self) -> bool:
        """Whether every call counts."""
        return type(self.numbers) is range

    def name(self, place: int) -> str:
        """How the call at this place is called."""
        return self.calls[place].tool or UNNAMED


def count_calls(calls: Sequence[ToolCall], excluded: frozenset[str]) -> CountedCalls:
    """The calls that count, by their status."""
    for call in calls:
        if call.status is not None or call.error is not None:
            break
    else:
        if "ok" not in excluded:
            return CountedCalls(calls, range(len(calls)))
    numbers = [number for number, call in enumerate(calls) if call.effective_status not in excluded]
    return CountedCalls([calls[number] for number in numbers], numbers)


def count_certain_calls(calls: Sequence[ToolCall], excluded: frozenset[str]) -> CountedCalls:
    """Return the calls of a partly understood reply that count whatever was not understood.

    A result that was not read may be an error, or none: it decides whether its call counts where only one of the two
    does. A denied or pending call has no result; that it is one stands at the call itself.
    """
    made = count_calls(calls, excluded)
    if "error" not in excluded:
        return made
    places = [place for place, call in enumerate(made.calls) if not is_result_unread(call)]
    return CountedCalls([made.calls[place] for place in places], [made.numbers[place] for place in places])


class Expectation:
    """One expected call."""

    __slots__ = (
        "_fits", "_inputs", "_output", "_tools", "default_mode", "entry", "globbed", "input", "limit", "plain",
        "status", "tool",
    )  # fmt: skip

    def __init__(
        self,
        entry: Entry,
        default_mode: InputMode,
        tools: dict[str, ToolRule] | None,
        *,
        globs: bool = True,
        plain: bool = False,
    ) -> None:
        self.entry = entry
        self.tool = entry.tool
        self.globbed = globs and is_glob(entry.tool)
        self.input = entry.wanted_input
        self.limit = entry.max_duration_ms
        self.status = entry.status
        self.default_mode = default_mode
        self._tools = tools
        self._inputs: dict[str, ExpectedInput] = {}
        self._output: Predicate | None = None
        self._fits: Callable[[str], bool] | None = None
        self.plain = plain and self.input is not UNSET
        if self.input is not UNSET and not plain:
            if default_mode == "exact" and tools is None and entry.input_match is None:
                # By far the most common expectation: one comparison decides it.
                self.plain = not has_operators(encoded(self.input))
            elif all(self._mode_under(rule) == "ignore" for rule in reachable_rules(entry, tools)):
                self.input = UNSET

    @property
    def only_input(self) -> bool:
        """Whether nothing is asked of the result."""
        return self.entry.output is UNSET and self.status is None

    @property
    def name_only(self) -> bool:
        """Whether nothing but the name is asked for."""
        return self.input is UNSET and self.only_input

    def name_only_among(self, tools: Iterable[str]) -> bool:
        """Whether, for calls of these tools, nothing but the name is asked for."""
        if self.name_only or not (self.globbed and self.only_input):
            return self.name_only
        meant = [tool for tool in tools if self.names(tool)]
        return bool(meant) and all(self.input_for(tool).mode == "ignore" for tool in meant)

    def key(self) -> Hashable:
        """What two expectations share exactly when they accept the same calls."""
        entry = self.entry
        return (self.tool, key_of(self.input), key_of(entry.output), entry.status, str(entry.input_match))

    def names(self, tool: str) -> bool:
        """Whether a call of this tool is meant."""
        if not self.globbed:
            return tool == self.tool
        if self._fits is None:
            self._fits = glob_test(self.tool)
        return bool(tool) and self._fits(tool)

    def input_for(self, tool: str) -> ExpectedInput:
        """The expected input as it is compared with a call of this tool."""
        known = self._inputs.get(tool)
        if known is None:
            rule = rule_for(self._tools, tool)
            known = self._inputs[tool] = ExpectedInput(self.input, self._mode_under(rule), input_rule(rule))
        return known

    def _mode_under(self, rule: ToolRule | None) -> InputMode:
        """The entry's mode, else the tool's, else the evaluator's."""
        return written(self.entry.input_match) or (rule and written(rule.input_match)) or self.default_mode

    def accepts(self, call: ToolCall) -> bool:
        """Whether this call, whose name fits, is what is expected."""
        if self.plain:
            if not same(self.input, call.input):
                return False
        elif self.input is not UNSET and not self.input_for(call.tool).matches(call.input):
            return False
        if self.status is not None and call.effective_status != self.status:
            return False
        if self.entry.output is UNSET:
            return True
        if self._output is None:
            self._output = equals(self.entry.output)
        return call.output is not UNSET and self._output(call.output)

    def without_result(self) -> "Expectation":
        """Return the same expectation without what it asks of the result."""
        if self.only_input:
            return self
        entry = replace(self.entry, output=UNSET, status=None)
        return Expectation(entry, self.default_mode, self._tools, globs=self.globbed)

    def may_accept(self, call: ToolCall) -> bool:
        """Return whether a call without a name could be what is expected."""
        if not self.globbed:
            return self.accepts(replace(call, tool=self.tool))
        rules = self._tools or {}
        if any(is_glob(key) for key in rules):
            return True  # what its input is compared by depends on the name
        names = [ANY_NAME, *(key for key in rules if self.names(key))]
        return any(self.accepts(replace(call, tool=name)) for name in names)

    def must_accept(self, call: ToolCall) -> bool:
        """Return whether a call without a name is what is expected whatever it is called."""
        is_ruled = self._tools is not None and self.input is not UNSET
        return self.globbed and is_any_name(self.tool) and not is_ruled and self.accepts(replace(call, tool=ANY_NAME))

    def differences(self, call: ToolCall) -> list[Difference]:
        """Every path at which this call, whose name fits, is not what is expected."""
        if self.input is UNSET:
            found = []
        elif self.plain:
            given = NOTHING if call.input is UNSET else call.input
            found = [] if same(self.input, given) else plain_differences(self.input, given, "input")
        else:
            found = self.input_for(call.tool).differences(call.input)
        if self.entry.output is not UNSET:
            if call.output is UNSET:
                found.append(Difference("output", self.entry.output, NOTHING))
            else:
                found.extend(differences(self.entry.output, call.output, "output"))
        if self.status is not None and call.effective_status != self.status:
            found.append(Difference("status", self.status, call.effective_status))
        return found

    def expects_arguments(self, tool: str) -> bool:
        """Whether a call of this tool can agree or disagree with any argument."""
        if self.plain:
            return bool(self.input != {})
        return self.input is not UNSET and self.input_for(tool).expects_arguments()

    def agreement(self, call: ToolCall, found: list[Difference]) -> float | None:
        """The share of expected arguments that this call meets; `None` when none is expected."""
        if self.plain and isinstance(self.input, dict):
            return _plain_agreement(self.input, call.input)
        return None if self.input is UNSET else self.input_for(call.tool).agreement(found)


def _plain_agreement(wanted: dict[str, Any], given: Any) -> float | None:
    if not wanted:
        return None
    if not isinstance(given, dict):
        return 0.0
    return (len(wanted) - len(unlike_keys(wanted, given))) / len(wanted)


class CallMatcher:
    """Which calls meet which expectations, each distinct pair judged at most once."""

    def __init__(self, expectations: Sequence[Expectation]) -> None:
        self.expectations = expectations
        self._filed: ExpectationIndex | None = None

    def rows(self, calls: Sequence[ToolCall]) -> list[int]:
        """For each call the expectations it meets, as bits."""
        filed = self._filed
        if filed is None:
            if len(self.expectations) * len(calls) <= FEW_PAIRS:
                return self._rows_one_by_one(calls)
            # Other threads may be here too: they see nothing of it before it is complete.
            filed = self._filed = ExpectationIndex(self.expectations)
        return filed.rows(calls)

    def _rows_one_by_one(self, calls: Sequence[ToolCall]) -> list[int]:
        by_tool: dict[str, list[tuple[int, Expectation]]] = {}
        globs: list[tuple[int, Expectation]] = []
        for index, expectation in enumerate(self.expectations):
            filed = globs if expectation.globbed else by_tool.setdefault(expectation.tool, [])
            filed.append((1 << index, expectation))
        rows: list[int] = []
        for call in calls:
            row = 0
            for bit, expectation in by_tool.get(call.tool, ()):
                if expectation.accepts(call):
                    row |= bit
            for bit, expectation in globs:
                if expectation.names(call.tool) and expectation.accepts(call):
                    row |= bit
            rows.append(row)
        return rows
