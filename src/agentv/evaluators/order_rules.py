"""The rules of `tool_order`, written as YAML or as a plain sentence."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from agentv.errors import Problem
from agentv.evaluators.told import Name

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
    """One constraint on two tools, whichever way it was written."""

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
    """The constraints of a rule; none when it is not one."""
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
    """What cannot be meant by one rule."""
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
    given = [key for key in rule.__struct_fields__ if getattr(rule, key) is not UNSET]
    if not given:
        yield Problem(path, f"says nothing; write {FORMS}")
        return
    kind = next(keys for keys in KINDS if given[0] in keys)
    for key in given:
        if key not in kind:
            yield Problem(f"{path}.{key}", f"does not go with `{given[0]}`; make it a rule of its own")
    for key in kind:
        if key not in given:
            yield Problem(f"{path}.{given[0]}", f"says nothing without `{key}` beside it")


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
    """`; did you mean 'A before B'?`, for what is often written instead."""
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
