"""Sentences of hits and misses: each stands alone and names its evidence."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from msgspec import UNSET

from agentv.evaluators.trajectory.expectations import UNNAMED, CountedCalls, Expectation
from agentv.matching.diff import MAX_QUOTED, Difference, quote
from agentv.matching.matchers import is_matcher
from agentv.model.conversation import ToolCall
from agentv.model.response import ProviderResponse
from agentv.redaction import shorten

NO_TRACE = "No trace available for evaluation"
SEND_CALLS = (
    "send `output_messages` with the agent's messages and their `tool_calls`"
    " (messages without any say that no tool was called)"
)


def what_came(response: ProviderResponse) -> str:
    """Return what a reply without any news of calls holds, and what to send instead."""
    if response.trace_summary is not None:
        came = "a `trace_summary` that names tools and not how often they were called"
    elif response.output_messages is not None:
        roles = sorted({message.role or "(none)" for message in response.output_messages})
        came = f"messages of {', '.join(roles)} and none of the assistant" if roles else "an empty `output_messages`"
    elif response.trace is not None:
        came = "a trace without events"
    elif response.text:
        came = f"a text of {len(response.text):,} characters and nothing about calls"
    else:
        came = "neither a text nor messages"
    return f"the reply came with {came}: {SEND_CALLS}"


MAX_DIFFERENCES = 100


def called(tool: str, times: int, bound: str, *, at_least: bool = False) -> str:
    """Return `search called 6 times (maximum: 5)`."""
    return f"{tool} called {'at least ' if at_least else ''}{times} {'time' if times == 1 else 'times'} ({bound})"


def label(expectation: Expectation) -> str:
    """Return the label of an expectation, with its input."""
    return with_input(expectation.tool, expectation.input)


def call_label(call: ToolCall) -> str:
    """Return the label of a call, with its input."""
    return with_input(call.tool or UNNAMED, call.input)


def with_input(tool: str, value: Any) -> str:
    """Return a call as code: `search(query="x", limit=5)`."""
    if value is UNSET:
        return tool
    if not isinstance(value, dict) or is_matcher(value):
        return f"{tool}({quote(value)})"
    arguments = ", ".join(f"{key}={quote(item)}" for key, item in value.items())
    return f"{tool}({shorten(arguments, MAX_QUOTED)})"


def turn_label(names: Iterable[str]) -> str:
    """Return `[A, B]`."""
    return f"[{', '.join(names)}]"


def numbered(unit: str, numbers: Sequence[int]) -> str:
    """Return `calls 0, 2, 4`."""
    listing = _first(len(numbers)) if type(numbers) is range else ", ".join(map(str, numbers))
    return f"{unit}{'' if len(numbers) == 1 else 's'} {listing}"


@lru_cache(maxsize=64)
def _first(count: int) -> str:
    """Return `0, 1, 2`; cached, as nearly every run that passes needs it."""
    return ", ".join(map(str, range(count)))


def matched(mode: str, names: Sequence[str], unit: str, numbers: Sequence[int]) -> str:
    """Return `in_order: A, B, C matched at calls 0, 2, 4`."""
    if not names:
        return f"{mode}: no {unit}s expected"
    return f"{mode}: {', '.join(names)} matched at {numbered(unit, numbers)}"


def fraction(kind: str, value: float, matched_count: int, wanted: int, actual_count: int | str) -> str:
    """Return `f1 0.80 (2 of 2 expected, 3 made)`."""
    return f"{kind} {value:.2f} ({matched_count} of {wanted} expected, {actual_count} made)"


def order(first: str, second: str, unit: str, second_number: int, first_number: int) -> str:
    """Return `expected A before B, but B was call 0 and A was call 1`."""
    return (
        f"expected {first} before {second}, "
        f"but {second} was {unit} {second_number} and {first} was {unit} {first_number}"
    )


def missing(unit: str, name: str, after: str | None, *, ordered: bool) -> str:
    """Return `missing call: B (expected after A)`."""
    place = "" if not ordered else " (expected first)" if after is None else f" (expected after {after})"
    return f"missing {unit}: {name}{place}"


def mismatch(counted: CountedCalls, place: int, differences: Sequence[Difference]) -> str:
    """Return `call 1 search: input.query expected "x", got "y"`."""
    return f"call {counted.numbers[place]} {counted.name(place)}: {joined(differences)}"


def joined(differences: Sequence[Difference]) -> str:
    """Join the differing paths; of a long list, the first."""
    more = f"; and {len(differences) - MAX_DIFFERENCES} more" if len(differences) > MAX_DIFFERENCES else ""
    return "; ".join(map(str, differences[:MAX_DIFFERENCES])) + more


def duration(tool: str, limit: float, took: float | None, *, was_called: bool) -> str:
    """Return `Read took 120ms (max: 50ms)`."""
    if not was_called:
        return f"{tool} was not called (max: {milliseconds(limit)})"
    if took is None:
        return f"{tool} reported no duration (max: {milliseconds(limit)})"
    if took <= limit:
        return f"{tool} completed in {milliseconds(took)} (max: {milliseconds(limit)})"
    return f"{tool} took {milliseconds(took)} (max: {milliseconds(limit)})"


def time_limit(tool: str, limit: float) -> str:
    """Return `Read (max: 50ms)`."""
    return f"{tool} (max: {milliseconds(limit)})"


def milliseconds(value: float) -> str:
    """Return `50ms`."""
    return f"{int(value) if value == int(value) else value}ms"
