"""Files that are made to hurt end quickly, with a sentence."""

import time
import tracemalloc
from collections.abc import Callable

import pytest

from agentv.spec.yaml import Position, YamlError, read_yaml
from agentv.spec.yaml import composer as compose
from agentv.spec.yaml.composer import MAX_DEPTH, MAX_FINDINGS

MILLION = 1_000_000
# What takes a tenth of this on an idle machine fails here only when it is quadratic.
PATIENCE = 15.0


def first_problem(text: str) -> str:
    with pytest.raises(YamlError) as caught:
        read_yaml(text.encode())
    assert len(caught.value.problems) <= MAX_FINDINGS + 1
    return caught.value.problems[0][1]


def last_problem(text: str) -> str:
    with pytest.raises(YamlError) as caught:
        read_yaml(text.encode())
    return caught.value.problems[-1][1]


@pytest.mark.parametrize("piece", ["[", "{", "- ", "? ", "[a, ", '{"a": ', "[\n", "- ? ", "!!seq [", "&a [", '{"a": ['])
@pytest.mark.parametrize("length", [MILLION, 2 * MAX_DEPTH * 8])
def test_deep_nesting_is_refused(piece: str, length: int) -> None:
    started = time.perf_counter()

    assert last_problem(piece * (length // len(piece))) == f"nested deeper than {MAX_DEPTH} levels"

    assert time.perf_counter() - started < PATIENCE


def test_nesting_up_to_the_limit_is_read() -> None:
    assert read_yaml(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH).data is not None
    assert last_problem("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)) == f"nested deeper than {MAX_DEPTH} levels"


def lines(count: int, line: Callable[[int], str]) -> str:
    return "".join(map(line, range(count)))


@pytest.mark.parametrize(
    "text",
    [
        "a" * 9 * MILLION,
        '"' + "a" * 9 * MILLION + '"',
        "a " * MILLION,
        "'" * MILLION,
        ":" * MILLION,
        ": " * MILLION,
        "1:" * MILLION,
        "1" * 9 * MILLION,
        "0x" + "f" * 9 * MILLION,
        "1_" * MILLION + "x",
        "-" * MILLION,
        "!" * MILLION,
        "&" * MILLION,
        "*" * MILLION,
        "%" * MILLION,
        "\t" * MILLION,
        "\n" * MILLION,
        "# " * MILLION,
        "|\n" + "\n" * MILLION,
        '"' + "\\" * MILLION + '"',
        '"' + r"\ud83d\ude00" * 50_000 + '"',
        '"' + r"\ud83d" * 100_000 + '"',
        '"' + "a\n" * MILLION,
        "[" + "a\n" * MILLION,
        "[" + "," * MILLION,
        "---\n" * 100_000,
        "a: |\n" * 100_000,
        "- no\n" * 100_000,
        "- !x a\n" * 100_000,
        "- <<: 1\n" * 100_000,
        "a: 1\n" * 100_000,
        "[" + "&a a," * 100_000 + "]",
        "[" + "? a," * 100_000 + "]",
        lines(100_000, lambda number: f"- &a{number} x\n"),
        lines(100_000, lambda number: f"? k{number}\n"),
        lines(100_000, lambda number: f"k{number}: 1\n") + "k99999: 2\n" * 2_000,
        lines(50_000, lambda number: f"%TAG !a{number}! b\n") + "--- a",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_long_files_take_time_in_proportion(text: str) -> None:
    started = time.perf_counter()

    problems: list[tuple[Position, str]] = []
    try:
        read_yaml(text.encode())
    except YamlError as error:
        problems = error.problems

    assert len(problems) <= MAX_FINDINGS + 1
    assert time.perf_counter() - started < PATIENCE


def bomb(first: str, line: Callable[[str], str], count: int) -> str:
    return f"a0: &a0 {first}\n" + lines(count, lambda number: f"a{number + 1}: &a{number + 1} {line(f'*a{number}')}\n")


@pytest.mark.parametrize(
    "text",
    [
        bomb("[lol]", lambda alias: f"[{', '.join([alias] * 10)}]", 9),
        bomb("{x: 1}", lambda alias: f"{{a: {alias}, b: {alias}}}", 40),
        bomb("[lol]", lambda alias: f"[{alias}, {alias}]", 60),
        bomb("{x: 1}", lambda alias: f"{{<<: [{alias}, {alias}]}}", 60),
        bomb("{x: 1}", lambda alias: f"{{<<: {alias}}}", 5_000),
        'a: &a "' + "x" * MILLION + '"\nb: [' + "*a, " * 1_000 + "]",
        "a: &a\n  b: " + "x" * MILLION + "\nb: [" + "*a, " * 1_000 + "]",
    ],
    ids=["laughs", "mappings", "pairs", "merged twice", "merged in a chain", "long text", "long text inside"],
)
def test_alias_bombs_are_refused_before_they_are_copied(text: str) -> None:
    started = time.perf_counter()

    message = first_problem(text)

    assert message.startswith("the aliases so far stand for more than 500,000 values or 100,000,000 characters;")
    assert time.perf_counter() - started < PATIENCE


def test_aliases_cannot_nest_deeper_than_what_is_written() -> None:
    assert first_problem(bomb("[1]", lambda alias: f"[{alias}]", 200)) == (
        "the value of this alias is nested too deeply for this place"
    )


def test_more_values_than_anybody_writes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compose, "MAX_NODES", 1_000)

    assert len(read_yaml(b"[" + b"a," * 999 + b"]").data) == 999
    assert first_problem("[" + "a," * 1_000 + "]").startswith("more than 2,000,000 keys and values;")


def test_warnings_are_listed_up_to_a_limit() -> None:
    warnings = read_yaml(b"- no\n" * 2 * MAX_FINDINGS).warnings

    assert len(warnings) == MAX_FINDINGS + 1
    assert warnings[-1].message == "from here on such words are no longer listed"


def test_places_of_a_large_file_are_small() -> None:
    text = b"- {a: 1, b: 2}\n" * 5_000
    tracemalloc.start()

    document = read_yaml(text)

    before, _ = tracemalloc.get_traced_memory()
    nodes = len(document.positions)
    document = document._replace(positions=read_yaml(b"").positions)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (before - after - len(text)) / nodes < 30
    assert document.data[4_999] == {"a": 1, "b": 2}


def test_many_places_are_found_quickly() -> None:
    marks = read_yaml(b"cases:\n" + b"- {id: 1}\n" * 10_000).positions
    started = time.perf_counter()

    assert [marks.find(f"cases[{index}].id").line for index in range(10_000)] == list(range(2, 10_002))

    assert time.perf_counter() - started < PATIENCE
