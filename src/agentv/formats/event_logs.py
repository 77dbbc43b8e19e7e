"""Programs that log what they do event by event: Factory's Droid, Cline and Roo, OpenHands, SWE-agent."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.conversation import text_or_none
from agentv.formats.draft import Draft, join_texts, other_fields, read_arguments, status_of
from agentv.formats.embedded_calls import output_of_blocks
from agentv.formats.fields import OBJECT, objects_in, word
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
    return any("toolId" in each and each.get("type") in ("tool_call", "tool_result") for each in objects_in(items)) or (
        any(each.get("type") == "completion" and "finalText" in each for each in objects_in(items))
    )


def _read_droid(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    draft, text, usage, thread = Draft(), None, None, None
    for item in items:
        kind = word(item.get("type")) if isinstance(item, OBJECT) else ""
        thread = text_or_none(item.get("session_id")) or thread if isinstance(item, OBJECT) else thread
        if kind == "message":
            if item.get("role") == "assistant":
                draft.say("assistant", item.get("text"))
        elif kind == "tool_call":
            draft.call(item.get("toolName") or item.get("toolId"), item.get("parameters"), item.get("id"))
        elif kind == "tool_result":
            output = item.get("value", item.get("error"))
            draft.answer(item.get("id"), output, status=status_of(item.get("isError")))
        elif kind == "completion":
            text, usage = text_or_none(item.get("finalText")), item.get("usage")
        elif kind not in ("system", "reasoning", "error"):
            draft.keep(item)
    said = reader.read_messages(draft.finish(), declared=True)
    return add_fields(said, {}, text=said.text if text is None else text, usage=usage, thread_id=thread)


_CLINE_TOOLS = {"command": "execute_command", "use_mcp_server": "use_mcp_tool", "browser_action": "browser_action"}
_CLINE_TOOLS |= {"browser_action_launch": "browser_action", "mcp_server_request_started": ""}
_CLINE_RESULTS = frozenset(("command_output", "mcp_server_response", "browser_action_result"))
_CLINE_WORDS = frozenset(("text", "plan_mode_respond", "followup"))
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
    """Read the messages of a task: tools are JSON texts, commands are texts, each asked for or told."""
    draft, text, counts = Draft(), None, []
    for item in items:
        if not isinstance(item, OBJECT) or not _is_cline(item):
            draft.keep(item)
            continue
        kind, words = item[item["type"]], item.get("text")
        told = parse_arguments(words)[0] if isinstance(words, str) else None
        told = told if isinstance(told, OBJECT) else {}
        if kind == "completion_result":
            text = text_or_none(words) or text
        elif kind == "api_req_started":
            counts.append({"input_tokens": told.get("tokensIn"), "output_tokens": told.get("tokensOut")})
        elif item.get("partial") is not True:
            _read_cline_message(draft, item, kind, told)
    if text is not None:
        draft.say("assistant", text)
    said = reader.read_messages(draft.finish(), declared=True)
    known = [each for each in counts if None not in each.values()]
    return add_fields(said, {}, text=text, usage=add_usage(map(decode_usage, known)) if known else None)


def _read_cline_message(draft: Draft, item: _Object, kind: str, told: _Object) -> None:
    words = item.get("text")
    if kind == "tool" and isinstance(told.get("tool"), str):
        _add_once(draft, told["tool"], other_fields(told, "tool"))
    elif kind in _CLINE_TOOLS:
        if _CLINE_TOOLS[kind]:
            _add_once(draft, *_cline_call(kind, words, told))
    elif kind in _CLINE_RESULTS:
        draft.answer(None, words, tool=draft.first_open)
    elif kind in _CLINE_WORDS:
        draft.say("assistant", words)
    elif kind not in _CLINE_HARMLESS:
        draft.keep(item)


def _cline_call(kind: str, words: Any, told: _Object) -> tuple[str, Any]:
    if kind != "command" and told:
        name = text_or_none(told.get("toolName")) or _CLINE_TOOLS[kind]
        given = told.get("arguments", other_fields(told, "toolName", "type", "serverName"))
        return name, read_arguments(given)["input"]
    return _CLINE_TOOLS[kind], {"command" if kind == "command" else "text": words}


def _add_once(draft: Draft, tool: str, given: Any) -> None:
    """Add a call that is told when it is asked for and again when it is made."""
    last = draft.messages[-1].get("tool_calls", [{}])[-1] if draft.messages else {}
    if last.get("tool") != tool or last.get("input") != given or "output" in last:
        draft.call(tool, given)


_HANDS_WORDS = frozenset(("message", "think", "system", "recall", "change_agent_state", "null", "loop_recovery"))
_HANDS_STATES = frozenset(("agent_state_changed", "null", "recall", "condensation", "task_tracking", "think"))


def _is_hands(item: _Object) -> bool:
    has_name = isinstance(item.get("action"), str) or isinstance(item.get("observation"), str)
    return has_name and isinstance(item.get("source"), str) and ("args" in item or "extras" in item)


def _is_hands_event(item: _Object) -> bool:
    return word(item.get("kind")).endswith("Event") and isinstance(item.get("source"), str)


def _detect_hands(items: Any) -> bool:
    if not isinstance(items, (list, tuple)):
        return False
    return any(_is_hands(each) or _is_hands_event(each) for each in objects_in(items))


def _read_hands(items: Sequence[Any], reader: ReplyReader) -> ProviderResponse:
    """Read the events of OpenHands: of its first generation by `action`, of its SDK by `kind`."""
    draft, final = Draft(), None
    for item in items:
        if isinstance(item, OBJECT) and _is_hands_event(item):
            final = _read_hands_event(draft, item) or final
        elif isinstance(item, OBJECT) and _is_hands(item):
            final = _read_hands_old(draft, item) or final
        elif item:
            draft.keep(item)
    if final is not None:
        draft.say("assistant", final)
    said = add_fields(reader.read_messages(draft.finish(), declared=True), {}, text=final)
    # An action has its arguments where others have fields, and the model's own reply stands beside it.
    read = ("action", "args", "tool_call_metadata", "tool_call", "tool_name", "tool_call_id", "tools", "extras")
    return with_searched(
        said, {f"events[{at}]": other_fields(item, *read) for at, item in enumerate(items) if isinstance(item, OBJECT)}
    )


def _read_hands_old(draft: Draft, item: _Object) -> str | None:
    meta = item.get("tool_call_metadata")
    meta = meta if isinstance(meta, OBJECT) else {}
    call_id, action, args = text_or_none(meta.get("tool_call_id")), item.get("action"), item.get("args")
    args = args if isinstance(args, OBJECT) else {}
    if isinstance(item.get("observation"), str):
        if item["observation"] not in _HANDS_STATES and (call_id or item.get("cause") is not None):
            status = status_of(not item["success"]) if isinstance(item.get("success"), bool) else None
            status = "error" if item["observation"] == "error" else status
            status = "denied" if item["observation"] == "user_rejected" else status
            draft.answer(call_id or str(item.get("cause")), item.get("content"), status=status)
        return None
    if action in ("finish", "reject"):
        return text_or_none(args.get("final_thought")) or text_or_none(item.get("message"))
    if action == "message" or action in _HANDS_WORDS:
        if item.get("source") == "agent" and action == "message":
            draft.say("assistant", args.get("content"))
        return None
    if item.get("source") == "agent":
        given = other_fields(args, "thought", "blocking", "is_input", "confirmation_state", "security_risk", "hidden")
        draft.say("assistant", text_or_none(args.get("thought")))
        draft.call(meta.get("function_name") or action, given, call_id or str(item.get("id")))
    return None


def _read_hands_event(draft: Draft, item: _Object) -> str | None:
    kind, call_id = item["kind"], text_or_none(item.get("tool_call_id"))
    if kind == "ActionEvent":
        call = item.get("tool_call")
        call = call if isinstance(call, OBJECT) else {}
        inner = call.get("function")
        given = (inner if isinstance(inner, OBJECT) else call).get("arguments")
        action = item.get("action")
        given = other_fields(action, "kind") if given is None and isinstance(action, OBJECT) else given
        if item.get("tool_name") == "finish":
            told = read_arguments(given)["input"]
            return text_or_none(told.get("message")) if isinstance(told, OBJECT) else None
        draft.say("assistant", join_texts(item.get("thought"), "text"))
        draft.call(item.get("tool_name"), given, call_id)
    elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
        told = item.get("observation")
        told = told if isinstance(told, OBJECT) else {}
        output = output_of_blocks(told.get("content", told.get("output"))) if told else item.get("error")
        status = "error" if kind == "AgentErrorEvent" else status_of(told.get("is_error"))
        draft.answer(call_id, output, status="denied" if kind == "UserRejectObservation" else status)
    elif kind == "MessageEvent":
        message = item.get("llm_message")
        if isinstance(message, OBJECT) and message.get("role") == "assistant":
            draft.say("assistant", join_texts(message.get("content"), "text"))
    elif not kind.startswith(("SystemPrompt", "Condensation", "Pause", "ConversationState", "Token", "LLMCompletion")):
        draft.keep(item)
    return None


_FENCE = re.compile(r"```(?:mswea_bash_command|bash|sh)\s*\n(.*?)\n?```", re.DOTALL)


def _detect_swe(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("info"), OBJECT):
        return False
    if word(value.get("trajectory_format")).startswith("mini-swe-agent"):
        return isinstance(value.get("messages"), (list, tuple))
    steps = list(objects_in(value.get("trajectory")))
    return bool(steps) and all("action" in step and "observation" in step for step in steps)


def _read_swe(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the trajectory of SWE-agent or of its small sister: each step is a command and what it printed."""
    info = value["info"]
    counts = info.get("model_stats")
    counts = counts if isinstance(counts, OBJECT) else {}
    usage = {"input_tokens": counts.get("tokens_sent"), "output_tokens": counts.get("tokens_received")}
    beside = decode_fields({"usage": usage if None not in usage.values() else None, "metadata": {"info": dict(info)}})
    history = value.get("history")
    if isinstance(history, (list, tuple)) and any(each.get("tool_calls") for each in objects_in(history)):
        return join_responses(reader.read_messages(history), beside)
    draft = Draft()
    if "trajectory_format" in value:
        _read_mini(draft, value["messages"])
    for step in objects_in(value.get("trajectory")):
        action = text_or_none(step.get("action"))
        draft.say("assistant", step.get("thought") or step.get("response"))
        if action and action.strip():
            draft.call(action.split()[0], {"command": action.strip()})
            draft.answer(None, step.get("observation"), tool=action.split()[0])
    said = reader.read_messages(draft.finish(), declared=True)
    return join_responses(said, beside)


