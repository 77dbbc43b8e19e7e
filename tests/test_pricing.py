"""Prices: which model is which, what is billed once, and what nobody knows."""

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.model.response import Price, TokensUsage
from agentv.pricing import calculate_cost, find_price, price_table

PLAIN = Price(input=1.0, output=10.0)
CACHED = Price(input=1.0, output=10.0, cache_read=0.1, cache_write=2.0)
MILLION = 1_000_000


class TestTheTable:
    def test_it_has_a_date_a_unit_and_a_source(self) -> None:
        table = price_table()
        assert date.fromisoformat(table.date) >= date(2026, 11, 1)
        assert "million tokens" in table.unit
        assert "list prices" in table.source

    def test_its_prices_are_plausible(self) -> None:
        for name, price in price_table().models.items():
            assert name == name.lower()
            assert 0 < price.input <= price.output, name
            assert price.cache_read is None or 0 < price.cache_read < price.input, name
            assert price.cache_write is None or price.input < price.cache_write <= 2 * price.input, name

    def test_no_entry_is_hidden_by_another(self) -> None:
        assert all(find_price(name) == price for name, price in price_table().models.items())


@pytest.mark.parametrize(
    ("name", "same_as"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("GPT-4o", "gpt-4o"),
        ("openai/gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("claude-opus-4-5-20251101", "claude-opus-4-5"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("claude-3-5-sonnet@20240620", "claude-3-5-sonnet"),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", "claude-sonnet-4"),
        ("anthropic.claude-3-haiku-20240307-v1:0", "claude-3-haiku"),
        ("models/gemini-2.5-pro", "gemini-2.5-pro"),
    ],
)
def test_a_vendor_before_a_name_and_a_date_after_it_change_nothing(name: str, same_as: str) -> None:
    assert find_price(name) == price_table().models[same_as]


def test_a_dated_model_with_a_price_of_its_own_keeps_it() -> None:
    assert find_price("gpt-4o-2024-05-13") != find_price("gpt-4o")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "my-model",
        "gpt-4o-audio-preview",
        "ft:gpt-4o-mini-2024-07-18:org::id",
        "gpt-4-32k",
        "gpt",
        "claude-opus-4-99",
    ],
)
def test_a_name_that_is_merely_similar_is_unknown(name: str) -> None:
    assert find_price(name) is None


class TestOwnPrices:
    def test_they_add_models_and_come_before_the_table(self) -> None:
        own = {"My-Model": PLAIN, "gpt-4o": CACHED}
        assert find_price("my-model", own) == PLAIN
        assert find_price("gpt-4o-2024-08-06", own) == CACHED
        assert find_price("gpt-4.1", own) == price_table().models["gpt-4.1"]

    def test_an_asterisk_stands_for_anything_but_a_whole_name_is_closer(self) -> None:
        own = {"house-*": PLAIN, "house-large": CACHED}
        assert find_price("house-small-3", own) == PLAIN
        assert find_price("house-large", own) == CACHED
        assert find_price("my-house-small", own) is None


class TestCost:
    def test_input_and_output_each_at_their_price(self) -> None:
        usage = TokensUsage(input_tokens=2 * MILLION, output_tokens=MILLION // 10)
        assert calculate_cost(usage, PLAIN) == 3.0

    def test_cached_tokens_are_part_of_the_input_and_billed_once(self) -> None:
        usage = TokensUsage(
            input_tokens=MILLION, output_tokens=0, cache_read_tokens=600_000, cache_write_tokens=300_000
        )
        assert calculate_cost(usage, CACHED) == pytest.approx(0.1 * 1.0 + 0.6 * 0.1 + 0.3 * 2.0)
        assert calculate_cost(usage, PLAIN) == pytest.approx(1.0)

    def test_reasoning_is_part_of_the_output_and_billed_once(self) -> None:
        usage = TokensUsage(input_tokens=0, output_tokens=MILLION, reasoning_tokens=900_000)
        assert calculate_cost(usage, PLAIN) == 10.0

    @pytest.mark.parametrize(
        "usage",
        [
            None,
            TokensUsage(),
            TokensUsage(total_tokens=10),
            TokensUsage(input_tokens=10),
            TokensUsage(output_tokens=10),
        ],
    )
    def test_what_is_not_known_is_not_free(self, usage: TokensUsage | None) -> None:
        assert calculate_cost(usage, PLAIN) is None

    def test_without_a_price_there_is_no_cost(self) -> None:
        assert calculate_cost(TokensUsage(input_tokens=1, output_tokens=1), None) is None

    @given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 10**9))
    def test_no_count_however_wrong_makes_it_cheaper_than_nothing_or_dearer_than_the_dearest(
        self, read: int, written: int, fresh: int, output: int
    ) -> None:
        usage = TokensUsage(
            input_tokens=fresh, output_tokens=output, cache_read_tokens=read, cache_write_tokens=written
        )
        cost = calculate_cost(usage, CACHED)
        assert cost is not None
        assert 0 <= cost <= (fresh * 2.0 + output * 10.0) / MILLION + 1e-9


def test_no_name_in_the_table_looks_dated_without_need() -> None:
    dated = [name for name in price_table().models if re.search(r"-20\d\d-?\d\d-?\d\d$", name)]
    assert dated == ["gpt-4o-2024-05-13"]
