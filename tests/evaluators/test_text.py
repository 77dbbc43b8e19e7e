"""`contains`, `starts_with`, `ends_with`, `regex`, `levenshtein`, `word_count`."""

import asyncio
from time import perf_counter
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

import agentv
from agentv.evaluators.selectors import around, ending, excerpt, join_excerpts
from agentv.matching.text import differing_parts, distance
from agentv.model.response import ProviderResponse

HOSTILE = "(a|aa)+$"
VICTIM = "a" * 60 + "!"
LONG = "Your refund takes 3 days. " * 40_000
ODD = ["", "\0", "a\0b", "ü̈👩‍👩‍👧", "Straße", "\u202e", "\n\t ", "ﬁ", "İ"]


def run(text: str, **config: Any) -> agentv.EvaluatorResult:
    return agentv.score({"text": text}, [config]).evaluators[0]


def problems(**config: Any) -> str:
    with pytest.raises(agentv.SpecError) as caught:
        run("", **config)
    assert all(problem.path.startswith("evaluators[0]") for problem in caught.value.problems)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "config", "score", "hits", "misses"),
    [
        ("a refund", {"value": "refund"}, 1.0, ['answer contains "refund"'], []),
        ("A REFUND", {"value": "refund", "ignore_case": True}, 1.0, ['answer contains "refund"'], []),
        ("A REFUND", {"value": "refund"}, 0.0, [], ['answer does not contain "refund": "A REFUND"']),
        ("STRASSE", {"value": "straße", "ignore_case": True}, 1.0, ['answer contains "straße"'], []),
        ("a b", {"all": ["a", "b"]}, 1.0, ['answer contains "a"', 'answer contains "b"'], []),
        ("a", {"all": ["a", "b"]}, 0.5, ['answer contains "a"'], ['answer does not contain "b": "a"']),
        ("b", {"any": ["a", "b"]}, 1.0, ['answer contains "b" (any of "a", "b")'], []),
        ("c", {"any": ["a", "b"]}, 0.0, [], ['answer contains none of "a", "b": "c"']),
        ("c", {"none": ["a"]}, 1.0, ['answer does not contain "a" (none allowed)'], []),
        ("cab", {"none": ["a"]}, 0.0, [], ['answer contains "a" (none allowed): "cab"']),
        ("", {"value": "a"}, 0.0, [], ['answer does not contain "a": ""']),
        ("", {"none": ["a"]}, 1.0, ['answer does not contain "a" (none allowed)'], []),
    ],
)
def test_contains(text: str, config: dict[str, Any], score: float, hits: list[str], misses: list[str]) -> None:
    found = run(text, type="contains", **config)
    assert (found.score, list(found.hits), list(found.misses)) == (score, hits, misses)
    assert found.status == ("pass" if score == 1.0 else "fail")


def test_contains_weighs_every_constraint_alike() -> None:
    config = {"all": ["a", "x"], "any": ["y", "z"], "none": ["b", "q"]}
    assert run("a b", type="contains", **config).score == 2 / 5
    assert run("a b", type="contains", threshold=0.4, **config).status == "pass"


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({}, "checks nothing: give `value`, `all`, `any` or `none`"),
        ({"value": "a", "all": ["b"]}, "`value` is short for `all`"),
        ({"all": []}, "evaluators[0].all: expected array of length >= 1"),
        ({"value": ""}, "evaluators[0].value: expected str of length >= 1"),
        ({"any": ["a", ""]}, "evaluators[0].any[1]"),
        ({"vaule": "a"}, "did you mean 'value'?"),
    ],
)
def test_what_contains_cannot_mean(config: dict[str, Any], reason: str) -> None:
    assert reason in problems(type="contains", **config)


@pytest.mark.parametrize(
    ("kind", "text", "config", "sentence"),
    [
        ("starts-with", "Hello Ada", {"value": "Hello"}, 'answer starts with "Hello"'),
        ("starts_with", " Hello", {"value": "hello", "trim": True, "ignore_case": True}, 'answer starts with "hello"'),
        ("starts_with", "Hi", {"value": ["Hello", "Hi"]}, 'answer starts with "Hi"'),
        ("ends_with", "Done.\n", {"value": ".", "trim": True}, 'answer ends with "."'),
        ("ends_with", "DONE", {"value": ["x", "one"], "ignore_case": True}, 'answer ends with "one"'),
    ],
)
def test_an_edge_that_holds(kind: str, text: str, config: dict[str, Any], sentence: str) -> None:
    found = run(text, type=kind, **config)
    assert (found.status, found.hits, found.misses) == ("pass", (sentence,), ())


