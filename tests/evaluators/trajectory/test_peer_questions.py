"""Questions of the test suites of other matchers, asked of the rows of the pages on moving here.

The questions are theirs, the data and the words are not. An answer that is another one than theirs says so.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest

import agentv

Call = tuple[str, dict[str, Any]]
Turns = list[list[Call]]


def score(reply: Any, **config: Any) -> float | None:
    """Return the score of the check."""
    result = agentv.score(reply, [{"type": "tool_trajectory", **config}])
    assert result.warnings == ()
    return result.score


def made(*calls: Any) -> dict[str, Any]:
    """A reply in which these calls were made, each in a message of its own, and then words; a string is a name."""
    each = [{"tool": call} if isinstance(call, str) else call for call in calls]
    messages = [{"role": "assistant", "tool_calls": [call]} for call in each]
    return {"output_messages": [*messages, {"role": "assistant", "content": "Done."}]}


def named(tools: str) -> list[dict[str, str]]:
    return [{"tool": tool} for tool in tools.split()]


# agentevals, openevals


def openai_messages(turns: Turns) -> list[dict[str, Any]]:
    """A conversation as their tests write it: neither calls nor results have an id."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "And the tide?"}]
    for turn in turns:
        calls = [{"function": {"name": name, "arguments": json.dumps(given)}} for name, given in turn]
        messages += [{"role": "assistant", "tool_calls": calls}, *({"role": "tool", "content": "2 m"} for _ in turn)]
    return [*messages, {"role": "assistant", "content": "It is high."}]


def langchain_messages(turns: Turns) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"type": "human", "content": "And the tide?"}]
    for at, turn in enumerate(turns):
        calls = [{"id": f"{at}-{n}", "name": name, "args": given} for n, (name, given) in enumerate(turn)]
        results = [{"type": "tool", "tool_call_id": call["id"], "content": "2 m"} for call in calls]
        messages += [{"type": "ai", "content": "", "tool_calls": calls}, *results]
    return [*messages, {"type": "ai", "content": "It is high."}]


def against(golden: Turns, mode: str, **config: Any) -> dict[str, Any]:
    """The check that their mode is here."""
    turns = [[{"tool": name, "input": given} for name, given in turn] for turn in golden]
    if mode == "strict":
        return {"mode": "exact", "unit": "turn", "expected": turns, **config}
    return {"mode": mode, "expected": [entry for turn in turns for entry in turn], **config}


BREST: Call = ("tide", {"port": "Brest"})
ROSCOFF: Call = ("tide", {"port": "Roscoff"})
PARIS: Call = ("tide", {"port": "Paris"})
GOLDEN: list[tuple[str, Turns, Turns, str]] = [
    ("the same", [[BREST]], [[BREST]], "strict unordered superset subset"),
    ("two calls of one message the other way round", [[BREST, ROSCOFF]], [[ROSCOFF, BREST]],
     "strict unordered superset subset"),
    ("two messages instead of one", [[BREST], [ROSCOFF]], [[ROSCOFF, BREST]], "unordered superset subset"),
    ("one of two calls", [[BREST]], [[ROSCOFF, BREST]], "subset"),
    ("a call too many", [[BREST, ROSCOFF]], [[BREST]], "superset"),
    ("another tool", [[("forecast", {"port": "Brest"})]], [[BREST]], ""),
    ("other arguments", [[PARIS]], [[BREST]], ""),
    ("no call at all", [], [[BREST]], "subset"),
    ("a call twice that is expected once", [[BREST], [BREST]], [[BREST]], "superset"),
    ("a call once that is expected twice", [[BREST]], [[BREST], [BREST]], "subset"),
]  # fmt: skip


