"""Reason of a failure in one sentence, equal for runs that failed in the same way."""

import re

from agentv.model.results import ResultRecord

MAX_REASON = 200
"""Characters of a reason."""
_AFTER_NAME = re.compile(r" \((?:expected|in_order|nearest|best|call)\b.*", re.DOTALL)
_CALL_NUMBERS = re.compile(r"\b(calls?|messages?) \d+(?:(?:, | to | and )\d+)*")


def failure_reason(record: ResultRecord) -> str | None:
    """Return the first reason why a run did not pass, without numbers of calls; `None` if it passed."""
    if record.status == "pass":
        return None
    if record.error is not None:
        return _shorten(f"{record.error.kind}: {record.error.message}")
    for result in record.evaluators:
        if result.kind == "assertion" and result.status == record.status:
            sentences = (*result.misses, *map(str, result.details.get("undecided") or ()))
            if sentences:
                return _shorten(_CALL_NUMBERS.sub(r"\1 …", _AFTER_NAME.sub("", sentences[0])))
            return _shorten(str(result.details.get("error") or f"{result.name} scored {result.score}"))
    return f"the score is {record.score}"


def _shorten(text: str) -> str:
    first = text.strip().partition("\n")[0].strip()
    return first if len(first) <= MAX_REASON else f"{first[: MAX_REASON - 1]}…"
