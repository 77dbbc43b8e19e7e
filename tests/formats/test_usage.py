"""Token counts are read alike from all providers."""

from typing import Any

import pytest

from agentv.formats.reader import decode_response
from agentv.formats.usage import add_usage, decode_usage
from agentv.model.response import TokensUsage


def usage(read: int | None = None, wrote: int | None = None, total: int | None = None, **parts: Any) -> TokensUsage:
    return TokensUsage(input_tokens=read, output_tokens=wrote, total_tokens=total, **parts)


CASES: dict[str, tuple[dict[str, Any], TokensUsage]] = {
    # the table of the documentation
    "our standard": ({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}, usage(10, 5, 15)),
    "OpenAI": ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}, usage(10, 5, 15)),
    "LangGraph": (
        {
            "input_tokens": 40,
            "output_tokens": 18,
            "total_tokens": 58,
            "input_token_details": {"cache_read": 30, "cache_creation": 4},
            "output_token_details": {"reasoning": 7},
        },
        usage(40, 18, 58, cache_read_tokens=30, cache_write_tokens=4, reasoning_tokens=7),
    ),
    "Anthropic": ({"input_tokens": 10, "output_tokens": 5}, usage(10, 5, 15)),
    # a whole includes its parts
    "Anthropic with a cache": (
        {
            "input_tokens": 3,
            "cache_read_input_tokens": 30_000,
            "cache_creation_input_tokens": 2_000,
            "output_tokens": 10,
        },
        usage(32_003, 10, 32_013, cache_read_tokens=30_000, cache_write_tokens=2_000),
    ),
    "Anthropic with half a cache": (
        {"input_tokens": 3, "cache_read_input_tokens": None, "cache_creation_input_tokens": 7, "output_tokens": 1},
        usage(10, 1, 11, cache_write_tokens=7),
    ),
    "OpenAI with details": (
        {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 8, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
        usage(10, 5, 15, cache_read_tokens=8, reasoning_tokens=2),
    ),
    "OpenAI Responses": (
        {
            "input_tokens": 10,
            "input_tokens_details": {"cached_tokens": 8},
            "output_tokens": 5,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 15,
        },
        usage(10, 5, 15, cache_read_tokens=8, reasoning_tokens=2),
    ),
    "Gemini": (
        {
            "promptTokenCount": 83,
            "candidatesTokenCount": 30,
            "thoughtsTokenCount": 190,
            "cachedContentTokenCount": 4,
            "totalTokenCount": 303,
        },
        usage(83, 220, 303, cache_read_tokens=4, reasoning_tokens=190),
    ),
    "Gemini in snake_case": (
        {"prompt_token_count": 40, "candidates_token_count": 18, "thoughts_token_count": 5, "total_token_count": 63},
        usage(40, 23, 63, reasoning_tokens=5),
    ),
    "Gemini with tools": (
        {
            "promptTokenCount": 10,
            "toolUsePromptTokenCount": 5,
            "candidatesTokenCount": 2,
            "totalTokenCount": 17,
        },
        usage(15, 2, 17),
    ),
    "camelCase": (
        {"inputTokens": 10, "outputTokens": 5, "totalTokens": 15, "cacheReadTokens": 1, "reasoningTokens": 2},
        usage(10, 5, 15, cache_read_tokens=1, reasoning_tokens=2),
    ),
    "004's old shape": ({"input": 10, "output": 5}, usage(10, 5, 15)),
    # unknown is null, never 0
    "input alone": ({"input_tokens": 10}, usage(10)),
    "total alone": ({"total_tokens": 10}, usage(None, None, 10)),
    "null counts": ({"input_tokens": 10, "output_tokens": None, "total_tokens": 12}, usage(10, None, 12)),
    "zeros": ({"input_tokens": 0, "output_tokens": 0}, usage(0, 0, 0)),
    "Gemini that only thought": (
        {"promptTokenCount": 10, "thoughtsTokenCount": 5, "totalTokenCount": 15},
        usage(10, None, 15, reasoning_tokens=5),
    ),
    # totals
    "a total that disagrees": (
        {"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 109},
        usage(35, 12, 109, metadata={"sum_tokens": 47}),
    ),
    "a whole number in disguise": ({"input_tokens": 10.0, "output_tokens": 5}, usage(10, 5, 15)),
}


@pytest.mark.parametrize("case", CASES)
def test_counts_are_read_under_one_rule(case: str) -> None:
    data, expected = CASES[case]
    warnings: list[str] = []
    assert decode_usage(data, warnings=warnings) == expected
    assert not warnings
    assert decode_response({"usage": data}).tokens_usage == expected


@pytest.mark.parametrize("data", [None, {}, {"input_tokens": None}, {"service_tier": "standard"}])
def test_no_counts_are_no_usage(data: Any) -> None:
    assert decode_usage(data) is None


@pytest.mark.parametrize("value", ["10", -1, True, 1.5, [], {"x": 1}, float("nan")])
def test_a_malformed_count_is_reported_and_unknown(value: Any) -> None:
    warnings: list[str] = []
    assert decode_usage({"prompt_tokens": value, "completion_tokens": 5}, "usage", warnings) == usage(None, 5)
    assert len(warnings) == 1
    assert warnings[0].startswith("usage.prompt_tokens: expected a whole number of at least 0, got ")


def test_numbers_in_strings_are_not_glued_together() -> None:
    warnings: list[str] = []
    assert decode_usage({"input_tokens": "10", "output_tokens": "5"}, warnings=warnings) is None
    assert warnings == [
        'tokens_usage.input_tokens: expected a whole number of at least 0, got "10"',
        'tokens_usage.output_tokens: expected a whole number of at least 0, got "5"',
    ]


def test_a_malformed_part_makes_the_whole_unknown() -> None:
    warnings: list[str] = []
    data = {"input_tokens": 3, "cache_read_input_tokens": "x", "output_tokens": 1}
    assert decode_usage(data, warnings=warnings) == usage(None, 1)
    assert warnings == ['tokens_usage.cache_read_input_tokens: expected a whole number of at least 0, got "x"']


def test_usage_that_is_no_object() -> None:
    warnings: list[str] = []
    assert decode_usage([1, 2], warnings=warnings) is None
    assert warnings == ["tokens_usage: expected an object, got a list"]


@pytest.mark.parametrize(
    "data",
    [
        {"prompt_tokens": 1, "completion_tokens": 2, "prompt_tokens_details": {"audio_tokens": 1}},
        {"input_tokens": 1, "output_tokens": 2, "service_tier": "standard"},
        {"input_tokens": "1"},
        {"what": "ever"},
        7,
    ],
)
def test_what_has_no_place_in_the_counts_is_kept_with_the_reply(data: Any) -> None:
    assert decode_response({"usage": data}).metadata == {"usage": data}


def test_counts_of_our_own_are_read_back() -> None:
    data = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 9, "metadata": {"sum_tokens": 3}}
    response = decode_response({"tokens_usage": data})
    assert response.tokens_usage == usage(1, 2, 9, metadata={"sum_tokens": 3})
    assert response.metadata is None


def test_turns_add_up() -> None:
    turns = [usage(423, 202, 625, cache_read_tokens=0), usage(771, 77, 848, cache_read_tokens=400)]
    assert add_usage(turns) == usage(1194, 279, 1473, cache_read_tokens=400)


def test_a_count_that_a_turn_lacks_is_unknown_of_all() -> None:
    assert add_usage([usage(1, 2, 3, reasoning_tokens=1), usage(1, 2, 3)]) == usage(2, 4, 6)
    assert add_usage([usage(1, 2, 3), usage(1, None, 3)]) == usage(2, None, 6)
    assert add_usage([usage(1, 2, 3), None]) is None
    assert add_usage([usage(1), usage(None, 1)]) is None
    assert add_usage([]) is None


def test_a_total_that_disagrees_does_so_in_the_sum() -> None:
    turn = usage(1, 2, 9, metadata={"sum_tokens": 3})
    assert add_usage([turn, turn]) == usage(2, 4, 18, metadata={"sum_tokens": 6})
