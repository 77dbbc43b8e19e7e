"""JSON: a tolerant parser, a strict writer, and limits on the nesting of values."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from msgspec import UNSET, Struct, structs, to_builtins
from msgspec.json import Decoder, Encoder

from agentv.errors import FormatError

MAX_BYTES = 64 * 1024 * 1024
"""Size of the largest text that is parsed."""
MAX_WRITTEN_DEPTH = 256
"""Levels that `scrub` writes: more than the parser accepts, and few enough for every reader."""
_TOO_DEEP = f"[nested deeper than {MAX_WRITTEN_DEPTH} levels]"
_REPEATED = "[left out: the same values over and over]"
_MAX_REPEATED = 1_000_000
"""Most items of repeated lists and objects that are written: a few objects that contain each other never end."""
TOO_LONG = "a number too long to be written"
_MAX_INT_BITS = 14_000
"""Longer integers are left out: Python refuses to convert more than 4300 digits."""

CONVERT_ERRORS = (Exception,)
"""Exceptions of `msgspec.convert` for a foreign value, whose own methods may raise anything."""

_decode = Decoder().decode
_NUL = b"\\u0000"


def parse_json(data: bytes | bytearray | memoryview | str) -> Any:
    """Parse a JSON text, tolerating `NaN`, invalid Unicode and control characters, or raise `FormatError`."""
    if isinstance(data, (bytearray, memoryview)):
        data = bytes(data)
    if not isinstance(data, (bytes, str)):
        msg = f"expected JSON text, got a value of type {type(data).__name__!r}"
        raise FormatError(msg, format="json")
    if len(data) > MAX_BYTES:
        msg = f"{len(data):,} bytes of JSON; at most {MAX_BYTES:,} are read"
        raise FormatError(msg, format="json")
    try:
        value = _decode(data)
    except RecursionError:
        raise _too_deep() from None
    except ValueError:
        return _parse_tolerantly(data)
    escaped_nul = _NUL in data if isinstance(data, bytes) else "\\u0000" in data
    return scrub(value) if escaped_nul else value


def _parse_tolerantly(data: bytes | str) -> Any:
    text = data if isinstance(data, str) else data.decode("utf-8-sig", "replace")
    document = text.removeprefix("\ufeff")
    try:
        return scrub(parse_with_hooks(document, strict=False, parse_constant=lambda _: None, parse_int=_parse_int))
    except RecursionError:
        raise _too_deep() from None


def parse_with_hooks(text: str | bytes, *, strict: bool = True, **hooks: Any) -> Any:
    """Parse JSON with the standard library's parser, which has hooks; raise `ValueError` if it is malformed."""
    from json import JSONDecodeError, loads  # noqa: PLC0415 - takes a millisecond, and is rarely needed

    try:
        return loads(text, strict=strict, **hooks)
    except JSONDecodeError as error:
        msg = f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise FormatError(msg, format="json") from None


