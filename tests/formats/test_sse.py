"""Decoders of server-sent events and JSON lines, with chunks split anywhere."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.errors import FormatError
from agentv.formats.sse import LineBuffer, ServerEvent, SseDecoder


def events(*chunks: bytes) -> list[ServerEvent]:
    reader = SseDecoder()
    found = [event for chunk in chunks for event in reader.feed(chunk)]
    return [*found, *reader.finish()]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_lines_end_in_three_ways(end: bytes) -> None:
    assert events(b"event: a" + end + b"data: 1" + end + end + b"data: 2" + end + end) == [
        ServerEvent("1", "a"),
        ServerEvent("2"),
    ]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data: a\ndata: b\ndata:\ndata:  c\n\n", [ServerEvent("a\nb\n\n c")]),
        (b": a comment\n:\ndata: a\n\n", [ServerEvent("a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [ServerEvent("a")]),
        (b"data: \xef\xbb\xbfa\n\n", [ServerEvent("\ufeffa")]),
        (b"data\n\n", [ServerEvent("")]),
        (b"event: lonely\n\ndata: a\n\n", [ServerEvent("a")]),
        (b"id: 1\ndata: a\n\ndata: b\n\n", [ServerEvent("a", id="1"), ServerEvent("b", id="1")]),
        (b"id: 1\ndata: a\n\nid\ndata: c\n\n", [ServerEvent("a", id="1"), ServerEvent("c")]),
        (b"id: 1\x002\ndata: a\n\n", [ServerEvent("a")]),
        (b"retry: 10\nother: x\nDATA: no\n data: no\ndata: a\n\n", [ServerEvent("a")]),
        (b'data: {"a": "b: c"}\n\n', [ServerEvent('{"a": "b: c"}')]),
        (b"data: caf\xc3\xa9 \xff\n\n", [ServerEvent("café \ufffd")]),
        (b"\n\n\n", []),
        (b"", []),
    ],
)  # fmt: skip
def test_the_standard_s_rules(stream: bytes, expected: list[ServerEvent]) -> None:
    assert events(stream) == expected


def test_an_event_is_there_as_soon_as_its_empty_line_is() -> None:
    reader = SseDecoder()
    assert reader.feed(b"data: a\r\n\r") == [ServerEvent("a")]
    assert reader.feed(b"\ndata: b\r\r") == [ServerEvent("b")]
    assert reader.finish() == []


def test_a_last_event_without_its_empty_line_is_given_at_the_end() -> None:
    reader = SseDecoder()
    assert reader.feed(b"data: [DONE]") == []
    assert reader.finish() == [ServerEvent("[DONE]")]


_pieces = st.sampled_from([
    *(b"\n", b"\r", b"\r\n", b"\n\n", b"data: ", b"data:", b"event: x", b"id: 7", b": c"),
    *("é🌤".encode(), b"\xef\xbb\xbf", b"\xff", b"{}", b"\x00", b" "),
])  # fmt: skip


@given(st.lists(_pieces, max_size=30), st.lists(st.integers(0, 1000), max_size=8))
def test_any_split_gives_the_same_events(parts: list[bytes], places: list[int]) -> None:
    data = b"".join(parts)
    assert events(*cut(data, places)) == events(data)
    assert events(*(data[at : at + 1] for at in range(len(data)))) == events(data)


def test_what_never_ends_is_refused() -> None:
    lines, reader = LineBuffer(max_bytes=100), SseDecoder(max_bytes=100)
    with pytest.raises(FormatError, match="longer than 100 bytes"):
        [lines.feed(b"x" * 30) for _ in range(4)]
    with pytest.raises(FormatError, match="longer than 100 bytes"):
        [reader.feed(b"data: xxxxxxxxxx\n") for _ in range(20)]


def test_a_long_line_in_small_pieces_takes_linear_time() -> None:
    # Looking through what is there already with every piece would take minutes.
    reader = SseDecoder()
    for _ in range(100_000):
        reader.feed(b"data: x" if _ == 0 else b"x" * 50)
    (event,) = reader.feed(b"\n\n")
    assert len(event.data) == 1 + 99_999 * 50
