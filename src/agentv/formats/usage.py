"""Reader of token counts in the shape of any provider."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agentv.formats.fields import OBJECT, SERVER_TOOL_USES, Path, Report, is_count, snake_key
from agentv.jsonio import safe_str
from agentv.model.conversation import Message, TokensUsage

_COUNTS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


class _UsageShape(Struct, frozen=True):
    """The shape in which a family of providers reports usage; camelCase keys are looked up as snake_case."""

    marks: frozenset[str]
    """Keys that identify the shape; any of them is sufficient."""
    counts: Mapping[str, tuple[str, ...]]
    """Paths of each of our counts; the first one present is used."""
    added: Mapping[str, tuple[str, ...]] = {}
    """Counts that ours include and theirs do not."""


_OPENAI_CHAT = _UsageShape(
    frozenset(("prompt_tokens", "completion_tokens")),
    {
        "input_tokens": ("prompt_tokens",),
        "output_tokens": ("completion_tokens",),
        "total_tokens": ("total_tokens",),
        "cache_read_tokens": ("prompt_tokens_details.cached_tokens",),
        "reasoning_tokens": ("completion_tokens_details.reasoning_tokens",),
    },
)
_AGENT_FRAMEWORK = _UsageShape(
    frozenset(("input_token_count", "output_token_count")),
    {
        "input_tokens": ("input_token_count",),
        "output_tokens": ("output_token_count",),
        "total_tokens": ("total_token_count",),
        "cache_read_tokens": ("cache_read_input_token_count", "cached_input_token_count"),
        "cache_write_tokens": ("cache_creation_input_token_count",),
        "reasoning_tokens": ("reasoning_output_token_count", "reasoning_token_count"),
    },
)
_GEMINI = _UsageShape(
    frozenset(("prompt_token_count", "candidates_token_count", "total_token_count")),
    {
        "input_tokens": ("prompt_token_count",),
        "output_tokens": ("candidates_token_count",),
        "total_tokens": ("total_token_count",),
        "cache_read_tokens": ("cached_content_token_count",),
        "reasoning_tokens": ("thoughts_token_count",),
    },
    {"input_tokens": ("tool_use_prompt_token_count",), "output_tokens": ("thoughts_token_count",)},
)
_ANTHROPIC = _UsageShape(  # also Bedrock
    frozenset(("cache_read_input_tokens", "cache_creation_input_tokens")),
    {
        "input_tokens": ("input_tokens",),
        "output_tokens": ("output_tokens",),
        "total_tokens": ("total_tokens",),
        "cache_read_tokens": ("cache_read_input_tokens",),
        "cache_write_tokens": ("cache_creation_input_tokens", "cache_write_input_tokens"),
    },
    {"input_tokens": ("cache_read_input_tokens", "cache_creation_input_tokens", "cache_write_input_tokens")},
)
_INTERACTIONS = _UsageShape(
    frozenset(("total_input_tokens", "total_output_tokens")),
    {
        "input_tokens": ("total_input_tokens",),
        "output_tokens": ("total_output_tokens",),
        "total_tokens": ("total_tokens",),
        "cache_read_tokens": ("total_cached_tokens",),
        "reasoning_tokens": ("total_thought_tokens", "total_reasoning_tokens"),
    },
    {
        "input_tokens": ("total_tool_use_tokens",),
        "output_tokens": ("total_thought_tokens", "total_reasoning_tokens"),
    },
)
_OURS = _UsageShape(  # also LangChain, OpenAI Responses, the AI SDK and Codex, which differ only in the details
    frozenset(_COUNTS),
    {
        "input_tokens": ("input_tokens",),
        "output_tokens": ("output_tokens",),
        "total_tokens": ("total_tokens",),
        "cache_read_tokens": (
            "cache_read_tokens",
            "input_tokens_details.cached_tokens",
            "input_token_details.cache_read",
            "input_token_details.cache_read_tokens",
            "cached_input_tokens",
        ),
        "cache_write_tokens": (
            "cache_write_tokens",
            "cache_write_input_tokens",
            "input_token_details.cache_creation",
            "input_token_details.cache_write_tokens",
        ),
        "reasoning_tokens": (
            "reasoning_tokens",
            "output_tokens_details.reasoning_tokens",
            "output_token_details.reasoning",
            "output_token_details.reasoning_tokens",
            "reasoning_output_tokens",
        ),
    },
)
_LEGACY = _UsageShape(
    frozenset(("input", "output")),
    {"input_tokens": ("input",), "output_tokens": ("output",), "total_tokens": ("total",)},
)
SHAPES = (_OPENAI_CHAT, _AGENT_FRAMEWORK, _GEMINI, _INTERACTIONS, _ANTHROPIC, _OURS, _LEGACY)
"""All shapes, in the order in which they are looked for."""


def decode_usage(data: Any, path: str = "tokens_usage", warnings: list[str] | None = None) -> TokensUsage | None:
    """Read token counts in any provider's shape; `None` if there are none. Problems are added to `warnings`."""
    report = Report()
    usage, _ = read_usage(data, (path,), report)
    if warnings is not None:
        warnings.extend(report.warnings)
    return usage


