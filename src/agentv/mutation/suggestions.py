"""Evaluators that would notice a surviving mutant; candidates only, which are evaluated before they are offered."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import ceil
from typing import Any, NamedTuple

from msgspec import UNSET

from agentv.jsonio import dump_json
from agentv.model.conversation import ToolCall
from agentv.model.mutation import Mutant, Operator
from agentv.model.response import ProviderResponse
from agentv.mutation.operators import DESTRUCTIVE, REFUSAL

Config = dict[str, Any]
MAX_VALUE = 300
"""Bytes of an expected value in a suggestion; a longer one is no use to a reader."""
MAX_CALLS = 20
"""Expected calls in a suggestion."""
EXCLUDED = ("denied", "pending")
"""Statuses of calls that counts leave out by default."""
ROOM = 1.5
"""Budgets are so much larger than the largest number seen."""
_PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_.\-]*( before [A-Za-z_][A-Za-z0-9_.\-]*)?")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off", "y", "n", "~"}
_MARKED = re.compile(r"\S*\d\S*")


class Original(NamedTuple):
    """Reply that passes, with its calls."""

    response: ProviderResponse
    calls: tuple[ToolCall, ...]


def suggest_evaluators(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    """Yield configurations of evaluators that may notice a mutant, the simplest first.

    `others` are all replies of the case that pass, `original` included.
    """
    is_excluded = any([call.status in EXCLUDED for call in original.calls])  # noqa: C419 - a list is faster
    for config in _SUGGESTIONS[mutant.operator](mutant, original, others):
        yield config
        if is_excluded and config["type"] == "tool_trajectory":
            yield {**config, "calls": {"denied": "include", "pending": "include"}}


def _trajectory(**settings: Any) -> Config:
    return {"type": "tool_trajectory", **settings}


def _count(tool: str | None, original: Original) -> int:
    return sum(call.tool == tool for call in original.calls)


def _at_least(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    if mutant.tool:
        made = sum(call.effective_status not in EXCLUDED for call in _calls_of(mutant.tool, original))
        for count in dict.fromkeys([made or 1, _count(mutant.tool, original)]):
            yield _trajectory(minimums={mutant.tool: count})
    yield from _same_calls(mutant, original, others)


def _at_most(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    del others
    if mutant.tool:
        yield _trajectory(maximums={mutant.tool: _count(mutant.tool, original)})
    yield {"type": "no_redundant_calls"}
    yield _trajectory(maximums={"*": len(original.calls)})


def _order(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    assert mutant.call is not None  # noqa: S101 - calls are swapped
    first, second = original.calls[mutant.call : mutant.call + 2]
    pair = [{"tool": call.tool} for call in (first, second)]
    if first.tool != second.tool and _count(first.tool, original) == _count(second.tool, original) == 1:
        yield {"type": "tool_order", "rules": [f"{first.tool} before {second.tool}"]}
    yield _trajectory(mode="in_order", expected=pair)
    yield from _same_calls(mutant, original, others)


def _same_calls(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    """Yield the whole sequence of calls: their names, then their inputs too."""
    del mutant, others
    if not 0 < len(original.calls) <= MAX_CALLS or not all(call.tool for call in original.calls):
        return
    yield _trajectory(mode="in_order", expected=[{"tool": call.tool} for call in original.calls])
    entries = [_entry(call, call.input) for call in original.calls]
    if _is_short(entries):
        yield _trajectory(mode="in_order", expected=entries)
        yield _trajectory(mode="exact", expected=entries)


def _entry(call: ToolCall, value: Any, **more: Any) -> Config:
    return {"tool": call.tool} | ({} if value is UNSET else {"input": _literal(value)}) | more


def _literal(value: Any) -> Any:
    """Return an expected value; an object whose keys look like operators is marked as one that is meant literally."""
    if isinstance(value, dict):
        if any(isinstance(key, str) and key.startswith("$") for key in value):
            return {"$literal": value}
        return {key: _literal(item) for key, item in value.items()}
    return [_literal(item) for item in value] if isinstance(value, (list, tuple)) else value


def _is_short(value: Any) -> bool:
    return len(dump_json(value)) <= MAX_VALUE


def _calls_of(tool: str | None, original: Original) -> list[ToolCall]:
    return [call for call in original.calls if call.tool == tool]


def _expected(entries: Sequence[Config]) -> Config:
    """Return an evaluator that expects these calls in any order; one of its kind is written once."""
    return _trajectory(mode="any_order", expected=list(entries))


def _argument(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    """Yield the expected value of the argument, in the one call, in all calls of the tool, and in their order."""
    name = mutant.argument
    calls = [call for call in _calls_of(mutant.tool, original) if isinstance(call.input, dict) and name in call.input]
    entries = [_entry(call, {name: call.input[name]}, input_match="partial") for call in calls]
    if mutant.call is not None and entries and all(map(_is_short, entries)) and len(entries) <= MAX_CALLS:
        own = original.calls[mutant.call]
        yield _expected([_entry(own, {name: own.input[name]}, input_match="partial")])
        yield _expected(entries)
        yield _trajectory(mode="in_order", expected=entries)
    yield from _exact_input(mutant, original, others)


def _present(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    """Yield that the argument is there, whatever its value."""
    name = mutant.argument
    calls = [call for call in _calls_of(mutant.tool, original) if isinstance(call.input, dict) and name in call.input]
    entry = {"tool": mutant.tool, "input": {name: {"$any": True}}, "input_match": "partial"}
    if 0 < len(calls) <= MAX_CALLS:
        yield _expected([entry] * len(calls))
    yield from _argument(mutant, original, others)


def _no_other(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    """Yield that the tool has no other arguments."""
    calls = [call for call in _calls_of(mutant.tool, original) if isinstance(call.input, dict)]
    entries = [
        {"tool": call.tool, "input": {name: {"$any": True} for name in call.input}, "input_match": "subset"}
        for call in calls
    ]
    if 0 < len(entries) <= MAX_CALLS and _is_short(entries):
        yield _expected(entries)
    yield from _exact_input(mutant, original, others)


def _exact_input(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    del others
    entries = [_entry(call, call.input) for call in _calls_of(mutant.tool, original)]
    if 0 < len(entries) <= MAX_CALLS and _is_short(entries):
        yield _expected(entries)
        yield _trajectory(mode="in_order", expected=entries)


def _no_failure(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    yield {"type": "no_tool_errors"}
    if mutant.tool:
        yield {"type": "no_tool_errors", "tools": [mutant.tool]}
        good = [call for call in _calls_of(mutant.tool, original) if call.effective_status == "ok"]
        if len(good) <= MAX_CALLS:
            yield _expected([{"tool": mutant.tool, "status": "ok"}] * len(good))
    yield from _same_calls(mutant, original, others)


def _output(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    del others
    assert mutant.call is not None  # noqa: S101 - the output of a call is changed
    own = original.calls[mutant.call]
    calls = [call for call in _calls_of(mutant.tool, original) if call.output is not UNSET]
    if mutant.operator == "blank_output" and len(calls) <= MAX_CALLS:
        yield _expected([{"tool": mutant.tool, "output": {"$not": ""}}] * len(calls))
    entries = [{"tool": call.tool, "output": _literal(call.output)} for call in calls]
    if len(entries) <= MAX_CALLS and _is_short(entries):
        yield _expected([{"tool": own.tool, "output": _literal(own.output)}])
        yield _expected(entries)
        yield _trajectory(mode="in_order", expected=entries)


def _allowed(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    if mutant.tool == DESTRUCTIVE:
        yield _trajectory(forbidden=["delete_*"])
    tools = sorted({call.tool for other in others for call in other.calls if call.tool})
    if tools:
        yield _trajectory(allowed=tools)
    yield _trajectory(maximums={"*": max(len(other.calls) for other in (original, *others))})


def _answer(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    """Yield words that all answers have: numbers and ids, long words, the last words; then their least number."""
    texts = [other.response.text for other in others] or [original.response.text]
    changed = mutant.response.text
    common = [word for word in _telling_words(original.response.text) if all(word in text for text in texts)]
    lost = [word for word in common if word not in changed]
    if lost:
        yield {"type": "contains", "value": lost[0]}
    if mutant.operator == "negate_answer":
        yield {"type": "contains", "none": [REFUSAL.rstrip(".").removeprefix("I ")], "ignore_case": True}
    if original.response.text.strip():
        yield {"type": "word_count", "min": min(len(text.split()) for text in texts)}
        tail = original.response.text.strip()[-40:]
        if _is_short(tail):
            yield {"type": "ends_with", "value": tail}


def _turns(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    yield {"type": "conversation_turns", "min": min(len(other.response.turns) for other in (original, *others))}
    yield from _same_calls(mutant, original, others)


def _telling_words(text: str) -> list[str]:
    """Return the words of a text that tell most: those with digits, then long ones, the last ones first."""
    words = [word.strip(".,;:!?()[]\"'`*") for word in text.split()]
    counts = Counter(words)
    marked = [word for word in words if _MARKED.fullmatch(word)]
    long = sorted({word for word in words if len(word) > 3}, key=lambda word: (counts[word], -words.index(word)))  # noqa: PLR2004
    return [word for word in dict.fromkeys([*marked, *long]) if word and _is_short(word)]


def _tokens(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    del mutant
    usages = [other.response.tokens_usage for other in (original, *others)]
    for key, name in (("max_total", "total_tokens"), ("max_input", "input_tokens"), ("max_output", "output_tokens")):
        counts = [count for usage in usages if usage is not None and (count := getattr(usage, name))]
        for room in (ROOM, 1.0):
            if counts:
                yield {"type": "token_budget", key: ceil(room * max(counts))}
    costs = [cost for other in (original, *others) if (cost := other.response.cost_usd)]
    for room in (ROOM, 1.0):
        if costs:
            yield {"type": "cost_budget", "max_usd": float(f"{room * max(costs):.4g}")}


def _latency(mutant: Mutant, original: Original, others: Sequence[Original]) -> Iterator[Config]:
    del mutant
    times = [time for other in (original, *others) if (time := other.response.latency_ms)]
    for room in (ROOM, 1.0):
        yield {"type": "latency_budget", "max_ms": _round_up(room * max(times))}


def _round_up(number: float) -> float:
    return ceil(number) if number >= 1 else float(f"{number * 1.01:.3g}")


_Suggest = Callable[[Mutant, Original, Sequence[Original]], Iterator[Config]]
_SUGGESTIONS: dict[Operator, _Suggest] = {
    "drop_call": _at_least,
    "duplicate_call": _at_most,
    "swap_calls": _order,
    "rename_call": _at_least,
    "change_argument": _argument,
    "drop_argument": _present,
    "add_argument": _no_other,
    "fail_call": _no_failure,
    "deny_call": _at_least,
    "blank_output": _output,
    "change_output": _output,
    "insert_foreign_call": _allowed,
    "insert_destructive_call": _allowed,
    "cut_answer": _answer,
    "negate_answer": _answer,
    "drop_turn": _turns,
    "double_tokens": _tokens,
    "double_latency": _latency,
}


def to_yaml(value: Any) -> str:
    """Return a configuration as YAML on one line, such as `{type: tool_trajectory, maximums: {refund: 1}}`."""
    if type(value) is str:
        return _text(value)
    if type(value) is int:
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join([f"{_text(str(key))}: {to_yaml(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([to_yaml(item) for item in value]) + "]"
    return _text(value) if isinstance(value, str) else dump_json(value).decode()


@lru_cache(maxsize=1024)
def _text(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text.lower() not in _WORDS else dump_json(text).decode()
