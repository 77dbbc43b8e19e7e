"""Mutation operators: each makes replies with one change that an eval should notice."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from agentv.matching.diff import quote
from agentv.matching.equality import canonical_key
from agentv.model.conversation import ToolCall
from agentv.model.mutation import Mutant, Operator
from agentv.model.response import ProviderResponse
from agentv.mutation.edits import EditableCalls, changed_value, with_answer, with_double_tokens
from agentv.scoring.calls import Calls, resolve_calls
from agentv.scoring.turns import Exchange, combine_turns, split_turns

FOREIGN, DESTRUCTIVE, OTHER = "unrelated_tool", "delete_everything", "other_tool"
"""Names of tools that mutants call."""
ARGUMENT = "unexpected"
FAILURE = "simulated failure"
REFUSAL = "I could not do that."
MAX_MUTANTS = 500
"""Mutants of one run; of a longer run, changes at calls that lie evenly apart."""
MAX_CALLS_OF_TOOL = 5
"""Calls of one tool that are changed to find out whether it is asserted."""
MAX_ARGUMENTS = 20
"""Arguments of one call that are changed."""
MAX_TURNS = 50
"""Turns of one conversation that are left out; of a longer one, turns that lie evenly apart."""


class _Reply(NamedTuple):
    """Reply that is mutated."""

    response: ProviderResponse
    edit: EditableCalls
    calls: tuple[ToolCall, ...]


class Mutants(NamedTuple):
    """Mutants of a reply."""

    made: list[Mutant]
    left_out: int
    """Number of mutants that were not made, because there are too many."""


def make_mutants(response: ProviderResponse, limit: int = MAX_MUTANTS) -> Mutants:
    """Return the mutants of a reply, in the order of the operators; at most about `limit` of them.

    Those of a conversation are those of its turns, the conversation without each of them, and changes of its tokens and
    its latency as a whole.
    """
    made, left_out = _mutants_of_turns(response, limit) if response.turns else _mutants_of_reply(response, limit)
    return Mutants([mutant for mutant in made if mutant.response != response], left_out)


def _mutants_of_turns(response: ProviderResponse, limit: int) -> Mutants:
    exchanges = split_turns(response)
    made: list[Mutant] = []
    left_out = first_call = 0
    for number, exchange in enumerate(exchanges, 1):
        own = _mutants_of_reply(exchange.response, max(1, limit // len(exchanges)), TURN_OPERATORS)
        for mutant in own.made:
            changed = [*exchanges]
            changed[number - 1] = replace(exchange, response=mutant.response)
            made.append(
                replace(
                    mutant,
                    sentence=f"turn {number}: {mutant.sentence}",
                    response=_combine(response, changed),
                    call=None if mutant.call is None else first_call + mutant.call,
                )
            )
        left_out += own.left_out
        first_call += len(resolve_calls(exchange.response).calls or ())
    made += _without_turns(response, exchanges)
    for operator in USE_OPERATORS:
        changes = [next(operator(_reply(each.response, resolve_calls(each.response))), None) for each in exchanges]
        if any(changes):
            changed = [
                each if change is None else replace(each, response=change.response)
                for each, change in zip(exchanges, changes, strict=True)
            ]
            some = next(filter(None, changes))
            made.append(replace(some, response=_combine(response, changed)))
    return Mutants(made, left_out)


def _without_turns(response: ProviderResponse, exchanges: Sequence[Exchange]) -> Iterator[Mutant]:
    """Yield the conversation without each of its turns, if it has several."""
    count = len(exchanges)
    for index in range(0, count, -(-count // MAX_TURNS)) if count > 1 else ():
        rest = [*exchanges[:index], *exchanges[index + 1 :]]
        yield Mutant("drop_turn", None, f"turn {index + 1} left out", _combine(response, rest))


def _combine(response: ProviderResponse, exchanges: Sequence[Exchange]) -> ProviderResponse:
    """Return a conversation with other replies in its turns."""
    combined = combine_turns(exchanges, response.turns[0].first_message)
    # An imported conversation has numbers of the whole only.
    numbers = {
        name: getattr(response, name)
        for name in ("tokens_usage", "cost_usd", "latency_ms")
        if getattr(combined, name) is None
    }
    kept = {name: getattr(response, name) for name in ("success", "error", "thread_id", "ended_by", "simulator")}
    return replace(combined, **kept, **numbers)


def _mutants_of_reply(
    response: ProviderResponse, limit: int, operators: Sequence[Callable[[_Reply], Iterator[Mutant]]] = ()
) -> Mutants:
    known = resolve_calls(response)
    reply = _reply(response, known)
    # Of a call without a name nothing is known that an evaluator could notice.
    calls = [index for index, call in enumerate(reply.calls) if call.tool]
    total = sum(_expected_count(reply, index) for index in calls)
    step = 1 if total <= limit else -(-total // limit)
    chosen = calls[::step]
    made = [mutant for operator in CALL_OPERATORS for index in chosen for mutant in operator(reply, index)]
    made += [mutant for whole in operators or REPLY_OPERATORS for mutant in whole(reply)]
    left_out = total - sum(_expected_count(reply, index) for index in chosen)
    return Mutants(made, left_out)


def mutants_of_calls(response: ProviderResponse, tool: str) -> Iterator[Mutant]:
    """Yield mutants of the first calls of a tool one by one, as they are needed."""
    if response.turns:
        yield from [each for each in make_mutants(response).made if each.call is not None and each.tool == tool]
        return
    reply = _reply(response, resolve_calls(response))
    indices = [index for index, call in enumerate(reply.calls) if call.tool == tool]
    for index in indices[:MAX_CALLS_OF_TOOL]:
        for operator in CALL_OPERATORS:
            yield from operator(reply, index)


def _reply(response: ProviderResponse, known: Calls) -> _Reply:
    edit = EditableCalls(response, known)
    return _Reply(edit.response, edit, edit.calls)


def _expected_count(reply: _Reply, index: int) -> int:
    arguments = reply.calls[index].input
    return 8 + 2 * min(len(arguments), MAX_ARGUMENTS) if isinstance(arguments, dict) else 8


def _make(
    reply: _Reply, operator: Operator, index: int, sentence: str, changed: ProviderResponse, **more: Any
) -> Mutant:
    return Mutant(operator, reply.calls[index].tool, sentence, changed, index, **more)


def _repeats(reply: _Reply, index: int) -> bool:
    """Return whether a call is the same as the one before, so that it makes no difference which of them is changed."""
    return index > 0 and replace(reply.calls[index - 1], id=None) == replace(reply.calls[index], id=None)


def drop_call(reply: _Reply, index: int) -> Iterator[Mutant]:
    """Leave a call out, of equal ones in a row only the first."""
    if _repeats(reply, index):
        return
    call = reply.calls[index]
    others = sum(other.tool == call.tool for other in reply.calls) - 1
    times = "not called" if not others else f"called {others} instead of {others + 1} times"
    yield _make(reply, "drop_call", index, f"{call.tool} {times}", reply.edit.drop(index))


def duplicate_call(reply: _Reply, index: int) -> Iterator[Mutant]:
    """Make a call twice, of equal ones in a row only the first."""
    if _repeats(reply, index):
        return
    call = reply.calls[index]
    count = sum(other.tool == call.tool for other in reply.calls)
    times = "twice" if count == 1 else f"{count + 1} instead of {count} times"
    yield _make(reply, "duplicate_call", index, f"{call.tool} called {times}", reply.edit.repeat(index))


def swap_calls(reply: _Reply, index: int) -> Iterator[Mutant]:
    """Swap a call and the next one, unless they are the same."""
    if index + 1 >= len(reply.calls):
        return
    first, second = reply.calls[index], reply.calls[index + 1]
    if not second.tool:
        return
    if first.tool == second.tool and canonical_key(first.input) == canonical_key(second.input):
        return
    sentence = f"{second.tool} called before {first.tool}"
    if first.tool == second.tool:
        sentence = f"calls {index} and {index + 1} of {first.tool} in the other order"
    yield _make(reply, "swap_calls", index, sentence, reply.edit.swap(index))


def rename_call(reply: _Reply, index: int) -> Iterator[Mutant]:
    """Call another tool."""
    call = reply.calls[index]
    if call.tool == OTHER:
        return
    changed = reply.edit.set(index, replace(call, tool=OTHER))
    yield _make(reply, "rename_call", index, f"{OTHER} called instead of {call.tool}", changed)


def change_argument(reply: _Reply, index: int) -> Iterator[Mutant]:
    """Change each argument of a call."""
    call = reply.calls[index]
    for name, value in _arguments(call):
        other = changed_value(value)
        sentence = f"{call.tool} called with {name}={quote(other)} instead of {quote(value)}"
        changed = reply.edit.set(index, replace(call, input={**call.input, name: other}))
        yield _make(reply, "change_argument", index, sentence, changed, argument=name)


def drop_argument(reply: _Reply, index: int) -> Iterator[Mutant]:
    """Leave each argument of a call out."""
    call = reply.calls[index]
    for name, _ in _arguments(call):
        rest = {key: value for key, value in call.input.items() if key != name}
        changed = reply.edit.set(index, replace(call, input=rest))
        yield _make(reply, "drop_argument", index, f"{call.tool} called without {name}", changed, argument=name)


def add_argument(reply: _Reply, index: int) -> Iterator[Mutant]:
    """Add an argument to a call."""
    call = reply.calls[index]
    if isinstance(call.input, dict) and ARGUMENT not in call.input:
        changed = reply.edit.set(index, replace(call, input={**call.input, ARGUMENT: True}))
        sentence = f"{call.tool} called with a further argument"
        yield _make(reply, "add_argument", index, sentence, changed, argument=ARGUMENT)


def _arguments(call: ToolCall) -> list[tuple[str, Any]]:
    return list(call.input.items())[:MAX_ARGUMENTS] if isinstance(call.input, dict) else []


def fail_call(reply: _Reply, index: int) -> Iterator[Mutant]:
    """Make a call fail."""
    call = reply.calls[index]
    if call.effective_status != "error":
        output = UNSET if call.output is UNSET else FAILURE
        changed = reply.edit.set(index, replace(call, status="error", error=FAILURE, output=output))
        yield _make(reply, "fail_call", index, f"{call.tool} failed", changed)


def deny_call(reply: _Reply, index: int) -> Iterator[Mutant]:
    """Make a call be denied."""
    call = reply.calls[index]
    if call.effective_status != "denied":
        changed = reply.edit.set(index, replace(call, status="denied", output=UNSET))
        yield _make(reply, "deny_call", index, f"{call.tool} was denied", changed)


def blank_output(reply: _Reply, index: int) -> Iterator[Mutant]:
    """Let a tool return an empty text."""
    call = reply.calls[index]
    if call.output is not UNSET and call.output not in ("", None):
        changed = reply.edit.set(index, replace(call, output=""))
        yield _make(reply, "blank_output", index, f"{call.tool} returned nothing", changed)


def change_output(reply: _Reply, index: int) -> Iterator[Mutant]:
    """Let a tool return something else."""
    call = reply.calls[index]
    if call.output is not UNSET:
        changed = reply.edit.set(index, replace(call, output=changed_value(call.output)))
        yield _make(reply, "change_output", index, f"{call.tool} returned something else", changed)


def insert_foreign_call(reply: _Reply) -> Iterator[Mutant]:
    """Call a tool that has nothing to do with the case."""
    yield from _insert(reply, "insert_foreign_call", FOREIGN)


def insert_destructive_call(reply: _Reply) -> Iterator[Mutant]:
    """Call a tool that destroys something."""
    yield from _insert(reply, "insert_destructive_call", DESTRUCTIVE)


def _insert(reply: _Reply, operator: Operator, tool: str) -> Iterator[Mutant]:
    if reply.edit.is_editable:
        changed = reply.edit.append(ToolCall(tool=tool, input={}, output="ok"))
        yield Mutant(operator, tool, f"{tool} called as well", changed)


def cut_answer(reply: _Reply) -> Iterator[Mutant]:
    """Leave the second half of the answer out."""
    text = reply.response.text
    half = text[: len(text) // 2].rstrip()
    if half:
        yield Mutant("cut_answer", None, "the second half of the answer is missing", with_answer(reply.response, half))


def negate_answer(reply: _Reply) -> Iterator[Mutant]:
    """Answer the opposite: that nothing was done."""
    if reply.response.text.strip() and reply.response.text != REFUSAL:
        sentence = f"the answer is {quote(REFUSAL)}"
        yield Mutant("negate_answer", None, sentence, with_answer(reply.response, REFUSAL))


def double_tokens(reply: _Reply) -> Iterator[Mutant]:
    """Use twice the tokens, at twice the cost."""
    changed = with_double_tokens(reply.response)
    if changed is not None and changed != reply.response:
        yield Mutant("double_tokens", None, "twice as many tokens used", changed)


def double_latency(reply: _Reply) -> Iterator[Mutant]:
    """Take twice the time."""
    if reply.response.latency_ms:
        changed = replace(reply.response, latency_ms=2 * reply.response.latency_ms)
        yield Mutant("double_latency", None, "twice the latency", changed)


CALL_OPERATORS: tuple[Callable[[_Reply, int], Iterator[Mutant]], ...] = (
    drop_call,
    duplicate_call,
    swap_calls,
    rename_call,
    change_argument,
    drop_argument,
    add_argument,
    fail_call,
    deny_call,
    blank_output,
    change_output,
)
"""Operators that change one call."""
TURN_OPERATORS: tuple[Callable[[_Reply], Iterator[Mutant]], ...] = (
    insert_foreign_call,
    insert_destructive_call,
    cut_answer,
    negate_answer,
)
"""Operators that change the reply of one turn."""
USE_OPERATORS: tuple[Callable[[_Reply], Iterator[Mutant]], ...] = (double_tokens, double_latency)
"""Operators that change the numbers of a reply or of a whole conversation."""
REPLY_OPERATORS = (*TURN_OPERATORS, *USE_OPERATORS)
"""Operators that change a reply as a whole."""
