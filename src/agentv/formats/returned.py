"""What a Python function returned, read as a reply: plain data, or objects of the libraries that agents use."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.errors import AgentVError, FormatError
from agentv.formats.fields import OBJECT
from agentv.formats.messages import LANGCHAIN_TYPES
from agentv.formats.normalize import settle_made
from agentv.formats.objects import dump_model, library_of, plain
from agentv.formats.response import REPLY_KEYS, decode_response
from agentv.jsonio import dump_json
from agentv.model.message import Message
from agentv.model.response import ProviderResponse

_OWN: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("output_messages", "outputMessages", "messages", "trace"), (list, tuple)),
    **dict.fromkeys(("text", "trace_ref", "traceRef"), (str,)),
    **dict.fromkeys(("trace_summary", "traceSummary"), OBJECT),
    "error": (str, *OBJECT),
    "success": (bool,),
}
"""Which fields, holding what, tell a reply in our own form."""
_NOTHING = "the function returned nothing; return a text, messages, or a reply"
_SAYS_NOTHING = "the reply has neither `text` nor `output_messages`"


def decode_returned(value: Any, prompt: str = "") -> ProviderResponse:
    """Read a returned value; messages up to the prompt are what the agent was asked, and not its output."""
    try:
        return _read(value, prompt)
    except AgentVError:
        raise
    except Exception as error:
        copy = plain(value)
        if type(copy) not in (dict, list):
            raise
        response = _read(copy, prompt)
        warning = f"reply: read from a plain copy of it, for one of its values raised {type(error).__name__}"
        return replace(response, warnings=(*response.warnings, warning))


def _read(value: Any, prompt: str) -> ProviderResponse:
    if isinstance(value, ProviderResponse):
        return settle_made(value)
    if isinstance(value, str):
        return ProviderResponse(text=value)
    if value is None:
        raise FormatError(_NOTHING)
    if isinstance(value, Message):
        value = [value]
    if isinstance(value, (list, tuple)):
        return _read_list(value, prompt)
    if isinstance(value, OBJECT):
        return _read_mapping(value, prompt)
    return _read_object(value, prompt)


def _read_list(items: Sequence[Any], prompt: str) -> ProviderResponse:
    read = _reader_of(items)
    if read is not None:
        return read(items, prompt)
    if items and all(map(_is_no_message, items)):
        return _own_answer(items)
    return _without_echo(decode_response(items), prompt)


def _read_mapping(value: Mapping[Any, Any], prompt: str) -> ProviderResponse:
    """Read a reply in its fields, or a state that holds messages among other things."""
    for key in ("messages", "output_messages"):
        items = value.get(key)
        if not isinstance(items, (list, tuple)):
            continue
        read = _reader_of(items)
        if read is not None:
            said = read(items, prompt)
            others = {name: plain(item) for name, item in value.items() if name != key}
            return _joined(said, decode_response(others))
    if isinstance(value.get("output_messages"), list) or any(
        isinstance(value.get(key), kinds) for key, kinds in _OWN.items()
    ):
        return _without_echo(decode_response(value), prompt)
    return _read_item(value, prompt) or _foreign(value, prompt)


def _read_object(value: Any, prompt: str) -> ProviderResponse:
    library = library_of(value)
    if library == "pydantic_ai" and hasattr(value, "new_messages"):
        from agentv.formats.pydantic_ai import decode_pydantic_ai_run  # noqa: PLC0415 - only whoever uses it

        return decode_pydantic_ai_run(value)
    if library == "openai_agents" and hasattr(value, "new_items"):
        from agentv.formats.openai_agents import decode_openai_agents_run  # noqa: PLC0415 - as above

        return decode_openai_agents_run(value)
    if library == "adk" and isinstance(getattr(value, "events", None), (list, tuple)):  # a session
        return _read_list(value.events, prompt)
    if library is not None:
        return _read_list([value], prompt)
    if dump_model(value) is not None or hasattr(type(value), "__dataclass_fields__"):
        return decode_returned(plain(value), prompt)
    return decode_response(value)  # which says what it expected instead


def _read_item(value: Mapping[Any, Any], prompt: str) -> ProviderResponse | None:
    """Read a single message or event in the form of one of the libraries."""
    read = _reader_of([value])
    return None if read is None else read([value], prompt)


def _foreign(value: Mapping[Any, Any], prompt: str) -> ProviderResponse:
    """Read an object that has none of a reply's fields: a model's own reply, or an answer in fields of its own."""
    from agentv.formats.detect import recognise  # noqa: PLC0415 - few functions return such a thing

    shaped = recognise(value, prompt)
    if shaped is not None:
        return shaped.response
    if isinstance(value.get("role"), str) and not value.keys().isdisjoint(("content", "tool_calls", "toolCalls")):
        return decode_response([value])
    if not value or not value.keys().isdisjoint(REPLY_KEYS):
        response = decode_response(value)
        return replace(response, warnings=(*response.warnings, _SAYS_NOTHING)) if response.success else response
    return _own_answer(value)


def _own_answer(value: Any) -> ProviderResponse:
    return ProviderResponse(text=dump_json(plain(value)).decode(), raw_response=plain(value))


def _is_no_message(item: Any) -> bool:
    """Tell whether this is data, and not even a message that lacks something."""
    if dump_model(item) is not None or hasattr(type(item), "__dataclass_fields__"):
        item = plain(item)
    if isinstance(item, OBJECT):
        return item.keys().isdisjoint(("role", "content", "type", "tool", "tool_calls", "toolCalls"))
    return item is None or isinstance(item, (str, int, float, list, tuple))


_Read = Callable[[Sequence[Any], str], ProviderResponse]


def _reader_of(items: Sequence[Any]) -> _Read | None:
    """Tell whose messages these are by the first that is not everybody's; `None` when all of them are."""
    for item in items:
        if type(item) is dict and "role" in item and "type" not in item and type(item.get("content")) is not dict:
            continue  # as most are
        if isinstance(item, OBJECT):
            read = _reader_of_data(item)
            if read is not None or "role" not in item:
                return read
        elif not isinstance(item, Message):
            library = library_of(item)
            return None if library is None else _READERS.get(library)
    return None


