"""`http`: what holds for every value and for every way to cut a stream into pieces."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from agentv.errors import AgentVError
from agentv.model.conversation import Message
from agentv.model.request import Request
from agentv.model.response import ProviderResponse
from agentv.providers.http.events import ReceivedEvents, read_events, receive
from agentv.providers.http.pointers import Pointers
from agentv.providers.http.request import TEMPLATE, RequestSettings, RequestWriter
from agentv.providers.http.response import ReplySettings
from agentv.providers.transport.failures import HttpResponse
from tests.support.examples import examples

TEXTS = st.text(max_size=30) | st.sampled_from(
    [
        "{{ prompt }}",
        "{{ vars.a }}",
        "{{vars}}",
        "}}{{",
        "{{ {{ prompt }} }}",
        "${HOME}",
        "{% raw %}",
        "{{ nothing }}",
        "..",
        "",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
QUICK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def writer(**given: Any) -> RequestWriter:
    plain = {
        "url": "http://h/",
        "method": "POST",
        "headers": {},
        "query": {},
        "body": UNSET,
        "message_format": "openai",
    }
    return RequestWriter(RequestSettings(**{**plain, "stream": None, "thread_header": None, **given}))


@QUICK
@given(prompt=TEXTS, case=TEXTS, value=JSON)
def test_a_value_is_put_in_whole_and_never_looked_at_again(prompt: str, case: str, value: Any) -> None:
    request = Request(id=case, input_messages=(Message(role="user", content=prompt),), vars={"a": value})
    body = {
        "p": "{{ prompt }}",
        "i": ["{{id}}"],
        "a": {"deep": "{{ vars.a }}"},
        "t": "{{ prompt }}|{{ id }}|{{ prompt }}",
    }
    made = writer(body=body).write(request)
    assert made.data is not None
    clean = str.maketrans({"\0": "\ufffd"})
    assert json.loads(made.data) == {
        "p": prompt.translate(clean),
        "i": [case.translate(clean)],
        "a": {"deep": json.loads(json.dumps(value).replace("\\u0000", "\\ufffd"))},
        "t": f"{prompt}|{case}|{prompt}".translate(clean),
    }


@QUICK
@given(body=JSON)
def test_what_holds_no_placeholder_is_sent_as_it_is_written(body: Any) -> None:
    written = json.loads(json.dumps(body).replace("{{", "{ {"))
    assert TEMPLATE.compile(written)({}) == written


@QUICK
@given(prompt=TEXTS, case=st.text(min_size=1, max_size=20).filter(lambda text: text not in (".", "..")))
def test_a_value_never_leaves_its_part_of_the_address(prompt: str, case: str) -> None:
    request = Request(id=case, input_messages=(Message(role="user", content=prompt),))
    url = writer(url="http://h/a/{{ id }}/z?p={{ prompt }}#f").write(request).url
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("http", "h", "f")
    first, segment, last = parts.path.lstrip("/").split("/")
    assert (first, last) == ("a", "z")
    assert unquote(segment) == case.encode("utf-8", "replace").decode()
    assert parts.query.count("=") == 1


# Streams


class Pieces:
    """A stream that comes in these pieces."""

    is_cut = False

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


HEAD = HttpResponse(status=200, url="http://h")
READING = ReplySettings(pointers=Pointers(), done=None, events=(), snapshots=False)
EVENTS = st.lists(st.text(max_size=12), min_size=1, max_size=6)


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = [0, *sorted({place % (len(data) + 1) for place in at}), len(data)]
    return [data[start:end] for start, end in pairwise(places)]


def read(pieces: list[bytes], kind: str) -> ProviderResponse:
    received: ReceivedEvents = asyncio.run(receive(Pieces(pieces), kind, None))  # type: ignore[arg-type]  # all it uses of it
    return read_events(received, HEAD, kind, READING, ())


@QUICK
@given(texts=EVENTS, at=st.lists(st.integers(0, 10_000), max_size=8), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_however_events_are_cut_into_pieces_they_say_the_same(texts: list[str], at: list[int], end: str) -> None:
    data = "".join(f": ping{end}data: {json.dumps({'text': text})}{end}{end}" for text in texts).encode()
    assert read(cut(data, at), "sse").text == "".join(texts).replace("\0", "\ufffd")


@QUICK
@given(texts=EVENTS, at=st.lists(st.integers(0, 10_000), max_size=8), ended=st.booleans())
def test_however_lines_are_cut_into_pieces_they_say_the_same(texts: list[str], at: list[int], ended: bool) -> None:
    data = "\n".join(json.dumps({"text": text}) for text in texts).encode() + (b"\n" if ended else b"")
    assert read(cut(data, at), "ndjson").text == "".join(texts).replace("\0", "\ufffd")


@settings(QUICK, max_examples=examples(200))
@given(values=st.lists(JSON, max_size=4), name=st.sampled_from(["", "values", "updates", "messages/partial", "error"]))
def test_whatever_a_stream_holds_it_becomes_a_reply_or_an_error_that_is_ours(values: list[Any], name: str) -> None:
    data = "".join(f"event: {name}\ndata: {json.dumps(value)}\n\n" for value in values).encode()
    with suppress(AgentVError):
        assert isinstance(read([data], "sse"), ProviderResponse)
