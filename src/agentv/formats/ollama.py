"""Ollama: replies of `chat` and `generate`, and their streams."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import decode_fields
from agentv.formats.usage import add_usage, decode_usage
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]


def is_ollama(value: Any) -> bool:
    """Return whether an object is a reply of Ollama or a chunk of one."""
    if not isinstance(value, OBJECT) or not isinstance(value.get("done"), bool):
        return False
    return isinstance(value.get("message"), OBJECT) or isinstance(value.get("response"), str)


def assemble_ollama(values: Sequence[_Object]) -> dict[str, Any]:
    """Assemble the chunks of a reply; several final chunks are the turns of one conversation."""
    turns: list[list[_Object]] = [[]]
    for value in filter(is_ollama, values):
        turns[-1].append(value)
        if value.get("done") is True:
            turns.append([])
    assembled = [_assemble_turn(turn) for turn in turns if turn]
    if len(assembled) == 1:
        return assembled[0]
    messages = [{key: item for key, item in turn["message"].items() if key != "thinking"} for turn in assembled]
    thoughts = [turn["message"]["thinking"] for turn in assembled if turn["message"].get("thinking")]
    return {
        "output_messages": messages,
        "usage": add_usage([decode_usage(_counts(turn)) for turn in assembled]),
        "reasoning": "\n\n".join(thoughts) or None,
        "metadata": {key: assembled[-1][key] for key in ("model", "done_reason") if assembled[-1].get(key) is not None},
        "done": assembled[-1].get("done"),
    }


def _assemble_turn(values: Sequence[_Object]) -> dict[str, Any]:
    texts: dict[str, list[str]] = {"content": [], "thinking": []}
    calls: list[Any] = []
    others: dict[str, Any] = {}
    last: _Object = {}
    for value in values:
        last = value
        piece = value.get("message")
        piece = piece if isinstance(piece, OBJECT) else {"content": value.get("response")}
        for name, pieces in texts.items():
            if isinstance(piece.get(name), str):
                pieces.append(piece[name])
        calls += objects_in(piece.get("tool_calls"))
        for key, item in piece.items():
            if isinstance(item, (list, *OBJECT)) and item and key != "tool_calls":
                others.setdefault(key, []).append(item)
    message = {**others, "role": "assistant", **{name: "".join(pieces) for name, pieces in texts.items() if pieces}}
    return {**last, "message": {**message, "tool_calls": calls} if calls else message}


def _counts(value: _Object) -> dict[str, Any] | None:
    counts = {"input_tokens": value.get("prompt_eval_count"), "output_tokens": value.get("eval_count")}
    return counts if any(count is not None for count in counts.values()) else None


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    del reader
    message = value.get("message")
    if not isinstance(message, OBJECT):
        message = {"role": "assistant", "content": value["response"]}
    thoughts = message.get("thinking")
    reply = {
        "output_messages": [{"role": "assistant", **{key: item for key, item in message.items() if key != "thinking"}}],
        "reasoning": thoughts if isinstance(thoughts, str) else None,
        "usage": _counts(value),
        "metadata": {key: value[key] for key in ("model", "done_reason") if value.get(key) is not None},
        "raw_response": value,
    }
    return decode_fields(reply)


FORMAT = ReplyFormat(
    name="ollama",
    detect=is_ollama,
    read=_read,
    keys=frozenset(
        ("message", "response", "prompt_eval_count", "eval_count", "model", "done", "done_reason", "context")
    ),
)