@pytest.mark.parametrize(
    ("kind", "text", "value", "sentence"),
    [
        ("starts_with", "Hey", "Hello", 'answer does not start with "Hello": "Hey"'),
        ("starts_with", "", ["a", "b"], 'answer starts with none of "a", "b": ""'),
        ("ends_with", "Done.\n", ".", 'answer does not end with ".": "Done.\\n"'),
        ("ends_with", "x" * 300 + "end", "?", f'answer does not end with "?": "…{"x" * 187}end"'),
    ],
)
def test_an_edge_that_does_not(kind: str, text: str, value: Any, sentence: str) -> None:
    found = run(text, type=kind, value=value)
    assert (found.status, found.score, found.misses) == ("fail", 0.0, (sentence,))


@pytest.mark.parametrize(
    ("text", "config", "status", "sentence"),
    [
        ("id 42", {"pattern": r"\d+"}, "pass", r'answer matches /\d+/ at character 3: "42"'),
        ("id", {"pattern": r"\d+"}, "fail", r'answer does not match /\d+/: "id"'),
        ("id 42", {"pattern": r"\d+", "full": True}, "fail", r'answer does not match /\d+/ as a whole: "id 42"'),
        ("42", {"pattern": r"\d+", "full": True}, "pass", r'answer matches /\d+/ at character 0: "42"'),
        ("OK", {"pattern": "ok", "ignore_case": True}, "pass", 'answer matches /ok/ at character 0: "OK"'),
        ("a\nb", {"pattern": "(?m)^b$"}, "pass", 'answer matches /(?m)^b$/ at character 2: "b"'),
        ("{i}", {"pattern": "{i}"}, "pass", 'answer matches /{i}/ at character 0: "{i}"'),
        ("", {"pattern": "^$"}, "pass", 'answer matches /^$/ at character 0: ""'),
        ("ab", {"pattern": "a\nb"}, "fail", 'answer does not match "a\\nb": "ab"'),
    ],
)
def test_regex(text: str, config: dict[str, Any], status: str, sentence: str) -> None:
    found = run(text, type="regex", **config)
    assert (found.status, *found.hits, *found.misses) == (status, sentence)


@pytest.mark.parametrize("pattern", ["(a", "a{2,1}", "*", "(?P<n>a)(?P<n>b)", "[b-a]", "x" * 10_001])
def test_a_pattern_that_is_none_is_refused(pattern: str) -> None:
    assert "evaluators[0].pattern: " in problems(type="regex", pattern=pattern)


def test_a_pattern_that_runs_too_long_is_an_error() -> None:
    found = run(VICTIM, type="regex", pattern=HOSTILE)
    assert (found.status, found.score) == ("error", None)
    assert found.details["error"] == "the pattern '(a|aa)+$' took longer than 1 s on a text of 61 characters"


async def widest_gap(work: Any) -> tuple[Any, float, float]:
    """Return the result of the work, its duration, and the longest wait of a concurrent task."""
    gaps: list[float] = []

    async def beat() -> None:
        last = perf_counter()
        while True:
            await asyncio.sleep(0.005)
            gaps.append(perf_counter() - last)
            last += gaps[-1]

    task = asyncio.create_task(beat())
    await asyncio.sleep(0.02)
    start = perf_counter()
    result = await work
    took = perf_counter() - start
    await asyncio.sleep(0.01)
    task.cancel()
    return result, took, max(gaps)


SLOW: list[dict[str, Any]] = [
    {"type": "regex", "pattern": HOSTILE},
    {"type": "equals", "value": {"$regex": HOSTILE}},
    {"type": "regex", "pattern": "a.*b.*c.*d", "on": "reasoning"},
    {"type": "json", "on": "metadata.data", "matches": {"a": {"$regex": HOSTILE}}},
    {"type": "json", "on": "metadata.data", "schema": {"properties": {"a": {"pattern": HOSTILE}}}},
    {"type": "json", "on": "metadata.data", "schema": {"patternProperties": {HOSTILE: {}}}},
    {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "a", "input": {"q": {"$regex": HOSTILE}}}]},
    {"type": "tool_trajectory", "mode": "exact", "expected": [{"tool": "a", "output": {"$regex": HOSTILE}}]},
    {"type": "expected_messages"},
]


