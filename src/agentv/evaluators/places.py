"""The words of `on`: `answer`, `messages[-2].content`, `tool_calls[search][0].input.query`."""

from functools import lru_cache
from typing import NamedTuple, NoReturn

from agentv.errors import suggest

MESSAGE, CALL = "messages", "tool_calls"
ROOTS = ("answer", MESSAGE, CALL, "reasoning", "metadata")
PARTS = {
    MESSAGE: ("content", "role", "name", "metadata"),
    CALL: ("input", "output", "error", "status", "tool", "metadata"),
}
UNITS = {MESSAGE: "message", CALL: "call"}
EXAMPLES = {MESSAGE: "messages[-1].content", CALL: "tool_calls[search][0].output", "metadata": "metadata.model"}
MAX_DIGITS = 9


class Place(NamedTuple):
    """Where a check looks."""

    written: str
    root: str
    who: str | None = None
    """The tool, which may be a glob, or the role by which calls or messages are picked; `None` takes all."""
    nth: int = 0
    """Which of those, from 0; from the end when negative."""
    part: str = ""
    path: tuple[str, ...] = ()
    """Keys and positions inside of that part."""
    head: str = ""
    """What was written before the path."""

    @property
    def tail(self) -> str:
        """What was written as the path."""
        return self.written[len(self.head) :].removeprefix(".")

    @property
    def unit(self) -> str:
        """What it picks one of."""
        return UNITS[self.root]


class PlaceError(ValueError):
    """A text that names no place, with the character at which it goes wrong."""


class Step(NamedTuple):
    """One `.name`, `[3]` or `[name]`."""

    text: str
    at: int
    end: int
    is_bracket: bool
    number: int | None


@lru_cache(maxsize=256)
def parse_place(written: str) -> Place:
    """The place that is meant, or a `PlaceError`."""
    stops = [at for at in (written.find("."), written.find("[")) if at >= 0]
    root = written[: min(stops, default=len(written))]
    if root not in ROOTS:
        choices = f"{root!r} is none of {', '.join(ROOTS)}"
        _refuse(f"{choices}{suggest(root, ROOTS, '. Did')}", 0)
    steps = _steps(written, len(root))
    if root in PARTS:
        return _picked(written, root, steps)
    if root == "metadata":
        if not steps:
            _refuse("the name of a field is missing", len(written), EXAMPLES[root])
        return Place(written, root, path=tuple(step.text for step in steps))
    if steps:
        json = ". To look into a JSON answer, use the `json` evaluator" if root == "answer" else ""
        _refuse(f"nothing can follow `{root}`{json}", len(root))
    return Place(written, root)


def _picked(written: str, root: str, steps: list[Step]) -> Place:
    """`ROOT[who][index].part.path`, of which `[who]` and the path may be left out."""
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
    return Place(written, root, who, index or 0, part.text, path, written[: part.end])


def _steps(written: str, at: int) -> list[Step]:
    found: list[Step] = []
    while at < len(written):
        if written[at] == "[":
            step = _bracket(written, at)
        elif written[at] == ".":
            stops = [stop for stop in (written.find(".", at + 1), written.find("[", at + 1)) if stop >= 0]
            step = _step(written, at, at + 1, min(stops, default=len(written)))
        else:
            _refuse(f"there should be '.' or '[', not {written[at]!r}", at)
        found.append(step)
        at = step.end
    return found


def _bracket(written: str, at: int) -> Step:
    quote = written[at + 1 : at + 2]
    quoted = quote in ("'", '"')
    close = written.find(f"{quote}]" if quoted else "]", at + 2 if quoted else at + 1)
    if close < 0:
        _refuse("this bracket is never closed", at)
    if not quoted:
        return _step(written, at, at + 1, close, bracket=True)
    return Step(written[at + 2 : close], at, close + 2, is_bracket=True, number=None)


def _step(written: str, at: int, start: int, stop: int, *, bracket: bool = False) -> Step:
    text = written[start:stop]
    if not text:
        _refuse("a name or a number is missing", start)
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= MAX_DIGITS
    number = int(text) if is_number else None
    return Step(text, at, stop + 1 if bracket else stop, bracket, number)


def _refuse(reason: str, at: int, example: str = "") -> NoReturn:
    hint = f"; for example {example}" if example else ""
    msg = f"not a place in a run: at character {at + 1}, {reason}{hint}"
    raise PlaceError(msg)
