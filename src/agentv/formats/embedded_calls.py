"""Calls and results inside the content of a message, under the names of any vendor.

A message whose blocks hold calls or results is converted to several messages of our own form: the text and calls of
each step, and one `role: tool` message for each result.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agentv.formats.fields import CALL_ID_KEYS, INPUT_KEYS, NAME_KEYS, OBJECT, objects_in, to_snake_case

_Object = Mapping[str, Any]
THINKING = "thinking"
"""Metadata key of the blocks that must be sent back to the model unchanged."""
_REASONING_TYPES = frozenset(("thinking", "redacted_thinking"))
_APPROVALS = ("tool_approval_request", "tool_approval_response")
"""Blocks of the AI SDK that request approval of a call, and the response."""
_CALL_TYPES = frozenset(("tool_invocation", "dynamic_tool"))
_CALL_ENDINGS = ("tool_use", "_call")
_RESULT_ENDINGS = (
    *("tool_result", "tool_return", "tool_response", "tool_output", "tool_error"),
    *("function_result", "function_response", "call_output", "call_result", "call_response"),
)
_CALL_WRAPPERS = ("toolUse", "functionCall", "function_call", "toolCall", "tool_call", "tool_use", "toolInvocation")
_RESULT_WRAPPERS = (
    *("toolResult", "functionResponse", "function_response", "tool_call_result", "tool_result", "toolCallResult"),
    *("toolResponse", "tool_response"),
)  # fmt: skip
_GEMINI_RESULTS = ("functionResponse", "function_response")
"""Results whose object has the only key `error` if the tool failed."""
_CODE = ("executableCode", "executable_code")
_CODE_RESULT = ("codeExecutionResult", "code_execution_result")
_CODE_TOOL = "code_execution"
_CODE_STATUSES = {"OUTCOME_OK": "ok", "OUTCOME_FAILED": "error", "OUTCOME_DEADLINE_EXCEEDED": "error"}
_TOOL_TYPES = ("toolType", "tool_type")
"""Keys under which Gemini names a built-in tool."""
_MASTRA = ("parts", "toolInvocations")
"""Keys of a content that is an object, as written by Mastra."""
_CONTAINERS = ("parts", "contents", "items", "blocks")
"""Keys under which a message may hold its blocks instead of `content`."""
_EXECUTED = "executed_tools"
"""The key under which Groq lists the calls that its server made before the message, each named by its type."""
_TYPE_KEYS = ("block_type", "content_type")
"""Keys of a block's type in LlamaIndex and Semantic Kernel."""
_OUTPUT_KEYS = ("content", "output", "result", "response", "tool_result", "outputs", "value")
_OUTCOMES = ("output", "result", "outputs", "errorText")
_HOSTED_INPUTS = ("action", "code", "queries")
"""Keys of the input in calls of a vendor's built-in tools."""
_ERROR_OUTPUTS = frozenset(("error-text", "error-json"))
_OUTPUT_TYPES = frozenset(("text", "json", "content", *_ERROR_OUTPUTS))
_STATES = {"output-denied": "denied", "approval-requested": "pending", "output-error": "error"}
"""Status of a call by the state that the AI SDK gives it."""
_PLAIN_TEXT = frozenset(("type", "text", "state"))
_RESULT_FIELDS = frozenset((
    *("type", "id", "is_error", "isError", "status", "exception"),
    *CALL_ID_KEYS, *NAME_KEYS, *_OUTPUT_KEYS, *_TOOL_TYPES,
))  # fmt: skip


class _ClassifiedBlock(Struct, frozen=True):
    """One classified content block."""

    kind: str
    """`call`, `result`, `reasoning`, `step`, `approval` or `text`."""
    body: _Object
    """The payload, without its wrapper."""
    tag: str = ""
    """The type or the wrapper that identified the block."""
    extras: _Object = {}
    """The other fields of the wrapper."""


