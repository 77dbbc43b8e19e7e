"""`agentv cases freeze`: whatever was said and called, the frozen case passes, with the same words and calls."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.command import Command, Json

AGENT = """
import json
import pathlib

TURNS = json.loads(pathlib.Path(__file__).with_name("turns.json").read_text("utf-8"))

def reply(messages):
    turn = sum(message["role"] == "user" for message in messages) - EARLIER
    return {"output_messages": TURNS[min(turn, len(TURNS)) - 1]}
"""
TEXT = st.one_of(
    # Stored records have no NUL: it became U+FFFD before.
    st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12),
    st.sampled_from(
        ["1e3", "0x1F", "no", "~", "=", "<<", "- x", "a: b # c", "file://agent.py", "{{ x }}", "{{", "${HOME}", "$$"]
    ),
    st.sampled_from(["two\nlines\n", "  indented\n\ttab", "2026-01-01", "12:30:00", "\u2028\u0085\ufeff", "é e\u0301"]),
)
SPOKEN = TEXT.filter(str.strip)
KEY = st.one_of(TEXT, st.sampled_from(["$ref", "$literal", "$any", "$gt", "tool", "input", "content"]))
VALUE = st.recursive(
    st.one_of(TEXT, st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEY, inner, max_size=3)),
    max_leaves=6,
)
CALL = st.fixed_dictionaries(
    {"tool": st.one_of(st.sampled_from(["refund", "get_*", "a[b]", "x?", "two words", "1e3"]))},
    optional={"input": VALUE, "output": VALUE, "status": st.sampled_from(["ok", "error", "denied", "pending"])},
)


def message(text: str, *calls: Json) -> list[Json]:
    return [{"role": "assistant", "content": text, "tool_calls": list(calls)}]


def simulated(**more: Any) -> Json:
    """Return a case whose user tells its order when it is asked."""
    simulate = {
        "opening": "My money, please.",
        "facts": {"order": "A-17"},
        "stop": {"agent_says": "done", "max_turns": 5},
    }
    evaluators = [{"type": "conversation_turns", "max": 5}]
    return {"id": "refund", "simulate": simulate, "evaluators": evaluators, **more}


def freeze(run: Command, turns: list[list[Json]], case: Json, earlier: int = 0, **more: Any) -> tuple[Json, Json]:
    """Run a case, freeze it, run the frozen one, and return both records with their messages."""
    run.write("agent.py", AGENT.replace("EARLIER", str(earlier)))
    (run.folder / "turns.json").write_text(json.dumps(turns), "utf-8")
    targets = [{"name": "agent", "provider": "python", "function": "agent.py:reply"}]
    document = {"targets": targets, "target": "agent", "cases": [case], **more}
    run.write("a.eval.yaml", json.dumps(document))  # a text such as 1e3 is a number in YAML without quotation marks
    first = run("eval", "a.eval.yaml", "--out", "a.jsonl", "--include-messages")
    assert first.code == 0, first.out + first.err
    frozen = run("cases", "freeze", "last", "--out", "frozen.eval.yaml", "--force")
    assert frozen.code == 0, frozen.err
    again = run("eval", "frozen.eval.yaml", "--out", "frozen.jsonl", "--include-messages")
    assert again.code == 0, again.out + again.err + (run.folder / "frozen.eval.yaml").read_text("utf-8")
    return run.records("a.jsonl")[-1], run.records("frozen.jsonl")[-1]


def assert_same(before: Json, after: Json) -> None:
    assert after["messages"] == before["messages"]
    assert [turn["calls"] for turn in after["turns"]] == [turn["calls"] for turn in before["turns"]]
    assert "simulator" not in after


@given(calls=st.lists(st.lists(CALL, max_size=3), min_size=1, max_size=3), opening=SPOKEN, answer=SPOKEN)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_odd_words_and_arguments_are_kept(run: Command, calls: list[list[Json]], opening: str, answer: str) -> None:
    turns = [*(message("Which order?", *made) for made in calls), message("It is done.")]
    case = simulated()
    case["simulate"] |= {"opening": opening, "facts": {"order": {"value": answer}}}
    assert_same(*freeze(run, turns, case))


class TestParts:
    """Parts of a case that its frozen form needs too."""

    TURNS = (message("Which order?", {"tool": "find", "input": {"name": "x"}}), message("It is done."))

    @pytest.mark.parametrize(
        "evaluators",
        [
            [{"type": "expected_messages"}],
            [{"type": "contains", "value": "order", "over": {"turn": 1}}],
            [{"type": "contains", "any": ["done", "yes"], "name": "one"}],
        ],
    )
    def test_evaluators_that_passed(self, run: Command, evaluators: list[Json]) -> None:
        expected = [{"role": "assistant", "tool_calls": [{"tool": "find"}]}]
        before, after = freeze(run, list(self.TURNS), simulated(evaluators=evaluators, expected_messages=expected))
        assert_same(before, after)
        names = {result["name"] for result in after["evaluators"]}
        assert {result["name"] for result in before["evaluators"]} <= names

    def test_evaluators_of_turns_that_passed(self, run: Command) -> None:
        said = [{"type": "contains", "value": "order"}, {"type": "tool_trajectory", "minimums": {"find": 1}}]
        before, after = freeze(run, list(self.TURNS), simulated(turns=[{"user": "Hello.", "evaluators": said}]))
        assert_same(before, after)
        assert "turn 1: contains" in {result["name"] for result in after["evaluators"]}

    def test_the_result_of_a_call_in_a_later_turn(self, run: Command) -> None:
        asked = message("Which order?", {"tool": "find", "id": "c1", "status": "pending"})
        answered = [{"role": "tool", "tool_call_id": "c1", "content": "A-17"}, *message("And now?")]
        before, after = freeze(run, [asked, answered, message("It is done.")], simulated())
        assert_same(before, after)
        assert [turn.get("user") for turn in after["turns"]] == ["My money, please.", "A-17", "I do not know."]

    def test_variables_and_a_persona(self, run: Command) -> None:
        personas = [{"id": "hasty", "description": "{{ x }}", "vars": {"said_1": "taken", "y": "file://agent.py"}}]
        case = simulated(persona="hasty", vars={"x": "A-17"}, turns=[{"user": "{{ x }} and {{ y }}, {{ said_1 }}."}])
        case["simulate"]["facts"] = {"order": "{{ x }}"}
        before, after = freeze(run, list(self.TURNS), case, personas=personas)
        assert_same(before, after)
        assert after["persona_id"] == "hasty"

    def test_the_history(self, run: Command) -> None:
        calls = [{"tool": "q", "input": {"$x": 1}, "output": 1}]
        called = {"role": "assistant", "content": "{{ b }}", "tool_calls": calls}
        history = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "{{ a }}"}, called]
        assert_same(*freeze(run, list(self.TURNS), simulated(input=history), earlier=1))
