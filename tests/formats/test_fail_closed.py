"""A reply with calls never passes for one without, and a reply without calls is never taken for one with."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import agentv
from agentv.formats.fields import CALL_ID_KEYS, CALL_KEYS, INPUT_KEYS, NAME_KEYS
from agentv.formats.unread import MAX_NODES
from tests.support.examples import examples
from tests.support.samples import Sample, samples

FORBIDS: dict[str, dict[str, Any]] = {
    "forbidden": {"type": "tool_trajectory", "forbidden": ["*"]},
    "maximums": {"type": "tool_trajectory", "maximums": {"*": 0}},
    "exact": {"type": "tool_trajectory", "mode": "exact", "expected": []},
    "count": {"type": "tool_call_count", "max": 0},
}
JSON = [sample for sample in samples() if sample.form == "json"]


def statuses(reply: Any) -> set[str]:
    """Score a reply by every check that forbids calls."""
    return {agentv.score(reply, [check]).status for check in FORBIDS.values()}


def calls_in(reply: Any) -> int:
    response = agentv.decode_response(reply)
    return sum(len(message.tool_calls) for message in response.output_messages or ())


def is_read(sample: Sample) -> bool:
    return sample.has_calls and isinstance(sample.reply, (dict, list)) and calls_in(sample.reply) > 0


def is_executed(sample: Sample) -> bool:
    """Return whether any call was made: a denied or pending one counts only if attempts are judged."""
    return any(call.get("status") not in ("denied", "pending") for call in sample.expect["calls"] or ())


READ = [sample for sample in JSON if is_read(sample) and is_executed(sample)]
PLAIN = [sample for sample in JSON if sample.has_none and statuses(sample.reply) == {"pass"}]


@pytest.mark.parametrize("sample", [each for each in samples() if each.has_calls], ids=lambda each: each.name)
def test_a_reply_with_calls_never_passes_where_calls_are_forbidden(sample: Sample) -> None:
    reply = sample.reply if sample.form == "json" else sample.text
    if sample.form == "sse":
        reply = [event.get("data") for event in sample.reply]
    if sample.expect.get("unread") or is_executed(sample):
        assert "pass" not in statuses(reply)
    assert agentv.score(reply, [FORBIDS["forbidden"]]).status != "pass"


# A call that is written differently


def call_places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Find all objects that are or wrap a call or a result: those that name a tool or refer to a call."""
    if isinstance(value, dict):
        if any(isinstance(value.get(key), str) for key in (*NAME_KEYS, *CALL_ID_KEYS)) and any(
            key in value for key in (*INPUT_KEYS, *CALL_ID_KEYS)
        ):
            yield path
        for key, item in value.items():
            if key not in INPUT_KEYS:
                yield from call_places(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from call_places(item, (*path, at))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    at(value, path[:-1])[path[-1]] = new
    return value


def change_type(reply: Any, path: tuple[Any, ...], word: str) -> Any:
    call = at(reply, path)
    call[next((key for key in ("type", "part_kind", "kind") if key in call), "type")] = word
    return reply


def change_role(reply: Any, path: tuple[Any, ...], word: str) -> Any:
    above = [at(reply, path[:length]) for length in range(len(path), -1, -1)]
    message = next((item for item in above if isinstance(item, dict) and isinstance(item.get("role"), str)), {})
    message["role"] = f"tool_{word}" if len(path) % 2 else word
    return reply


def move(reply: Any, path: tuple[Any, ...], word: str) -> Any:
    if path and isinstance(path[-1], str):
        parent = at(reply, path[:-1])
        parent[word] = parent.pop(path[-1])
    return reply


def wrap(reply: Any, path: tuple[Any, ...], word: str) -> Any:
    return put(reply, path, {"type": word, word: at(reply, path)})


def drop_name(reply: Any, path: tuple[Any, ...], word: str) -> Any:
    del word
    call = at(reply, path)
    for key in [key for key in NAME_KEYS if isinstance(call.get(key), str)]:
        del call[key]
    return reply


def drop_id(reply: Any, path: tuple[Any, ...], word: str) -> Any:
    del word
    for key in ("id", *CALL_ID_KEYS):
        at(reply, path).pop(key, None)
    return reply


def orphan(reply: Any, path: tuple[Any, ...], word: str) -> Any:
    call = at(reply, path)
    call.update({key: word for key in CALL_ID_KEYS if key in call})
    return reply


CHANGES = (change_type, change_role, move, wrap, drop_name, drop_id, orphan)


@st.composite
def changed_replies(draw: st.DrawFn) -> tuple[str, str, Any]:
    """Return a sample with calls in which one call or result is spelled differently."""
    sample = draw(st.sampled_from(READ))
    reply = copy.deepcopy(sample.reply)
    places = list(call_places(reply))
    if not places:
        return sample.name, "unchanged", reply
    change = draw(st.sampled_from(CHANGES))
    word = draw(st.sampled_from(sorted(CALL_KEYS))) if change is move else "zzz"
    return sample.name, change.__name__, change(reply, draw(st.sampled_from(places)), word)


@settings(deadline=None, max_examples=examples(600))
@given(changed_replies())
def test_a_call_that_is_written_differently_never_turns_into_a_pass(changed: tuple[str, str, Any]) -> None:
    name, change, reply = changed
    assert "pass" not in statuses(reply), (name, change)


def containers(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Find all keys whose list or object holds a call."""
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, (dict, list)) and item and any(True for _ in call_places(item)):
                yield (*path, key)
            yield from containers(item, (*path, key))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from containers(item, (*path, position))


def test_a_container_that_is_renamed_is_noticed_in_nearly_every_case() -> None:
    tried, passed = 0, []
    for sample in READ:
        for path in containers(sample.reply):
            reply = copy.deepcopy(sample.reply)
            parent = at(reply, path[:-1])
            parent["zzz"] = parent.pop(path[-1])
            tried += 1
            if agentv.score(reply, [FORBIDS["forbidden"]]).status == "pass":
                passed.append((sample.name, path))
    assert tried > 500
    assert len(passed) <= 0.05 * tried, passed[:10]


def renamed(value: Any, key: str) -> Any:
    """Return a copy of a value in which a key has another name everywhere."""
    if isinstance(value, dict):
        return {"zzz" if each == key else each: renamed(item, key) for each, item in value.items()}
    return [renamed(item, key) for item in value] if isinstance(value, list) else value


DROPPED = (
    ("agent_framework.parallel-messages", "role"),
    ("agno.call-stream-events", "tool"),
    ("amp.stream-call", "content"),
    ("claude-code.stream-call", "content"),
    ("claude-code.stream-call", "message"),
    ("claude_agent_sdk.parallel-asdict-named", "content"),
    ("gemini-live.session-call", "functionCalls"),
    ("genai.call-live-messages", "function_calls"),
    ("langflow.run-call", "content_blocks"),
    ("langflow.run-call", "contents"),
    ("ollama-chat.stream-call", "tool_calls"),
    ("ollama.parallel-chats", "tool_calls"),
)


@pytest.mark.parametrize(("name", "key"), DROPPED)
@pytest.mark.parametrize("form", ["parsed", "text", "lines"])
def test_a_key_that_has_another_name_everywhere_does_not_hide_all_calls(name: str, key: str, form: str) -> None:
    reply = renamed(next(sample.reply for sample in samples() if sample.name == name), key)
    if form == "text":
        reply = json.dumps(reply)
    elif form == "lines" and isinstance(reply, list):
        reply = "\n".join(map(json.dumps, reply))
    assert "pass" not in statuses(reply)


PARTLY = {
    "ollama": [
        {"done": True, "message": {"role": "assistant", "content": "a", "zzz": [{"name": "delete", "arguments": {}}]}},
        {
            "done": True,
            "message": {"role": "assistant", "tool_calls": [{"function": {"name": "get", "arguments": {}}}]},
        },
    ],
    "claude_code": [
        {"type": "system", "subtype": "init", "session_id": "s"},
        *(
            {"type": "assistant", "session_id": "s", "message": {"role": "assistant", key: [block]}}
            for key, block in (
                ("zzz", {"type": "tool_use", "id": "1", "name": "delete", "input": {}}),
                ("content", {"type": "tool_use", "id": "2", "name": "get", "input": {}}),
                ("content", {"type": "text", "text": "x"}),
            )
        ),
        {"type": "result", "subtype": "success", "is_error": False, "session_id": "s", "result": "x"},
    ],
}


@pytest.mark.parametrize("name", PARTLY)
def test_a_call_that_is_dropped_beside_others_is_noticed(name: str) -> None:
    result = agentv.score(PARTLY[name], [{"type": "tool_trajectory", "forbidden": ["delete"]}])
    assert result.status == "error"
    assert agentv.score(PARTLY[name], [{"type": "tool_trajectory", "minimums": {"get": 1}}]).status == "pass"


@pytest.mark.parametrize("name", ["langgraph.plain-stream-debug", "flowise.agentflow-plain"])
def test_a_node_of_a_graph_is_no_call(name: str) -> None:
    assert statuses(next(sample.reply for sample in samples() if sample.name == name)) == {"pass"}


@pytest.mark.parametrize("key", ["tool_calls", "toolUses", "zzz"])
@pytest.mark.parametrize("kind", ["message", "model_step", "error"])
def test_a_call_in_the_metadata_of_an_event_is_noticed(key: str, kind: str) -> None:
    calls = [{"name": "delete_user", "input": {"id": 1}, "id": "a"}]
    event = {"type": kind, "text": "x", "metadata": {key: calls}}
    assert statuses({"trace": [event]}) == {"error"}
    made = {"type": "tool_call", "name": "delete_user", "input": {"id": 1}, "id": "a"}
    assert statuses({"trace": [made, event]}) == {"fail"}
    assert agentv.decode_response({"trace": [made, event]}).unread == ()


HIDDEN: dict[str, Any] = {
    "content of a text": [
        {"role": "assistant", "content": [{"type": "text", "text": "x", "content": [{"name": "f", "input": {}}]}]}
    ],
    "content of a thought": {
        "object": "response",
        "output": [
            {"type": "reasoning", "summary": [], "content": [{"type": "tool_use", "name": "f", "input": {}}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
        ],
    },
    "an item of LangChain": {"messages": [{"type": "ai", "content": "x"}, {"type": "handoff", "to": "y"}]},
    "an item with only a name": [{"role": "assistant", "content": "x"}, {"name": "f"}],
    "a stop reason of others": {
        "object": "chat.completion",
        "choices": [{"message": {"role": "assistant", "content": "x"}, "finishReason": "tool_calls"}],
    },
    "usage of a message": {
        "output_messages": [
            {"role": "assistant", "content": "x", "usage": {"server_tool_use": {"web_search_requests": 1}}}
        ]
    },
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_may_hide_a_call_is_an_error(name: str) -> None:
    assert statuses(HIDDEN[name]) == {"error"}


def test_what_is_too_much_to_be_searched_is_an_error() -> None:
    event = {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "x"}}
    many = {**event, "zzz": [[[]] for _ in range(MAX_NODES)]}
    end = {"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}
    start = {"type": "thread.started", "thread_id": "t"}
    assert agentv.score([start, event, end], [FORBIDS["forbidden"]]).status == "pass"
    assert agentv.score([start, many, end], [FORBIDS["forbidden"]]).status == "error"


# What is harmless

BLOCKS: tuple[dict[str, Any], ...] = (
    {"type": "text", "text": "and more"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
    {"type": "thinking", "thinking": "hm", "signature": "s"},
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
    {"type": "redacted_thinking", "data": "x"},
    {"type": "document", "source": {"type": "text", "data": "x"}, "title": "t"},
    {"type": "search_result", "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]},
    {"type": "data-weather", "data": {"city": "Paris", "celsius": 18}},
    {"type": "reasoning.encrypted", "data": "x"},
    {"type": "refusal", "refusal": "no"},
    {"type": "compaction", "content": "x"},
)
EXTRAS: dict[str, Any] = {
    "usage": {"input_tokens": 1, "server_tool_use": {"web_search_requests": 0}},
    "tool_calls": [],
    "toolCalls": None,
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "functions": [{"name": "f", "parameters": {"type": "object"}}],
    "tool_definitions": [{"name": "f", "input": {"x": 1}}],
    "mcp_servers": [{"name": "s", "args": ["x"]}],
    "config": {"name": "f", "args": {"x": 1}},
    "request": {"messages": [{"tool_calls": [{"name": "f", "args": {}}]}]},
    "raw": {"tool_calls": [{"name": "f", "args": {}}]},
    "logprobs": {"content": [{"token": "x"}]},
    "structured_response": {"name": "f", "arguments": {"x": 1}},
    "parsed": {"tool": "f", "input": {"x": 1}},
    "steps": [{"number": 1}],
    "events": [{"at": 1}],
    "outputs": [],
    "actions": [{"label": "x"}],
    "metadata": {"run": 1, "tags": ["a"], "person": {"name": "Ann", "age": 5}},
    "response_metadata": {"model_name": "m", "finish_reason": "stop", "headers": {"x": "y"}},
    "finish_reason": "stop",
    "schema": {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}},
    "tool_calls_count": 3,
    "function_call": None,
}


def message_lists(value: Any) -> Iterator[list[Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "content" and isinstance(item, list) and isinstance(value.get("role"), str):
                yield item
            yield from message_lists(item)
    elif isinstance(value, list):
        for item in value:
            yield from message_lists(item)


def objects(value: Any, levels: int = 2) -> Iterator[dict[str, Any]]:
    """Find the objects near the root of a reply."""
    if isinstance(value, dict):
        yield value
        value = [item for key, item in value.items() if key not in CALL_KEYS]
    if levels and isinstance(value, list):
        for item in value:
            yield from objects(item, levels - 1)


@settings(deadline=None, max_examples=examples(400))
@given(st.data())
def test_what_is_harmless_never_makes_an_error(data: st.DataObject) -> None:
    sample = data.draw(st.sampled_from(PLAIN), label="sample")
    reply = copy.deepcopy(sample.reply)
    for blocks in message_lists(reply):
        blocks.extend(copy.deepcopy(data.draw(st.lists(st.sampled_from(BLOCKS), max_size=2))))
    extra = data.draw(st.sampled_from(sorted(EXTRAS)), label="extra")
    found = [each for each in objects(reply) if extra not in each]
    if found:
        data.draw(st.sampled_from(found))[extra] = copy.deepcopy(EXTRAS[extra])
    assert "error" not in statuses(reply), sample.name


@pytest.mark.parametrize("key", sorted(CALL_KEYS - {"tool_calls"}))
@pytest.mark.parametrize("value", [[], {}, None, 0, 1.5, True, ""])
def test_a_call_key_without_a_value_is_no_call(key: str, value: object) -> None:
    message = {"role": "assistant", "content": "Hello.", key: value}
    block = {"text": "Hello.", key: value}
    for messages in ([message], [{"role": "assistant", "content": [block]}]):
        result = agentv.score({"output_messages": messages}, [{"type": "tool_trajectory", "forbidden": ["*"]}])
        assert result.status == "pass"
