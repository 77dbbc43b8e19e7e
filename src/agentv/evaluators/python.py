"""`python`: a check of the user's own, in the process of agentv."""

import inspect
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from agentv.errors import EvaluationError, Problem
from agentv.evaluators.base import EvaluatorBase, Example
from agentv.evaluators.function import TIMEOUT_S, Seconds, call, within
from agentv.evaluators.located import load_function
from agentv.evaluators.own import own
from agentv.evaluators.returned import result_of
from agentv.files.code import is_place
from agentv.model.result import EvaluatorResult
from agentv.protocols import Context


class Python(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A Python function of yours decides."""

    type: Literal["python"] = "python"
    function: str
    """`package.module:function`, or `./checks.py:function` for a file in the eval's folder or the project's."""
    config: dict[str, Any] = {}
    """Passed on: as `ctx.config`, and to parameters that the function has after the first."""
    judge: Annotated[str, Meta(min_length=1)] | None = None
    """A target that the function asks, with `await ctx.ask(NAME, messages)`."""
    timeout_s: Seconds = TIMEOUT_S
    """How long it may take."""

    executes: ClassVar[bool] = True
    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            {"type": "python", "function": "agentv.evaluators.sample:max_words", "config": {"most": 8}},
            [{"role": "assistant", "content": answer}],
            passes=passes,
        )
        for answer, passes in (
            ("It is sunny in Paris.", True),
            ("It is sunny in Paris, and since you ask, it was sunny yesterday too.", False),
        )
    )

    @property
    def asks(self) -> tuple[str, ...]:
        """The target that it says it asks."""
        return () if self.judge is None else (self.judge,)

    def check(self, path: str) -> list[Problem]:
        """That the place can be one; nothing is imported before it runs."""
        if is_place(self.function):
            return []
        expected = "expected the place of a function, 'package.module:function' or './checks.py:function'"
        return [Problem(f"{path}.function", f"{expected}; got {self.function!r}")]

    async def evaluate(self, ctx: Context) -> EvaluatorResult:
        """What the function returns."""
        config = msgspec.json.decode(msgspec.json.encode(self.config))  # its own: it may write into it
        return result_of(await within(self.timeout_s, self._run(replace(ctx, config=config))), self)

    async def _run(self, ctx: Context) -> Any:
        from agentv.process.thread import in_thread  # noqa: PLC0415 - a configuration is checked without it

        found = await in_thread(load_function, self.function, ctx.scope)
        if isinstance(found, type) and issubclass(found, EvaluatorBase):
            made = self._made(found, dict(ctx.config))
            returned = await in_thread(lambda: made.evaluate(own(ctx)))
            return await returned if inspect.isawaitable(returned) else returned
        if not callable(found):
            msg = f"{self.function!r} is a {type(found).__name__}, not a function"
            raise EvaluationError(msg)
        return await call(found, ctx, ctx.config)

    def _made(self, kind: Any, config: dict[str, Any]) -> Any:
        """The evaluator of this class that `config` describes."""
        if "timeout_s" in kind.__struct_fields__:
            config = {"timeout_s": self.timeout_s, **config}
        try:
            return msgspec.convert(config, kind)
        except msgspec.ValidationError as error:
            msg = f"config: {error}"
            raise EvaluationError(msg) from None