@pytest.mark.parametrize("config", SLOW, ids=str)
def test_a_hostile_text_stays_within_the_limit_and_others_go_on(config: dict[str, Any]) -> None:
    calls = [{"tool": "a", "input": {"q": VICTIM}, "output": VICTIM}]
    messages = [{"role": "assistant", "content": VICTIM, "tool_calls": calls}]
    reply = {"output_messages": messages, "reasoning": "a" * 1_000_000, "data": {"a": VICTIM, VICTIM: 1}}
    golden = [{"role": "assistant", "tool_calls": [{"tool": "a", "input": {"q": {"$regex": HOSTILE}}}]}]
    expected = golden if config["type"] == "expected_messages" else None
    result, took, gap = asyncio.run(widest_gap(agentv.ascore(reply, [config], expected_messages=expected)))
    assert result.status == "error"
    assert "took longer than 1 s" in str(result.evaluators[0].details)
    # On the loop itself the gap would be all of it.
    assert gap < took / 2


@pytest.mark.parametrize("text", ["a" * 26 + "!", "a" * 100_000])
def test_the_pattern_of_the_design_stays_within_the_limit(text: str) -> None:
    check = [{"type": "regex", "pattern": "(a+)+$"}]
    result, took, gap = asyncio.run(widest_gap(agentv.ascore({"text": text}, check)))
    assert result.status in ("pass", "fail", "error")
    assert gap < max(0.5, took / 2)


def test_other_cases_of_an_eval_are_not_held_up() -> None:
    async def agent(request: agentv.Request) -> str:
        await asyncio.sleep(0)
        return VICTIM if request.id == "hostile" else "fine"

    cases = [{"id": name, "input": "Hi"} for name in ("hostile", *map(str, range(20)))]
    data = {"defaults": {"evaluators": [{"type": "regex", "pattern": f"^fine$|{HOSTILE}"}]}, "cases": cases}
    done, took, gap = asyncio.run(widest_gap(agentv.aevaluate(data, target=agent, max_concurrency=2)))
    assert [record.status for record in done.results] == ["error", *["pass"] * 20]
    assert gap < took / 2


