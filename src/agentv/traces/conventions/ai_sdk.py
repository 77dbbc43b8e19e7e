"""Telemetry of the Vercel AI SDK: `ai.generateText`, `ai.toolCall` and the spans between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.traces.conventions.genai import read_token_counts
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


def _prompt(prompt: Any) -> list[Said] | None:
    if not isinstance(prompt, dict):
        return None
    if isinstance(prompt.get("messages"), list):
        return [said for item in prompt["messages"] for said in translate(item, "user")]
    text = prompt.get("prompt")
    return [Said("user", text)] if isinstance(text, str) else None
