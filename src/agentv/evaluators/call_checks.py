"""Helpers shared by the evaluators of tool calls.

While a reply is understood only in part, the calls that were read are a lower bound: further ones may be anywhere
before, between and after them. A constraint is decided only if it holds, or fails, whatever was not understood.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from agentv.errors import Problem
from agentv.evaluators.base import ConstraintTally, EvaluatorBase
from agentv.matching.text import name_match
from agentv.model.conversation import NOT_CAPTURED, Message, ToolCall, has_gap
from agentv.model.response import Unread
from agentv.model.results import EvaluatorResult
from agentv.protocols import Context
from agentv.scoring.calls import about_messages, about_trace

ONLY_COUNTS = "a `trace_summary` says only how often each tool was called; send `output_messages`"
MAX_PLACES = 3
"""The number of places that a sentence names."""
NO_PLACE = "the reply was not understood completely, so calls may be missing"


def unread_calls(ctx: Context) -> str:
    """Return where calls may be missing and why, as the reason of a sentence."""
    is_about_calls = about_trace if ctx.calls_source == "trace" else about_messages
    return _join([place for place in ctx.unread if is_about_calls(place)])


def unread_messages(ctx: Context) -> str:
    """Return where messages may be missing and why, as the reason of a sentence; empty when none can be."""
    places = [place for place in ctx.unread if about_messages(place)]
    return _join(places) if places else ""


def unread_steps(ctx: Context) -> str:
    """Return why the steps of the agent are not known completely; empty when they are."""
    if not ctx.calls_complete:
        return unread_calls(ctx)
    # The calls may be known from a trace although the messages, which a judge is shown, are not.
    return unread_messages(ctx) if ctx.output_messages else ""


def _join(places: Sequence[Unread]) -> str:
    if not places:
        return NO_PLACE
    more = [f"and {len(places) - MAX_PLACES} more"] if len(places) > MAX_PLACES else []
    return "; ".join([*map(str, places[:MAX_PLACES]), *more])


def is_result_unread(call: ToolCall) -> bool:
    """Return whether nothing is known of the result of a call, which in a partly understood reply may be anything."""
    return call.output is UNSET and call.status is None and call.error is None


def has_missing_text(call: ToolCall) -> bool:
    """Return whether the input or the output of a call is not all there: it was redacted, cut, or not captured."""
    return has_missing_input(call) or has_gap(call.output) or is_not_captured(call, "output")


def has_missing_input(call: ToolCall) -> bool:
    """Return whether the input of a call is not all there."""
    return has_gap(call.input) or is_not_captured(call, "input")


def is_not_captured(call: ToolCall, field: Literal["input", "output"]) -> bool:
    """Return whether a trace has a call without this field although the call had it."""
    if call.metadata is None or getattr(call, field) is not UNSET:
        return False
    fields = call.metadata.get(NOT_CAPTURED)
    return isinstance(fields, (list, tuple)) and field in fields


def is_any_name(pattern: str) -> bool:
    """Return whether a pattern means every tool, and so a call without a name too."""
    return bool(pattern) and not pattern.strip("*")


Choice = Literal["include", "exclude"]


class CallFilter(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Filter of calls by their status."""

    ok: Choice = "include"
    """Count successful calls."""
    error: Choice | None = None
    """Count calls that ended in an error."""
    failed: Choice | None = None
    """Another word for `error`."""
    denied: Choice = "exclude"
    """Count calls that were not permitted."""
    pending: Choice = "exclude"
    """Count calls that have not ended."""

    @property
    def excluded(self) -> frozenset[str]:
        """The statuses that do not count."""
        chosen = {"ok": self.ok, "error": self.error or self.failed, "denied": self.denied, "pending": self.pending}
        return frozenset(status for status, choice in chosen.items() if choice == "exclude")


Name = Annotated[str, Meta(min_length=1)]
Names = Annotated[list[Name], Meta(min_length=1)]
"""Tools by name or glob; a list of none would leave nothing to check."""

