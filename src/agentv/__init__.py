"""Is your agent doing the right things? Scores its messages and tool calls, offline and without a model."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentv.api.compare import compare
    from agentv.api.evaluate import Execution, aevaluate, evaluate
    from agentv.api.score import Scorer, ascore, assert_trajectory, explain, score, score_many
    from agentv.errors import (
        AgentVError,
        EvaluationError,
        FormatError,
        OutputError,
        PluginError,
        ProviderError,
        SpecError,
    )
    from agentv.evaluators.python import evaluator
    from agentv.formats.adk import to_adk
    from agentv.formats.ai_sdk import to_mastra
    from agentv.formats.openai import from_openai, to_openai
    from agentv.formats.reader import decode_response, decode_response_json
    from agentv.model import (
        EvaluatorResult,
        Message,
        ProviderResponse,
        RunResult,
        TokensUsage,
        ToolCall,
        TraceEvent,
        TraceSummary,
        Unread,
    )
    from agentv.model.comparison import Comparison
    from agentv.model.request import Request, Scope
    from agentv.model.response import ResponseError
    from agentv.model.results import ResultRecord, Summary
    from agentv.protocols import Context
    from agentv.scoring.calls import trace_from_messages

__version__ = "0.1.0"

__all__ = [
    "AgentVError",
    "Comparison",
    "Context",
    "EvaluationError",
    "EvaluatorResult",
    "Execution",
    "FormatError",
    "Message",
    "OutputError",
    "PluginError",
    "ProviderError",
    "ProviderResponse",
    "Request",
    "ResponseError",
    "ResultRecord",
    "RunResult",
    "Scope",
    "Scorer",
    "SpecError",
    "Summary",
    "TokensUsage",
    "ToolCall",
    "TraceEvent",
    "TraceSummary",
    "Unread",
    "aevaluate",
    "ascore",
    "assert_trajectory",
    "compare",
    "decode_response",
    "decode_response_json",
    "evaluate",
    "evaluator",
    "explain",
    "from_openai",
    "score",
    "score_many",
    "to_adk",
    "to_mastra",
    "to_openai",
    "trace_from_messages",
]

_PLACES = {
    "api.compare": ("compare",),
    "api.evaluate": ("Execution", "aevaluate", "evaluate"),
    "api.score": ("Scorer", "ascore", "assert_trajectory", "explain", "score", "score_many"),
    "errors": (
        "AgentVError",
        "EvaluationError",
        "FormatError",
        "OutputError",
        "PluginError",
        "ProviderError",
        "SpecError",
    ),
    "evaluators.python": ("evaluator",),
    "formats.adk": ("to_adk",),
    "formats.ai_sdk": ("to_mastra",),
    "formats.openai": ("from_openai", "to_openai"),
    "formats.reader": ("decode_response", "decode_response_json"),
    "model.comparison": ("Comparison",),
    "model.results": ("ResultRecord", "Summary"),
    "model.request": ("Request", "Scope"),
    "model.response": ("ResponseError",),
    "protocols": ("Context",),
    "scoring.calls": ("trace_from_messages",),
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: `import agentv` alone costs next to nothing."""
    if name not in __all__:
        msg = f"module 'agentv' has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module  # noqa: PLC0415 - only a name that is used needs it

    place = next((place for place, names in _PLACES.items() if name in names), "model")
    value: object = getattr(import_module(f"agentv.{place}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
