"""Hypothesis strategies for conversations and replies of agents."""

import json
from typing import Any

from hypothesis import strategies as st

from agentv.model.conversation import UNSET, Message, ToolCall

words = st.text(max_size=6)
"""Any Unicode that UTF-8 can encode, including NUL."""
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3), max_leaves=6
)
objects = st.dictionaries(words, values, max_size=3)
blocks = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from(["text", "image"])}, optional={"text": words, "x": values}),
    max_size=2,
)
ids = st.sampled_from(["a", "b", "c", "call_0", "call_1", ""])
"""Few values, so that they are often repeated and often clash with generated ids."""
tools = st.sampled_from(["search", "verify", ""])
unparsable = st.sampled_from(["{", "", "{city: Paris}", "NaN", '{"a": 1} trailing', '"\\ud800"'])

_records = st.fixed_dictionaries(
    {},
    optional={
        "name": words,
        "id": words,
        "timestamp": words,
        "tool_call_id": st.none() | ids,
        "metadata": objects,
        "offset": st.integers(-1, 9) | st.booleans(),
        "content": st.just("verbatim"),
        "other": leaves,
    },
)
_call_metadata = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "note": values,
        "result_message": _records | leaves,
        "arguments_error": st.just("Input data was truncated") | words,
    },
)
_markers = leaves | st.fixed_dictionaries({}, optional={"timestamp": words, "metadata": objects, "call": leaves})
_metadata = st.none() | st.fixed_dictionaries({}, optional={"note": values, "agentv": _markers})

calls = st.builds(
    ToolCall,
    tool=tools,
    input=st.just(UNSET) | values | objects | unparsable,
    output=st.just(UNSET) | st.none() | values | blocks,
    id=st.none() | ids,
    timestamp=st.none() | words,
    duration_ms=st.none() | st.floats(0, 1e6),
    status=st.none() | st.sampled_from(["ok", "error", "denied", "pending"]),
    error=leaves,
    metadata=_call_metadata,
)
messages = st.builds(
    Message,
    role=st.sampled_from(["assistant", "assistant", "tool", "user", "system", "developer", ""]),
    content=st.none() | words | blocks,
    tool_calls=st.lists(calls, max_size=3).map(tuple),
    tool_call_id=st.none() | ids,
    name=st.none() | tools,
    id=st.none() | words,
    timestamp=st.none() | words,
    metadata=_metadata,
)
conversations = st.lists(messages, max_size=5).map(tuple)
"""Compact calls."""

_openai_call = st.fixed_dictionaries(
    {
        "id": ids,
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": tools, "arguments": unparsable | values.map(json.dumps)}),
    }
)
_plain = st.dictionaries(words, values, max_size=2)
_others = {"name": tools, "id": words, "metadata": _plain}
_openai_message = st.one_of(
    st.fixed_dictionaries(
        {
            "role": st.just("assistant"),
            "content": st.none() | words | blocks,
            "tool_calls": st.lists(_openai_call, min_size=1, max_size=3),
        },
        optional=_others,
    ),
    st.fixed_dictionaries(
        {"role": st.just("tool"), "tool_call_id": ids, "content": st.none() | words | blocks}, optional=_others
    ),
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "system", "assistant"]), "content": st.none() | words | blocks},
        optional=_others,
    ),
)
openai_conversations: st.SearchStrategy[list[dict[str, Any]]] = st.lists(_openai_message, max_size=8)
"""Messages exactly in OpenAI's form, with results anywhere and in any order."""


