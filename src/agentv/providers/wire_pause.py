"""How long the other side asks us to wait, in whichever header and way it says so."""

from __future__ import annotations

import re
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds from now; `None` when nothing, or nothing that can be understood, is said. Names are in lower case."""
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return exact / 1000
    written = headers.get("retry-after")
    if written is not None:
        seconds = _number(written)
        return _until_date(written, now) if seconds is None else seconds
    return max(_resets(headers, now), default=None)


def _resets(headers: Mapping[str, str], now: datetime | None) -> Iterator[float]:
    """When each limit that is used up is there again, as OpenAI and Anthropic tell it."""
    for name, value in headers.items():
        if name.startswith("x-ratelimit-reset-"):
            left, pause = headers.get(name.replace("-reset-", "-remaining-")), _span(value)
        elif name.startswith("anthropic-ratelimit-") and name.endswith("-reset"):
            left, pause = headers.get(name.removesuffix("reset") + "remaining"), _until_moment(value, now)
        else:
            continue
        if left is not None and left.strip() == "0" and pause is not None:
            yield pause


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if isfinite(value) else None


def _span(text: str) -> float | None:
    """Seconds in `6m0s`, `1.5s`, `20ms` or a bare number."""
    parts = _SPAN.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return _number(text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _until_date(text: str, now: datetime | None) -> float | None:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - few servers write a date

    try:
        return _until(parsedate_to_datetime(text), now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _until_moment(text: str, now: datetime | None) -> float | None:
    from datetime import datetime  # noqa: PLC0415 - as above

    try:
        return _until(datetime.fromisoformat(text.strip()), now)
    except (ValueError, OverflowError):
        return None


def _until(moment: datetime, now: datetime | None) -> float:
    from datetime import UTC, datetime  # noqa: PLC0415 - as above

    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - (now or datetime.now(UTC))).total_seconds())