def extract_embedded_calls(items: Sequence[Any]) -> list[Any]:
    """Convert messages with calls or results in their content to messages of our own form; keep the others."""
    split = [(message, message is not item) for item in items for message in _split(item)]
    answered = {message["tool_call_id"] for message, is_new in split if is_new and _is_answer(message)}
    return [_clear_pending(message, answered) if is_new and answered else message for message, is_new in split]


def _is_answer(message: _Object) -> bool:
    return message.get("role") == "tool" and isinstance(message.get("tool_call_id"), str)


def _clear_pending(message: _Object, answered: set[str]) -> _Object:
    """Return the message without the pending status of calls that have a result later."""
    calls = message.get("tool_calls") or ()
    waiting = [call for call in calls if isinstance(call, OBJECT) and call.get("status") == "pending"]
    if not any(call.get("id") in answered for call in waiting):
        return message
    ended = [call for call in waiting if call.get("id") in answered]
    others = [{**call, "status": None} if call in ended else call for call in calls]
    return {**message, "tool_calls": others}


def may_hold_calls(item: Any) -> bool:
    """Return whether the content of a message is a list or an object."""
    if not isinstance(item, OBJECT):
        return False
    content = item.get("content")
    return not (content is None or type(content) is str) or any(key in item for key in (*_CONTAINERS, _EXECUTED))


def holds_blocks(items: Sequence[Any]) -> bool:
    """Return whether a list is the content of one message: blocks with calls or results, or typed texts."""
    if not items or not all(isinstance(item, OBJECT) and "role" not in item for item in items):
        return False
    return any(_classify(item).kind in ("call", "result", "reasoning") or _is_text(item) for item in items)


def _split(item: Any) -> Iterator[Any]:
    executed = item.get(_EXECUTED) if isinstance(item, OBJECT) else None
    if isinstance(executed, (list, tuple)) and executed and all(map(_has_type, executed)):
        calls = [
            _call(_ClassifiedBlock("call", {**tool, "name": tool.get("name") or tool["type"]})) for tool in executed
        ]
        yield {"role": item.get("role"), "content": None, "tool_calls": calls}
        item = {key: value for key, value in item.items() if key != _EXECUTED}
    yield from _split_message(item)


def _has_type(tool: Any) -> bool:
    return isinstance(tool, OBJECT) and isinstance(tool.get("type"), str) and bool(tool["type"])


def _split_message(item: Any) -> Iterator[Any]:
    if isinstance(item, OBJECT) and item.get("role") == "toolResult":  # the form of Pi
        is_error = item.get("isError")
        status = {"status": "error" if is_error else "ok"} if isinstance(is_error, bool) else {}
        result = {"tool_call_id": item.get("toolCallId"), "name": item.get("toolName"), **status}
        return iter(({"role": "tool", "content": output_of_blocks(item.get("content")), **result},))
    if isinstance(item, OBJECT) and _is_block(item.get("content")) and item.get("role") not in ("tool", "function"):
        item = {**item, "content": [item["content"]]}
    blocks, container = _blocks_of(item) if isinstance(item, OBJECT) else (None, "")
    if blocks is None:
        return iter((item,))
    classified = [_classify(block) for block in blocks]
    if container == "content" and all(block.kind == "text" for block in classified):
        is_list = isinstance(item["content"], (list, tuple))
        return iter((item if is_list else {**item, "content": _content([block.body for block in classified])},))
    return _split_blocks(item, classified, container)


def _blocks_of(item: _Object) -> tuple[list[Any] | None, str]:
    """Return the blocks of a message and their key; `None` if its content is a text."""
    content = item.get("content")
    if isinstance(content, (list, tuple)):
        return list(content), "content"
    if isinstance(content, OBJECT) and any(isinstance(content.get(key), (list, tuple)) for key in _MASTRA):
        parts = content.get("parts")
        return [*(parts if isinstance(parts, (list, tuple)) else ()), *_invocations_beside(content)], "content"
    parts = item.get("parts")
    if isinstance(content, str) and content and isinstance(parts, (list, tuple)):  # the AI SDK 4 has both
        classified = [_classify(part) for part in parts]
        if any(part.kind in ("call", "result") for part in classified):
            has_text = any(part.kind == "text" and part.body.get("type") == "text" for part in classified)
            return [*parts, *([] if has_text else [{"type": "text", "text": content}])], "parts"
    if content is None or content == "":
        for key in _CONTAINERS:
            blocks = item.get(key)
            if isinstance(blocks, (list, tuple)) and "kind" not in item:  # a request of pydantic-ai has a kind
                return list(blocks), key
    return None, ""


