"""Marks in a text for what is missing there: secrets that were redacted, and parts that were cut."""

import re
from typing import Any

REST_MISSING = "[… the rest is missing …]"
"""The mark at the end of a text that ended early."""
LABEL_PATTERN = r"\[redacted(?::[^\[\]\s]{1,200})?\]"
# A text that is cut between the bytes of one character has a replacement character there.
_CUT_PATTERN = r"\ufffd*\n?\[… [^\[\]…]{1,80} …\]\n?\ufffd*"
GAP = re.compile(f"{LABEL_PATTERN}|{_CUT_PATTERN}")
GAP_IN_JSON = re.compile(f'"?(?:{GAP.pattern})"?')
"""A mark in JSON: the text of a label may stand for a number, which has no quotation marks."""
REDACTED = "[redacted"
"""The beginning of the mark of a secret."""
_CUT = "[… "
_BYTES = (REDACTED.encode(), b" bytes left out ", b" the rest is missing ")
"""Bytes of which every JSON text with a mark contains at least one, however it escapes other characters."""


def cut_mark(size: int) -> str:
    """Return the line that replaces so many bytes in the middle of a text."""
    return f"\n[… {size:,} bytes left out …]\n"


def may_have_gap(data: bytes) -> bool:
    """Return whether a JSON text may contain a mark; fast."""
    return _BYTES[0] in data or _BYTES[1] in data or _BYTES[2] in data


def has_gap(value: Any) -> bool:
    """Return whether a JSON value contains a mark, in a text or in a key."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if (REDACTED in item or _CUT in item) and GAP.search(item):
                return True
        elif isinstance(item, dict):
            pending += item
            pending += item.values()
        elif isinstance(item, (list, tuple)):
            pending += item
    return False


NOT_CAPTURED = "not_captured"
"""Key in the metadata of a call from a trace: its fields (`input`, `output`) that were not recorded, and so are absent
although the call had them."""
