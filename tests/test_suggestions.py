"""Suggestions for unknown names."""

from agentv.suggestions import closest, suggest


def test_the_most_similar_name_is_suggested_whatever_its_case_and_separators() -> None:
    assert closest("Max-Cost", ["max_cost", "max_tokens"]) == "max_cost"
    assert suggest("minimum", ["minimums", "order"]) == "; did you mean 'minimums'?"


def test_nothing_is_suggested_if_no_name_is_similar() -> None:
    assert closest("zzz", ["minimums"]) is None
    assert suggest("zzz", ["minimums"]) == ""
