"""Results as YAML: the same data as the JSON lines, in a form that people read."""

import json
import stat
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentv.jsonio import scrub
from agentv.redaction import Redactor
from agentv.reports.files import JsonlFile, YamlFile, dump_yaml
from tests.support.events import HOSTILE, errored, failed, passed, tell

TRICKY = [
    "\n",
    " ",
    "\t",
    "a",
    "# ",
    ": ",
    "- ",
    "\r",
    "---",
    "...",
    "\u2028",
    "\x85",
    "|",
    "é",
    "\ufeff",
    "\x7f",
    "😀",
]
TEXTS = st.text() | st.lists(st.sampled_from([*TRICKY, "'", '"', "%", "no", "1e3", " word" * 30])).map("".join)
VALUES = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=15,
)


@given(VALUES)
def test_any_value_comes_back_as_it_was(value: Any) -> None:
    value = scrub(value)
    data = b"---\n" + dump_yaml(value) + b"---\n" + dump_yaml({"x": [value]})
    assert list(yaml.safe_load_all(data)) == [value, {"x": [value]}]


def test_deep_values_come_back_too() -> None:
    value: Any = []
    for _ in range(200):
        value = [value]
    assert yaml.safe_load(dump_yaml(value)) == value


def test_documents_are_the_lines_in_plan_order(tmp_path: Path) -> None:
    runs = [failed(3), passed(0), *(errored(number + 4, text) for number, text in enumerate(HOSTILE)), passed(1)]
    tell(JsonlFile(tmp_path / "r.jsonl", Redactor({})), runs)
    tell(YamlFile(tmp_path / "r.yaml", Redactor({})), runs)
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_bytes().splitlines()]
    assert list(yaml.safe_load_all((tmp_path / "r.yaml").read_bytes())) == lines
    assert [line["case_id"] for line in lines][:4] == ["c0", "c1", "c3", "c4"]
    assert stat.S_IMODE((tmp_path / "r.yaml").stat().st_mode) == 0o600


def test_a_document_is_there_at_once(tmp_path: Path) -> None:
    file = YamlFile(tmp_path / "r.yaml", Redactor({}))
    file.handle(failed(1))
    file.handle(passed(0))
    assert [each["case_id"] for each in yaml.safe_load_all((tmp_path / "r.yaml").read_text())] == ["c1", "c0"]


def test_text_of_several_lines_is_written_as_such() -> None:
    data = {"candidate": "First line.\n  Second: line\nThird.", "short": "x"}
    assert dump_yaml(data).decode() == "candidate: |-\n  First line.\n    Second: line\n  Third.\nshort: x\n"


def test_no_value_is_a_reference_to_another() -> None:
    shared = ["a"]
    assert b"&" not in dump_yaml({"a": shared, "b": shared})
