"""Expected calls, compiled for comparison with any number of actual calls."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from agentv.evaluators.call_checks import is_any_name, is_not_captured, is_result_unread
from agentv.evaluators.trajectory.config import Entry, ToolRule, as_input_mode, input_rule, reachable_rules, rule_for
from agentv.evaluators.trajectory.index import ExpectationIndex, key_of
from agentv.matching.diff import Difference, differences, differing_keys, plain_differences
from agentv.matching.equality import has_operators, json_equal, sorted_json
from agentv.matching.gaps import Known, compare_known, every
from agentv.matching.inputs import ExpectedInput, InputMode
from agentv.matching.json_pointer import NOTHING
from agentv.matching.matchers import Predicate, equals
from agentv.matching.text import glob_test, is_glob
from agentv.model.conversation import ToolCall

UNNAMED = "(unnamed)"
ANY_NAME = "\0"
"""A name that every glob accepts and no tool has."""
# Up to this many pairs of expectations and calls, comparing all is faster than building an index.
FEW_PAIRS = 256


class CountedCalls(Struct, frozen=True, eq=False):
    """The calls that count, with their places in the unfiltered list."""

    calls: Sequence[ToolCall]
    numbers: Sequence[int]

    def __len__(self) -> int:
        return len(self.calls)

    @property
    def is_whole(self) -> bool:
        """True if every call counts."""
        return type(self.numbers) is range

    def name(self, place: int) -> str:
        """Return the name of the call at this place."""
        return self.calls[place].tool or UNNAMED


def count_calls(calls: Sequence[ToolCall], excluded: frozenset[str]) -> CountedCalls:
    """Return the calls that count, by their status."""
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

    A result that was not read may be an error or not, which decides whether its call counts if only one of the two
    counts. Whether a call is denied or pending is known without its result.
    """
    counted = count_calls(calls, excluded)
    if "error" not in excluded:
        return counted
    places = [place for place, call in enumerate(counted.calls) if not is_result_unread(call)]
    return CountedCalls([counted.calls[place] for place in places], [counted.numbers[place] for place in places])


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
                # The most common expectation by far: one comparison decides it.
                self.plain = not has_operators(sorted_json(self.input))
            elif all(self._mode_under(rule) == "ignore" for rule in reachable_rules(entry, tools)):
                self.input = UNSET

    @property
    def only_input(self) -> bool:
        """True if nothing is required of the result."""
        return self.entry.output is UNSET and self.status is None

    @property
    def name_only(self) -> bool:
        """True if only the name is required."""
        return self.input is UNSET and self.only_input

    def name_only_among(self, tools: Iterable[str]) -> bool:
        """Return whether only the name is required of calls of these tools."""
        if self.name_only or not (self.globbed and self.only_input):
            return self.name_only
        meant = [tool for tool in tools if self.names(tool)]
        return bool(meant) and all(self.input_for(tool).mode == "ignore" for tool in meant)

    def key(self) -> Hashable:
        """Return a key that is equal for expectations that accept the same calls."""
        entry = self.entry
        return (self.tool, key_of(self.input), key_of(entry.output), entry.status, str(entry.input_match))

    def names(self, tool: str) -> bool:
        """Return whether a tool of this name is accepted."""
        if not self.globbed:
            return tool == self.tool
        if self._fits is None:
            self._fits = glob_test(self.tool)
        return bool(tool) and self._fits(tool)

    def input_for(self, tool: str) -> ExpectedInput:
        """Return the expected input, compiled for calls of this tool."""
        known = self._inputs.get(tool)
        if known is None:
            rule = rule_for(self._tools, tool)
            known = self._inputs[tool] = ExpectedInput(self.input, self._mode_under(rule), input_rule(rule))
        return known

    def _mode_under(self, rule: ToolRule | None) -> InputMode:
        """Return the input match mode: the entry's, else the tool's, else the evaluator's."""
        return as_input_mode(self.entry.input_match) or (rule and as_input_mode(rule.input_match)) or self.default_mode

    def accepts(self, call: ToolCall) -> bool:
        """Return whether a call, whose name fits, is accepted."""
        if self.plain:
            if not json_equal(self.input, call.input):
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

    def accepts_known(self, call: ToolCall, *, is_result_known: bool = True) -> Known:
        """Return the same for a call in which text is missing; `None` if it depends on that text, or on its result."""
        fits: Known = True
        if self.input is not UNSET:
            is_known = not is_not_captured(call, "input")
            fits = self.input_for(call.tool).matches_known(call.input) if is_known else None
        if self.only_input or fits is False:
            return fits
        if not is_result_known:
            return None
        if self.status is not None and call.effective_status != self.status:
            return False
        if self.entry.output is UNSET:
            return fits
        output: Known = None if is_not_captured(call, "output") else False
        if call.output is not UNSET:
            output = compare_known(self.entry.output, call.output)
        return every([fits, output])

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
            return True  # the rule for its input depends on the name
        names = [ANY_NAME, *(key for key in rules if self.names(key))]
        return any(self.accepts(replace(call, tool=name)) for name in names)

    def must_accept(self, call: ToolCall) -> bool:
        """Return whether a call without a name is what is expected whatever it is called."""
        is_ruled = self._tools is not None and self.input is not UNSET
        return self.globbed and is_any_name(self.tool) and not is_ruled and self.accepts(replace(call, tool=ANY_NAME))

    def differences(self, call: ToolCall) -> list[Difference]:
        """Return every path at which a call, whose name fits, differs from the expected one."""
        if self.input is UNSET:
            result = []
        elif self.plain:
            actual = NOTHING if call.input is UNSET else call.input
            result = [] if json_equal(self.input, actual) else plain_differences(self.input, actual, "input")
        else:
            result = self.input_for(call.tool).differences(call.input)
        if self.entry.output is not UNSET:
            if call.output is UNSET:
                result.append(Difference("output", self.entry.output, NOTHING))
            else:
                result.extend(differences(self.entry.output, call.output, "output"))
        if self.status is not None and call.effective_status != self.status:
            result.append(Difference("status", self.status, call.effective_status))
        return result

    def expects_arguments(self, tool: str) -> bool:
        """Return whether any argument is expected of a call of this tool."""
        if self.plain:
            return bool(self.input != {})
        return self.input is not UNSET and self.input_for(tool).expects_arguments()

    def agreement(self, call: ToolCall, differences: list[Difference]) -> float | None:
        """Return the share of expected arguments that a call meets; `None` if none is expected."""
        if self.plain and isinstance(self.input, dict):
            return _plain_agreement(self.input, call.input)
        return None if self.input is UNSET else self.input_for(call.tool).agreement(differences)


