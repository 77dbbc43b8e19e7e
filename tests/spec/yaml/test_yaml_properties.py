"""Properties that hold for every YAML file."""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from agentv.spec.yaml import Position, YamlError, read_yaml
from tests.support.examples import examples

# NUL is refused; DEL is JSON but not YAML.
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\x7f"), max_size=30)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
    | st.sampled_from(["no", "1:30", "~", "", "- a", "a: b", "# c", "{{ x }}", "*a", "&a", "!a", "<<"])
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4))
WORDS = st.text("abc", min_size=1, max_size=5)


def nested(names: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    return st.recursive(WORDS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3))


UNPRINTABLE = re.compile("[\x80-\x84\x86-\x9f\ufffe\uffff]")  # JSON may hold these, YAML only their escapes
DISGUISE = re.compile("[\ue000-\ue7ff\U0010fffb-\U0010fffd]")  # beside these, libyaml's older rules hold
BREAK_UNTIL_1_2 = re.compile("[\x85\u2028\u2029]")  # PyYAML writes these as line breaks
NUMBER_SINCE_1_2 = re.compile(r"[-+.0-9][-+.0-9eEox]*")  # PyYAML leaves some of these texts without quotes


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types all the way down."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@given(JSON, st.booleans(), st.sampled_from([None, 2]))
def test_json_is_yaml(data: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(data, ensure_ascii=ascii_only, indent=indent)
    assume(not UNPRINTABLE.search(text))
    assume(not DISGUISE.search(json.dumps(data, ensure_ascii=False)))

    assert same(read_yaml(text.encode()).data, data)


@given(JSON, st.booleans(), st.booleans())
def test_what_pyyaml_writes_is_read_back(data: Any, flow: bool, unicode: bool) -> None:
    assume(not any(isinstance(leaf, str) and NUMBER_SINCE_1_2.fullmatch(leaf) for _, _, leaf in leaves(data)))
    text = yaml.safe_dump(data, default_flow_style=flow, allow_unicode=unicode)
    assume(not BREAK_UNTIL_1_2.search(text))

    assert same(read_yaml(text.encode()).data, data)


def leaves(data: Any, path: str = "") -> Iterator[tuple[str, str | None, Any]]:
    yield path, None, data
    if isinstance(data, dict):
        for key, value in data.items():
            inner = f"{path}.{key}" if path else key
            yield inner, key, value
            yield from leaves(value, inner)
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from leaves(value, f"{path}[{index}]")


@given(nested(WORDS), st.booleans())
def test_every_path_leads_to_text_that_begins_with_it(data: Any, flow: bool) -> None:
    text = yaml.safe_dump(data, default_flow_style=flow)
    lines = text.split("\n")
    marks = read_yaml(text.encode()).positions
    for path, key, value in leaves(data):
        line, column, width = marks.find(path)
        found = lines[line - 1][column - 1 :]
        assert width <= max(len(found), 1)
        if isinstance(value, str):
            assert found[:width] == value
        elif isinstance(value, list):
            assert found[0] in "-["
        if key is not None:
            line, column, width = marks.find(path, "key")
            assert lines[line - 1][column - 1 :][:width] == key


def reference(node: yaml.Node, path: str) -> yaml.Node:
    """Return the node of a path in PyYAML's tree; in a mapping, the longest matching key is followed."""
    if isinstance(node, yaml.SequenceNode):
        index = re.match(r"\[([0-9]+)\]", path)
        if index and int(index[1]) < len(node.value):
            return reference(node.value[int(index[1])], path[index.end() :])
    elif isinstance(node, yaml.MappingNode) and path:
        rest = path[1:]
        fitting = [
            (key.value, value)
            for key, value in node.value
            if rest.startswith(key.value) and rest[len(key.value) :][:1] in ("", ".", "[")
        ]
        if path[0] == "." and fitting:
            name, value = max(fitting, key=lambda pair: len(pair[0]))
            return reference(value, rest[len(name) :])
    return node


@given(nested(st.text("ab.[]0 ", max_size=5)), st.booleans())
def test_keys_that_look_like_paths_are_taken_as_long_as_they_go(data: Any, flow: bool) -> None:
    text = yaml.safe_dump({"root": data}, default_flow_style=flow)
    marks = read_yaml(text.encode()).positions
    tree = yaml.compose(text, Loader=yaml.SafeLoader)
    assert tree is not None
    for path, _, _ in leaves({"root": data}):
        for asked in (path, f"{path}.missing", f"{path}[7]"):
            mark = marks.find(asked) if path else marks.find("")
            expected = reference(tree, f".{asked}" if path else "").start_mark
            assert (mark.line - 1, mark.column - 1) == (expected.line, expected.column)


@given(st.binary(max_size=200))
@settings(max_examples=examples(500))
def test_random_bytes_are_read_or_refused(source: bytes) -> None:
    read_or_refused(source)


PIECES = [*"[]{}:,-?&*!|>'\"%@`#\\ \n\t~<=a1.0", ": ", "- ", "? ", "\n  ", "---\n", "...\n", "<<: ", "&a ", "*a", "!!"]
MORE = ["!!str ", "!!int ", r"\ud83d", r"\ude00", r"\0", "\u2028", "\x85", "\ue000", "\r", "\ufeff", "no", "1e3", "{{"]


@given(st.lists(st.sampled_from(PIECES + MORE), max_size=40))
@settings(max_examples=examples(1000))
def test_random_yaml_is_read_or_refused(pieces: list[str]) -> None:
    read_or_refused("".join(pieces).encode())


def read_or_refused(source: bytes) -> None:
    try:
        document = read_yaml(source)
    except YamlError as error:
        check_problems(error.problems)
    else:
        json.dumps(document.data, allow_nan=False, ensure_ascii=False).encode()
        for path, _, _ in leaves(document.data):
            assert min(document.positions.find(path)) >= 1
            assert min(document.positions.find(path, "key")) >= 1


def check_problems(problems: list[tuple[Position, str]]) -> None:
    assert problems == sorted(problems)
    for mark, message in problems:
        assert min(mark) >= 1
        assert message.encode()
