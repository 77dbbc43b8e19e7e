"""`on`: the part of a run that an evaluator looks at."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, NamedTuple, NoReturn

from msgspec import UNSET, Meta

from agentv.errors import EvaluationError, Problem, UndecidedError
from agentv.evaluators.base import ConstraintTally, EvaluatorBase, Finding, cached
from agentv.evaluators.call_checks import n_times, unread_calls
from agentv.jsonio import dump_json
from agentv.matching.diff import MAX_QUOTED, quote
from agentv.matching.gaps import known_parts
from agentv.matching.json_pointer import MAX_DIGITS, NOTHING, at_step
from agentv.matching.text import name_match
from agentv.model.conversation import Message, ToolCall, has_gap
from agentv.model.results import EvaluatorResult
from agentv.protocols import Context
from agentv.redaction import WINDOW, shorten_start
from agentv.scoring.scorer import name_incomplete
from agentv.suggestions import suggest

MESSAGE, CALL = "messages", "tool_calls"
ROOTS = ("answer", MESSAGE, CALL, "reasoning", "metadata")
PARTS = {
    MESSAGE: ("content", "role", "name", "metadata"),
    CALL: ("input", "output", "error", "status", "tool", "metadata"),
}
UNITS = {MESSAGE: "message", CALL: "call"}
EXAMPLES = {MESSAGE: "messages[-1].content", CALL: "tool_calls[search][0].output", "metadata": "metadata.model"}
MAX_INDEX_DIGITS = 9


class Selector(NamedTuple):
    """A parsed `on` selector."""

    written: str
    root: str
    who: str | None = None
    """The tool, which may be a glob, or the role that selects calls or messages; `None` selects all."""
    nth: int = 0
    """The index among those, from 0; from the end when negative."""
    part: str = ""
    path: tuple[str, ...] = ()
    """Keys and positions inside of that part."""
    head: str = ""
    """The text before the path."""

    @property
    def tail(self) -> str:
        """The text of the path."""
        return self.written[len(self.head) :].removeprefix(".")

    @property
    def unit(self) -> str:
        """The unit that it selects."""
        return UNITS[self.root]


class PlaceError(ValueError):
    """Error for an invalid selector, with the position of the mistake."""


class SelectorStep(NamedTuple):
    """One `.name`, `[3]` or `[name]`."""

    text: str
    at: int
    end: int
    is_bracket: bool
    number: int | None


@lru_cache(maxsize=256)
def parse_place(written: str) -> Selector:
    """Parse a selector; raise `PlaceError` if it is invalid."""
    stops = [at for at in (written.find("."), written.find("[")) if at >= 0]
    root = written[: min(stops, default=len(written))]
    if root not in ROOTS:
        choices = f"{root!r} is none of {', '.join(ROOTS)}"
        _refuse(f"{choices}{suggest(root, ROOTS, '. Did')}", 0)
    steps = _steps(written, len(root))
    if root in PARTS:
        return _parse_indexed(written, root, steps)
    if root == "metadata":
        if not steps:
            _refuse("the name of a field is missing", len(written), EXAMPLES[root])
        return Selector(written, root, path=tuple(step.text for step in steps))
    if steps:
        json = ". To look into a JSON answer, use the `json` evaluator" if root == "answer" else ""
        _refuse(f"nothing can follow `{root}`{json}", len(root))
    return Selector(written, root)


def _parse_indexed(written: str, root: str, steps: list[SelectorStep]) -> Selector:
    """Parse `ROOT[who][index].part.path`, in which `[who]` and the path are optional."""
    unit, example = UNITS[root], EXAMPLES[root]
    rest = list(steps)
    who = rest.pop(0).text if rest and rest[0].is_bracket and rest[0].number is None else None
    if not rest or rest[0].number is None or not rest[0].is_bracket:
        at = rest[0].at if rest else len(written)
        _refuse(f"the number of the {unit} is missing", at, example)
    index = rest.pop(0).number
    if not rest or rest[0].is_bracket:
        at = rest[0].at if rest else len(written)
        _refuse(f"the part of the {unit} is missing: one of {', '.join(PARTS[root])}", at, example)
    part = rest.pop(0)
    if part.text not in PARTS[root]:
        choices = f"{part.text!r} is no part of a {unit}: one of {', '.join(PARTS[root])}"
        _refuse(choices + suggest(part.text, PARTS[root], ". Did"), part.at)
    path = tuple(step.text for step in rest)
    return Selector(written, root, who, index or 0, part.text, path, written[: part.end])


def _steps(written: str, at: int) -> list[SelectorStep]:
    steps: list[SelectorStep] = []
    while at < len(written):
        if written[at] == "[":
            step = _bracket(written, at)
        elif written[at] == ".":
            stops = [stop for stop in (written.find(".", at + 1), written.find("[", at + 1)) if stop >= 0]
            step = _step(written, at, at + 1, min(stops, default=len(written)))
        else:
            _refuse(f"there should be '.' or '[', not {written[at]!r}", at)
        steps.append(step)
        at = step.end
    return steps


def _bracket(written: str, at: int) -> SelectorStep:
    quote = written[at + 1 : at + 2]
    quoted = quote in ("'", '"')
    close = written.find(f"{quote}]" if quoted else "]", at + 2 if quoted else at + 1)
    if close < 0:
        _refuse("this bracket is never closed", at)
    if not quoted:
        return _step(written, at, at + 1, close, bracket=True)
    return SelectorStep(written[at + 2 : close], at, close + 2, is_bracket=True, number=None)


def _step(written: str, at: int, start: int, stop: int, *, bracket: bool = False) -> SelectorStep:
    text = written[start:stop]
    if not text:
        _refuse("a name or a number is missing", start)
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= MAX_INDEX_DIGITS
    number = int(text) if is_number else None
    return SelectorStep(text, at, stop + 1 if bracket else stop, bracket, number)


def _refuse(reason: str, at: int, example: str = "") -> NoReturn:
    hint = f"; for example {example}" if example else ""
    msg = f"not a place in a run: at character {at + 1}, {reason}{hint}"
    raise PlaceError(msg)


SEND_MESSAGES = "have the target send `output_messages`"
COUNTS_ONLY = "the reply says only how often tools were called (`trace_summary`)"


class Selected(NamedTuple):
    """A selected value of a reply."""

    where: str
    """A description of the place, with the number of the call or message."""
    value: Any
    is_prose: bool = False
    """True if it is text by nature: an answer, a message, a thought."""

    @property
    def text(self) -> str:
        """The value as text; what is none is written as JSON."""
        return self.value if isinstance(self.value, str) else dump_json(self.value).decode()

    @property
    def known_parts(self) -> list[str]:
        """The parts of the text before, between and after what is missing in it."""
        return known_parts(self.text, is_json=not isinstance(self.value, str))


class NotFound(NamedTuple):
    """Raised if a reply, which was understood, has no such value."""

    sentence: str


def check_place(written: str, path: str) -> list[Problem]:
    """Return the problems of a selector."""
    try:
        parse_place(written)
    except PlaceError as error:
        return [Problem(path, str(error))]
    return []


def resolve(place: Selector, ctx: Context) -> Selected | NotFound:
    """Return the selected value; raise `EvaluationError` if the agent did not report what it depends on."""
    return _RESOLVERS[place.root](place, ctx)


def _answer(place: Selector, ctx: Context) -> Selected:
    return Selected(place.written, ctx.candidate, is_prose=True)


def _reasoning(place: Selector, ctx: Context) -> Selected:
    if ctx.response.reasoning is None:
        raise _unreported(place.written, "the reply holds no `reasoning`; have the target send it")
    return Selected(place.written, ctx.response.reasoning, is_prose=True)


def _metadata(place: Selector, ctx: Context) -> Selected:
    value = _inside(ctx.response.metadata or {}, place.path)
    if value is NOTHING:
        raise _unreported(place.written, "the reply holds no such field; have the target send it")
    return Selected(place.written, value)


def _message(place: Selector, ctx: Context) -> Selected | NotFound:
    messages = ctx.output_messages
    if not messages:
        raise _unreported(place.written, f"the reply holds no messages; {SEND_MESSAGES}")
    numbers = [n for n, message in enumerate(messages) if place.who is None or message.role == place.who]
    number = _at(numbers, place.nth)
    if number is None:
        kind = "" if place.who is None else f" of role {place.who!r}"
        return NotFound(f"{place.written} is not there: the agent added {_count(len(numbers), 'message')}{kind}")
    plain = place.who is None and place.nth >= 0
    where = place.head if plain else f"{place.head} (message {number})"
    return _part(place, where, _message_part(messages[number], place))


def _message_part(message: Message, place: Selector) -> Any:
    # Content blocks are read as text, unless a path leads into them.
    if place.part == "content" and not place.path:
        return message.text
    value = getattr(message, place.part)
    return NOTHING if value is None else value


def _call(place: Selector, ctx: Context) -> Selected | NotFound:
    calls = ctx.calls
    if not ctx.calls_complete:
        # If calls may be missing, neither the number of a call nor its absence is known.
        msg = f"{place.written}: {unread_calls(ctx)}"
        raise UndecidedError(msg)
    if calls is None:
        return _resolve_by_counts(place, ctx)
    numbers = [n for n, call in enumerate(calls) if place.who is None or name_match(place.who, call.tool)]
    number = _at(numbers, place.nth)
    if number is None:
        return _not_called(place, len(numbers))
    call = calls[number]
    facts = [] if place.who is None and place.nth >= 0 else [f"call {number}"]
    if place.who != call.tool:
        facts.append(call.tool or "unnamed")
    return _part(place, f"{place.head} ({', '.join(facts)})", _call_part(call, place))


def _call_part(call: ToolCall, place: Selector) -> Any:
    if place.part == "status":
        return call.effective_status
    value = getattr(call, place.part)
    # A tool may return `null`; an error or metadata of `null` is absent.
    return NOTHING if value is UNSET or (value is None and place.part in ("error", "metadata")) else value


def _resolve_by_counts(place: Selector, ctx: Context) -> NotFound:
    """Raise the error for calls known only by counts, which prove at most that there was no such call."""
    summary = ctx.trace_summary
    if ctx.calls_source is None or summary is None:
        raise _unreported(place.written, f"the reply says nothing about tool calls; {SEND_MESSAGES}")
    counts = summary.tool_calls_by_name.items()
    number = sum(times for tool, times in counts if place.who is None or name_match(place.who, tool))
    if _at(range(number), place.nth) is not None:
        raise _unreported(place.written, f"{COUNTS_ONLY}; {SEND_MESSAGES}")
    return _not_called(place, number)


def _not_called(place: Selector, times: int) -> NotFound:
    reason = f"the agent made {_count(times, 'call')}" if place.who is None else f"{place.who} called {n_times(times)}"
    return NotFound(f"{place.written} is not there: {reason}")


def _part(place: Selector, where: str, value: Any) -> Selected | NotFound:
    if value is NOTHING and place.part in ("error", "name"):
        return NotFound(f"{where} is not there: the {place.unit} has none")
    if value is NOTHING:
        raise _unreported(where, f"the agent did not report the {place.part} of this {place.unit}")
    if not place.path:
        return Selected(where, value, is_prose=place.root == MESSAGE and place.part == "content")
    inner = _inside(value, place.path)
    if inner is NOTHING and place.part == "metadata":
        raise _unreported(where, f"the agent did not report {place.tail}")
    if inner is NOTHING:
        return NotFound(f"{where} has nothing at {place.tail}")
    return Selected(where.replace(place.head, place.written, 1), inner)


def _inside(value: Any, path: tuple[str, ...]) -> Any:
    """Return the value at the end of a path; list positions may count from the end."""
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


_RESOLVERS: dict[str, Callable[[Selector, Context], Selected | NotFound]] = {
    "answer": _answer,
    "reasoning": _reasoning,
    "metadata": _metadata,
    "messages": _message,
    "tool_calls": _call,
}


MAX_LISTED = 10

Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[list[Text], Meta(min_length=1)]


class SelectorEvaluator(EvaluatorBase, kw_only=True):
    """Base class of evaluators of one selected value."""

    on: Annotated[str, Meta(examples=["answer", *EXAMPLES.values()])] = "answer"
    """The selected part of the reply: the answer, a message, or a tool call's input or output."""

    handles_incomplete: ClassVar[bool] = True

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the configuration as a whole."""
        return check_place(self.on, f"{path}.on")

    @cached
    def place(self) -> Selector:
        """The parsed selector."""
        return parse_place(self.on)

    def evaluate(self, ctx: Context) -> Finding:
        """Evaluate the selected value; a reply that was understood and has no such value fails."""
        selected = resolve(self.place, ctx)
        if isinstance(selected, NotFound):
            if ctx.incomplete and (ctx.unread or self.place.path or _lacks_calls(ctx)):
                msg = f"{selected.sentence}; {name_incomplete(ctx)}"
                raise UndecidedError(msg)
            return self.result("fail", 0.0, (), (selected.sentence,))
        if ctx.incomplete and has_gap(selected.value):
            tally = ConstraintTally()
            self.decide_known(selected, f"{selected.where} is incomplete: {name_incomplete(ctx)}", tally)
            return self.to_result(tally)
        return self.evaluate_selected(selected)

    def decide_known(self, selected: Selected, reason: str, tally: ConstraintTally) -> None:
        """Decide what text that was redacted or cut cannot change; all else is undecided for this reason."""
        del selected
        tally.undecided.append(reason)

    def evaluate_selected(self, selected: Selected) -> Finding:
        """Evaluate the selected value."""
        raise NotImplementedError

    def to_result(self, tally: ConstraintTally, details: dict[str, Any] | None = None) -> EvaluatorResult:
        """Return the result for a tally."""
        status, score = tally.verdict(self.threshold, negate=self.negate)
        if tally.undecided:
            details = {**(details or {}), "undecided": tally.undecided}
        return self.result(status, score, tally.hits, tally.misses, details)


def _lacks_calls(ctx: Context) -> bool:
    """Return whether inputs or outputs of calls were not captured."""
    return any(place.path.endswith((".input", ".output")) for place in ctx.incomplete)


def plain(text: str, *, ignore_case: bool = False, trim: bool = False) -> str:
    """Return a text without what does not count."""
    if trim:
        text = text.strip()
    return text.casefold() if ignore_case else text


def excerpt(text: str) -> str:
    """Return the beginning of a text in quotation marks."""
    # Not all of it, so that a text of megabytes costs no more than any other.
    return quote(text[: MAX_QUOTED + WINDOW])


def ending(text: str) -> str:
    """Return the end of a text in quotation marks."""
    if len(text) <= MAX_QUOTED - 2:
        return quote(text)
    tails = (quote(shorten_start(text, length)) for length in (MAX_QUOTED - 9, MAX_QUOTED // 2))
    # Escapes make a text longer, and its end must not be cut off here.
    return next((tail for tail in tails if not tail.endswith("…")), quote(shorten_start(text, MAX_QUOTED // 8)))


def around(text: str, at: int) -> str:
    """Return the surroundings of this character in quotation marks."""
    start = max(0, at - MAX_QUOTED // 4)
    surroundings = text[start : start + MAX_QUOTED + WINDOW]
    if not start:
        return quote(surroundings)
    before = shorten_start(text[max(0, start - WINDOW) : start + len(surroundings)], len(surroundings) + 1)
    return quote(before)


def join_excerpts(texts: Sequence[str]) -> str:
    """Return `"a", "b"`."""
    more = f" and {len(texts) - MAX_LISTED} more" if len(texts) > MAX_LISTED else ""
    return ", ".join(map(excerpt, texts[:MAX_LISTED])) + more
