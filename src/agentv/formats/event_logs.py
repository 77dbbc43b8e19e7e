"""Event logs of programs: Factory Droid, Cline and Roo, OpenHands, SWE-agent, and messages and output of Goose."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.builder import MessageListBuilder, join_texts, other_fields, read_arguments, status_of
from agentv.formats.conversation import text_or_none
from agentv.formats.embedded_calls import output_of_blocks
from agentv.formats.fields import OBJECT, object_or_empty, objects_in, text_or_empty
from agentv.formats.response import add_fields, decode_fields, join_responses
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.unread import with_searched
from agentv.formats.usage import add_usage, decode_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]


def _detect_droid(items: Any) -> bool:
    if not isinstance(items, (list, tuple)):
        return False
    return any(
        "toolId" in event and event.get("type") in ("tool_call", "tool_result") for event in objects_in(items)
    ) or (any(event.get("type") == "completion" and "finalText" in event for event in objects_in(items)))


def _read_droid(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    builder, text, usage, thread = MessageListBuilder(), None, None, None
    for item in items:
        kind = text_or_empty(item.get("type")) if isinstance(item, OBJECT) else ""
        thread = text_or_none(item.get("session_id")) or thread if isinstance(item, OBJECT) else thread
        if kind == "message":
            if item.get("role") == "assistant":
                builder.add_message("assistant", item.get("text"))
        elif kind == "tool_call":
            builder.add_call(item.get("toolName") or item.get("toolId"), item.get("parameters"), item.get("id"))
        elif kind == "tool_result":
            output = item.get("value", item.get("error"))
            builder.add_result(item.get("id"), output, status=status_of(item.get("isError")))
        elif kind == "completion":
            text, usage = text_or_none(item.get("finalText")), item.get("usage")
        elif kind not in ("system", "reasoning", "error"):
            builder.add_unknown(item)
    response = reader.read_messages(builder.build(), declared=True)
    return add_fields(response, {}, text=response.text if text is None else text, usage=usage, thread_id=thread)


_CLINE_TOOLS = {"command": "execute_command", "use_mcp_server": "use_mcp_tool", "browser_action": "browser_action"}
_CLINE_TOOLS |= {"browser_action_launch": "browser_action", "mcp_server_request_started": ""}
_CLINE_RESULTS = frozenset(("command_output", "mcp_server_response", "browser_action_result"))
_CLINE_TEXTS = frozenset(("text", "plan_mode_respond", "followup"))
_CLINE_HARMLESS = frozenset((
    *("task", "user_feedback", "user_feedback_diff", "api_req_started", "api_req_finished", "api_req_retried"),
    *("reasoning", "checkpoint_created", "checkpoint_saved", "task_progress", "resume_task", "error", "hook_status"),
    *("resume_completed_task", "condense", "shell_integration_warning", "info", "diff_error", "clineignore_error"),
    *("api_req_failed", "mistake_limit_reached", "subtask_result", "hook_output_stream", "load_mcp_documentation"),
))  # fmt: skip


def _is_cline(item: _Object) -> bool:
    kind = item.get("type")
    return kind in ("say", "ask") and isinstance(item.get(kind), str) and "ts" in item


def _detect_cline(items: Any) -> bool:
    return isinstance(items, (list, tuple)) and bool(items) and any(map(_is_cline, objects_in(items)))


def _read_cline(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read the messages of a task: tools are JSON texts, commands are texts, each requested or reported."""
    builder, text, counts = MessageListBuilder(), None, []
    for item in items:
        if not isinstance(item, OBJECT) or not _is_cline(item):
            builder.add_unknown(item)
            continue
        kind, content = item[item["type"]], item.get("text")
        payload = object_or_empty(parse_arguments(content)[0] if isinstance(content, str) else None)
        if kind == "completion_result":
            text = text_or_none(content) or text
        elif kind == "api_req_started":
            counts.append({"input_tokens": payload.get("tokensIn"), "output_tokens": payload.get("tokensOut")})
        elif item.get("partial") is not True:
            _read_cline_message(builder, item, kind, payload)
    if text is not None:
        builder.add_message("assistant", text)
    response = reader.read_messages(builder.build(), declared=True)
    known = [usage for usage in counts if None not in usage.values()]
    return add_fields(response, {}, text=text, usage=add_usage(map(decode_usage, known)) if known else None)