@pytest.mark.parametrize("write", [openai_messages, langchain_messages])
@pytest.mark.parametrize("mode", ["strict", "unordered", "superset", "subset"])
@pytest.mark.parametrize(
    ("calls", "golden", "holding"), [case[1:] for case in GOLDEN], ids=[case[0] for case in GOLDEN]
)
def test_agentevals_modes(
    calls: Turns, golden: Turns, holding: str, mode: str, write: Callable[[Turns], list[dict[str, Any]]]
) -> None:
    assert score({"messages": write(calls)}, **against(golden, mode)) == float(mode in holding.split())


@pytest.mark.parametrize("mode", ["strict", "unordered", "superset", "subset"])
@pytest.mark.parametrize(
    ("given", "expected", "holding"),
    [
        ({"port": "Brest", "unit": "m"}, {"port": "Brest"}, "ignore partial"),
        ({"port": "Brest"}, {"port": "Brest", "unit": "m"}, "ignore subset"),
        ({"port": "Brest"}, {"port": "Brest"}, "exact ignore subset partial"),
        ({"port": "Paris"}, {"port": "Brest"}, "ignore"),
    ],
)
@pytest.mark.parametrize("match", ["exact", "ignore", "subset", "partial"])
def test_agentevals_argument_modes_whatever_the_mode(
    mode: str, given: dict[str, Any], expected: dict[str, Any], holding: str, match: str
) -> None:
    reply = {"messages": openai_messages([[("tide", given)]])}
    assert score(reply, **against([[("tide", expected)]], mode, input_match=match)) == float(match in holding.split())


POLICY: Turns = [[("fetch", {})], [("policy", {"about": "upgrades to first class"}), ("policy", {"about": "meals"})]]


@pytest.mark.parametrize("mode", ["unordered", "superset", "subset"])
def test_agentevals_override_by_a_function_that_asks_more_of_one_call_than_of_another(mode: str) -> None:
    made_calls: Turns = [[("fetch", {})], [("policy", {"about": "first class"}), ("policy", {"about": "upgrades"})]]
    loose = [
        {"tool": "fetch", "input": {}},
        {"tool": "policy", "input": {"about": {"$contains": "upgrade"}}},
        {"tool": "policy"},
    ]
    reply = {"messages": openai_messages(made_calls)}
    assert score(reply, **against(POLICY, mode)) == 0.0
    assert score(reply, mode=mode, expected=loose) == 1.0


@pytest.mark.parametrize(
    ("calls", "worth"),
    [("search reply", 1.0), ("search delete", 0.0), ("refund", 0.0), ("", 1.0)],
)
def test_agentevals_permissions(calls: str, worth: float) -> None:
    rule = {"allowed": ["search", "reply", "refund"], "forbidden": ["refund"], "score": "binary"}
    assert score(made(*calls.split()), **rule) == worth


# Google ADK, Azure


@pytest.mark.parametrize(
    ("calls", "expected", "holding"),
    [
        ("a x b y c", "a b c", "in_order superset"),
        ("b x a y c", "a b c", "superset"),
        ("a x b y", "a b d", ""),
        ("a c b", "a b c", "superset"),
        ("a b c a", "a b a", "in_order superset"),
        ("a b c", "a b a", ""),
        ("a", "a a", ""),
        ("a b", "a b", "exact in_order superset"),
    ],
)
@pytest.mark.parametrize("mode", ["exact", "in_order", "superset"])
@pytest.mark.parametrize("match", ["exact", "ignore"])
def test_adk_and_azure_match_types(calls: str, expected: str, holding: str, mode: str, match: str) -> None:
    given = [{"tool": tool, "input": {"n": 1}} for tool in calls.split()]
    wanted = [{"tool": tool, "input": {"n": 1 if match == "exact" else 9}} for tool in expected.split()]
    assert score(made(*given), mode=mode, input_match=match, expected=wanted) == float(mode in holding.split())


def test_adk_expects_no_call() -> None:
    assert score(made(), mode="exact", expected=[]) == 1.0
    assert score(made("a"), mode="exact", expected=[]) == 0.0


