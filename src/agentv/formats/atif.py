"""Trajectories in the Agent Trajectory Interchange Format (ATIF)."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from agentv.formats.builder import MessageListBuilder, join_texts, other_fields
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import add_fields
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_ROLES = {"agent": "assistant", "user": "user", "system": "system"}
_STEP = ("step_id", "source", "message", "tool_calls", "observation", "metrics", "timestamp", "is_copied_context")


def _detect(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("steps"), (list, tuple)):
        return False
    version = value.get("schema_version")
    return isinstance(version, str) and version.upper().startswith("ATIF")


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    builder = MessageListBuilder()
    for step in value["steps"]:
        if not isinstance(step, OBJECT) or not isinstance(step.get("source"), str):
            builder.add_unknown(step)
        elif step.get("is_copied_context") is not True:  # copied from an earlier trajectory
            _add(builder, step)
    totals, agent = value.get("final_metrics"), value.get("agent")
    totals = totals if isinstance(totals, OBJECT) else {}
    counts = {
        "prompt_tokens": totals.get("total_prompt_tokens"),
        "completion_tokens": totals.get("total_completion_tokens"),
        "prompt_tokens_details": {"cached_tokens": totals.get("total_cached_tokens")},
    }
    thread = value.get("session_id")
    return add_fields(
        reader.read_messages(builder.build()),
        other_fields(value, "steps", "session_id", "final_metrics", "agent", "schema_version")
        | ({"agent": other_fields(agent, "tool_definitions")} if isinstance(agent, OBJECT) else {}),
        tokens_usage=counts if counts["prompt_tokens"] is not None else None,
        cost_usd=totals.get("total_cost_usd"),
        thread_id=thread if isinstance(thread, str) else None,
    )


def _add(builder: MessageListBuilder, step: _Object) -> None:
    source: str = step["source"]
    role = _ROLES.get(source, source)
    metrics = step.get("metrics")
    details = {key: value for key, value in other_fields(step, *_STEP).items() if value is not None}
    if isinstance(metrics, OBJECT):
        details["usage"] = {**metrics, "prompt_tokens_details": {"cached_tokens": metrics.get("cached_tokens")}}
    builder.add_message(role, _text(step.get("message")), timestamp=step.get("timestamp"), **details)
    calls = step.get("tool_calls")
    for call in calls if isinstance(calls, (list, tuple)) else () if calls is None else (calls,):
        if isinstance(call, OBJECT):
            extra = other_fields(call, "function_name", "arguments", "tool_call_id")
            builder.add_call(call.get("function_name"), call.get("arguments", UNSET), call.get("tool_call_id"), **extra)
        else:
            builder.add_unknown(call)
    observation = step.get("observation")
    for result in objects_in(observation.get("results") if isinstance(observation, OBJECT) else None):
        call_id = result.get("source_call_id")
        if call_id is not None:
            builder.add_result(call_id, _text(result.get("content")))


def _text(content: Any) -> Any:
    text = join_texts(content, "text")
    return content if text is None else text


FORMAT = ReplyFormat(name="atif", detect=_detect, read=_read)
