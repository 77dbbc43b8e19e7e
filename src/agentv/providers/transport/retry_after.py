"""Waiting times that a server asks for: `Retry-After`, and the reset times of rate limits."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}


def retry_after_s(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Return the seconds to wait; `None` if the headers do not say. Names of headers are in lower case."""
    exact = _number(headers.get("retry-after-ms"))
    if exact is not None:
        return exact / 1000
    header = headers.get("retry-after")
    if header is not None:
        seconds = _number(header)
        return _seconds_until_date(header, now) if seconds is None else seconds
    return max(_resets(headers, now), default=None)


def _resets(headers: Mapping[str, str], now: datetime | None) -> Iterator[float]:
    """Yield the times until exhausted limits are reset, in the headers of OpenAI and Anthropic."""
    for name, value in headers.items():
        if name.startswith("x-ratelimit-reset-"):
            left, wait_s = headers.get(name.replace("-reset-", "-remaining-")), _parse_duration(value)
        elif name.startswith("anthropic-ratelimit-") and name.endswith("-reset"):
            left, wait_s = headers.get(name.removesuffix("reset") + "remaining"), _seconds_until_timestamp(value, now)
        else:
            continue
        if left is not None and left.strip() == "0" and wait_s is not None:
            yield wait_s


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return max(0.0, value) if isfinite(value) else None


def _parse_duration(text: str) -> float | None:
    """Parse a duration such as `6m0s`, `1.5s`, `20ms` or a number of seconds."""
    parts = _DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return _number(text)
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _seconds_until_date(text: str, now: datetime | None) -> float | None:
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - few servers write a date

    try:
        return _seconds_until(parsedate_to_datetime(text), now)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _seconds_until_timestamp(text: str, now: datetime | None) -> float | None:
    try:
        return _seconds_until(datetime.fromisoformat(text.strip()), now)
    except (ValueError, OverflowError):
        return None


def _seconds_until(timestamp: datetime, now: datetime | None) -> float:
    aware = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
    return max(0.0, (aware - (now or datetime.now(UTC))).total_seconds())
