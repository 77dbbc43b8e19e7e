"""Telemetry under names of single vendors: the Vercel AI SDK, Mastra, Langfuse and Logfire (OpenAI Agents SDK)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.formats.fields import objects_in
from agentv.traces.conventions.genai import read_token_counts
from agentv.traces.conventions.openinference import read_openinference
from agentv.traces.conventions.tool_results import set_input, set_output
from agentv.traces.spans.facts import Facts
from agentv.traces.spans.messages import MessageReader, Said, translate
from agentv.traces.spans.values import first_of, parse_value, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.model.session import OtelSpan

_MODELS = ("doGenerate", "doStream")
_COUNTS = {
    "input_tokens": ("ai.usage.inputTokens", "ai.usage.promptTokens", "gen_ai.usage.input_tokens"),
    "output_tokens": ("ai.usage.outputTokens", "ai.usage.completionTokens", "gen_ai.usage.output_tokens"),
    "total_tokens": ("ai.usage.totalTokens", "ai.usage.tokens"),
    "cache_read_tokens": ("ai.usage.cachedInputTokens",),
    "cache_write_tokens": (),
    "reasoning_tokens": ("ai.usage.reasoningTokens",),
}


def read_ai_sdk(span: OtelSpan, reader: MessageReader) -> Facts | None:
    """Return the facts of a span of the AI SDK; `None` if it is none."""
    attributes = span.attributes
    operation = text_of(first_of(attributes, "ai.operationId", "operation.name")) or ""
    operation = operation.partition(" ")[0]
    if not operation.startswith("ai.") and not span.name.startswith("ai."):
        return None
    operation = operation or span.name
    if operation == "ai.toolCall" or "ai.toolCall.name" in attributes:
        facts = Facts(kind="tool", tool=text_of(attributes.get("ai.toolCall.name")) or span.name, unread=[])
        facts.call_id = text_of(attributes.get("ai.toolCall.id"))
        set_input(facts, first_of(attributes, "ai.toolCall.args", "ai.toolCall.input"))
        set_output(facts, first_of(attributes, "ai.toolCall.result", "ai.toolCall.output"))
        return facts
    if operation.endswith(_MODELS):
        return _model(attributes, reader)
    if "embed" in operation:
        return Facts(unread=[])
    prompt = parse_value(attributes.get("ai.prompt"))
    return Facts(
        kind="agent",
        text=text_of(attributes.get("ai.response.text")),
        prompt=_prompt(prompt),
        agent=text_of(attributes.get("ai.telemetry.functionId")),
        unread=[],
    )


def _model(attributes: Mapping[str, Any], reader: MessageReader) -> Facts:
    finish = text_of(attributes.get("ai.response.finishReason"))
    facts = Facts(
        kind="model",
        usage=read_token_counts(attributes, _COUNTS),
        model=text_of(first_of(attributes, "ai.response.model", "ai.model.id")),
        response_id=text_of(attributes.get("ai.response.id")),
        finish=(finish,) if finish else (),
        unread=[],
    )
    facts.prompt = reader.read(attributes.get("ai.prompt.messages"), "ai.prompt.messages", "user")
    calls = parse_value(attributes.get("ai.response.toolCalls"))
    text = first_of(attributes, "ai.response.text", "ai.response.object")
    if isinstance(calls, str):
        reader.problems.append("`ai.response.toolCalls` is no valid JSON: it was cut off")
    if isinstance(calls, list) or isinstance(text, str):
        message = {"role": "assistant", "content": text if isinstance(text, str) else None}
        listed = calls if isinstance(calls, list) else []
        facts.replies = translate({**message, "tool_calls": [_call(each) for each in listed]}, "assistant")
    return facts


def _call(raw: Any) -> Any:
    if not isinstance(raw, dict):
        return raw
    function: dict[str, Any] = {"name": raw.get("toolName")}
    arguments = next((raw[key] for key in ("input", "args") if key in raw), None)
    if arguments is not None:
        function["arguments"] = arguments
    return {"id": raw.get("toolCallId"), "function": function}


MASTRA = "mastra.model_step.output"


def read_mastra(span: OtelSpan, reader: MessageReader) -> Facts | None:
    """Return the facts of a step of an agent of Mastra, whose model's own span leaves out the calls."""
    del reader
    told = parse_value(span.attributes.get(MASTRA))
    if not isinstance(told, dict):
        return None
    made = [_call(each) for each in told.get("toolCalls") or ()] if isinstance(told.get("toolCalls"), list) else []
    asked = parse_value(span.attributes.get("mastra.model_step.input"))
    prompt = [said for item in objects_in(asked) if item.get("role") in ("system", "user") for said in translate(item)]
    message = {"role": "assistant", "content": text_of(told.get("text")), "tool_calls": made}
    return Facts(kind="model", prompt=prompt or None, replies=translate(message, "assistant"), unread=[])


def _prompt(prompt: Any) -> list[Said] | None:
    if not isinstance(prompt, dict):
        return None
    if isinstance(prompt.get("messages"), list):
        return [said for item in prompt["messages"] for said in translate(item, "user")]
    text = prompt.get("prompt")
    return [Said("user", text)] if isinstance(text, str) else None


