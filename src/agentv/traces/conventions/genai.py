"""The GenAI conventions of OpenTelemetry in three generations, with the attributes that ADK and pydantic-ai add.

Up to 1.36, messages were events; from 1.37 on they are attributes, or the event of one inference; the new repository
renamed further attributes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.fields import is_count, number_or_none, objects_in
from agentv.formats.usage import finish_usage
from agentv.model.session import SpanEvent
from agentv.traces.conventions.tool_results import set_input, set_output
from agentv.traces.spans.facts import Facts, Kind
from agentv.traces.spans.messages import MessageReader, Said, translate
from agentv.traces.spans.values import first_of, parse_arguments_text, parse_value, read_repr, text_of
from agentv.traces.spans.writer import IS_TEXT, STATUS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.model.conversation import TokensUsage
    from agentv.model.session import OtelSpan

_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("chat", "generate_content", "text_completion", "completion", "generate", "responses"), "model"),
    "execute_tool": "tool",
    **dict.fromkeys(("invoke_agent", "invoke_workflow"), "agent"),
}  # fmt: skip
_NAME_PREFIXES = (("execute_tool ", "tool"), ("chat ", "model"), ("invoke_agent ", "agent"))
ADK_SCOPE = "gcp.vertex.agent"
"""Scope of the spans of ADK."""
_ADK_PREFIXES: tuple[tuple[str, Kind], ...] = (
    *(("execute_tool ", "tool"), ("agent_run [", "agent"), ("invoke_agent ", "agent"), ("invocation", "agent")),
)
"""Beginnings of the names of ADK's spans: in early versions, and of failed tools, they have no attributes."""
_AGENT_RUN = re.compile(r"agent_run \[(.+)\]")
_TOOL_PREFIXES = ("execute_tool ", "tools/call ")
_TOOL_MARKS = frozenset(("gen_ai.tool.name", "gen_ai.tool.call.id"))
DETAILS = "gen_ai.client.inference.operation.details"
_EVENT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
}
_ARGUMENTS = (
    *("gen_ai.tool.call.arguments", "tool_arguments", "gcp.vertex.agent.tool_call_args", "gen_ai.tool.arguments"),
    *("gen_ai.tool.input", "gen_ai.tool.message", "mcp.request.argument"),
)
_RESULTS = (
    *("gen_ai.tool.call.result", "tool_response", "gcp.vertex.agent.tool_response", "gen_ai.tool.result"),
    *("gen_ai.tool.output",),
)
_EMPTY = "{}"
"""Arguments that ADK writes when content is not captured; they may also be real."""
_NOT_SPECIFIED = "<not specified>"
"""Text that ADK writes for ids and results that it does not have."""
_TYPES = {"thinking": "reasoning"}
_CALL_REPR = "ResponseFunctionToolCall("
_ALL_MESSAGES = frozenset(("pydantic_ai.all_messages", "all_messages_events"))
"""Attributes of an agent's span that hold the whole conversation."""
_ANSWERS = ("final_result", "gen_ai.agent.output", "agent.final_output")


def read_genai(span: OtelSpan, reader: MessageReader) -> Facts | None:
    """Return the facts of a span that follows the GenAI conventions; `None` if it does not."""
    attributes = span.attributes
    operation = attributes.get("gen_ai.operation.name")
    kind = _KINDS.get(operation.lower()) if isinstance(operation, str) else _kind_without_operation(span)
    if kind is None and not _TOOL_MARKS.isdisjoint(attributes):
        kind = "tool"  # of an operation that is not known
    if kind is None and "gen_ai.output.messages" in attributes:
        kind = "model"  # of another operation, such as a plan
    if kind is None:
        return None
    facts = Facts(
        kind=kind,
        agent=text_of(first_of(attributes, "gen_ai.agent.name", "agent_name")) or _agent_in_name(span),
        model=text_of(first_of(attributes, "gen_ai.response.model", "gen_ai.request.model")),
        response_id=text_of(attributes.get("gen_ai.response.id")),
        unread=[],
    )
    if kind == "tool":
        _read_tool(facts, span)
    else:
        _read_messages(facts, span, reader)
    return facts


