"""Levenshtein's distance, by whichever way it is found."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agentv.matching.text import distance

LETTERS = st.text("abc", min_size=250, max_size=400)
CHANGES = st.lists(st.tuples(st.sampled_from("rid"), st.floats(0, 1), st.sampled_from("xyz")), max_size=24)


def plain(left: str, right: str) -> int:
    """The table, cell by cell."""
    row = list(range(len(right) + 1))
    for index, one in enumerate(left, 1):
        last = row
        row = [index]
        for at, other in enumerate(right, 1):
            row.append(min(last[at] + 1, row[-1] + 1, last[at - 1] + (one != other)))
    return row[-1]


@settings(deadline=None)
@given(LETTERS, CHANGES)
def test_nearly_equal_texts(text: str, changes: list[tuple[str, float, str]]) -> None:
    letters = list(text)
    for kind, share, letter in changes:
        at = int(share * (len(letters) - 1))
        if kind == "r":
            letters[at] = letter
        elif kind == "i":
            letters.insert(at, letter)
        else:
            del letters[at]
    other = "".join(letters)
    assert distance(text, other) == distance(other, text) == plain(text, other)


@given(st.text("ab", max_size=30), st.text("ab", max_size=30))
def test_any_two_texts(left: str, right: str) -> None:
    assert distance(left, right) == plain(left, right)