LANGFUSE = "langfuse.observation.type"
LOGFIRE_SCOPE = "logfire.openai_agents"
_LANGFUSE_KINDS = {"generation": "LLM", "tool": "TOOL", "agent": "AGENT"}
_LANGFUSE_COUNTS = {
    "llm.token_count.prompt": ("prompt_tokens", "input_tokens"),
    "llm.token_count.completion": ("completion_tokens", "output_tokens"),
    "llm.token_count.total": ("total_tokens", "total"),
    "llm.token_count.prompt_details.cache_read": ("input_cached_tokens", "input_cache_read", "cache_read_input_tokens"),
    "llm.token_count.prompt_details.cache_write": ("input_cache_creation", "cache_creation_input_tokens"),
    "llm.token_count.completion_details.reasoning": ("output_reasoning_tokens", "output_reasoning"),
}
_LOGFIRE_TOOLS = ("Function: ", "Handoff: ")


def read_langfuse(span: OtelSpan, reader: MessageReader) -> Facts | None:
    """Return the facts of an observation of Langfuse, whose attributes say the same as those of OpenInference."""
    attributes = span.attributes
    kind = text_of(attributes.get(LANGFUSE))
    if kind is None:
        return None
    asked = _without_definitions(parse_value(attributes.get("langfuse.observation.input")))
    told: dict[str, Any] = {
        "openinference.span.kind": _LANGFUSE_KINDS.get(kind.lower(), "CHAIN"),
        "tool.name": span.name,
        "agent.name": span.name if kind.lower() == "agent" else None,
        "input.value": asked,
        "output.value": attributes.get("langfuse.observation.output"),
        "llm.model_name": attributes.get("langfuse.observation.model.name"),
        "tool_call.id": parse_value(attributes.get("langfuse.observation.metadata.tool_call_id")),
        **_langfuse_counts(attributes.get("langfuse.observation.usage_details")),
    }
    span.is_error = span.is_error or attributes.get("langfuse.observation.level") == "ERROR"
    span.error = span.error or text_of(attributes.get("langfuse.observation.status_message")) or ""
    return read_openinference(replace(span, attributes=told), reader)


def _langfuse_counts(raw: Any) -> dict[str, Any]:
    """Return token counts; `input` and `output` leave out those that are counted under a name of their own."""
    counts = parse_value(raw)
    if not isinstance(counts, dict):
        return {}
    found = {name: first_of(counts, *keys) for name, keys in _LANGFUSE_COUNTS.items()}
    for name, start in (("llm.token_count.prompt", "input"), ("llm.token_count.completion", "output")):
        parts = [value for key, value in counts.items() if key == start or key.startswith(f"{start}_")]
        if start in counts and all(isinstance(each, int) for each in parts):
            found[name] = sum(parts)
    for details, key, name in (
        ("prompt_tokens_details", "cached_tokens", "llm.token_count.prompt_details.cache_read"),
        ("completion_tokens_details", "reasoning_tokens", "llm.token_count.completion_details.reasoning"),
    ):
        inner = counts.get(details)
        found[name] = inner.get(key) if isinstance(inner, dict) and found[name] is None else found[name]
    return found


def _without_definitions(asked: Any) -> Any:
    """Return the prompt of a model without definitions of tools, which stand among its messages."""
    if not isinstance(asked, list):
        return asked
    return [item for item in asked if not (isinstance(item, dict) and _is_definition(item.get("content")))]


def _is_definition(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") == "function" and isinstance(value.get("function"), dict)


def read_logfire(span: OtelSpan, reader: MessageReader) -> Facts | None:
    """Return the facts of a span that Logfire makes of one of the OpenAI Agents SDK."""
    if span.scope != LOGFIRE_SCOPE:
        return None
    attributes = span.attributes
    told: dict[str, Any] = {"openinference.span.kind": "CHAIN"}
    if "gen_ai.request.model" in attributes:
        told = _logfire_model(attributes)
    elif span.name.startswith(_LOGFIRE_TOOLS):
        told = {
            "openinference.span.kind": "TOOL",
            "tool.name": attributes.get("name"),
            "input.value": attributes.get("input"),
            "output.value": attributes.get("output"),
        }
        error = parse_value(attributes.get("error"))
        span.error = span.error or (text_of(error.get("message")) if isinstance(error, dict) else None) or ""
    elif span.name.startswith("Agent run"):
        told = {"openinference.span.kind": "AGENT", "agent.name": attributes.get("name")}
    return read_openinference(replace(span, attributes=told), reader)


def _logfire_model(attributes: Mapping[str, Any]) -> dict[str, Any]:
    usage = parse_value(attributes.get("usage"))
    counts = usage if isinstance(usage, dict) else {}
    inner, outer = (
        each if isinstance(each, dict) else {}
        for each in (counts.get("input_tokens_details"), counts.get("output_tokens_details"))
    )
    is_known = bool(counts.get("input_tokens"))  # a stream without counts has zeros
    return {
        "openinference.span.kind": "LLM",
        "llm.model_name": first_of(attributes, "gen_ai.response.model", "gen_ai.request.model"),
        "input.value": first_of(attributes, "raw_input", "input"),
        "output.value": first_of(attributes, "response", "output"),
        "llm.token_count.prompt": counts.get("input_tokens") if is_known else None,
        "llm.token_count.completion": counts.get("output_tokens") if is_known else None,
        "llm.token_count.prompt_details.cache_read": inner.get("cached_tokens") if is_known else None,
        "llm.token_count.completion_details.reasoning": outer.get("reasoning_tokens") if is_known else None,
    }