def _is_block(content: Any) -> bool:
    """Return whether the content is a single block, which MCP writes without a list."""
    return isinstance(content, OBJECT) and isinstance(content.get("type"), str) and "parts" not in content


def _invocations_beside(content: _Object) -> list[_Object]:
    """Return the calls that Mastra lists beside the parts but not in them."""
    inside = [part.get("toolInvocation") for part in objects_in(content.get("parts"))]
    ids = [invocation.get("toolCallId") for invocation in inside if isinstance(invocation, OBJECT)]
    listed = content.get("toolInvocations")
    calls = [call for call in listed if isinstance(call, OBJECT)] if isinstance(listed, (list, tuple)) else []
    return [{"type": "tool-invocation", "toolInvocation": call} for call in calls if call.get("toolCallId") not in ids]


def _classify(block: Any) -> _ClassifiedBlock:
    if isinstance(block, str):
        return _ClassifiedBlock("text", {"type": "text", "text": block})
    if not isinstance(block, OBJECT):
        return _ClassifiedBlock("text", {"type": type(block).__name__, "value": block})
    type_ = block.get("type")
    if not isinstance(type_, str) or not type_:
        key = next((key for key in _TYPE_KEYS if isinstance(block.get(key), str) and block[key]), None)
        if key is None:
            return _classify_untyped(block)
        type_ = block[key]
        block = {"type": type_, **{name: value for name, value in block.items() if name not in ("type", key)}}
    if type_ == "text" and "text" not in block and isinstance(block.get("content"), str):  # the form of OpenTelemetry
        block = {**{key: value for key, value in block.items() if key != "content"}, "text": block["content"]}
    return _classify_typed(block, type_)


def _classify_typed(block: _Object, type_: str) -> _ClassifiedBlock:
    name = to_snake_case(type_)
    if name in _APPROVALS:
        return _ClassifiedBlock("approval", block, type_)
    if name.endswith(_RESULT_ENDINGS):
        inner = next((block[key] for key in _RESULT_WRAPPERS if isinstance(block.get(key), OBJECT)), None)
        is_wrapped = inner is not None and _id_of(inner) is not None and _id_of(block) is None  # the form of Snowflake
        return _ClassifiedBlock("result", inner if is_wrapped and inner is not None else block, type_)
    if name in _CALL_TYPES or name.endswith(_CALL_ENDINGS) or (type_.startswith("tool-") and "toolCallId" in block):
        inner = next((block[key] for key in _CALL_WRAPPERS if isinstance(block.get(key), OBJECT)), None)
        return (
            _ClassifiedBlock("call", block, type_)
            if inner is None
            else _ClassifiedBlock("call", inner, "", _without(block, inner))
        )
    return _ClassifiedBlock(
        "step" if name == "step_start" else "reasoning" if name in _REASONING_TYPES else "text", block
    )


def _classify_untyped(block: _Object) -> _ClassifiedBlock:
    for kind, keys in (
        ("call", _CALL_WRAPPERS),
        ("result", _RESULT_WRAPPERS),
        ("call", _CODE),
        ("result", _CODE_RESULT),
    ):
        for key in keys:
            if isinstance(block.get(key), OBJECT) and (block[key] or not isinstance(block.get("text"), str)):
                return _ClassifiedBlock(kind, block[key], key, _without(block, block[key]))
    if block.get("thought") is True:
        return _ClassifiedBlock("reasoning", block)
    if isinstance(block.get("text"), str) and not any(
        value is not None for key, value in block.items() if key != "text"
    ):
        return _ClassifiedBlock("text", {"type": "text", "text": block["text"]})
    return _ClassifiedBlock("text", block)


