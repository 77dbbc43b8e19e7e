"""Results as JUnit XML: valid for Jenkins, whatever an agent said."""

import os
import stat
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import xmlschema

import agentv
from agentv.model.events import RunFinished
from agentv.model.results import DiffLabels, EvaluatorResult
from agentv.redaction import Redactor
from agentv.reports.junit import JunitFile
from tests.support.events import HOSTILE, errored, failed, passed, record, tell

SCHEMA = xmlschema.XMLSchema(Path(__file__).parents[1] / "data" / "junit.xsd")


def written(path: Path, *runs: RunFinished, redactor: Redactor | None = None) -> ET.Element:
    tell(JunitFile(path, redactor or Redactor({})), runs)
    SCHEMA.validate(path)
    return ET.fromstring(path.read_bytes())  # noqa: S314 - our own file


def test_failures_and_errors_are_two_things(tmp_path: Path) -> None:
    root = written(tmp_path / "r.xml", passed(0), failed(1), errored(2))
    assert root.attrib == {"name": "agentv", "tests": "3", "failures": "1", "errors": "1", "time": "2.500"}
    (suite,) = root
    assert suite.attrib == {
        "name": "support",
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
        "time": "4.500",
        "timestamp": "2026-01-01T00:00:00",
    }
    good, bad, down = suite.findall("testcase")
    assert good.attrib == {"classname": "support", "name": "c0", "time": "1.500"}
    assert [child.tag for child in good] == ["system-out"]
    failure, error = bad.find("failure"), down.find("error")
    assert failure is not None
    assert error is not None
    assert failure.attrib == {"message": "search called 0 times", "type": "tool_trajectory"}
    assert failure.text is not None
    assert failure.text.splitlines()[0] == "support.eval.yaml:11:5"
    assert "✗ search called 0 times" in failure.text
    assert error.attrib == {"message": "nobody is there", "type": "transport"}
    assert [case.findtext("system-out") for case in (good, bad, down)] == [
        f"support.eval.yaml:{line}:5" for line in (10, 11, 12)
    ]


def test_properties_are_what_was_reported(tmp_path: Path) -> None:
    root = written(tmp_path / "r.xml", passed(0), passed(1), passed(2, tokens_usage=None, cost_usd=None))
    properties = {each.get("name"): each.get("value") for each in root.iter("property")}
    assert properties == {
        "execution_id": "20260101T000000-abcdef",
        "eval_id": "support",
        "target": "scripted",
        "input_tokens": "20",
        "output_tokens": "10",
        "cost_usd": "0.5",
    }
    silent = written(tmp_path / "s.xml", passed(0, tokens_usage=None, cost_usd=None))
    assert [each.get("name") for each in silent.iter("property")] == ["execution_id", "eval_id", "target"]


def test_conversations_are_counted_by_end_and_fault(tmp_path: Path) -> None:
    ends: tuple[dict[str, Any], ...] = (
        {"ended_by": "user", "fault": "none"},
        {"ended_by": "error", "fault": "simulator"},
        {},
    )
    root = written(tmp_path / "r.xml", *(passed(number, **fields) for number, fields in enumerate(ends)))
    properties = {str(each.get("name")): each.get("value") for each in root.iter("property")}
    assert {name: value for name, value in properties.items() if name.startswith(("ended_by", "fault"))} == {
        "ended_by.error": "1",
        "ended_by.user": "1",
        "fault.none": "1",
        "fault.simulator": "1",
    }


def test_suites_and_cases_stand_in_plan_order(tmp_path: Path) -> None:
    runs = [
        passed(3, "a", eval_id="second", target="two"),
        failed(1, case_id="a", target="two"),
        passed(2, "b", target="one", repeat=1),
        passed(0, "a", target="one"),
    ]
    root = written(tmp_path / "r.xml", *runs)
    assert [suite.get("name") for suite in root] == ["support · one", "support · two", "second · two"]
    names = [[(case.get("classname"), case.get("name")) for case in suite.iter("testcase")] for suite in root]
    assert names == [[("support.one", "a"), ("support.one", "b #2")], [("support.two", "a")], [("second.two", "a")]]


