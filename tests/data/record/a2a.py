"""A2A: tasks, messages and streamed updates of both protocol versions, built with the SDK's types."""

from typing import Any

from a2a.compat.v0_3 import types as old
from a2a.types import (
    Artifact,
    Message,
    Part,
    SendMessageResponse,
    StreamResponse,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from record.common import *

record = Recorder("a2a", "a2a-sdk", made_by=TYPES)
STAMP = "2026-01-01T00:00:00Z"
ONLY = "An answer only: A2A has no place of its own for calls, so nothing is known about them."


def data(value: Any) -> Part:
    return Part(data=ParseDict(value, Value()))


def says(text: str, number: int = 1, role: str = "ROLE_AGENT") -> Message:
    return Message(message_id=f"msg_{number}", context_id="ctx_1", task_id="task_1", role=role, parts=[Part(text=text)])


def status(state: str, message: Message | None = None) -> TaskStatus:
    shown = TaskStatus(state=state, message=message)
    shown.timestamp.FromJsonString(STAMP)
    return shown


def ordered(value: Any, inside: bool = False) -> Any:  # noqa: FBT002 - a script's own
    """Free data in the order of its keys: protobuf gives them in any."""
    if isinstance(value, dict):
        keys = sorted(value) if inside else value
        return {key: ordered(value[key], inside or key in {"data", "metadata"}) for key in keys}
    return [ordered(each, inside) for each in value] if isinstance(value, list) else value


def save(name: str, scenario: str, what: str, value: Any, found: dict[str, Any], note: str = "") -> None:
    record.save(name, scenario, what, ordered(MessageToDict(value)), found, note)


answer = Artifact(artifact_id="artifact_1", name="answer", parts=[Part(text=ANSWER)])
asked = says(QUESTION, 0, "ROLE_USER")
done = Task(
    id="task_1",
    context_id="ctx_1",
    status=status("TASK_STATE_COMPLETED"),
    artifacts=[answer],
    history=[asked, says(ANSWER)],
)
found = expect(None, ANSWER, None, "ctx_1")
save("call-task", "call", "MessageToDict(Task(...))", done, found, ONLY)
save(
    "call-send-message",
    "call",
    "MessageToDict(SendMessageResponse(task=...))",
    SendMessageResponse(task=done),
    found,
    ONLY,
)
save(
    "plain-message",
    "plain",
    "MessageToDict(SendMessageResponse(message=...))",
    SendMessageResponse(message=says(ANSWER_PLAIN)),
    expect(None, ANSWER_PLAIN, None, "ctx_1"),
    ONLY,
)
body = {"jsonrpc": "2.0", "id": "1", "result": MessageToDict(SendMessageResponse(task=done))}
record.save("call-rpc", "call", "the JSON-RPC message around the response", body, found, ONLY)

# Frameworks put calls into data parts; ADK marks them so.
made = Message(
    message_id="msg_2",
    context_id="ctx_1",
    task_id="task_1",
    role="ROLE_AGENT",
    parts=[data({"id": "call_1", "name": "get_weather", "args": {"city": "Paris"}})],
)
made.parts[0].metadata.update({"adk_type": "function_call"})
back = Message(
    message_id="msg_3",
    context_id="ctx_1",
    task_id="task_1",
    role="ROLE_AGENT",
    parts=[data({"id": "call_1", "name": "get_weather", "response": {"result": "18 C"}})],
)
back.parts[0].metadata.update({"adk_type": "function_response"})
shown = Task(
    id="task_1",
    context_id="ctx_1",
    status=status("TASK_STATE_COMPLETED"),
    artifacts=[answer],
    history=[asked, made, back, says(ANSWER, 4)],
)
save(
    "call-task-data-parts",
    "call, made known in data parts",
    "MessageToDict(Task(...))",
    shown,
    expect([call("get_weather", {"city": "Paris"}, 1, output="18 C")], ANSWER, None, "ctx_1"),
    "Data parts whose metadata say what they are, as ADK writes them.",
)
waits = Task(
    id="task_1",
    context_id="ctx_1",
    status=status("TASK_STATE_INPUT_REQUIRED", says("May I delete notes.txt?")),
    history=[says(QUESTION_DELETE, 0, "ROLE_USER")],
)
save(
    "pending-task",
    "pending: the agent asks a human",
    "MessageToDict(Task(...))",
    waits,
    expect(None, "May I delete notes.txt?", None, "ctx_1"),
    ONLY,
)
failed = Task(
    id="task_1",
    context_id="ctx_1",
    status=status("TASK_STATE_FAILED", says(FAILURE)),
    history=[says(QUESTION_FAILED, 0, "ROLE_USER")],
)
save(
    "failed-task",
    "failed: the task itself",
    "MessageToDict(Task(...))",
    failed,
    expect(None, FAILURE, None, "ctx_1"),
    ONLY,
)

updates = [
    StreamResponse(task=Task(id="task_1", context_id="ctx_1", status=status("TASK_STATE_SUBMITTED"), history=[asked])),
    StreamResponse(
        status_update=TaskStatusUpdateEvent(
            task_id="task_1", context_id="ctx_1", status=status("TASK_STATE_WORKING", says("Looking it up."))
        )
    ),
    StreamResponse(
        artifact_update=TaskArtifactUpdateEvent(
            task_id="task_1",
            context_id="ctx_1",
            artifact=Artifact(artifact_id="artifact_1", parts=[Part(text=ANSWER[:5])]),
        )
    ),
    StreamResponse(
        artifact_update=TaskArtifactUpdateEvent(
            task_id="task_1",
            context_id="ctx_1",
            append=True,
            last_chunk=True,
            artifact=Artifact(artifact_id="artifact_1", parts=[Part(text=ANSWER[5:])]),
        )
    ),
    StreamResponse(
        status_update=TaskStatusUpdateEvent(task_id="task_1", context_id="ctx_1", status=status("TASK_STATE_COMPLETED"))
    ),
]
record.save(
    "call-stream-updates",
    "call, streamed",
    "[MessageToDict(update) ...]",
    [MessageToDict(each) for each in updates],
    found,
    ONLY,
)


def dump(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


def said(text: str, number: int = 1, role: str = "agent") -> old.Message:
    return old.Message(
        message_id=f"msg_{number}",
        context_id="ctx_1",
        task_id="task_1",
        role=role,
        parts=[old.Part(root=old.TextPart(text=text))],
    )


earlier = old.Artifact(artifact_id="artifact_1", parts=[old.Part(root=old.TextPart(text=ANSWER))])
task = old.Task(
    id="task_1",
    context_id="ctx_1",
    status=old.TaskStatus(state="completed", timestamp=STAMP),
    artifacts=[earlier],
    history=[said(QUESTION, 0, "user"), said(ANSWER)],
)
record.save(
    "call-task-v03",
    "call, of protocol 0.3",
    "Task(...).model_dump(mode='json', by_alias=True, exclude_none=True)",
    dump(task),
    found,
    ONLY,
)
record.save(
    "call-rpc-v03",
    "call, of protocol 0.3",
    "the JSON-RPC message around the task",
    dump(old.SendMessageSuccessResponse(id="1", result=task)),
    found,
    ONLY,
)
calls = [
    old.Part(
        root=old.DataPart(
            data={"id": "call_1", "name": "get_weather", "args": {"city": "Paris"}},
            metadata={"adk_type": "function_call"},
        )
    ),
    old.Part(
        root=old.DataPart(
            data={"id": "call_1", "name": "get_weather", "response": {"result": "18 C"}},
            metadata={"adk_type": "function_response"},
        )
    ),
    old.Part(root=old.TextPart(text=ANSWER)),
]
message = old.Message(message_id="msg_1", context_id="ctx_1", role="agent", parts=calls)
record.save(
    "call-message-data-parts-v03",
    "call, made known in data parts, of protocol 0.3",
    "Message(...).model_dump(mode='json', by_alias=True, exclude_none=True)",
    dump(message),
    expect([call("get_weather", {"city": "Paris"}, 1, output="18 C")], ANSWER, None, "ctx_1"),
)
