"""The values everything else passes around: plain, typed, immutable, compared by content.

They never form cycles, so the garbage collector need not look at them (`gc=False`).
"""

from agentv.model.case import Case
from agentv.model.message import ContentBlock, Message, Status, ToolCall
from agentv.model.response import ErrorKind, ProviderResponse, ResponseError, Unread
from agentv.model.result import EvaluatorResult, Kind, RunResult, Verdict
from agentv.model.trace import EventType, TraceEvent, TraceSummary
from agentv.model.usage import TokensUsage

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
