"""Conversations of one structure have the formats of the first of them, and are read as without this knowledge."""

import json
import random
from typing import Any

import pytest

from agentv.formats import reader
from agentv.formats.reader import detect_conversation
from agentv.formats.structure import KnownStructures
from agentv.registry import reply_formats
from tests.support.samples import samples

_CALL = {"id": "c1", "function": "get_order", "arguments": {"id": 7}, "type": "function"}
_CONVERSATION: dict[str, Any] = {
    "id": "s1",
    "messages": [
        {"role": "user", "content": "Where is order 7?"},
        {"role": "assistant", "content": "", "tool_calls": [_CALL]},
        {"role": "tool", "tool_call_id": "c1", "function": "get_order", "content": "sent"},
        {"role": "assistant", "content": "It was sent."},
    ],
}


def _replies() -> list[Any]:
    return [json.loads(json.dumps(each.reply)) for each in samples() if isinstance(each.reply, (dict, list))]


def _changed(value: Any, source: random.Random) -> Any:
    """Return a value in which a few texts, numbers, keys or elements are others."""
    if isinstance(value, dict):
        kept = {key: _changed(item, source) for key, item in value.items() if source.random() > 0.01}
        return dict(source.sample(list(kept.items()), len(kept))) if source.random() < 0.02 else kept
    if isinstance(value, list):
        items = [_changed(item, source) for item in value if source.random() > 0.02]
        return items + items[:1] if source.random() < 0.02 else items
    if source.random() > 0.03:
        return value
    if isinstance(value, str):
        return source.choice(("", "user", "tool", "Some other words.", "id-77", '{"tool": "x"}', f"{value}0"))
    return source.choice((None, 1, True, "text", [], {}))


def test_formats_of_a_known_structure_are_not_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    known = KnownStructures()
    first = detect_conversation(_CONVERSATION, known=known)
    other = json.loads(json.dumps(_CONVERSATION).replace("c1", "c2").replace("sent", "lost").replace("s1", "s2"))
    tried = []

    def formats() -> tuple[Any, ...]:
        tried.append(1)
        return reply_formats()

    monkeypatch.setattr(reader, "reply_formats", formats)
    second = detect_conversation(other, known=known)
    assert not tried
    assert second.shape == first.shape
    assert second.response.text == "It was lost."
    assert [call.id for message in second.response.output_messages or () for call in message.tool_calls] == ["c2"]
    detect_conversation([*_CONVERSATION["messages"], {"type": "function_call"}], known=known)
    assert tried


def test_every_sample_is_read_the_same() -> None:
    known = KnownStructures()
    for _ in range(2):
        for reply in _replies():
            assert detect_conversation(reply, known=known) == detect_conversation(reply)


@pytest.mark.parametrize("seed", range(3))
def test_changed_samples_are_read_the_same(seed: int) -> None:
    source = random.Random(seed)  # noqa: S311 - no secret
    known = KnownStructures()
    replies = _replies()
    for reply in replies:
        detect_conversation(reply, known=known)
    for reply in source.sample(replies, 250):
        changed = _changed(reply, source)
        if isinstance(changed, (dict, list)):
            assert detect_conversation(changed, known=known) == detect_conversation(changed), changed


def test_data_that_is_too_deep_is_read_without_it() -> None:
    deep: Any = "end"
    for _ in range(50):
        deep = [deep]
    value = {**_CONVERSATION, "deep": deep}
    known = KnownStructures()
    assert known.find(value) == (None, ())
    assert detect_conversation(value, known=known) == detect_conversation(value)


def test_structures_are_no_longer_compared_if_each_conversation_has_its_own() -> None:
    known = KnownStructures()
    numbers = [known.find({f"key_{'x' * count}": 1})[0] for count in range(200)]
    assert numbers[0] is not None
    assert numbers[-1] is None
