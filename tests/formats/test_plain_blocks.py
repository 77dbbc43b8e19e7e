"""`plain_blocks`: which block types may be declared to hold no calls, and what declaring one does."""

import pytest
from jsonschema import Draft202012Validator

from agentv.formats.plain_blocks import (
    CALL_TYPES,
    PLAIN_BLOCK_SCHEMA,
    check_plain_blocks,
    drop_plain_blocks,
    unknown_block_reason,
    unknown_block_type,
)
from agentv.model.response import Unread

PLAIN = ["chart", "tool_result", "data-weather", "my tool", "recall", "call_summary", "wall", "Tool"]
CALLS = [
    *CALL_TYPES,
    *("function_call", "tool-call", "mcp_call", "tool_calls", "functionCall", "toolCalls", "tool-search", "tool-"),
]
GLOBS = ["tool*", "*", "chart?", "a*b?"]


class TestCheck:
    def test_other_types_may_be_declared(self) -> None:
        assert check_plain_blocks(PLAIN) == []
        assert check_plain_blocks(()) == []

    @pytest.mark.parametrize("name", CALLS)
    def test_a_type_that_is_read_as_a_call_may_not(self, name: str) -> None:
        assert check_plain_blocks([name]) == [f"{name!r} is read as a tool call, so it cannot be declared to hold none"]

    @pytest.mark.parametrize("name", GLOBS)
    def test_a_glob_may_not(self, name: str) -> None:
        (problem,) = check_plain_blocks([name])
        assert problem == f"{name!r} is a glob, which is not allowed here: name each block type in full"

    @pytest.mark.parametrize("name", ["", "  ", 3, None])
    def test_what_is_no_name_may_not(self, name: object) -> None:
        assert len(check_plain_blocks([name])) == 1

    @pytest.mark.parametrize("names", ["chart", b"chart", None, 3])
    def test_what_is_no_list_may_not(self, names: object) -> None:
        assert check_plain_blocks(names) == [f"expected a list of block types, got {names!r}"]

    def test_all_problems_are_returned(self) -> None:
        assert len(check_plain_blocks(["chart", "tool_use", "a*"])) == 2

    @pytest.mark.parametrize("name", [*PLAIN, *CALLS, *GLOBS])
    def test_the_json_schema_agrees(self, name: str) -> None:
        assert Draft202012Validator(PLAIN_BLOCK_SCHEMA).is_valid(name) == (check_plain_blocks([name]) == [])


class TestDrop:
    def test_blocks_of_declared_types_are_no_longer_unread(self) -> None:
        chart = Unread(path="output_messages[0].content[1]", reason=unknown_block_reason("chart"))
        other = Unread(path="output_messages[0].content[2]", reason=unknown_block_reason("map"))
        assert drop_plain_blocks((chart, other), ["chart"]) == (other,)

    def test_any_other_reason_stays(self) -> None:
        places = (
            Unread(path="a", reason=f"{unknown_block_reason('chart')}."),
            Unread(path="b", reason="the reply was cut off after a block of type 'chart'"),
        )
        assert drop_plain_blocks(places, ["chart"]) == places

    @pytest.mark.parametrize("name", ["chart", "it's", "größe", "a b"])
    def test_the_type_is_found_in_the_reason(self, name: str) -> None:
        assert unknown_block_type(unknown_block_reason(name)) == name
        assert unknown_block_type(f"{unknown_block_reason(name)} or not") is None
