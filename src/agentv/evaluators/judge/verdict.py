"""Strict reading of a judge's reply: one object with the nonce, every item once, every quotation found."""

import re
from collections.abc import Iterator, Mapping, Sequence
from json import JSONDecodeError, JSONDecoder
from typing import Any, NamedTuple

from agentv.evaluators.judge.evidence import Evidence, has_letters
from agentv.evaluators.judge.rubric import RubricPoint
from agentv.matching.diff import quote as shown
from agentv.redaction import shorten

MAX_REPLY = 1_000_000
MAX_PROBLEMS = 10
MAX_WORDS = 2_000
DECIDING = ("met", "score")
"""Fields that decide an item."""
MAX_OBJECTS = 50
"""The number of possible beginnings of an object within other text that are tried."""


class UnreadableError(Exception):
    """Reply that decides nothing, with the reason for the retry and for the error message."""


class DuplicateKeyError(ValueError):
    """JSON object with a duplicate key."""


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        msg = f"{shown(next(name for name in names if names.count(name) > 1))} occurs twice in one object"
        raise DuplicateKeyError(msg)
    return data


def _reject_constant(name: str) -> Any:
    msg = f"{name} is not JSON"
    raise ValueError(msg)


_decoder = JSONDecoder(object_pairs_hook=_reject_duplicates, parse_constant=_reject_constant)


class Decision(NamedTuple):
    """A judge's decision on one item."""

    point: RubricPoint
    value: float
    """From 0 to 1; of an item that is met or not, one of the two."""
    score: int | None
    """As the judge gave it, where the item has a scale."""
    quote: str
    reason: str

    @property
    def is_met(self) -> bool:
        """True if it counts as met."""
        return self.point.is_met(self.value)

    @property
    def sentence(self) -> str:
        """The decision in words that stand alone."""
        reason = f" {self.reason}" if self.reason else ""
        quoted = f" ({shown(self.quote)})" if self.quote else ""
        return f"{self.point.summarize(self.value, self.score)}{reason}{quoted}"


def read_object(reply: str, word: str) -> dict[str, Any]:
    """Return the one JSON object of the reply that has the nonce of this call.

    A second object that decides something makes the reply unreadable, whether or not they agree and wherever it stands:
    a draft, a quotation of the data and a change of mind look the same.
    """
    if len(reply) > MAX_REPLY:
        msg = f"The reply has {len(reply):,} characters; a verdict has a few hundred."
        raise UnreadableError(msg)
    text = reply.strip()
    data, wrong = _parse(text)
    if isinstance(data, dict):
        objects = [data]
    else:
        objects, broken = _find_objects(text, word)
        # An incomplete verdict after a complete one may be its correction.
        wrong = broken or (wrong if text.startswith(("{", "[", "```")) else "")
        if broken:
            objects = []
    verdicts = [each for each in objects if each.get("verdict") == word]
    if not verdicts:
        why = f" {wrong}" if wrong else ""
        msg = f'There is no JSON object in it whose "verdict" is "{word}".{why}'
        raise UnreadableError(msg)
    deciding = sum(_is_deciding(each, word) for top in objects for each in _nested_objects(top))
    if deciding > 1 or len(verdicts) > 1:
        msg = "There are several verdicts in it. Write one, once, and no draft of it."
        raise UnreadableError(msg)
    return verdicts[0]


