"""Places of replies that were not understood, as reports show them."""

import io
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from agentv.model.events import RunFinished
from agentv.model.response import Unread
from agentv.model.results import EvaluatorResult
from agentv.redaction import Redactor
from agentv.reports.console import HINT, Console, other_warnings, render_unread
from agentv.reports.github import Annotations
from agentv.reports.junit import JunitFile
from agentv.reports.markdown import MarkdownFile
from tests.support.events import HOSTILE, errored, failed, passed, tell

CHART = "a block of type 'chart' was not understood, so calls may be missing"


def chart(*index: int) -> tuple[Unread, ...]:
    return tuple([Unread(path=f"output_messages[{at}].content[{at + 1}]", reason=CHART) for at in index])


def printed(*runs: RunFinished, secrets: dict[str, str] | None = None, verbosity: int = 0) -> list[str]:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    tell(Console(stream, Redactor(secrets or {}), verbosity=verbosity), runs)
    stream.seek(0)
    return stream.read().splitlines()


def about_unread(lines: list[str]) -> list[str]:
    """The part of a report that begins with the first target."""
    start = next((at for at, line in enumerate(lines) if line.startswith("target ")), len(lines))
    return lines[start : lines.index("", start)] if start < len(lines) else []


class TestConsole:
    def test_equal_places_of_different_messages_are_one_line(self) -> None:
        runs = [passed(0, unread=chart(0, 1, 2)), failed(1, unread=chart(5)), passed(2)]
        assert about_unread(printed(*runs)) == [
            "target scripted: 2 of 3 replies were only partly understood, so calls may be missing",
            f"  output_messages[*].content[*]: {CHART} (2 replies)",
            HINT,
        ]

    def test_targets_come_in_the_order_of_the_plan(self) -> None:
        runs = [passed(1, target="b", unread=chart(0)), passed(0, target="a", unread=chart(0)), passed(2, target="c")]
        found = [line.split(":")[0] for line in about_unread(printed(*runs)) if line.startswith("target")]
        assert found == ["target a", "target b"]

    def test_five_places_are_shown_the_most_frequent_first(self) -> None:
        places = [Unread(path=f"metadata.key_{at}", reason="it holds a call") for at in range(8)]
        runs = [passed(at, unread=tuple(places[at:])) for at in range(8)]
        lines = about_unread(printed(*runs))
        assert lines[1] == "  metadata.key_7: it holds a call (8 replies)"
        assert lines[5] == "  metadata.key_3: it holds a call (4 replies)"
        assert lines[6:] == ["  3 more in the results", HINT]

    def test_a_reply_that_is_an_error_is_none_unless_it_has_places(self) -> None:
        assert about_unread(printed(errored(0), passed(1)))[:1] == []
        (first, *_) = about_unread(printed(errored(0), errored(1, unread=chart(0)), passed(2)))
        assert first == "target scripted: 1 of 2 replies were only partly understood, so calls may be missing"

    def test_warnings_do_not_repeat_them_for_each_case(self) -> None:
        places = [chart(at) for at in range(3)]
        runs = [passed(at, unread=one, warnings=(str(one[0]), "odd")) for at, one in enumerate(places)]
        lines = printed(*runs)
        assert [line for line in lines if "warning" in line] == ["warning: odd (3 runs)"]
        assert sum("chart" in line for line in lines) == 1

    @pytest.mark.parametrize("verbosity", [-1, 0, 1])
    def test_nothing_is_said_when_all_was_understood(self, verbosity: int) -> None:
        assert about_unread(printed(passed(0), failed(1), verbosity=verbosity)) == []

    def test_secrets_are_redacted(self) -> None:
        place = Unread(path="metadata.sesame-4f7c19d2", reason="it holds sesame-4f7c19d2")
        lines = about_unread(printed(passed(0, unread=(place,)), secrets={"WORD": "sesame-4f7c19d2"}))
        assert lines[1] == "  metadata.[redacted:WORD]: it holds [redacted:WORD] (1 reply)"

    @pytest.mark.parametrize("text", HOSTILE)
    def test_an_agents_words_stay_on_their_line(self, text: str) -> None:
        lines = about_unread(printed(passed(0, unread=(Unread(path=text, reason=text),))))
        assert len(lines) == 3
        assert all(line.isprintable() and len(line) < 2000 for line in lines)

    def test_very_many_different_places_are_counted_and_not_kept(self) -> None:
        runs = [passed(at, unread=(Unread(path=f"metadata.{at}", reason="it holds a call"),)) for at in range(500)]
        lines = about_unread(printed(*runs))
        assert lines[0].startswith("target scripted: 500 of 500 replies")
        assert lines[-2] == "  195 more in the results"


class TestOneReply:
    def test_places_are_listed_up_to_five(self) -> None:
        lines = render_unread(chart(*range(7)))
        assert lines[:2] == [
            "the reply was only partly understood, so calls may be missing:",
            f"  output_messages[0].content[1]: {CHART}",
        ]
        assert lines[-1] == "  2 more"
        assert len(lines) == 7
        assert render_unread(()) == []

    def test_warnings_that_name_a_place_are_told_from_the_others(self) -> None:
        (place,) = chart(3)
        warnings = [
            "odd",
            str(place),
            f"calls may be missing: {place}",
            "output_messages[3].content[4]: something else",
        ]
        assert other_warnings(warnings, (place,)) == ("odd", warnings[3])
        assert other_warnings(warnings, ()) == tuple(warnings)


class TestOtherReports:
    """The evaluator's error names the place; nothing else is added, and nothing breaks."""

    @staticmethod
    def undecided(order: int) -> RunFinished:
        (place,) = chart(0)
        details: dict[str, Any] = {"undecided": [f"search called 0 times (minimum: 1): {place}"]}
        found = EvaluatorResult(name="calls", type="tool_trajectory", status="error", score=None, details=details)
        bad = failed(order)
        record = type(bad.record)(
            **{name: getattr(bad.record, name) for name in bad.record.__struct_fields__}
            | {"status": "error", "score": None, "evaluators": (found,), "unread": (place,)}
        )
        return RunFinished(record=record, response=bad.response, order=order, file=bad.file, place=bad.place)

    def test_junit(self, tmp_path: Path) -> None:
        tell(JunitFile(tmp_path / "r.xml", Redactor({})), [self.undecided(0), passed(1, unread=chart(1))])
        (suite,) = ET.fromstring((tmp_path / "r.xml").read_bytes())  # noqa: S314 - our own file
        assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
        assert [CHART in str(error.get("message")) for error in suite.iter("error")] == [True]

    def test_markdown(self, tmp_path: Path) -> None:
        tell(MarkdownFile(tmp_path / "r.md", Redactor({})), [self.undecided(0), passed(1, unread=chart(1))])
        text = (tmp_path / "r.md").read_text(encoding="utf-8")
        assert text.startswith("# ⚠️ 1 of 2 runs could not be measured")
        assert text.count(CHART) == 1

    def test_github(self) -> None:
        stream = io.StringIO()
        tell(Annotations(stream, Redactor({})), [self.undecided(0), passed(1, unread=chart(1))])
        (line,) = stream.getvalue().splitlines()
        assert line.startswith("::error file=support.eval.yaml,line=10,col=5,title=c0 error (tool_trajectory)")
        assert CHART in line
