"""Alignments against brute force: every one of them is tried."""

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.matching.alignment import (
    Pair,
    Worth,
    heaviest_assignment,
    heaviest_sequence,
    largest_assignment,
    longest_sequence,
    subsequence,
)
from tests.support.examples import examples


@st.composite
def boards(draw: st.DrawFn) -> tuple[list[int], int]:
    wanted = draw(st.integers(0, 4))
    rows = draw(st.lists(st.integers(0, (1 << wanted) - 1), max_size=5))
    return rows, wanted


def every_alignment(rows: list[int], wanted: int, *, ordered: bool) -> Iterator[list[Pair]]:
    def extend(expectation: int, pairs: list[Pair]) -> Iterator[list[Pair]]:
        if expectation == wanted:
            yield pairs
            return
        yield from extend(expectation + 1, pairs)
        used = {call for _, call in pairs}
        for call, row in enumerate(rows):
            later = not ordered or not pairs or pairs[-1][1] < call
            if row >> expectation & 1 and call not in used and later:
                yield from extend(expectation + 1, [*pairs, (expectation, call)])

    return extend(0, [])


def rank(pairs: list[Pair], worth: Worth) -> tuple[object, ...]:
    kept = sum(worth.get(pair, (0, 0))[0] for pair in pairs)
    unbroken = sum(worth.get(pair, (0, 0))[1] for pair in pairs)
    calls = tuple(sorted(call for _, call in pairs))
    return (-len(pairs), -kept, calls, -unbroken, tuple(expectation for expectation, _ in pairs))


@given(boards())
@settings(max_examples=examples(500))
def test_the_ordered_alignment_is_the_longest_with_the_earliest_calls(board: tuple[list[int], int]) -> None:
    best = min(every_alignment(*board, ordered=True), key=lambda pairs: rank(pairs, {}))
    assert longest_sequence(*board) == best


@given(boards())
@settings(max_examples=examples(500))
def test_the_assignment_is_maximum_with_the_earliest_calls(board: tuple[list[int], int]) -> None:
    best = min(rank(pairs, {}) for pairs in every_alignment(*board, ordered=False))
    assert rank(largest_assignment(*board), {}) == best


@given(boards())
def test_a_subsequence_is_found_exactly_when_there_is_one(board: tuple[list[int], int]) -> None:
    longest = max(len(pairs) for pairs in every_alignment(*board, ordered=True))
    found = subsequence(*board)
    assert (found is not None) == (longest == board[1])


@given(boards(), st.data())
@settings(max_examples=examples(500))
def test_most_time_limits_are_kept_among_the_largest_alignments(
    board: tuple[list[int], int], data: st.DataObject
) -> None:
    rows, wanted = board
    timed = data.draw(st.sets(st.integers(0, 3)))
    outcomes = st.sampled_from([(1, 1), (0, 1), (0, 0)])
    worth = {(e, call): data.draw(outcomes) for e in timed if e < wanted for call in range(len(rows))}
    found = {True: heaviest_sequence(rows, wanted, worth), False: heaviest_assignment(rows, worth)}
    for ordered, pairs in found.items():
        best = min(rank(rival, worth) for rival in every_alignment(rows, wanted, ordered=ordered))
        assert rank(pairs, worth) == best


def test_a_thousand_rivals_for_everything() -> None:
    size = 1000
    nested = [((1 << size) - 1) >> call for call in range(size)]
    assert len(largest_assignment(nested, size)) == size
    assert len(largest_assignment(nested[::-1], size)) == size
    reversal = [1 << (size - 1 - call) for call in range(size)]
    assert longest_sequence(reversal, size) == [(size - 1, 0)]


def test_a_thousand_time_limits_do_not_hang() -> None:
    size = 1000
    everything = [(1 << size) - 1] * size
    worth = {(e, call): (int(call % 2 == 0), int(call % 2 == 0)) for e in range(size) for call in range(size)}
    pairs = heaviest_assignment(everything, worth)
    assert len(pairs) == size
    alone = [1 << call for call in range(size)]
    assert heaviest_assignment(alone, {(e, e): (0, 0) for e in range(size)}) == [(e, e) for e in range(size)]