def _read_cline_message(builder: MessageListBuilder, item: _Object, kind: str, payload: _Object) -> None:
    text = item.get("text")
    if kind == "tool" and isinstance(payload.get("tool"), str):
        _add_once(builder, payload["tool"], other_fields(payload, "tool"))
    elif kind in _CLINE_TOOLS:
        if _CLINE_TOOLS[kind]:
            _add_once(builder, *_cline_tool_call(kind, text, payload))
    elif kind in _CLINE_RESULTS:
        builder.add_result(None, text, tool=builder.first_open)
    elif kind in _CLINE_TEXTS:
        builder.add_message("assistant", text)
    elif kind not in _CLINE_HARMLESS:
        builder.add_unknown(item)


def _cline_tool_call(kind: str, text: Any, payload: _Object) -> tuple[str, Any]:
    if kind != "command" and payload:
        name = text_or_none(payload.get("toolName")) or _CLINE_TOOLS[kind]
        arguments = payload.get("arguments", other_fields(payload, "toolName", "type", "serverName"))
        return name, read_arguments(arguments)["input"]
    return _CLINE_TOOLS[kind], {"command" if kind == "command" else "text": text}


def _add_once(builder: MessageListBuilder, tool: str, input_: Any) -> None:
    """Add a call that is logged when it is requested and again when it is made."""
    last = builder.messages[-1].get("tool_calls", [{}])[-1] if builder.messages else {}
    if last.get("tool") != tool or last.get("input") != input_ or "output" in last:
        builder.add_call(tool, input_)


_HANDS_NO_CALLS = frozenset(("message", "think", "system", "recall", "change_agent_state", "null", "loop_recovery"))
_HANDS_STATES = frozenset(("agent_state_changed", "null", "recall", "condensation", "task_tracking", "think"))


def _is_hands(item: _Object) -> bool:
    has_name = isinstance(item.get("action"), str) or isinstance(item.get("observation"), str)
    return has_name and isinstance(item.get("source"), str) and ("args" in item or "extras" in item)


def _is_hands_event(item: _Object) -> bool:
    return text_or_empty(item.get("kind")).endswith("Event") and isinstance(item.get("source"), str)


def _detect_hands(items: Any) -> bool:
    if not isinstance(items, (list, tuple)):
        return False
    return any(_is_hands(event) or _is_hands_event(event) for event in objects_in(items))


