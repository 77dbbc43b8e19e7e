"""How a reply is recognised that has one of the shapes which replies commonly have, and what it says."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentv.formats.json import describe
from agentv.formats.langchain import unwrap_langchain
from agentv.formats.messages import LANGCHAIN_TYPES
from agentv.formats.reading import OBJECT
from agentv.formats.response import decode_response
from agentv.formats.returned import decode_returned
from agentv.formats.shape_gemini import fold_gemini, objects_in
from agentv.formats.shape_vendors import VENDORS, is_list
from agentv.model.response import ProviderResponse, ResponseError

TEXT_KEYS = ("text", "answer", "response", "output", "message", "content", "reply")
"""Where an answer that is nothing but a text usually stands."""
_OWN = ("output_messages", "outputMessages", "trace", "trace_ref", "traceRef", "trace_summary", "traceSummary")
_ROLES = frozenset((
    *("assistant", "user", "system", "tool", "developer", "function", "model"),
    *LANGCHAIN_TYPES,
))  # fmt: skip
_FAILED = frozenset(("error", "failed", "failure"))
_MAX_KEYS = 20
_MAX_NAME = 40
_MAX_LOOKED_AT = 1_000
_NO_ANSWER = frozenset(("type", "event", "id", "role", "object", "model", "status", "name", "kind", "created_at"))
"""Keys under which a text says what something is."""


class Shaped(NamedTuple):
    """A reply, and what it was recognised by."""

    shape: str
    response: ProviderResponse


def recognise(value: Any, prompt: str = "") -> Shaped | None:
    """Read a reply in one of the common shapes; `None` when it has none of them, or could have several.

    `prompt` is what the user said last: messages up to it are the conversation so far, which some agents send back.
    """
    if isinstance(value, str):
        return Shaped("string", ProviderResponse(text=value)) if value.strip() else None
    if is_list(value):
        return _read_list(value, prompt)
    if not isinstance(value, OBJECT):
        return None
    for shape, fits, read in _SHAPES:
        if fits(value):
            found = read(value, prompt)
            return found if isinstance(found, Shaped) else Shaped(shape, found)
    return _read_text(value)


def _read_list(items: Sequence[Any], prompt: str) -> Shaped | None:
    if items and all(isinstance(item, OBJECT) and is_list(item.get("candidates")) for item in items):
        return recognise(fold_gemini(items), prompt)
    return Shaped("messages", read_messages(items, prompt)) if _are_messages(items) else None


def read_messages(items: Sequence[Any], prompt: str) -> ProviderResponse:
    """Read messages in any shape, without the conversation that led up to them."""
    return _with_doubts(decode_returned(items, prompt))


def _with_doubts(response: ProviderResponse) -> ProviderResponse:
    """Give the reply with a warning when it may hold calls in a form that is not known: "none" would be a lie."""
    for message in response.output_messages or ():
        for block in objects_in(message.content) if not message.tool_calls else ():
            kind = block.get("type")
            name = kind if isinstance(kind, str) and kind else describe(next(iter(block), ""))
            if "tool" in name.lower() or "function" in name.lower():
                about = f"a content block {name[:_MAX_NAME]!r} looks like a call in a form that is not known"
                return replace(response, warnings=(*response.warnings, f"{about}: it is not counted"))
    return response


def _are_messages(items: Any) -> bool:
    """Tell a conversation; one who speaks in it may have a role that nobody else has."""
    return is_list(items) and any(map(_is_message, items)) and all(_is_message(item) or _speaks(item) for item in items)


def _speaks(item: Any) -> bool:
    kind = (item.get("role") or item.get("type")) if isinstance(item, OBJECT) else None
    return isinstance(kind, str) and bool(kind) and isinstance(item.get("content"), (str, list, tuple))


def _is_message(item: Any) -> bool:
    if not isinstance(item, OBJECT):
        return False
    if any(isinstance(kind, str) and kind in _ROLES for kind in (item.get("role"), item.get("type"))):
        return True
    if isinstance(item.get("author"), str):  # an event of ADK's
        return isinstance(item.get("content"), OBJECT)
    return item.get("kind") in ("request", "response") and is_list(item.get("parts"))  # Pydantic AI's


def _fits_own(value: Mapping[str, Any]) -> bool:
    if any(value.get(name) is not None for name in _OWN):
        return True
    return isinstance(value.get("text"), str) and not _fits_state(value)


def _fits_state(value: Mapping[str, Any]) -> bool:
    return _are_messages(value.get("messages"))


def _read_state(value: Mapping[str, Any], prompt: str) -> Shaped:
    """Read the messages of a state, and beside them what any reply may have."""
    said = read_messages(value["messages"], prompt)
    beside = decode_response({key: item for key, item in value.items() if key not in ("messages", "__error__")})
    error = beside.error or _state_error(value)
    merged = replace(
        beside,
        success=beside.success and error is None,
        text=beside.text or said.text,
        output_messages=said.output_messages,
        reasoning=beside.reasoning or said.reasoning,
        tokens_usage=beside.tokens_usage or said.tokens_usage,
        error=error,
        metadata={**(beside.metadata or {}), **(said.metadata or {})} or None,
        warnings=(*said.warnings, *beside.warnings, *_interruption(value)),
    )
    kinds = [unwrap_langchain(item).get("type") for item in value["messages"]]
    is_langchain = any(isinstance(kind, str) and kind in _ROLES for kind in kinds)
    return Shaped("langgraph" if is_langchain else "messages", merged)


def _interruption(value: Mapping[str, Any]) -> tuple[str, ...]:
    waits = "the graph waits for somebody (`__interrupt__`), and this is not its answer yet"
    return (waits,) if value.get("__interrupt__") else ()


def _state_error(value: Mapping[str, Any]) -> ResponseError | None:
    """Tell what LangGraph puts into a state in place of an answer."""
    error = value.get("__error__")
    if error is None:
        return None
    told = error.get("message") or error.get("error") if isinstance(error, OBJECT) else error
    return ResponseError(kind="agent", message=str(told))


def _fits_failed_state(value: Mapping[str, Any]) -> bool:
    return value.get("__error__") is not None


def _read_failed_state(value: Mapping[str, Any], prompt: str) -> ProviderResponse:
    del prompt
    return ProviderResponse(success=False, error=_state_error(value))


def _fits_values(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("values"), OBJECT) and _fits_state(value["values"])


def _read_values(value: Mapping[str, Any], prompt: str) -> Shaped:
    return _read_state(value["values"], prompt)


def _fits_wrapped(value: Mapping[str, Any]) -> bool:
    inner = value.get("output")
    return isinstance(inner, OBJECT) and (_fits_state(inner) or _is_message(inner))


def _read_wrapped(value: Mapping[str, Any], prompt: str) -> Shaped | ProviderResponse:
    inner = value["output"]
    return _read_state(inner, prompt) if _fits_state(inner) else Shaped("langserve", read_messages([inner], prompt))


def _fits_message(value: Mapping[str, Any]) -> bool:
    return _is_message(value) and ("content" in value or is_list(value.get("parts")))


def _read_message(value: Mapping[str, Any], prompt: str) -> ProviderResponse:
    return read_messages([value], prompt)


def _fits_failure(value: Mapping[str, Any]) -> bool:
    """Tell a reply that says it failed: its words are not an answer."""
    if value.get("success") is False or value.get("ok") is False:
        return True
    status = value.get("status")
    return (isinstance(status, str) and status.lower() in _FAILED) or _has_only_error(value)


def _has_only_error(value: Mapping[str, Any]) -> bool:
    error = value.get("error")
    return isinstance(error, (str, *OBJECT)) and bool(error) and not _texts(value)


def _read_failure(value: Mapping[str, Any], prompt: str) -> ProviderResponse:
    del prompt
    error = value.get("error") or value.get("detail") or next((value[key] for key in _texts(value)), "no reason given")
    others = {key: item for key, item in value.items() if key not in TEXT_KEYS}
    return decode_response({**others, "success": False, "error": error})


def _texts(value: Mapping[str, Any]) -> list[str]:
    return [key for key in TEXT_KEYS if isinstance(value.get(key), str)]


def _read_text(value: Mapping[str, Any]) -> Shaped | None:
    """Read an object with a text under one of the usual keys; which of two would be a guess."""
    keys = _texts(value)
    if len(keys) != 1:
        return None
    others = {key: item for key, item in value.items() if key != keys[0]}
    return Shaped(keys[0], decode_response({**others, "text": value[keys[0]]}))


def _own(value: Mapping[str, Any], prompt: str) -> ProviderResponse:
    del prompt
    return decode_response(value)


_Fits = Callable[[Mapping[str, Any]], bool]
_Read = Callable[[Mapping[str, Any], str], Shaped | ProviderResponse]
_SHAPES: tuple[tuple[str, _Fits, _Read], ...] = (
    *VENDORS,
    ("agentv", _fits_own, _own),
    ("langgraph", _fits_failed_state, _read_failed_state),
    ("langgraph", _fits_state, _read_state),
    ("langgraph", _fits_values, _read_values),
    ("langserve", _fits_wrapped, _read_wrapped),
    ("message", _fits_message, _read_message),
    ("error", _fits_failure, _read_failure),
)
"""The first that fits is it: the more a shape demands, the earlier it stands."""


def describe_shape(value: Any) -> str:
    """Say what a reply that was not recognised is, by its keys."""
    if isinstance(value, OBJECT):
        keys = [repr(str(key)[:_MAX_NAME]) for key in value]
        more = ", …" if len(keys) > _MAX_KEYS else ""
        return f"an object with the keys {', '.join(keys[:_MAX_KEYS])}{more}" if keys else "an empty object"
    if is_list(value):
        if not value:
            return "an empty list"
        return f"a list of {len(value):,}, of which the first is {describe_shape(value[0])}"
    if value is None:
        return "null"
    return "an empty text" if value == "" else f"a {'text' if isinstance(value, str) else type(value).__name__}"


def longest_text(value: Any) -> str | None:
    """Point at the text in a reply that is most likely its answer, for somebody to confirm."""
    best: tuple[bool, bool, int, str] | None = None
    todo: deque[tuple[str, Any, Any]] = deque([("", None, value)])
    for _ in range(_MAX_LOOKED_AT):
        if not todo:
            break
        path, key, item = todo.popleft()
        if isinstance(item, str) and path:
            rank = (key in TEXT_KEYS, key not in _NO_ANSWER, len(item))
            if best is None or rank > best[:3]:
                best = *rank, path
        elif isinstance(item, OBJECT):
            todo += [
                (f"{path}/{str(key).replace('~', '~0').replace('/', '~1')}", key, each) for key, each in item.items()
            ]
        elif is_list(item):
            todo += [(f"{path}/{at}", key, each) for at, each in enumerate(item[:_MAX_LOOKED_AT])]
    return None if best is None else best[3]
