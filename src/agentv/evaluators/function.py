"""A function of the user's as an evaluator: how it is called, and the decorator that makes it a type of its own."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from traceback import extract_tb
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeVar, cast, get_type_hints

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from agentv.errors import AgentVError, EvaluationError
from agentv.evaluators.base import EvaluatorBase
from agentv.evaluators.own import own
from agentv.evaluators.returned import result_of
from agentv.model.result import EvaluatorResult
from agentv.protocols import Context

TIMEOUT_S = 30.0
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
_MAX_REASON = 500


class FunctionEvaluator(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A check that is a function."""

    timeout_s: Seconds = TIMEOUT_S
    """How long it may take."""

    function: ClassVar[Callable[..., Any]]
    """The function itself, for a test of its own."""
    options: ClassVar[tuple[str, ...]] = ()
    """The names of its parameters after the first."""

    async def evaluate(self, ctx: Context) -> EvaluatorResult:
        """What the function returns."""
        given = {name: getattr(self, name) for name in self.options}
        work = call(type(self).function, replace(ctx, config=given), given)
        return result_of(await within(self.timeout_s, work), self)


_Function_co = TypeVar("_Function_co", bound=Callable[..., Any], covariant=True)


class MadeEvaluator(Protocol[_Function_co]):
    """What the decorator gives: called with options, it is a check."""

    @property
    def function(self) -> _Function_co:
        """The function itself, for a test of its own."""
        ...

    def __call__(self, **options: Any) -> EvaluatorBase:
        """A check with these options."""
        ...


_Function = TypeVar("_Function", bound=Callable[..., Any])


def evaluator(function: _Function) -> MadeEvaluator[_Function]:
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
    made: Any = msgspec.defstruct(
        name,
        fields,
        bases=(FunctionEvaluator,),
        namespace={
            "__doc__": inspect.getdoc(function) or f"The function `{name}`.",
            "function": staticmethod(function),
            "options": tuple(field[0] for field in fields[1:]),
        },
        module=function.__module__,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
        dict=True,
    )
    return cast("MadeEvaluator[_Function]", made)


async def within(timeout_s: float, work: Awaitable[Any]) -> Any:
    """What comes of a check's code; `EvaluationError` when it throws or takes too long."""
    import asyncio  # noqa: PLC0415 - a configuration is checked without it

    from agentv.process.thread import is_its_own  # noqa: PLC0415 - as above

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
        if not isinstance(error, Exception) and not is_its_own(error):
            raise
        raise EvaluationError(reason_of(error)) from error


async def call(function: Callable[..., Any], ctx: Context, given: Mapping[str, Any]) -> Any:
    """What the function returns for this context, of which it gets a copy of its own."""
    from agentv.process.thread import in_thread  # noqa: PLC0415 - as above

    options = given if takes_options(function) else {}
    # An asynchronous one is trusted not to block; any other is called where it holds up nobody.
    called = getattr(function, "__call__", None)  # noqa: B004 - an object whose call is asynchronous
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        return await function(own(ctx), **options)
    found = await in_thread(lambda: function(own(ctx), **options))  # a long transcript takes a while to copy
    return await found if inspect.isawaitable(found) else found


def takes_options(function: Callable[..., Any]) -> bool:
    """Whether it has parameters beside the context."""
    try:
        return len(inspect.signature(function).parameters) > 1
    except (TypeError, ValueError):  # written in C: it does not say
        return False


def reason_of(error: BaseException) -> str:
    """What a traceback ends with, on one line, and where it happened."""
    try:
        words = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - code of somebody's, which may fail even at that
        words = "its text is itself an error"
    words = words if len(words) <= _MAX_REASON else f"{words[:_MAX_REASON]}…"
    frames = extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename.replace(chr(92), '/').rpartition('/')[2]}, line {frames[-1].lineno})"
    return f"{type(error).__name__}{': ' if words else ''}{words}{place if frames else ''}"
