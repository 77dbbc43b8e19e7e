"""Output on the terminal."""

import io
from typing import Any

import pytest

import agentv
from agentv.redaction import Redactor
from agentv.reports.diff import Extent, render_evaluator
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


def reply_of(*tools: str, **given: Any) -> list[dict[str, Any]]:
    return [{"role": "assistant", "tool_calls": [{"tool": tool, **given} for tool in tools]}]


def rows_of(text: str) -> list[tuple[str, str]]:
    """The two columns of the diff, below its heading."""
    return [
        (left.strip(), right.strip())
        for left, bar, right in (line.partition("|") for line in text.splitlines())
        if bar and "actual" not in right
    ]


ASCII = Style(unicode=False)


def test_extra_calls_that_the_mode_allows_are_folded_into_one_row() -> None:
    config = [{"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "plan"}, {"tool": "answer"}]}]
    text = agentv.Scorer(config).explain(reply_of("log", "plan", "log", "log", "search", "log"), style=ASCII)
    assert rows_of(text) == [
        ("", "0: log"),
        ("= plan", "1: plan"),
        ("- answer", ""),
        ("", "2-5: log, search (4 calls)"),
    ]


def test_extra_calls_that_are_a_miss_are_shown_one_by_one() -> None:
    config = [{"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "plan"}]}]
    text = agentv.Scorer(config).explain(reply_of("plan", "log", "log"), style=ASCII)
    assert rows_of(text) == [("= plan", "0: plan"), ("+", "1: log"), ("+", "2: log")]


def test_nested_values_that_differ_are_json_and_wrapped_instead_of_cut() -> None:
    order = {"lines": [{"sku": f"article-{number}", "count": number} for number in range(12)]}
    config = [
        {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "ship", "input": {"order": {"lines": []}}}]}
    ]
    text = agentv.Scorer(config).explain(reply_of("ship", input={"order": order}), style=ASCII)
    assert '\\"' not in text
    cells = rows_of(text)
    assert cells[1] == ("input.order.lines: []", 'input.order.lines: [{"sku":"article-0","count":0},')
    written = "".join(right for _, right in cells[1:])
    assert '{"sku":"article-2","count":2}' in written


def test_a_diff_of_a_hundred_thousand_calls_is_bounded_and_says_what_is_missing() -> None:
    tools = ["search"] * 100_000
    config = [{"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "plan"}, {"tool": "search"}]}]
    text = agentv.Scorer(config).explain(reply_of(*tools), style=ASCII)
    lines = text.splitlines()
    assert len(lines) < 100
    assert max(map(len, lines)) < 1_200
    assert "... 99,951 more rows" in text
    assert "... 99,980 more" in text
    assert lines[-1].strip() == "left out: 199,931 lines; the whole is in `details` and `misses` of the result"


def test_rows_that_do_not_match_are_shown_whatever_matches_around_them() -> None:
    tools = [f"step_{number}" for number in range(1000)]
    expected = [{"tool": tool} for tool in (*tools[:500], "verify", *tools[500:])]
    config = [{"type": "tool_trajectory", "mode": "in_order", "expected": expected}]
    rows = rows_of(agentv.Scorer(config).explain(reply_of(*tools), style=ASCII))
    assert ("- verify", "") in rows
    assert ("= 498 more", "2-497: 496 calls match") not in rows
    assert [row for row in rows if "match" in row[1]] == [
        ("= step_2 to step_497", "2-497: 496 calls match"),
        ("= step_502 to step_997", "502-997: 496 calls match"),
    ]


def test_one_sentence_about_very_many_calls_is_cut() -> None:
    config = [{"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "search"}] * 5_000}]
    text = agentv.Scorer(config).explain(reply_of(*["search"] * 5_000), style=ASCII)
    assert max(map(len, text.splitlines())) < 1_200
    assert "more characters)" in text


@pytest.mark.parametrize("width", range(60, 100, 3))
def test_a_secret_is_redacted_before_its_cell_is_wrapped_or_cut(width: int) -> None:
    secret = "correct-horse-battery-staple-2026"  # noqa: S105 - a made-up one
    redactor = Redactor({"API_KEY": secret})
    config = [{"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "login", "input": {"a": {"key": 1}}}]}]
    scorer = agentv.Scorer(config)
    reply = reply_of("login", input={"a": {"key": [secret]}})
    result = scorer.score(reply)
    sides = scorer.sides(agentv.ProviderResponse(output_messages=agentv.from_openai(reply)), result)[0]
    lines = render_evaluator(result.evaluators[0], sides, Style(width=width), Extent(redact=redactor.text))
    text = "".join(line.partition("│")[2].strip() for line in lines)
    assert "redacted" in text
    assert "correct-" not in text
