"""Activities of the Bot Framework, as Copilot Studio and Direct Line send them, and messages of Agentforce."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.conversation import text_or_none
from agentv.formats.draft import Draft, other_fields
from agentv.formats.fields import OBJECT, objects_in, word
from agentv.formats.response import add_fields, decode_fields
from agentv.formats.unread import holds_nothing
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
    """Read what the bot says, and the steps of its plan; without any plan nothing is known about calls."""
    draft, planned = Draft(), False
    for item in _activities(value) or [value]:
        planned = _read_activity(draft, item) or planned
    said = reader.read_messages(draft.finish())
    texts = [message.text for message in said.output_messages or () if message.role == "assistant" and message.text]
    if not planned and not said.unread:
        return decode_fields({"text": texts[-1] if texts else ""})
    return add_fields(said, {}, text=texts[-1] if texts else None)


def _read_activity(draft: Draft, item: Any) -> bool:
    """Read one activity, and tell whether it speaks of a plan."""
    if not _is_activity(item):
        draft.keep(item)
        return False
    sender, kind, name = item["from"], item["type"], word(item.get("name")) or word(item.get("valueType"))
    told = item.get("value")
    told = told if isinstance(told, OBJECT) else {}
    step = text_or_none(told.get("stepId"))
    if kind == "message":
        is_user = sender.get("role") == "user"
        draft.say("user" if is_user else "assistant", item.get("text"))
    elif name == _STEP:
        draft.call(told.get("taskDialogId"), other_fields(told, "taskDialogId", "stepId", "state"), step)
        return True
    elif name == _BOUND and isinstance(told.get("arguments"), OBJECT):
        call = draft.call(told.get("taskDialogId"), told["arguments"], step)
        call["input"] = told["arguments"]
    elif name == _DONE:
        seen = told.get("observation")
        failed = bool(told.get("error")) or told.get("state") == "failed"
        draft.answer(step, seen, status="error" if failed else "ok", error=told.get("error") or None)
        return True
    elif kind not in _HARMLESS and name not in _HARMLESS and not holds_nothing(item):
        draft.keep(item)
    return name.startswith("DynamicPlan")


FORMAT = ReplyFormat(
    name="activities", detect=_detect, read=_read, keys=frozenset(("activities", "watermark", "text", "from", "type"))
)

_SAID = frozenset(
    ("Inform", "TextChunk", "ProgressIndicator", "EndOfTurn", "Inquire", "Confirm", "Failure", "Escalate")
)


def _detect_agentforce(value: Any) -> bool:
    items = value.get("messages") if isinstance(value, OBJECT) else None
    return any(
        word(each.get("type")) in _SAID and "message" in each and "role" not in each for each in objects_in(items)
    )


def _read_agentforce(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read what an agent of Salesforce says; it tells nothing of its actions but their results."""
    del reader
    messages = list(objects_in(value["messages"]))
    texts = [each["message"] for each in messages if isinstance(each.get("message"), str)]
    results = [each["result"] for each in messages if each.get("result")]
    beside = {**other_fields(value, "messages"), **({"tool_results": results} if results else {})}
    return decode_fields({"text": "\n".join(texts), "metadata": beside, "thread_id": value.get("sessionId")})


AGENTFORCE = ReplyFormat(name="agentforce", detect=_detect_agentforce, read=_read_agentforce)
