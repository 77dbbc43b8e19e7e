"""browser-use: agent histories, whose actions are calls named after the tools."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentv.formats.builder import MessageListBuilder, other_fields
from agentv.formats.fields import OBJECT, objects_in
from agentv.formats.response import add_fields
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_THOUGHTS = ("thinking", "evaluation_previous_goal", "memory", "next_goal")
_BESIDE = "interacted_element"
"""Key beside an action that is not an action."""


def _is_step(item: Any) -> bool:
    return isinstance(item, OBJECT) and "model_output" in item and isinstance(item.get("result"), (list, tuple))


def _detect(value: Any) -> bool:
    steps = value.get("history") if isinstance(value, OBJECT) else None
    return isinstance(steps, (list, tuple)) and bool(steps) and all(map(_is_step, steps))


def _read(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read each step: reasoning, actions, and the result of each action in order."""
    builder, answer = MessageListBuilder(), None
    for step in value["history"]:
        output = step["model_output"]
        output = output if isinstance(output, OBJECT) else {}
        thoughts = [str(output[key]) for key in _THOUGHTS if output.get(key)]
        builder.add_message("assistant", "\n".join(thoughts) or None)
        calls = [builder.add_call(name, arguments) for name, arguments in _actions(output.get("action"))]
        results = list(objects_in(step["result"]))
        for call, result in zip(calls, results, strict=False):
            call.update(_outcome(result))
        if len(results) > len(calls):
            builder.add_unknown({"type": "result", "results": results[len(calls) :]})
        ended = [result.get("extracted_content") for result in results if result.get("is_done") is True]
        answer = next((item for item in ended if isinstance(item, str)), answer)
    if answer is not None:
        builder.add_message("assistant", answer)
    response = reader.read_messages(builder.build(), declared=True)
    return add_fields(response, other_fields(value, "history", "usage"), tokens_usage=_usage(value.get("usage")))


def _actions(actions: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the name and input of each action, an object keyed by its tool."""
    for action in objects_in(actions):
        for name, arguments in action.items():
            if name != _BESIDE and arguments is not None:
                yield name, arguments


def _outcome(result: _Object) -> dict[str, Any]:
    error = result.get("error")
    if error:
        return {"status": "error", "error": str(error)}
    return {} if result.get("extracted_content") is None else {"output": result["extracted_content"]}


def _usage(usage: Any) -> dict[str, Any] | None:
    if not isinstance(usage, OBJECT):
        return None
    return {"input_tokens": usage.get("total_prompt_tokens"), "output_tokens": usage.get("total_completion_tokens")}


FORMAT = ReplyFormat(name="browser_use", detect=_detect, read=_read)
