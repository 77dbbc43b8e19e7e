"""`python` and `@evaluator`: evaluators written as Python functions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import copy
from traceback import extract_tb
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar, cast, get_type_hints

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import force_setattr, replace

from agentv import files as code
from agentv.errors import AgentVError, EvaluationError, FormatError, Problem
from agentv.evaluators.base import EvaluatorBase, Example
from agentv.files import is_import_path
from agentv.jsonio import scrub, scrub_text
from agentv.matching.diff import quote
from agentv.model.results import EvaluatorResult
from agentv.redaction import shorten
from agentv.scoring.scorer import reaches
from agentv.suggestions import suggest

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.model.conversation import ToolCall
    from agentv.model.request import Scope
    from agentv.model.response import ProviderResponse
    from agentv.protocols import Context


def max_words(ctx: Context, most: int = 80) -> tuple[bool, str]:
    """Check that the answer has at most so many words."""
    words = len(ctx.candidate.split())
    return words <= most, f"the answer has {words} words (at most: {most})"


_SHARED = frozenset(("raw_response",))
"""Fields that are too large to copy for every evaluator."""
_PLAIN = frozenset((str, int, float, bool, type(None)))


def copy_context(ctx: Context) -> Context:
    """Return the context with its own copies of messages, calls and metadata."""
    response = deep_copy(ctx.response)
    return replace(
        ctx,
        response=response,
        case=deep_copy(ctx.case),
        output_messages=response.output_messages,
        trace=response.trace,
        trace_summary=deep_copy(ctx.trace_summary),
        calls=_calls(ctx, response),
        expected_messages=deep_copy(ctx.expected_messages),
    )


def _calls(ctx: Context, response: ProviderResponse) -> tuple[ToolCall, ...] | None:
    """Return the calls: those of the copied messages if these are their source."""
    if ctx.calls_source == "output_messages":
        return tuple([call for message in response.output_messages or () for call in message.tool_calls])
    calls: tuple[ToolCall, ...] | None = deep_copy(ctx.calls)
    return calls


def deep_copy(value: Any) -> Any:
    """Return a copy of all mutable parts of a value."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is dict:
        return {key: deep_copy(item) for key, item in value.items()}
    if kind is list:
        return [deep_copy(item) for item in value]
    if kind is tuple:
        return tuple([deep_copy(item) for item in value])
    if not isinstance(value, Struct):
        return value
    duplicate = copy(value)
    for name in kind.__struct_fields__:
        item = getattr(value, name)
        if type(item) not in _PLAIN and name not in _SHARED:
            force_setattr(duplicate, name, deep_copy(item))
    return duplicate


KEYS = ("score", "hits", "misses", "details", "error")
EXPECTED = "true or false, a score from 0 to 1, a mapping with a `score`, or a pair of one of these and a reason"
MAX_SENTENCE = 1_000
_PAIR_LENGTH = 2


class ReturnedFinding(NamedTuple):
    """A score with its reasons, as returned by a function."""

    score: float
    hits: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()
    details: dict[str, Any] = {}
    reason: str | None = None
    """A hit or a miss, depending on the score."""


def result_of(value: Any, evaluator: EvaluatorBase) -> EvaluatorResult:
    """Return the result for a returned value; raise `EvaluationError` if it has no meaning."""
    if isinstance(value, EvaluatorResult):
        if value.status in ("error", "skipped"):
            return evaluator.result(value.status, None, value.hits, value.misses, value.details)
        score = value.score if value.score is not None else float(value.status == "pass")
        value = {"score": score, "hits": value.hits, "misses": value.misses, "details": value.details}
    finding = _read(value)
    passed = reaches(finding.score, evaluator.threshold)
    hits, misses = finding.hits, finding.misses
    if not hits and not misses:
        sentence = finding.reason or _default_sentence(evaluator, finding.score)
        hits, misses = ((sentence,), ()) if passed else ((), (sentence,))
    return evaluator.result("pass" if passed else "fail", finding.score, hits, misses, finding.details)


def _default_sentence(evaluator: EvaluatorBase, score: float) -> str:
    name = evaluator.name or evaluator.type
    if score in (0.0, 1.0):
        return f"{name} {'holds' if score else 'does not hold'}"
    return f"{name} gives {score:.2f}, and {evaluator.threshold:g} is wanted"


def _read(value: Any) -> ReturnedFinding:
    if isinstance(value, Mapping):
        return _read_mapping(value)
    if isinstance(value, tuple) and len(value) == _PAIR_LENGTH and isinstance(value[1], str):
        return ReturnedFinding(_score(value[0]), reason=_sentence(value[1]))
    return ReturnedFinding(_score(value))