def _mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Draw from the usual values, and sometimes any other value."""
    return st.integers(0, 19).flatmap(lambda roll: values if roll == 0 else usual)


def _object(fields: dict[str, st.SearchStrategy[Any]], *required: str) -> st.SearchStrategy[dict[str, Any]]:
    usual = {name: _mostly(strategy) for name, strategy in fields.items()}
    return st.fixed_dictionaries(
        {name: usual[name] for name in required},
        optional={name: strategy for name, strategy in usual.items() if name not in required},
    )


_status = st.sampled_from(["ok", "error", "denied", "pending", "success", "done"])
_any_metadata = st.dictionaries(words | st.just("agentv"), values | _markers, max_size=2)
_compact_call = _object(
    {
        "tool": tools,
        "input": objects,
        "output": values,
        "id": ids,
        "timestamp": words,
        "duration_ms": st.integers(0, 10**6) | st.floats(0, 1e6),
        "status": st.sampled_from(["ok", "error"]),
        "error": words,
        "metadata": _any_metadata,
    },
    "tool",
)
_foreign_call = _object(
    {
        "id": ids,
        "type": st.sampled_from(["function", "tool_call"]),
        "function": _object({"name": tools, "arguments": values.map(json.dumps) | unparsable, "x": values}, "name"),
        "name": tools,
        "args": objects,
        "durationMs": st.floats(0, 9),
        "status": _status,
    }
)
_any_calls = st.lists(_mostly(_compact_call), max_size=2) | st.lists(
    _mostly(_openai_call) | _mostly(_foreign_call), max_size=2
)
_any_message = st.one_of(
    _mostly(_openai_message),
    _mostly(
        _object(
            {
                "role": st.sampled_from(["assistant", "assistant", "user", "tool"]),
                "content": st.none() | words | blocks,
                "tool_calls": _any_calls,
                "tool_call_id": ids,
                "name": tools,
                "id": words,
                "timestamp": words,
                "metadata": _any_metadata,
            },
            "role",
        )
    ),
    _mostly(
        _object(
            {
                "role": st.sampled_from(["assistant", "tool"]),
                "type": st.sampled_from(["ai", "human", "tool"]),
                "content": words | st.lists(words),
                "toolCalls": _any_calls,
                "toolCallId": ids,
                "function_call": _object({"name": tools, "arguments": values.map(json.dumps)}),
                "refusal": st.none(),
                "annotations": st.just([]),
                "status": _status,
            }
        )
    ),
)
_any_event = _object(
    {
        "type": st.sampled_from(["model_step", "tool_call", "tool_result", "message", "error"]),
        "timestamp": words,
        "id": ids,
        "name": tools,
        "input": values,
        "output": values,
        "text": words,
        "metadata": objects,
    },
    "type",
)
_counts = st.integers(0, 9)
_usage = _object({"input_tokens": _counts, "output_tokens": _counts, "total_tokens": st.integers(0, 18)})
_any_messages = st.lists(_any_message, max_size=4)
replies = _object(
    {
        "success": st.booleans(),
        "text": words,
        "output_messages": _any_messages,
        "messages": _any_messages,
        "trace": st.lists(_any_event, max_size=2),
        "trace_ref": words,
        "trace_summary": _object({"event_count": _counts, "toolNames": st.lists(tools)}),
        "reasoning": words,
        "tokens_usage": _usage,
        "usage": _object({"prompt_tokens": _counts, "completion_tokens": _counts}),
        "cost_usd": st.floats(0, 9),
        "latency_ms": st.integers(0, 9),
        "thread_id": words,
        "raw_response": values,
        "error": words | _object({"kind": st.sampled_from(["agent", "timeout"]), "message": words}),
        "metadata": _any_metadata | st.fixed_dictionaries({"tokenUsage": values, "latencyMs": values}),
        "warnings": st.lists(words),
    }
)
"""Replies that are nearly valid, in all shapes mixed."""
canonical_replies = _object(
    {
        "text": words,
        "output_messages": st.lists(
            _object(
                {
                    "role": st.sampled_from(["assistant", "user"]),
                    "content": st.none() | words | blocks,
                    "tool_calls": st.lists(_compact_call, max_size=2),
                    "metadata": objects,
                },
                "role",
            ),
            max_size=3,
        ),
        "tokens_usage": _usage,
        "latency_ms": st.integers(0, 9),
        "error": _object({"kind": st.sampled_from(["agent", "timeout"]), "message": words}, "kind", "message"),
    }
)
"""Replies in our own form, nearly all of them entirely."""