@pytest.mark.parametrize(
    ("calls", "expected", "fractions"),
    [
        ("a x b c", "a b c", (0.75, 1.0, 6 / 7)),
        ("c a b", "a b c", (1.0, 1.0, 1.0)),
        ("a b x", "a b c", (2 / 3, 2 / 3, 2 / 3)),
        ("", "a b c", (0.0, 0.0, 0.0)),
        ("a a a", "a", (1 / 3, 1.0, 0.5)),
    ],
)
def test_azure_fractions(calls: str, expected: str, fractions: tuple[float, ...]) -> None:
    reply = made(*calls.split())
    found = [
        score(reply, mode="unordered", score=kind, expected=named(expected)) for kind in ("precision", "recall", "f1")
    ]
    assert found == pytest.approx(fractions)


# ragas


@pytest.mark.parametrize(
    ("given", "expected", "worth"),
    [
        ({"filter": {"lang": "en", "year": 2024}}, {"filter": {"year": 2024, "lang": "en"}}, 1.0),
        ({"filter": {"lang": "en", "year": 2023}}, {"filter": {"year": 2024, "lang": "en"}}, 0.0),
        ({"ids": [3, 2, 1]}, {"ids": [1, 2, 3]}, 0.0),
        ({"query": "python", "limit": 5}, {"query": "python", "limit": 10}, 0.0),  # ragas: 0.5
    ],
)
@pytest.mark.parametrize("mode", ["exact", "unordered"])
def test_ragas_arguments(given: dict[str, Any], expected: dict[str, Any], worth: float, mode: str) -> None:
    wanted = [{"tool": "search", "input": expected}]
    assert score(made({"tool": "search", "input": given}), mode=mode, input_match="partial", expected=wanted) == worth


def test_ragas_share_of_the_arguments_is_told() -> None:
    wanted = [{"tool": "search", "input": {"query": "python", "limit": 10}}, {"tool": "rank", "input": {"by": "date"}}]
    calls = ({"tool": "search", "input": {"query": "python", "limit": 5}}, {"tool": "rank", "input": {"by": "date"}})
    check = {"type": "tool_trajectory", "mode": "exact", "input_match": "partial", "expected": wanted}
    (found,) = agentv.score(made(*calls), [check]).evaluators
    assert (found.score, found.details["argument_score"]) == (0.0, 0.75)


# strands, pydantic-evals


@pytest.mark.parametrize(
    ("config", "calls", "expected", "worth"),
    [
        ({"mode": "in_order", "score": "recall"}, "a b", "a b c", 2 / 3),
        ({"mode": "in_order", "score": "recall"}, "b a c", "a b c", 2 / 3),  # strands: 1/3
        ({"mode": "in_order", "score": "recall"}, "", "a b c", 0.0),
        ({"mode": "any_order"}, "c x a b", "a b c", 1.0),
        ({"mode": "any_order"}, "a b", "a b c", 2 / 3),
        ({"mode": "any_order"}, "", "a b c", 0.0),
        ({"mode": "in_order", "score": "f1"}, "a x b", "a b c", 2 / 3),
        ({"mode": "in_order", "score": "f1"}, "a a b b", "a b", 2 / 3),
        ({"mode": "in_order", "score": "f1"}, "a x b y c", "a b c", 0.75),
        ({"mode": "in_order", "score": "f1"}, "x", "y", 0.0),
        ({"mode": "unordered", "score": "f1"}, "a x", "a b c", 0.4),
        ({"mode": "unordered", "score": "f1"}, "a b x y", "a b", 2 / 3),
        ({"mode": "unordered", "score": "f1"}, "a", "a a", 2 / 3),
    ],
)
def test_strands_and_pydantic_shares(config: dict[str, Any], calls: str, expected: str, worth: float) -> None:
    assert score(made(*calls.split()), expected=named(expected), **config) == pytest.approx(worth)


@pytest.mark.parametrize("mode", ["in_order", "unordered"])
def test_pydantic_share_of_nothing(mode: str) -> None:
    assert (
        agentv.score(made(), [check := {"type": "tool_trajectory", "mode": mode, "score": "f1", "expected": []}]).score
        == 1
    )
    assert agentv.score(made("a"), [check]).score == 0