def _without(block: _Object, payload: Any) -> dict[str, Any]:
    return {key: value for key, value in block.items() if value is not payload and key != "type" and value is not None}


def _split_blocks(item: _Object, blocks: list[_ClassifiedBlock], container: str) -> Iterator[dict[str, Any]]:
    """Convert a message to its steps, and each result to a message of its own."""
    role = (
        "assistant"
        if item.get("role") == "model" or (container == "parts" and "role" not in item)
        else item.get("role")
    )
    calls_beside = _calls_by_id(item.get("tool_calls"))
    written = _write_steps(item, blocks, role, calls_beside)
    if calls_beside or not (written or (blocks and all(block.kind == "approval" for block in blocks))):
        turn = next((message for message in reversed(written) if "tool_calls" in message), None)
        if turn is None:
            turn = _new_step(role)
            written.insert(0, turn)
        turn["tool_calls"].extend(calls_beside.values())
    content = item.get("content")
    if isinstance(content, OBJECT):  # the other fields of the content are kept as well
        extras = {key: value for key, value in content.items() if key not in (*_MASTRA, "format", "content")}
        item = {**item, "content_fields": {key: value for key, value in extras.items() if value} or None}
    others = {key: value for key, value in item.items() if key not in ("role", "content", "tool_calls", container)}
    others = {key: value for key, value in others.items() if value is not None and value != ""}
    for message in written:
        if "tool_calls" not in message:
            yield message
            continue
        non_empty = {key: value for key, value in message.items() if value not in (None, [])}
        yield {**others, **non_empty, "content": _content(message["content"])}
        others = {}  # fields of the message are written once


def _new_step(role: Any) -> dict[str, Any]:
    return {"role": role, "content": [], "tool_calls": [], THINKING: []}


def _write_steps(
    item: _Object, blocks: list[_ClassifiedBlock], role: Any, calls_beside: dict[Any, Any]
) -> list[dict[str, Any]]:
    """Convert the blocks to steps and results; calls that are listed beside them are removed from `given`."""
    written: list[dict[str, Any]] = []
    turn: dict[str, Any] | None = None
    for block in blocks:
        if block.kind == "result":
            written.append(_result(block, item))
        elif block.kind == "step":
            turn = None
        elif block.kind == "approval":
            turn = _await_approval(block, written, role) or turn
        else:
            # Text after a call starts a new step: built-in tools of a vendor return within one message.
            if turn is None or (turn["tool_calls"] and block.kind != "call"):
                turn = _new_step(role)
                written.append(turn)
            if block.kind == "call":
                call = _call(block)
                known = calls_beside.pop(call.get("id"), None)
                turn["tool_calls"].append(call if known is None else known)
            else:
                turn[THINKING if block.kind == "reasoning" else "content"].append(block.body)
    return written


def _await_approval(block: _ClassifiedBlock, written: list[dict[str, Any]], role: Any) -> dict[str, Any] | None:
    """Mark the call that needs approval; return a new step if the call is not listed elsewhere."""
    if to_snake_case(block.tag) != "tool_approval_request":
        return None
    inner = block.body.get("toolCall")
    body = inner if isinstance(inner, OBJECT) else block.body
    block_id = _id_of(body)
    for message in written:
        for at, call in enumerate(message.get("tool_calls", ())):
            if block_id is not None and isinstance(call, OBJECT) and call.get("id") == block_id:
                message["tool_calls"][at] = {**call, "status": "pending"}
                return None
    call = {**_call(_ClassifiedBlock("call", body, "tool-call")), "status": "pending"}
    written.append({**_new_step(role), "tool_calls": [call]})
    return written[-1]


