"""Is JSON read whatever an agent made of it, and is what we write always valid?"""

import json
import math
import time
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv import jsonio as formats_json
from agentv.errors import FormatError
from agentv.jsonio import dump_json, parse_json, scrub
from agentv.model.conversation import UNSET, Message, ToolCall
from agentv.model.response import ProviderResponse


def strict(data: bytes) -> Any:
    """Return the value that a strict parser reads."""
    return json.loads(data.decode("utf-8"), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": [1, 2.5, "x", null, true]}', {"a": [1, 2.5, "x", None, True]}),
        ('{"a": "ü"}', {"a": "ü"}),
        (b'{"a": NaN, "b": 1}', {"a": None, "b": 1}),
        (b"[Infinity, -Infinity, 1]", [None, None, 1]),
        (b"[1e400, -1e400, 2]", [None, None, 2]),
        (b'["a\\ud800b", 1]', ["a\ufffdb", 1]),
        ('["a\ud800b"]', ["a\ufffdb"]),
        (b'["\\ud83d\\ude00"]', ["😀"]),
        (b'["a\xffb", 1]', ["a\ufffdb", 1]),
        (b'["a\\u0000b"]', ["a\ufffdb"]),
        ('["a\\u0000b"]', ["a\ufffdb"]),
        (b'["a\x00b"]', ["a\ufffdb"]),
        (b'{"a\\u0000": 1}', {"a\ufffd": 1}),
        (b'["line\nbreak"]', ["line\nbreak"]),
        (b"\xef\xbb\xbf{}", {}),
        ("\ufeff{}", {}),
        (b"[" + b"1" * 5000 + b", 1]", [None, 1]),
        (b"[123456789012345678901234567890]", [123456789012345678901234567890]),
    ],
)
def test_what_can_be_read_is_read(data: bytes | str, value: Any) -> None:
    assert parse_json(data) == value


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "line 1, column 1"),
        (b"not json", "line 1, column 1"),
        (b'{"a": 1', "line 1, column 8"),
        (b'{"a": 1,\n "b" 2}', "line 2, column 6"),
        (b"{} {}", "Extra data"),
        (b"[1,]", "line 1"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(data: bytes, words: str) -> None:
    with pytest.raises(FormatError, match="not JSON") as caught:
        parse_json(data)
    assert words in str(caught.value)
    assert caught.value.format == "json"


@pytest.mark.parametrize(
    "data",
    [
        b"[" * 200_000,
        b"[" * 200_000 + b"]" * 200_000,
        b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
        b"[NaN," * 200_000,
        b'{"output_messages":' + b"[" * 200_000 + b"]" * 200_000 + b"}",
    ],
)
def test_200_000_deep_json_is_refused_quickly(data: bytes) -> None:
    started = time.perf_counter()
    with pytest.raises(FormatError, match="nested too deeply"):
        parse_json(data)
    assert time.perf_counter() - started < 1


def test_a_text_that_is_too_large_is_refused_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats_json, "MAX_BYTES", 10)
    assert parse_json(b"1234567890") == 1234567890
    with pytest.raises(FormatError, match="11 bytes"):
        parse_json(b"12345678901")


@given(st.binary(max_size=40) | st.text(st.characters(), max_size=40))
def test_any_bytes_are_read_or_refused(data: bytes | str) -> None:
    try:
        value = parse_json(data)
    except FormatError:
        return
    assert strict(dump_json(value)) == value


class Odd:
    def __str__(self) -> str:
        message = "no words for it"
        raise RuntimeError(message)


class Name(str):
    __slots__ = ()


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ({"a": math.nan, "b": [math.inf, 1]}, {"a": None, "b": [None, 1]}),
        (["a\ud800b", "\ud83d\ude00"], ["a\ufffdb", "😀"]),
        ({"a\x00": "b\x00"}, {"a\ufffd": "b\ufffd"}),
        ({1: "a", None: "b", (1, 2): "c"}, {"1": "a", "None": "b", "(1, 2)": "c"}),
        ((1, {2}), [1, [2]]),
        ([10**30, 10**5000], [10**30, None]),
        (OrderedDict(a=1), {"a": 1}),
        (MappingProxyType({"a": MappingProxyType({})}), {"a": {}}),
        ([Odd(), Name("x"), {Name("k"): Odd()}], ["<Odd>", "x", {"k": "<Odd>"}]),
        (UNSET, None),
        ([UNSET, {None: UNSET}], [None, {"None": None}]),
        (ToolCall(tool="a", output=None), {"tool": "a", "output": None}),
        (ToolCall(tool="a\ud800", input={"x": "\x00"}), {"tool": "a\ufffd", "input": {"x": "\ufffd"}}),
        ([Message(role="user", content="\ud800")], [{"role": "user", "content": "\ufffd"}]),
    ],
)
def test_whatever_is_written_is_strict_json(value: Any, written: Any) -> None:
    assert strict(dump_json(value)) == written
    assert strict(dump_json(scrub(value))) == written


def test_scrubbing_writes_into_nothing() -> None:
    value = {"a": ["\x00", {"b": math.nan}]}
    assert scrub(value) == {"a": ["\ufffd", {"b": None}]}
    assert value["a"][0] == "\x00"


def test_what_needs_no_scrubbing_is_written_as_it_is() -> None:
    value = {"a": [1, "ü", None], "b": {"c": 0.5}}
    assert dump_json(value) == b'{"a":[1,"\xc3\xbc",null],"b":{"c":0.5}}'
    assert dump_json("\\u0000") == b'"\\\\u0000"'


@pytest.mark.parametrize("levels", [128, 2_000, 200_000])
def test_a_value_of_any_depth_can_be_written(levels: int) -> None:
    value = strict(dump_json({"a": nested(levels)}))
    plain = strict(dump_json(ProviderResponse(raw_response=nested(levels))))
    assert isinstance(value["a"], list)
    assert isinstance(plain["raw_response"], list)
    assert value["a"] == nested(levels) or b"nested deeper than 256 levels" in dump_json(value)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()) | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
        max_leaves=8,
    )
)
def test_any_value_is_written_as_strict_json(value: Any) -> None:
    data = dump_json(value)
    strict(data)
    assert b"\\u0000" not in data.replace(b"\\\\", b"")
    assert dump_json(parse_json(data)) == data
