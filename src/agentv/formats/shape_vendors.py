"""Whole answers as the makers of models write them, told apart by what only they have."""

from collections.abc import Callable, Mapping
from typing import Any

from agentv.formats.anthropic import decode_message
from agentv.formats.completions import decode_completion
from agentv.formats.reading import OBJECT
from agentv.formats.response import decode_response
from agentv.formats.responses import decode_response_object, error_in_response
from agentv.formats.shape_gemini import decode_gemini, is_gemini, objects_in
from agentv.model.response import ProviderResponse

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
