"""Agents of Amazon Bedrock: the events of `InvokeAgent`, whose trace tells the calls."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from agentv.formats.conversation import said_fields, text_or_none
from agentv.formats.fields import OBJECT, Path, objects_in
from agentv.formats.transcript import Transcript
from agentv.formats.usage import add_usage, read_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

if TYPE_CHECKING:
    from agentv.model.response import TokensUsage

_Object = Mapping[str, Any]
_AGENT_EVENTS = frozenset(("trace", "chunk", "returnControl", "files"))
_TOOLS = {
    "actionGroupInvocationInput": "action_group",
    "knowledgeBaseLookupInput": "knowledge_base",
    "codeInterpreterInvocationInput": "code_interpreter",
    "agentCollaboratorInvocationInput": "agent_collaborator",
}
"""What an invocation calls, where it has no name of its own."""
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
    """Return the events of a run; people keep its answer and its trace apart, once they have read the stream."""
    if not isinstance(value, OBJECT):
        return value
    told, traces = value.get("completion"), list(objects_in(value.get("trace", value.get("traces"))))
    if not isinstance(told, str) or not all("orchestrationTrace" in each or "trace" in each for each in traces):
        return told
    wrapped = [each if "trace" in each and "orchestrationTrace" not in each else {"trace": each} for each in traces]
    return [*({"trace": each} for each in wrapped), {"chunk": {"bytes": told}}] if traces else None


def _detect_agent(value: Any) -> bool:
    return any(map(_is_agent_event, objects_in(_agent_events(value))))


def _read_agent(value: Any, reader: ReplyReader) -> ProviderResponse:
    run = _AgentRun()
    for position, event in enumerate(_agent_events(value)):
        if isinstance(event, OBJECT):
            run.read(event, ("events", position))
        else:
            run.transcript.report.reject(("events", position), "an event", event)
    response = run.finish(reader)
    session = text_or_none(value.get("sessionId")) if isinstance(value, OBJECT) else None
    return response if session is None else replace(response, thread_id=session)


class _AgentRun:
    """A run of an agent so far, and its calls that have no result yet."""

    def __init__(self) -> None:
        self.transcript = Transcript()
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
                self._texts.append(_decoded(body.get("bytes")))
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
        """Read what one step tells: thoughts, counts, calls, results."""
        told = step.get("modelInvocationOutput")
        if isinstance(told, OBJECT):
            counts = told.get("metadata")
            usage = counts.get("usage") if isinstance(counts, OBJECT) else None
            self._turns.append(read_usage(usage, (*path, "usage"), self.transcript.report)[0])
        thought = step.get("rationale")
        if isinstance(thought, OBJECT):
            self.transcript.think(thought.get("text"))
        for key, body in step.items():
            if key == "invocationInput" and isinstance(body, OBJECT):
                self._call(body, (*path, key))
            elif key == "observation" and isinstance(body, OBJECT):
                self._answer(body, (*path, key))
            elif key not in _NO_CALLS:
                self.transcript.skip_event(key, path)

    def _call(self, body: _Object, path: Path) -> None:
        for key, given in body.items():
            if key in _TOOLS and isinstance(given, OBJECT):
                call = self.transcript.call(None, _invocation(given, _TOOLS[str(key)]))
                self._open.append((str(key), body.get("traceId"), call))
            elif key not in _NO_CALLS:
                self.transcript.skip_event(key, path)

    def _answer(self, body: _Object, path: Path) -> None:
        self.transcript.end_step()
        for key, output in body.items():
            if key in _OUTPUTS and isinstance(output, OBJECT):
                found = [each for each in self._open if each[0] == _OUTPUTS[str(key)]]
                found = [each for each in found if each[1] == body.get("traceId")] or found
                if found:
                    self._open.remove(found[0])
                    found[0][2].update(_outcome(output))
                else:
                    self.transcript.answer(None, _outcome(output))
            elif key not in _NO_CALLS:
                self.transcript.skip_event(key, path)

    def _return_control(self, body: _Object, path: Path) -> None:
        """Read the calls that are left to the caller; the trace may have told them before."""
        inputs = body.get("invocationInputs")
        if not isinstance(inputs, (list, tuple)):
            self.transcript.skip_event("returnControl", path)
        for position, item in enumerate(inputs if isinstance(inputs, (list, tuple)) else ()):
            keys = ("functionInvocationInput", "apiInvocationInput")
            given = [item[key] for key in keys if isinstance(item.get(key), OBJECT)] if isinstance(item, OBJECT) else []
            if not given:
                self.transcript.skip_event(None, (*path, "invocationInputs", position))
                continue
            call = _invocation(given[0], "action_group")
            known = next((each for each in self._open if _is_same(each[2], call)), None)
            if known is not None:
                self._open.remove(known)
                known[2]["status"] = "pending"
            else:
                told = {**call, "status": "pending", "invocation_id": body.get("invocationId")}
                self.transcript.call(None, told)

    def finish(self, reader: ReplyReader) -> ProviderResponse:
        """Return the reply; without a trace it is an answer that tells nothing about calls."""
        run, text = self.transcript, "".join(self._texts)
        run.usage = add_usage(self._turns)
        run.text = text
        if run.messages and not self._is_traced:
            run.report.skip(("returnControl",), "a run without its trace")
        if self._is_traced and (text or not run.messages):
            run.end_step()
            run.say(text)
        return run.finish(reader)


def _invocation(given: _Object, kind: str) -> dict[str, Any]:
    """Write a call: of a function, of an operation of an API, or of one of Bedrock's own tools."""
    names = ("function", "apiPath", "agentCollaboratorName")
    name = next((each for key in names if (each := text_or_none(given.get(key)))), kind)
    if kind == "action_group":
        beside = said_fields(given, frozenset(("function", "apiPath", "parameters", "requestBody")))
        return {"tool": name, "input": _parameters(given), **({"invocation": beside} if beside else {})}
    if kind == "agent_collaborator" and "input" in given:
        return {"tool": name, "input": given["input"]}
    return {"tool": name, "input": dict(given)}


