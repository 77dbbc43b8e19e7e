"""Access to the fields of one foreign object, names of keys and block types, and the report of problems in a reply.

Names are compared in snake case, so `toolCalls`, `tool-calls` and `tool_calls` are equal.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any

from msgspec import Meta, convert

from agentv.jsonio import CONVERT_ERRORS, DEPTH_MARKER, TOO_LONG, is_deep, replace_surrogates, safe_str, truncate_depth
from agentv.model.response import Unread
from agentv.redaction import shorten

Path = tuple[str | int, ...]
OBJECT = (dict, Mapping)
"""Types for `isinstance`: a dict is matched at once, and the slower abstract class is tried only for the rest."""
Number = Annotated[float, Meta(ge=0, le=1e308)]
"""A time or a cost that JSON can hold: the bounds exclude infinities, NaN and negative numbers."""

MISSING_CALLS = "so calls may be missing"
MAX_WARNINGS = 100
"""Maximum number of warnings per reply; further ones are only counted."""
_MAX_SHOWN = 60
_MAX_ID_BITS = 64


class Report:
    """Report of the problems found while a reply is read."""

    __slots__ = ("_unread", "_warnings", "malformed", "omitted", "server_tool_uses")

    def __init__(self) -> None:
        self._warnings: list[str] = []
        self._unread: list[Unread] = []
        self.server_tool_uses = 0
        """Number of calls of server-side tools that the vendor counted."""
        self.omitted = 0
        self.malformed: list[Any] = []
        """Parts that could not be read at all."""

    def warn(self, path: Path, text: str) -> None:
        """Add a warning about a place."""
        if len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(clean_text(f"{format_path(path)}: {text}"))
        else:
            self.omitted += 1

    def skip(self, path: Path, what: str) -> None:
        """Report a place that was not understood and may hold calls; `what` describes its content."""
        if len(self._unread) < MAX_WARNINGS:
            self._unread.append(Unread(path=format_path(path), reason=f"{what} was not understood, {MISSING_CALLS}"))

    def skip_invalid(self, path: Path, expected: str, value: Any) -> None:
        """Report an invalid element of a list of messages, blocks or calls; it is kept, and may hold calls."""
        self.warn_invalid(path, expected, value)
        if value and not isinstance(value, (int, float)):
            self.skip(path, describe_value(value))
        self.malformed.append(self.limit(value, path))

    def unread(self, calls_read: bool) -> tuple[Unread, ...]:  # noqa: FBT001 - the only argument
        """Return all places that were not understood."""
        if self.server_tool_uses and not calls_read:
            counted = f"{self.server_tool_uses} uses of the server's tools are counted, and no call was read"
            place = Unread(path="tokens_usage", reason=f"{counted}, {MISSING_CALLS}")
            return (*self._unread, place)
        return tuple(self._unread)

    def warn_invalid(self, path: Path, expected: str, value: Any) -> None:
        """Warn that a value does not have the expected type."""
        self.warn(path, f"expected {expected}, got {describe_value(value)}")

    def valid_text(self, text: str, path: Path) -> str:
        """Return the text, or a copy that UTF-8 can encode; a subclass of `str`, such as an enum, is converted."""
        text = text if type(text) is str else str.__str__(text)
        cleaned = clean_text(text)
        if cleaned is not text:
            self.warn(path, "lone surrogates are replaced")
        return cleaned

    def limit(self, value: Any, path: Path, *, may_hold_calls: bool = False) -> Any:
        """Return the value, or a copy truncated at the maximum depth."""
        if isinstance(value, (dict, list, tuple)) and is_deep(value):
            self.warn(path, f"cut off, {DEPTH_MARKER[1:-1]}")
            if may_hold_calls:
                self.skip(path, f"what is {DEPTH_MARKER[1:-1]}")
            return truncate_depth(value)
        return value

    @property
    def warnings(self) -> tuple[str, ...]:
        """All warnings; the last one is a count if there were too many."""
        more = (f"and {self.omitted} more",) if self.omitted else ()
        return (*self._warnings, *more)


def format_path(path: Path) -> str:
    """Format a path as `output_messages[3].tool_calls[0].tool`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".") or "reply"


def clean_text(text: str) -> str:
    """Return the text itself, or a copy with U+FFFD in place of each lone surrogate."""
    return text if text.isascii() else replace_surrogates(text)


def describe_value(value: Any) -> str:
    """Describe a value in a few words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{shorten(value, _MAX_SHOWN + 1)}"'
    if isinstance(value, (int, float)):
        return str(value) if isinstance(value, float) or abs(value) < 10**_MAX_SHOWN else TOO_LONG
    if isinstance(value, OBJECT):
        return "an object"
    return "a list" if isinstance(value, (list, tuple)) else f"a value of type {type(value).__name__!r}"


def is_list(value: Any) -> bool:
    """Return whether a value is a list or a tuple."""
    return isinstance(value, (list, tuple))


def objects_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects of a list; yield nothing for other values."""
    if is_list(value):
        yield from (item for item in value if isinstance(item, OBJECT))


def object_or_empty(value: Any) -> Mapping[str, Any]:
    """Return an object unchanged; any other value becomes an empty object."""
    return value if isinstance(value, OBJECT) else {}


