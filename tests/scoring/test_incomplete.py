"""Verdicts on text that was redacted or cut: what was met stays met, and what is absent is undecided."""

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import agentv
from agentv.formats.incomplete import mark_incomplete, with_cut_end
from agentv.formats.reader import decode_response
from agentv.jsonio import dump_json, parse_json
from agentv.model.conversation import may_have_gap
from agentv.redaction import Redactor

SECRET = "s3cr3t-Value"  # noqa: S105 - planted
OTHER = "sk-proj-0123456789abcdefABCDEF"
REDACTOR = Redactor({"API_KEY": SECRET})


def stored(response: agentv.ProviderResponse) -> agentv.ProviderResponse:
    """Return a reply as the store gives it back: without its secrets."""
    data = REDACTOR.line(dump_json(response))
    response = decode_response(parse_json(data))
    return mark_incomplete(response) if may_have_gap(data) else response


def status(response: agentv.ProviderResponse, *evaluators: dict[str, Any]) -> str:
    return agentv.score(response, list(evaluators)).status


def answer(text: str) -> agentv.ProviderResponse:
    return agentv.ProviderResponse(text=text)


def called(*calls: dict[str, Any]) -> agentv.ProviderResponse:
    return decode_response({"output_messages": [{"role": "assistant", "tool_calls": list(calls)}]})


LEAK = f"The key is {SECRET}, do not share it."


@pytest.mark.parametrize(
    ("evaluator", "before", "after"),
    [
        ({"type": "contains", "none": [SECRET]}, "fail", "error"),
        ({"type": "contains", "value": SECRET, "not": True}, "fail", "error"),
        ({"type": "contains", "value": "do not share"}, "pass", "pass"),
        ({"type": "contains", "value": "do not share", "not": True}, "fail", "fail"),
        ({"type": "contains", "value": "redacted"}, "fail", "error"),
        ({"type": "contains", "any": ["password", "The key"]}, "pass", "pass"),
        ({"type": "contains", "none": ["share", SECRET]}, "fail", "fail"),
        ({"type": "regex", "pattern": r"s3\w+"}, "pass", "error"),
        ({"type": "regex", "pattern": r"\bshare\b"}, "pass", "pass"),
        ({"type": "regex", "pattern": "^The key"}, "pass", "pass"),
        ({"type": "regex", "pattern": r"it\.$"}, "pass", "pass"),
        ({"type": "regex", "pattern": "^(?!.*s3cr3t).*$"}, "fail", "error"),
        ({"type": "regex", "pattern": r"redacted:\w+"}, "fail", "error"),
        ({"type": "regex", "pattern": "s3cr3t", "not": True}, "fail", "error"),
        ({"type": "equals", "value": LEAK}, "pass", "error"),
        ({"type": "equals", "value": "I have no key."}, "fail", "fail"),
        ({"type": "starts_with", "value": "The key"}, "pass", "pass"),
        ({"type": "starts_with", "value": "A key"}, "fail", "fail"),
        ({"type": "starts_with", "value": "The key is s"}, "pass", "error"),
        ({"type": "ends_with", "value": "share it."}, "pass", "pass"),
        ({"type": "word_count", "max": 3}, "fail", "fail"),
        ({"type": "word_count", "max": 8}, "pass", "error"),
        ({"type": "word_count", "min": 3}, "pass", "pass"),
        ({"type": "levenshtein", "value": LEAK, "threshold": 0.9}, "pass", "error"),
        ({"type": "refusal", "expected": False}, "pass", "error"),
        ({"type": "any_of", "evaluators": [{"type": "contains", "value": "share"}]}, "pass", "pass"),
        ({"type": "all_of", "evaluators": [{"type": "contains", "none": ["x-key"]}]}, "pass", "error"),
    ],
    ids=str,
)
def test_a_stored_answer_is_never_judged_differently(evaluator: dict[str, Any], before: str, after: str) -> None:
    assert status(answer(LEAK), evaluator) == before
    assert status(stored(answer(LEAK)), evaluator) == after


def test_an_undecided_result_names_the_place_and_the_reason() -> None:
    result = agentv.score(stored(answer(LEAK)), [{"type": "contains", "none": [SECRET]}])
    assert "secrets in it were redacted" in result.evaluators[0].details["undecided"][0]
    assert any(warning.startswith("text: secrets in it were redacted") for warning in result.warnings)


LOGIN = {"tool": "login", "input": {"user": "ada", "key": SECRET}, "output": {"token": OTHER, "ok": True}}