def _kind_without_operation(span: OtelSpan) -> Kind | None:
    attributes = span.attributes
    if not _TOOL_MARKS.isdisjoint(attributes):
        return "tool"
    if "agent_name" in attributes and "model_name" in attributes:  # of pydantic-ai before it had an operation
        return "agent"
    is_model = any(each in attributes for each in ("gen_ai.request.model", "gen_ai.response.model", "gen_ai.system"))
    has_events = any(event.name in _EVENT_ROLES or event.name == DETAILS for event in span.events)
    if "llm.request.type" in attributes or (is_model and "traceloop.span.kind" not in attributes) or has_events:
        return "model"
    if span.scope == ADK_SCOPE:
        return next((kind for prefix, kind in _ADK_PREFIXES if span.name.startswith(prefix)), None)
    for prefix, kind in _NAME_PREFIXES:
        if span.name.startswith(prefix) and not attributes.keys().isdisjoint(("gen_ai.agent.name", "gen_ai.tool.type")):
            return kind  # type: ignore[return-value]  # of the table
    return "agent" if "gen_ai.agent.name" in attributes and "openinference.span.kind" not in attributes else None


def _agent_in_name(span: OtelSpan) -> str | None:
    """Return the agent that ADK named in the span before it had an attribute for it."""
    match = _AGENT_RUN.fullmatch(span.name) if span.scope == ADK_SCOPE else None
    return match[1] if match else None


def _read_tool(facts: Facts, span: OtelSpan) -> None:
    attributes = span.attributes
    name = text_of(attributes.get("gen_ai.tool.name"))
    facts.tool = name or _tool_in_name(span)
    if name is None and attributes.get("gen_ai.tool.name"):
        facts.unread.append("its `gen_ai.tool.name` is no text")
    facts.call_id = text_of(attributes.get("gen_ai.tool.call.id"))
    facts.call_id = None if facts.call_id == _NOT_SPECIFIED else facts.call_id
    arguments, result = first_of(attributes, *_ARGUMENTS), first_of(attributes, *_RESULTS)
    if arguments == _EMPTY and result in (_EMPTY, None) and "gcp.vertex.agent.tool_call_args" in attributes:
        arguments = result = None
    set_input(facts, arguments)
    set_output(facts, None if result == _NOT_SPECIFIED else result)
    if attributes.get(IS_TEXT) is True and isinstance(result, str):
        facts.output = result
    if attributes.get(STATUS) in ("denied", "pending"):
        facts.status = attributes[STATUS]
    for event in span.events:
        _read_tool_event(facts, event)


def _tool_in_name(span: OtelSpan) -> str:
    """Return the tool that the name of a span tells; the name of another kind of span is none of a tool."""
    prefix = next((each for each in _TOOL_PREFIXES if span.name.startswith(each)), "")
    if prefix or span.name == "execute_tool":
        return span.name[len(prefix) :] if prefix else ""
    return span.name if "gen_ai.operation.name" in span.attributes else ""


def _read_tool_event(facts: Facts, event: SpanEvent) -> None:
    """Read the arguments and the result that Strands writes as events."""
    body = _event_fields(event)
    if event.name == "gen_ai.tool.message" and "content" in body:
        set_input(facts, body["content"])
        facts.call_id = facts.call_id or text_of(body.get("id"))
    elif event.name == "gen_ai.choice" and ("message" in body or "content" in body):
        set_output(facts, body.get("message", body.get("content")))
    elif event.name == DETAILS:
        for said in translate({"parts": _parts(event.attributes.get("gen_ai.output.messages"))}):
            for result in said.results:
                set_output(facts, result.output)


def _parts(messages: Any) -> list[Any]:
    parsed = parse_value(messages)
    items = parsed if isinstance(parsed, list) else []
    return [part for item in items if isinstance(item, dict) for part in item.get("parts") or ()]


def _read_messages(facts: Facts, span: OtelSpan, reader: MessageReader) -> None:
    attributes = span.attributes
    facts.usage = _usage(span)
    facts.cost_usd = number_or_none(first_of(attributes, "gen_ai.usage.cost", "operation.cost"))
    facts.finish = _finish_reasons(attributes)
    _read_attribute_messages(facts, attributes, reader)
    for event in sorted(span.events, key=lambda each: each.time):
        if event.name == DETAILS:
            _read_attribute_messages(facts, event.attributes, reader)
    if facts.prompt is None and facts.replies is None:
        _read_event_messages(facts, [*span.events, *_written_events(attributes, "events", reader)])
    if facts.prompt is None and facts.replies is None:
        _read_adk(facts, attributes, reader)
    if facts.kind == "model":
        _read_calls_beside(facts, attributes)
    if facts.kind == "agent":
        facts.text = next((text for key in _ANSWERS if (text := text_of(attributes.get(key))) is not None), None)
        _read_all_messages(facts, attributes, reader)
    for name in ("input", "output"):
        if f"gen_ai.{name}.messages_ref" in attributes:
            facts.unread.append(f"its {name} messages are stored elsewhere (`gen_ai.{name}.messages_ref`)")