def _calls_by_id(calls: Any) -> dict[Any, Any]:
    """Return the calls that are also listed beside the blocks, which must not be duplicated."""
    by_id: dict[Any, Any] = {}
    for position, call in enumerate(calls if isinstance(calls, (list, tuple)) else ()):
        call_id = (
            next((call[key] for key in ("id", *CALL_ID_KEYS) if isinstance(call.get(key), str)), None)
            if isinstance(call, OBJECT)
            else None
        )
        by_id[position if call_id is None else call_id] = call
    return by_id


def _content(blocks: list[_Object]) -> Any:
    """Return the text blocks as one text if there are no others."""
    if not blocks:
        return None
    if all(
        block.get("type") == "text"
        and isinstance(block.get("text"), str)
        and all(value is None for key, value in block.items() if key not in _PLAIN_TEXT)
        for block in blocks
    ):
        return "".join(block["text"] for block in blocks)
    # Reasoning is not part of the text.
    return [
        {**block, "thinking": block.get("text"), "text": None} if _is_reasoning(block) else dict(block)
        for block in blocks
    ]


def _is_reasoning(block: _Object) -> bool:
    return block.get("type") == "reasoning" and isinstance(block.get("text"), str)


def _call(block: _ClassifiedBlock) -> dict[str, Any]:
    """Convert a call to the field names that `decode_call` reads."""
    body, tag = block.body, block.tag
    if tag in _CODE:
        rest = {key: value for key, value in body.items() if key != "id"}
        return {**block.extras, "tool": _CODE_TOOL, "input": rest, "id": _id_of(body)}
    function = body.get("function")
    if isinstance(function, OBJECT):
        body = {**{key: value for key, value in body.items() if key != "function"}, **function}
    name = next((value for key in NAME_KEYS if isinstance(value := body.get(key), str) and value), None)
    if name is None:
        name = _tool_type(body) or (_name_in_type(tag) if tag else None)
    place = next((key for key in (*INPUT_KEYS, *(_HOSTED_INPUTS if tag else ())) if key in body), None)
    call = {
        key: value
        for key, value in {**block.extras, **body}.items()
        if key not in (*CALL_ID_KEYS, *NAME_KEYS, *_TOOL_TYPES, "id", "type", "state", *_OUTCOMES, place)
        and value is not None
    }
    if (
        tag
        and tag not in ("tool_use", "tool_call", "tool-call", *_CALL_WRAPPERS)
        and not tag.startswith(("tool-", "dynamic-"))
    ):
        call["type"] = tag
    call |= {"name": name, "id": _id_of(body)}
    if place is not None:
        # A text is JSON, or the rest of a stream whose chunks never formed an object.
        is_json = isinstance(body[place], str) and place not in _HOSTED_INPUTS
        call["arguments" if is_json else "args"] = body[place]
    return {**call, **_outcome(body)}


def _name_in_type(type_: str) -> str | None:
    """Return the name of a tool that only the type contains: `tool-search` of the AI SDK, `web_search_call`."""
    if type_.startswith("tool-") and type_ not in ("tool-call", "tool-invocation", "tool-use"):
        return type_.removeprefix("tool-")
    name = to_snake_case(type_)
    known = ("tool_call", "function_call", "server_tool_call", "custom_tool_call", "mcp_call", "mcp_tool_call")
    return type_.removesuffix("_call").removesuffix("_tool") if name.endswith("_call") and name not in known else None


def _id_of(body: _Object) -> Any:
    return next((body[key] for key in (*CALL_ID_KEYS, "id") if isinstance(body.get(key), str) and body[key]), None)


def _outcome(body: _Object) -> dict[str, Any]:
    """Return the result of a call that is stored on the call itself."""
    state = body.get("state")
    outcome: dict[str, Any] = {}
    if isinstance(state, str) and state in _STATES:
        outcome["status"] = _STATES[state]
    approval = body.get("approval")
    if state == "approval-responded" and isinstance(approval, OBJECT):
        outcome["status"] = "denied" if approval.get("approved") is False else "pending"
    if state == "output-error":
        outcome["error"] = body.get("errorText")
    if "output" in body:
        outcome["output"] = body["output"]
    elif "result" in body and state in ("result", "output-error", None):
        outcome["output"] = body["result"]
    elif body.get("outputs") is not None:
        outcome["output"] = body["outputs"]
    return outcome


