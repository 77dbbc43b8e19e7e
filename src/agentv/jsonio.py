"""Tolerant JSON in, strict JSON out, and how deep a foreign value may be nested."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from msgspec import UNSET, Struct, structs, to_builtins
from msgspec.json import Decoder, Encoder

from agentv.errors import FormatError

MAX_BYTES = 64 * 1024 * 1024
"""The largest text that is parsed at all."""
MAX_WRITTEN_DEPTH = 256
"""Where `scrub` stops: what decoding lets through is far shallower, and every reader can follow this deep."""
_CUT = f"[nested deeper than {MAX_WRITTEN_DEPTH} levels]"
_AGAIN = "[left out: the same values over and over]"
_MAX_AGAIN = 1_000_000
"""Items of lists and objects that were met before; without an end, few objects that share each other never end."""
TOO_LONG = "a number too long to be written"
_MAX_INT_BITS = 14_000
"""Python refuses to write integers of more than 4300 digits."""

MISFITS = (Exception,)
"""What `msgspec.convert` raises over a foreign value: an object that is asked for its items may raise anything."""

_decode = Decoder().decode
_NUL = b"\\u0000"


def parse_json(data: bytes | bytearray | memoryview | str) -> Any:
    """Parse one JSON text, forgiving `NaN`, broken Unicode and control characters, or raise `FormatError`."""
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
    # Only malformed JSON should cost the millisecond that this import takes.
    from json import JSONDecodeError, JSONDecoder  # noqa: PLC0415

    text = data if isinstance(data, str) else data.decode("utf-8-sig", "replace")
    decoder = JSONDecoder(parse_constant=lambda _: None, parse_int=_parse_int, strict=False)
    try:
        return scrub(decoder.decode(text.removeprefix("\ufeff")))
    except RecursionError:
        raise _too_deep() from None
    except JSONDecodeError as error:
        msg = f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        raise FormatError(msg, format="json") from None


def _parse_int(digits: str) -> int | None:
    try:
        return int(digits)
    except ValueError:  # more digits than Python converts, so it cannot be a number that anybody meant
        return None


def _too_deep() -> FormatError:
    return FormatError("JSON is nested too deeply to be read", format="json")


def dump_json(value: Any) -> bytes:
    """Write any struct or plain value as strict JSON in valid UTF-8."""
    try:
        data = _encoder.encode(value)
    except Exception:  # noqa: BLE001 - a foreign object that is asked for its items may raise anything
        return _encoder.encode(scrub(value))
    return _encoder.encode(scrub(value)) if _NUL in data else data


def scrub(value: Any) -> Any:
    """Copy a value with all replaced that strict JSON cannot hold or that databases refuse."""
    top = [value]
    # A stack of our own: the value may be deeper than Python lets functions call each other.
    todo: list[tuple[Any, int]] = [(top, 0)]
    met: set[int] = set()
    again = 0
    while todo:
        box, depth = todo.pop()
        for key, item in list(box.items()) if type(box) is dict else enumerate(box):
            clean = _clean(item)
            if type(clean) is dict or type(clean) is list:
                if id(item) in met:
                    again += 1 + len(clean)
                met.add(id(item))
                if depth >= MAX_WRITTEN_DEPTH:
                    clean = _CUT
                elif again > _MAX_AGAIN:
                    clean = _AGAIN
                else:
                    todo.append((clean, depth + 1))
            box[key] = clean
    return top[0]


def _clean(item: Any) -> Any:
    """Give a clean leaf, or a new dict or list whose items are still to be cleaned."""
    try:
        return _copy(item)
    except Exception:  # noqa: BLE001 - it is asked for its items in ways of its own, which may raise anything
        return scrub_text(describe(item))


def _copy(item: Any) -> Any:
    if item is None or isinstance(item, (str, int, float)):
        return _clean_leaf(item)
    if isinstance(item, Mapping):
        return {scrub_text(describe(key)): each for key, each in item.items()}
    if isinstance(item, (list, tuple, set, frozenset)):
        return list(item)
    try:
        return _clean(to_builtins(item, enc_hook=_foreign))
    except Exception:  # noqa: BLE001 - as above
        if not isinstance(item, Struct):
            return scrub_text(describe(item))
        return {name: each for name, each in structs.asdict(item).items() if each is not UNSET}


def _clean_leaf(item: str | float | None) -> str | float | None:
    if isinstance(item, str):
        return scrub_text(item)
    # By what the value is, and not by what a class derived from a number makes of it.
    if isinstance(item, float):
        return float.__float__(item) if isfinite(item) else None
    if item is None or isinstance(item, bool):
        return item
    return int.__int__(item) if int.bit_length(item) <= _MAX_INT_BITS else None


def scrub_text(text: str) -> str:
    """Replace lone surrogates and NULs by U+FFFD."""
    return replace_surrogates(str.__str__(text)).replace("\0", "\ufffd")  # of a subclass of str too a plain one


def is_broken(text: str) -> bool:
    """Tell whether a text has lone surrogates."""
    return not text.isascii() and replace_surrogates(text) is not text


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD; text without any is given back itself."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _foreign(item: Any) -> Any:
    """Give a plain stand-in for a value that the encoder does not know."""
    if item is UNSET:
        return None
    if isinstance(item, Mapping):
        return dict(item)
    return describe(item)


def describe(item: Any) -> str:
    """Write any foreign value as text, whatever its own `__str__` does."""
    if issubclass(type(item), str):  # what the object itself says of its class is its own affair
        return str.__str__(item)  # a plain one of a subclass
    try:
        return str.__str__(str(item))
    except Exception:  # noqa: BLE001 - a foreign object's own `__str__` may raise anything
        return TOO_LONG if issubclass(type(item), int) else f"<{type(item).__name__}>"


_encoder = Encoder(enc_hook=_foreign)


MAX_DEPTH = 128
"""Levels of lists and objects that one foreign value may have."""
CUT = f"[nested deeper than {MAX_DEPTH} levels]"
"""What stands in place of a value below that."""

_WIDE = 100_000
"""Containers on one level that are worth a look whether they are mostly the same object."""
_MAX_WIDTH = 1_000_000
"""Containers on one level; among deep values only one that holds itself several times over has more."""


def is_deep(value: Any) -> bool:
    """Tell whether a value has more than `MAX_DEPTH` levels, without recursion."""
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
            return True  # few objects that hold each other many times over: written out, they would never end
        level = below
    return True


def cut(value: Any) -> Any:
    """Copy a value down to `MAX_DEPTH` levels, with `CUT` in place of all that is deeper."""
    top = [value]
    level: list[Any] = [top]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        met = set()
        for box in level:
            for key, item in _items(box):
                if isinstance(item, (dict, list, tuple)):
                    box[key] = copy = dict(item) if isinstance(item, dict) else list(item)
                    below.append(copy)
                    met.add(id(item))
        if len(below) > _MAX_WIDTH or (len(below) > _WIDE and len(met) < len(below) // 2):
            break
        level = below
    for box in level:
        for key, item in _items(box):
            if isinstance(item, (dict, list, tuple)):
                box[key] = CUT
    return top[0]


def _items(box: Any) -> Any:
    return list(box.items()) if isinstance(box, dict) else enumerate(box)
