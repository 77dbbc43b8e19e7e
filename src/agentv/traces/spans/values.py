"""Values of spans in any spelling: ids, times, attributes and JSON texts."""

from __future__ import annotations

import ast
import base64
import binascii
import re
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from agentv.jsonio import scrub_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]+)\Z")
_ID_LENGTHS = (16, 32)
_BASE64_LENGTHS = (12, 24)
"""Lengths of a span id and of a trace id in Base64."""
_MAX_LITERAL = 100_000
"""Length of the longest text that is read as a Python literal."""
_QUOTED = re.compile(r"""('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_BLANK = re.compile(r" (?=[a-z_]+=)")
"""Blank between two fields, as pydantic writes them."""
MAX_VALUE_DEPTH = 32
_MAX_DIGITS = 25
_MIN_NS, _END_NS = 10**17, 2**63
"""Range of numbers that are nanoseconds since 1970."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST_TIME = 40
"""Length of the longest texts that are kept with the time that they tell."""
_NS_PER_S, _NS_PER_MS, _NS_PER_US = 1_000_000_000, 1_000_000, 1_000
_MAX_KEYS, _MAX_KEY = 4096, 128
"""Number and length of the names of attributes that are remembered."""
_S_PER_DAY = 86_400
_FIRST_DAY = date(1970, 1, 1).toordinal()
_LAST_DAY = date.max.toordinal() - _FIRST_DAY
_decode = msgspec.json.Decoder().decode


def read_id(value: Any) -> str:
    """Return a trace id or span id as lower-case hex digits; ids of other forms stay as they are."""
    if not isinstance(value, str):
        return str(value) if isinstance(value, int) and value else ""
    length = len(value)
    if length in _ID_LENGTHS:
        try:
            data = bytes.fromhex(value)
        except ValueError:
            data = b""
        if 2 * len(data) == length:  # otherwise there were spaces in it
            return data.hex() if any(data) else ""
    match = _HEX.match(value)
    if match is not None and (length in _ID_LENGTHS or value.startswith("0x")):
        return match[1].lower() if match[1].strip("0") else ""
    if length in _BASE64_LENGTHS and (length == _BASE64_LENGTHS[0] or value.endswith("==")):
        try:
            return base64.b64decode(value, validate=True).hex()
        except (binascii.Error, ValueError):
            return value
    return value


def read_time(value: Any) -> int:
    """Return a time in nanoseconds since 1970: from a number of any unit, or from an ISO text; 0 if there is none."""
    if isinstance(value, str):
        if value.isdigit() and value.isascii():
            number = int(value) if len(value) <= _MAX_DIGITS else 0
            return number if _MIN_NS <= number < _END_NS else _scale(number)
        return _iso_time(value) if len(value) <= _LONGEST_TIME else _iso_time.__wrapped__(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    if isinstance(value, float):
        if not 0 < value < 1e20:  # noqa: PLR2004 - later than any time in nanoseconds
            return 0
        return int(value * _NS_PER_S) if value < 1e11 else _scale(int(value))  # noqa: PLR2004 - seconds
    return _scale(value)


def _scale(number: int) -> int:
    """Return a number of seconds, milliseconds, microseconds or nanoseconds since 1970 in nanoseconds."""
    if number <= 0 or number >= 10**_MAX_DIGITS:
        return 0
    for limit, factor in ((10**11, _NS_PER_S), (10**14, _NS_PER_MS), (10**17, _NS_PER_US)):
        if number < limit:
            return number * factor
    return number if number < _END_NS else 0


@lru_cache(maxsize=4096)  # most times are read two or three times
def _iso_time(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return 0
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        delta = moment - _EPOCH
    except (OverflowError, ValueError):
        return 0
    whole = (delta.days * 86_400 + delta.seconds) * _NS_PER_S + delta.microseconds * _NS_PER_US
    return whole if 0 < whole < _END_NS else 0


def format_time(nanoseconds: int) -> str | None:
    """Return a time in UTC as text; `None` if it is unknown."""
    if nanoseconds <= 0:
        return None
    seconds, rest = divmod(nanoseconds, _NS_PER_S)
    days, second = divmod(seconds, _S_PER_DAY)
    if days > _LAST_DAY:
        return None
    minute, hour = second // 60, second // 3600
    return f"{_date(days)}T{hour:02}:{minute % 60:02}:{second % 60:02}.{rest // _NS_PER_MS:03}Z"


@lru_cache(maxsize=64)
def _date(days: int) -> str:
    return date.fromordinal(_FIRST_DAY + days).isoformat()


def read_attributes(raw: Any) -> dict[str, Any]:
    """Return attributes as a plain object; OTLP writes them as a list of keys and typed values."""
    if isinstance(raw, list):
        found: dict[str, Any] = {}
        for item in raw:
            if isinstance(item, dict) and isinstance(key := item.get("key"), str):
                value = item.get("value")
                if isinstance(value, dict):
                    text = value.get("stringValue") if len(value) == 1 else None
                    value = read_any_value(value) if text is None else text
                found[key] = value
        return found
    return {str(key): value for key, value in raw.items()} if isinstance(raw, dict) else {}


def read_any_value(value: Mapping[str, Any], depth: int = 0) -> Any:  # noqa: PLR0911 - one for each type
    """Return the value of an OTLP `AnyValue`; an object of no known type stays as it is."""
    if len(value) != 1 or depth > MAX_VALUE_DEPTH:
        return None if not value else dict(value)
    ((kind, inner),) = value.items()
    if kind in ("stringValue", "string_value"):
        return inner
    if kind in ("intValue", "int_value"):
        return read_integer(inner)
    if kind in ("boolValue", "bool_value", "doubleValue", "double_value", "bytesValue", "bytes_value"):
        return inner
    if kind in ("arrayValue", "array_value"):
        items = inner.get("values", []) if isinstance(inner, dict) else []
        return [read_any_value(item, depth + 1) if isinstance(item, dict) else item for item in items or ()]
    if kind in ("kvlistValue", "kvlist_value"):
        items = inner.get("values", []) if isinstance(inner, dict) else []
        pairs = [item for item in items or () if isinstance(item, dict) and isinstance(item.get("key"), str)]
        return {
            item["key"]: read_any_value(each, depth + 1) if isinstance(each := item.get("value"), dict) else each
            for item in pairs
        }
    return dict(value)


def read_integer(value: Any) -> Any:
    """Return an integer that OTLP writes as text."""
    if isinstance(value, str) and len(value) <= _MAX_DIGITS:
        try:
            return int(value)
        except ValueError:
            return value
    return value


def parse_value(value: Any) -> Any:
    """Return a value that may be written as JSON text, also twice; a text that is no JSON stays a text."""
    for _ in range(2):
        if not isinstance(value, str) or not value or value[0] not in '{["':
            return value
        try:
            value = _decode(value)
        except (ValueError, RecursionError):
            return value
    return value


def is_broken_json(value: Any) -> bool:
    """Return whether a text begins like a JSON list or object, and cannot be parsed as one."""
    return isinstance(value, str) and value[:1] in ("[", "{") and isinstance(parse_value(value), str)


def parse_arguments_text(value: Any) -> Any:
    """Return the arguments of a call from JSON text or from the text of a Python literal; `UNSET` if there are none.

    Any other text stays a text.
    """
    if value is None or value == "":
        return UNSET
    parsed = parse_value(value)
    if not isinstance(parsed, str):
        return parsed
    text = parsed.strip()
    if text[:1] in ("{", "[", "(") and len(text) <= _MAX_LITERAL:
        try:
            literal = ast.literal_eval(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return parsed
        return _plain_literal(literal)
    return parsed


def read_repr(text: str) -> dict[str, Any]:
    """Return the fields of an object from its Python form, such as `Call(name='add')` or only `name='add'`.

    Fields that are no literals are left out.
    """
    if len(text) > _MAX_LITERAL:
        return {}
    is_call = text.rstrip().endswith(")") and text.partition("(")[0].strip().isidentifier()
    # The odd parts are texts in quotes.
    parts = [part if at % 2 else _BLANK.sub(", ", part) for at, part in enumerate(_QUOTED.split(text))]
    try:
        tree = ast.parse(text if is_call else f"_({''.join(parts)})", mode="eval").body
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    found: dict[str, Any] = {}
    for keyword in tree.keywords if isinstance(tree, ast.Call) else ():
        try:
            found[str(keyword.arg)] = _plain_literal(ast.literal_eval(keyword.value))
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
    return found


def _plain_literal(value: Any) -> Any:
    """Return a Python literal as JSON data."""
    if isinstance(value, dict):
        return {str(key): _plain_literal(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain_literal(item) for item in value]
    if isinstance(value, str):
        return scrub_text(value)
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


class RememberedKeys(dict[str, int]):
    """Numbers by the names of attributes, which are few: each is worked out once."""

    def __init__(self, about: Callable[[str], int]) -> None:
        super().__init__()
        self._about = about

    def __missing__(self, key: str) -> int:
        """Work it out, and remember it unless there are too many."""
        value = self._about(key)
        if len(self) < _MAX_KEYS and len(key) <= _MAX_KEY:
            self[key] = value
        return value


def first_of(attributes: Mapping[str, Any], *names: str) -> Any:
    """Return the first of these attributes that is neither missing nor null nor an empty text."""
    for name in names:
        value = attributes.get(name)
        if value is not None and value != "":
            return value
    return None


def text_of(value: Any) -> str | None:
    """Return a text that is not empty; `None` for any other value."""
    return value if isinstance(value, str) and value else None
