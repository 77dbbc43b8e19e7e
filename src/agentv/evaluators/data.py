"""`equals` and `json`: evaluators of structured answers."""

from collections.abc import Callable, Iterator
from json import JSONDecodeError, JSONDecoder
from typing import Any, ClassVar, Literal, NoReturn

import msgspec
from msgspec import UNSET

from agentv.errors import EvaluationError, Problem
from agentv.evaluators.base import ConstraintTally, Example, Finding, cached, run_searches
from agentv.evaluators.json_schema import SchemaCheck, check_schema
from agentv.evaluators.selectors import Selected, SelectorEvaluator, excerpt, plain
from agentv.evaluators.trajectory.wording import joined
from agentv.jsonio import MAX_DEPTH, has_surrogates, is_deep
from agentv.matching.diff import Difference, differences, quote
from agentv.matching.gaps import Known, compare_known, known_parts, may_equal
from agentv.matching.json_pointer import NOTHING, at_steps, bad_pointer, pointer_steps
from agentv.matching.matchers import check_expected, contains, has_search, is_matcher
from agentv.matching.matchers import equals as equal_to
from agentv.model.conversation import has_gap
from agentv.model.results import EvaluatorResult

FENCE = "```"


class NotJson(Exception):  # noqa: N818 - a finding about the agent, not a failure of ours
    """Error for a text that is not JSON, with the reason."""


def parse_strictly(text: str, where: str) -> Any:
    """Parse a text as strict JSON or raise `NotJson`; `NaN`, comments and trailing commas are not JSON."""
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
    """Raise `NotJson` with line and column of the syntax error, if the standard library finds it too."""

    def refuse(constant: str) -> NoReturn:
        msg = f"{constant} is no number there"
        raise NotJson(msg)

    if not text.strip():
        msg = "the text is empty"
        raise NotJson(msg)
    if has_surrogates(text):
        msg = "it contains half a character (a lone surrogate)"
        raise NotJson(msg)
    try:
        JSONDecoder(parse_constant=refuse, parse_int=str).decode(text)
    except JSONDecodeError as error:
        msg = f"{error.msg} (line {error.lineno}, column {error.colno})"
        raise NotJson(msg) from None
    except RecursionError:
        pass  # then the reason of the first parser is used
    raise NotJson(reason.removeprefix("JSON is malformed: ").lower())


def fenced_block(text: str) -> str:
    """Return the content of the first fenced code block, or all of the text if there is none."""
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


LONG_TEXT = 100_000
"""The length from which parsing a text may take longer than an event loop should wait."""


class Equals(SelectorEvaluator, kw_only=True):
    """A text or a value equals the given one."""

    type: Literal["equals"] = "equals"
    value: Any
    """The expected value: a text, or any JSON value, with the matchers of `tool_trajectory`."""
    ignore_case: bool = False
    """Treats `Yes` and `YES` as the same."""
    trim: bool = False
    """Ignores white space around the text."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example({"type": "equals", "value": "yes", "ignore_case": True, "trim": True}, {"text": text}, passes)
        for text, passes in (("Yes\n", True), ("Yes, gladly.", False))
    )

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the configuration as a whole."""
        problems = [*super().check(path), *check_expected(self.value, f"{path}.value")]
        if not isinstance(self.value, str):
            idle = [key for key in ("ignore_case", "trim") if getattr(self, key)]
            reason = "is about texts, and `value` is none; for a matcher, write `$regex: (?i)...`"
            problems += [Problem(f"{path}.{key}", reason) for key in idle]
        return problems

    def evaluate_selected(self, selected: Selected) -> Finding:
        """Decide the one constraint."""
        if has_search(self.value) or (isinstance(selected.value, str) and len(selected.value) > LONG_TEXT):
            return run_searches(lambda: self._evaluate_now(selected))
        return self._evaluate_now(selected)

    def decide_known(self, selected: Selected, reason: str, tally: ConstraintTally) -> None:
        """Decide that a value differs; with text missing, it is never known to be equal unless a matcher says so."""
        wanted, actual = self.value, selected.value
        if isinstance(wanted, str) and isinstance(actual, str):
            parts = [plain(part, ignore_case=self.ignore_case) for part in known_parts(actual)]
            if self.trim:
                parts[0], parts[-1] = parts[0].lstrip(), parts[-1].rstrip()
            good = None if may_equal(plain(wanted, ignore_case=self.ignore_case), parts) else False
        elif selected.is_prose and not is_matcher(wanted):
            good = _compare_parsed(wanted, actual, selected.where)
        else:
            good = compare_known(wanted, actual)
        sentence = f"{selected.where} is {quote(wanted)}"
        tally.decide(good=good, sentence=sentence, undecided=f"{sentence}: {reason}")

    def _evaluate_now(self, selected: Selected) -> EvaluatorResult:
        tally = ConstraintTally()
        wanted, actual = self.value, selected.value
        if isinstance(wanted, str) and isinstance(actual, str):
            wanted = plain(wanted, ignore_case=self.ignore_case)
            actual = plain(actual, ignore_case=self.ignore_case, trim=self.trim)
            if wanted == actual:
                tally.add_hit(f"{selected.where} is {excerpt(self.value)}")
            else:
                tally.add_miss(f"{selected.where} expected {excerpt(self.value)}, got {excerpt(selected.value)}")
            return self.to_result(tally)
        if selected.is_prose and not is_matcher(wanted):
            # Text is parsed as JSON first; the input and output of a tool are data already.
            try:
                actual = parse_strictly(actual, selected.where)
            except NotJson as error:
                got = f"got {excerpt(selected.value)} (not JSON: {error})"
                tally.add_miss(f"{selected.where} expected {quote(wanted)}, {got}")
                return self.to_result(tally)
        compare(tally, selected.where, wanted, actual)
        return self.to_result(tally)