def _read_hands(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read the events of OpenHands: version 0 by `action`, its SDK by `kind`."""
    builder, final = MessageListBuilder(), None
    for item in items:
        if isinstance(item, OBJECT) and _is_hands_event(item):
            final = _read_hands_event(builder, item) or final
        elif isinstance(item, OBJECT) and _is_hands(item):
            final = _read_hands_v0(builder, item) or final
        elif item:
            builder.add_unknown(item)
    if final is not None:
        builder.add_message("assistant", final)
    response = add_fields(reader.read_messages(builder.build(), declared=True), {}, text=final)
    # The arguments of an action are not fields, and the model's own reply is stored beside it.
    read = ("action", "args", "tool_call_metadata", "tool_call", "tool_name", "tool_call_id", "tools", "extras")
    return with_searched(
        response,
        {f"events[{at}]": other_fields(item, *read) for at, item in enumerate(items) if isinstance(item, OBJECT)},
    )


def _read_hands_v0(builder: MessageListBuilder, item: _Object) -> str | None:
    meta = object_or_empty(item.get("tool_call_metadata"))
    call_id, action = text_or_none(meta.get("tool_call_id")), item.get("action")
    args = object_or_empty(item.get("args"))
    if isinstance(item.get("observation"), str):
        if item["observation"] not in _HANDS_STATES and (call_id or item.get("cause") is not None):
            status = status_of(not item["success"]) if isinstance(item.get("success"), bool) else None
            status = "error" if item["observation"] == "error" else status
            status = "denied" if item["observation"] == "user_rejected" else status
            builder.add_result(call_id or str(item.get("cause")), item.get("content"), status=status)
        return None
    if action in ("finish", "reject"):
        return text_or_none(args.get("final_thought")) or text_or_none(item.get("message"))
    if action == "message" or action in _HANDS_NO_CALLS:
        if item.get("source") == "agent" and action == "message":
            builder.add_message("assistant", args.get("content"))
        return None
    if item.get("source") == "agent":
        input_ = other_fields(args, "thought", "blocking", "is_input", "confirmation_state", "security_risk", "hidden")
        builder.add_message("assistant", text_or_none(args.get("thought")))
        builder.add_call(meta.get("function_name") or action, input_, call_id or str(item.get("id")))
    return None


def _read_hands_event(builder: MessageListBuilder, item: _Object) -> str | None:
    kind, call_id = item["kind"], text_or_none(item.get("tool_call_id"))
    if kind == "ActionEvent":
        call = object_or_empty(item.get("tool_call"))
        inner = call.get("function")
        arguments = (inner if isinstance(inner, OBJECT) else call).get("arguments")
        action = item.get("action")
        arguments = other_fields(action, "kind") if arguments is None and isinstance(action, OBJECT) else arguments
        if item.get("tool_name") == "finish":
            payload = read_arguments(arguments)["input"]
            return text_or_none(payload.get("message")) if isinstance(payload, OBJECT) else None
        builder.add_message("assistant", join_texts(item.get("thought"), "text"))
        builder.add_call(item.get("tool_name"), arguments, call_id)
    elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
        payload = object_or_empty(item.get("observation"))
        output = output_of_blocks(payload.get("content", payload.get("output"))) if payload else item.get("error")
        status = "error" if kind == "AgentErrorEvent" else status_of(payload.get("is_error"))
        builder.add_result(call_id, output, status="denied" if kind == "UserRejectObservation" else status)
    elif kind == "MessageEvent":
        message = item.get("llm_message")
        if isinstance(message, OBJECT) and message.get("role") == "assistant":
            builder.add_message("assistant", join_texts(message.get("content"), "text"))
    elif not kind.startswith(("SystemPrompt", "Condensation", "Pause", "ConversationState", "Token", "LLMCompletion")):
        builder.add_unknown(item)
    return None


_FENCE = re.compile(r"```(?:mswea_bash_command|bash|sh)\s*\n(.*?)\n?```", re.DOTALL)


def _detect_swe(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("info"), OBJECT):
        return False
    if text_or_empty(value.get("trajectory_format")).startswith("mini-swe-agent"):
        return isinstance(value.get("messages"), (list, tuple))
    steps = list(objects_in(value.get("trajectory")))
    return bool(steps) and all("action" in step and "observation" in step for step in steps)


def _read_swe(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read a trajectory of SWE-agent or mini-SWE-agent: each step is a command and its output."""
    info = value["info"]
    counts = object_or_empty(info.get("model_stats"))
    usage = {"input_tokens": counts.get("tokens_sent"), "output_tokens": counts.get("tokens_received")}
    rest = decode_fields({"usage": usage if None not in usage.values() else None, "metadata": {"info": dict(info)}})
    history = value.get("history")
    if isinstance(history, (list, tuple)) and any(message.get("tool_calls") for message in objects_in(history)):
        return join_responses(reader.read_messages(history), rest)
    builder = MessageListBuilder()
    if "trajectory_format" in value:
        _read_mini_swe(builder, value["messages"])
    for step in objects_in(value.get("trajectory")):
        action = text_or_none(step.get("action"))
        builder.add_message("assistant", step.get("thought") or step.get("response"))
        if action and action.strip():
            builder.add_call(action.split()[0], {"command": action.strip()})
            builder.add_result(None, step.get("observation"), tool=action.split()[0])
    response = reader.read_messages(builder.build(), declared=True)
    return join_responses(response, rest)


def _read_mini_swe(builder: MessageListBuilder, messages: Sequence[Any]) -> None:
    """Read messages whose calls are listed beside them, or are blocks of shell code in their text."""
    for message in objects_in(messages):
        extra = message.get("extra")
        actions = list(objects_in(extra.get("actions") if isinstance(extra, OBJECT) else None))
        content = join_texts(message.get("content"), "text") or ""
        if message.get("role") == "assistant":
            builder.add_message("assistant", content)
            commands = actions or [{"command": command} for command in _FENCE.findall(content)[:1]]
            for action in commands:
                builder.add_call("bash", {"command": action.get("command")}, action.get("tool_call_id"))
        elif message.get("role") in ("user", "tool") and builder.messages:
            builder.add_result(
                message.get("tool_call_id"), content, tool=builder.first_open
            ) if builder.first_open else None


DROID = ReplyFormat(name="droid", detect=_detect_droid, read=_read_droid, events=True)
CLINE = ReplyFormat(name="cline", detect=_detect_cline, read=_read_cline, events=True)
OPENHANDS = ReplyFormat(name="openhands", detect=_detect_hands, read=_read_hands, events=True)
SWE_AGENT = ReplyFormat(
    name="swe_agent",
    detect=_detect_swe,
    read=_read_swe,
    keys=frozenset(("info", "trajectory", "history", "messages", "environment", "replay_config")),
)


_REQUESTS = frozenset(("toolRequest", "frontendToolRequest"))
_CONFIRMATIONS = frozenset(("toolConfirmationRequest", "actionRequired"))
_DENIAL = "has declined to run this tool"


def _blocks(item: Any) -> list[_Object]:
    content = item.get("content") if isinstance(item, OBJECT) else None
    return list(objects_in(content))


def _is_request(block: _Object) -> bool:
    return text_or_empty(block.get("type")) in _REQUESTS and isinstance(block.get("toolCall"), OBJECT)


def _is_response(block: _Object) -> bool:
    return block.get("type") == "toolResponse" and isinstance(block.get("toolResult"), OBJECT)


def _messages(items: Sequence[Any]) -> list[Any]:
    """Return the messages without their event wrapper; drop events without one."""
    inner = [
        item.get("message") if isinstance(item, OBJECT) and item.get("type") == "message" else item for item in items
    ]
    return [
        item for item in inner if not (isinstance(item, OBJECT) and item.get("type") in ("complete", "notification"))
    ]


def _detect(items: Any) -> bool:
    if not isinstance(items, (list, tuple)):
        return False
    return any(_is_request(block) or _is_response(block) for item in _messages(items) for block in _blocks(item))


def _detect_lines(items: Any) -> bool:
    if not isinstance(items, (list, tuple)) or not items:
        return False
    last = items[-1]
    is_over = isinstance(last, OBJECT) and last.get("type") == "complete" and "total_tokens" in last
    return _detect(items) or (is_over and any(map(_blocks, _messages(items))))


def _read(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    return reader.read_messages([_message(item) for item in _messages(items)])


def _message(item: Any) -> Any:
    if not isinstance(item, OBJECT) or not isinstance(item.get("content"), (list, tuple)):
        return item
    return {**item, "content": [_block(block) for block in item["content"]]}


def _block(block: Any) -> Any:
    """Convert a block with a call or a result to the common form."""
    if not isinstance(block, OBJECT):
        return block
    if _is_request(block):
        tool_call = block["toolCall"].get("value", block["toolCall"])
        call = tool_call if isinstance(tool_call, OBJECT) else {}
        return {"type": "tool_use", "id": block.get("id"), "name": call.get("name"), "input": call.get("arguments")}
    if _is_response(block):
        return _result(block)
    if text_or_empty(block.get("type")) in _CONFIRMATIONS and isinstance(block.get("toolName"), str):
        return {"type": "tool-approval-request", "toolCallId": block.get("id"), "toolName": block["toolName"]}
    return block


def _result(block: _Object) -> dict[str, Any]:
    result = block["toolResult"]
    value, error = result.get("value"), result.get("error")
    status = "error" if result.get("status") == "error" or error else "ok"
    if isinstance(value, OBJECT) and isinstance(value.get("content"), (list, tuple)):
        status = "error" if value.get("isError") is True else status
        value = value["content"]
    output = output_of_blocks(value) if error is None else error
    if isinstance(output, str) and _DENIAL in output:
        status = "denied"
    return {"type": "tool_result", "tool_use_id": block.get("id"), "content": output, "status": status}


GOOSE = ReplyFormat(name="goose", detect=_detect, read=_read, items=True, translates=True)
GOOSE_LINES = ReplyFormat(name="goose", detect=_detect_lines, read=_read, events=True)
