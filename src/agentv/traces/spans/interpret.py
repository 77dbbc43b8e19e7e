"""Interpretation of spans: the facts of each by the convention that its attributes follow."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from agentv.traces.conventions.claude_code import is_of_claude_code
from agentv.traces.conventions.genai import ADK_SCOPE, read_genai
from agentv.traces.conventions.openinference import OPENINFERENCE_MARKS, read_openinference
from agentv.traces.conventions.traceloop import INDEXED_PREFIXES, read_traceloop
from agentv.traces.conventions.vendors import (
    LANGFUSE,
    LOGFIRE_SCOPE,
    MASTRA,
    read_ai_sdk,
    read_langfuse,
    read_logfire,
    read_mastra,
)
from agentv.traces.spans.facts import Facts
from agentv.traces.spans.messages import join_items
from agentv.traces.spans.values import RememberedKeys
from agentv.traces.spans.writer import UNREAD

if TYPE_CHECKING:
    from agentv.model.session import OtelSpan
    from agentv.traces.spans.messages import MessageReader

_KNOWN = ("gen_ai.", "openinference.", "llm.", "traceloop.", "ai.", "tool.", "gcp.vertex.agent.", "agent.", "langfuse.")
_OPENINFERENCE, _AI_SDK, _GENAI, _TRACELOOP, _LANGFUSE, _MASTRA = 1, 2, 4, 8, 16, 32
PHANTOMS = frozenset(("(merged tools)",))
"""Tools that ADK invents for the results of parallel calls."""
_FINISHED_WITH_CALLS = ("tool", "function")


def is_agent_span(span: OtelSpan) -> bool:
    """Return whether a span follows one of the conventions, in its attributes or its events."""
    if any(key.startswith(_KNOWN) for key in span.attributes):
        return True
    if (
        span.scope == ADK_SCOPE
        or isinstance(span.attributes.get("openinference"), dict)
        or "span_kind" in span.attributes
    ):
        return True
    if "agent_name" in span.attributes and "model_name" in span.attributes:  # of pydantic-ai in its first versions
        return True
    return is_of_claude_code(span) or any(event.name.startswith("gen_ai.") for event in span.events)


def is_of_adk(span: OtelSpan) -> bool:
    """Return whether ADK itself wrote a span; an export without scopes still has its attributes."""
    if span.scope:
        return span.scope == ADK_SCOPE
    return any(key.startswith(f"{ADK_SCOPE}.") for key in span.attributes)


def interpret(span: OtelSpan, reader: MessageReader) -> Facts:
    """Return the facts of a span; a span of no convention has none."""
    facts = _by_convention(span, reader)
    if facts.kind == "tool" and facts.tool in PHANTOMS and is_of_adk(span):
        return Facts(unread=[])
    facts.prompt = join_items(facts.prompt) if facts.prompt else facts.prompt
    facts.replies = join_items(facts.replies) if facts.replies else facts.replies
    if reader.problems:
        facts.unread = [*facts.unread, *reader.problems]
        reader.problems.clear()
    if UNREAD in span.attributes:
        facts.unread.append(str(span.attributes[UNREAD]))
    if facts.kind != "other" and span.dropped:
        facts.unread.append(f"{span.dropped} attributes, events or links of it were dropped when it was recorded")
    return facts


def _by_convention(span: OtelSpan, reader: MessageReader) -> Facts:
    if span.scope == LOGFIRE_SCOPE and (facts := read_logfire(span, reader)) is not None:
        return facts
    signs = 0
    for key in span.attributes:
        signs |= _SIGNS[key]
    if span.events or span.scope == ADK_SCOPE:
        signs |= _GENAI
    if span.name.startswith("ai."):
        signs |= _AI_SDK
    found: list[Facts] = []
    for sign, read in _READERS:
        if signs & sign and (facts := read(span, reader)) is not None:
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


_SIGNS_OF_KEYS = {
    **dict.fromkeys(OPENINFERENCE_MARKS, _OPENINFERENCE),
    "operation.name": _AI_SDK,
    "agent_name": _GENAI,
    "llm.request.type": _GENAI | _TRACELOOP,
    "traceloop.span.kind": _TRACELOOP,
    LANGFUSE: _LANGFUSE,
    MASTRA: _MASTRA,
}


def _signs_of_key(key: str) -> int:
    """Return the conventions that an attribute may belong to."""
    signs = _SIGNS_OF_KEYS.get(key, 0)
    signs |= _AI_SDK if key.startswith("ai.") else 0
    signs |= _GENAI if key.startswith("gen_ai.") else 0
    return signs | (_TRACELOOP if key.startswith(INDEXED_PREFIXES) else 0)


_SIGNS = RememberedKeys(_signs_of_key)
_READERS = (
    (_OPENINFERENCE, read_openinference),
    (_AI_SDK, read_ai_sdk),
    (_GENAI, read_genai),
    (_TRACELOOP, read_traceloop),
    (_LANGFUSE, read_langfuse),
    (_MASTRA, read_mastra),
)


def _fill(facts: Facts, other: Facts) -> None:
    """Fill the gaps of a span's facts with what another convention says about the same span."""
    for name in ("call_id", "status", "prompt", "replies", "text", "usage", "cost_usd", "model", "agent"):
        if getattr(facts, name) is None and other.kind == facts.kind:
            setattr(facts, name, getattr(other, name))
    if facts.kind == other.kind == "model" and facts.replies is not None and not _calls(facts) and _calls(other):
        called = [replace(said, content=None) for said in other.replies or () if said.calls]
        facts.replies = [*(said for said in facts.replies if said.content), *called]
    if facts.kind == other.kind == "tool":
        facts.input = other.input if facts.input is UNSET else facts.input
        facts.output = other.output if facts.output is UNSET else facts.output
    facts.unread = [*facts.unread, *other.unread]
    facts.agent = facts.agent or other.agent
    facts.finish = facts.finish or other.finish
    facts.response_id = facts.response_id or other.response_id


def _calls(facts: Facts) -> bool:
    return any(said.calls for said in facts.replies or ())


def names_calls(finish: tuple[str, ...]) -> bool:
    """Return whether a model says that it stopped in order to call tools."""
    return any(map(_names_calls, finish))


@lru_cache(maxsize=256)
def _names_calls(reason: str) -> bool:
    return any(word in reason.lower() for word in _FINISHED_WITH_CALLS)
