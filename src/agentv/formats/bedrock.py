"""Amazon Bedrock: replies and streams of Converse, and events of Bedrock agents (`InvokeAgent`)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.formats.builder import ReplyBuilder
from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Path, objects_in
from agentv.formats.sse import iter_events
from agentv.formats.tool_calls import parse_arguments
from agentv.formats.usage import add_usage, read_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

if TYPE_CHECKING:
    from agentv.model.response import TokensUsage

_Object = Mapping[str, Any]
_REPLY = frozenset(("output", "usage", "ResponseMetadata", "$metadata"))


def _is_reply(value: Any) -> bool:
    output = value.get("output") if isinstance(value, OBJECT) else None
    message = output.get("message") if isinstance(output, OBJECT) else None
    return isinstance(message, OBJECT) and isinstance(message.get("content"), (list, tuple)) and "stopReason" in value


def _detect_converse(value: Any) -> bool:
    return _is_reply(value) or any(map(_is_reply, objects_in(value)))


def _read_converse(value: Any, reader: ReplyReader) -> ProviderResponse:
    """Read a reply of Converse, or the replies of several turns."""
    run = ReplyBuilder()
    turns: list[TokensUsage | None] = []
    for position, reply in enumerate([value] if isinstance(value, OBJECT) else value):
        if not _is_reply(reply):
            run.skip_event(None, ("replies", position))
            continue
        run.messages.append(dict(reply["output"]["message"]))
        turns.append(read_usage(reply.get("usage"), ("replies", position, "usage"), run.report)[0])
        run.metadata.update(non_empty_fields(reply, _REPLY))
    run.usage = add_usage(turns)
    return run.build_reply(reader)


CONVERSE = ReplyFormat(name="bedrock", detect=_detect_converse, read=_read_converse)


def _is_piece(event: _Object) -> bool:
    return len(event) == 1 and isinstance(event.get("messageStart", event.get("contentBlockDelta")), OBJECT)


def _pieces(value: Any) -> Any:
    return value.get("stream") if isinstance(value, OBJECT) else value


def _detect_stream(value: Any) -> bool:
    return any(map(_is_piece, objects_in(_pieces(value))))


def _read_stream(value: Any, reader: ReplyReader) -> ProviderResponse:
    run = _ConverseStreamDecoder()
    for event, path in iter_events(_pieces(value), run.transcript.report):
        run.read(event, path)
    return run.finish(reader)


class _ConverseStreamDecoder:
    """Decoder of the events of `ConverseStream`."""

    def __init__(self) -> None:
        self.transcript = ReplyBuilder()
        self._turns: list[TokensUsage | None] = []
        self._blocks: list[dict[str, Any]] = []
        self._index: Any = None
        """Index of the block that the last delta belongs to; some senders omit it."""
        self._in_block = False

    def read(self, event: _Object, path: Path) -> None:
        """Process the next event."""
        run = self.transcript
        kind, body = next(((str(key), body) for key, body in event.items() if body is not None), ("", None))
        body = body if isinstance(body, OBJECT) else {}
        if kind == "messageStart":
            self._blocks, self._in_block = [], False
            run.messages.append({"role": body.get("role", "assistant"), "content": self._blocks})
            run.unfinished = "`messageStop`"
        elif kind in ("contentBlockStart", "contentBlockDelta"):
            self._feed(body, is_start=kind == "contentBlockStart", path=path)
        elif kind == "contentBlockStop":
            self._in_block = False
        elif kind == "messageStop":
            run.unfinished = ""
            run.metadata.update(non_empty_fields(body, frozenset()))
        elif kind == "metadata":
            self._turns.append(read_usage(body.get("usage"), (*path, "usage"), run.report)[0])
        elif kind.endswith("Exception"):
            run.fail(body)
        else:
            run.skip_event(kind, path)

    def _feed(self, body: _Object, *, is_start: bool, path: Path) -> None:
        index = body.get("contentBlockIndex")
        if not self.transcript.messages:  # its start event is missing
            self.transcript.messages.append({"role": "assistant", "content": self._blocks})
        if is_start or not self._in_block or index != self._index:
            self._blocks.append({})
        self._in_block, self._index = True, index
        block = self._blocks[-1]
        fields = body.get("start" if is_start else "delta")
        for key, piece in fields.items() if isinstance(fields, OBJECT) else ():
            if key == "text" and isinstance(piece, str):
                block["text"] = block.get("text", "") + piece
            elif isinstance(piece, OBJECT):
                block[str(key)] = _join_piece(block.get(str(key)), piece)
            else:
                self.transcript.skip_event(key, path)

    def finish(self, reader: ReplyReader) -> ProviderResponse:
        """Return the reply."""
        run = self.transcript
        for message in run.messages:
            message["content"] = [_with_parsed_input(block) for block in message["content"] if block]
        run.usage = add_usage(self._turns)
        return run.build_reply(reader)


def _join_piece(before: Any, piece: _Object) -> dict[str, Any]:
    """Merge a delta into the value so far, joining strings."""
    whole = dict(before) if isinstance(before, OBJECT) else {}
    for key, value in piece.items():
        start = whole.get(key)
        whole[key] = start + value if isinstance(start, str) and isinstance(value, str) else value
    return whole


def _with_parsed_input(block: dict[str, Any]) -> dict[str, Any]:
    call = block.get("toolUse")
    if not isinstance(call, OBJECT) or not isinstance(call.get("input"), str):
        return block
    return {**block, "toolUse": {**call, "input": parse_arguments(call["input"])[0] if call["input"] else {}}}


STREAM = ReplyFormat(name="bedrock", detect=_detect_stream, read=_read_stream)


_AGENT_EVENTS = frozenset(("trace", "chunk", "returnControl", "files"))
_TOOLS = {
    "actionGroupInvocationInput": "action_group",
    "knowledgeBaseLookupInput": "knowledge_base",
    "codeInterpreterInvocationInput": "code_interpreter",
    "agentCollaboratorInvocationInput": "agent_collaborator",
}
"""Tool names of invocations that have no name of their own."""
_OUTPUTS = {
    "actionGroupInvocationOutput": "actionGroupInvocationInput",
    "knowledgeBaseLookupOutput": "knowledgeBaseLookupInput",
    "codeInterpreterInvocationOutput": "codeInterpreterInvocationInput",
    "agentCollaboratorInvocationOutput": "agentCollaboratorInvocationInput",
}
_NO_CALLS = frozenset((
    *("modelInvocationInput", "modelInvocationOutput", "rationale", "traceId", "type", "invocationType"),
    *("finalResponse", "repromptResponse", "event"),
))  # fmt: skip


def _is_agent_event(event: Any) -> bool:
    if not isinstance(event, OBJECT) or len(event) != 1:
        return False
    trace, chunk, control = (event.get(key) for key in ("trace", "chunk", "returnControl"))
    if isinstance(trace, OBJECT):
        return isinstance(trace.get("trace"), OBJECT)
    if isinstance(control, OBJECT):
        return "invocationInputs" in control
    return isinstance(chunk, OBJECT) and "bytes" in chunk


def _agent_events(value: Any) -> Any:
    """Return the events of a run, also if its completion and its traces were collected separately."""
    if not isinstance(value, OBJECT):
        return value
    completion, traces = value.get("completion"), list(objects_in(value.get("trace", value.get("traces"))))
    if not isinstance(completion, str) or not all("orchestrationTrace" in item or "trace" in item for item in traces):
        return completion
    wrapped = [item if "trace" in item and "orchestrationTrace" not in item else {"trace": item} for item in traces]
    return [*({"trace": item} for item in wrapped), {"chunk": {"bytes": completion}}] if traces else None


def _detect_agents(value: Any) -> bool:
    return any(map(_is_agent_event, objects_in(_agent_events(value))))


def _read_agents(value: Any, reader: ReplyReader) -> ProviderResponse:
    run = _BedrockAgentRun()
    for event, path in iter_events(_agent_events(value), run.transcript.report):
        run.read(event, path)
    response = run.finish(reader)
    session = text_or_none(value.get("sessionId")) if isinstance(value, OBJECT) else None
    return response if session is None else replace(response, thread_id=session)


class _BedrockAgentRun:
    """Collector of an agent's events, with the calls that have no result yet."""

    def __init__(self) -> None:
        self.transcript = ReplyBuilder()
        self._turns: list[TokensUsage | None] = []
        self._open: list[tuple[str, Any, dict[str, Any]]] = []
        self._texts: list[str] = []
        self._is_traced = False

    def read(self, event: _Object, path: Path) -> None:
        """Read the next event."""
        for key, body in event.items():
            if not isinstance(body, OBJECT):
                self.transcript.skip_event(key, path)
            elif key == "trace":
                self._read_trace(body, path)
            elif key == "chunk":
                self._texts.append(_decode_chunk(body.get("bytes")))
            elif key == "returnControl":
                self._return_control(body, path)
            elif str(key).endswith("Exception"):
                self.transcript.fail(body)
            elif key not in _AGENT_EVENTS:
                self.transcript.skip_event(key, path)

    def _read_trace(self, body: _Object, path: Path) -> None:
        self._is_traced = True
        self.transcript.thread_id = text_or_none(body.get("sessionId")) or self.transcript.thread_id
        traces = body.get("trace")
        for kind, trace in traces.items() if isinstance(traces, OBJECT) else ():
            if kind == "failureTrace" and isinstance(trace, OBJECT):
                self.transcript.fail(trace.get("failureReason"))
            elif isinstance(trace, OBJECT) and kind != "guardrailTrace":
                self._read_step(trace, (*path, str(kind)))

    def _read_step(self, step: _Object, path: Path) -> None:
        """Read the reasoning, token counts, calls and results of one step."""
        output = step.get("modelInvocationOutput")
        if isinstance(output, OBJECT):
            counts = output.get("metadata")
            usage = counts.get("usage") if isinstance(counts, OBJECT) else None
            self._turns.append(read_usage(usage, (*path, "usage"), self.transcript.report)[0])
        thought = step.get("rationale")
        if isinstance(thought, OBJECT):
            self.transcript.add_reasoning(thought.get("text"))
        for key, body in step.items():
            if key == "invocationInput" and isinstance(body, OBJECT):
                self._call(body, (*path, key))
            elif key == "observation" and isinstance(body, OBJECT):
                self._answer(body, (*path, key))
            elif key not in _NO_CALLS:
                self.transcript.skip_event(key, path)

    def _call(self, body: _Object, path: Path) -> None:
        for key, invocation in body.items():
            if key in _TOOLS and isinstance(invocation, OBJECT):
                call = self.transcript.update_call(None, _invocation(invocation, _TOOLS[str(key)]))
                self._open.append((str(key), body.get("traceId"), call))
            elif key not in _NO_CALLS:
                self.transcript.skip_event(key, path)

    def _answer(self, body: _Object, path: Path) -> None:
        self.transcript.end_message()
        for key, output in body.items():
            if key in _OUTPUTS and isinstance(output, OBJECT):
                open_calls = [item for item in self._open if item[0] == _OUTPUTS[str(key)]]
                open_calls = [item for item in open_calls if item[1] == body.get("traceId")] or open_calls
                if open_calls:
                    self._open.remove(open_calls[0])
                    open_calls[0][2].update(_outcome(output))
                else:
                    self.transcript.record_result(None, _outcome(output))
            elif key not in _NO_CALLS:
                self.transcript.skip_event(key, path)

    def _return_control(self, body: _Object, path: Path) -> None:
        """Read the calls that are returned to the caller, which the trace may contain already."""
        inputs = body.get("invocationInputs")
        if not isinstance(inputs, (list, tuple)):
            self.transcript.skip_event("returnControl", path)
        for position, item in enumerate(inputs if isinstance(inputs, (list, tuple)) else ()):
            keys = ("functionInvocationInput", "apiInvocationInput")
            invocations = (
                [item[key] for key in keys if isinstance(item.get(key), OBJECT)] if isinstance(item, OBJECT) else []
            )
            if not invocations:
                self.transcript.skip_event(None, (*path, "invocationInputs", position))
                continue
            call = _invocation(invocations[0], "action_group")
            open_call = next((entry for entry in self._open if _is_same(entry[2], call)), None)
            if open_call is not None:
                self._open.remove(open_call)
                open_call[2]["status"] = "pending"
            else:
                fields = {**call, "status": "pending", "invocation_id": body.get("invocationId")}
                self.transcript.update_call(None, fields)

    def finish(self, reader: ReplyReader) -> ProviderResponse:
        """Return the reply; without a trace, its tool calls are unknown."""
        run, text = self.transcript, "".join(self._texts)
        run.usage = add_usage(self._turns)
        run.text = text
        if run.messages and not self._is_traced:
            run.report.skip(("returnControl",), "a run without its trace")
        if self._is_traced and (text or not run.messages):
            run.end_message()
            run.add_text(text)
        return run.build_reply(reader)