def trajectory(*expected: dict[str, Any], **options: Any) -> dict[str, Any]:
    return {"type": "tool_trajectory", "mode": "exact", "expected": list(expected), **options}


@pytest.mark.parametrize(
    ("evaluator", "before", "after"),
    [
        (trajectory({"tool": "login"}), "pass", "pass"),
        (trajectory({"tool": "logout"}), "fail", "fail"),
        (trajectory({"tool": "login", "input": {"user": "ada", "key": SECRET}}), "pass", "error"),
        (trajectory({"tool": "login", "input": {"user": "bob", "key": SECRET}}), "fail", "fail"),
        (trajectory({"tool": "login", "input": {"user": "ada"}}, input_match="partial"), "pass", "pass"),
        (trajectory({"tool": "login", "input": {"user": "ada", "key": {"$any": True}}}), "pass", "pass"),
        (trajectory({"tool": "login", "input": {"user": "ada", "key": {"$not": SECRET}}}), "fail", "error"),
        (trajectory({"tool": "login", "input": {"user": "ada", "key": {"$regex": "^s3"}}}), "pass", "error"),
        (trajectory({"tool": "login", "output": {"token": {"$type": "string"}, "ok": True}}), "pass", "error"),
        (trajectory({"tool": "login", "output": {"ok": False, "token": OTHER}}), "fail", "fail"),
        ({"type": "tool_trajectory", "forbidden": ["delete_*"], "maximums": {"login": 1}}, "pass", "pass"),
        ({"type": "contains", "on": "tool_calls[login][0].input", "none": [SECRET]}, "fail", "error"),
        ({"type": "contains", "on": "tool_calls[login][0].input.user", "value": "ada"}, "pass", "pass"),
        ({"type": "equals", "on": "tool_calls[0].input", "value": {"user": "ada", "key": SECRET}}, "pass", "error"),
        ({"type": "json", "on": "tool_calls[0].output", "matches": {"ok": True}}, "pass", "pass"),
        ({"type": "json", "on": "tool_calls[0].output", "schema": {"required": ["ok"]}}, "pass", "error"),
        ({"type": "no_redundant_calls"}, "pass", "pass"),
        ({"type": "loop_detection"}, "pass", "pass"),
    ],
    ids=str,
)
def test_stored_calls_are_never_judged_differently(evaluator: dict[str, Any], before: str, after: str) -> None:
    assert status(called(LOGIN), evaluator) == before
    assert status(stored(called(LOGIN)), evaluator) == after


def test_calls_with_different_secrets_are_not_taken_for_the_same() -> None:
    other = {**LOGIN, "input": {"user": "ada", "key": f"{OTHER}x"}}
    third = {**LOGIN, "input": {"user": "ada", "key": f"{OTHER}y"}}
    for evaluator in ({"type": "no_redundant_calls"}, {"type": "loop_detection"}):
        assert status(called(other, third, LOGIN), evaluator) == "pass"
        assert status(stored(called(other, third, LOGIN)), evaluator) == "error"


def test_a_tool_whose_name_was_redacted_may_be_any_tool() -> None:
    reply = called({"tool": f"run_{SECRET}"})
    assert status(reply, {"type": "tool_trajectory", "forbidden": ["run_*"]}) == "fail"
    assert status(stored(reply), {"type": "tool_trajectory", "forbidden": ["run_*"]}) == "error"


def test_expected_messages_with_a_redacted_argument_are_undecided() -> None:
    golden = [{"role": "assistant", "tool_calls": [{"tool": "login", "input": {"user": "ada", "key": SECRET}}]}]
    by_name = [{"role": "assistant", "tool_calls": [{"tool": "login"}]}]
    reply = stored(called(LOGIN))
    assert agentv.score(reply, expected_messages=golden).status == "error"
    assert agentv.score(reply, expected_messages=by_name).status == "pass"


def test_a_reply_of_which_the_end_is_missing() -> None:
    reply = with_cut_end(answer("All is well, but"), "the stream ended early")
    assert status(reply, {"type": "contains", "value": "All is well"}) == "pass"
    assert status(reply, {"type": "contains", "none": ["fail"]}) == "error"
    assert status(reply, {"type": "equals", "value": "All is well, but"}) == "error"
    assert status(reply, {"type": "ends_with", "value": "but"}) == "error"
    assert status(reply, {"type": "tool_trajectory", "forbidden": ["delete"]}) == "error"


