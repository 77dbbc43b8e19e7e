"""Vocabulary of calls, results and other parts of a reply: names of keys and block types.

Words are compared in snake case, so `toolCalls`, `tool-calls` and `tool_calls` are equal.
"""

from functools import lru_cache

NAME_KEYS = ("name", "tool", "toolName", "tool_name", "function", "function_name", "functionName")
"""Keys of the tool name in a call."""
INPUT_KEYS = ("input", "args", "arguments", "parameters", "tool_input", "toolInput", "tool_kwargs", "kwargs")
"""Keys of the input in a call."""
CALL_ID_KEYS = ("tool_call_id", "toolCallId", "tool_use_id", "toolUseId", "call_id", "callID", "callId")
"""Keys of the call id in a call or result."""

CALL_KEYS = frozenset((
    *("tool_call", "tool_calls", "tool_call_chunks", "function_call", "function_calls", "tool_use", "tool_uses"),
    *("tool_invocation", "tool_invocations", "executed_tools", "tools_used", "used_tools", "invalid_tool_calls"),
    *("intermediate_steps", "agent_thoughts", "automatic_function_calling_history", "permission_denials"),
    *("tool_result", "tool_results", "tool_response", "tool_responses", "function_response", "function_responses"),
    "agent_reasoning",
))  # fmt: skip
"""Keys of lists and objects that hold calls or results."""

HARMLESS_TYPES = frozenset((
    *("text", "output_text", "input_text", "text_plain", "summary_text", "reasoning_text", "json"),
    *("image", "image_url", "input_image", "image_file", "audio", "input_audio", "output_audio", "video", "file"),
    *("input_file", "document", "document_url", "blob", "uri", "media", "container_upload", "inline_data", "file_data"),
    *("audio_url", "video_url", "binary", "table", "chart", "suggested_queries"),
    *("thinking", "redacted_thinking", "reasoning", "reasoning_content", "thought", "thought_signature"),
    "refusal",
    *("citation", "citations", "citations_content", "url_citation", "file_citation", "container_file_citation"),
    *("file_path", "reference", "source", "source_url", "source_document", "search_result"),
    *("compaction", "cache_point", "guard_content"),
    *("step_start", "step_finish", "system_prompt", "user_prompt", "retry_prompt"),
    *("mcp_list_tools", "tool_reference"),
))  # fmt: skip
"""Types of blocks and items that hold no calls; an untyped block must have one of them as a key."""
HARMLESS_PREFIXES = ("reasoning.", "data-")

NEVER_SEARCHED = frozenset((
    *("tools", "tool_choice", "functions", "tool_definitions", "mcp_servers", "config", "request", "logprobs"),
    *("structured_response", "structured_output", "structured_content", "structured_data", "output_parsed"),
    *("parsed", "response_format"),
    *("tool_config", "available_tools", "text", "object"),
))  # fmt: skip
"""Keys of values that may look like calls but are not: definitions, settings, structured answers."""

FINISH_KEYS = ("finish_reason", "finishReason", "stop_reason", "stopReason")
"""Keys of the finish reason of a model."""
SERVER_TOOL_USES = frozenset(("server_tool_use", "server_tool_usage", "server_side_tool_usage"))
"""Keys of token counts that count calls of server-side tools."""


_LONGEST_WORD = 64


def to_snake_case(word: str) -> str:
    """Return a key or a type in snake case; a word longer than any known one is returned unchanged."""
    return word if len(word) > _LONGEST_WORD else _to_snake_case(word)


@lru_cache(maxsize=4096)
def _to_snake_case(word: str) -> str:
    if word.islower() and "-" not in word:
        return word
    spaced = "".join(
        f"_{char}" if char.isupper() and at and not word[at - 1].isupper() else char for at, char in enumerate(word)
    )
    return spaced.replace("-", "_").replace("__", "_").lower()


def snake_key(key: str) -> str:
    """Return a key with an underscore before each capital letter, as libraries that have both forms write it."""
    if key.islower():
        return key
    return _with_underscores(key) if len(key) <= _LONGEST_WORD else _with_underscores.__wrapped__(key)


@lru_cache(maxsize=4096)
def _with_underscores(key: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in key)


def is_harmless_type(kind: str) -> bool:
    """Return whether blocks of this type hold no calls."""
    return to_snake_case(kind) in HARMLESS_TYPES or kind.startswith(HARMLESS_PREFIXES)


def is_call_key(key: str) -> bool:
    """Return whether lists and objects under this key hold calls or results."""
    return to_snake_case(key) in CALL_KEYS


def is_searched(key: str) -> bool:
    """Return whether the value under an unread key is searched for calls."""
    word = to_snake_case(key)
    return not (word in NEVER_SEARCHED or "usage" in word or word.startswith("raw"))
