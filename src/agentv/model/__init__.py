"""Data model: plain, typed, immutable values that are compared by content.

They never form reference cycles, so that the garbage collector can skip them (`gc=False`).
"""

from agentv.model.conversation import ContentBlock, EventType, Message, Status, ToolCall, TraceEvent, TraceSummary
from agentv.model.request import Case
from agentv.model.response import ErrorKind, ProviderResponse, ResponseError, TokensUsage, Unread
from agentv.model.results import EvaluatorResult, Kind, RunResult, Verdict

__all__ = [
    "Case",
    "ContentBlock",
    "ErrorKind",
    "EvaluatorResult",
    "EventType",
    "Kind",
    "Message",
    "ProviderResponse",
    "ResponseError",
    "RunResult",
    "Status",
    "TokensUsage",
    "ToolCall",
    "TraceEvent",
    "TraceSummary",
    "Unread",
    "Verdict",
]
