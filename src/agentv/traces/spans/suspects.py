"""Spans, events and attributes that look like calls of tools and follow no convention, so that calls may be missing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agentv.formats.fields import CALL_ID_KEYS, INPUT_KEYS, MISSING_CALLS, NAME_KEYS, is_call_key, to_snake_case
from agentv.model.response import Unread
from agentv.traces.conventions.tool_results import is_schema
from agentv.traces.spans.interpret import PHANTOMS, is_of_adk
from agentv.traces.spans.tool_matching import is_named
from agentv.traces.spans.values import RememberedKeys, parse_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agentv.model.session import OtelSpan
    from agentv.traces.spans.drafts import CallDraft
    from agentv.traces.spans.nodes import Node

_TOOL_KEY = re.compile(
    r"(?:^|[._])(?:tool[._](?:name|title|id|call\b|call[._](?:name|id))|function_call|tool_calls?)\Z"
)
_KIND_KEY = re.compile(r"(?:kind|type|span_attributes)\Z")
_TOOL_KINDS = frozenset(("tool", "function", "tool_call", "function_call", "tool_use"))
_TOOL_SPAN = re.compile(r"(?:execute_tool|tools/call|running tool|call_tool|function_call)\b[\s:]*(.*)", re.DOTALL)
_TOOL_EVENT = re.compile(r"(?:tool|function)[._]?(?:call|use)", re.IGNORECASE)
_NAMES = ("name", "tool", "toolName", "tool_name", "function")
_READ = frozenset(("ai.response.toolCalls", "gen_ai.tool.name", "tool.name", "gen_ai.tool.call.id", "tool_call.id"))
"""Attributes that the conventions read on spans of models and agents, or that say nothing there."""
_NAMESPACES = (
    *("gen_ai.", "llm.", "input.", "output.", "ai.", "openinference.", "traceloop.", "pydantic_ai.", "logfire."),
    *("gcp.vertex.agent.", "langsmith.", "langfuse.", "mlflow.", "metadata.", "agentv.", "tool."),
)
"""Attributes that the conventions read, or that repeat what they read."""
_MAX_SUSPECTS = 20
_CALLS, _ANY = 1, 2


def suspected_calls(nodes: Iterable[Node], calls: Iterable[CallDraft]) -> list[Unread]:
    """Return the places that look like calls, of tools that no known call has."""
    known = list(calls)
    names = {call.tool for call in known}
    ids = {call.id for call in known if call.id}
    found: list[Unread] = []
    for node in nodes:
        if node.kind == "tool" or len(found) >= _MAX_SUSPECTS:
            continue
        for name, sign in _signs(node):
            is_known = name in ids or any(is_named(name, each) for each in names) if name else False
            if not is_known:
                reason = f"it looks like a call of a tool ({sign}), and follows no known convention, {MISSING_CALLS}"
                found.append(Unread(path=f"span {node.span.span_id} ({node.span.name[:60]})", reason=reason))
                break
    return found


def _signs(node: Node) -> Iterator[tuple[str, str]]:
    """Yield the name of each tool that a span seems to call, if it tells one, and the sign of it."""
    yield from _signs_in_messages(node)
    if node.kind != "other":
        return
    if is_of_adk(node.span) and not PHANTOMS.isdisjoint(_tool_names(node.span.attributes)):
        if not _has_parts(node):
            yield "", "the results of parallel calls, whose spans are missing"
    elif node.tool_ancestor is None and not node.descendants("tool"):
        yield from _signs_of_tool(node.span)  # else it is a part of a known call, or what is around it


def _has_parts(node: Node) -> bool:
    """Return whether the spans of the parallel calls are there whose results ADK merged into one span."""
    if node.parent is None:
        return False
    earlier = [each for each in node.parent.children if each.order < node.order]
    merged = [each.order for each in earlier if not PHANTOMS.isdisjoint(_tool_names(each.span.attributes))]
    tools = [each for each in earlier if each.kind == "tool" and each.order > max(merged, default=-1)]
    return len(tools) > 1


def _signs_in_messages(node: Node) -> Iterator[tuple[str, str]]:
    span = node.span
    for event in span.events:
        if _TOOL_EVENT.search(event.name):
            fields = event.attributes | (event.body if isinstance(event.body, dict) else {})
            yield from ((name, f"event `{event.name[:60]}`") for name in _tool_names(fields) or [""])
    for said in (node.facts.replies or ()) if node.kind == "agent" else ():
        yield from ((call.tool, "a reply of the agent") for call in said.calls)
    if node.kind != "other":
        for key, value in span.attributes.items():
            about = _ABOUT[key]
            if about and (about == _CALLS or _holds_calls(value)):
                yield from ((name, f"attribute `{key[:60]}`") for name in _names_in(value))


def _about_key(key: str) -> int:
    """Return whether the value of an attribute must be calls, may be calls, or is read or of no interest (0)."""
    if key in _READ:
        return 0
    if is_call_key(key.rpartition(".")[2]):
        return _CALLS
    return 0 if key.startswith(_NAMESPACES) or "." not in key else _ANY


_ABOUT = RememberedKeys(_about_key)


def _holds_calls(value: Any) -> bool:
    """Return whether the value of an attribute is an object or a list of objects that look like calls."""
    if not isinstance(value, (dict, list)) and not (isinstance(value, str) and value[:1] in ("{", "[", '"')):
        return False
    parsed = parse_value(value)
    items = parsed if isinstance(parsed, list) else [parsed]
    return any(
        isinstance(item, dict)
        and not item.keys().isdisjoint(NAME_KEYS)
        and not item.keys().isdisjoint((*INPUT_KEYS, *CALL_ID_KEYS))
        and not is_schema(next((item[each] for each in INPUT_KEYS if each in item), None))
        for item in items
    )


def _signs_of_tool(span: OtelSpan) -> Iterator[tuple[str, str]]:
    told = _tool_names(span.attributes)
    match = _TOOL_SPAN.match(span.name)
    if match is not None:
        yield from ((name, "its name") for name in told or [match[1].strip()])
    elif told:
        yield from ((name, "its attributes") for name in told)
    elif any(_is_tool_kind(key, value) for key, value in span.attributes.items()):
        yield span.name, "its kind"


def _is_tool_kind(key: str, value: Any) -> bool:
    if not _KIND_KEY.search(to_snake_case(key)):
        return False
    parsed = parse_value(value)
    kind = parsed.get("type") if isinstance(parsed, dict) else parsed
    return isinstance(kind, str) and kind.strip('"').lower() in _TOOL_KINDS


def _tool_names(attributes: Mapping[str, Any]) -> list[str]:
    """Return the names of tools in attributes, of any vendor; ids of calls stand for names."""
    names: list[str] = []
    for key, value in attributes.items():
        if _TOOL_KEYS[key]:
            names += _names_in(value)
    return names


def _names_tool(key: str) -> bool:
    snake = to_snake_case(key)
    return snake == "tool" or bool(_TOOL_KEY.search(snake)) or is_call_key(snake.rpartition(".")[2])


_TOOL_KEYS = RememberedKeys(_names_tool)


def _names_in(value: Any) -> list[str]:
    """Return the names of tools in a value: a text, an object of a call, or a list of them."""
    parsed = parse_value(value)
    if isinstance(parsed, str):
        return [parsed] if parsed.strip() else []
    items = parsed if isinstance(parsed, list) else [parsed]
    objects = [item for item in items if isinstance(item, dict)]
    names: list[str] = [item for item in items if isinstance(item, str) and item]
    for item in objects:
        inner = item["function"] if isinstance(item.get("function"), dict) else item
        name = next((inner[key] for key in _NAMES if isinstance(inner.get(key), str)), None)
        names += [name] if name else []
    return names or ["" for item in objects if item]
