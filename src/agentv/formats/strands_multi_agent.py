"""Graphs and swarms of Strands: the results of their nodes, and the events of their stream."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.usage import add_usage, decode_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_EVENTS = "multiagent_"
"""How the types of a stream's own events begin; those of a node stand inside of `multiagent_node_stream`."""


def _nodes(value: Any) -> list[_Object]:
    """Return the results of a graph's nodes, in the order in which they ended."""
    results = value.get("results") if isinstance(value, OBJECT) else None
    if not isinstance(results, OBJECT) or "accumulated_usage" not in value:
        return []
    order = value.get("execution_order", value.get("node_history"))
    names = [each.get("node_id") if isinstance(each, OBJECT) else each for each in order or ()]
    known = [name for name in dict.fromkeys(map(str, names)) if name in results]
    return list(objects_in([results[name] for name in (*known, *(key for key in results if key not in known))]))


def _detect(value: Any) -> bool:
    nodes = _nodes(value)
    return bool(nodes) and all("result" in node for node in nodes)


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the result of each node; where one tells only its answer, nothing is known about calls."""
    turns = [reader.read(node["result"]) for node in _nodes(value) if isinstance(node["result"], OBJECT)]
    if not turns:
        return ProviderResponse()
    usage = decode_usage(value["accumulated_usage"])
    are_told = all(turn.output_messages is not None for turn in turns)
    messages = tuple(message for turn in turns for message in turn.output_messages or ())
    return replace(
        turns[-1],
        success=all(turn.success for turn in turns),
        output_messages=messages if are_told or any(message.tool_calls for message in messages) else None,
        tokens_usage=usage or add_usage([turn.tokens_usage for turn in turns]),
        unread=tuple(each for turn in turns for each in turn.unread),
    )


def _is_event(item: Any) -> bool:
    kind = item.get("type") if isinstance(item, OBJECT) else None
    return isinstance(kind, str) and kind.startswith(_EVENTS)


def _detect_stream(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and bool(value) and all(map(_is_event, value))


def _read_stream(items: Sequence[_Object], reader: ReplyReader) -> ProviderResponse:
    """Read the events of the nodes as one stream."""
    return reader.read([item["event"] for item in items if isinstance(item.get("event"), OBJECT)])


RESULT = ReplyFormat(name="strands", detect=_detect, read=_read)
STREAM = ReplyFormat(name="strands", detect=_detect_stream, read=_read_stream, events=True)