def read_usage(data: Any, path: Path, report: Report) -> tuple[TokensUsage | None, bool]:
    """Read token counts; return them and whether they hold all counts that the provider reported."""
    if data is None or isinstance(data, TokensUsage):
        return data, True
    if not isinstance(data, OBJECT):
        report.warn_invalid(path, "an object", data)
        return None, False
    keys = _plain_keys(data) if type(data) is dict else None
    if keys is None:
        return _read_counts(data, path, report)
    plan = _plans.get(keys)
    if plan is None:
        plan = _plans[keys] = _plan(data)
        if len(_plans) > _MAX_PLANS:
            _plans.clear()
    return plan.read(data) if plan else _read_counts(data, path, report)


def _read_counts(data: Mapping[Any, Any], path: Path, report: Report) -> tuple[TokensUsage | None, bool]:
    """Read token counts of any form, one by one."""
    reported = _ReportedCounts(data, path, report)
    report.server_tool_uses += reported.server_tool_uses
    shape = _shape_of(reported)
    if shape is None:
        return None, not reported.values
    counts = {name: reported.first(places) for name, places in shape.counts.items()}
    for name, places in shape.added.items():
        counts[name] = reported.add(counts[name], places)
    if shape is _OPENAI_CHAT:
        counts = _with_reasoning(counts)
    metadata = data.get("metadata")
    if isinstance(metadata, OBJECT):
        metadata = {report.valid_text(safe_str(key), (*path, "metadata")): value for key, value in metadata.items()}
    elif metadata is not None:
        report.warn_invalid((*path, "metadata"), "an object", metadata)
        reported.unread.add("metadata")
        metadata = None
    return finish_usage(counts, metadata), not reported.unread


def _shape_of(reported: "_ReportedCounts") -> _UsageShape | None:
    return next((shape for shape in SHAPES if not shape.marks.isdisjoint(reported.values)), None)


_Keys = tuple[str | tuple[str, tuple[str, ...]], ...]
_MAX_PLANS = 1000
_LARGEST = 2**63


class _UsagePlan(Struct, frozen=True):
    """The places of the counts in usage with the same keys, all of whose values are counts."""

    shape: _UsageShape
    places: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]
    """For each of our counts the paths of those that add up to it."""
    is_complete: bool

    def read(self, data: Mapping[str, Any]) -> tuple[TokensUsage | None, bool]:
        """Read the counts of usage with the keys of this plan."""
        counts: dict[str, int | None] = {}
        for name, paths in self.places:
            total = None
            for path in paths:
                count = data[path[0]] if len(path) == 1 else data[path[0]][path[1]]
                total = count if total is None else total + count
            counts[name] = total
        if self.shape is _OPENAI_CHAT:
            counts = _with_reasoning(counts)
        return finish_usage(counts), self.is_complete


_plans: dict[_Keys, _UsagePlan | None] = {}