def test_python_functions_are_told_and_undecided_unless_they_say_that_they_handle_it() -> None:
    @agentv.evaluator
    def no_leak(ctx: agentv.Context) -> bool:
        assert ctx.incomplete
        return SECRET not in ctx.candidate

    assert agentv.score(stored(answer(LEAK)), [no_leak()]).status == "error"
    assert agentv.score(stored(answer(LEAK)), [no_leak(accepts_incomplete=True)]).status == "pass"


WORDS = st.sampled_from(
    ["refund", "key", SECRET, OTHER, "Bearer", " ", "\n", "done.", "[redacted]", "4711", '"', "{", "}"]
)
TEXTS = st.lists(WORDS, max_size=6).map("".join)
VALUES = st.one_of(
    TEXTS,
    st.integers(0, 3),
    st.lists(TEXTS, max_size=2),
    st.dictionaries(WORDS, st.lists(TEXTS, max_size=2), max_size=2),
)
MATCHERS = st.one_of(
    VALUES,
    TEXTS.map(lambda text: {"$contains": text}),
    TEXTS.map(lambda text: {"$not": text}),
    TEXTS.map(lambda text: {"$not": {"$contains": text}}),
    st.sampled_from(["s3", "^key", r"\w+-\w+", "[a-z]+$", "(?!key).", "redacted", "done.*"]).map(
        lambda one: {"$regex": one}
    ),
    st.sampled_from(["string", "number", "object"]).map(lambda one: {"$type": one}),
    st.lists(TEXTS, min_size=1, max_size=2).map(lambda several: {"$oneof": several}),
    TEXTS.map(lambda text: {"$gt": text}),
    TEXTS.map(lambda text: {"$glob": f"*{text}*"}),
)
ON = st.sampled_from(["answer", "tool_calls[0].input", "tool_calls[-1].output", "messages[0].content"])
NOT_EMPTY = TEXTS.filter(bool)
PATTERNS = st.sampled_from(
    ["s3", "^key", r"\bkey\b", r"\w+-\w+", "[a-z]+$", "^(?!.*key)", "redacted", r"(?s)done.*", r"\Z"]
)
SOME = st.lists(NOT_EMPTY, min_size=1, max_size=2)
MODES = st.sampled_from(["exact", "in_order", "any_order", "superset", "subset", "unordered"])


def config(kind: str, **options: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind), **options})


EVALUATORS = st.one_of(
    config("contains", on=ON, none=SOME),
    config("contains", on=ON, any=SOME, ignore_case=st.booleans()),
    config("equals", on=ON, value=MATCHERS),
    config("json", on=ON, matches=MATCHERS),
    config("starts_with", on=ON, value=NOT_EMPTY, trim=st.booleans()),
    config("ends_with", on=ON, value=NOT_EMPTY, trim=st.booleans()),
    config("word_count", max=st.integers(0, 4)),
    config("levenshtein", value=TEXTS, max_distance=st.integers(0, 20)),
    config("regex", on=ON, pattern=PATTERNS),
    config(
        "tool_trajectory",
        mode=MODES,
        expected=st.lists(
            st.fixed_dictionaries({"tool": st.sampled_from(["a", "b"]), "input": MATCHERS}), min_size=1, max_size=2
        ),
        input_match=st.sampled_from(["exact", "partial", "subset"]),
    ),
    st.sampled_from([{"type": "no_redundant_calls"}, {"type": "loop_detection", "times": 2}, {"type": "refusal"}]),
)
CALLS = st.lists(
    st.fixed_dictionaries({"tool": st.sampled_from(["a", "b"]), "input": VALUES, "output": VALUES}), max_size=3
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(text=TEXTS, calls=CALLS, evaluator=EVALUATORS, negate=st.booleans())
@example(text=SECRET, calls=[], evaluator={"type": "contains", "none": [SECRET]}, negate=False)
def test_storing_a_reply_never_turns_a_verdict(
    text: str,
    calls: list[dict[str, Any]],
    evaluator: dict[str, Any],
    negate: bool,
) -> None:
    message = {"role": "assistant", "content": text, "tool_calls": calls}
    reply = replace(decode_response({"output_messages": [message]}), text=text)
    try:
        before = status(reply, {**evaluator, "not": negate})
    except agentv.SpecError:
        return  # plain keys beside operators, and the like
    after = status(stored(reply), {**evaluator, "not": negate})
    assert after in (before, "error")