def _is_same(one: _Object, other: _Object) -> bool:
    return all(one.get(key) == other.get(key) for key in ("tool", "input"))


def _parameters(given: _Object) -> dict[str, Any]:
    """Return the parameters by name, those of a request's body among them."""
    body = given.get("requestBody")
    content = body.get("content") if isinstance(body, OBJECT) else None
    parts = list(content.values()) if isinstance(content, OBJECT) else []
    bodies = [part.get("properties") if isinstance(part, OBJECT) else part for part in parts]
    found = [given.get("parameters"), *bodies]
    return {str(each.get("name")): each.get("value") for part in found for each in objects_in(part)}


def _outcome(output: _Object) -> dict[str, Any]:
    if output.get("executionError"):
        return {"output": output.get("executionOutput"), "error": output["executionError"], "status": "error"}
    value = next(
        (output[key] for key in ("text", "retrievedReferences", "executionOutput", "output") if key in output), None
    )
    if isinstance(value, OBJECT) and isinstance(value.get("text"), str):
        value = value["text"]
    return {"output": dict(output) if value is None else value}


def _decoded(data: Any) -> str:
    """Return the text of a chunk: bytes, or what JSON makes of them."""
    if isinstance(data, str):
        return data
    numbers = list(data.values()) if isinstance(data, OBJECT) else data
    if not isinstance(numbers, (bytes, bytearray, list, tuple)):
        return ""
    try:
        return bytes(numbers).decode("utf-8", "replace")
    except (TypeError, ValueError):
        return ""


FORMAT = ReplyFormat(
    name="bedrock_agents",
    detect=_detect_agent,
    read=_read_agent,
    keys=frozenset(("completion", "sessionId", "trace", "traces", "contentType", "memoryId", "ResponseMetadata")),
)
