"""The setting `plain_blocks`: valid block types, and its effect."""

import pytest
from jsonschema import Draft202012Validator

from agentv.formats.plain_blocks import (
    CALL_TYPES,
    PLAIN_BLOCK_SCHEMA,
    check_plain_blocks,
    drop_plain_blocks,
    unknown_block_name,
    unknown_block_reasons,
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


def places(name: str) -> tuple[Unread, ...]:
    """Return a block of this type, and one with only this key."""
    return tuple(
        [Unread(path=f"content[{at}]", reason=reason) for at, reason in enumerate(unknown_block_reasons(name))]
    )


class TestDrop:
    def test_blocks_of_declared_types_are_no_longer_unread(self) -> None:
        assert drop_plain_blocks((*places("chart"), *places("map")), ["chart"]) == places("map")
        assert drop_plain_blocks((*places("chart"), *places("map")), ["chart", "map"]) == ()
        assert drop_plain_blocks(places("chart"), ()) == places("chart")

    def test_any_other_reason_stays(self) -> None:
        others = (
            Unread(path="a", reason=f"{unknown_block_reasons('chart')[0]}."),
            Unread(path="b", reason="the reply was cut off after a block of type 'chart'"),
        )
        assert drop_plain_blocks(others, ["chart"]) == others

    @pytest.mark.parametrize("name", ["chart", "it's", "größe", "a b", "x" * 60])
    def test_the_name_is_found_in_the_reason(self, name: str) -> None:
        for reason in unknown_block_reasons(name):
            assert unknown_block_name(reason) == name
            assert unknown_block_name(f"{reason} or not") is None