def _nested_objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON value, at any depth."""
    todo = [value]
    while todo:
        found = todo.pop()
        if isinstance(found, dict):
            yield found
            todo += found.values()
        elif isinstance(found, list):
            todo += found


def _is_deciding(data: Mapping[str, Any], word: str) -> bool:
    """Return whether an object is a verdict, with the nonce or without it."""
    items = data.get("items")
    decided = isinstance(items, list) and any(
        isinstance(item, dict) and "id" in item and not item.keys().isdisjoint(DECIDING) for item in items
    )
    return decided or data.get("verdict") == word or data.get("better") in ("first", "second", "tie")


def read_decisions(
    reply: str, word: str, points: Sequence[RubricPoint], evidence: Sequence[str]
) -> tuple[Decision, ...]:
    """Return the decision on every item; raise `UnreadableError` with all problems."""
    data = read_object(reply, word)
    items = data.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        msg = '"items" has to be a list of objects.'
        raise UnreadableError(msg)
    problems: list[str] = []
    known_texts = Evidence(evidence)
    known = {point.id: point for point in points}
    by_id: dict[str, dict[str, Any]] = {}
    for item in items:
        name = str(item.get("id"))
        if name not in known:
            problems.append(f"There is no item with the id {shown(item.get('id'))}.")
        elif name in by_id:
            problems.append(f'The item "{name}" is decided twice.')
        by_id.setdefault(name, item)
    decisions = []
    for point in points:
        if point.id not in by_id:
            problems.append(f'The item "{point.id}" is not decided.')
            continue
        decided = _decision(by_id[point.id], point, known_texts, problems)
        if decided is not None:
            decisions.append(decided)
    if problems:
        more = len(problems) - MAX_PROBLEMS
        raise UnreadableError(" ".join([*problems[:MAX_PROBLEMS], *([f"And {more} more."] if more > 0 else [])]))
    return tuple(decisions)


def read_quote(data: Mapping[str, Any], who: str, evidence: Evidence, *, needed: bool) -> tuple[str, list[str]]:
    """Return the quotation of a decision, and its problems."""
    quote = data.get("quote")
    if quote is None:
        quote = ""
    if not isinstance(quote, str):
        return "", [f"The quote of {who} has to be a text, not {shown(quote)}."]
    if not has_letters(quote):
        return "", [f"T{who[1:]} is decided without a quote from the data."] if needed and evidence else []
    if not evidence.holds(quote):
        return "", [f"The quote of {who} does not occur in what the agent said or did: {shown(quote)}."]
    return quote, []


def _decision(item: Mapping[str, Any], point: RubricPoint, evidence: Evidence, problems: list[str]) -> Decision | None:
    who = f'the item "{point.id}"'
    value, score, failure = _read_value(item, point, who)
    where = evidence if point.evidence is None else Evidence(point.evidence)
    quote, wrong = read_quote(item, who, where, needed=value is not None and value > 0)
    problems += [*([failure] if failure else []), *wrong]
    if value is None or wrong:
        return None
    reason = item.get("reason")
    words = shorten(" ".join(reason.split()), MAX_WORDS) if isinstance(reason, str) else ""
    return Decision(point, value, score, quote, words)


def _read_value(item: Mapping[str, Any], point: RubricPoint, who: str) -> tuple[float | None, int | None, str]:
    if point.scale is None:
        met = item.get("met")
        if isinstance(met, bool):
            return float(met), None, ""
        return None, None, f'"met" of {who} has to be true or false, not {shown(met)}.'
    score = item.get("score")
    if isinstance(score, float) and score.is_integer():
        score = int(score)
    if isinstance(score, bool) or not isinstance(score, int) or not point.scale.holds(score):
        wanted = f"a whole number from {point.scale.low} to {point.scale.high}"
        return None, None, f'"score" of {who} has to be {wanted} that is in one of its ranges, not {shown(score)}.'
    return point.scale.share(score), score, ""


def _find_objects(text: str, word: str) -> tuple[list[dict[str, Any]], str]:
    """Return the objects within other text, and the problem of an incomplete verdict that counts."""
    begins = re.compile(rf'\{{\s*"verdict"\s*:\s*"{re.escape(word)}"')
    decides = re.compile(r'"(?:met|score|better)"\s*:')
    objects: list[dict[str, Any]] = []
    broken = ""
    end = tried = ours = 0
    for match in re.finditer(r"\{", text):
        start = match.start()
        is_ours = begins.match(text, start) is not None
        if start < end or (not is_ours and tried >= MAX_OBJECTS):
            continue
        tried += 1
        ours += is_ours
        if ours > MAX_OBJECTS:
            return [], f"There are more than {MAX_OBJECTS} beginnings of one."
        try:
            value, end = _decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            if is_ours or isinstance(error, DuplicateKeyError):
                following = begins.search(text, start + 1)
                if is_ours and decides.search(text, start, following.start() if following else len(text)):
                    return [], _parser_message(error)  # it decides something, and what follows may differ
                broken = _parser_message(error)
            continue
        if value.get("verdict") == word:
            broken = ""
        objects.append(value)
    return objects, broken


def _parse(text: str) -> tuple[Any, str]:
    try:
        return _decoder.decode(text), ""
    except (ValueError, RecursionError) as error:
        return None, _parser_message(error)


def _parser_message(error: Exception) -> str:
    """Return the message of a parser error as a sentence."""
    if isinstance(error, JSONDecodeError):
        return f"It is not JSON: {error.msg} at line {error.lineno}, column {error.colno}."
    return "It is nested too deeply." if isinstance(error, RecursionError) else f"It cannot be read: {error}."
