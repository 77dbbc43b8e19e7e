"""Reading of YAML files: values, surprising scalars, mistakes and their positions."""

import importlib.util
import pickle
import sys
from types import ModuleType
from typing import Any, Literal

import pytest

import agentv.spec.yaml as reader
from agentv.spec.yaml import MAX_BYTES, Position, YamlError, read_yaml


def data_of(text: str) -> Any:
    return read_yaml(text.encode()).data


def warnings_of(text: str) -> list[tuple[int, int, str]]:
    return [(mark.line, mark.column, message) for mark, message in read_yaml(text.encode()).warnings]


def problems_of(source: str | bytes) -> list[tuple[int, int, str]]:
    with pytest.raises(YamlError) as caught:
        read_yaml(source.encode() if isinstance(source, str) else source)
    return [(mark.line, mark.column, message) for mark, message in caught.value.problems]


def found(text: str, path: str, about: Literal["value", "key", "whole"] = "value") -> Position:
    return read_yaml(text.encode()).positions.find(path, about)


@pytest.fixture(params=["libyaml", "pure"])
def _either_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure":
        monkeypatch.setattr(reader, "_Parser", without_libyaml(monkeypatch).__dict__["_Parser"])


def without_libyaml(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module as it is where PyYAML was built without libyaml."""
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "yaml._yaml", None)
        spec = importlib.util.spec_from_file_location("agentv_spec_yaml_pure", str(reader.__file__))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("NULL", None),
        ("nULL", "nULL"),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("tRUE", "tRUE"),
        ("0", 0),
        ("-12", -12),
        ("+12", 12),
        ("010", 10),
        ("0o14", 12),
        ("0x1F", 31),
        ("-0x1F", "-0x1F"),
        ("0b11", "0b11"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1e3", 1000.0),
        ("1E-3", 0.001),
        ("-1.5e+3", -1500.0),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        ("1.2.3", "1.2.3"),
        (".", "."),
        ("-", [None]),
        ("=", "="),
        ("yes", "yes"),
        ("No", "No"),
        ("on", "on"),
        ("OFF", "OFF"),
        ("y", "y"),
        ("'5'", "5"),
        ('"true"', "true"),
        ("'null'", "null"),
        ("|\n  5\n", "5\n"),
        (">-\n  a\n  b\n", "a b"),
        ("!!str 5", "5"),
        ("!!str", ""),
        ("!!str true", "true"),
        ("!!int '5'", 5),
        ("!!float 5", 5.0),
        ("!!bool true", True),
        ("!!null ''", None),
        ("!!seq [1]", [1]),
        ("!!map {a: 1}", {"a": 1}),
        (r'"\u00e9\x41\/\n"', "éA/\n"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(written: str, value: object) -> None:
    read = data_of(f"key:\n  {written}\n" if written.startswith("-") else f"key: {written}\n")["key"]

    assert read == value
    assert type(read) is type(value)


def test_keys_are_text_as_written() -> None:
    text = "1: a\non: b\nnull: c\ntrue: d\n010: e\n1.50: f\n~: g\n2024-01-01: h\n'': i\n!!str 7: j\n"

    document = read_yaml(text.encode())

    assert list(document.data) == ["1", "on", "null", "true", "010", "1.50", "~", "2024-01-01", "", "7"]
    assert document.warnings == ()


def test_an_empty_file_is_nothing() -> None:
    for source in (b"", b"\n\n", b"# only a comment\n", b"---\n", b"\xef\xbb\xbf"):
        document = read_yaml(source)
        assert document.data is None
        assert document.positions.find("cases[0].id") == Position(1, 1, 1) or source == b"---\n"


def test_byte_order_marks_and_utf_16_are_read() -> None:
    for encoding in ("utf-8-sig", "utf-16"):
        document = read_yaml("a: é😀\nb: 2".encode(encoding))
        assert document.data == {"a": "é😀", "b": 2}
        assert document.positions.find("a", "key") == Position(1, 1, 1)
        assert document.positions.find("b") == Position(2, 4, 1)


def test_json_with_escaped_emoji_is_yaml() -> None:
    assert data_of(r'{"a": "\ud83d\ude00 \\ud83d", "b": 1}') == {"a": r"😀 \ud83d", "b": 1}
    # Outside of double quotes nothing is an escape.
    assert data_of(r"""a: "\uD83D\uDE00"
b: '\uD83d\uDEaB'
c: \udABC
d: |  # \ud800
  \uDFFF
""") == {"a": "😀", "b": r"\uD83d\uDEaB", "c": r"\udABC", "d": "\\uDFFF\n"}


def test_line_separators_are_ordinary_characters() -> None:
    assert data_of('a: "x\u2028y\u0085z"\nb: p\u2029q\n') == {"a": "x\u2028y\u0085z", "b": "p\u2029q"}
    assert found("a: x\u2028y\nb: 1", "b") == Position(2, 4, 1)


def test_surprises_are_said_where_they_are() -> None:
    text = "a: no\nb: [010, 1e3]\nc: 1:30\nd: Y\ne: 1_000\nno: 'no'\nf: 1e-6\n"

    assert warnings_of(text) == [
        (1, 4, "read as the text 'no'; write true or false, or quote it"),
        (2, 5, "read as the number 10; quote it to keep the zeros"),
        (2, 10, "read as the number 1000.0; quote it if it is text"),
        (3, 4, "read as the text '1:30'; quote it to say so, or write the number of seconds"),
        (4, 4, "read as the text 'Y'; write true or false, or quote it"),
        (5, 4, "read as the text '1_000'; write the number without '_', or quote it"),
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: .inf", (1, 4, ".inf is a number that JSON cannot hold; leave it out, or quote it if it is text")),
        ("- -.INF", (1, 3, "-.INF is a number that JSON cannot hold; leave it out, or quote it if it is text")),
        ("a: .nan", (1, 4, ".nan is a number that JSON cannot hold; leave it out, or quote it if it is text")),
        ("a: 1e999", (1, 4, "the number '1e999' is too large; quote it if it is text")),
        ("a: !!int abc", (1, 4, "expected a whole number after '!!int', got 'abc'")),
        ("a: !!bool yes", (1, 4, "expected true or false after '!!bool', got 'yes'")),
        ("a: !!seq x", (1, 4, "expected a list after '!!seq', got 'x'")),
        ("a: !!str [x]", (1, 4, "'!!str' stands before a list; remove it")),
        ("? [a]\n: 1", (1, 3, "a list or mapping cannot be a key; keys are text")),
        ("a: {{ name }}", (1, 5, "'{{' begins a mapping in YAML; put a text that holds '{{' in quotes")),
        ("*a : 1", (1, 1, "an alias cannot be a key; write the key itself")),
        (
            "a: *b",
            (1, 4, "no '&b' is written above; write it there, or put the text in quotes if it is no alias"),
        ),
        ("&a [*a]", (1, 5, "this alias is inside of '&a' itself")),
        ("a: &a\n  b: {c: *a}", (2, 10, "this alias is inside of '&a' itself")),
        ("<<: 1", (1, 1, "'<<' takes a mapping or a list of mappings, mostly aliases: '<<: *base'")),
        (
            "a: 1\n---\nb: 2",
            (2, 1, "a second document begins here; a file holds one: remove the '---', or split the file"),
        ),
        (
            r'a: "\ud800"',
            (
                1,
                4,
                "this text holds half a character (a lone surrogate such as '\\ud800'); write the whole character",
            ),
        ),
        (
            r'a: "x\0"',
            (1, 4, "this text holds a NUL character, which programs and databases cut texts at; leave it out"),
        ),
    ],
)
@pytest.mark.usefixtures("_either_parser")
def test_what_yaml_allows_and_we_do_not(text: str, problem: tuple[int, int, str]) -> None:
    assert problems_of(text) == [problem]


@pytest.mark.parametrize(
    "tag",
    ["!custom", "!!binary", "!!set", "!!python/object/apply:os.system", "!<tag:example.org,2000:x>", "!", "!e!x"],
)
@pytest.mark.parametrize("value", ["x", "[x]", "{x: 1}"])
@pytest.mark.usefixtures("_either_parser")
def test_other_tags_are_refused_and_construct_nothing(tag: str, value: str) -> None:
    [(line, column, message)] = problems_of(f"a: 1\nb: {tag} {value}\n")

    assert (line, column) == (2, 4)
    assert message.startswith("the tag '")
    assert message.endswith(
        "' is not allowed; only !!str, !!int, !!float, !!bool, !!null, !!seq and !!map are, and a type is rarely needed"
    )


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("a:\n\tb: 1", 2, 1, "a tab is used for indentation; YAML takes spaces only"),
        ("a: 1\n\tb: 2", 2, 1, "a tab is used for indentation"),
        ("a: |\n\tb", 2, 1, "a tab is used for indentation"),
        ("a: [1, 2", 1, 4, "this '[' is not closed: no ',' or ']' to the end"),
        ("a: [1, 2\nb: 3", 1, 4, "this '[' is not closed: no ',' or ']' before ':' on line 2"),
        ("a: {b: 1\nc: 2", 1, 4, "this '{' is not closed"),
        ("a: 1\nb: 'x\nc: d\n", 2, 4, "this quote is never closed; end the text with '"),
        ('a: "x', 1, 4, 'this quote is never closed; end the text with "'),
        ("a: say: hello", 1, 7, "':' is not allowed inside an unquoted text; put the whole text in quotes"),
        ("a: [b: c: d]", 1, 9, "':' is not allowed inside an unquoted text"),
        ("a: 1\n  b: 2", 2, 4, "this one is indented too deeply"),
        ("a:\n   b: 1\n  c: 2", 3, 3, "this line is indented differently from its neighbours"),
        ("- 1\nb: 2", 2, 1, "expected another '- ' item of the list from line 1"),
        ("a: 1\n- 2", 2, 1, "a list item cannot stand among the keys"),
        ("a: 'it's'", 1, 8, "unexpected after the value before it; put the whole text in quotes"),
        ("a: @x", 1, 4, "a text cannot begin with '@'; put it in quotes"),
        ("a: `x`", 1, 4, "a text cannot begin with '`'; put it in quotes"),
        ("a: %x", 1, 4, "a text cannot begin with '%'; put it in quotes"),
        ("a: ,x", 1, 4, "a text cannot begin with ','; put it in quotes"),
        ("a: [\n- b\n]", 2, 1, "'- ' is not allowed between brackets; separate the items by ','"),
        ("a: [1]]", 1, 7, "this ']' closes nothing"),
        ("{a: 1}}", 1, 7, "this '}' closes nothing"),
        ("a: - b", 1, 4, "a list cannot begin on the line of its key"),
        ("a: 1\nb\nc: 2", 2, 1, "expected 'key: value' on this line, and found no ':'"),
        ("a: *.txt", 1, 4, "'*' begins an alias in YAML; put the text in quotes"),
        ("a: &", 1, 4, "'&' begins an anchor in YAML; put the text in quotes"),
        (r'a: "C:\dir"', 1, 7, r"unknown escape \d in double quotes; write \\ for a backslash"),
        ("a: | text", 1, 6, "after '|' or '>' a text begins on the next line"),
        ("%YAML 9.0\n---\na: 1", 1, 1, "a line that begins with '%' is an instruction to the YAML reader"),
        ("a: 1\n...\nb", 3, 1, "this does not belong to what stands before it"),
        (f"{'k' * 1100}: 1", 1, 1101, "a key of more than 1,024 characters"),
    ],
)
@pytest.mark.usefixtures("_either_parser")
def test_syntax_errors_say_what_to_change(text: str, line: int, column: int, words: str) -> None:
    [problem] = problems_of(text)

    assert problem[:2] == (line, column)
    assert words in problem[2]


def test_what_is_not_text_is_refused_where_it_is() -> None:
    assert problems_of(b"a: 1\r\nb: caf\xe9\n") == [
        (2, 7, "the byte 0xe9 is not valid UTF-8; save the file as UTF-8"),
    ]
    assert problems_of("ä: x\x07".encode()) == [
        (1, 5, r"the control character \x07 is not allowed in YAML; remove it"),
    ]
    assert problems_of(b"a\nb\0") == [(2, 2, r"the control character \0 is not allowed in YAML; remove it")]
    assert problems_of("a: b".encode("utf-16") + b"\0")[0][:2] == (1, 5)


def test_duplicate_keys_are_named_with_the_line_of_the_first() -> None:
    text = "a: 1\nb:\n  c: 1\n  'c': 2\nc: 3\na: 4\na: 5\n"

    assert problems_of(text) == [
        (4, 3, "the key 'c' is already on line 3; remove or rename one of the two"),
        (6, 1, "the key 'a' is already on line 1; remove or rename one of the two"),
        (7, 1, "the key 'a' is already on line 1; remove or rename one of the two"),
    ]


def test_all_problems_are_reported_together_in_the_order_of_the_file() -> None:
    text = "a: .nan\nb: !x 1\na: *c\nd: {e: 1, e: 2}\nf: [\n"

    assert [problem[:2] for problem in problems_of(text)] == [(1, 4), (2, 4), (3, 1), (3, 4), (4, 11), (5, 4)]


def test_an_error_travels_between_processes() -> None:
    error = YamlError([(Position(1, 2, 3), "what")])

    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes

    assert copy.problems == error.problems
    assert str(copy) == "1:2: what"


def test_an_alias_gives_a_copy_of_its_own() -> None:
    data = data_of("a: &x {list: [1]}\nb: *x\nc: [*x]\n")
    assert data == {"a": {"list": [1]}, "b": {"list": [1]}, "c": [{"list": [1]}]}

    data["b"]["list"].append(2)

    assert data["a"] == {"list": [1]}
    assert data["c"] == [{"list": [1]}]


def test_an_alias_stands_for_the_last_anchor_of_its_name() -> None:
    assert data_of("[&a 1, *a, &a [2, &a 3], *a]") == [1, 1, [2, 3], 3]


def test_merged_mappings_give_way_to_own_keys_and_earlier_ones() -> None:
    text = "a: &a {x: 1, y: 1}\nb: &b {y: 2, z: 2}\nc: {<<: [*a, *b], x: 0}\nd: {<<: *b, <: 1}\ne: {<<: {q: 1}}\n"

    data = data_of(text)

    assert data["c"] == {"x": 0, "y": 1, "z": 2}
    assert data["d"] == {"y": 2, "z": 2, "<": 1}
    assert data["e"] == {"q": 1}
    assert data_of("'<<': 1") == {"<<": 1}


def test_two_merge_keys_in_a_mapping_are_one_too_many() -> None:
    assert problems_of("a: &a {x: 1}\nb:\n  <<: *a\n  <<: *a\n") == [
        (4, 3, "'<<' is already on line 3; merge several mappings with one: '<<: [*a, *b]'")
    ]


EVAL = """\
# an eval
name: weather
targets:
  main: {provider: mock, "db.query": [1, 2]}
cases:
  - id: one
    input: >
      hello
  - id: "two"
    evaluators:
    - type: tool_trajectory
      minimums:
        db.query: 2
        db: 1
        "a[0] b": 3
  -
    id: three
empty:
"""


@pytest.mark.parametrize(
    ("path", "about", "mark"),
    [
        ("", "value", Position(2, 1, 4)),
        ("name", "key", Position(2, 1, 4)),
        ("name", "value", Position(2, 7, 7)),
        ("name", "whole", Position(2, 7, 7)),
        (".name", "value", Position(2, 7, 7)),
        ("targets.main", "value", Position(4, 9, 1)),
        ("targets.main.db.query[1]", "value", Position(4, 42, 1)),
        ("targets.main.db.query", "key", Position(4, 26, 10)),
        ("cases", "value", Position(6, 3, 1)),
        ("cases", "key", Position(5, 1, 5)),
        ("cases[0]", "value", Position(6, 5, 2)),
        ("cases[0]", "key", Position(6, 5, 2)),
        ("cases[0].input", "value", Position(7, 12, 1)),
        ("cases[1].id", "value", Position(9, 9, 5)),
        ("cases[1].evaluators", "value", Position(11, 5, 1)),
        ("cases[1].evaluators[0].minimums.db.query", "value", Position(13, 19, 1)),
        ("cases[1].evaluators[0].minimums.db", "value", Position(14, 13, 1)),
        ("cases[1].evaluators[0].minimums.a[0] b", "key", Position(15, 9, 8)),
        ("cases[2]", "value", Position(17, 5, 2)),
        ("empty", "value", Position(18, 7, 1)),
        ("empty.more", "value", Position(18, 7, 1)),
        ("cases[0].expected", "value", Position(6, 5, 2)),
        ("cases[0].expected", "key", Position(6, 5, 2)),
        ("cases[9].id", "value", Position(6, 3, 1)),
        ("cases[99999999999999999999]", "value", Position(6, 3, 1)),
        ("cases.id", "value", Position(6, 3, 1)),
        ("name.first", "value", Position(2, 7, 7)),
        ("nothing", "key", Position(2, 1, 4)),
    ],
)
def test_a_path_leads_to_its_place_or_to_the_deepest_part_that_is_there(
    path: str, about: Literal["value", "key", "whole"], mark: Position
) -> None:
    assert found(EVAL, path, about) == mark


def test_a_block_with_an_anchor_or_a_tag_begins_at_its_first_key() -> None:
    text = "a: &x\n  b: 1\nc: !!seq\n- 1\nd: &y\n  - 1\ne: &z !!map {f: 1}\n"

    assert found(text, "a") == Position(2, 3, 1)
    assert found(text, "c") == Position(4, 1, 1)
    assert found(text, "d") == Position(6, 3, 1)
    assert found(text, "e") == Position(7, 13, 1)


def test_what_comes_from_an_alias_is_where_it_was_written_first() -> None:
    text = "base: &base\n  id: 1\n  deep: {x: 2}\na: *base\nb:\n  <<: *base\n  id: 3\nc: {<<: [{y: 1}, *base]}\n"

    assert found(text, "a") == Position(4, 4, 5)
    assert found(text, "a.missing") == Position(4, 4, 5)
    assert found(text, "a.deep.x") == Position(3, 13, 1)
    assert found(text, "b.id") == Position(7, 7, 1)
    assert found(text, "b.deep", "key") == Position(3, 3, 4)
    assert found(text, "c.y") == Position(8, 14, 1)
    assert found(text, "c.deep.x") == Position(3, 13, 1)


def test_lines_end_with_any_line_break_and_columns_count_characters() -> None:
    assert found("ä: 1\r\nb: 'x\r\n  y'\rc: 😀d", "b") == Position(2, 4, 2)
    assert found("ä: 1\r\nb: 'x\r\n  y'\rc: 😀d", "c") == Position(4, 4, 2)


def test_a_file_that_is_too_large_is_refused_with_a_way_out() -> None:
    assert problems_of(b"#" * (MAX_BYTES + 1)) == [
        (1, 1, "the file is larger than 10 MB; put its cases in a file: `dataset: cases.jsonl`")
    ]
    assert read_yaml(b"#" * MAX_BYTES).data is None