FAILED = {"tool": "search", "input": {"q": "bad"}, "status": "error"}
GOOD = {"tool": "search", "input": {"q": "good"}}
WAITING = {"tool": "delete_account", "status": "pending"}


def test_pydantic_failed_attempts_count_only_where_they_are_asked_for() -> None:
    reply = made(FAILED, GOOD)
    once, twice = named("search"), named("search search")
    assert score(reply, mode="unordered", expected=once, calls={"error": "exclude"}) == 1.0
    assert score(reply, mode="unordered", expected=once) == 0.0
    assert score(reply, mode="exact", expected=twice) == 1.0
    assert score(reply, maximums={"*": 1}) == 0.0
    assert score(reply, maximums={"*": 1}, calls={"error": "exclude"}) == 1.0


def test_pydantic_a_call_that_waits_for_leave_was_not_made() -> None:
    reply = made("search", WAITING)
    assert score(reply, mode="unordered", expected=named("search")) == 1.0
    assert score(reply, mode="unordered", expected=named("search delete_account")) == 0.0


@pytest.mark.parametrize("given", [[1, 2, 3], "not json", None])
def test_pydantic_arguments_that_are_no_object_match_no_object(given: Any) -> None:
    wanted = [{"tool": "search", "input": {"q": "cats"}}]
    assert (
        score(made({"tool": "search", "input": given}), mode="superset", input_match="partial", expected=wanted) == 0.0
    )


# promptfoo


@pytest.mark.parametrize(
    ("given", "expected", "rule", "worth"),
    [
        ({"state": "open", "page": 1, "size": 5}, {"state": "open"}, {"defaults": {"page": 1, "size": 5}}, 1.0),
        ({"state": "open"}, {"state": "open"}, {"defaults": {"page": 1}}, 1.0),
        ({"state": "open", "page": 2}, {"state": "open"}, {"defaults": {"page": 1}}, 0.0),
        ({"state": "open", "page": 1, "drop": True}, {"state": "open"}, {"defaults": {"page": 1}}, 0.0),
        ({"state": "open", "page": 1}, {"state": "open", "page": 2}, {"defaults": {"page": 1}}, 0.0),
        ({"state": "open", "page": 1}, {"state": "open"}, {"defaults": {}}, 0.0),
        ({"state": "open", "after": None}, {"state": "open"}, {"defaults": {"after": None}}, 1.0),
        ({"sort": {"by": "date", "up": True}}, {}, {"defaults": {"sort": {"up": True, "by": "date"}}}, 1.0),
        ({"state": "open", "paging": {"page": 1}}, {"state": "open"}, {"defaults": {"page": 1}}, 0.0),
        ({"fields": "name"}, {}, {"defaults": {"fields": "*"}}, 0.0),
        ({"fields": "*"}, {}, {"defaults": {"fields": "*"}}, 1.0),
        ([1, 2], [1, 2], {"defaults": {"page": 1}, "ignore": ["id"]}, 1.0),
        ({"state": "open", "id": "a1"}, {"state": "open", "id": "z9"}, {"ignore": ["id"]}, 1.0),
        ({"state": "open"}, {"state": "open", "id": "z9"}, {"ignore": ["id"]}, 1.0),
        ({"state": "open", "request_id": 1, "user_id": 2}, {"state": "open"}, {"ignore": ["*_id"]}, 1.0),
        ({"state": "open", "v1": 2}, {"state": "open"}, {"ignore": ["v?"]}, 1.0),
        ({"state": "open", "request_id": 1}, {"state": "open"}, {"ignore": ["request"]}, 0.0),
        ({"state": "open", "id": 1, "page": 1}, {"state": "open"}, {"ignore": ["id"], "defaults": {"page": 1}}, 1.0),
        ({"state": "open", "__proto__": {"a": 1}}, {"state": "open"}, {"ignore": ["id"]}, 0.0),
    ],
)
def test_promptfoo_defaults_and_ignored_arguments(
    given: Any, expected: Any, rule: dict[str, Any], worth: float
) -> None:
    config = {"mode": "superset", "expected": [{"tool": "orders", "input": expected}], "tools": {"orders": rule}}
    reply = made("log", {"tool": "orders", "input": given})
    assert score(reply, **config) == worth
    assert score(reply, **config, **{"not": True}) == 1.0 - worth


