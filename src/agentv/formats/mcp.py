"""The result of a tool of an MCP server, when the agent is behind it: an answer that tells nothing about calls."""

from collections.abc import Mapping
from typing import Any

from agentv.formats.draft import join_texts, other_fields
from agentv.formats.fields import OBJECT
from agentv.formats.response import decode_fields
from agentv.jsonio import dump_json
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_KEYS = ("isError", "is_error", "structuredContent", "structured_content")


def _result_of(value: Any) -> _Object | None:
    """Return the result of a call, alone or in the JSON-RPC message that carries it."""
    if not isinstance(value, OBJECT):
        return None
    if isinstance(value.get("jsonrpc"), str):
        return _result_of(value.get("result"))
    blocks = value.get("content")
    if not isinstance(blocks, (list, tuple)) or not all(isinstance(each, OBJECT) for each in blocks):
        return None
    return value if any(key in value for key in _KEYS) and "role" not in value else None


def _detect(value: Any) -> bool:
    return _result_of(value) is not None


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    del reader
    result = _result_of(value) or {}
    text = join_texts(result.get("content"), "text")
    data = result.get("structuredContent", result.get("structured_content"))
    if text is None:
        text = "" if data is None else dump_json(data).decode()
    failed = any(result.get(key) is True for key in ("isError", "is_error"))
    fields = {"text": text, "metadata": other_fields(result, "content", *_KEYS) or None, "raw_response": data}
    return decode_fields({**fields, **({"error": text or "the tool failed"} if failed else {})})


FORMAT = ReplyFormat(name="mcp", detect=_detect, read=_read)
