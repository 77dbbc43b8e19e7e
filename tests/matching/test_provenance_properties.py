"""Values in the words of a simulated user: no text ends the check with an exception."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.matching.values import find_values, normalize_number

UNUSUAL = [
    "The router is 192.168.1.1",
    "version 1.2.3.4",
    "1.000.000 euros",
    "1,2,3,4",
    "at 12:61",
    "0x1F",
    "1e999",
    "٣ x",
]


@pytest.mark.parametrize("text", UNUSUAL)
def test_numbers_of_unusual_forms_are_read_or_left_out(text: str) -> None:
    assert all(value.text for value in find_values(text))


@given(st.text(alphabet="0123456789.,:-/%$€kKmM apmAPM@ab\n", max_size=40))
def test_no_text_of_digits_and_signs_raises_an_exception(text: str) -> None:
    assert isinstance(find_values(text), list)


@pytest.mark.parametrize(("text", "number"), [("1,299.00", "1299"), ("1299", "1299"), ("3.50", "3.5")])
def test_forms_of_one_number_are_the_same(text: str, number: str) -> None:
    assert float(normalize_number(text)) == float(number)
