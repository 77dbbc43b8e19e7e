"""Two readings of a reply whose messages may begin with an echo of the request."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from agentv.model.response import ProviderResponse, Unread
from agentv.model.result import EvaluatorResult
from agentv.scoring.calls import MESSAGE_PATH

REMEDY = "send only new messages, or the request's messages unchanged at the start"


def without_echo(response: ProviderResponse) -> ProviderResponse | None:
    """Return the reply without what may be an echo; `None` when there is no doubt about it."""
    start, messages = response.echo_end, response.output_messages
    if not start or messages is None:
        return None
    unread = tuple(_moved(response.unread, start))
    return replace(response, output_messages=messages[start:], unread=unread, echo_end=None)


def _moved(unread: Iterable[Unread], start: int) -> Iterator[Unread]:
    """Yield the places with the numbers that messages have when they are counted from `start`."""
    for place in unread:
        found = MESSAGE_PATH.match(place.path)
        if found is None:
            yield place
        elif int(found[1]) >= start:
            path = f"output_messages[{int(found[1]) - start}]{place.path[found.end() :]}"
            yield Unread(path=path, reason=place.reason)


def reconcile(results: Sequence[EvaluatorResult], messages: Sequence[int]) -> EvaluatorResult:
    """Return the result of the whole reply, or an error where the verdict depends on the reading.

    Both sequences are those of the whole reply and of the part after the echo: the results, and how many messages each
    of them is about.
    """
    whole, new = results
    if whole.status != new.status:
        return _disagreement(results, "verdict", (whole.status, new.status), messages)
    # What is recorded of a metric is its value: it always passes.
    values = [result.details.get("value") for result in results]
    if whole.kind == "metric" and values[0] != values[1]:
        return _disagreement(results, "value", (str(values[0]), str(values[1])), messages)
    if whole.score is not None and new.score is not None and new.score < whole.score:
        return replace(whole, score=new.score)
    return whole


def _disagreement(
    results: Sequence[EvaluatorResult], what: str, found: tuple[str, str], messages: Sequence[int]
) -> EvaluatorResult:
    both = f"{found[0]} for all {messages[0]} messages, {found[1]} for the {messages[1]} after the last user message"
    details: dict[str, Any] = {"error": f"the {what} depends on which part of the reply is new: {both}; {REMEDY}"}
    undecided = [*_undecided(results[0], 0), *_undecided(results[1], messages[0] - messages[1])]
    if undecided:
        details["undecided"] = list(dict.fromkeys(undecided))
    return replace(results[0], status="error", score=None, hits=(), misses=(), details=details)


def _undecided(result: EvaluatorResult, start: int) -> Iterator[str]:
    """Yield what a reading left undecided, with places as they are in the whole reply."""
    for sentence in result.details.get("undecided") or ():
        yield MESSAGE_PATH.sub(lambda found: f"output_messages[{int(found[1]) + start}]", str(sentence))