def plain_distance(left: str, right: str) -> int:
    """The textbook's table."""
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        above, row = row, [i]
        for j, b in enumerate(right, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
    return row[-1]


@given(st.text("abc", max_size=80), st.text("abc", max_size=80))
def test_the_distance_is_that_of_the_textbook(left: str, right: str) -> None:
    assert distance(left, right) == plain_distance(left, right)


@given(st.text(), st.text(), st.text(), st.text())
def test_the_distance_keeps_its_laws(left: str, right: str, before: str, after: str) -> None:
    found = distance(left, right)
    assert found == distance(right, left) == distance(before + left + after, before + right + after)
    assert abs(len(left) - len(right)) <= found <= max(len(left), len(right))
    assert (found == 0) == (left == right)
    assert differing_parts(left + after, left + after) == ("", "")


@pytest.mark.parametrize(
    ("text", "config", "status", "score"),
    [
        ("kitten", {"value": "sitting", "threshold": 0.5}, "pass", 1 - 3 / 7),
        ("kitten", {"value": "sitting", "threshold": 0.6}, "fail", 1 - 3 / 7),
        ("kitten", {"value": "sitting", "max_distance": 3}, "pass", 1.0),
        ("kitten", {"value": "sitting", "max_distance": 2}, "fail", 0.0),
        (" KITTEN\n", {"value": "kitten", "trim": True, "ignore_case": True, "max_distance": 0}, "pass", 1.0),
        ("", {"value": "", "max_distance": 0}, "pass", 1.0),
        ("", {"value": "ab", "kind": "metric"}, "fail", 0.0),
        ("👩‍👩‍👧", {"value": "👩‍👩‍👦", "max_distance": 1}, "pass", 1.0),
    ],
)
def test_levenshtein(text: str, config: dict[str, Any], status: str, score: float) -> None:
    checks = [{"type": "levenshtein", **config}, {"type": "word_count", "min": 0, "max": 9}]
    found = agentv.score({"text": text}, checks).evaluators[0]
    assert found.status == status
    assert found.score == pytest.approx(score)


def test_levenshtein_says_how_far() -> None:
    (miss,) = run("kitten", type="levenshtein", value="sitting", threshold=0.9).misses
    assert miss == 'answer is 3 changes away from "sitting", likeness 0.57 (threshold: 0.9): "kitten"'
    far = run(LONG, type="levenshtein", value="kitten", max_distance=2)
    assert far.misses[0].startswith('answer is at least 1039994 changes away from "kitten", likeness 0.00 (maximum: 2)')
    assert far.details == {"distance": None, "likeness": None}


def test_levenshtein_of_long_texts_is_quick_or_an_error() -> None:
    start = perf_counter()
    assert run("ab" * 5_000, type="levenshtein", value="ba" * 5_000, max_distance=2).status == "pass"
    assert run(LONG, type="levenshtein", value=LONG + "!", max_distance=1).status == "pass"
    too_long = run("a" * 100_000, type="levenshtein", value="b" * 100_000, threshold=0.5)
    assert (too_long.status, "100,000 characters against 100,000" in too_long.details["error"]) == ("error", True)
    assert perf_counter() - start < 10


def test_what_levenshtein_cannot_mean() -> None:
    assert "beside `max_distance`" in problems(type="levenshtein", value="a", max_distance=1, threshold=0.5)
    warned = agentv.score({"text": "a"}, [{"type": "levenshtein", "value": "a"}]).warnings
    assert warned == ("evaluators[0]: only an equal text passes; add `threshold` or `max_distance`, or use `equals`",)


@pytest.mark.parametrize(
    ("text", "config", "status", "sentence"),
    [
        ("one two", {"min": 2}, "pass", "answer has 2 words (minimum: 2)"),
        ("one", {"min": 2, "max": 3}, "fail", "answer has 1 word (minimum: 2, maximum: 3)"),
        ("a b c d", {"max": 3}, "fail", "answer has 4 words (maximum: 3)"),
        ("", {"max": 0}, "pass", "answer has 0 words (maximum: 0)"),
    ],
)
def test_word_count(text: str, config: dict[str, Any], status: str, sentence: str) -> None:
    found = run(text, type="word_count", **config)
    assert (found.status, *found.hits, *found.misses) == (status, sentence)


def test_what_word_count_cannot_mean() -> None:
    assert "checks nothing: give `min` or `max`" in problems(type="word_count")
    assert "evaluators[0].min: 3 is above the `max` of 2" in problems(type="word_count", min=3, max=2)
    assert "evaluators[0].min" in problems(type="word_count", min=-1)
    warned = agentv.score({"text": "a"}, [{"type": "word_count", "min": 0}]).warnings
    assert warned == ("evaluators[0].min: a minimum of 0: this can never fail",)


CHECKS: list[dict[str, Any]] = [
    {"type": "contains", "all": ["x", "Your"], "any": ["q"], "none": ["refund"], "ignore_case": True},
    {"type": "starts_with", "value": "x"},
    {"type": "ends_with", "value": "x"},
    {"type": "regex", "pattern": "x$"},
    {"type": "levenshtein", "value": "x", "max_distance": 3},
    {"type": "word_count", "max": 1},
    {"type": "equals", "value": "x"},
    {"type": "json", "fenced": True},
]


@pytest.mark.parametrize("text", [LONG, "\ud800" * 300, "\0" * 1000, *ODD], ids=ascii)
def test_any_text_can_be_judged_and_quoted(text: str) -> None:
    text = text if len(text) < 2000 else text[:1_000_000]
    results = agentv.score(ProviderResponse(text=text), CHECKS).evaluators
    assert {result.status for result in results} <= {"pass", "fail"}
    sentences = [sentence for result in results for sentence in (*result.hits, *result.misses)]
    assert max(map(len, sentences)) < 700
    assert all(sentence.encode() for sentence in sentences)


@given(st.text(max_size=500), st.integers(0, 500))
def test_a_quotation_is_short(text: str, at: int) -> None:
    assert all(len(quoted) <= 200 for quoted in (excerpt(text), ending(text), around(text, at)))


def test_a_list_is_short_too() -> None:
    assert join_excerpts(["a"] * 12) == ", ".join(['"a"'] * 10) + " and 2 more"
