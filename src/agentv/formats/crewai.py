"""CrewAI: outputs of crews, tasks and single agents."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from agentv.formats.builder import other_fields, read_arguments
from agentv.formats.fields import MISSING_CALLS, OBJECT, objects_in
from agentv.formats.response import add_fields, decode_fields
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse, Unread
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_USAGE = ("token_usage", "usage_metrics")
_STRUCTURED = ("json_dict", "pydantic")
"""Keys of answers with a schema."""
_WRITTEN_CALL = re.compile(r"^\s*Action\s*:.*^\s*Action Input\s*:", re.MULTILINE | re.DOTALL)
"""A call in the text of an agent without native tool calling."""


def _detect(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("raw"), str):
        return False
    tasks = value.get("tasks_output")
    is_crew = isinstance(tasks, (list, tuple)) and all(isinstance(task, OBJECT) for task in tasks)
    return (
        is_crew or any(isinstance(value.get(key), OBJECT) for key in _USAGE) or "agent_role" in value or _is_task(value)
    )


def _is_task(value: _Object) -> bool:
    return "expected_output" in value and "agent" in value


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    tasks = value.get("tasks_output")
    messages = [message for task in objects_in(tasks) for message in _added_messages(task)]
    messages += _added_messages(value)
    conversation = reader.read_messages(messages, declared=True) if messages else decode_fields({})
    usage = next((value[key] for key in _USAGE if isinstance(value.get(key), OBJECT)), None)
    answer = next((value[key] for key in _STRUCTURED if value.get(key) is not None), None)
    extra = other_fields(value, "raw", "messages", "tasks_output", *_USAGE, *_STRUCTURED)
    response = add_fields(conversation, extra, text=value["raw"], tokens_usage=usage, raw_response=answer)
    written = [at for at, message in enumerate(response.output_messages or ()) if _writes_call(message)]
    unread = [
        Unread(
            path=f"output_messages[{at}].content",
            reason=f"a call that is written as text was not read, {MISSING_CALLS}",
        )
        for at in written
    ]
    return replace(response, unread=(*response.unread, *unread)) if unread else response


def _added_messages(value: _Object) -> list[Any]:
    """Return the messages an agent added to a task, without CrewAI's prompts."""
    listed = value.get("messages")
    items = listed if isinstance(listed, (list, tuple)) else ()
    added = [item for item in items if not (isinstance(item, OBJECT) and item.get("role") in ("system", "user"))]
    failures = list(objects_in(value.get("tool_failures")))
    return (
        [_with_failures(item, failures) if isinstance(item, OBJECT) else item for item in added] if failures else added
    )


def _with_failures(item: _Object, failures: list[_Object]) -> _Object:
    """Set the status of calls that CrewAI lists as failed, one entry per call."""
    calls = item.get("tool_calls")
    if not isinstance(calls, (list, tuple)):
        return item
    return {
        **item,
        "tool_calls": [_with_failure(call, failures) if isinstance(call, OBJECT) else call for call in calls],
    }


def _with_failure(call: _Object, failures: list[_Object]) -> _Object:
    function = call.get("function")
    name = function.get("name") if isinstance(function, OBJECT) else None
    arguments = read_arguments(function.get("arguments"))["input"] if isinstance(function, OBJECT) else None
    at = next(
        (at for at, item in enumerate(failures) if (item.get("tool_name"), item.get("tool_args")) == (name, arguments)),
        None,
    )
    if at is None:
        return call
    failure = failures.pop(at).get("failure")
    text = failure.get("message") if isinstance(failure, OBJECT) else failure
    return {**call, "status": "error", **({"error": text} if text else {})}


def _writes_call(message: Message) -> bool:
    return message.role == "assistant" and bool(_WRITTEN_CALL.search(message.text))


FORMAT = ReplyFormat(name="crewai", detect=_detect, read=_read)
