"""What a person reads."""

import io
from typing import Any

import agentv
from agentv.reports.terminal import Style, clean, display_width, fit

REPLY: list[dict[str, Any]] = [
    {
        "role": "assistant",
        "tool_calls": [
            {"tool": "search", "input": {"query": "refund"}},
            {"tool": "delete_user"},
            {"tool": "fetch", "input": {"url": "b"}},
            {"tool": "plan"},
        ],
    }
]
CONFIG = [
    {
        "type": "tool_trajectory",
        "mode": "exact",
        "expected": [
            {"tool": "plan"},
            {"tool": "search", "input": {"query": "refund"}},
            {"tool": "fetch", "input": {"url": "a"}},
            {"tool": "answer"},
        ],
    }
]


def test_the_diff_is_aligned_and_plain() -> None:
    text = agentv.Scorer(CONFIG).explain(REPLY, style=Style(unicode=False))
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == "FAIL  score 0.00"
    columns = {line.index("|") for line in text.splitlines() if "|" in line}
    assert len(columns) == 1
    assert [line.split("|")[0].split() for line in lines if "|" in line] == [
        ["expected"],
        ["%", "plan"],
        ["=", 'search(query="refund")'],
        ["+"],
        ["~", 'fetch(url="a")'],
        ["input.url:", '"a"'],
        ["-", "answer"],
    ]
    assert 'x call 2 fetch: input.url expected "a", got "b"' in lines
    assert "\x1b" not in text


def test_colours_only_where_asked_for() -> None:
    scorer = agentv.Scorer(CONFIG)
    assert "\x1b[31mFAIL\x1b[0m" in scorer.explain(REPLY, style=Style(color=True, width=80))


def test_a_stream_that_is_no_terminal_is_plain() -> None:
    assert Style.of(io.StringIO()).color is False


def test_turns_counts_and_errors_are_explained_too() -> None:
    turns = [{"type": "tool_trajectory", "mode": "exact", "unit": "turn", "expected": [[{"tool": "A"}, {"tool": "B"}]]}]
    assert "[A, B]" in agentv.explain(REPLY, turns)
    counts = [{"type": "tool_trajectory", "maximums": {"*": 1}, "name": "few"}]
    assert "FAIL few (tool_trajectory)" in agentv.explain(REPLY, counts)
    assert "timeout" in agentv.explain({"error": {"kind": "timeout", "message": "60 s"}}, counts)
    undecided = agentv.explain({"trace_summary": {"tool_calls_by_name": {"A": 1}}}, CONFIG)
    assert "ERROR" in undecided
    assert "? expected (exact)" in undecided


def test_an_agent_cannot_smuggle_escape_sequences_into_a_terminal() -> None:
    hostile = [{"role": "assistant", "tool_calls": [{"tool": "a\x1b[2J\u202e\x9b", "input": {"x": "\x1b]0;hi\x07"}}]}]
    text = agentv.explain(hostile, CONFIG)
    assert all(char.isprintable() or char == "\n" for char in text)


def test_wide_and_combining_characters_keep_the_columns() -> None:
    assert (display_width("日本"), display_width("e\u0301")) == (4, 1)
    assert [display_width(fit(text, 6)) for text in ("", "日本語日本", "abcdefghij", "日本")] == [6, 6, 6, 6]
    assert clean("a\u200bb") == "a\\u200bb"
