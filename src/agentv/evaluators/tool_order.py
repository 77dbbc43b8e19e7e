"""`tool_order`: rules about which tool is called before which."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from agentv.errors import Problem
from agentv.evaluators.base import ConstraintTally, EvaluatorBase, Example, cached
from agentv.evaluators.call_checks import (
    CallFilter,
    Name,
    check_filter,
    excluded_statuses,
    is_any_name,
    match_tools,
    missing_calls_reason,
    reported_counts,
    result_from,
    truncate_list,
    unread_calls,
)
from agentv.evaluators.trajectory.constraints import total
from agentv.evaluators.trajectory.expectations import UNNAMED, count_calls, count_certain_calls
from agentv.model.conversation import ToolCall
from agentv.model.results import EvaluatorResult
from agentv.protocols import Context

FORMS = "`A before B`, `every A followed by B` or `never A after B`"
KINDS = (("before",), ("every", "followed_by"), ("never", "after"))
"""The keys of each kind of rule."""


class OrderRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One rule about the order of calls: `before`, or `every` with `followed_by`, or `never` with `after`."""

    before: Annotated[list[Name], Meta(min_length=2)] | UnsetType = UNSET
    """Two or more tools: none is called until the one before it in the list has been."""
    every: Name | UnsetType = UNSET
    """The tool each of whose calls is followed by one of `followed_by`."""
    followed_by: Name | UnsetType = UNSET
    """The tool that is called some time after each call of `every`."""
    never: Name | UnsetType = UNSET
    """The tool that is no longer called once `after` has been."""
    after: Name | UnsetType = UNSET
    """The tool after which `never` is not called."""


class Order(NamedTuple):
    """A constraint on the order of two tools."""

    kind: Literal["before", "followed_by", "never"]
    first: str
    """The tool that is named first."""
    second: str
    """The tool that is named second."""

    def __str__(self) -> str:
        if self.kind == "before":
            return f"{self.first} before {self.second}"
        if self.kind == "never":
            return f"never {self.first} after {self.second}"
        return f"every {self.first} followed by {self.second}"


def orders_of(rule: OrderRule | str) -> list[Order]:
    """Return the constraints of a rule; none if it is invalid."""
    if isinstance(rule, str):
        return _read(rule.split())
    if rule.before is not UNSET:
        return [Order("before", first, second) for first, second in pairwise(rule.before)]
    if rule.every is not UNSET and rule.followed_by is not UNSET:
        return [Order("followed_by", rule.every, rule.followed_by)]
    if rule.never is not UNSET and rule.after is not UNSET:
        return [Order("never", rule.never, rule.after)]
    return []


def check_rule(rule: OrderRule | str, path: str) -> Iterator[Problem]:
    """Return the problems of one rule."""
    if isinstance(rule, OrderRule):
        wrong = list(_check_keys(rule, path))
        if wrong:
            yield from wrong
            return
    orders = orders_of(rule)
    if not orders:
        yield Problem(path, f"{rule!r} is no rule; write {FORMS}{_guess(str(rule))}")
    for order in orders:
        if order.first == order.second and order.kind != "never":
            yield Problem(path, f"no call of {order.first!r} can meet `{order}`: name two tools")


def _check_keys(rule: OrderRule, path: str) -> Iterator[Problem]:
    keys = [key for key in rule.__struct_fields__ if getattr(rule, key) is not UNSET]
    if not keys:
        yield Problem(path, f"says nothing; write {FORMS}")
        return
    kind = next(kind for kind in KINDS if keys[0] in kind)
    for key in keys:
        if key not in kind:
            yield Problem(f"{path}.{key}", f"does not go with `{keys[0]}`; make it a rule of its own")
    for key in kind:
        if key not in keys:
            yield Problem(f"{path}.{keys[0]}", f"says nothing without `{key}` beside it")


def _read(words: list[str]) -> list[Order]:
    match words:
        case [first, "before", second]:
            return [Order("before", first, second)]
        case ["every", first, "followed", "by", second]:
            return [Order("followed_by", first, second)]
        case ["never", first, "after", second]:
            return [Order("never", first, second)]
    return []


def _guess(sentence: str) -> str:
    """Return `; did you mean 'A before B'?` for common spellings of a rule."""
    words = [word for word in sentence.split() if word.lower() not in ("always", "must", "be", "is", "comes", "call")]
    match [word.lower() for word in words]:
        case [_, "after", _]:
            meant = Order("before", words[2], words[0])
        case [_, "before", _] | [_, "then", _]:
            meant = Order("before", words[0], words[2])
        case ["every", _, "before", _]:
            meant = Order("before", words[1], words[3])
        case [_, "followed", "by", _]:
            meant = Order("followed_by", words[0], words[3])
        case ["every", _, "followed", "by", _] | ["each", _, "followed", "by", _]:
            meant = Order("followed_by", words[1], words[4])
        case ["never" | "no", _, "after", _]:
            meant = Order("never", words[1], words[3])
        case ["never" | "no", _, "before", _]:
            meant = Order("before", words[3], words[1])
        case _:
            return ""
    return f"; did you mean '{meant}'?"