def _read_mini(draft: Draft, messages: Sequence[Any]) -> None:
    """Read messages whose calls are told beside them, or stand in their text as a block of shell code."""
    for message in objects_in(messages):
        extra = message.get("extra")
        actions = list(objects_in(extra.get("actions") if isinstance(extra, OBJECT) else None))
        content = join_texts(message.get("content"), "text") or ""
        if message.get("role") == "assistant":
            draft.say("assistant", content)
            told = actions or [{"command": each} for each in _FENCE.findall(content)[:1]]
            for action in told:
                draft.call("bash", {"command": action.get("command")}, action.get("tool_call_id"))
        elif message.get("role") in ("user", "tool") and draft.messages:
            draft.answer(message.get("tool_call_id"), content, tool=draft.first_open) if draft.first_open else None


DROID = ReplyFormat(name="droid", detect=_detect_droid, read=_read_droid, events=True)
CLINE = ReplyFormat(name="cline", detect=_detect_cline, read=_read_cline, events=True)
OPENHANDS = ReplyFormat(name="openhands", detect=_detect_hands, read=_read_hands, events=True)
SWE_AGENT = ReplyFormat(
    name="swe_agent",
    detect=_detect_swe,
    read=_read_swe,
    keys=frozenset(("info", "trajectory", "history", "messages", "environment", "replay_config")),
)
