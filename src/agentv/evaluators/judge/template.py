"""A prompt of the user's own: rendered once, in a sandbox, with everything the agent wrote between fences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.errors import EvaluationError, Problem, suggest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.evaluators.judge.fence import Fence

NAMES = ("input", "expected", "candidate", "tool_calls", "trace", "trace_summary", "rubric")
"""What a template may speak of."""
STEPS = frozenset(("tool_calls", "trace"))


class Trusted(str):
    """Words of the eval's author, which need no fence."""

    __slots__ = ()


def check_template(text: str, path: str) -> list[Problem]:
    """What is wrong with a template; nothing of it is rendered."""
    from jinja2 import TemplateError, meta  # noqa: PLC0415 - only a prompt of one's own needs it

    environment = _environment()
    try:
        tree = environment.parse(text)
        environment.compile(tree)
    except TemplateError as error:
        line = getattr(error, "lineno", None)
        where = f" (line {line} of the template)" if line else ""
        return [Problem(path, f"not a template, says Jinja{where}: {error.message!r}")]
    if any(True for _ in meta.find_referenced_templates(tree)):
        return [Problem(path, "a prompt is one template: it includes, imports and extends no other")]
    unknown = sorted(meta.find_undeclared_variables(tree) - set(NAMES))
    return [
        Problem(path, f"{name!r} is no variable here{suggest(name, NAMES) or '; there are ' + ', '.join(NAMES)}")
        for name in unknown
    ]


def names_in(text: str) -> frozenset[str]:
    """Which of the variables a template uses."""
    from jinja2 import meta  # noqa: PLC0415 - as above

    return frozenset(meta.find_undeclared_variables(_environment().parse(text)))


def render(text: str, values: Mapping[str, Any], fence: Fence) -> str:
    """The template with these values: a text, or what holds one, stands between fences, whatever filters made of it."""
    from jinja2 import TemplateError, Undefined  # noqa: PLC0415 - as above

    def fenced(value: Any) -> Any:
        # What is not there is left to Jinja, which says so.
        if value is None or isinstance(value, (Undefined, bool, int, float)):
            return value
        # Only the very words: what a method of theirs makes of others' is of the same class.
        if isinstance(value, Trusted) and any(value is known for known in values.values()):
            return value
        if isinstance(value, str) and "\n" in value:
            return "\n" + fence.block("data", value) + "\n"
        return fence.inline(value)

    environment = _environment(fenced)
    try:
        rendered: str = environment.from_string(text).render(values)
    except (TemplateError, TypeError, ValueError, KeyError, ArithmeticError, RecursionError) as error:
        msg = f"the prompt could not be rendered: {type(error).__name__}: {error}"
        raise EvaluationError(msg) from error
    return rendered


def _environment(finalize: Any = None) -> Any:
    from jinja2 import StrictUndefined  # noqa: PLC0415 - as above
    from jinja2.sandbox import ImmutableSandboxedEnvironment  # noqa: PLC0415 - as above

    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        finalize=finalize,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.globals.clear()  # a prompt speaks of the names above and of nothing else
    return environment
