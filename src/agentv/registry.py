"""Registry: built-in evaluators, providers, formats and reporters by name, and plugins from entry points."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from agentv.errors import PluginError

EVALUATORS: Mapping[str, str] = {
    "tool_trajectory": "agentv.evaluators.trajectory:ToolTrajectory",
    "expected_messages": "agentv.evaluators.expected_messages:ExpectedMessages",
    "equals": "agentv.evaluators.data:Equals",
    "contains": "agentv.evaluators.text:Contains",
    "starts_with": "agentv.evaluators.text:StartsWith",
    "ends_with": "agentv.evaluators.text:EndsWith",
    "regex": "agentv.evaluators.text:Regex",
    "json": "agentv.evaluators.data:Json",
    "levenshtein": "agentv.evaluators.text:Levenshtein",
    "word_count": "agentv.evaluators.text:WordCount",
    "token_budget": "agentv.evaluators.budgets:TokenBudget",
    "tool_call_count": "agentv.evaluators.budgets:ToolCallCount",
    "latency_budget": "agentv.evaluators.budgets:LatencyBudget",
    "cost_budget": "agentv.evaluators.budgets:CostBudget",
    "turn_budget": "agentv.evaluators.budgets:TurnBudget",
    "step_budget": "agentv.evaluators.budgets:StepBudget",
    "conversation_turns": "agentv.evaluators.budgets:ConversationTurns",
    "no_tool_errors": "agentv.evaluators.tool_use:NoToolErrors",
    "no_redundant_calls": "agentv.evaluators.tool_use:NoRedundantCalls",
    "retries": "agentv.evaluators.tool_use:Retries",
    "loop_detection": "agentv.evaluators.tool_use:LoopDetection",
    "tool_order": "agentv.evaluators.tool_order:ToolOrder",
    "refusal": "agentv.evaluators.refusal:Refusal",
    "llm_judge": "agentv.evaluators.judge.llm_judge:LlmJudge",
    "trajectory_judge": "agentv.evaluators.judge.trajectory_judge:TrajectoryJudge",
    "panel": "agentv.evaluators.judge.llm_judge:Panel",
    "all_of": "agentv.evaluators.composite:AllOf",
    "any_of": "agentv.evaluators.composite:AnyOf",
    "at_least": "agentv.evaluators.composite:AtLeast",
    "python": "agentv.evaluators.python:Python",
    "code": "agentv.evaluators.code:Code",
}

PROVIDERS: Mapping[str, str] = {
    "anthropic": "agentv.providers.vendors.anthropic:Anthropic",
    "cli": "agentv.providers.cli:Cli",
    "http": "agentv.providers.http:Http",
    "langgraph": "agentv.providers.langgraph:LangGraph",
    "mock": "agentv.providers.mock:Mock",
    "openai": "agentv.providers.vendors.openai:OpenAI",
    "python": "agentv.providers.python:PythonAgent",
    "replay": "agentv.providers.replay:Replay",
}

FORMATS: Mapping[str, str] = {
    "bedrock": "agentv.formats.bedrock:CONVERSE",
    "agentv": "agentv.formats.detect:AGENTV",
    "trace": "agentv.formats.detect:TRACE",
    "droid": "agentv.formats.event_logs:DROID",
    "cline": "agentv.formats.event_logs:CLINE",
    "openhands": "agentv.formats.event_logs:OPENHANDS",
    "swe_agent": "agentv.formats.event_logs:SWE_AGENT",
    "goose_lines": "agentv.formats.event_logs:GOOSE_LINES",
    "goose": "agentv.formats.event_logs:GOOSE",
    "cursor_agent": "agentv.formats.claude_code:CURSOR_AGENT",
    "claude_code": "agentv.formats.claude_code:FORMAT",
    "codex": "agentv.formats.codex:FORMAT",
    "codex_session": "agentv.formats.codex:SESSION",
    "codex_events": "agentv.formats.codex:LEGACY",
    "gemini_cli": "agentv.formats.coding_agents:GEMINI_CLI",
    "gemini_cli_document": "agentv.formats.coding_agents:GEMINI_CLI_DOCUMENT",
    "opencode": "agentv.formats.coding_agents:OPENCODE",
    "copilot_cli": "agentv.formats.coding_agents:COPILOT_CLI",
    "bedrock_stream": "agentv.formats.bedrock:STREAM",
    "bedrock_agents": "agentv.formats.bedrock:AGENTS",
    "strands_result": "agentv.formats.strands:RESULT",
    "strands_multi_agent": "agentv.formats.strands:MULTI_AGENT_RESULT",
    "strands_multi_agent_stream": "agentv.formats.strands:MULTI_AGENT_STREAM",
    "strands_summary": "agentv.formats.strands:SUMMARY",
    "strands_stream": "agentv.formats.strands:STREAM",
    "strands": "agentv.formats.strands:FORMAT",
    "openai_assistants": "agentv.formats.openai.assistants:FORMAT",
    "telemetry": "agentv.formats.telemetry:FORMAT",
    "stream_turns": "agentv.formats.streams:TURNS",
    "replies": "agentv.formats.turns:FORMAT",
    "openai_realtime": "agentv.formats.openai.responses:REALTIME",
    "openai_chat": "agentv.formats.openai.chat:FORMAT",
    "openai_responses": "agentv.formats.openai.responses:FORMAT",
    "anthropic": "agentv.formats.anthropic:FORMAT",
    "gemini": "agentv.formats.gemini:FORMAT",
    "ollama": "agentv.formats.ollama:FORMAT",
    "mistral": "agentv.formats.mistral:FORMAT",
    "mistral_stream": "agentv.formats.mistral:STREAM",
    "interactions": "agentv.formats.gemini:INTERACTIONS",
    "cohere": "agentv.formats.cohere:FORMAT",
    "cohere_stream": "agentv.formats.cohere:STREAM",
    "a2a": "agentv.formats.agent_protocols:A2A",
    "dify": "agentv.formats.dify:FORMAT",
    "flowise": "agentv.formats.workflow_builders:FLOWISE",
    "flowise_stream": "agentv.formats.workflow_builders:FLOWISE_STREAM",
    "langflow": "agentv.formats.workflow_builders:LANGFLOW",
    "langflow_stream": "agentv.formats.workflow_builders:LANGFLOW_STREAM",
    "voice": "agentv.formats.hosted_agents:VOICE",
    "activities": "agentv.formats.hosted_agents:ACTIVITIES",
    "agentforce": "agentv.formats.hosted_agents:AGENTFORCE",
    "gemini_live": "agentv.formats.gemini:LIVE",
    "interactions_stream": "agentv.formats.gemini:INTERACTIONS_STREAM",
    "n8n_execution": "agentv.formats.workflow_builders:N8N_EXECUTION",
    "n8n": "agentv.formats.workflow_builders:N8N",
    "letta": "agentv.formats.hosted_agents:LETTA",
    "ai_sdk": "agentv.formats.ai_sdk:RESULT",
    "pydantic_ai_result": "agentv.formats.pydantic_ai:RESULT",
    "pydantic_ai_deferred": "agentv.formats.pydantic_ai:DEFERRED",
    "pydantic_ai_nodes": "agentv.formats.pydantic_ai:NODES",
    "pydantic_ai_stream": "agentv.formats.pydantic_ai:STREAM",
    "pydantic_ai": "agentv.formats.pydantic_ai:FORMAT",
    "openai_agents_js_result": "agentv.formats.openai.agents_js:RESULT",
    "openai_agents_js": "agentv.formats.openai.agents_js:FORMAT",
    "openai_agents_result": "agentv.formats.openai.agents:RESULT",
    "openai_agents_stream": "agentv.formats.openai.agents:STREAM",
    "openai_agents": "agentv.formats.openai.agents:FORMAT",
    "adk_session": "agentv.formats.adk:SESSION",
    "adk": "agentv.formats.adk:FORMAT",
    "mcp": "agentv.formats.agent_protocols:MCP",
    "autogen": "agentv.formats.autogen:FORMAT",
    "ag2": "agentv.formats.autogen:AG2",
    "ag2_chat_result": "agentv.formats.autogen:AG2_CHAT_RESULT",
    "ag2_classic": "agentv.formats.autogen:AG2_CLASSIC",
    "agent_framework_workflow": "agentv.formats.agent_framework:WORKFLOW",
    "agent_framework_response": "agentv.formats.agent_framework:RESPONSE",
    "agent_framework_session": "agentv.formats.agent_framework:SESSION",
    "agent_framework": "agentv.formats.agent_framework:FORMAT",
    "haystack_result": "agentv.formats.haystack:RESULT",
    "haystack_chunks": "agentv.formats.haystack:CHUNKS",
    "haystack": "agentv.formats.haystack:FORMAT",
    "llama_index_chat": "agentv.formats.llama_index:CHAT_RESPONSE",
    "llama_index": "agentv.formats.llama_index:FORMAT",
    "inspect_ai_sample": "agentv.formats.small_frameworks:INSPECT_AI_SAMPLE",
    "inspect_ai": "agentv.formats.small_frameworks:INSPECT_AI",
    "dspy": "agentv.formats.small_frameworks:DSPY_REACT",
    "dspy_v2": "agentv.formats.small_frameworks:DSPY_REACT_V2",
    "crewai": "agentv.formats.small_frameworks:CREWAI",
    "smolagents_result": "agentv.formats.small_frameworks:SMOLAGENTS_RESULT",
    "smolagents_steps": "agentv.formats.small_frameworks:SMOLAGENTS_STEPS",
    "atif": "agentv.formats.agent_protocols:ATIF",
    "agno_runs": "agentv.formats.agno:RUNS",
    "agno_tools": "agentv.formats.agno:TOOLS",
    "agno_run": "agentv.formats.agno:RUN",
    "agno_events": "agentv.formats.agno:EVENTS",
    "agno": "agentv.formats.agno:FORMAT",
    "js_messages_response": "agentv.formats.ai_sdk:JS_MESSAGES_RESPONSE",
    "js_messages": "agentv.formats.ai_sdk:JS_MESSAGES",
    "camel": "agentv.formats.autogen:CAMEL",
    "browser_use": "agentv.formats.small_frameworks:BROWSER_USE",
    "langchain_events": "agentv.formats.langchain_runs:EVENTS",
    "langchain_result": "agentv.formats.langchain_runs:RESULT",
    "langchain_log": "agentv.formats.langchain_runs:LOG",
    "calls_beside": "agentv.formats.calls_beside:FORMAT",
    "log": "agentv.formats.calls_beside:LOG",
    "langgraph_stream": "agentv.formats.langgraph:STREAM",
    "langgraph": "agentv.formats.langgraph:FORMAT",
    "state": "agentv.formats.langgraph:STATE",
    "langserve": "agentv.formats.langgraph:LANGSERVE",
    "langchain": "agentv.formats.langchain:FORMAT",
    "stream": "agentv.formats.streams:FORMAT",
    "envelope": "agentv.formats.envelope:FORMAT",
    "messages": "agentv.formats.detect:MESSAGES",
    "message": "agentv.formats.detect:MESSAGE",
    "reply_list": "agentv.formats.envelope:LIST",
    "json_texts": "agentv.formats.envelope:TEXTS",
    "fields": "agentv.formats.detect:FIELDS",
    "error": "agentv.formats.detect:FAILURE",
    "text": "agentv.formats.detect:TEXT",
    "rest": "agentv.formats.detect:REST",
}
"""Formats of replies, in the order in which they are tried: the more specific a format, the earlier."""

REPORTERS: Mapping[str, str] = {
    "csv": "agentv.reports.spreadsheet:CsvFile",
    "html": "agentv.web.report:HtmlFile",
    "jsonl": "agentv.reports.files:JsonlFile",
    "md": "agentv.reports.markdown:MarkdownFile",
    "xml": "agentv.reports.junit:JunitFile",
    "yaml": "agentv.reports.files:YamlFile",
    "yml": "agentv.reports.files:YamlFile",
}
"""Writers of result files by suffix; each is called with the path and the redactor."""

TRACE_FORMATS: Mapping[str, str] = {
    "otlp": "agentv.traces.readers.otlp:FORMAT",
    "otlp_protobuf": "agentv.traces.readers.otlp:PROTOBUF",
    "claude_code": "agentv.traces.readers.claude_code:FORMAT",
    "codex": "agentv.traces.readers.codex:FORMAT",
    "copilot_cli": "agentv.traces.readers.coding_agents:COPILOT_CLI",
    "gemini_cli": "agentv.traces.readers.coding_agents:GEMINI_CLI",
    "opencode": "agentv.traces.readers.coding_agents:OPENCODE",
    "langfuse": "agentv.traces.readers.stores:LANGFUSE",
    "mlflow": "agentv.traces.readers.stores:MLFLOW",
    "langsmith": "agentv.traces.readers.stores:LANGSMITH",
    "jaeger": "agentv.traces.readers.stores:JAEGER",
    "mastra": "agentv.traces.readers.stores:MASTRA",
    "phoenix": "agentv.traces.readers.stores:PHOENIX",
    "session": "agentv.traces.session_files:FORMAT",
    "export": "agentv.traces.session_files:EXPORT",
    "inspect": "agentv.traces.readers.logs:INSPECT",
    "adk": "agentv.traces.readers.logs:ADK",
    "atif": "agentv.traces.readers.logs:ATIF",
    "agentv": "agentv.traces.readers.logs:AGENTV",
    "messages": "agentv.traces.readers.messages:FORMAT",
}
"""Formats of stored traces, in the order in which they are tried: the more specific a format, the earlier."""

STORES: Mapping[str, str] = {
    "file": "agentv.stores.sqlite:KIND",
    "postgresql": "agentv.stores.postgres:KIND",
    "postgres": "agentv.stores.postgres:KIND",
}
"""Kinds of run stores by the scheme of their addresses; `file` is a path without one."""

EXECUTORS: Mapping[str, str] = {
    "dask": "agentv.executors.dask:DaskCluster",
    "tls": "agentv.executors.dask:DaskCluster",
    "ray": "agentv.executors.ray:RayCluster",
}
"""Clusters of executors by the scheme of their addresses."""

_cache: dict[tuple[str, str], Any] = {}


def find_evaluator(name: str) -> Any | None:
    """Return the class of an evaluator type, or `None`."""
    return _find(name.replace("-", "_"), EVALUATORS, "agentv.evaluators")


def evaluator_names() -> list[str]:
    """Return all evaluator types, including those of plugins."""
    return sorted({*EVALUATORS, *(point.name for point in _entry_points("agentv.evaluators"))})


def find_provider(name: str) -> Any | None:
    """Return the class of a provider, or `None`."""
    return _find(name.replace("-", "_"), PROVIDERS, "agentv.providers")


def provider_names() -> list[str]:
    """Return the names of all providers, including those of plugins."""
    return sorted({*PROVIDERS, *(point.name for point in _entry_points("agentv.providers"))})


def find_reporter(suffix: str) -> Any | None:
    """Return the class that writes files of this suffix, or `None`."""
    return _find(suffix, REPORTERS, "agentv.reporters")


def reporter_names() -> list[str]:
    """Return all suffixes of result files, including those of plugins."""
    return sorted({*REPORTERS, *(point.name for point in _entry_points("agentv.reporters"))})


def find_store(scheme: str) -> Any | None:
    """Return the kind of store with addresses of this scheme, or `None`."""
    return _find(scheme, STORES, "stores") if scheme in STORES else None


def store_schemes() -> list[str]:
    """Return the schemes of addresses of stores."""
    return sorted({*STORES} - {"file"})


def find_executor(scheme: str) -> Any | None:
    """Return the class of clusters with addresses of this scheme, or `None`."""
    return _find(scheme, EXECUTORS, "agentv.executors")


def executor_names() -> list[str]:
    """Return the schemes of addresses of executors, including those of plugins."""
    return sorted({*EXECUTORS, *(point.name for point in _entry_points("agentv.executors"))})


def find_reply_format(name: str) -> Any | None:
    """Return the built-in format of replies of this name, or `None`."""
    return _find(name, FORMATS, "agentv.formats") if name in FORMATS else None


def reply_formats() -> tuple[Any, ...]:
    """Return all formats of replies, those of plugins first."""
    formats: tuple[Any, ...] | None = _cache.get(("agentv.formats", ""))
    if formats is None:
        plugins = sorted(point.name.replace("-", "_") for point in _entry_points("agentv.formats"))
        formats = tuple(_find(name, FORMATS, "agentv.formats") for name in (*plugins, *FORMATS))
        _cache["agentv.formats", ""] = formats
    return formats


def find_trace_format(name: str) -> Any | None:
    """Return the format of traces of this name, or `None`."""
    return _find(name.replace("-", "_"), TRACE_FORMATS, "agentv.traces")


def trace_format_names() -> list[str]:
    """Return the names of all formats of traces in the order in which they are tried, those of plugins first."""
    names: tuple[str, ...] | None = _cache.get(("agentv.traces", ""))
    if names is None:
        plugins = sorted(point.name.replace("-", "_") for point in _entry_points("agentv.traces"))
        names = (*plugins, *(name for name in TRACE_FORMATS if name not in plugins))
        _cache["agentv.traces", ""] = names  # it is asked for once for each file
    return list(names)


def _find(name: str, built_in: Mapping[str, str], group: str) -> Any | None:
    known = _cache.get((group, name))
    if known is not None:
        return known
    import_path = built_in.get(name)
    if import_path is not None:
        module, _, attribute = import_path.partition(":")
        _cache[group, name] = getattr(import_module(module), attribute)
        return _cache[group, name]
    for point in _entry_points(group):
        if point.name.replace("-", "_") == name:
            try:
                return point.load()
            except Exception as error:
                distribution = point.dist.name if point.dist else "an unknown distribution"
                raise PluginError(point.name, distribution, error) from error
    return None


def _entry_points(group: str) -> Any:
    from importlib.metadata import entry_points  # noqa: PLC0415 - takes four times as long as starting Python

    return entry_points(group=group)
