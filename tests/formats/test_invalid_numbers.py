"""Invalid numbers in replies built by user code."""

from typing import Any

import pytest

from agentv.formats.normalize import drop_invalid_numbers
from agentv.model.response import ProviderResponse, TokensUsage


def test_a_reply_with_numbers_is_left_as_it_is() -> None:
    response = ProviderResponse(text="yes", tokens_usage=TokensUsage(input_tokens=1), cost_usd=0, latency_ms=1.5)
    assert drop_invalid_numbers(response) is response


@pytest.mark.parametrize(
    ("field", "value", "warning"),
    [
        ("cost_usd", float("nan"), "cost_usd: expected a number of at least 0, got nan"),
        ("cost_usd", "0.5", "cost_usd: expected a number of at least 0, got '0.5'"),
        ("latency_ms", -1.0, "latency_ms: expected a number of at least 0, got -1.0"),
        (
            "tokens_usage",
            TokensUsage(input_tokens="5"),  # type: ignore[arg-type]  # that is the point
            "tokens_usage: expected whole numbers of at least 0, got input_tokens '5'",
        ),
    ],
)
def test_what_is_no_amount_is_nothing_and_told(field: str, value: Any, warning: str) -> None:
    found = drop_invalid_numbers(ProviderResponse(**{"text": "yes", field: value}))
    assert getattr(found, field) is None
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith(warning)
