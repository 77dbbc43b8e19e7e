"""Exported runs: reading them back gives the same runs."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from agentv.formats.run_export import read_execution, read_run, write_execution, write_run
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, ToolCall
from agentv.model.events import Attempt
from agentv.model.request import Case
from agentv.model.response import ProviderResponse, ResponseError, TokensUsage, Unread
from agentv.model.results import EvaluatorResult, ResultRecord
from agentv.model.stored import ExecutionRow, StoredCommand, StoredRun
from agentv.run.records import recorded_turns
from agentv.scoring.turns import Exchange, combine_turns
from agentv.stores.sqlite import SqliteStore
from tests.support.examples import examples

NAME = "20261116T000000-abcdef"
KEY = "0123456789abcdef"
# Any text of an agent or an author: other alphabets, NUL, lone surrogates, slashes, escapes, long names.
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["", "a/b", "\x00", "\ud800", "\u202e", "x" * 300, '"\\', "\x1b[31m", "null", "é\u2028"]),
)
NUMBERS = st.one_of(
    st.none(), st.integers(-(2**63), 2**63), st.floats(), st.sampled_from([0.1, 1e308, float("nan"), float("inf")])
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=6,
)
MAYBE = st.one_of(st.none(), TEXTS)
CALLS = st.builds(ToolCall, tool=TEXTS, input=VALUES, output=VALUES, id=MAYBE)
MESSAGES = st.lists(
    st.builds(
        Message,
        role=st.sampled_from(["user", "assistant", "tool", "odd"]),
        content=MAYBE,
        tool_calls=st.lists(CALLS, max_size=2).map(tuple),
        metadata=st.one_of(st.none(), st.dictionaries(TEXTS, VALUES, max_size=2)),
    ),
    max_size=3,
).map(tuple)
ERRORS = st.one_of(st.none(), st.builds(ResponseError, kind=st.just("agent"), message=TEXTS, retryable=st.booleans()))
USAGE = st.one_of(st.none(), st.builds(TokensUsage, input_tokens=st.integers(0, 10**9), output_tokens=st.none()))
UNREAD = st.lists(st.builds(Unread, path=TEXTS, reason=TEXTS), max_size=3).map(tuple)
RESPONSES = st.builds(
    ProviderResponse,
    success=st.booleans(),
    text=TEXTS,
    output_messages=st.one_of(st.none(), MESSAGES),
    reasoning=MAYBE,
    tokens_usage=USAGE,
    thread_id=MAYBE,
    raw_response=VALUES,
    error=ERRORS,
    metadata=st.one_of(st.none(), st.dictionaries(st.one_of(TEXTS, st.just("output")), VALUES, max_size=3)),
    warnings=st.lists(TEXTS, max_size=2).map(tuple),
    unread=UNREAD,
    echo_end=st.one_of(st.none(), st.integers(0, 9)),
)
TURN_REPLIES = st.builds(
    ProviderResponse, text=TEXTS, tokens_usage=USAGE, latency_ms=st.one_of(st.none(), st.floats(0, 1e6)), unread=UNREAD
)


@st.composite
def conversations(draw: Any) -> ProviderResponse:
    """A reply of several turns; some are resumed with a value, in some the agent sent a text only."""
    exchanges = []
    for _ in range(draw(st.integers(1, 3))):
        user = draw(st.sampled_from([(), (Message(role="user", content=draw(TEXTS)),)]))
        sent = draw(st.one_of(st.none(), MESSAGES))
        reply = replace(draw(TURN_REPLIES), output_messages=sent)
        exchanges.append(Exchange(user, reply, draw(st.integers(0, 3)), UNSET if user else draw(VALUES)))
    ended_by = draw(st.sampled_from(["goal", "agent", "user", "limit", "error", None]))
    return replace(combine_turns(exchanges, draw(st.integers(0, 2))), ended_by=ended_by)


EVALUATORS = st.builds(
    EvaluatorResult,
    name=TEXTS,
    type=TEXTS,
    status=st.sampled_from(["pass", "fail", "error", "skipped"]),
    score=st.one_of(st.none(), st.floats(0, 1)),
    misses=st.lists(TEXTS, max_size=2).map(tuple),
    details=st.dictionaries(TEXTS, VALUES, max_size=2),
)
ATTEMPTS = st.lists(
    st.builds(
        Attempt,
        number=st.integers(1, 9),
        latency_ms=st.one_of(st.none(), st.floats(0, 1e9)),
        error=ERRORS.map(lambda error: error and ResponseError(kind=error.kind, message="down")),
        thread_id=st.one_of(st.none(), st.text(alphabet="abcé/", max_size=9)),
        waited_ms=st.floats(0, 1e9),
        turn=st.sampled_from([UNSET, 1, 7]),
    ),
    max_size=3,
    unique_by=lambda attempt: attempt.number,
)


def clean(value: Any) -> Any:
    """Return a text as the store has it, without characters that JSON cannot hold."""
    return msgspec.json.decode(dump_json(value))


@st.composite
def runs(draw: Any) -> StoredRun:
    case = Case(id=draw(TEXTS), input_messages=draw(MESSAGES))
    case_id, target, eval_id = clean(case.id), clean(draw(TEXTS)), clean(draw(TEXTS))
    response = draw(st.one_of(st.none(), RESPONSES, conversations()))
    ended_by = UNSET if response is None else response.ended_by or UNSET
    record = ResultRecord(
        execution_id=NAME,
        run_id=f"{NAME}-{KEY}",
        eval_id=draw(st.sampled_from([eval_id, "another"])),
        case_id=case_id,
        target=target,
        repeat=0,
        attempts=1,
        status=draw(st.sampled_from(["pass", "fail", "error"])),
        score=draw(st.one_of(st.none(), st.floats(0, 1))),
        candidate=draw(TEXTS),
        evaluators=tuple(draw(st.lists(EVALUATORS, max_size=2))),
        trace_summary=None,
        tokens_usage=draw(USAGE),
        cost_usd=draw(st.one_of(st.none(), st.floats(0, 1e6))),
        latency_ms=draw(st.one_of(st.none(), st.floats(0, 1e6))),
        thread_id=draw(MAYBE),
        warnings=tuple(draw(st.lists(TEXTS, max_size=2))),
        error=draw(ERRORS),
        started_at="2026-11-16T00:00:00.000Z",
        completed_at="2026-11-16T00:00:01.000Z",
        unread=draw(UNREAD) or UNSET,
        persona_id=draw(st.sampled_from([UNSET, "impatient"])),
        turns=UNSET if response is None else recorded_turns(response) or UNSET,
        ended_by=ended_by,
        fault=draw(st.sampled_from(["none", "agent", "environment"])) if ended_by else UNSET,
    )
    has_result = draw(st.booleans())
    return StoredRun(
        key=KEY,
        position=draw(st.integers(0, 10**6)),
        eval_id=eval_id,
        case_id=case_id,
        persona_id=record.persona_id or None,
        target=target,
        repeat=0,
        place=clean(draw(TEXTS)),
        # A run that is run again has the earlier result and a new time of start.
        status=draw(st.sampled_from(["completed", "error", "running", "cancelled"] if has_result else ["queued"])),
        rounds=draw(st.integers(1, 5)),
        started_at=draw(st.sampled_from([record.started_at, "2026-11-17T00:00:00.000Z"])),
        created_at="2026-11-16T00:00:00.000Z",
        updated_at="2026-11-16T00:00:00.000Z",
        superseded=draw(st.booleans()),
        content=dump_json([case, draw(st.lists(st.dictionaries(TEXTS, VALUES, max_size=3), max_size=2))]),
        target_settings=dump_json({"name": target, "settings": draw(VALUES)}),
        line=dump_json(record) if has_result else None,
        response=dump_json(response) if has_result and response is not None else None,
        sides=dump_json([None, ["a", ["b"], {"1": "c"}]]) if has_result and draw(st.booleans()) else None,
        attempt_log=tuple((1, attempt) for attempt in sorted(draw(ATTEMPTS), key=lambda one: one.number)),
    )


@settings(max_examples=examples(150), deadline=None)
@given(runs())
def test_a_run_comes_back_to_the_letter(run: StoredRun) -> None:
    name, back = read_run(write_run(run, NAME))
    assert name == NAME
    assert back == run
    assert write_run(back, NAME) == write_run(run, NAME)


@settings(max_examples=examples(60), deadline=None)
@given(run=runs())
def test_a_store_gives_back_what_was_put_into_it(tmp_path_factory: Any, run: StoredRun) -> None:
    store = SqliteStore(tmp_path_factory.mktemp("lines") / "runs.db")
    store.add(ExecutionRow(id=NAME, status="pass", started_at="x"), [run])
    assert [stored._replace(run_id="") for stored in store.stored_runs(NAME)] == [run]
    unread = run.line and msgspec.json.decode(run.line, type=ResultRecord).unread
    assert [row.unread for row in store.runs(NAME)] == ([] if run.superseded else [unread or None])
    store.close()


@given(TEXTS, st.lists(TEXTS, max_size=2), VALUES)
def test_an_execution_comes_back(name: str, paths: list[str], options: Any) -> None:
    row = ExecutionRow(
        id=clean(name),
        status="interrupted",
        command=StoredCommand(paths=tuple(clean(paths)), options={"cases": clean(options)}, rescored=clean(name)),
        summary={"runs": 1},
        started_at="x",
    )
    assert read_execution(write_execution(row)) == row


def test_what_an_agent_put_beside_its_messages_is_its_output() -> None:
    run = StoredRun(
        *(KEY, 0, "e", "c", None, "t", 0, "", "completed", 1, None, "", ""),
        superseded=False,
        content=dump_json([Case(id="c", input_messages=()), []]),
        target_settings=b"{}",
        line=None,
        response=dump_json(ProviderResponse(metadata={"output": {"total": 3}})),
        sides=None,
    )  # fmt: skip
    assert b'"output":{"total":3}' in write_run(run, NAME)