def _plain_keys(data: dict[Any, Any]) -> _Keys | None:
    """Return the keys of usage without those of null; `None` if not all of its values are counts."""
    keys: list[str | tuple[str, tuple[str, ...]]] = []
    for key, value in data.items():
        if type(key) is not str or key == "metadata":
            return None
        if _is_plain_count(value):
            keys.append(key)
        elif type(value) is dict:
            inner = tuple([part for part, count in value.items() if count is not None])
            if not all(type(part) is str and _is_plain_count(value[part]) for part in inner):
                return None
            keys.append((key, inner))
        elif value is not None:
            return None
    return tuple(keys)


def _is_plain_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < _LARGEST


def _plan(data: Mapping[str, Any]) -> _UsagePlan | None:
    """Return the plan for usage with the keys of this one; `None` if it needs more than the places of the counts."""
    report = Report()
    reported = _ReportedCounts(data, (), report)
    shape = _shape_of(reported)
    if shape is None or any(place.partition(".")[0] in SERVER_TOOL_USES for place in reported.values):
        return None
    places: dict[str, list[str]] = {}
    for name, own in shape.counts.items():
        places[name] = [place for place in own if place in reported.values][:1]
    read = {place for found in places.values() for place in found}
    for name, more in shape.added.items():
        added = [place for place in more if place in reported.values]
        read.update(added)
        places[name] += added if places[name] else ()
    if any(type(reported.values[place][1]) is not int for place in read):
        return None
    paths = [(name, tuple([reported.values[place][0] for place in found])) for name, found in places.items()]
    return _UsagePlan(shape, tuple(paths), read.issuperset(reported.unread))


def _with_reasoning(counts: dict[str, int | None]) -> dict[str, int | None]:
    """Add reasoning tokens to the output if the total shows that they are not included (xAI)."""
    names = ("input_tokens", "output_tokens", "reasoning_tokens", "total_tokens")
    input_tokens, output_tokens, reasoning, total = (counts.get(name) for name in names)
    if (
        input_tokens is None
        or output_tokens is None
        or not reasoning
        or total != input_tokens + output_tokens + reasoning
    ):
        return counts
    return {**counts, "output_tokens": output_tokens + reasoning}


def finish_usage(counts: Mapping[str, int | None], metadata: dict[str, Any] | None = None) -> TokensUsage | None:
    """Compute a missing total from its parts; if a reported total differs, record the sum in the metadata."""
    if not any(count is not None for count in counts.values()):
        return None
    input_tokens, output_tokens, total = (
        counts.get("input_tokens"),
        counts.get("output_tokens"),
        counts.get("total_tokens"),
    )
    if input_tokens is None or output_tokens is None:
        return TokensUsage(**counts, metadata=metadata)
    if total is None:
        return TokensUsage(**{**counts, "total_tokens": input_tokens + output_tokens}, metadata=metadata)
    if total != input_tokens + output_tokens:
        metadata = {**(metadata or {}), "sum_tokens": input_tokens + output_tokens}
    return TokensUsage(**counts, metadata=metadata)


def add_usage(turns: Iterable[TokensUsage | None]) -> TokensUsage | None:
    """Add up the usage of several turns; a count that any turn lacks is unknown in the sum.

    Never pass a cumulative counter (Codex reports one): its last value is the sum already.
    """
    known = list(turns)
    if not known or any(turn is None for turn in known):
        return None
    sums: dict[str, int | None] = {}
    for name in _COUNTS:
        counts = [getattr(turn, name) for turn in known]
        sums[name] = None if None in counts else sum(counts)
    return finish_usage(sums)


_USAGE_KEYS = ("usage", "tokens_usage", "token_usage", "usage_metadata", "usage_details", "metrics")
_METADATA_KEYS = (
    *("tokens_usage", "usage", "usage_metadata", "token_usage", "tokensUsage", "usageMetadata", "tokenUsage"),
)
"""Keys of a message's metadata that may hold its usage."""
_WRAPPER_KEY = "response_metadata"
"""The key under which LangChain keeps the metadata of the model's interface."""
_CALLS = ("tool_calls", "toolCalls", "function_call")
"""Fields that only assistant messages have."""
_USAGE_CONTAINERS = ("meta", "metadata", "response_metadata")


