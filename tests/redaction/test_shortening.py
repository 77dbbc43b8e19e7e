"""Texts are redacted first and cut afterwards, at every place that quotes a part of one."""

import pytest

import agentv
from agentv.evaluators.selectors import around, ending, excerpt
from agentv.matching.diff import quote
from agentv.process.pipes import BoundedOutput
from agentv.providers.cli.output import last_lines, quote_line
from agentv.providers.transport.failures import HttpResponse, TransportError, body_excerpt, read_json, redact_url
from agentv.redaction import Redactor, shorten, shorten_start

TOKEN = "ghp_" + "0aB1cD2eF3" * 4
KNOWN = "correct-horse-battery"


def leaks(text: str, secret: str) -> bool:
    """Return whether six characters of a secret in a row are left, beside the prefix that names its kind."""
    body = secret.removeprefix("ghp_")
    return any(body[at : at + 6] in text for at in range(len(body) - 5))


@pytest.mark.parametrize("before", range(0, 260, 7))
def test_no_cut_leaves_a_part_of_a_token(before: int) -> None:
    text = "x " * (before // 2) + f" {TOKEN} " + "y " * 3000
    for shown in (shorten(text, 200), quote(text), excerpt(text), quote({"a": text}), around(text, 100)):
        assert not leaks(shown, TOKEN)
        assert len(shown) <= 202
    reverse = "y " * 3000 + f" {TOKEN} " + "x " * (before // 2)
    assert not leaks(shorten_start(reverse, 200), TOKEN)
    assert not leaks(ending(reverse), TOKEN)


@pytest.mark.parametrize("shift", range(0, 60, 3))
def test_no_tail_of_output_leaves_a_part_of_a_secret(shift: int) -> None:
    redactor = Redactor({"WORD": KNOWN})
    for secret in (TOKEN, KNOWN):
        stderr = BoundedOutput(100_000)
        stderr.feed(b"z " * 3000 + secret.encode() + b" " + b"x " * (1_000 - shift))
        assert not leaks(redactor.text(stderr.tail()), secret)
        printed = b"z " * 3000 + secret.encode() + b" " + b"x " * (500 - shift)
        assert not leaks(redactor.text(last_lines(printed)), secret)
        assert not leaks(redactor.text(quote_line(b"x " * (shift // 2) + secret.encode() + b" y" * 100)), secret)


@pytest.mark.parametrize("before", range(240, 310, 3))
def test_no_excerpt_of_a_body_leaves_a_part_of_the_key_that_was_sent(before: int) -> None:
    body = b"x" * before + b" " + KNOWN.encode() + b" and more" * 50
    assert not leaks(redact_url(body_excerpt(body), (KNOWN,)), KNOWN)
    with pytest.raises(TransportError) as raised:
        read_json(HttpResponse(status=200, body=body, hidden=(KNOWN,)))
    assert not leaks(str(raised.value), KNOWN)


def test_a_short_text_stays_as_it_is_until_it_is_written() -> None:
    assert quote(TOKEN) == f'"{TOKEN}"'
    miss = agentv.score({"text": "x " * 95 + TOKEN}, [{"type": "contains", "value": "y"}]).evaluators[0].misses[0]
    assert not leaks(miss, TOKEN)
