"""Matching of tool spans with the calls that models asked for: by id, else by name, input and order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import UNSET

from agentv.matching.equality import json_equal
from agentv.traces.spans.drafts import CallDraft, MessageDraft, tool_error
from agentv.traces.spans.messages import Said

if TYPE_CHECKING:
    from collections import Counter

    from agentv.traces.spans.nodes import Node
    from agentv.traces.spans.timeline import Timeline

_WORD = re.compile(r"[^a-z0-9]+")
REPEATED_TOOLS = "tool spans that repeat another one"


def match_tools(timeline: Timeline, nodes: list[Node]) -> None:
    """Attach tool spans to calls; those that match none become calls of their own."""
    tools = [node for node in nodes if node.kind == "tool"]
    has_scopes = len({node.span.scope for node in tools}) > 1
    tools = _without_nested(tools, timeline.notes)
    rest = _match_ids(timeline.calls, tools, timeline.notes)
    rest = _match_names(timeline.calls, rest)
    for node in rest:
        kept = _first_record(node, timeline.calls) if has_scopes else None
        if kept is not None:
            timeline.notes[REPEATED_TOOLS] += 1
            _absorb(kept, node)
        else:
            _add_own_call(timeline, node)


def _without_nested(tools: list[Node], notes: Counter[str]) -> list[Node]:
    """Return tool spans without those below a span of the same tool: two records of one call."""
    kept = []
    for node in tools:
        outer = node.tool_ancestor
        while outer is not None and outer.facts.tool != node.facts.tool:
            outer = outer.tool_ancestor
        if outer is None or not _may_be_same(outer, node) or not _is_repeated(outer, node):
            kept.append(node)
            continue
        notes[REPEATED_TOOLS] += 1
        _absorb(outer, node)
    return kept


def _is_repeated(outer: Node, node: Node) -> bool:
    """Return whether a span within one of the same tool repeats it, and is no call that the tool itself caused.

    One instrumentation records a call twice only with the same id or the same input.
    """
    if outer.span.scope != node.span.scope:
        return True
    one, other = outer.facts, node.facts
    if one.call_id and other.call_id:
        return one.call_id == other.call_id
    return one.input is not UNSET and other.input is not UNSET


def _absorb(kept: Node, repeated: Node) -> None:
    """Add to a tool span what only the other record of the same run tells, above all that it failed."""
    facts, other = kept.facts, repeated.facts
    facts.input = other.input if facts.input is UNSET else facts.input
    facts.output = other.output if facts.output is UNSET else facts.output
    facts.call_id = facts.call_id or other.call_id
    error = tool_error(repeated)
    if error is not None and tool_error(kept) is None:
        kept.span.is_error, kept.span.error = True, error
    elif other.status == "error":
        facts.status = "error"


def _may_be_same(one: Node, other: Node) -> bool:
    """Return whether two spans can be records of one call: their inputs and ids do not contradict each other."""
    first, second = one.facts, other.facts
    if first.call_id and second.call_id and first.call_id != second.call_id and one.span.scope == other.span.scope:
        return False
    if not (isinstance(first.input, dict) and isinstance(second.input, dict)):
        return True  # not captured, or the only argument as a text
    return json_equal(first.input, second.input)


def _match_ids(calls: list[CallDraft], tools: list[Node], notes: Counter[str]) -> list[Node]:
    by_id: dict[str, list[CallDraft]] = {}
    for each in calls:
        if each.id:
            by_id.setdefault(each.id, []).append(each)
    rest: list[Node] = []
    for node in tools:
        # A span of another tool with the id of a call is a call of its own, which must not be hidden.
        same = [each for each in by_id.get(node.facts.call_id or "", []) if is_named(each.tool, node.facts.tool)]
        call = next((each for each in same if each.node is None), None)
        if call is not None:
            _attach(call, node)
            continue
        kept = next((each.node for each in same if each.node is not None and _is_record_of(each.node, node)), None)
        if kept is not None:
            notes[REPEATED_TOOLS] += 1
            _absorb(kept, node)
        else:
            rest.append(node)
    return rest


def _is_record_of(one: Node, other: Node) -> bool:
    """Return whether two spans with the same call id are two records of one run of the tool."""
    overlap = one.span.start <= other.end and other.span.start <= one.end
    if one.facts.tool != other.facts.tool or not (overlap or one.span.scope != other.span.scope):
        return False
    return _may_be_same(one, other) and (one.span.scope != other.span.scope or _may_be_one_result(one, other))


def _may_be_one_result(one: Node, other: Node) -> bool:
    first, second = one.facts.output, other.facts.output
    return first is UNSET or second is UNSET or json_equal(first, second)


def _attach(call: CallDraft, node: Node) -> None:
    call.node = node
    if call.input is UNSET:
        call.input = node.facts.input
    if not call.tool:
        call.tool = node.facts.tool
    if not call.id:
        call.id = node.facts.call_id


def _match_names(calls: list[CallDraft], tools: list[Node]) -> list[Node]:
    """Match the remaining spans by name: first those with equal inputs, then in the order of time."""
    for with_input in (True, False):
        waiting: dict[str, list[CallDraft]] = {}
        for call in calls:
            if call.node is None:
                waiting.setdefault(_plain_name(call.tool), []).append(call)
        rest: list[Node] = []
        for node in tools:
            group = waiting.get(_plain_name(node.facts.tool), [])
            at = next((at for at, each in enumerate(group) if _fits(each, node, with_input=with_input)), None)
            if at is None:
                rest.append(node)
            else:
                _attach(group.pop(at), node)
        tools = rest
    return tools


def _fits(call: CallDraft, node: Node, *, with_input: bool) -> bool:
    if call.trace_id != node.span.trace_id:
        return False
    if call.input is UNSET or node.facts.input is UNSET:
        return not with_input
    return json_equal(call.input, node.facts.input) or (not with_input and not isinstance(node.facts.input, dict))


def is_named(asked: str, ran: str) -> bool:
    """Return whether a call and a span with its id are of one tool: a name may have a prefix, such as of a server."""
    one, other = ([word for word in _WORD.split(name.lower()) if word] for name in (asked, ran))
    if not one or not other or "".join(one) == "".join(other):
        return True
    short, long = sorted((one, other), key=len)
    return long[-len(short) :] == short


def _plain_name(tool: str) -> str:
    return tool.replace("-", "_").lower()


def _first_record(node: Node, calls: list[CallDraft]) -> Node | None:
    """Return the span in which another instrumentation recorded the same run of a tool; `None` if there is none."""
    for call in calls:
        other = call.node
        if other is None or other.span.scope == node.span.scope or other.span.trace_id != node.span.trace_id:
            continue
        if other.facts.tool == node.facts.tool and _is_record_of(other, node) and _may_be_same(other, node):
            is_same_time = other.span.start <= node.end and node.span.start <= other.end
            return other if is_same_time else None
    return None


def _add_own_call(timeline: Timeline, node: Node) -> None:
    """Add a call that only its tool span tells, to the reply that may have asked for it or as a message of its own."""
    facts = node.facts
    call = CallDraft(
        tool=facts.tool,
        input=facts.input,
        id=facts.call_id,
        node=node,
        time=node.span.start,
        trace_id=node.span.trace_id,
    )
    place = len(timeline.messages)
    while place and timeline.messages[place - 1].time > node.span.start:
        place -= 1
    asked = timeline.messages[place - 1] if place else None
    timeline.calls.append(call)
    if _may_have_asked(asked, node):
        asked.calls.append(call)  # type: ignore[union-attr]  # it is there
        return
    draft = MessageDraft(Said("assistant"), calls=[call], node=node, time=node.span.start)
    timeline.messages.insert(place, draft)


def _may_have_asked(message: MessageDraft | None, node: Node) -> bool:
    """Return whether a message is the reply that asked for a call: its content was not captured, or it only calls."""
    if message is None or message.role != "assistant" or message.is_context or message.node is None:
        return False
    if message.node.span.trace_id != node.span.trace_id:
        return False
    return message.node.kind == "model" and not message.is_captured
