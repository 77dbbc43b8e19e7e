"""What a judge is shown of a run: without secrets, folded where it is long, and remembered for its quotations."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from msgspec import to_builtins

from agentv.errors import UndecidedError
from agentv.evaluators.judge.fold import Folded, fold_steps, shorten
from agentv.evaluators.judge.quotes import fields
from agentv.evaluators.judge.transcript import (
    CALLS,
    LEFT_OUT,
    Clean,
    Step,
    as_text,
    cleaned,
    events_of,
    spoken,
    steps_of,
)
from agentv.evaluators.unread import unread_steps
from agentv.protocols import Context

MAX_TOOLS = 200


class Material(NamedTuple):
    """One run, ready to be shown."""

    input: tuple[tuple[str, str], ...]
    expected: tuple[tuple[str, str], ...]
    candidate: str
    steps: tuple[Step, ...] | None = None
    """`None` when they are not shown, or when the agent reported none."""
    trace: list[dict[str, Any]] | None = None
    trace_summary: dict[str, Any] | None = None
    total_steps: int = 0
    """How many there were before any were left out."""
    notes: tuple[str, ...] = ()
    """What was done to make it shorter, for the judge."""
    folded: dict[str, Any] = {}
    """The same for the result."""

    @property
    def evidence(self) -> tuple[str, ...]:
        """What the agent said and did, as far as it is shown: quotations come from here."""
        steps = [step for step in self.steps or () if step.type != LEFT_OUT]
        said = [text for step in steps for text in (*step.texts, fields(step.as_data()))]
        events = [text for event in self.trace or () for text in _event_texts(event)]
        counts = [] if self.trace_summary is None else [fields(self.trace_summary)]
        return (*([self.candidate] if self.candidate else []), *said, *events, *counts)

    @property
    def texts(self) -> tuple[str, ...]:
        """Everything in it that others wrote."""
        return (*[text for _, text in (*self.input, *self.expected)], *self.evidence)


def check_steps(ctx: Context, what: str) -> None:
    """Raise an `UndecidedError` unless all that the agent did is known: a judge would take it for everything."""
    reason = unread_steps(ctx)
    if reason:
        msg = f"{what}: {reason}"
        raise UndecidedError(msg)


def gather(ctx: Context, clean: Clean, show: Collection[str], most: int) -> Material:
    """What is to be shown of a run, in about so many characters."""
    candidate = clean(ctx.candidate)
    asked, golden = spoken(ctx.case.input_messages, clean), spoken(ctx.expected_messages or (), clean)
    notes: list[str] = []
    folded: dict[str, Any] = {}
    long = [len(text) for text in (candidate, *(text for _, text in (*asked, *golden))) if len(text) > most]
    if long:
        candidate = shorten(candidate, most)
        asked, golden = (tuple((label, shorten(text, most)) for label, text in part) for part in (asked, golden))
        notes.append("A text that is longer than fits shows its beginning and its end; what was left out is counted.")
        folded["texts"] = {"shortened": len(long), "max_chars": most}
    steps = _steps(ctx, clean, show, most)
    if steps is not None and steps.details:
        notes.append(steps.note)
        folded["steps"] = steps.details
    summary = None if ctx.trace_summary is None else cleaned(to_builtins(ctx.trace_summary), clean)
    summary, untold = _most_called(summary) if summary and "trace_summary" in show else (None, 0)
    if untold:
        notes.append(f"Of the tools the {MAX_TOOLS} most often called are counted, and {untold:,} more are not.")
        folded["trace_summary"] = {"tools": MAX_TOOLS, "left_out": untold}
    return Material(
        input=asked,
        expected=golden,
        candidate=candidate,
        steps=None if steps is None else steps.steps,
        total_steps=0 if steps is None else steps.total,
        trace_summary=summary,
        notes=tuple(notes),
        folded=folded,
    )


def with_trace(material: Material, ctx: Context, clean: Clean, most: int) -> Material:
    """The same with the events themselves, for a template that speaks of them."""
    events = events_of(ctx, clean)
    if events is None:
        return material
    steps = [Step(number, "event", None, tuple(event.items())) for number, event in enumerate(events, 1)]
    shown = fold_steps(steps, most)
    trace = [{**({"type": LEFT_OUT} if step.type == LEFT_OUT else {}), **dict(step.fields)} for step in shown.steps]
    if not shown.details:
        return material._replace(trace=trace)
    folded = {**material.folded, "trace": shown.details}
    return material._replace(trace=trace, notes=(*material.notes, shown.note), folded=folded)


def _most_called(summary: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """A summary that names no more tools than a judge can read, and how many it does not name."""
    counts: dict[str, int] = summary.get("tool_calls_by_name") or {}
    if len(counts) <= MAX_TOOLS:
        return summary, 0
    kept = dict(sorted(counts.items(), key=lambda each: -each[1])[:MAX_TOOLS])
    return {**summary, "tool_names": sorted(kept), "tool_calls_by_name": kept}, len(counts) - MAX_TOOLS


def _steps(ctx: Context, clean: Clean, show: Collection[str], most: int) -> Folded | None:
    if "trace" not in show and "tool_calls" not in show:
        return None
    steps = steps_of(ctx, clean)
    if steps is None:
        return None
    if "trace" not in show:
        steps = tuple(step for step in steps if step.type in CALLS)
    return fold_steps(steps, most)


def _event_texts(event: Mapping[str, Any]) -> list[str]:
    if event.get("type") == LEFT_OUT:
        return []
    said = {name: value for name, value in event.items() if name != "type"}
    return [*map(str, _leaves(said)), *(as_text(value) for value in said.values()), fields(event)]


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in _leaves(each)]
    if isinstance(value, list):
        return [leaf for each in value for leaf in _leaves(each)]
    return [] if value is None else [value]
