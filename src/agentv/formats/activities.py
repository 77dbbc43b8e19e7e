"""Bot Framework activities of Copilot Studio and Direct Line, and messages of Salesforce Agentforce."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.builder import MessageListBuilder, other_fields
from agentv.formats.conversation import text_or_none
from agentv.formats.fields import OBJECT, objects_in, text_or_empty
from agentv.formats.response import add_fields, decode_fields
from agentv.formats.unread import has_no_calls
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_STEP, _DONE = "DynamicPlanStepTriggered", "DynamicPlanStepFinished"
_BOUND = "DynamicPlanStepBindUpdate"
_HARMLESS = frozenset((
    *("typing", "endOfConversation", "conversationUpdate", "trace", "installationUpdate", "messageReaction"),
    *("DynamicPlanReceived", "DynamicPlanReceivedDebug", "DynamicPlanFinished", "DynamicServerInitialize"),
    *("DynamicServerToolsList", "DynamicServerInitializeConfirmation", "pvaSetContext", "UniversalSearchToolTraceData"),
))  # fmt: skip


def _is_activity(item: Any) -> bool:
    sender = item.get("from") if isinstance(item, OBJECT) else None
    return isinstance(sender, OBJECT) and isinstance(item.get("type"), str)


def _activities(value: Any) -> Sequence[Any]:
    items = value.get("activities") if isinstance(value, OBJECT) else value
    return items if isinstance(items, (list, tuple)) and any(map(_is_activity, items)) else ()


def _detect(value: Any) -> bool:
    return bool(_activities(value)) or (isinstance(value, OBJECT) and _is_activity(value) and "text" in value)


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    """Read the bot's messages and the steps of its plan; without a plan, tool calls are unknown."""
    builder, planned = MessageListBuilder(), False
    for item in _activities(value) or [value]:
        planned = _read_activity(builder, item) or planned
    response = reader.read_messages(builder.build())
    texts = [message.text for message in response.output_messages or () if message.role == "assistant" and message.text]
    if not planned and not response.unread:
        return decode_fields({"text": texts[-1] if texts else ""})
    return add_fields(response, {}, text=texts[-1] if texts else None)


def _read_activity(builder: MessageListBuilder, item: Any) -> bool:
    """Read one activity and return whether it belongs to a plan."""
    if not _is_activity(item):
        builder.add_unknown(item)
        return False
    sender, kind, name = (
        item["from"],
        item["type"],
        text_or_empty(item.get("name")) or text_or_empty(item.get("valueType")),
    )
    fields = item.get("value")
    fields = fields if isinstance(fields, OBJECT) else {}
    step = text_or_none(fields.get("stepId"))
    if kind == "message":
        is_user = sender.get("role") == "user"
        builder.add_message("user" if is_user else "assistant", item.get("text"))
    elif name == _STEP:
        builder.add_call(fields.get("taskDialogId"), other_fields(fields, "taskDialogId", "stepId", "state"), step)
        return True
    elif name == _BOUND and isinstance(fields.get("arguments"), OBJECT):
        call = builder.add_call(fields.get("taskDialogId"), fields["arguments"], step)
        call["input"] = fields["arguments"]
    elif name == _DONE:
        seen = fields.get("observation")
        failed = bool(fields.get("error")) or fields.get("state") == "failed"
        builder.add_result(step, seen, status="error" if failed else "ok", error=fields.get("error") or None)
        return True
    elif kind not in _HARMLESS and name not in _HARMLESS and not has_no_calls(item):
        builder.add_unknown(item)
    return name.startswith("DynamicPlan")


FORMAT = ReplyFormat(
    name="activities", detect=_detect, read=_read, keys=frozenset(("activities", "watermark", "text", "from", "type"))
)

_AGENTFORCE_FIELDS = frozenset(
    ("Inform", "TextChunk", "ProgressIndicator", "EndOfTurn", "Inquire", "Confirm", "Failure", "Escalate")
)


def _detect_agentforce(value: Any) -> bool:
    items = value.get("messages") if isinstance(value, OBJECT) else None
    return any(
        text_or_empty(item.get("type")) in _AGENTFORCE_FIELDS and "message" in item and "role" not in item
        for item in objects_in(items)
    )


def _read_agentforce(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read an Agentforce agent's messages; of its actions only the results are included."""
    del reader
    messages = list(objects_in(value["messages"]))
    texts = [item["message"] for item in messages if isinstance(item.get("message"), str)]
    results = [item["result"] for item in messages if item.get("result")]
    extra = {**other_fields(value, "messages"), **({"tool_results": results} if results else {})}
    return decode_fields({"text": "\n".join(texts), "metadata": extra, "thread_id": value.get("sessionId")})


AGENTFORCE = ReplyFormat(name="agentforce", detect=_detect_agentforce, read=_read_agentforce)