def text_or_empty(value: Any) -> str:
    """Return a type or status as a string; any other value becomes an empty string."""
    return value if isinstance(value, str) else ""


def number_or_none(value: Any) -> float | None:
    """Return a valid time or cost; `None` for any other value."""
    try:
        return convert(value, Number)
    except CONVERT_ERRORS:
        return None


def texts_under(key: str, items: Any) -> set[str]:
    """Return the texts under a key of the objects of a list."""
    return {value for item in objects_in(items) if isinstance(value := item.get(key), str)}


def is_count(value: Any) -> bool:
    """Return whether a value is a non-negative integer that is short enough to be shown."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**_MAX_SHOWN


class Fields:
    """The fields of one foreign object under our names, and its remaining fields."""

    __slots__ = ("_keys", "_known", "_rest", "path", "report")

    def __init__(self, raw: Mapping[Any, Any], names: Mapping[str, str], path: Path, report: Report) -> None:
        self.path = path
        self.report = report
        self._known: dict[str, Any] = {}
        self._keys: dict[str, str] = {}
        self._rest: dict[str, Any] = {}
        aliases: list[str] = []
        for key, value in raw.items():
            name = names.get(key)
            if name is None:
                self.add_metadata(self._name(key), value)
            elif name == key:
                self._known[name] = value
            else:
                aliases.append(key)
        for key in aliases:
            self._read_alias(names[key], key, raw[key])

    def _name(self, key: Any) -> str:
        name = key if isinstance(key, str) else safe_str(key)
        if name == TOO_LONG:
            self.report.warn(self.path, f"expected names, got {TOO_LONG}")
        return self.report.valid_text(name, (*self.path, name))

    def _read_alias(self, name: str, key: str, value: Any) -> None:
        # A canonical null does not conflict with an alias that has a value.
        if self._known.get(name) is None:
            self._known[name] = value
            self._keys[name] = key
        elif value is not None:
            self.add_metadata(key, value)

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def get(self, name: str) -> Any:
        """Return a field unchanged; `None` if it is missing."""
        return self._known.get(name)

    def add_metadata(self, key: str, value: Any) -> None:
        """Keep a value that has no field of its own; it becomes part of the metadata."""
        while key in self._rest:
            key += "_"
        self._rest[key] = self.report.valid_text(value, (*self.path, key)) if isinstance(value, str) else value

    def keep_as_metadata(self, name: str) -> None:
        """Keep an unusable field as metadata, under its original key."""
        self.add_metadata(self._keys.get(name, name), self._known[name])

    def warn_invalid(self, name: str, expected: str) -> None:
        """Warn about an invalid field, keep it as metadata, and treat it as missing."""
        self.report.warn_invalid((*self.path, name), expected, self._known[name])
        self.keep_as_metadata(name)
        del self._known[name]

    def value(self, name: str, default: Any = None) -> Any:
        """Read a field that may hold any value."""
        if name not in self._known:
            return default
        return self.report.limit(self._known[name], (*self.path, name))

    def text(self, name: str) -> str | None:
        """Read a field that holds a string."""
        value = self._known.get(name)
        if value is None:
            return None
        if isinstance(value, str):
            return self.report.valid_text(value, (*self.path, name))
        self.warn_invalid(name, "a string")
        return None

    def identifier(self, name: str) -> str | None:
        """Read a field that holds an id; a number is converted to its digits, and kept as metadata."""
        value = self._known.get(name)
        if type(value) is not int or value.bit_length() > _MAX_ID_BITS:
            return self.text(name)
        self.warn_invalid(name, "a string")
        self._known[name] = text = str(value)
        return text

    def number(self, name: str) -> float | None:
        """Read a field that holds a time or a cost."""
        value = self._known.get(name)
        if value is None:
            return None
        try:
            return convert(value, Number)
        except CONVERT_ERRORS:  # including text with lone surrogates
            self.warn_invalid(name, "a number of at least 0")
            return None

    def flag(self, name: str) -> bool | None:
        """Read a field that holds a boolean."""
        value = self._known.get(name)
        if value is None or isinstance(value, bool):
            return value
        self.warn_invalid(name, "a boolean")
        return None

    def items(self, name: str) -> list[Any] | tuple[Any, ...] | None:
        """Read a field that holds a list."""
        value = self._known.get(name)
        if value is None or isinstance(value, (list, tuple)):
            return value
        self.warn_invalid(name, "a list")
        return None

    def metadata(self) -> dict[str, Any] | None:
        """Return the object's own metadata, joined with all values that were kept."""
        own = self._known.get("metadata")
        if own is not None and not isinstance(own, OBJECT):
            self.warn_invalid("metadata", "an object")
            own = None
        if own is None and not self._rest:
            return None
        merged = {}
        for key, value in own.items() if own else ():
            merged[self._name(key)] = value
        for key, value in self._rest.items():
            while key in merged:
                key += "_"  # noqa: PLW2901 - the agent's own metadata takes precedence
            merged[key] = value
        limited: dict[str, Any] = self.report.limit(merged, (*self.path, "metadata"), may_hold_calls=True)
        return limited


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
