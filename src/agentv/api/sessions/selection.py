"""Selection of sessions: the conditions of `--where`, and samples."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from agentv.errors import FormatError
from agentv.suggestions import suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from agentv.model.session import Session

_CONDITION = re.compile(r"\s*([\w.\-]+)\s*(!=|>=|<=|=|>|<|!~|~)\s*(.*?)\s*\Z", re.DOTALL)
_SAMPLE = re.compile(r"(\d+(?:\.\d+)?)(%?)\Z")


def _calls(session: Session) -> list[Any]:
    return [call for message in session.response.output_messages or () for call in message.tool_calls]


_FIELDS: dict[str, Callable[[Session], Any]] = {
    "id": lambda session: session.id,
    "format": lambda session: session.format,
    "file": lambda session: session.place,
    "agent": lambda session: session.agent,
    "model": lambda session: session.model,
    "case_id": lambda session: session.case_id,
    "started": lambda session: session.started_at,
    "ended": lambda session: session.ended_at,
    "turns": lambda session: session.turns,
    "calls": lambda session: len(_calls(session)),
    "errors": lambda session: sum(call.effective_status == "error" for call in _calls(session)),
    "tool": lambda session: [call.tool for call in _calls(session)],
    "tokens": lambda session: session.response.tokens_usage and session.response.tokens_usage.total_tokens,
    "cost": lambda session: session.response.cost_usd,
    "latency_ms": lambda session: session.response.latency_ms,
    "text": lambda session: session.response.text,
    "input": lambda session: "\n".join([message.text for message in session.input_messages]),
    "status": lambda session: "error" if session.response.error else "ok",
}
"""Fields of a session that a condition may name; all others are attributes of its metadata."""


class Condition(NamedTuple):
    """One condition: a field, an operator and a value."""

    field: str
    operator: str
    value: str

    def holds(self, session: Session) -> bool:
        """Return whether it holds for a session; a field that the session does not have meets only `!=` and `!~`."""
        actual = self._actual(session)
        values = actual if isinstance(actual, list) else [actual]
        if self.operator in ("!=", "!~"):
            positive = self._replace(operator=self.operator[1:])
            return not any(positive.holds_for(value) for value in values)
        return any(self.holds_for(value) for value in values)

    def _actual(self, session: Session) -> Any:
        if self.field in _FIELDS:
            return _FIELDS[self.field](session)
        return (session.metadata or {}).get(self.field.removeprefix("metadata."))

    def holds_for(self, actual: Any) -> bool:
        """Return whether it holds for one value."""
        if actual is None:
            return False
        if self.operator == "~":
            return re.search(self.value, str(actual)) is not None
        if self.operator == "=":
            return fnmatchcase(str(actual), self.value)
        left, right = _comparable(actual, self.value)
        return bool(_COMPARE[self.operator](left, right))


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
}


def _comparable(actual: Any, value: str) -> tuple[Any, Any]:
    try:
        return float(actual), float(value)
    except (TypeError, ValueError):
        return str(actual), value


def parse_where(texts: Iterable[str]) -> list[Condition]:
    """Return the conditions of `--where`, or raise `FormatError`."""
    conditions = []
    for text in texts:
        match = _CONDITION.match(text)
        if match is None:
            msg = f"--where {text!r}: expected FIELD=VALUE, or one of != > >= < <= ~ !~ in place of ="
            raise FormatError(msg)
        condition = Condition(match[1], match[2], match[3])
        if condition.operator.endswith("~"):
            try:
                re.compile(condition.value)
            except re.error as error:
                msg = f"--where {text!r}: not a regular expression: {error}"
                raise FormatError(msg) from error
        if condition.field not in _FIELDS and "." not in condition.field:
            hint = suggest(condition.field, list(_FIELDS))
            if hint:
                msg = f"--where {text!r}: no field {condition.field!r}{hint} Attributes are metadata.NAME"
                raise FormatError(msg)
        conditions.append(condition)
    return conditions


class Sample(NamedTuple):
    """The number of sessions of a sample, or their share."""

    number: int | None
    share: float | None


def parse_sample(text: str | None) -> Sample | None:
    """Return the sample of `--sample`: a number, or a percentage; raise `FormatError` for anything else."""
    if text is None:
        return None
    match = _SAMPLE.match(text.strip())
    number = float(match[1]) if match else 0.0
    if match is None or number <= 0 or (match[2] and number > 100) or (not match[2] and not number.is_integer()):  # noqa: PLR2004 - percent
        msg = f"--sample {text!r}: expected a number of sessions, or a percentage such as 10%"
        raise FormatError(msg)
    return Sample(None, number / 100) if match[2] else Sample(int(number), None)
