"""Objects inside a reply are read by their fields, whatever their class."""

from typing import Any, NamedTuple

from agentv.formats.reader import read_reply
from agentv.model.conversation import ToolCall

CALL = {"id": "call_1", "type": "function", "function": {"name": "delete_all", "arguments": "{}"}}
MESSAGE = {"role": "assistant", "content": "Done.", "tool_calls": [CALL]}


class Snapshot(NamedTuple):
    """A named tuple like LangGraph's `StateSnapshot`."""

    values: dict[str, Any]
    next: tuple[str, ...]
    config: dict[str, Any]


class Writing:
    """An object that is neither a model nor a dataclass, with a serializing method."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def to_dict(self) -> dict[str, Any]:
        return self._fields


class Indexed(Writing):
    """An indexable object like LlamaIndex events and litellm replies, which is not a mapping."""

    def __getitem__(self, key: str) -> Any:
        return self._fields[key]

    def keys(self) -> Any:
        return self._fields.keys()


class Broken(Writing):
    """An object whose serializing method raises."""

    def to_dict(self) -> dict[str, Any]:
        raise ValueError


class Messages(list[Any]):
    """A subclass of list, like the result of a workflow."""


def calls(reply: Any) -> list[ToolCall]:
    return [call for message in read_reply(reply).output_messages or () for call in message.tool_calls]


def test_a_named_tuple_is_read_by_the_names_of_its_fields() -> None:
    snapshot = Snapshot({"messages": [MESSAGE]}, (), {"configurable": {"thread_id": "t1"}})
    assert [call.tool for call in calls(snapshot)] == ["delete_all"]
    assert read_reply(snapshot).thread_id == "t1"


def test_an_object_that_writes_itself_is_read() -> None:
    assert [call.tool for call in calls([Writing(MESSAGE)])] == ["delete_all"]
    assert [call.tool for call in calls({"result": Writing(MESSAGE)})] == ["delete_all"]


def test_an_object_that_can_be_indexed_is_no_mapping() -> None:
    assert [call.tool for call in calls([Indexed(MESSAGE)])] == ["delete_all"]
    assert [call.tool for call in calls({"messages": [Indexed(MESSAGE)]})] == ["delete_all"]


def test_objects_in_a_list_of_another_class_are_read() -> None:
    assert [call.tool for call in calls(Messages([Writing(MESSAGE)]))] == ["delete_all"]


def test_an_object_that_raises_tells_nothing_about_calls() -> None:
    response = read_reply({"messages": [Broken(MESSAGE)]})
    assert response.unread or response.output_messages is None
