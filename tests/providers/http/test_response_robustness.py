"""Shapes of replies: whatever is wrong with one, it is read, or it is not recognised, and nothing else."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.errors import FormatError
from agentv.formats.detect import describe_shape, longest_text
from agentv.formats.reader import detect_reply, read_reply
from agentv.formats.streams import MessageAccumulator, StreamEvent, assemble_stream
from agentv.model.conversation import Message
from tests.providers.http.test_events import AGENTS, VENDORS
from tests.providers.http.test_response import SHAPES
from tests.support.examples import examples

ODD: tuple[Any, ...] = (None, 5, "x", True, [], {}, [None, 1, "x", []], [{}], {"a": {}})


def broken(value: Any) -> Iterator[Any]:
    """The value with any one part of it replaced by something else, or left out."""
    if isinstance(value, dict):
        for key in value:
            yield {name: item for name, item in value.items() if name != key}
            for odd in ODD:
                yield {**value, key: odd}
            for inner in broken(value[key]):
                yield {**value, key: inner}
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield value[:at] + value[at + 1 :]
            for odd in ODD:
                yield [*value[:at], odd, *value[at + 1 :]]
            for inner in broken(item):
                yield [*value[:at], inner, *value[at + 1 :]]


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_with_something_wrong_in_it_never_crashes(name: str) -> None:
    for body in broken(SHAPES[name][0]):
        before = copy.deepcopy(body)
        found = detect_reply(body, [Message(role="user", content="Hello?")])
        assert body == before, "nobody writes into what was received"
        json.dumps(found.shape)


STREAMS = {**{vendor: VENDORS[vendor][0] for vendor in VENDORS}, **AGENTS}


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_with_something_wrong_in_it_never_crashes(name: str) -> None:
    for values in broken(STREAMS[name]):
        try:
            folded = assemble_stream([StreamEvent(value) for value in values])
            if folded is not None:
                read_reply(folded.document)
        except FormatError:
            continue


@settings(deadline=None, max_examples=examples(200))
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a/b", "c~d", "text", "type"]), inner)
        ),
        max_leaves=12,
    )
)
def test_any_value_can_be_described_and_its_longest_text_pointed_at(value: Any) -> None:
    from agentv.matching.json_pointer import at_steps, bad_pointer, pointer_steps  # noqa: PLC0415 - the other side

    assert describe_shape(value)
    pointer = longest_text(value)
    if pointer is not None:
        assert bad_pointer(pointer) is None
        assert isinstance(at_steps(value, pointer_steps(pointer)), str)


def test_messages_are_gathered_however_they_come() -> None:
    first, second = {"role": "assistant", "content": "x"}, {"role": "assistant", "content": "y"}
    one_by_one, growing, renewed = MessageAccumulator(), MessageAccumulator(), MessageAccumulator()
    for message in (first, second, first):
        one_by_one.add(message)
    for state in ([first], [first, second], [first, second, second]):
        growing.add(state)
    for message in ({**first, "id": "m"}, {**second, "id": "m"}):
        renewed.add([message])
    assert one_by_one.messages == [first, second, first]
    assert growing.messages == [first, second, second]
    assert renewed.messages == [{**second, "id": "m"}]


def test_a_long_stream_takes_time_in_proportion() -> None:
    pieces = [StreamEvent({"choices": [{"delta": {"content": "x" * 100}}]}) for _ in range(20_000)]
    folded = assemble_stream(pieces)
    assert folded is not None
    assert len(folded.document["choices"][0]["message"]["content"]) == 2_000_000
