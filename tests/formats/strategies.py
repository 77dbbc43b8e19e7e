"""Conversations of every kind that an agent may send, for the property tests."""

import json
from typing import Any

from hypothesis import strategies as st

from agentv.model.message import UNSET, Message, ToolCall

words = st.text(max_size=6)
"""Any Unicode that UTF-8 can hold, NUL included."""
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
"""Few, so that they are often used twice and often clash with those that are made up."""
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
"""Compact ones."""

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
"""In the exact form of seed 004, results anywhere and in any order."""