def usage_of(message: Mapping[Any, Any]) -> Any:
    """Return the usage of a message: its own field, else one in its metadata."""
    containers = [message.get(key) for key in _USAGE_CONTAINERS]
    for place in (message, *containers):
        if isinstance(place, OBJECT):
            for key in _USAGE_KEYS:
                if isinstance(place.get(key), (*OBJECT, TokensUsage)):
                    return place[key]
    return None


def lift_usage(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the messages with the usage of their metadata in a field of its own; the same tuple if none has any."""
    found = {at: usage for at, message in enumerate(messages) if (usage := _usage_in_metadata(message)) is not None}
    if not found:
        return messages
    return tuple(
        replace(message, tokens_usage=found[at]) if at in found else message for at, message in enumerate(messages)
    )


def _usage_in_metadata(message: Message) -> TokensUsage | None:
    metadata = message.metadata
    if metadata is None or message.tokens_usage is not None or message.role != "assistant":
        return None
    wrapped = metadata.get(_WRAPPER_KEY)
    for place in (metadata, wrapped) if isinstance(wrapped, dict) else (metadata,):
        for key in _METADATA_KEYS:
            if isinstance(place.get(key), OBJECT) and (usage := decode_usage(place[key])) is not None:
                return usage
    return None


def sum_usage(items: Iterable[Any]) -> TokensUsage | None:
    """Add up the usage of the assistant messages; the sum is unknown if any has none."""
    turns = [item for item in items if isinstance(item, OBJECT) and _is_turn(item)]
    return add_usage([decode_usage(usage_of(turn)) for turn in turns])


def _is_turn(item: Mapping[Any, Any]) -> bool:
    role = item.get("role")
    return role in ("assistant", "model", "ai") or (role is None and any(item.get(key) for key in _CALLS))


class _ReportedCounts:
    """A provider's counts by snake_case path, and the counts that are still unread."""

    def __init__(self, data: Mapping[Any, Any], path: Path, report: Report) -> None:
        self.values: dict[str, tuple[tuple[Any, ...], Any]] = {}
        """Each count with the keys of its path."""
        self._path = path
        self._report = report
        self._malformed: set[str] = set()
        self.unread: set[str] = set()
        for key, value in data.items():
            if value is None or key == "metadata":
                continue
            place = snake_key(safe_str(key))
            self.values[place] = (key,), value
            if type(value) is int or not isinstance(value, OBJECT):
                self.unread.add(place)
                continue
            for part, count in value.items():
                if count is not None:
                    inner = f"{place}.{snake_key(safe_str(part))}"
                    self.values[inner] = (key, part), count
                    self.unread.add(inner)

    @property
    def server_tool_uses(self) -> int:
        """Number of calls of server-side tools that the vendor counted."""
        counts = [value for place, (_, value) in self.values.items() if place.partition(".")[0] in SERVER_TOOL_USES]
        return sum(count for count in counts if is_count(count))

    def first(self, places: tuple[str, ...]) -> int | None:
        """Return the count at the first of these paths that has one."""
        for place in places:
            if place in self.values:
                return self._count(place)
        return None

    def add(self, count: int | None, places: tuple[str, ...]) -> int | None:
        """Add further counts to a count; the sum is unknown if any is malformed."""
        for place in places:
            if place in self.values:
                part = self._count(place)
                count = None if count is None or part is None else count + part
        return count

    def _count(self, place: str) -> int | None:
        keys, value = self.values[place]
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if is_count(value):
            self.unread.discard(place)
            return value  # type: ignore[no-any-return]  # a count, as just checked
        if place not in self._malformed:
            self._malformed.add(place)
            self._report.warn_invalid((*self._path, *map(safe_str, keys)), "a whole number of at least 0", value)
        return None


def counts_server_tools(fields: Mapping[Any, Any]) -> bool:
    """Return whether the usage among the fields of an object counts calls of server-side tools."""
    for key, usage in fields.items():
        if isinstance(usage, OBJECT) and "usage" in safe_str(key).lower():
            for name, counts in usage.items():
                values = counts.values() if isinstance(counts, OBJECT) else (counts,)
                if snake_key(safe_str(name)) in SERVER_TOOL_USES and any(is_count(each) and each for each in values):
                    return True
    return False