class ToolOrder(EvaluatorBase, kw_only=True):
    """Tools were called in an order that follows these rules; other calls may be in between."""

    type: Literal["tool_order"] = "tool_order"
    rules: Annotated[list[OrderRule | str], Meta(min_length=1)]
    """Each a mapping or a sentence: `A before B`, `every A followed by B`, `never A after B`; names may be globs."""
    calls: CallFilter | None = None
    """The calls that count, by their status; denied and pending ones do not, but `never` sees them all."""

    handles_incomplete: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            config={"type": "tool_order", "rules": ["verify before refund", {"every": "refund", "followed_by": "log"}]},
            reply=[{"role": "assistant", "tool_calls": [{"tool": tool} for tool in called]}],
            passes=passes,
        )
        for called, passes in ((("verify", "refund", "log"), True), (("refund", "verify", "log"), False))
    )

    @cached
    def _orders(self) -> list[Order]:
        return [order for rule in self.rules for order in orders_of(rule)]

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the configuration as a whole."""
        rules = [problem for at, rule in enumerate(self.rules) for problem in check_rule(rule, f"{path}.rules[{at}]")]
        return [*rules, *check_filter(self.calls, path)]

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Decide one constraint per rule, or per pair of tools in a `before` of more than two."""
        tally = ConstraintTally()
        if ctx.calls is None:
            counts = reported_counts(ctx)
            for order in self._orders:
                _decide_from_counts(order, counts, missing_calls_reason(ctx), tally)
            return result_from(self, tally)
        excluded = excluded_statuses(self.calls)
        count = count_calls if ctx.calls_complete else count_certain_calls
        counted, names = count(ctx.calls, excluded).numbers, [call.tool for call in ctx.calls]
        for order in self._orders:
            # Like `forbidden` of tool_trajectory, `never` includes failed attempts.
            seen = range(len(names)) if order.kind == "never" else counted
            sides = OrderSides(_numbers(order.first, seen, names), _numbers(order.second, counted, names))
            if ctx.calls_complete or _is_broken(order, sides):
                DECIDE[order.kind](order, sides, ctx.calls, tally)
            else:
                tally.undecided.append(f"{order}: {unread_calls(ctx)}")
        return result_from(self, tally)


class OrderSides(NamedTuple):
    """The numbers of the calls of the two tools of a rule."""

    first: list[int]
    second: list[int]


def _numbers(pattern: str, numbers: Sequence[int], names: Sequence[str]) -> list[int]:
    if is_any_name(pattern):  # a call without a name too
        return list(numbers)
    meant = match_tools([pattern], names)
    return [number for number in numbers if names[number] in meant]


def _is_broken(order: Order, sides: OrderSides) -> bool:
    """Return whether a rule is broken however many further calls there were.

    Any other rule is kept, or broken, by one more call before the first of these or after the last.
    """
    return order.kind == "never" and bool(sides.first and sides.second) and sides.first[-1] > sides.second[0]


def _before(order: Order, sides: OrderSides, calls: Sequence[ToolCall], tally: ConstraintTally) -> None:
    """Decide that no call of the second tool comes before one of the first."""
    if not sides.second:
        tally.add_hit(f"{order}: {order.second} was not called")
        return
    start = sides.first[0] if sides.first else len(calls)
    early = [number for number in sides.second if number <= start]
    if not early:
        first, second = _call(start, calls), _call(sides.second[0], calls)
        tally.add_hit(f"{order}: {first} came before {second}")
        return
    late = f"{calls[start].tool} was call {start}" if sides.first else f"{order.first} was not called"
    tally.add_miss(*truncate_list([f"expected {order}, but {calls[at].tool} was call {at} and {late}" for at in early]))


def _followed(order: Order, sides: OrderSides, calls: Sequence[ToolCall], tally: ConstraintTally) -> None:
    """Decide that a call of the second tool follows the last call of the first."""
    if not sides.first:
        tally.add_hit(f"{order}: {order.first} was not called")
        return
    last = sides.second[-1] if sides.second else -1
    open_ended = [number for number in sides.first if number >= last]
    if not open_ended:
        tally.add_hit(f"{order}: {_call(last, calls)} came after {_call(sides.first[-1], calls)}")
        return
    end = f"the last {order.second} was call {last}" if sides.second else f"{order.second} was not called"
    tally.add_miss(
        *truncate_list([f"expected {order}, but {calls[at].tool} was call {at} and {end}" for at in open_ended])
    )


def _never(order: Order, sides: OrderSides, calls: Sequence[ToolCall], tally: ConstraintTally) -> None:
    """Decide that the first tool is not called after the second."""
    start = sides.second[0] if sides.second else len(calls)
    late = [number for number in sides.first if number > start]
    if late:
        end = f"{_name(calls[start])} was call {start}"
        tally.add_miss(
            *truncate_list([f"expected {order}, but {end} and {_name(calls[at])} was call {at}" for at in late])
        )
    elif not sides.second:
        tally.add_hit(f"{order}: {order.second} was not called")
    else:
        tally.add_hit(f"{order}: no {order.first} came after {_call(start, calls)}")


DECIDE = {"before": _before, "followed_by": _followed, "never": _never}


def _call(number: int, calls: Sequence[ToolCall]) -> str:
    return f"{calls[number].tool} (call {number})"


def _name(call: ToolCall) -> str:
    return call.tool or UNNAMED


def _decide_from_counts(order: Order, counts: Mapping[str, int] | None, lack: str, tally: ConstraintTally) -> None:
    """Decide a rule by counts: a tool that was not called decides it, the order of two that were is unknown."""
    if counts is None:
        tally.undecided.append(f"{order}: {lack}")
        return
    first, second = total(counts, order.first), total(counts, order.second)
    needing, needed = (second, first) if order.kind == "before" else (first, second)
    idle = order.second if order.kind == "before" else order.first
    if not needing:
        tally.add_hit(f"{order}: {idle} was not called")
    elif needed:
        tally.undecided.append(f"{order}: {lack}")
    elif order.kind == "never":
        tally.add_hit(f"{order}: {order.second} was not called")
    else:
        other = order.first if order.kind == "before" else order.second
        tally.add_miss(f"expected {order}, but {other} was not called")
