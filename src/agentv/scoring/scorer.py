"""Scoring of one reply: context, evaluation, and the outcome of the case."""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import EvaluationError, UndecidedError
from agentv.evals import ConfiguredEvaluator
from agentv.model.conversation import Message
from agentv.model.request import CONVERSATION, EACH_TURN, Case, OneTurn, Over, Scope
from agentv.model.response import TRACE_REF, ProviderResponse, ResponseError, Unread
from agentv.model.results import DiffLabels, EvaluatorResult, RunResult, Verdict
from agentv.protocols import Context, Evaluator, JudgeClient, accepts_incomplete, evaluated_part
from agentv.scoring.calls import Calls, join_calls, resolve_calls
from agentv.scoring.turns import MESSAGE_PATH, agent_view, golden_segments, is_golden_path, split_turns

# A mean of tenths must not miss a threshold of 0.3 by the last bit of a float.
TOLERANCE = 1e-9


Outcome = tuple[Verdict, float | None]
"""The outcome of a case: its status and its score."""


def reaches(score: float, threshold: float) -> bool:
    """Return whether a score reaches the threshold, within rounding errors."""
    return score >= threshold - TOLERANCE


def is_open(result: EvaluatorResult) -> bool:
    """Return whether an evaluator failed for certain while its score still depends on what could not be decided."""
    return result.status == "fail" and bool(result.details.get("undecided"))


def decide_outcome(results: Iterable[EvaluatorResult], threshold: float | None = None) -> Outcome:
    """Return status and weighted mean over the assertions that gate."""
    weight = total = 0.0
    all_pass = required_pass = True
    uncertain: list[EvaluatorResult] = []
    for result in results:
        if result.kind == "metric" or result.weight <= 0 or result.status == "skipped":
            continue
        if result.status == "error":
            return "error", None
        weight += result.weight
        total += result.weight * (result.score or 0.0)
        if result.status != "pass":
            all_pass = False
            required_pass = required_pass and not result.required
            if is_open(result):
                uncertain.append(result)
    if not weight:
        return "error", None
    score = total / weight
    if threshold is None or not required_pass:
        return ("pass" if all_pass else "fail"), score
    if uncertain:
        least = total - sum(result.weight * (result.score or 0.0) for result in uncertain)
        most = least + sum(result.weight for result in uncertain)
        if reaches(most / weight, threshold) and not reaches(least / weight, threshold):
            return "error", None
    return ("pass" if reaches(score, threshold) else "fail"), score


REMEDY = "send only new messages, or the request's messages unchanged at the start"


def without_echo(response: ProviderResponse) -> ProviderResponse | None:
    """Return the reply without what may be an echo; `None` when there is no doubt about it."""
    start, messages = response.echo_end, response.output_messages
    if not start or messages is None:
        return None
    unread, incomplete = (tuple(_shift_places(places, start)) for places in (response.unread, response.incomplete))
    return replace(response, output_messages=messages[start:], unread=unread, incomplete=incomplete, echo_end=None)


def _shift_places(unread: Iterable[Unread], start: int) -> Iterator[Unread]:
    """Yield the places with the numbers that messages have when they are counted from `start`."""
    for place in unread:
        match = MESSAGE_PATH.match(place.path)
        if match is None:
            yield place
        elif int(match[1]) >= start:
            path = f"output_messages[{int(match[1]) - start}]{place.path[match.end() :]}"
            yield Unread(path=path, reason=place.reason)


def reconcile(results: Sequence[EvaluatorResult], messages: Sequence[int]) -> EvaluatorResult:
    """Return the result of the whole reply, or an error where the verdict depends on the reading.

    Both sequences are those of the whole reply and of the part after the echo: the results, and how many messages each
    of them is about.
    """
    whole, new = results
    if whole.status != new.status:
        return _disagreement(results, "verdict", (whole.status, new.status), messages)
    # A metric always passes; its value is recorded.
    values = [result.details.get("value") for result in results]
    if whole.kind == "metric" and values[0] != values[1]:
        return _disagreement(results, "value", (str(values[0]), str(values[1])), messages)
    if whole.score is not None and new.score is not None and new.score < whole.score:
        return replace(whole, score=new.score)
    return whole


