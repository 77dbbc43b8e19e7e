"""Writing of eval files as people write them: block style, short entries on one line, comments where they belong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agentv.spec.yaml.scalars import MAYBE_NOT_TEXT, ScalarError, parse_plain

WIDTH = 110
MAX_BYTE, MAX_SHORT = 0xFF, 0xFFFF
_PLAIN_START = re.compile(r"[^\s\-?:,\[\]{}#&*!|>'\"%@`~]|-(?=[^\s,\[\]{}])")
_NOT_PLAIN = re.compile(r": |:$| #|[\x00-\x1f\x7f-\x9f\ufeff\ufffe\uffff\u2028\u2029]|^\s|\s$")
_NOT_PLAIN_IN_FLOW = re.compile(r"[,\[\]{}]|:(?=[,\[\]{}])")
_NOT_BLOCK = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufeff\ufffe\uffff\u2028\u2029\r]|[ \t]\n|\t")
_DOCUMENT_MARK = re.compile(r"^(?:---|\.\.\.)", re.MULTILINE)


class Remark(str):
    """A comment line: an item of a list, or a key of a mapping, whose value is not used."""

    __slots__ = ()


class Commented(Struct, frozen=True):
    """A value with the comments that stood above and behind it."""

    value: Any
    above: tuple[str, ...] = ()
    behind: str = ""


def plain_data(value: Any) -> Any:
    """Return the value without comments."""
    if isinstance(value, Commented):
        return plain_data(value.value)
    if isinstance(value, Mapping):
        return {key: plain_data(item) for key, item in value.items() if not isinstance(key, Remark)}
    if isinstance(value, list):
        return [plain_data(item) for item in value if not isinstance(item, Remark)]
    return value


def find_remarks(value: Any) -> Iterator[Remark]:
    """Yield the comments in a value, at any depth."""
    if isinstance(value, Remark):
        yield value
    elif isinstance(value, Commented):
        yield from find_remarks(value.value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, Remark):
                yield key
            yield from find_remarks(item)
    elif isinstance(value, list):
        for item in value:
            yield from find_remarks(item)


def write_eval(data: Mapping[str, Any], header: Sequence[str] = ()) -> str:
    """Return an eval as YAML, with comments at the top."""
    lines = [_comment(text) for text in header]
    lines += _mapping(data, 0)
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    flat = " ".join(text.split()) if "\n" in text else text.strip()
    return f"# {_printable(flat)}".rstrip()


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _mapping(data: Mapping[str, Any], indent: int) -> Iterator[str]:
    space = " " * indent
    for key, value in data.items():
        if isinstance(key, Remark):
            yield space + _comment(key)
            continue
        noted = value if isinstance(value, Commented) else Commented(value)
        yield from (space + _comment(text) for text in noted.above)
        yield from _entry(f"{space}{scalar(key)}:", noted.value, indent, noted.behind)


def _entry(start: str, value: Any, indent: int, behind: str) -> Iterator[str]:
    """Yield the lines of a key with its value."""
    tail = f"  {_comment(behind)}" if behind else ""
    if isinstance(value, str):
        block = _block_text(value, indent + 2)
        if block is not None:
            yield f"{start} {block[0]}{tail}"
            yield from block[1:]
            return
    short = None if start.strip() in _BLOCKS and value else _short(value, WIDTH - len(start) - 1)
    if short is not None:
        yield f"{start} {short}{tail}"
    elif isinstance(value, Mapping):
        yield start + tail
        yield from _mapping(value, indent + 2)
    elif isinstance(value, list):
        yield start + tail
        yield from _sequence(value, indent + 2)
    else:
        yield f"{start} {scalar(value)}{tail}"


def _sequence(items: Sequence[Any], indent: int) -> Iterator[str]:
    space = " " * indent
    for item in items:
        if isinstance(item, Remark):
            yield space + _comment(item)
            continue
        noted = item if isinstance(item, Commented) else Commented(item)
        yield from (space + _comment(text) for text in noted.above)
        tail = f"  {_comment(noted.behind)}" if noted.behind else ""
        yield from _item(noted.value, space, indent, tail)


def _item(value: Any, space: str, indent: int, tail: str) -> Iterator[str]:
    short = _short(value, WIDTH - indent - 2)
    if short is not None:
        yield f"{space}- {short}{tail}"
        return
    if isinstance(value, str):
        block = _block_text(value, indent + 2) or [scalar(value)]
        yield f"{space}- {block[0]}{tail}"
        yield from block[1:]
        return
    lines = list(_mapping(value, indent + 2) if isinstance(value, Mapping) else _sequence(value, indent + 2))
    if not lines:
        yield f"{space}- {scalar(value)}{tail}"
        return
    # A comment cannot stand between the dash and the first key: it moves above the dash.
    while lines[0].lstrip().startswith("#"):
        yield space + lines.pop(0).lstrip()
    yield f"{space}- {lines[0].lstrip()}{tail}"
    yield from lines[1:]


def _short(value: Any, room: int) -> str | None:
    """Return a value in flow style, if it is short and has no comments inside."""
    if isinstance(value, Mapping):
        if not value:
            return "{}"
        if not _is_compact(value):
            return None
    elif isinstance(value, list):
        if not value:
            return "[]"
        if any(isinstance(item, (Mapping, list)) and item for item in value) and not _is_compact({"": value}):
            return None
    elif isinstance(value, str) and _block_text(value, 0) is not None:
        return None
    text = _flow(value)
    return text if text is not None and (len(text) <= room or not isinstance(value, (Mapping, list))) else None


_BLOCKS = ("evaluators:", "defaults:", "cases:", "targets:", "template:")
"""Keys whose values are written one entry a line."""
_LONG_FORM = ("id", "cases", "targets", "template", "input", "turns")
"""Keys of cases and evals, which are never written on one line."""


def _is_compact(value: Mapping[str, Any]) -> bool:
    return not any(key in _LONG_FORM for key in value) or "role" in value


def _flow(value: Any) -> str | None:
    if isinstance(value, (Commented, Remark)):
        return None
    if isinstance(value, Mapping):
        pairs: list[str] = []
        for key, item in value.items():
            text = None if isinstance(key, Remark) else _flow(item)
            if text is None:
                return None
            pairs.append(f"{scalar(key, flow=True)}: {text}")
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        items = [_flow(item) for item in value]
        return None if any(item is None for item in items) else "[" + ", ".join(map(str, items)) + "]"
    if isinstance(value, str) and "\n" in value:
        return None if len(value) > WIDTH else scalar(value, flow=True)
    return scalar(value, flow=True)


def scalar(value: Any, *, flow: bool = False) -> str:
    """Return a scalar, or an empty list or mapping, as YAML."""
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if _is_plain(value, flow=flow):
        return value
    if "'" not in value and value.isprintable() and ('"' in value or "\\" in value):
        return f"'{value}'"
    return _double_quoted(value)


def _double_quoted(text: str) -> str:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return '"' + "".join(letter if letter.isprintable() else _escaped(letter) for letter in quoted) + '"'


def _escaped(letter: str) -> str:
    code = ord(letter)
    return f"\\x{code:02x}" if code <= MAX_BYTE else f"\\u{code:04x}" if code <= MAX_SHORT else f"\\U{code:08x}"


def _is_plain(text: str, *, flow: bool) -> bool:
    if not text or _PLAIN_START.match(text) is None or _NOT_PLAIN.search(text) or not text.isprintable():
        return False
    if flow and _NOT_PLAIN_IN_FLOW.search(text):
        return False
    if text[:1] in MAYBE_NOT_TEXT:
        try:
            read, surprise = parse_plain(text)
        except ScalarError:
            return False
        return read == text and not surprise
    return "{{" not in text[:2] and text != "<<"


def _block_text(text: str, indent: int) -> list[str] | None:
    """Return a text of several lines as a block scalar; `None` if it cannot be one."""
    body = text.removesuffix("\n")
    if "\n" not in body or _NOT_BLOCK.search(text) or _DOCUMENT_MARK.search(text) or body.endswith("\n"):
        return None
    if text[:1] in (" ", "\n") or not all(letter.isprintable() or letter == "\n" for letter in text):
        return None
    mark = "|" if text.endswith("\n") else "|-"
    return [mark, *(" " * indent + line if line else "" for line in body.split("\n"))]
