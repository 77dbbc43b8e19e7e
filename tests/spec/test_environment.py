"""`${ENV}` variables in settings, and `.env` files."""

from typing import Any

import pytest

from agentv.errors import FormatError
from agentv.spec.environment import env_variables, parse_dotenv, resolve_env, substitute


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("${HOST}/x", "h/x"),
        ("${NONE:-d}", "d"),
        ("${NONE}", ""),
        ("$${HOST}", "${HOST}"),
        ("$HOST", "$HOST"),
        ("${NESTED}", "${HOST}"),
    ],
)
def test_variables_are_replaced_once(text: str, resolved: str) -> None:
    settings = {"url": text, "inner": [{"url": text}], "count": 1}
    environment = {"HOST": "h", "NESTED": "${HOST}"}
    assert resolve_env(settings, environment) == {"url": resolved, "inner": [{"url": resolved}], "count": 1}


def test_names_of_variables_are_listed_and_missing_ones_reported() -> None:
    settings: dict[str, Any] = {"a": ["${X}", "$${ESCAPED}"], "b": {"c": "${Y:-1}"}}
    assert list(env_variables(settings)) == ["X", "Y"]
    missing: list[str] = []
    substitute(settings, {}, missing)
    assert missing == ["X"]


def test_a_dotenv_file_has_quotes_comments_and_exports() -> None:
    text = "# comment\nexport A=1\nB = 'two # words'\nC=x # comment\nnot a variable\n"
    assert parse_dotenv(text) == {"A": "1", "B": "two # words", "C": "x"}


def test_an_open_quote_is_reported_with_its_line() -> None:
    with pytest.raises(FormatError, match="line 2: the quote is not closed"):
        parse_dotenv("A=1\nB='x\n")