NO_CALLS = "the reply does not say which tools were called; have the agent send `output_messages` with its `tool_calls`"
NO_TURNS = "the reply has no assistant messages; have the agent send `output_messages`"
MAX_LISTED = 100
DEFAULT_EXCLUDED = CallFilter().excluded


def missing_calls_reason(ctx: Context) -> str:
    """Return what the agent has to send so that the calls are known."""
    return NO_CALLS if ctx.calls_source is None else ONLY_COUNTS


def reported_counts(ctx: Context) -> Mapping[str, int] | None:
    """Return the calls by tool from the agent's summary; `None` if it sent none."""
    if ctx.calls_source is None or ctx.trace_summary is None:
        return None
    return ctx.trace_summary.tool_calls_by_name


def assistant_turns(ctx: Context) -> list[tuple[int, Message]]:
    """Return the assistant messages with their indices in `output_messages`; none if the agent sent none."""
    return [(place, message) for place, message in enumerate(ctx.output_messages or ()) if message.role == "assistant"]


def match_tools(patterns: list[str] | UnsetType, names: Iterable[str]) -> set[str]:
    """Return the names that the patterns match; without patterns, every name."""
    known = set(names) - {""}
    if isinstance(patterns, UnsetType):
        return known
    return {name for name in known if any(name_match(pattern, name) for pattern in patterns)}


def excluded_statuses(calls: CallFilter | None) -> frozenset[str]:
    """Return the statuses that do not count; by default the same as in `tool_trajectory`."""
    return DEFAULT_EXCLUDED if calls is None else calls.excluded


_UNCOUNTED = {"ok": "was successful", "error": "ended in an error", "denied": "was denied", "pending": "has not ended"}


def explain_uncounted(
    calls: Sequence[ToolCall], excluded: frozenset[str], is_wanted: Callable[[str], bool]
) -> list[str]:
    """Return a sentence for each wanted call that was made but does not count because of its status."""
    return truncate_list(
        [
            f"call {number} {call.tool} {_UNCOUNTED[call.effective_status]}, so it does not count"
            for number, call in enumerate(calls)
            if call.effective_status in excluded and is_wanted(call.tool)
        ]
    )


def check_filter(calls: CallFilter | None, path: str) -> Iterator[Problem]:
    """Yield a problem if both words for one status are given."""
    if calls is not None and calls.error and calls.failed:
        yield Problem(f"{path}.calls.failed", "`failed` is another word for `error`; give one of them")


def check_bounds(least: int | UnsetType, most: int | UnsetType, path: str) -> Iterator[Problem]:
    """Yield a problem if the minimum is above the maximum."""
    if isinstance(least, int) and isinstance(most, int) and least > most:
        yield Problem(f"{path}.min", f"{least} is above the `max` of {most}")


def truncate_list(sentences: Sequence[str]) -> list[str]:
    """Return the sentences; of a long list, the first and the number of the others."""
    more = len(sentences) - MAX_LISTED
    return [*sentences[:MAX_LISTED], f"and {more} more"] if more > 0 else list(sentences)


def join_numbers(unit: str, numbers: Sequence[int], most: int = 10) -> str:
    """Return `call 3` or `calls 1, 2, 4`; of a long list, the first and the number of the others."""
    shown = ", ".join(map(str, numbers[:most]))
    more = f" and {len(numbers) - most} more" if len(numbers) > most else ""
    return f"{unit}{'' if len(numbers) == 1 else 's'} {shown}{more}"


def n_times(number: int) -> str:
    """Return `1 time` or `2 times`."""
    return f"{number} {'time' if number == 1 else 'times'}"


def result_from(evaluator: EvaluatorBase, tally: ConstraintTally, **details: Any) -> EvaluatorResult:
    """Return the result for these decided constraints."""
    status, score = tally.verdict(evaluator.threshold, negate=evaluator.negate)
    return evaluator.result(status, score, tally.hits, tally.misses, {**details, "undecided": tally.undecided})