class Json(SelectorEvaluator, kw_only=True):
    """A text is JSON with the given content or of a schema."""

    type: Literal["json"] = "json"
    fenced: bool = False
    """Accepts JSON in a fenced code block within other text; the first block is read."""
    pointer: str | None = None
    """The part that the other keys are about, as a JSON pointer: `/items/0/id`."""
    equals: Any = UNSET
    """The expected value of that part, with the matchers of `tool_trajectory`."""
    matches: Any = UNSET
    """The keys and values that part must contain; more keys are allowed at every level."""
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
        """Return the problems of the configuration as a whole."""
        problems = super().check(path)
        if self.pointer is not None and (reason := bad_pointer(self.pointer)) is not None:
            problems.append(Problem(f"{path}.pointer", reason))
        for key in ("equals", "matches"):
            problems += check_expected(getattr(self, key), f"{path}.{key}")
        if self.schema is not None:
            problems += check_schema(self.schema, f"{path}.schema")
        return problems

    @cached
    def schema_check(self) -> SchemaCheck:
        """The schema, ready to judge any number of values."""
        return SchemaCheck(self.schema is None or self.schema)

    def evaluate_selected(self, selected: Selected) -> Finding:
        """Decide one constraint each for `equals`, `matches` and `schema`; without any, that the text is JSON."""
        slow = self.schema is not None or has_search(self.equals) or has_search(self.matches)
        if slow or (isinstance(selected.value, str) and len(selected.value) > LONG_TEXT):
            return run_searches(lambda: self._evaluate_now(selected))
        return self._evaluate_now(selected)

    def _evaluate_now(self, selected: Selected) -> EvaluatorResult:
        tally = ConstraintTally()
        value = selected.value
        if isinstance(value, str):
            text = fenced_block(value) if self.fenced else value
            try:
                value = parse_strictly(text, selected.where)
            except NotJson as error:
                tally.add_miss(f"{selected.where} is not JSON: {error}: {excerpt(text)}")
                return self.to_result(tally)
        steps = pointer_steps(self.pointer or "")
        value, root = at_steps(value, steps), ".".join([selected.where, *steps])
        if value is NOTHING:
            tally.add_miss(f"{selected.where} has nothing at {self.pointer}")
            return self.to_result(tally)
        self._decide_value(tally, root, value)
        return self.to_result(tally)

    def _decide_value(self, tally: ConstraintTally, root: str, value: Any) -> None:
        checks = list(self._checks(tally, root, value))
        for check in checks:
            try:
                check()
            except EvaluationError as error:
                tally.undecided.append(str(error))
        if not checks:
            tally.add_hit(f"{root} is {quote(value)}" if self.pointer else f"{root} is JSON")

    def decide_known(self, selected: Selected, reason: str, tally: ConstraintTally) -> None:
        """Decide what holds whatever is missing; a text that is not JSON may be so because it was cut."""
        value = selected.value
        try:
            if isinstance(value, str):
                value = parse_strictly(fenced_block(value) if self.fenced else value, selected.where)
        except NotJson:
            tally.undecided.append(f"{selected.where} is not JSON: {reason}")
            return
        steps = pointer_steps(self.pointer or "")
        value, root = at_steps(value, steps), ".".join([selected.where, *steps])
        if value is NOTHING or (has_gap(value) and self.schema is not None):
            tally.undecided.append(f"{root}: {reason}")
            return
        if not has_gap(value):
            self._decide_value(tally, root, value)
            return
        for wanted, partial in ((self.equals, False), (self.matches, True)):
            if wanted is not UNSET:
                sentence = f"{root} {'holds' if partial else 'is'} {quote(wanted)}"
                good = compare_known(wanted, value, partial=partial)
                tally.decide(good=good, sentence=sentence, undecided=f"{sentence}: {reason}")
        if self.equals is UNSET and self.matches is UNSET:
            tally.add_hit(f"{root} is JSON")

    def _checks(self, tally: ConstraintTally, where: str, value: Any) -> Iterator[Callable[[], None]]:
        if self.equals is not UNSET:
            yield lambda: compare(tally, where, self.equals, value)
        if self.matches is not UNSET:
            yield lambda: compare(tally, where, self.matches, value, partial=True)
        if self.schema is not None:
            yield lambda: self._check_schema(tally, where, value)

    def _check_schema(self, tally: ConstraintTally, where: str, value: Any) -> None:
        wrong = self.schema_check.complaints(_shallow(value, where))
        tally.add(good=not wrong, sentence=f"{where}: {'; '.join(wrong)}" if wrong else f"{where} meets the schema")


def compare(tally: ConstraintTally, where: str, wanted: Any, actual: Any, *, partial: bool = False) -> None:
    """Decide whether a value equals, or with `partial` contains, the expected one."""
    actual = _shallow(actual, where)
    if (contains if partial else equal_to)(wanted)(actual):
        tally.add_hit(f"{where} {'holds' if partial else 'is'} {quote(wanted)}")
        return
    differing = list(differences(wanted, actual, where, partial=partial)) or [Difference(where, wanted, actual)]
    tally.add_miss(joined(differing))


def _compare_parsed(wanted: Any, text: str, where: str) -> Known:
    """Compare JSON within a text; `None` if it cannot be parsed, which may be due to missing text."""
    try:
        return compare_known(wanted, parse_strictly(text, where))
    except NotJson:
        return None


def _shallow(value: Any, where: str) -> Any:
    """Return the value, unless it is nested too deeply to be compared."""
    if is_deep(value):
        msg = f"{where} is nested deeper than {MAX_DEPTH} levels, too deeply to be compared"
        raise EvaluationError(msg)
    return value