def _plain_agreement(wanted: dict[str, Any], actual: Any) -> float | None:
    if not wanted:
        return None
    if not isinstance(actual, dict):
        return 0.0
    return (len(wanted) - len(differing_keys(wanted, actual))) / len(wanted)


class CallMatcher:
    """Comparison of calls with expectations, each distinct pair at most once."""

    def __init__(self, expectations: Sequence[Expectation]) -> None:
        self.expectations = expectations
        self._index: ExpectationIndex | None = None

    def rows(self, calls: Sequence[ToolCall]) -> list[int]:
        """Return for each call the expectations that it meets, as bits."""
        entries = self._index
        if entries is None:
            if len(self.expectations) * len(calls) <= FEW_PAIRS:
                return self._rows_one_by_one(calls)
            # Assigned when complete, as other threads may use this matcher too.
            entries = self._index = ExpectationIndex(self.expectations)
        return entries.rows(calls)

    def _rows_one_by_one(self, calls: Sequence[ToolCall]) -> list[int]:
        by_tool: dict[str, list[tuple[int, Expectation]]] = {}
        globs: list[tuple[int, Expectation]] = []
        for index, expectation in enumerate(self.expectations):
            entries = globs if expectation.globbed else by_tool.setdefault(expectation.tool, [])
            entries.append((1 << index, expectation))
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
