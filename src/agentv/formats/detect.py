"""Detect which of the known shapes a reply has, and read it."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from agentv.formats.anthropic import decode_message
from agentv.formats.fields import OBJECT
from agentv.formats.gemini import decode_gemini, fold_gemini, is_gemini, objects_in
from agentv.formats.langchain import unwrap_langchain
from agentv.formats.messages import LANGCHAIN_TYPES
from agentv.formats.openai_chat import decode_completion
from agentv.formats.openai_responses import decode_response_object, error_in_response
from agentv.formats.response import decode_response
from agentv.formats.returned import decode_returned
from agentv.jsonio import describe
from agentv.model.response import ProviderResponse, ResponseError

_Object = Mapping[str, Any]


def is_list(value: Any) -> bool:
    """Tell whether a value is a list of any kind."""
    return isinstance(value, (list, tuple))


def _is_chat(value: _Object) -> bool:
    choice = next(objects_in(value.get("choices")), None)
    return choice is not None and (isinstance(choice.get("message"), OBJECT) or isinstance(choice.get("text"), str))


def _read_chat(value: _Object, prompt: str) -> ProviderResponse:
    del prompt
    choices = list(objects_in(value["choices"]))
    if not isinstance(choices[0].get("message"), OBJECT):  # the older completions: nothing but a text
        choices = [{**each, "message": {"role": "assistant", "content": each.get("text")}} for each in choices]
    return decode_completion({**value, "choices": choices})


def _is_responses(value: _Object) -> bool:
    output = value.get("output")
    if not is_list(output):
        return False
    return value.get("object") == "response" or any(isinstance(item.get("type"), str) for item in objects_in(output))


def _read_responses(value: _Object, prompt: str) -> ProviderResponse:
    del prompt
    error = error_in_response(value)
    return decode_response_object(value) if error is None else decode_response({"error": error})


def _is_anthropic(value: _Object) -> bool:
    return is_list(value.get("content")) and value.get("type") == "message" and value.get("role") == "assistant"


def _read_anthropic(value: _Object, prompt: str) -> ProviderResponse:
    del prompt
    return decode_message(value)


def is_ollama(value: _Object) -> bool:
    """Tell whether this is an answer of Ollama's, or a piece of one."""
    return isinstance(value.get("done"), bool) and (
        isinstance(value.get("message"), OBJECT) or isinstance(value.get("response"), str)
    )


def _read_ollama(value: _Object, prompt: str) -> ProviderResponse:
    del prompt
    message = value.get("message")
    if not isinstance(message, OBJECT):
        message = {"role": "assistant", "content": value["response"]}
    counts = {"input_tokens": value.get("prompt_eval_count"), "output_tokens": value.get("eval_count")}
    thoughts = message.get("thinking")
    reply = {
        "output_messages": [{"role": "assistant", **{key: each for key, each in message.items() if key != "thinking"}}],
        "reasoning": thoughts if isinstance(thoughts, str) else None,
        "usage": counts if any(count is not None for count in counts.values()) else None,
        "metadata": {key: value[key] for key in ("model", "done_reason") if value.get(key) is not None},
        "raw_response": value,
    }
    return decode_response(reply)


VENDORS: tuple[tuple[str, Callable[[_Object], bool], Callable[[_Object, str], ProviderResponse]], ...] = (
    ("openai_chat", _is_chat, _read_chat),
    ("openai_responses", _is_responses, _read_responses),
    ("anthropic", _is_anthropic, _read_anthropic),
    ("gemini", is_gemini, decode_gemini),
    ("ollama", is_ollama, _read_ollama),
)


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
