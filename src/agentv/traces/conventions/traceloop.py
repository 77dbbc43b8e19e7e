"""Traceloop (OpenLLMetry): indexed keys such as `gen_ai.prompt.0.role`, and the input and output of entities."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from agentv.traces.conventions.genai import read_token_counts
from agentv.traces.conventions.tool_results import set_input, set_output
from agentv.traces.spans.facts import Facts
from agentv.traces.spans.messages import MessageReader, Said, translate, written_role
from agentv.traces.spans.values import first_of, parse_value, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agentv.model.session import OtelSpan

_INDEXED = re.compile(r"(?:gen_ai|llm)\.(prompt|completion|prompts|completions)\.(\d{1,6})\.(.+)\Z")
INDEXED_PREFIXES = ("gen_ai.prompt", "gen_ai.completion", "llm.prompt", "llm.completion")
_CALL = re.compile(r"tool_calls\.(\d{1,6})\.(.+)\Z")


def read_traceloop(span: OtelSpan, reader: MessageReader) -> Facts | None:
    """Return the facts of a span of Traceloop; `None` if it is none."""
    del reader
    attributes = span.attributes
    kind = attributes.get("traceloop.span.kind")
    if kind == "tool":
        facts = Facts(kind="tool", tool=text_of(attributes.get("traceloop.entity.name")) or span.name, unread=[])
        set_input(facts, attributes.get("traceloop.entity.input"))
        set_output(facts, attributes.get("traceloop.entity.output"))
        return facts
    messages = _indexed_messages(attributes)
    if messages is not None or "llm.request.type" in attributes:
        return _model(attributes, messages or ([], []))
    if kind in ("agent", "workflow"):
        agent = text_of(attributes.get("traceloop.entity.name"))
        return Facts(kind="agent", agent=agent, text=_answer(attributes.get("traceloop.entity.output")), unread=[])
    return None if kind is None else Facts(unread=[])


def _model(attributes: Mapping[str, Any], messages: tuple[list[Said], list[Said]]) -> Facts:
    prompt, replies = messages
    return Facts(
        kind="model",
        prompt=prompt or None,
        replies=replies or None,
        usage=read_token_counts(attributes),
        model=text_of(first_of(attributes, "gen_ai.response.model", "gen_ai.request.model", "llm.request.model")),
        response_id=text_of(attributes.get("gen_ai.response.id")),
        finish=tuple([each.finish for each in replies if each.finish]),
        unread=[],
    )


def _indexed_messages(attributes: Mapping[str, Any]) -> tuple[list[Said], list[Said]] | None:
    found: dict[str, dict[int, dict[str, Any]]] = {"prompt": {}, "completion": {}}
    for key, value in attributes.items():
        if key.startswith(INDEXED_PREFIXES) and (place := _place_of(key)) is not None:
            found[place.name].setdefault(place.number, {})[place.field] = value
    if not found["prompt"] and not found["completion"]:
        return None
    prompt, replies = (
        [said for index in sorted(found[name]) for said in _message(found[name][index], role)]
        for name, role in (("prompt", "user"), ("completion", "assistant"))
    )
    return prompt, replies


class _Place(NamedTuple):
    """The place of a field in the messages of a span."""

    name: str
    number: int
    field: str


@lru_cache(maxsize=4096)
def _place_of(key: str) -> _Place | None:
    match = _INDEXED.match(key)
    return _Place(match[1].removesuffix("s"), int(match[2]), match[3]) if match is not None else None


def _message(fields: dict[str, Any], role: str) -> list[Said]:
    message: dict[str, Any] = {
        "role": written_role(fields.get("role"), role),
        "content": _content(fields.get("content")),
    }
    calls: dict[int, dict[str, Any]] = {}
    for key, value in fields.items():
        match = _CALL.match(key) if key.startswith("tool_calls.") else None
        if match is not None:
            calls.setdefault(int(match[1]), {})[match[2]] = value
    if calls:
        message["tool_calls"] = [
            {"id": call.get("id"), "function": {key: call[key] for key in ("name", "arguments") if key in call}}
            for _, call in sorted(calls.items())
        ]
    if "function_call.name" in fields:  # as LiteLLM writes each of the calls
        call = {"name": fields["function_call.name"], "arguments": fields.get("function_call.arguments")}
        message["tool_calls"] = [*message.get("tool_calls", ()), {"function": call}]
    if message["role"] == "tool":
        message["tool_call_id"] = fields.get("tool_call_id")
    said = translate(message, role)
    for each in said:
        each.finish = text_of(fields.get("finish_reason"))
    return said


def _content(value: Any) -> Any:
    """Return the content of a message; blocks are written as JSON text."""
    parsed = parse_value(value)
    return parsed if isinstance(parsed, list) and all(isinstance(each, dict) for each in parsed) else value


def _answer(value: Any) -> str | None:
    parsed = parse_value(value)
    for key in ("outputs", "output"):
        if isinstance(parsed, dict) and key in parsed:
            parsed = parse_value(parsed[key])
    if isinstance(parsed, dict) and isinstance(parsed.get("messages"), list) and parsed["messages"]:
        said = translate(parsed["messages"][-1], "assistant")
        return said[-1].text or None if said else None
    return parsed if isinstance(parsed, str) and parsed else None