def test_the_aligned_diff_is_in_the_body(tmp_path: Path) -> None:
    details = {
        "alignment": [
            {
                "expected": 0,
                "actual": 0,
                "verdict": "mismatch",
                "differences": [{"path": "input.q", "expected": 1, "actual": 2}],
            }
        ],
        "extra": [],
    }
    found = EvaluatorResult(
        name="calls", type="tool_trajectory", status="fail", score=0.0, misses=("no",), details=details
    )
    run = RunFinished(
        record=record("a", "fail", evaluators=(found,)),
        response=agentv.ProviderResponse(),
        sides=(DiffLabels("call", ["search(q=1)"], {0: "search(q=2)"}),),
        order=0,
    )
    text = written(tmp_path / "r.xml", run).findtext(".//failure") or ""
    assert "≠ search(q=1)" in text
    assert "│ 0: search(q=2)" in text


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_whatever_an_agent_says_is_text(tmp_path: Path, text: str) -> None:
    root = written(
        tmp_path / "r.xml", failed(0, text, case_id=text[:300]), errored(1, text), passed(2, target=text[:99])
    )
    assert {element.tag for element in root.iter()} <= {
        *("testsuites", "testsuite", "properties", "property", "testcase", "failure", "error", "system-out")
    }
    assert len(list(root.iter("testcase"))) == 3
    for element in root.iter():
        assert all(char.isprintable() for value in element.attrib.values() for char in value)
        assert all(char.isprintable() or char == "\n" for char in element.text or "")


def test_a_long_message_is_cut_in_the_list_and_whole_in_the_body(tmp_path: Path) -> None:
    text = "x" * 1_000_000
    error = written(tmp_path / "r.xml", errored(0, text)).find(".//error")
    assert error is not None
    assert error.get("message") == "x" * 499 + "…"
    assert text in (error.text or "")


def test_illegal_characters_are_made_visible(tmp_path: Path) -> None:
    error = written(tmp_path / "r.xml", errored(0, "a\x1bb\0c")).find(".//error")
    assert error is not None
    assert error.get("message") == "a\\u001bb\\u0000c"


def test_secrets_are_not_in_it_however_they_are_escaped(tmp_path: Path) -> None:
    secret = 'p<a>s&s"w0rd]]>'  # noqa: S105 - it opens nothing
    run = failed(0, f"got {secret}", case_id=f"id {secret}", target=secret)
    root = written(tmp_path / "r.xml", run, errored(1, f"a{secret}b"), redactor=Redactor({"KEY": secret}))
    text = (tmp_path / "r.xml").read_text(encoding="utf-8")
    assert "w0rd" not in text
    assert "[redacted:KEY]" in text
    assert root.get("tests") == "2"


def test_the_file_is_private_and_nothing_else_is_left(tmp_path: Path) -> None:
    written(tmp_path / "r.xml", passed(0))
    assert stat.S_IMODE((tmp_path / "r.xml").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["r.xml"]


@pytest.mark.parametrize("when", ["a run has finished", "all is done"])
def test_a_full_disk_leaves_no_half_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
    file = JunitFile(tmp_path / "r.xml", Redactor({}))
    file.handle(passed(0))
    write = os.write

    def full(number: int, data: bytes) -> int:
        write(number, data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("agentv.reports.files.os.write", full)
    with pytest.raises(OSError, match="No space left"):
        tell(file, [passed(1)] if when == "a run has finished" else [])
    assert (tmp_path / "r.xml").read_bytes() == b""


def test_no_run_at_all_is_a_document_too(tmp_path: Path) -> None:
    assert list(written(tmp_path / "r.xml")) == []