def _invocation(invocation: _Object, kind: str) -> dict[str, Any]:
    """Convert an invocation of a function, an API operation or a built-in tool to a call."""
    names = ("function", "apiPath", "agentCollaboratorName")
    name = next((item for key in names if (item := text_or_none(invocation.get(key)))), kind)
    if kind == "action_group":
        extra = non_empty_fields(invocation, frozenset(("function", "apiPath", "parameters", "requestBody")))
        return {"tool": name, "input": _parameters(invocation), **({"invocation": extra} if extra else {})}
    if kind == "agent_collaborator" and "input" in invocation:
        return {"tool": name, "input": invocation["input"]}
    return {"tool": name, "input": dict(invocation)}


def _is_same(one: _Object, other: _Object) -> bool:
    return all(one.get(key) == other.get(key) for key in ("tool", "input"))


def _parameters(invocation: _Object) -> dict[str, Any]:
    """Return the parameters by name, including those in the request body."""
    body = invocation.get("requestBody")
    content = body.get("content") if isinstance(body, OBJECT) else None
    parts = list(content.values()) if isinstance(content, OBJECT) else []
    bodies = [part.get("properties") if isinstance(part, OBJECT) else part for part in parts]
    lists = [invocation.get("parameters"), *bodies]
    return {str(item.get("name")): item.get("value") for part in lists for item in objects_in(part)}


def _outcome(output: _Object) -> dict[str, Any]:
    if output.get("executionError"):
        return {"output": output.get("executionOutput"), "error": output["executionError"], "status": "error"}
    value = next(
        (output[key] for key in ("text", "retrievedReferences", "executionOutput", "output") if key in output), None
    )
    if isinstance(value, OBJECT) and isinstance(value.get("text"), str):
        value = value["text"]
    return {"output": dict(output) if value is None else value}


def _decode_chunk(data: Any) -> str:
    """Return the text of a chunk: bytes, or their JSON representation."""
    if isinstance(data, str):
        return data
    numbers = list(data.values()) if isinstance(data, OBJECT) else data
    if not isinstance(numbers, (bytes, bytearray, list, tuple)):
        return ""
    try:
        return bytes(numbers).decode("utf-8", "replace")
    except (TypeError, ValueError):
        return ""


AGENTS = ReplyFormat(
    name="bedrock_agents",
    detect=_detect_agents,
    read=_read_agents,
    keys=frozenset(("completion", "sessionId", "trace", "traces", "contentType", "memoryId", "ResponseMetadata")),
)