def find_duplicate_keys(data: bytes | str) -> list[str]:
    """Return the duplicate keys of all objects in a JSON text; parsers would silently take the last value."""
    duplicates: dict[str, None] = {}

    def check(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                duplicates[name] = None
            seen.add(name)

    text = data if isinstance(data, str) else data.decode("utf-8-sig", "replace")
    try:
        parse_with_hooks(text.removeprefix("\ufeff"), strict=False, object_pairs_hook=check, parse_int=_parse_int)
    except RecursionError:
        raise _too_deep() from None
    return list(duplicates)


def _parse_int(digits: str) -> int | None:
    try:
        return int(digits)
    except ValueError:  # more digits than Python converts
        return None


def _too_deep() -> FormatError:
    return FormatError("JSON is nested too deeply to be read", format="json")


def dump_json(value: Any) -> bytes:
    """Write any struct or plain value as strict JSON in valid UTF-8."""
    try:
        data = _encoder.encode(value)
    except Exception:  # noqa: BLE001 - methods of a foreign object may raise anything
        return _encoder.encode(scrub(value))
    return _encoder.encode(scrub(value)) if _NUL in data else data


def scrub(value: Any) -> Any:
    """Copy a value, replacing everything that strict JSON cannot represent or that databases reject."""
    top = [value]
    # An explicit stack, since the value may be deeper than Python's recursion limit.
    todo: list[tuple[Any, int]] = [(top, 0)]
    visited: set[int] = set()
    repeated = 0
    while todo:
        box, depth = todo.pop()
        for key, item in list(box.items()) if type(box) is dict else enumerate(box):
            clean = _clean(item)
            if type(clean) is dict or type(clean) is list:
                if id(item) in visited:
                    repeated += 1 + len(clean)
                visited.add(id(item))
                if depth >= MAX_WRITTEN_DEPTH:
                    clean = _TOO_DEEP
                elif repeated > _MAX_REPEATED:
                    clean = _REPEATED
                else:
                    todo.append((clean, depth + 1))
            box[key] = clean
    return top[0]


def _clean(item: Any) -> Any:
    """Return a clean leaf, or a new dict or list whose items are not cleaned yet."""
    try:
        return _copy(item)
    except Exception:  # noqa: BLE001 - methods of a foreign object may raise anything
        return scrub_text(safe_str(item))


def _copy(item: Any) -> Any:
    if item is None or isinstance(item, (str, int, float)):
        return _clean_leaf(item)
    if isinstance(item, Mapping):
        return {scrub_text(safe_str(key)): inner for key, inner in item.items()}
    if isinstance(item, (list, tuple, set, frozenset)):
        return list(item)
    try:
        return _clean(to_builtins(item, enc_hook=_foreign))
    except Exception:  # noqa: BLE001 - as above
        if not isinstance(item, Struct):
            return scrub_text(safe_str(item))
        return {name: inner for name, inner in structs.asdict(item).items() if inner is not UNSET}


def _clean_leaf(item: str | float | None) -> str | float | None:
    if isinstance(item, str):
        return scrub_text(item)
    # With the methods of the base class, since a subclass of a number may override them.
    if isinstance(item, float):
        return float.__float__(item) if isfinite(item) else None
    if item is None or isinstance(item, bool):
        return item
    return int.__int__(item) if int.bit_length(item) <= _MAX_INT_BITS else None


def scrub_text(text: str) -> str:
    """Replace lone surrogates and NULs by U+FFFD."""
    return replace_surrogates(str.__str__(text)).replace("\0", "\ufffd")  # a plain `str`, also for a subclass


def has_surrogates(text: str) -> bool:
    """Return whether a text contains lone surrogates."""
    return not text.isascii() and replace_surrogates(text) is not text


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD; return the same object if there are none."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _foreign(item: Any) -> Any:
    """Return a plain replacement for a value that the encoder does not support."""
    if item is UNSET:
        return None
    if isinstance(item, Mapping):
        return dict(item)
    return safe_str(item)


def safe_str(item: Any) -> str:
    """Return any foreign value as text, even if its `__str__` fails."""
    if issubclass(type(item), str):  # not `isinstance`, since an object may override `__class__`
        return str.__str__(item)  # a plain `str`, also for a subclass
    try:
        return str.__str__(str(item))
    except Exception:  # noqa: BLE001 - a foreign object's own `__str__` may raise anything
        return TOO_LONG if issubclass(type(item), int) else f"<{type(item).__name__}>"


_encoder = Encoder(enc_hook=_foreign)


MAX_DEPTH = 128
"""Most levels of lists and objects in a foreign value."""
DEPTH_MARKER = f"[nested deeper than {MAX_DEPTH} levels]"
"""Replacement for values below that depth."""

_WIDE = 100_000
"""Containers on one level from which on repeated objects are counted."""
_MAX_WIDTH = 1_000_000
"""Most containers on one level; only a value that contains itself several times has more."""


def is_deep(value: Any) -> bool:
    """Return whether a value has more than `MAX_DEPTH` levels, without recursion."""
    level = [value] if isinstance(value, (dict, list, tuple)) else []
    for _ in range(MAX_DEPTH):
        below = [
            item
            for box in level
            for item in (box.values() if isinstance(box, dict) else box)
            if isinstance(item, (dict, list, tuple))
        ]
        if not below:
            return False
        if len(below) > _MAX_WIDTH and len({id(box) for box in below}) < len(below) // 2:
            return True  # few objects that contain each other many times: written out, they would never end
        level = below
    return True


def truncate_depth(value: Any) -> Any:
    """Copy a value down to `MAX_DEPTH` levels, with `DEPTH_MARKER` in place of everything deeper."""
    top = [value]
    level: list[Any] = [top]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        visited = set()
        for box in level:
            for key, item in _items(box):
                if isinstance(item, (dict, list, tuple)):
                    box[key] = copy = dict(item) if isinstance(item, dict) else list(item)
                    below.append(copy)
                    visited.add(id(item))
        if len(below) > _MAX_WIDTH or (len(below) > _WIDE and len(visited) < len(below) // 2):
            break
        level = below
    for box in level:
        for key, item in _items(box):
            if isinstance(item, (dict, list, tuple)):
                box[key] = DEPTH_MARKER
    return top[0]


def _items(box: Any) -> Any:
    return list(box.items()) if isinstance(box, dict) else enumerate(box)
