"""OpenInference, of Arize Phoenix: flattened keys such as `llm.output_messages.0.message.role`, or nested objects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentv.formats.fields import number_or_none
from agentv.traces.conventions.genai import read_token_counts
from agentv.traces.conventions.tool_results import is_schema, set_input, set_output
from agentv.traces.spans.facts import Facts, Kind
from agentv.traces.spans.messages import REDACTED, MessageReader, Said, translate, written_role
from agentv.traces.spans.values import first_of, parse_value, text_of

if TYPE_CHECKING:
    from agentv.model.session import OtelSpan

_Object = Mapping[str, Any]
_KINDS: dict[str, Kind] = {"LLM": "model", "TOOL": "tool", "AGENT": "agent", "CHAIN": "other"}
_COUNTS = {
    "input_tokens": ("llm.token_count.prompt",),
    "output_tokens": ("llm.token_count.completion",),
    "total_tokens": ("llm.token_count.total",),
    "cache_read_tokens": ("llm.token_count.prompt_details.cache_read",),
    "cache_write_tokens": ("llm.token_count.prompt_details.cache_write",),
    "reasoning_tokens": ("llm.token_count.completion_details.reasoning",),
}
_HANDOFF = re.compile(r"handoff to (.+)\Z", re.IGNORECASE)
OPENINFERENCE_MARKS = frozenset(("openinference.span.kind", "openinference", "span_kind"))
_NESTED = ("openinference", "llm", "input", "output", "tool")
_MAX_INDEX = 100_000
_REQUESTS = ("prepare_chat_with_tools",)
"""Spans of LlamaIndex that are marked as those of a model, and only make its request."""


def read_openinference(span: OtelSpan, reader: MessageReader) -> Facts | None:
    """Return the facts of a span of OpenInference; `None` if it is none."""
    attributes: _Object = span.attributes
    if OPENINFERENCE_MARKS.isdisjoint(attributes):
        return None
    if any(isinstance(attributes.get(key), dict) for key in _NESTED):
        attributes = flatten(attributes)
    kind_name = attributes.get("openinference.span.kind") or attributes.get("span_kind")
    if not isinstance(kind_name, str):
        return None
    kind = _KINDS.get(kind_name.upper(), "other")
    if span.name.endswith(_REQUESTS):
        return Facts(unread=[])
    facts = Facts(
        kind=kind,
        agent=text_of(first_of(attributes, "agent.name", "graph.node.id")),
        model=text_of(attributes.get("llm.model_name")),
        unread=[],
    )
    if kind == "tool":
        _read_tool(facts, span, attributes)
    elif kind == "model":
        _read_model(facts, attributes, reader)
    elif kind == "agent":
        facts.text = _answer(attributes.get("output.value"))
    return facts


def flatten(attributes: _Object) -> dict[str, Any]:
    """Return attributes with dotted keys; Phoenix exports them as nested objects."""
    flat: dict[str, Any] = {}

    def add(prefix: str, value: Any, depth: int) -> None:
        if isinstance(value, dict) and depth < 12:  # noqa: PLR2004 - deeper than any key
            for key, inner in value.items():
                add(f"{prefix}.{key}" if prefix else str(key), inner, depth + 1)
        elif isinstance(value, list) and prefix.endswith(("messages", "tool_calls", "contents")):
            for index, inner in enumerate(value):
                add(f"{prefix}.{index}", inner, depth + 1)
        else:
            flat[prefix] = value

    add("", attributes, 0)
    return flat


def _read_tool(facts: Facts, span: OtelSpan, attributes: _Object) -> None:
    name = text_of(attributes.get("tool.name"))
    handoff = _HANDOFF.match(span.name) if name is None else None
    facts.call_id = text_of(first_of(attributes, "tool.id", "tool_call.id", "tool.call.id"))
    if handoff is not None:  # of the OpenAI Agents SDK: its input and output are the names of the agents
        facts.tool = f"transfer_to_{re.sub(r'[^a-zA-Z0-9]+', '_', handoff[1]).strip('_').lower()}"
        set_output(facts, attributes.get("output.value"))
        return
    facts.tool = name or span.name.removesuffix(".__call__")  # as DSPy names it
    arguments = attributes.get("input.value")
    parameters = attributes.get("tool.parameters")
    if arguments in (None, "", REDACTED) and not is_schema(parameters):
        arguments = parameters
    set_input(facts, first_of({"0": attributes.get("tool_call.function.arguments"), "1": arguments}, "0", "1"))
    set_output(facts, attributes.get("output.value"))


def _read_model(facts: Facts, attributes: _Object, reader: MessageReader) -> None:
    facts.usage = read_token_counts(attributes, _COUNTS)
    facts.cost_usd = number_or_none(attributes.get("llm.cost.total"))
    finish = text_of(attributes.get("llm.finish_reason"))
    facts.finish = (finish,) if finish else ()
    facts.prompt = _messages(attributes, "llm.input_messages")
    facts.replies = _messages(attributes, "llm.output_messages")
    if facts.replies is None:
        # A chat completion, a response or generations of LangChain, in the form of the library.
        output = attributes.get("output.value")
        if output not in (None, "", REDACTED):
            facts.replies = _reply(output, reader)
    if facts.prompt is None:
        prompts = attributes.get("llm.prompts") or attributes.get("input.value")
        facts.prompt = None if prompts in (None, "", REDACTED) else _prompt(prompts)
    generation = parse_value(attributes.get("output.value"))
    if isinstance(generation, dict):
        facts.response_id = text_of(generation.get("id"))


def _prompt(value: Any) -> list[Said] | None:
    parsed = parse_value(value)
    if isinstance(parsed, dict):
        parsed = parsed.get("messages", parsed.get("input", parsed.get("contents")))
    if isinstance(parsed, str):
        return [Said("user", parsed)]
    return [said for item in parsed for said in translate(item, "user")] if isinstance(parsed, list) else None


def _reply(value: Any, reader: MessageReader) -> list[Said] | None:
    parsed = parse_value(value)
    if isinstance(parsed, str):
        if parsed.lstrip()[:1] in ("{", "["):
            reader.problems.append("`output.value` is no valid JSON: it was cut off")
            return None
        return [Said("assistant", parsed)]
    if isinstance(parsed, dict):
        return translate(parsed, "assistant")
    return [said for item in parsed for said in translate(item, "assistant")] if isinstance(parsed, list) else None


def _messages(attributes: _Object, prefix: str) -> list[Said] | None:
    """Return the messages of flattened keys; `None` if there are none."""
    start = len(prefix) + 1
    found: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        if key.startswith(prefix) and key[start - 1 : start] == ".":
            index, _, rest = key[start:].partition(".")
            if index.isdigit() and int(index) < _MAX_INDEX and rest.startswith("message."):
                found.setdefault(int(index), {})[rest[8:]] = value
    if not found:
        return None
    return [_message(found[index]) for index in sorted(found)]


def _message(fields: dict[str, Any]) -> Said:
    calls: dict[int, dict[str, Any]] = {}
    contents: dict[int, dict[str, Any]] = {}
    message: dict[str, Any] = {"role": written_role(fields.get("role"), "user"), "content": fields.get("content")}
    for key, value in fields.items():
        for prefix, place in (("tool_calls.", calls), ("contents.", contents)):
            if key.startswith(prefix):
                index, _, rest = key[len(prefix) :].partition(".")
                if index.isdigit():
                    place.setdefault(int(index), {})[rest] = value
    if contents and message["content"] is None:
        message["content"] = _contents([contents[index] for index in sorted(contents)], calls)
    if calls:
        message["tool_calls"] = [_call(calls[index]) for index in sorted(calls)]
    if "function_call_name" in fields:
        arguments = fields.get("function_call_arguments_json")
        message["function_call"] = {"name": fields["function_call_name"], "arguments": arguments}
    if message["role"] in ("tool", "function"):
        message |= {"tool_call_id": fields.get("tool_call_id"), "name": fields.get("name")}
    return translate(message, "user")[0]


def _contents(parts: list[dict[str, Any]], calls: dict[int, dict[str, Any]]) -> Any:
    """Return the content blocks; one that holds a call is added to the calls, unless it repeats one of them."""
    blocks: list[Any] = []
    for part in parts:
        kind = part.get("message_content.type")
        if isinstance(part.get("message_content.text"), str):
            is_text = kind in (None, "text", "input_text", "output_text")
            blocks.append({"type": "text" if is_text else kind, "text": part["message_content.text"]})
        elif any(key.startswith("tool_call.") for key in part):
            if _identity(part) not in [_identity(call) for call in calls.values()]:
                calls[max(calls, default=-1) + 1] = part
        else:
            blocks.append(
                {"type": kind or "unknown", **{key: value for key, value in part.items() if "type" not in key}}
            )
    return blocks or None


def _identity(call: dict[str, Any]) -> tuple[Any, ...]:
    """Return the id of a call; without one, its tool and arguments."""
    call_id = text_of(call.get("tool_call.id"))
    names = ("tool_call.function.name", "tool_call.function.arguments")
    return (call_id,) if call_id else tuple([call.get(name) for name in names])


def _call(fields: dict[str, Any]) -> dict[str, Any]:
    function: dict[str, Any] = {"name": fields.get("tool_call.function.name")}
    if "tool_call.function.arguments" in fields:
        function["arguments"] = fields["tool_call.function.arguments"]
    return {"id": fields.get("tool_call.id"), "function": function}


def _answer(value: Any) -> str | None:
    """Return the answer of an agent: a text, or the last text of a model in a state with messages."""
    if value in (None, "", REDACTED):
        return None
    parsed = parse_value(value)
    if isinstance(parsed, str):
        return parsed
    messages = parsed.get("messages") if isinstance(parsed, dict) else None
    if not isinstance(messages, list):
        return None
    said = [each for item in messages[-3:] for each in translate(item, "assistant")]
    return next((each.text for each in reversed(said) if each.role == "assistant" and each.text), None)
