"""CAMEL: responses of a `ChatAgent`, with a record of each call that a tool answered."""

from collections.abc import Mapping
from typing import Any

from agentv.formats.draft import Draft, other_fields
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import add_fields
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]


def _detect(value: Any) -> bool:
    if not isinstance(value, OBJECT) or not isinstance(value.get("msgs"), (list, tuple)):
        return False
    info = value.get("info")
    return "terminated" in value and isinstance(info, OBJECT) and isinstance(info.get("tool_calls"), (list, tuple))


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read the records of calls, the calls that are left to the caller, and the answer."""
    info, draft = value["info"], Draft()
    for record in info["tool_calls"]:
        if not isinstance(record, OBJECT):
            draft.keep(record)
            continue
        made = draft.call(record.get("tool_name"), record.get("args"), record.get("tool_call_id"))
        if "result" in record:
            made["output"] = record["result"]
    for request in objects_in(info.get("external_tool_call_requests")):
        made = draft.call(request.get("tool_name"), request.get("args"), request.get("tool_call_id"))
        made["status"] = "pending"
    for message in value["msgs"]:
        if isinstance(message, OBJECT) and "content" in message:
            draft.say("assistant", message["content"])
        else:
            draft.keep(message)
    said = reader.read_messages(draft.finish(), declared=True)
    others = other_fields(info, "tool_calls", "external_tool_call_requests", "usage")
    return add_fields(said, {"info": others}, tokens_usage=info.get("usage"))


FORMAT = ReplyFormat(name="camel", detect=_detect, read=_read, keys=frozenset(("msgs", "info", "terminated")))
