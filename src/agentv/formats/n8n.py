"""n8n: outputs of the AI Agent node with the answer and, if enabled, the intermediate steps; execution records."""

from collections.abc import Iterator, Mapping
from typing import Any

from agentv.formats.conversation import non_empty_fields, text_or_none
from agentv.formats.fields import OBJECT, Report
from agentv.formats.response import decode_fields
from agentv.formats.vocabulary import CALL_ID_KEYS
from agentv.jsonio import dump_json
from agentv.model.response import ProviderResponse
from agentv.protocols import ReplyFormat, ReplyReader

_Object = Mapping[str, Any]
_STEPS = "intermediateSteps"
_ACTION = frozenset(("tool", "toolInput", "type", *CALL_ID_KEYS))


def _items(value: Any) -> list[Any]:
    """Return the items of a node without the wrapper of some exports."""
    items = value if isinstance(value, (list, tuple)) else [value]
    return [
        item["json"] if isinstance(item, OBJECT) and isinstance(item.get("json"), OBJECT) else item for item in items
    ]


def _detect(value: Any) -> bool:
    if not isinstance(value, (list, tuple, *OBJECT)):
        return False
    items = _items(value)
    if not items or not all(isinstance(item, OBJECT) and "output" in item and "role" not in item for item in items):
        return False
    has_steps = any(isinstance(item.get(_STEPS), (list, tuple)) for item in items)
    return has_steps or (
        isinstance(value, (list, tuple))
        and all(item.keys() == {"output"} and _is_answer(item["output"]) for item in items)
    )


def _is_answer(output: Any) -> bool:
    return isinstance(output, str)


def _read(value: Any, reader: ReplyReader) -> ProviderResponse:
    """Read the items; without a list of steps, tool calls are unknown."""
    del reader
    items = _items(value)
    report = Report()
    texts = [
        item["output"] if isinstance(item["output"], str) else dump_json(item["output"]).decode() for item in items
    ]
    reply: dict[str, Any] = {"text": "\n".join(texts)}
    extra = {
        key: entry
        for item in items
        for key, entry in item.items()
        if key != "output" and not (key == _STEPS and isinstance(entry, (list, tuple)))
    }
    if any(isinstance(item.get(_STEPS), (list, tuple)) for item in items):
        reply["output_messages"] = []
        for item, text in zip(items, texts, strict=True):
            calls = list(_calls(item.get(_STEPS), report))
            steps = [{"role": "assistant", "content": None, "tool_calls": [call]} for call in calls]
            reply["output_messages"] += [*steps, {"role": "assistant", "content": text}]
    return decode_fields({**reply, "metadata": extra, "unread": report.unread(calls_read=True)})


def _calls(steps: Any, report: Report) -> Iterator[dict[str, Any]]:
    for at, step in enumerate(steps if isinstance(steps, (list, tuple)) else ()):
        action = step.get("action") if isinstance(step, OBJECT) else None
        if not isinstance(action, OBJECT):
            report.skip((_STEPS, at), "a step without an action")
            continue
        ids = (text_or_none(action.get(key)) for key in CALL_ID_KEYS)
        call = {"tool": action.get("tool"), "id": next((item for item in ids if item), None)}
        if "toolInput" in action:
            call["input"] = action["toolInput"]
        if "observation" in step:
            call["output"] = step["observation"]
        yield {**call, "metadata": non_empty_fields(action, _ACTION) or None}


FORMAT = ReplyFormat(name="n8n", detect=_detect, read=_read)


def _run_data(value: Any) -> Any:
    data = value.get("data") if isinstance(value, OBJECT) else None
    result = data.get("resultData") if isinstance(data, OBJECT) else None
    return result if isinstance(result, OBJECT) and isinstance(result.get("runData"), OBJECT) else None


def _detect_execution(value: Any) -> bool:
    return _run_data(value) is not None


def _read_execution(value: _Object, reader: ReplyReader) -> ProviderResponse:
    """Read an execution record: items of the last node, preceded by items with an agent's steps."""
    result = _run_data(value)
    nodes = {name: list(_outputs(runs)) for name, runs in result["runData"].items()}
    last = nodes.get(str(result.get("lastNodeExecuted")))
    agents = [items for items in nodes.values() if items and any(_STEPS in item for item in items)]
    items = agents[-1] if agents else last or next(reversed(nodes.values()), [])
    if not items:
        return decode_fields({"error": result.get("error") or "the execution has no output"})
    return reader.read(items if _detect(items) else items[0])


def _outputs(runs: Any) -> Iterator[_Object]:
    """Yield the items of a node's last run."""
    run = runs[-1] if isinstance(runs, (list, tuple)) and runs else None
    data = run.get("data") if isinstance(run, OBJECT) else None
    main = data.get("main") if isinstance(data, OBJECT) else None
    for branch in main if isinstance(main, (list, tuple)) else ():
        for item in branch if isinstance(branch, (list, tuple)) else ():
            if isinstance(item, OBJECT) and isinstance(item.get("json"), OBJECT):
                yield item["json"]


EXECUTION = ReplyFormat(
    name="n8n", detect=_detect_execution, read=_read_execution, keys=frozenset(("data", "workflowData", "customData"))
)