def _disagreement(
    results: Sequence[EvaluatorResult], what: str, values: tuple[str, str], messages: Sequence[int]
) -> EvaluatorResult:
    both = f"{values[0]} for all {messages[0]} messages, {values[1]} for the {messages[1]} after the last user message"
    details: dict[str, Any] = {"error": f"the {what} depends on which part of the reply is new: {both}; {REMEDY}"}
    undecided = [*_undecided(results[0], 0), *_undecided(results[1], messages[0] - messages[1])]
    if undecided:
        details["undecided"] = list(dict.fromkeys(undecided))
    return replace(results[0], status="error", score=None, hits=(), misses=(), details=details)


def _undecided(result: EvaluatorResult, start: int) -> Iterator[str]:
    """Yield what a reading left undecided, with places as they are in the whole reply."""
    for sentence in result.details.get("undecided") or ():
        yield MESSAGE_PATH.sub(lambda match: f"output_messages[{int(match[1]) + start}]", str(sentence))


UNEXPLAINED = "the agent says that it failed, and not why (`success` is false, and there is no `error`)"
ResultOrCoroutine = EvaluatorResult | Coroutine[Any, Any, EvaluatorResult]
"""A result, or the coroutine that returns it."""
TraceLoader = Callable[[ProviderResponse], ProviderResponse]
"""Loads the trace that a `trace_ref` names, or adds the file as an unread place."""