def _read_attribute_messages(facts: Facts, attributes: Mapping[str, Any], reader: MessageReader) -> None:
    prompt = reader.read(attributes.get("gen_ai.input.messages"), "gen_ai.input.messages", "user")
    if prompt is None and "gen_ai.prompt" in attributes:
        prompt = reader.read(attributes["gen_ai.prompt"], "gen_ai.prompt", "user")
    replies = reader.read(attributes.get("gen_ai.output.messages"), "gen_ai.output.messages", "assistant")
    if replies is None and "gen_ai.completion" in attributes:
        replies = reader.read(attributes["gen_ai.completion"], "gen_ai.completion", "assistant")
    system = attributes.get("gen_ai.system_instructions")
    texts = _system_text(system) if system else ""
    if texts and not any(said.role == "system" and said.text == texts for said in prompt or ()):
        prompt = [Said("system", texts), *(prompt or ())]
    facts.prompt = facts.prompt if prompt is None else prompt
    facts.replies = facts.replies if replies is None else [each for said in replies for each in _from_repr(said)]


def _from_repr(said: Said) -> list[Said]:
    """Return the messages that a text is, if an instrumentation wrote the Python form of a reply in place of it."""
    text = said.content
    if not isinstance(text, str) or said.calls:
        return [said]
    if text.startswith("{'") and "'tool_calls'" in text:
        message = parse_arguments_text(text)
        return translate(message, "assistant") if isinstance(message, dict) and "role" in message else [said]
    if not text.startswith(_CALL_REPR):
        return [said]
    fields = [read_repr(line) for line in text.split("\n")]
    calls = [
        {"id": each.get("call_id"), "function": {key: each[key] for key in ("name", "arguments") if key in each}}
        for each in fields
    ]
    return translate({"role": "assistant", "content": None, "tool_calls": calls}, "assistant")


def _system_text(value: Any) -> str:
    parsed = parse_value(value)
    if isinstance(parsed, str):
        return parsed
    return translate({"role": "system", "parts": parsed})[0].text if isinstance(parsed, list) else ""


def _read_calls_beside(facts: Facts, attributes: Mapping[str, Any]) -> None:
    """Read the calls of a reply that OpenLIT lists in attributes of a tool, on the span of the model."""
    names, ids = text_of(attributes.get("gen_ai.tool.name")), text_of(attributes.get("gen_ai.tool.call.id"))
    if names is None or ids is None or any(said.calls for said in facts.replies or ()):
        return
    tools, call_ids = names.split(", "), ids.split(", ")
    if len(tools) != len(call_ids):
        facts.unread.append("its `gen_ai.tool.name` and `gen_ai.tool.call.id` do not have the same number of items")
        return
    written = first_of(attributes, "gen_ai.tool.args", "gen_ai.tool.call.arguments")
    values = parse_value(f"[{written}]")
    is_complete = isinstance(values, list) and len(values) == len(tools)
    calls = [
        {"id": call_id, "function": {"name": tool, **({"arguments": values[at]} if is_complete else {})}}
        for at, (tool, call_id) in enumerate(zip(tools, call_ids, strict=True))
    ]
    said = translate({"role": "assistant", "content": None, "tool_calls": calls}, "assistant")
    facts.replies = [*(each for each in facts.replies or () if each.content), *said]


def _read_all_messages(facts: Facts, attributes: Mapping[str, Any], reader: MessageReader) -> None:
    """Read the conversation that pydantic-ai writes on the span of an agent, if its models have no spans."""
    if facts.replies is None and not _ALL_MESSAGES.isdisjoint(attributes):
        said = reader.read(attributes.get("pydantic_ai.all_messages"), "pydantic_ai.all_messages", "user")
        if said is None:
            said = _all_written(_written_events(attributes, "all_messages_events", reader))
        last_user = max((at for at, each in enumerate(said) if each.role == "user" and not each.results), default=-1)
        facts.prompt = facts.prompt or said[: last_user + 1]
        facts.replies = said[last_user + 1 :]


def _written_events(attributes: Mapping[str, Any], name: str, reader: MessageReader) -> list[SpanEvent]:
    """Return the events of the first generation that pydantic-ai writes as one attribute, unless they are records."""
    written = attributes.get(name)
    value = parse_value(written)
    if isinstance(value, str) and value[:1] == "[":
        reader.problems.append(f"`{name}` is no valid JSON: it was cut off")
    return [
        SpanEvent(name=kind, body=_with_types(item))
        for item in (value if isinstance(value, list) else ())
        if isinstance(item, dict) and isinstance(kind := item.get("event.name"), str)
    ]


