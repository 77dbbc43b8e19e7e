"""`equals` and `json`: checks of structured answers."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Literal, NoReturn

import msgspec
from msgspec import UNSET

from agentv.errors import EvaluationError, Problem
from agentv.evaluators.base import ConstraintTally, Example, Finding, once, run_in_thread
from agentv.evaluators.json_schema import SchemaCheck, check_schema
from agentv.evaluators.selectors import Selected, SelectorEvaluator, excerpt, plain
from agentv.evaluators.trajectory.wording import joined
from agentv.jsonio import MAX_DEPTH, has_surrogates, is_deep
from agentv.matching.diff import NOTHING, Difference, at_steps, bad_pointer, differences, pointer_steps, quote
from agentv.matching.equality import encoded
from agentv.matching.matchers import check_expected, contains, is_matcher
from agentv.matching.matchers import equals as equal_to
from agentv.model.results import EvaluatorResult

FENCE = "```"


class NotJson(Exception):  # noqa: N818 - a finding about the agent, not a failure of ours
    """A text is not JSON, and why."""


def parse_strictly(text: str, where: str) -> Any:
    """The value that a text holds, or `NotJson`; `NaN`, comments and trailing commas are not JSON."""
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        msg = f"{where} is nested too deeply to be read as JSON"
        raise EvaluationError(msg) from None
    except msgspec.ValidationError:
        msg = f"{where} holds a number that is too large to be read"
        raise EvaluationError(msg) from None
    except (msgspec.MsgspecError, ValueError) as error:
        _explain(text, str(error))


def _explain(text: str, reason: str) -> NoReturn:
    """The mistake with its line and column, as far as the standard library finds it too."""
    from json import JSONDecodeError, JSONDecoder  # noqa: PLC0415 - only a mistake needs it

    def refuse(constant: str) -> NoReturn:
        told = f"{constant} is no number there"
        raise NotJson(told)

    if not text.strip():
        told = "the text is empty"
        raise NotJson(told)
    if has_surrogates(text):
        told = "half a character stands in it (a lone surrogate)"
        raise NotJson(told)
    try:
        JSONDecoder(parse_constant=refuse, parse_int=str).decode(text)
    except JSONDecodeError as error:
        told = f"{error.msg} (line {error.lineno}, column {error.colno})"
        raise NotJson(told) from None
    except RecursionError:
        pass  # then the first parser's reason is the best there is
    raise NotJson(reason.removeprefix("JSON is malformed: ").lower())


def fenced_block(text: str) -> str:
    """What stands in the first block between lines of ```, or all of it when there is none."""
    kept: list[str] | None = None
    for line in text.splitlines(keepends=True):
        is_fence = line.lstrip().startswith(FENCE)
        if kept is None:
            kept = [] if is_fence else None
        elif is_fence:
            return "".join(kept)
        else:
            kept.append(line)
    return text if kept is None else "".join(kept)


LONG = 100_000
"""Characters from which parsing a text may take longer than an event loop should wait."""


class Equals(SelectorEvaluator, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Whether a text or a value is the given one."""

    type: Literal["equals"] = "equals"
    value: Any
    """What it must be: a text, or any JSON value, with the matchers of `tool_trajectory`."""
    ignore_case: bool = False
    """Whether `Yes` and `YES` are the same."""
    trim: bool = False
    """Whether white space around the text is left out first."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "equals", "value": "yes", "ignore_case": True, "trim": True}, {"text": text}, passes)
        for text, passes in (("Yes\n", True), ("Yes, gladly.", False))
    )

    def check(self, path: str) -> list[Problem]:
        """What cannot be meant."""
        found = [*super().check(path), *check_expected(self.value, f"{path}.value")]
        if not isinstance(self.value, str):
            idle = [key for key in ("ignore_case", "trim") if getattr(self, key)]
            reason = "is about texts, and `value` is none; for a matcher, write `$regex: (?i)...`"
            found += [Problem(f"{path}.{key}", reason) for key in idle]
        return found

    def judge(self, seen: Selected) -> Finding:
        """One constraint."""
        if _may_take_long(self.value) or (isinstance(seen.value, str) and len(seen.value) > LONG):
            return run_in_thread(lambda: self._told(seen))
        return self._told(seen)

    def _told(self, seen: Selected) -> EvaluatorResult:
        tally = ConstraintTally()
        wanted, actual = self.value, seen.value
        if isinstance(wanted, str) and isinstance(actual, str):
            wanted = plain(wanted, ignore_case=self.ignore_case)
            actual = plain(actual, ignore_case=self.ignore_case, trim=self.trim)
            if wanted == actual:
                tally.holds(f"{seen.where} is {excerpt(self.value)}")
            else:
                tally.fails(f"{seen.where} expected {excerpt(self.value)}, got {excerpt(seen.value)}")
            return self.told(tally)
        if seen.is_prose and not is_matcher(wanted):
            # Words are data only once they are read as such; what a tool was given has its types already.
            try:
                actual = parse_strictly(actual, seen.where)
            except NotJson as error:
                tally.fails(f"{seen.where} expected {quote(wanted)}, got {excerpt(seen.value)} (not JSON: {error})")
                return self.told(tally)
        compare(tally, seen.where, wanted, actual)
        return self.told(tally)


class Json(SelectorEvaluator, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Whether a text is JSON, and holds what it should."""

    type: Literal["json"] = "json"
    fenced: bool = False
    """Whether the JSON may stand in a block between lines of ``` within other words; the first one is read."""
    pointer: str | None = None
    """The part that the other keys are about, as a JSON pointer: `/items/0/id`."""
    equals: Any = UNSET
    """What that part must be, with the matchers of `tool_trajectory`."""
    matches: Any = UNSET
    """What that part must hold; more keys are allowed at every level."""
    schema: dict[str, Any] | bool | None = None
    """The JSON Schema that it must meet."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "json", "matches": {"status": "shipped", "days": {"$lte": 3}}}, {"text": text}, passes)
        for text, passes in (
            ('{"status": "shipped", "days": 2, "carrier": "DHL"}', True),
            ('{"status": "shipped", "days": 5}', False),
        )
    )

    def check(self, path: str) -> list[Problem]:
        """What cannot be meant."""
        found = super().check(path)
        if self.pointer is not None and (reason := bad_pointer(self.pointer)) is not None:
            found.append(Problem(f"{path}.pointer", reason))
        for key in ("equals", "matches"):
            found += check_expected(getattr(self, key), f"{path}.{key}")
        if self.schema is not None:
            found += check_schema(self.schema, f"{path}.schema")
        return found

    @once
    def schema_check(self) -> SchemaCheck:
        """The schema, ready to judge any number of values."""
        return SchemaCheck(self.schema is None or self.schema)

    def judge(self, seen: Selected) -> Finding:
        """Each of `equals`, `matches` and `schema` is a constraint; without any, that there is JSON is one."""
        slow = self.schema is not None or _may_take_long(self.equals) or _may_take_long(self.matches)
        if slow or (isinstance(seen.value, str) and len(seen.value) > LONG):
            return run_in_thread(lambda: self._told(seen))
        return self._told(seen)

    def _told(self, seen: Selected) -> EvaluatorResult:
        tally = ConstraintTally()
        value = seen.value
        if isinstance(value, str):
            text = fenced_block(value) if self.fenced else value
            try:
                value = parse_strictly(text, seen.where)
            except NotJson as error:
                tally.fails(f"{seen.where} is not JSON: {error}: {excerpt(text)}")
                return self.told(tally)
        steps = pointer_steps(self.pointer or "")
        value, root = at_steps(value, steps), ".".join([seen.where, *steps])
        if value is NOTHING:
            tally.fails(f"{seen.where} has nothing at {self.pointer}")
            return self.told(tally)
        checks = list(self._checks(tally, root, value))
        for check in checks:
            try:
                check()
            except EvaluationError as error:
                tally.undecided.append(str(error))
        if not checks:
            tally.holds(f"{root} is {quote(value)}" if steps else f"{root} is JSON")
        return self.told(tally)

    def _checks(self, tally: ConstraintTally, where: str, value: Any) -> Iterator[Callable[[], None]]:
        if self.equals is not UNSET:
            yield lambda: compare(tally, where, self.equals, value)
        if self.matches is not UNSET:
            yield lambda: compare(tally, where, self.matches, value, partial=True)
        if self.schema is not None:
            yield lambda: self._check_schema(tally, where, value)

    def _check_schema(self, tally: ConstraintTally, where: str, value: Any) -> None:
        wrong = self.schema_check.complaints(_shallow(value, where))
        tally.count(good=not wrong, sentence=f"{where}: {'; '.join(wrong)}" if wrong else f"{where} meets the schema")


def compare(tally: ConstraintTally, where: str, wanted: Any, actual: Any, *, partial: bool = False) -> None:
    """One constraint: that a value is, or with `partial` holds, the expected one."""
    actual = _shallow(actual, where)
    if (contains if partial else equal_to)(wanted)(actual):
        tally.holds(f"{where} {'holds' if partial else 'is'} {quote(wanted)}")
        return
    found = list(differences(wanted, actual, where, partial=partial)) or [Difference(where, wanted, actual)]
    tally.fails(joined(found))


def _shallow(value: Any, where: str) -> Any:
    """The value, unless it is nested deeper than anything that it could be compared with."""
    if is_deep(value):
        msg = f"{where} is nested deeper than {MAX_DEPTH} levels, too deeply to be compared"
        raise EvaluationError(msg)
    return value


def _may_take_long(expected: Any) -> bool:
    """Whether a pattern is to be searched for, which the agent's text may slow down."""
    if expected is UNSET or isinstance(expected, (str, int, float)):
        return False
    return b'"$regex"' in (encoded(expected) or b"")