class CaseScorer:
    """Evaluators of one case, used for any number of replies."""

    def __init__(
        self,
        checks: Sequence[ConfiguredEvaluator],
        case: Case,
        *,
        follow: TraceLoader,
        scope: Scope | None = None,
        ask: JudgeClient | None = None,
    ) -> None:
        self._checks = checks
        self._case = case
        self._follow = follow
        self._scope = scope
        self._ask = ask
        self._warnings = tuple([warning for checked in checks for warning in checked.warnings])
        self.known: Calls | None = None
        """Calls of the reply that was evaluated last."""

    @property
    def checks(self) -> Sequence[ConfiguredEvaluator]:
        """The evaluators."""
        return self._checks

    async def evaluate(self, response: ProviderResponse) -> RunResult:
        """Evaluate one reply."""
        known, context = self.read(response)
        self.known = known
        if context is None:
            return self.unmeasured(response, known)
        readings = self.readings(context)
        results = [await await_result(evaluate_readings(checked, readings)) for checked in self._checks]
        return self.conclude(context.response, known, results)

    def read(self, response: ProviderResponse) -> tuple[Calls, Context | None]:
        """Return the known calls and the context of evaluators; no context if the agent gave no usable reply."""
        response = self.include_trace_file(response)
        if response.turns:
            return self._read_turns(response)
        known = resolve_calls(response)
        return known, self._context(response, known, self._case) if response.success else None

    def _read_turns(self, response: ProviderResponse) -> tuple[Calls, Context | None]:
        """Read a conversation: the context of evaluators of the whole has one for each turn."""
        exchanges = split_turns(response)
        replies = [exchange.response for exchange in exchanges]
        calls = [resolve_calls(reply) for reply in replies]
        known = join_calls(calls, replies)
        if not response.success:
            return known, None
        expected = self._expected_in_turns()
        before = self._case.input_messages
        turns = []
        for index, (exchange, calls_of_turn) in enumerate(zip(exchanges, calls, strict=True)):
            case = replace(
                self._case,
                input_messages=(*before, *exchange.user),
                expected_messages=expected[index] if index < len(expected) else None,
                turns=UNSET,
            )
            turns.append(self._context(exchange.response, calls_of_turn, case))
            before = (*before, *exchange.messages)
        return known, self._context(agent_view(response, replies), known, self._case, tuple(turns))

    def _expected_in_turns(self) -> list[tuple[Message, ...] | None]:
        """Return the expected messages of each turn: its own, else its part of the golden path of the case."""
        own = [turn.expected_messages for turn in self._case.turns or ()]
        whole = self._case.expected_messages or ()
        parts = golden_segments(whole) if is_golden_path(whole) else []
        return [mine or part for mine, part in zip_longest(own, parts)]

    def _context(
        self, response: ProviderResponse, known: Calls, case: Case, turns: tuple[Context, ...] = ()
    ) -> Context:
        return Context(
            response=response,
            case=case,
            candidate=response.text,
            output_messages=response.output_messages,
            trace=response.trace,
            trace_summary=known.summary,
            calls=known.calls,
            calls_source=known.source,
            calls_complete=known.complete,
            unread=known.unread,
            incomplete=response.incomplete,
            expected_messages=case.expected_messages,
            scope=self._scope,
            ask=self._ask,
            turns=turns,
        )

    def include_trace_file(self, response: ProviderResponse) -> ProviderResponse:
        """Return the reply with the events of its `trace_ref` file and the places of it that were not understood.

        A file that cannot be read is such a place itself: it matters unless the messages tell all calls.
        """
        if not needs_trace_file(response):
            return response
        if not response.turns:
            return self._follow(response)
        turns = [replace(turn, response=self.include_trace_file(turn.response)) for turn in response.turns]
        return replace(response, turns=tuple(turns))

    def readings(self, context: Context) -> tuple[Context, ...]:
        """Return the context, and where its messages may begin with an echo of the request, one without it too."""
        if context.turns:
            return self._readings_of_turns(context)
        response = without_echo(context.response)
        if response is None:
            return (context,)
        _, new = self.read(response)
        return (context,) if new is None else (context, new)

    def _readings_of_turns(self, context: Context) -> tuple[Context, ...]:
        replies = [without_echo(turn.response) for turn in context.turns]
        if not any(replies):
            return (context,)
        new = [reply or turn.response for reply, turn in zip(replies, context.turns, strict=True)]
        calls = [resolve_calls(reply) for reply in new]
        turns = [self._context(*parts) for parts in zip(new, calls, [turn.case for turn in context.turns], strict=True)]
        whole = self._context(agent_view(context.response, new), join_calls(calls, new), context.case, tuple(turns))
        return context, whole

    def conclude(self, response: ProviderResponse, known: Calls, results: Sequence[EvaluatorResult]) -> RunResult:
        """Return the result of the case."""
        status, score = decide_outcome(results, self._case.threshold)
        not_shown = [warning for result in results for warning in _judge_warnings(result.name, result.details)]
        return RunResult(
            status=status,
            score=score,
            evaluators=tuple(results),
            trace_summary=known.summary,
            calls_complete=UNSET if known.complete else False,
            warnings=(*self._warnings, *response.warnings, *known.warnings, *not_shown, *_incomplete(response)),
        )

    def unmeasured(self, response: ProviderResponse, known: Calls) -> RunResult:
        """Return the result of a reply that cannot be evaluated."""
        return RunResult(
            status="error",
            score=None,
            trace_summary=known.summary,
            calls_complete=UNSET if known.complete else False,
            warnings=(*self._warnings, *response.warnings, *known.warnings),
            error=response.error or ResponseError(kind="agent", message=UNEXPLAINED),
        )

    def sides(self, response: ProviderResponse, result: RunResult) -> list[DiffLabels | None]:
        """Return for each result the labels of its alignment, or `None` if there is none."""
        _, context = self.read(response)
        if context is None:
            return [None] * len(result.evaluators)
        pairs = zip(self._checks, result.evaluators, strict=False)
        return [
            DiffLabels(*labels) if (labels := checked.evaluator.sides(_turn_of(found, context))) else None
            for checked, found in pairs
        ]


