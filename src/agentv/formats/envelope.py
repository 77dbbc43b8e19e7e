"""Replies that an endpoint wraps: an object one of whose fields holds the reply, as data or as JSON text."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from agentv.formats.detect import TEXT_KEYS, are_messages
from agentv.formats.draft import other_fields
from agentv.formats.fields import OBJECT
from agentv.formats.response import decode_fields, join_responses
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.vocabulary import is_searched, snake
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader
from agentv.registry import reply_formats

_Object = Mapping[str, Any]
_WEAK = frozenset(("message", "fields", "error", "text", "rest", "agentv", "log", "trace", "mcp"))
"""Formats that fit what need not be a reply."""
_WRAPPERS = frozenset((
    *("data", "result", "results", "response", "output", "outputs", "payload", "body", "reply", "value", "return"),
    *("json", "content", "message", "completion", "agent_response", "llm_response", "model_response", "d", "state"),
    *("final", "final_state", "final_output", "run", "answer", "agent", "items"),
))  # fmt: skip
"""Keys under which a reply stands in another, also as JSON text or as bare messages."""
_CONVERSATIONS = frozenset(("conversation", "turns", "transcript", "dialog", "dialogue", "thread", "history"))
"""Keys of a conversation that is all that an object tells."""
_ASIDE = frozenset(("metadata", "input", "inputs", "previous", "prompt", "context", "memory", "debug"))
"""Keys of what was there before the reply, or says something about it."""
_MAX_LEVELS = 3
_MAX_KEYS = 50
"""Fields of an object that wraps a reply; one with more is data of its own."""


def _inner(value: Any, levels: int = _MAX_LEVELS) -> tuple[str, Any] | None:
    """Return the one field that holds a reply, and the reply; `None` when there is none, or more than one."""
    if not isinstance(value, OBJECT) or "role" in value or levels <= 0 or len(value) > _MAX_KEYS:
        return None
    found = [
        (key, data) for key in value if isinstance(key, str) and (data := _reply_in(value, key, levels)) is not None
    ]
    return found[0] if len(found) == 1 else None


def _reply_in(value: _Object, key: str, levels: int) -> Any:
    word, item = snake(key), value[key]
    is_wrapper = word in _WRAPPERS
    if not is_searched(key) or word in _ASIDE:
        return None
    if isinstance(item, str) and is_wrapper and item.lstrip()[:1] in ("{", "["):
        item = parse_arguments(item)[0]
    if isinstance(item, (list, tuple)) and are_messages(item):
        is_whole = word in _CONVERSATIONS and not any(isinstance(value.get(each), str) for each in TEXT_KEYS)
        return item if is_wrapper or is_whole or _ends_with(item, value) else None
    if not isinstance(item, (list, tuple, *OBJECT)) or not item:
        return None
    if _is_reply(item, is_wrapper=is_wrapper):
        return item
    is_sole = isinstance(item, OBJECT) and len(item) == 1
    return item if (is_wrapper or is_sole) and _inner(item, levels - 1) is not None else None


def _is_reply(item: Any, *, is_wrapper: bool) -> bool:
    """Tell what a format of the table reads, one that fits nothing but replies."""
    for each in reply_formats():
        if each is FORMAT or (each.name in _WEAK and not (is_wrapper and each.name in ("log", "agentv", "trace"))):
            continue
        if each.name == "agentv" and not (isinstance(item, OBJECT) and ("output_messages" in item or "trace" in item)):
            continue
        if each.items and isinstance(item, OBJECT):
            if is_wrapper and each.detect([item]):
                return True
        elif each.detect(item):
            return True
    return False


def _ends_with(messages: Any, value: _Object) -> bool:
    """Tell a conversation that ends with the answer which stands beside it."""
    last = messages[-1] if isinstance(messages[-1], OBJECT) else {}
    answers = [value[key] for key in TEXT_KEYS if isinstance(value.get(key), str)]
    return last.get("role") in ("assistant", "model", "ai") and last.get("content") in answers


def _detect(value: Any) -> bool:
    return _inner(value) is not None


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the reply inside; what stands beside it is read as in any reply."""
    key, item = _inner(value) or ("", {})
    said = reader.read(item)
    beside = decode_fields(other_fields(value, key))
    joined = join_responses(said, beside)
    texts = [value[each] for each in TEXT_KEYS if isinstance(value.get(each), str) and each != key]
    return replace(
        joined,
        text=said.text or (texts[0] if len(texts) == 1 else joined.text),
        trace=beside.trace or said.trace,
        thread_id=beside.thread_id or said.thread_id,
        latency_ms=said.latency_ms if beside.latency_ms is None else beside.latency_ms,
        cost_usd=said.cost_usd if beside.cost_usd is None else beside.cost_usd,
        raw_response=said.raw_response if beside.raw_response is None else beside.raw_response,
    )


FORMAT = ReplyFormat(name="envelope", detect=_detect, read=_read)