def _with_types(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message whose blocks have types, which pydantic-ai calls kinds there."""
    message, content = item.get("message"), item.get("content")
    changed = dict(item)
    if isinstance(message, dict):
        changed["message"] = _with_types(message)
    if isinstance(content, list):
        changed["content"] = [
            {"type": _TYPES.get(kind, kind), **{key: value for key, value in block.items() if key != "kind"}}
            if isinstance(block, dict) and "type" not in block and isinstance(kind := block.get("kind"), str)
            else block
            for block in content
        ]
    return changed


def _all_written(events: list[SpanEvent]) -> list[Said]:
    """Return the messages of events, those of the agent too, which are events of a history."""
    facts = Facts(kind="agent")
    _read_event_messages(facts, events)
    return [*(facts.prompt or ()), *(facts.replies or ())]


def _event_fields(event: SpanEvent) -> dict[str, Any]:
    """Return the fields of a message event: of the log record's body, or of the span event's attributes."""
    body = parse_value(event.body)
    fields = dict(body) if isinstance(body, dict) else {}
    if isinstance(body, str) and body:
        fields["content"] = body
    fields |= {key: value for key, value in event.attributes.items() if key not in ("event.name", "gen_ai.system")}
    wrapped = parse_value(fields.pop("gen_ai.event.content", None))
    return {**fields, **wrapped} if isinstance(wrapped, dict) else fields


def _read_event_messages(facts: Facts, events: list[SpanEvent]) -> None:
    """Read the messages of the first generation, one event each."""
    prompt: list[Said] = []
    replies: list[Said] = []
    is_told = False
    for event in sorted(events, key=lambda each: each.time):
        role = _EVENT_ROLES.get(event.name)
        if role is None:
            continue
        fields = _event_fields(event)
        if role == "user" and "content" not in fields and prompt and prompt[-1].role == "tool":
            continue  # the results of tools once more, as Bedrock sends them in the name of the user
        is_told = is_told or any(key in fields for key in ("content", "message", "tool_calls"))
        if event.name == "gen_ai.choice":
            replies += _choice(fields)
        else:
            prompt += _event_message(fields, role)
    if is_told:
        facts.prompt = prompt or None
        facts.replies = replies or None
    elif replies or prompt:
        facts.finish = facts.finish or tuple([each.finish for each in replies if each.finish])


def _choice(fields: dict[str, Any]) -> list[Said]:
    """Read a choice: its message is an object, its blocks, or JSON text; `tool_calls` may stand beside it."""
    message = parse_value(fields.get("message", fields.get("content")))
    if isinstance(message, list) or not isinstance(message, dict):
        message = {"role": "assistant", "content": message}
    calls = parse_value(fields.get("tool_calls"))
    merged: dict[str, Any] = {"role": "assistant", **message}
    if calls and "tool_calls" not in merged:
        merged["tool_calls"] = calls
    said = translate(merged, "assistant")
    finish = text_of(fields.get("finish_reason"))
    is_told = isinstance(message, dict) and message.get("content") is not None
    for each in said:
        each.finish = each.finish or finish
        # Without content, a choice tells which tools are called, and neither their arguments nor a text.
        each.is_captured = is_told or (bool(each.calls) and all(call.input is not UNSET for call in each.calls))
        each.role = "assistant" if each.role not in ("assistant", "tool") else each.role
    return said


def _event_message(fields: dict[str, Any], role: str) -> list[Said]:
    content = parse_value(fields.get("content"))
    message = {"role": fields.get("role") or role, "content": content if content is not None else fields.get("content")}
    calls = parse_value(fields.get("tool_calls"))
    if calls and not _are_blocks(calls, content):  # Bedrock writes its blocks, and their calls beside them
        message["tool_calls"] = calls
    if role == "tool":
        message |= {"role": "tool", "tool_call_id": fields.get("id") or fields.get("tool_call_id")}
        if "content" not in fields:
            del message["content"]
            return translate(message, role)
        if not isinstance(message["content"], (str, list)):
            message["content"] = fields.get("content")
    return translate(message, role)


def _are_blocks(calls: Any, content: Any) -> bool:
    """Return whether all calls stand among the blocks of a content, with arguments that they may lack themselves."""
    blocks = [block["toolUse"] for block in objects_in(content) if isinstance(block.get("toolUse"), dict)]
    ids = {text_of(block.get("toolUseId")) for block in blocks}
    return bool(ids) and all(text_of(call.get("id")) in ids for call in objects_in(calls))


def _read_adk(facts: Facts, attributes: Mapping[str, Any], reader: MessageReader) -> None:
    """Read the request and the response that ADK writes on the span `call_llm`."""
    request = parse_value(attributes.get("gcp.vertex.agent.llm_request"))
    response = parse_value(attributes.get("gcp.vertex.agent.llm_response"))
    if isinstance(request, dict) and isinstance(request.get("contents"), list):
        facts.prompt = [said for item in request["contents"] for said in translate(item, "user")]
        config = request.get("config")
        system = config.get("system_instruction") if isinstance(config, dict) else None
        if isinstance(system, str) and system:
            facts.prompt.insert(0, Said("system", system))
    elif isinstance(request, str) and request:
        reader.problems.append("`gcp.vertex.agent.llm_request` is no valid JSON: it was cut off")
    if isinstance(response, dict) and isinstance(response.get("content"), dict):
        facts.replies = translate({"role": "model", **response["content"]}, "assistant")
    elif isinstance(response, str) and response:
        reader.problems.append("`gcp.vertex.agent.llm_response` is no valid JSON: it was cut off")


def _finish_reasons(attributes: Mapping[str, Any]) -> tuple[str, ...]:
    value = parse_value(first_of(attributes, "gen_ai.response.finish_reasons", "gen_ai.response.finish_reason"))
    items = value if isinstance(value, list) else [value]
    return tuple([item for item in items if isinstance(item, str)])


_COUNTS = {
    "input_tokens": ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens"),
    "output_tokens": ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens"),
    "total_tokens": ("gen_ai.usage.total_tokens", "llm.usage.total_tokens"),
    "cache_read_tokens": (
        *("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens"),
        "gen_ai.usage.details.cache_read_tokens",
    ),
    "cache_write_tokens": (
        *("gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens"),
        *("gen_ai.usage.cache_creation_input_tokens", "gen_ai.usage.details.cache_write_tokens"),
    ),
    "reasoning_tokens": (
        *("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.details.reasoning_tokens"),
        *("gen_ai.usage.reasoning_tokens", "gen_ai.usage.experimental.reasoning_tokens"),
    ),
}


_WITHOUT_CACHED = frozenset((
    "opentelemetry.instrumentation.botocore.bedrock-runtime",
    "opentelemetry.instrumentation.bedrock",
))  # fmt: skip
"""Instrumentations that write the input tokens of Bedrock, which leave out those of the cache."""
_WITHOUT_THOUGHTS = frozenset((
    "opentelemetry.instrumentation.google_generativeai",
    "opentelemetry.instrumentation.vertexai",
))  # fmt: skip
"""Instrumentations that write the output tokens of Gemini, which leave out those of its thoughts, unlike the total."""


def _usage(span: OtelSpan) -> TokensUsage | None:
    """Return the token counts of a span, in which the input has the cached tokens and the output those of reasoning."""
    usage = read_token_counts(span.attributes)
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return usage
    given, made, total = usage.input_tokens, usage.output_tokens, usage.total_tokens
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    if cached > given or (cached and span.scope in _WITHOUT_CACHED):
        same = total == given + made
        return replace(usage, input_tokens=given + cached, total_tokens=total + cached if total and same else total)
    if span.scope in _WITHOUT_THOUGHTS and total is not None and total > given + made:
        thoughts = total - given - made
        known = usage.reasoning_tokens or thoughts
        return replace(usage, output_tokens=made + thoughts, reasoning_tokens=known, metadata=None)
    return usage


def read_token_counts(
    attributes: Mapping[str, Any], names: Mapping[str, tuple[str, ...]] = _COUNTS
) -> TokensUsage | None:
    """Return the token counts of a span; `None` if it has none."""
    counts: dict[str, int | None] = {}
    for field, keys in names.items():
        counts[field] = None
        for key in keys:
            value = attributes.get(key)
            if value is not None and value != "":
                counts[field] = value if type(value) is int and value >= 0 else read_count(value)
                break
    if counts["input_tokens"] is None and counts["output_tokens"] is None and counts["total_tokens"] is None:
        aggregated = "gen_ai.aggregated_usage.input_tokens"
        if aggregated not in attributes:
            return None
        counts["input_tokens"] = read_count(attributes[aggregated])
        counts["output_tokens"] = read_count(attributes.get("gen_ai.aggregated_usage.output_tokens"))
    return finish_usage(counts)


def read_count(value: Any) -> int | None:
    """Return a count, which some exporters write as text; `None` for any other value."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and value.isdigit() and len(value) < 20:  # noqa: PLR2004 - a count
        value = int(value)
    return value if is_count(value) else None