def _turn_of(result: EvaluatorResult, context: Context) -> Context:
    """Return the context of the turn that a result is about; the whole if it is about no single turn."""
    turn = result.details.get(TURN)
    return context.turns[turn - 1] if isinstance(turn, int) and 0 < turn <= len(context.turns) else context


def _judge_warnings(name: str, details: Mapping[str, Any]) -> Iterator[str]:
    """Yield what judges were not shown, of a result or of the inner results of a composite."""
    warnings = details.get("warnings") if "judge" in details else None
    yield from (f"{name}: {warning}" for warning in warnings or () if isinstance(warning, str))
    inner = details.get("inner")
    for result in inner if isinstance(inner, list) else ():
        if isinstance(result, dict) and isinstance(result.get("details"), dict):
            yield from _judge_warnings(name, result["details"])


def needs_trace_file(response: ProviderResponse) -> bool:
    """Return whether a reply names a trace file that was not read yet, and has no events with calls itself."""
    if response.turns:
        return any(needs_trace_file(turn.response) for turn in response.turns)
    if response.trace_ref is None or any(place.path == TRACE_REF for place in response.unread):
        return False
    if response.trace is None:
        return True
    return response.trace_hash is None and not any(event.type == "tool_call" for event in response.trace)


TURN = "turn"
"""Key in the details of a result: the number of the turn that it is about, from 1."""


def evaluate(checked: ConfiguredEvaluator, context: Context) -> ResultOrCoroutine:
    """Run one evaluator over the part of the conversation that its `over` names.

    An exception becomes its result and never ends the run.
    """
    over = evaluated_part(checked.evaluator)
    if over == CONVERSATION:
        return _evaluate_context(checked, context)
    return _evaluate_turns(checked, context.turns or (context,), over)


def _evaluate_turns(checked: ConfiguredEvaluator, turns: Sequence[Context], over: Over) -> ResultOrCoroutine:
    if checked.evaluator.skip:
        return checked.evaluator.result("skipped", None)
    count = len(turns)
    if over == EACH_TURN:
        numbers = range(1, count + 1)
    else:
        number = over.turn if isinstance(over, OneTurn) else count
        if number > count:
            reason = f"there is no turn {number}: the conversation has {count} {'turn' if count == 1 else 'turns'}"
            return checked.evaluator.result("error", None, details={"undecided": [reason]})
        numbers = range(number, number + 1)
    results = [_evaluate_context(checked, turns[number - 1]) for number in numbers]
    if all(isinstance(result, EvaluatorResult) for result in results):
        return worst_of_turns(numbers, [result for result in results if isinstance(result, EvaluatorResult)])
    return _await_turns(numbers, results)


async def _await_turns(numbers: Sequence[int], results: Sequence[ResultOrCoroutine]) -> EvaluatorResult:
    return worst_of_turns(numbers, [await await_result(result) for result in results])


def worst_of_turns(numbers: Sequence[int], results: Sequence[EvaluatorResult]) -> EvaluatorResult:
    """Return the result that decides: a failure, else what could not be decided, else the lowest score."""
    order = {"fail": 0, "error": 1}
    ranks = [(order.get(result.status, 2), -1.0 if result.score is None else result.score) for result in results]
    at = ranks.index(min(ranks))
    worst, details = results[at], {**results[at].details, TURN: numbers[at]}
    if len(results) > 1:
        details["turns"] = [
            {TURN: number, "status": result.status, "score": result.score}
            for number, result in zip(numbers, results, strict=True)
        ]
    return replace(worst, details=details)