def test_promptfoo_an_argument_may_be_expected_and_a_default() -> None:
    wanted = [{"tool": "orders", "input": {"page": 1}}]  # promptfoo: 0
    config = {"mode": "superset", "input_match": "partial", "tools": {"orders": {"defaults": {"page": 1}}}}
    assert score(made({"tool": "orders", "input": {"page": 1}}), expected=wanted, **config) == 1.0


@pytest.mark.parametrize(
    "rule", [{"ignore": [5]}, {"ignore": [None]}, {"ignore": 5}, {"defaults": ["page"]}, {"defaults": 1}]
)
def test_promptfoo_rules_that_cannot_be_meant(rule: dict[str, Any]) -> None:
    with pytest.raises(agentv.SpecError, match="expected a"):
        score(made("orders"), mode="superset", expected=[{"tool": "orders", "input": {}}], tools={"orders": rule})


# Mastra, and the npm package of our name


@pytest.mark.parametrize(
    ("calls", "worth"),
    [("search reply", 1.0), ("search check reply", 1.0), ("search search reply", 1.0), ("search", 0.5),
     ("reply search", 0.5), ("translate", 0.0), ("", 0.0)],
)  # fmt: skip
def test_mastra_relaxed_order(calls: str, worth: float) -> None:
    assert score(made(*calls.split()), mode="in_order", score="recall", expected=named("search reply")) == worth


def test_mastra_a_call_that_has_not_ended_counts_if_it_is_asked_for() -> None:
    reply = made({"tool": "weather", "status": "pending"})
    assert score(reply, minimums={"weather": 1}, calls={"pending": "include"}) == 1.0
    assert score(reply, minimums={"weather": 1}) == 0.0  # Mastra: 1


def test_agentv_npm_time_limits_are_constraints_beside_the_sequence() -> None:
    calls = ({"tool": "read", "duration_ms": 45}, {"tool": "edit"}, {"tool": "write", "duration_ms": 600})
    limits = [{"tool": "read", "max_duration_ms": 100}, {"tool": "edit"}, {"tool": "write", "max_duration_ms": 500}]
    (found,) = agentv.score(
        made(*calls), [{"type": "tool-trajectory", "mode": "in_order", "expected": limits}]
    ).evaluators
    assert found.score == pytest.approx(2 / 3)  # AgentV: 4/5, a constraint an entry
    assert "read completed in 45ms (max: 100ms)" in found.hits
    assert found.misses == ("write took 600ms (max: 500ms)",)


def test_agentv_npm_a_limit_on_a_call_that_told_no_time_is_not_held_against_it() -> None:
    check = {"type": "tool-trajectory", "mode": "in_order", "expected": [{"tool": "read", "max_duration_ms": 100}]}
    (found,) = agentv.score(made("read"), [check]).evaluators
    assert (found.status, found.score) == ("error", 1.0)  # AgentV: a pass


@pytest.mark.parametrize("reply", [{"text": "Done."}, {"output_messages": []}, {"output_messages": None}])
@pytest.mark.parametrize("mode", ["exact", "in_order", "any_order", "unordered", "superset", "subset"])
def test_a_reply_that_tells_nothing_passes_in_no_mode(reply: dict[str, Any], mode: str) -> None:
    check = {"type": "tool_trajectory", "mode": mode, "expected": named("search")}
    (found,) = agentv.score(reply, [check]).evaluators
    assert (found.status, found.misses[0]) == ("fail", "No trace available for evaluation")
