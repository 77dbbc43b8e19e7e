"""Arguments and results of tools as instrumentations wrap them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from agentv.traces.spans.messages import REDACTED, clean_value
from agentv.traces.spans.values import parse_arguments_text, parse_value, read_repr, text_of

if TYPE_CHECKING:
    from agentv.model.conversation import Status
    from agentv.traces.spans.facts import Facts

_STATUSES: dict[str, Status] = {"success": "ok", "ok": "ok", "error": "error", "failure": "error"}

_WRAPPER = frozenset(("args", "kwargs", "sanitize_inputs_outputs"))
"""Keys around the arguments of a Python function, as smolagents and LlamaIndex are recorded."""


def set_input(facts: Facts, value: Any) -> None:
    """Set the arguments of a call from an attribute; Traceloop's callback adds its own fields around them."""
    if value in (None, "", REDACTED):
        return
    parsed = parse_arguments_text(value)
    if isinstance(parsed, dict) and "input_str" in parsed and ("inputs" in parsed or "kwargs" in parsed):
        kwargs = parsed.get("kwargs")
        if isinstance(kwargs, dict):
            facts.call_id = facts.call_id or text_of(kwargs.get("tool_call_id"))
        inputs = parsed.get("inputs")
        parsed = inputs if inputs is not None else parse_arguments_text(parsed["input_str"])
    if isinstance(parsed, dict) and "kwargs" in parsed and parsed.keys() <= _WRAPPER and not parsed.get("args"):
        parsed = parsed["kwargs"]
    if isinstance(parsed, dict) and parsed.get("type") == "tool_call" and "args" in parsed and "name" in parsed:
        facts.call_id = facts.call_id or text_of(parsed.get("id"))
        parsed = parsed["args"]
    facts.input = clean_value(parsed)


def set_output(facts: Facts, value: Any) -> None:
    """Set the result of a call from an attribute; a LangChain message in it tells the id and the status."""
    if value is None or value == REDACTED:
        return
    parsed = parse_value(value)
    if isinstance(parsed, dict) and "output" in parsed and parsed.keys() <= {"output", "kwargs"}:
        parsed = parse_value(parsed["output"])
    if isinstance(parsed, dict) and parsed.keys() >= {"raw_output", "raw_input", "is_error"}:  # of LlamaIndex
        facts.status = "error" if parsed["is_error"] is True else None
        facts.output = clean_value(parsed["raw_output"])
        return
    if isinstance(parsed, str) and parsed.startswith("content=") and "tool_call_id=" in parsed:
        parsed = read_repr(parsed) or parsed  # a message of LangChain in its Python form
    message = _tool_message(parsed)
    if message is None:
        facts.output = clean_value(parsed)
        return
    facts.call_id = facts.call_id or text_of(message.get("tool_call_id"))
    facts.status = _STATUSES.get(str(message.get("status")))
    facts.output = clean_value(parse_value(message["content"]))


def _tool_message(value: Any) -> Any:
    """Return the fields of a LangChain tool message in any serialization; `None` for other values."""
    if not isinstance(value, dict):
        return None
    for key in ("kwargs", "data"):
        inner = value.get(key)
        if isinstance(inner, dict) and "tool_call_id" in inner and "content" in inner:
            return inner
    return value if "tool_call_id" in value and "content" in value else None


def is_schema(value: Any) -> bool:
    """Return whether arguments are a JSON Schema, as `tool.parameters` is in some emitters."""
    parsed = parse_value(value)
    return isinstance(parsed, dict) and parsed.get("type") == "object" and isinstance(parsed.get("properties"), dict)


__all__ = ["UNSET", "is_schema", "set_input", "set_output"]