def _reader_of_data(item: Mapping[Any, Any]) -> _Read | None:
    if item.get("kind") in ("request", "response") and isinstance(item.get("parts"), (list, tuple)):
        return _read_pydantic_ai
    content = item.get("content")
    if isinstance(content, OBJECT) and "parts" in content and "role" not in item:  # which Mastra's messages have
        return _read_adk
    kind = item.get("type")
    if not isinstance(kind, str):
        return None
    if kind in LANGCHAIN_TYPES:
        return _read_langchain
    if "role" in item:
        return None
    is_item = "raw_item" in item or kind == "reasoning" or kind.endswith(("_call", "_call_output"))
    return _read_openai_agents if is_item else None


def reader_of_items(items: Sequence[Any]) -> _Read | None:
    """Tell whose items these are, where they are no messages in themselves."""
    read = _reader_of(items)
    return read if read in (_read_pydantic_ai, _read_openai_agents, _read_adk) else None


def _read_langchain(items: Sequence[Any], prompt: str) -> ProviderResponse:
    from agentv.formats.langchain import decode_langchain, unwrap_langchain  # noqa: PLC0415 - only whoever uses it

    messages = [unwrap_langchain(plain(item)) for item in items]
    return decode_langchain(_added(messages, prompt, _langchain_words))


def _read_pydantic_ai(items: Sequence[Any], prompt: str) -> ProviderResponse:
    from agentv.formats.pydantic_ai import decode_pydantic_ai  # noqa: PLC0415 - as above

    return decode_pydantic_ai(_added([plain(item) for item in items], prompt, _pydantic_ai_words))


