"""Interpretation of spans: the facts of each by the convention that its attributes follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from agentv.traces.conventions.ai_sdk import read_ai_sdk
from agentv.traces.conventions.genai import read_genai
from agentv.traces.conventions.openinference import read_openinference
from agentv.traces.conventions.traceloop import read_traceloop
from agentv.traces.spans.facts import Facts
from agentv.traces.spans.messages import join_items

if TYPE_CHECKING:
    from agentv.model.session import OtelSpan
    from agentv.traces.spans.messages import MessageReader

_KNOWN = ("gen_ai.", "openinference.", "llm.", "traceloop.", "ai.", "tool.", "gcp.vertex.agent.", "agent.")
PHANTOMS = frozenset(("(merged tools)",))
"""Tools that ADK invents for the results of parallel calls."""
_FINISHED_WITH_CALLS = ("tool", "function")


def is_agent_span(span: OtelSpan) -> bool:
    """Return whether a span follows one of the conventions, in its attributes or its events."""
    if any(key.startswith(_KNOWN) for key in span.attributes):
        return True
    if isinstance(span.attributes.get("openinference"), dict) or "span_kind" in span.attributes:
        return True
    return any(event.name.startswith("gen_ai.") for event in span.events)


def interpret(span: OtelSpan, reader: MessageReader) -> Facts:
    """Return the facts of a span; a span of no convention has none."""
    facts = _by_convention(span, reader)
    if facts.kind == "tool" and facts.tool in PHANTOMS:
        return Facts(unread=[])
    facts.prompt = join_items(facts.prompt) if facts.prompt else facts.prompt
    facts.replies = join_items(facts.replies) if facts.replies else facts.replies
    facts.unread = [*facts.unread, *reader.problems]
    reader.problems.clear()
    if facts.kind in ("model", "tool") and span.dropped:
        facts.unread.append(f"{span.dropped} attributes or events of it were dropped when it was recorded")
    return facts


def _by_convention(span: OtelSpan, reader: MessageReader) -> Facts:
    found: list[Facts] = []
    for read in (read_openinference, read_ai_sdk, read_genai, read_traceloop):
        facts = read(span, reader)
        if facts is not None:
            found.append(facts)
    if not found:
        return Facts(unread=[])
    if len(found) == 1:
        return found[0]
    # Several namespaces on one span: the most specific kind first, gaps filled by the others.
    ranked = sorted(found, key=lambda each: ("tool", "model", "agent", "other").index(each.kind))
    first = ranked[0]
    for other in ranked[1:]:
        _fill(first, other)
    return first


def _fill(facts: Facts, other: Facts) -> None:
    """Fill the gaps of a span's facts with what another convention says about the same span."""
    for name in ("call_id", "status", "prompt", "replies", "text", "usage", "cost_usd", "model", "agent"):
        if getattr(facts, name) is None and other.kind == facts.kind:
            setattr(facts, name, getattr(other, name))
    if facts.kind == other.kind == "tool":
        facts.input = other.input if facts.input is UNSET else facts.input
        facts.output = other.output if facts.output is UNSET else facts.output
    facts.unread = [*facts.unread, *other.unread]
    facts.agent = facts.agent or other.agent
    facts.finish = facts.finish or other.finish
    facts.response_id = facts.response_id or other.response_id


def names_calls(finish: tuple[str, ...]) -> bool:
    """Return whether a model says that it stopped in order to call tools."""
    return any(word in reason.lower() for reason in finish for word in _FINISHED_WITH_CALLS)