def _read_mapping(value: Mapping[Any, Any]) -> ReturnedFinding:
    for key in value:
        if key not in KEYS:
            hint = suggest(key, KEYS) or f"; expected one of {', '.join(KEYS)}"
            msg = f"the check gave an unknown key {key!r}{hint}"
            raise EvaluationError(msg)
    if value.get("error") is not None:
        raise EvaluationError(_sentence(value["error"]))
    if value.get("score") is None:
        msg = "the check gave a mapping without a `score`"
        raise EvaluationError(msg)
    details = value.get("details") or {}
    if not isinstance(details, Mapping):
        msg = f"the check gave `details` that are no mapping: {quote(details)}"
        raise EvaluationError(msg)
    return ReturnedFinding(
        _score(value["score"]),
        _sentences(value.get("hits"), "hits"),
        _sentences(value.get("misses"), "misses"),
        scrub(details),
    )


def _score(value: Any) -> float:
    if value is None:
        msg = f"the check returned nothing; expected {EXPECTED}"
        raise EvaluationError(msg)
    if isinstance(value, bool):
        return float(value)
    # Number types of other libraries can be converted.
    number = None if isinstance(value, (str, bytes)) else _number(value)
    if number is None:
        msg = f"the check returned a {type(value).__name__}; expected {EXPECTED}"
        raise EvaluationError(msg)
    if not 0.0 <= number <= 1.0:
        msg = f"a score is between 0 and 1; the check gave {number:g}"
        raise EvaluationError(msg)
    return number


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _sentences(value: Any, key: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (_sentence(value),)
    if not isinstance(value, Sequence):
        msg = f"the check gave `{key}` that are no list of sentences: {quote(value)}"
        raise EvaluationError(msg)
    return tuple(map(_sentence, value))


def _sentence(value: Any) -> str:
    text = scrub_text(value if isinstance(value, str) else quote(value))
    return shorten(text, MAX_SENTENCE)


TIMEOUT_S = 30.0
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
_MAX_REASON = 500


class FunctionEvaluator(EvaluatorBase, kw_only=True):
    """Base class of evaluators made of a function."""

    timeout_s: Seconds = TIMEOUT_S
    """The time limit."""
    accepts_incomplete: bool = False
    """States that it looks at `incomplete` itself; otherwise replies that were redacted or cut are undecided."""

    function: ClassVar[Callable[..., Any]]
    """The function itself, so that tests can call it."""
    options: ClassVar[tuple[str, ...]] = ()
    """The names of its parameters after the first."""

    @property
    def handles_incomplete(self) -> bool:  # type: ignore[override]  # a setting here
        """True if its author says so."""
        return self.accepts_incomplete

    async def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Return the result for the value that the function returns."""
        options = {name: getattr(self, name) for name in self.options}
        work = call(type(self).function, replace(ctx, config=options), options)
        return result_of(await run_with_deadline(self.timeout_s, work), self)


_Function_co = TypeVar("_Function_co", bound=Callable[..., Any], covariant=True)


class EvaluatorFactory(Protocol[_Function_co]):
    """An evaluator class made by `@evaluator`."""

    @property
    def function(self) -> _Function_co:
        """The function itself, so that tests can call it."""
        ...

    def __call__(self, **options: Any) -> EvaluatorBase:
        """Return an evaluator with these options."""
        ...


_Function = TypeVar("_Function", bound=Callable[..., Any])


def evaluator(function: _Function) -> EvaluatorFactory[_Function]:
    """Make a function an evaluator: its first parameter is the `Context`, the others are its options.

    `checks = [polite(), max_words(most=80, weight=2)]` in Python; in a file `type: python` with
    `function: ./checks.py:max_words`; or `type: max_words` from a package with an entry point in `agentv.evaluators`.
    """
    name = function.__name__
    hints = get_type_hints(function, include_extras=True)
    fields: list[Any] = [("type", Literal[name], name)]
    for parameter in list(inspect.signature(function).parameters.values())[1:]:
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            msg = f"{name}: an option has a name of its own, which {parameter} has not"
            raise TypeError(msg)
        if parameter.name in FunctionEvaluator.__struct_fields__:
            msg = f"{name}: {parameter.name!r} is an option of every evaluator; choose another name"
            raise TypeError(msg)
        kind = hints.get(parameter.name, Any)
        required = parameter.default is parameter.empty
        fields.append((parameter.name, kind) if required else (parameter.name, kind, parameter.default))
    evaluator_class: Any = msgspec.defstruct(
        name,
        fields,
        bases=(FunctionEvaluator,),
        namespace={
            "__doc__": inspect.getdoc(function) or f"The function `{name}`.",
            "function": staticmethod(function),
            "options": tuple(field[0] for field in fields[1:]),
        },
        module=function.__module__,
        kw_only=True,
    )
    return cast("EvaluatorFactory[_Function]", evaluator_class)


async def run_with_deadline(timeout_s: float, work: Awaitable[Any]) -> Any:
    """Await user code with a deadline; raise `EvaluationError` if it raises or takes too long."""
    import asyncio  # noqa: PLC0415 - a configuration is checked without it

    from agentv.process.threads import raised_by_user_code  # noqa: PLC0415 - as above

    deadline = asyncio.timeout(timeout_s)
    try:
        async with deadline:
            return await work
    except TimeoutError as error:
        if not deadline.expired():
            raise EvaluationError(reason_of(error)) from error
        msg = f"the check did not end within {timeout_s:g} s"
        raise EvaluationError(msg) from None
    except AgentVError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and not raised_by_user_code(error):
            raise
        raise EvaluationError(reason_of(error)) from error


async def _call_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    from agentv.process.threads import call_in_thread  # noqa: PLC0415 - as above

    return await call_in_thread(function, *arguments)


async def call(function: Callable[..., Any], ctx: Context, options: Mapping[str, Any]) -> Any:
    """Call the function with a copy of the context."""
    options = options if takes_options(function) else {}
    # An asynchronous function is trusted not to block; any other runs in a thread.
    called = getattr(function, "__call__", None)  # noqa: B004 - an object whose call is asynchronous
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        return await function(copy_context(ctx), **options)
    # The context is copied in the thread too, as a long transcript takes time.
    returned = await _call_in_thread(lambda: function(copy_context(ctx), **options))
    return await returned if inspect.isawaitable(returned) else returned


def takes_options(function: Callable[..., Any]) -> bool:
    """Return whether it has parameters besides the context."""
    try:
        return len(inspect.signature(function).parameters) > 1
    except (TypeError, ValueError):  # written in C, without a signature
        return False


def reason_of(error: BaseException) -> str:
    """Return the last line of a traceback and its place."""
    try:
        words = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - code of somebody's, which may fail even at that
        words = "its text is itself an error"
    words = shorten(words, _MAX_REASON)
    frames = extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename.replace(chr(92), '/').rpartition('/')[2]}, line {frames[-1].lineno})"
    return f"{type(error).__name__}{': ' if words else ''}{words}{place if frames else ''}"


def find_file(name: str, scope: Scope | None) -> Path:
    """Return the file in the eval's folder, else in the project's; raise `EvaluationError` if there is none."""
    try:
        return code.find_file(name, scope)
    except FormatError as error:
        raise EvaluationError(str(error)) from None


def load_function(place: str, scope: Scope | None) -> Any:
    """Import a function; raise `EvaluationError` if it does not exist, and whatever its own code raises."""
    try:
        return code.load_object(place, scope)
    except FormatError as error:
        raise EvaluationError(str(error)) from None


class Python(EvaluatorBase, kw_only=True):
    """Your own Python function decides."""

    type: Literal["python"] = "python"
    function: str
    """`package.module:function`, or `./checks.py:function` for a file in the eval's folder or the project's."""
    config: dict[str, Any] = {}
    """Passed on: as `ctx.config`, and to parameters that the function has after the first."""
    judge: Annotated[str, Meta(min_length=1)] | None = None
    """A target that the function asks, with `await ctx.ask(NAME, messages)`."""
    timeout_s: Seconds = TIMEOUT_S
    """The time limit."""
    accepts_incomplete: bool = False
    """States that it looks at `incomplete` itself; otherwise replies that were redacted or cut are undecided."""

    executes: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            {"type": "python", "function": "agentv.evaluators.python:max_words", "config": {"most": 8}},
            [{"role": "assistant", "content": answer}],
            passes=passes,
        )
        for answer, passes in (
            ("It is sunny in Paris.", True),
            ("It is sunny in Paris, and since you ask, it was sunny yesterday too.", False),
        )
    )

    @property
    def handles_incomplete(self) -> bool:  # type: ignore[override]  # a setting here
        """True if its author says so."""
        return self.accepts_incomplete

    @property
    def asks(self) -> tuple[str, ...]:
        """The target that it declares to ask."""
        return () if self.judge is None else (self.judge,)

    def check(self, path: str) -> list[Problem]:
        """Return a problem if the place is invalid; nothing is imported."""
        if is_import_path(self.function):
            return []
        expected = "expected the place of a function, 'package.module:function' or './checks.py:function'"
        return [Problem(f"{path}.function", f"{expected}; got {self.function!r}")]

    async def evaluate(self, ctx: Context) -> EvaluatorResult:
        """Return the result for the value that the function returns."""
        config = msgspec.json.decode(msgspec.json.encode(self.config))  # a copy, as the function may change it
        return result_of(await run_with_deadline(self.timeout_s, self._run(replace(ctx, config=config))), self)

    async def _run(self, ctx: Context) -> Any:
        function = await _call_in_thread(load_function, self.function, ctx.scope)
        if isinstance(function, type) and issubclass(function, EvaluatorBase):
            instance = self._build(function, dict(ctx.config))
            returned = await _call_in_thread(lambda: instance.evaluate(copy_context(ctx)))
            return await returned if inspect.isawaitable(returned) else returned
        if not callable(function):
            msg = f"{self.function!r} is a {type(function).__name__}, not a function"
            raise EvaluationError(msg)
        return await call(function, ctx, ctx.config)

    def _build(self, kind: Any, config: dict[str, Any]) -> Any:
        """Return the evaluator of this class that `config` describes."""
        if "timeout_s" in kind.__struct_fields__:
            config = {"timeout_s": self.timeout_s, **config}
        try:
            return msgspec.convert(config, kind)
        except msgspec.ValidationError as error:
            msg = f"config: {error}"
            raise EvaluationError(msg) from None
