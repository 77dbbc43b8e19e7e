"""`on`: the place of a run that a check looks at."""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import UNSET

from agentv.errors import EvaluationError, Problem, UndecidedError
from agentv.evaluators.places import MESSAGE, Place, PlaceError, parse_place
from agentv.evaluators.unread import unread_calls
from agentv.jsonio import dump_json
from agentv.matching.diff import NOTHING
from agentv.matching.glob import name_match
from agentv.matching.pointer import MAX_DIGITS, at_step
from agentv.model.message import Message, ToolCall
from agentv.protocols import Context

SEND = "have the target send `output_messages`"
COUNTS_ONLY = "the reply tells only how often tools were called (`trace_summary`)"


class Seen(NamedTuple):
    """What stands at the place in this run."""

    where: str
    """The place in words, with the number of the call or message."""
    value: Any
    is_prose: bool = False
    """Whether it is words by nature: an answer, a message, a thought."""

    @property
    def text(self) -> str:
        """The value as text; what is none is written as JSON."""
        return self.value if isinstance(self.value, str) else dump_json(self.value).decode()


class Absent(NamedTuple):
    """That this run, which was measured, has no such place."""

    sentence: str


def check_place(written: str, path: str) -> list[Problem]:
    """What is wrong with a place."""
    try:
        parse_place(written)
    except PlaceError as error:
        return [Problem(path, str(error))]
    return []


def look(place: Place, ctx: Context) -> Seen | Absent:
    """What stands at this place; an `EvaluationError` when the agent did not report what it takes to tell."""
    return _LOOKS[place.root](place, ctx)


def _answer(place: Place, ctx: Context) -> Seen:
    return Seen(place.written, ctx.candidate, is_prose=True)


def _reasoning(place: Place, ctx: Context) -> Seen:
    if ctx.response.reasoning is None:
        raise _unreported(place.written, "the reply holds no `reasoning`; have the target send it")
    return Seen(place.written, ctx.response.reasoning, is_prose=True)


def _metadata(place: Place, ctx: Context) -> Seen:
    value = _inside(ctx.response.metadata or {}, place.path)
    if value is NOTHING:
        raise _unreported(place.written, "the reply holds no such field; have the target send it")
    return Seen(place.written, value)


def _message(place: Place, ctx: Context) -> Seen | Absent:
    messages = ctx.output_messages
    if not messages:
        raise _unreported(place.written, f"the reply holds no messages; {SEND}")
    numbers = [n for n, message in enumerate(messages) if place.who is None or message.role == place.who]
    number = _at(numbers, place.nth)
    if number is None:
        kind = "" if place.who is None else f" of role {place.who!r}"
        return Absent(f"{place.written} is not there: the agent added {_count(len(numbers), 'message')}{kind}")
    plain = place.who is None and place.nth >= 0
    where = place.head if plain else f"{place.head} (message {number})"
    return _part(place, where, _message_part(messages[number], place))


def _message_part(message: Message, place: Place) -> Any:
    # Blocks are read as their words, unless a path leads into them.
    if place.part == "content" and not place.path:
        return message.text
    value = getattr(message, place.part)
    return NOTHING if value is None else value


def _call(place: Place, ctx: Context) -> Seen | Absent:
    calls = ctx.calls
    if not ctx.calls_complete:
        # Where calls may be missing, no number tells which call it is, nor that there is none.
        msg = f"{place.written}: {unread_calls(ctx)}"
        raise UndecidedError(msg)
    if calls is None:
        return _uncounted(place, ctx)
    numbers = [n for n, call in enumerate(calls) if place.who is None or name_match(place.who, call.tool)]
    number = _at(numbers, place.nth)
    if number is None:
        return _not_called(place, len(numbers))
    call = calls[number]
    facts = [] if place.who is None and place.nth >= 0 else [f"call {number}"]
    if place.who != call.tool:
        facts.append(call.tool or "unnamed")
    return _part(place, f"{place.head} ({', '.join(facts)})", _call_part(call, place))


def _call_part(call: ToolCall, place: Place) -> Any:
    if place.part == "status":
        return call.effective_status
    value = getattr(call, place.part)
    # `null` is something that a tool may give back; an error or metadata of `null` is none.
    return NOTHING if value is UNSET or (value is None and place.part in ("error", "metadata")) else value


def _uncounted(place: Place, ctx: Context) -> Absent:
    """Counts alone can tell that there was no such call, and nothing more."""
    summary = ctx.trace_summary
    if ctx.calls_source is None or summary is None:
        raise _unreported(place.written, f"the reply tells nothing of tool calls; {SEND}")
    counts = summary.tool_calls_by_name.items()
    made = sum(times for tool, times in counts if place.who is None or name_match(place.who, tool))
    if _at(range(made), place.nth) is not None:
        raise _unreported(place.written, f"{COUNTS_ONLY}; {SEND}")
    return _not_called(place, made)


def _not_called(place: Place, made: int) -> Absent:
    told = f"the agent made {_count(made, 'call')}" if place.who is None else f"{place.who} called {_times(made)}"
    return Absent(f"{place.written} is not there: {told}")


def _part(place: Place, where: str, value: Any) -> Seen | Absent:
    if value is NOTHING and place.part in ("error", "name"):
        return Absent(f"{where} is not there: the {place.unit} has none")
    if value is NOTHING:
        raise _unreported(where, f"the agent did not report the {place.part} of this {place.unit}")
    if not place.path:
        return Seen(where, value, is_prose=place.root == MESSAGE and place.part == "content")
    inner = _inside(value, place.path)
    if inner is NOTHING and place.part == "metadata":
        raise _unreported(where, f"the agent did not report {place.tail}")
    if inner is NOTHING:
        return Absent(f"{where} has nothing at {place.tail}")
    return Seen(where.replace(place.head, place.written, 1), inner)


def _inside(value: Any, path: tuple[str, ...]) -> Any:
    """What stands at the end of a path; positions may count from the end, as those of messages and calls do."""
    for step in path:
        back = step[1:]
        if isinstance(value, list) and step[0:1] == "-" and back.isdecimal() and len(back) < MAX_DIGITS:
            value = value[-int(back)] if 0 < int(back) <= len(value) else NOTHING
        else:
            value = at_step(value, step)
        if value is NOTHING:
            break
    return value


def _at(numbers: list[int] | range, nth: int) -> int | None:
    return numbers[nth] if -len(numbers) <= nth < len(numbers) else None


def _unreported(where: str, reason: str) -> EvaluationError:
    return EvaluationError(f"{where}: {reason}")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _times(number: int) -> str:
    return _count(number, "time")


_LOOKS: dict[str, Callable[[Place, Context], Seen | Absent]] = {
    "answer": _answer,
    "reasoning": _reasoning,
    "metadata": _metadata,
    "messages": _message,
    "tool_calls": _call,
}