def _read_openai_agents(items: Sequence[Any], prompt: str) -> ProviderResponse:
    from agentv.formats.openai_agents import decode_openai_agents, plain_item  # noqa: PLC0415 - as above

    plainly = [plain_item(item) if hasattr(item, "raw_item") else plain(item) for item in items]
    return decode_openai_agents(_added(plainly, prompt, _openai_agents_words))


def _read_adk(items: Sequence[Any], prompt: str) -> ProviderResponse:
    from agentv.formats.adk import decode_adk  # noqa: PLC0415 - as above

    return decode_adk(_added([plain(item) for item in items], prompt, _adk_words))


_READERS: dict[str, _Read] = {
    "langchain": _read_langchain,
    "pydantic_ai": _read_pydantic_ai,
    "openai_agents": _read_openai_agents,
    "adk": _read_adk,
}

_Words = Callable[[Any], str | None]
"""What the user said in this item; an empty text for what somebody else told the agent, `None` for its own."""


def _added(items: list[Any], prompt: str, words: _Words) -> list[Any]:
    """Give what the agent added: all after the last time that the user said this, else all after what it was told."""
    if prompt:
        for position in range(len(items) - 1, -1, -1):
            if words(items[position]) == prompt:
                return items[position + 1 :]
    first = next((at for at, item in enumerate(items) if words(item) is None), len(items))
    return items[first:]


def _without_echo(response: ProviderResponse, prompt: str) -> ProviderResponse:
    """Give the reply without the conversation that led up to it, where the agent sent that back."""
    messages = response.output_messages or ()
    if not prompt or not any(message.role == "user" for message in messages):
        return response
    for position in range(len(messages) - 1, -1, -1):
        if messages[position].role == "user" and messages[position].text == prompt:
            return replace(response, output_messages=messages[position + 1 :])
    return response


def _langchain_words(item: Any) -> str | None:
    kind = item.get("type") or item.get("role") if isinstance(item, OBJECT) else None
    if kind in ("human", "user", "HumanMessageChunk"):
        return _text_of(item.get("content"))
    return "" if kind in ("system", "developer", "SystemMessageChunk") else None


def _pydantic_ai_words(item: Any) -> str | None:
    if not isinstance(item, OBJECT) or item.get("kind") != "request":
        return None
    listed = item.get("parts")
    parts = [part for part in listed if isinstance(part, OBJECT)] if isinstance(listed, (list, tuple)) else []
    if not all(part.get("part_kind") in ("system-prompt", "user-prompt") for part in parts):
        return None
    return "".join(_text_of(part.get("content")) for part in parts if part.get("part_kind") == "user-prompt")


def _openai_agents_words(item: Any) -> str | None:
    raw = item.get("raw_item", item) if isinstance(item, OBJECT) else None
    role = raw.get("role") if isinstance(raw, OBJECT) else None
    if role == "user":
        return _text_of(item.get("raw_item", item).get("content"))
    return "" if role in ("system", "developer") else None


def _adk_words(item: Any) -> str | None:
    if not isinstance(item, OBJECT) or item.get("author") not in ("user", "system"):
        return None
    content = item.get("content")
    return _text_of(content.get("parts")) if isinstance(content, OBJECT) and item["author"] == "user" else ""


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, (list, tuple)) else ()
    texts = [part if isinstance(part, str) else part.get("text") for part in parts if isinstance(part, (str, *OBJECT))]
    return "".join(text for text in texts if isinstance(text, str))


def _joined(said: ProviderResponse, beside: ProviderResponse) -> ProviderResponse:
    """Put the messages of a library into the reply whose other fields stood beside them."""
    return replace(
        beside,
        success=beside.success and said.success,
        text=beside.text or said.text,
        output_messages=said.output_messages,
        reasoning=beside.reasoning or said.reasoning,
        tokens_usage=beside.tokens_usage or said.tokens_usage,
        error=beside.error or said.error,
        metadata={**(said.metadata or {}), **(beside.metadata or {})} or None,
        warnings=(*said.warnings, *beside.warnings),
    )