def _result(block: _ClassifiedBlock, item: _Object) -> dict[str, Any]:
    """Convert a result to a `role: tool` message."""
    body = block.body
    if block.tag in _CODE_RESULT:
        return _code_result(body)
    place = next((key for key in _OUTPUT_KEYS if key in body), None)
    if place is None and to_snake_case(block.tag).endswith("tool_error") and body.get("error"):
        place = "error"
    output, status = _output(None if place is None else body[place])
    is_error = next((body[key] for key in ("is_error", "isError") if isinstance(body.get(key), bool)), None)
    if is_error is not None:
        status = "error" if is_error else status or "ok"
    reported = body.get("status")
    if isinstance(reported, str):
        status = "ok" if reported == "success" else reported
    if to_snake_case(block.tag).endswith("tool_error") or body.get("exception") or _is_error_type(output):
        status = "error"
    if isinstance(output, OBJECT) and block.tag in _GEMINI_RESULTS and output.keys() == {"error"} and output["error"]:
        status = "error"
    call_id, name = _id_of(body), next((body[key] for key in NAME_KEYS if isinstance(body.get(key), str)), None)
    name = name or _tool_type(body)
    result: dict[str, Any] = {
        **{key: value for key, value in body.items() if key not in (*_RESULT_FIELDS, place) and value is not None},
        "role": "tool",
        "tool_call_id": call_id or item.get("tool_call_id") or item.get("toolCallId"),
        "content": output,
    }
    if name or item.get("role") == "tool":
        result["name"] = name or item.get("name")
    return {**result, "status": status} if status is not None else result


def _code_result(body: _Object) -> dict[str, Any]:
    """Convert the output of code that Gemini executed."""
    outcome, block_id = body.get("outcome"), _id_of(body)
    result = {"role": "tool", "name": _CODE_TOOL, "content": body.get("output")}
    if block_id is not None:
        result["tool_call_id"] = block_id
    if isinstance(outcome, str) and outcome in _CODE_STATUSES:
        result["status"] = _CODE_STATUSES[outcome]
    return result


def _tool_type(body: _Object) -> str | None:
    return next((body[key] for key in _TOOL_TYPES if isinstance(body.get(key), str) and body[key]), None)


def _output(value: Any) -> tuple[Any, str | None]:
    """Return the output of a tool, as text if possible, and the status that its form implies."""
    kind = value.get("type") if isinstance(value, OBJECT) else None
    if isinstance(kind, str) and kind in _OUTPUT_TYPES and "value" in value:  # the form of the AI SDK
        return value["value"], "error" if kind in _ERROR_OUTPUTS else None
    if kind == "execution-denied":
        return value, "denied"
    if isinstance(value, (list, tuple)) and value:
        blocks = [_classify(block).body for block in value if isinstance(block, OBJECT)]
        if len(blocks) == len(value) and all(_is_text(block) for block in blocks):
            return "".join(block["text"] for block in blocks), None
        if len(blocks) == len(value) == 1 and blocks[0].keys() == {"json"}:  # the form of Bedrock
            return blocks[0]["json"], None
    return value, None


def output_of_blocks(value: Any) -> Any:
    """Return the output of a tool given as blocks, as text if they hold nothing else."""
    blocks = [{key: item for key, item in block.items() if key in ("type", "text")} for block in objects_in(value)]
    is_text = isinstance(value, (list, tuple)) and len(blocks) == len(value) and all(map(_is_text, blocks))
    return _output(blocks)[0] if is_text else value


def _is_text(block: _Object) -> bool:
    return (
        block.get("type") == "text"
        and isinstance(block.get("text"), str)
        and all(value is None for key, value in block.items() if key not in ("type", "text"))
    )


def _is_error_type(output: Any) -> bool:
    kind = output.get("type") if isinstance(output, OBJECT) else None
    return isinstance(kind, str) and kind.endswith("_error")