def _evaluate_context(checked: ConfiguredEvaluator, context: Context) -> ResultOrCoroutine:
    if checked.evaluator.skip:
        return checked.evaluator.result("skipped", None)
    if (reason := _cannot_decide(checked, context)) is not None:
        return checked.evaluator.result("error", None, details={"undecided": [reason]})
    try:
        result = checked.evaluator.evaluate(replace(context, config=checked.config))
    except Exception as error:  # noqa: BLE001 - whatever one evaluator raises, the others must still run
        return _error_result(checked, error)
    if not isinstance(result, EvaluatorResult):
        return _await_evaluator(result, checked)
    return negated(result, checked.evaluator) if checked.evaluator.negate else result


CONFIG_REDACTED = "its configuration holds secrets that were redacted when it was stored: name the eval with --eval"
MAX_NAMED = 3
"""The number of incomplete places that a sentence names."""


def _cannot_decide(checked: ConfiguredEvaluator, context: Context) -> str | None:
    """Return why an evaluator is not run, if it cannot tell what is missing in the reply or in its configuration."""
    if checked.redacted:
        return CONFIG_REDACTED
    if not context.incomplete or accepts_incomplete(checked.evaluator):
        return None
    return f"it does not say that it handles incomplete replies: {name_incomplete(context)}"


def _incomplete(response: ProviderResponse) -> list[str]:
    """Return the first incomplete places as warnings."""
    return [str(place) for place in response.incomplete[:MAX_NAMED]]


def name_incomplete(context: Context) -> str:
    """Return the first places at which text is missing and why, as the reason of a sentence."""
    places = context.incomplete
    more = [f"and {len(places) - MAX_NAMED} more"] if len(places) > MAX_NAMED else []
    return "; ".join([*map(str, places[:MAX_NAMED]), *more])


async def _await_evaluator(pending: Awaitable[EvaluatorResult], checked: ConfiguredEvaluator) -> EvaluatorResult:
    """Return the result of an asynchronous evaluator."""
    try:
        result = await pending
    except Exception as error:  # noqa: BLE001 - see `evaluate`
        return _error_result(checked, error)
    return negated(result, checked.evaluator) if checked.evaluator.negate else result


async def await_result(result: ResultOrCoroutine) -> EvaluatorResult:
    """Return the result, awaited if it is a coroutine."""
    return result if isinstance(result, EvaluatorResult) else await result


def evaluate_readings(checked: ConfiguredEvaluator, readings: Sequence[Context]) -> ResultOrCoroutine:
    """Evaluate every reading of a reply; where they do not agree, the result is an error that names both."""
    if len(readings) == 1:
        return evaluate(checked, readings[0])
    pending = [evaluate(checked, reading) for reading in readings]
    results = [result for result in pending if isinstance(result, EvaluatorResult)]
    messages = [len(reading.output_messages or ()) for reading in readings]
    return reconcile(results, messages) if len(results) == len(pending) else _reconcile_async(pending, messages)


async def _reconcile_async(pending: Sequence[ResultOrCoroutine], messages: Sequence[int]) -> EvaluatorResult:
    return reconcile([await await_result(result) for result in pending], messages)


def negated(result: EvaluatorResult, evaluator: Evaluator) -> EvaluatorResult:
    """Return the result with `not: true` applied; undecided results stay undecided."""
    if result.score is None or result.status in ("error", "skipped"):
        return result
    score = 1.0 - result.score
    return replace(
        result,
        status="pass" if reaches(score, evaluator.threshold) else "fail",
        score=score,
        hits=tuple([f"does not hold, as wanted: {miss}" for miss in result.misses]),
        misses=tuple([f"holds and should not: {hit}" for hit in result.hits]),
    )


def _error_result(checked: ConfiguredEvaluator, error: Exception) -> EvaluatorResult:
    if isinstance(error, UndecidedError):
        return checked.evaluator.result("error", None, details={"undecided": [str(error)]})
    reason = str(error) if isinstance(error, EvaluationError) else f"{type(error).__name__}: {error}"
    return checked.evaluator.result("error", None, details={"error": reason})
