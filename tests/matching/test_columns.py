"""Calls of several runs in common columns."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.matching.columns import align_calls
from agentv.model.conversation import UNSET, ToolCall
from tests.support.causes import seeded_runs
from tests.support.examples import examples


def run(*names: str) -> list[ToolCall]:
    """Return calls: `search:x` is a call of `search` with the query `x`."""
    parts = [name.partition(":") for name in names]
    return [ToolCall(tool=tool, input={"query": query} if query else UNSET) for tool, _, query in parts]


def test_runs_with_the_same_calls_share_all_columns() -> None:
    aligned = align_calls([run("a", "b"), run("a", "b")])
    assert aligned.tools == ("a", "b")
    assert aligned.cells == ((0, 1), (0, 1))


def test_a_missing_call_leaves_a_gap_and_an_extra_one_gets_a_column() -> None:
    aligned = align_calls([run("a", "b", "c"), run("a", "c"), run("a", "b", "x", "c")])
    assert aligned.tools == ("a", "b", "x", "c")
    assert aligned.cells == ((0, 1, None, 2), (0, None, None, 1), (0, 1, 2, 3))


def test_calls_with_the_same_input_belong_together() -> None:
    aligned = align_calls([run("s:1", "s:2", "s:3"), run("s:2", "s:3"), run("s:0", "s:1", "s:2")])
    assert aligned.cells == ((None, 0, 1, 2), (None, None, 0, 1), (0, 1, 2, None))


def test_calls_of_one_tool_belong_together_although_their_inputs_differ() -> None:
    aligned = align_calls([run("open:1", "read:1", "close:1"), run("open:2", "read:2", "close:2")])
    assert aligned.tools == ("open", "read", "close")


def test_a_repeated_call_is_the_second_one() -> None:
    aligned = align_calls([run("pay", "mail"), run("pay", "mail"), run("pay", "pay", "mail")])
    assert aligned.tools == ("pay", "pay", "mail")
    assert aligned.cells[0] == (0, None, 1)


def test_no_runs_and_runs_without_calls_have_no_columns() -> None:
    assert align_calls([]) == ((), ())
    assert align_calls([[], []]) == ((), ((), ()))


def test_harmless_extra_calls_do_not_multiply_the_columns() -> None:
    runs = [each.calls for each in seeded_runs(15)]
    aligned = align_calls(runs)
    assert aligned.tools.count("get_order") == aligned.tools.count("think") == aligned.tools.count("notify") == 1


names = st.sampled_from(["a", "b", "c", "s:1", "s:2", "s:3", ""])


@settings(max_examples=examples(400))
@given(st.lists(st.lists(names, max_size=8).map(lambda chosen: run(*chosen)), max_size=8))
def test_every_call_is_in_a_column_of_its_tool_and_keeps_its_order(runs: list[list[ToolCall]]) -> None:
    aligned = align_calls(runs)
    assert len(aligned.cells) == len(runs)
    for calls, cells in zip(runs, aligned.cells, strict=True):
        assert [cell for cell in cells if cell is not None] == list(range(len(calls)))
        for tool, cell in zip(aligned.tools, cells, strict=True):
            assert cell is None or calls[cell].tool == tool
    for column in range(len(aligned.tools)):
        assert any(cells[column] is not None for cells in aligned.cells), "an empty column"
