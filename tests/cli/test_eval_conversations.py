"""Conversations on the command line: which turn failed, what the user said, and which persona it was."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from agentv.reports.console import DASH
from tests.support.command import Command, Result
from tests.support.conversations import write_conversations


@pytest.fixture(scope="module")
def talks(module_run: Command) -> Command:
    write_conversations(module_run.folder)
    return module_run


@pytest.fixture(scope="module")
def result(talks: Command) -> Result:
    out = ("--out", "r.jsonl", "--out", "r.xml", "--out", "r.md", "--dump-traces", "traces")
    return talks("eval", "refund.eval.yaml", *out, "--repeat", "2", env={"GITHUB_ACTIONS": "true"})


def test_a_failing_conversation_says_turn_words_and_diff(result: Result) -> None:
    assert result.code == 1
    head, *rest = result.out[result.out.index("FAIL refund [impatient]") :].splitlines()
    assert "refund.eval.yaml:8:5" in head
    shown = "\n".join(rest[:8])
    assert "turn 2, the user said: It is order A-17." in shown
    assert "FAIL turn 2: tool_trajectory  0.00" in shown
    assert 'get_order(order_id="A-17") │ 0: get_order(order_id="A-18")' in shown
    assert "the same in 2 other runs: refund (runs 1 to 2)" in shown
    assert "turn 1" not in shown


def test_cases_with_personas_are_counted_apart(result: Result) -> None:
    assert "PASS greeting [polite]  2/2 passed" in result.out
    assert "· 3 cases, 0 flaky" in result.out
    assert f"  persona impatient: 0 % (95 % CI 0{DASH}66 %), 2 failed, 0 errors" in result.out
    assert "  persona polite: 100 % " in result.out
    assert "next: agentv eval refund.eval.yaml --case refund --persona impatient -v" in result.out


def test_records_have_persona_turns_and_words(talks: Command, result: Result) -> None:
    del result
    records = [json.loads(line) for line in (talks.folder / "r.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sorted((record["case_id"], record.get("persona_id", ""), record["repeat"]) for record in records) == [
        *(("greeting", "polite", at) for at in (0, 1)),
        *(("refund", "", at) for at in (0, 1)),
        *(("refund", "impatient", at) for at in (0, 1)),
    ]
    turns = next(record["turns"] for record in records if record["case_id"] == "refund")
    assert [turn["user"] for turn in turns] == ["I want my money back.", "It is order A-17."]
    assert [(turn["first_message"], turn["last_message"], turn["calls"]) for turn in turns] == [(0, 1, 0), (2, 4, 1)]


def test_junit_markdown_and_annotations_tell_the_turn(talks: Command, result: Result) -> None:
    suite = ET.parse(talks.folder / "r.xml").getroot()[0]  # noqa: S314 - our own file
    failures = {case.get("name"): case.find("failure") for case in suite.iter("testcase")}
    assert set(failures) == {
        *("refund", "refund #2", "refund [impatient]", "refund [impatient] #2"),
        *("greeting [polite]", "greeting [polite] #2"),
    }
    failure = failures["refund [impatient]"]
    assert failure is not None
    said = 'turn 2 (user: "It is order A-17."): call 0 get_order: input.order_id expected "A-17", got "A-18"'
    assert failure.get("message") == said
    assert "turn 2, the user said: It is order A-17." in (failure.text or "")
    page = (talks.folder / "r.md").read_text(encoding="utf-8")
    assert "### FAIL `refund [impatient]`" in page
    assert "turn 2, the user said: It is order A-17." in page
    assert "| `impatient` | 0 | 2 | 0 |" in page
    notes = [line for line in result.out.splitlines() if line.startswith("::error")]
    assert any("title=refund [impatient] failed (runs 1 to 2)" in note for note in notes)
    assert any('turn 2 (user: "It is order A-17."): call 0' in note for note in notes)


def test_every_turn_has_its_trace(talks: Command, result: Result) -> None:
    del result
    folder = talks.folder / "traces" / "refund" / "agent"
    names = {path.name for path in folder.iterdir()}
    assert {f"refund~persona-impatient~turn-{turn}.attempt-1.json" for turn in (1, 2)} < names
    assert {f"refund~repeat-2~turn-{turn}.attempt-1.json" for turn in (1, 2)} < names
    assert len(names) == 12
    trace = json.loads((folder / "refund~persona-impatient~turn-2.attempt-1.json").read_text(encoding="utf-8"))
    assert (trace["persona_id"], trace["turn"], trace["attempt"]) == ("impatient", 2, 1)
    assert [event["name"] for event in trace["trace"] if event["type"] == "tool_call"] == ["get_order"]


def test_an_error_names_its_turn_and_the_words(talks: Command) -> None:
    result = talks("eval", "broken.eval.yaml", "--no-store", "--out", "b.xml", "--out", "b.jsonl")
    assert result.code == 3
    assert "! agent: turn 2: ValueError: no such order" in result.out
    assert "  turn 2, the user said: boom \\u001b[31m and a secret" in result.out
    record = json.loads((talks.folder / "b.jsonl").read_text(encoding="utf-8"))
    assert (record["ended_by"], record["fault"], len(record["turns"])) == ("error", "agent", 2)
    (error,) = ET.parse(talks.folder / "b.xml").getroot().iter("error")  # noqa: S314 - our own file
    assert (error.get("message") or "").startswith('turn 2 (user: "boom')


def test_secrets_in_the_words_of_the_user_are_redacted(talks: Command) -> None:
    text = Path(talks.folder / "broken.eval.yaml").read_text(encoding="utf-8")
    key = "sk-proj-Abcdefghij0123456789abcdefghij0123456789ABCD"
    (talks.folder / "leak.eval.yaml").write_text(text.replace("a secret", key), encoding="utf-8")
    result = talks("eval", "leak.eval.yaml", "--no-store", "--out", "leak.jsonl", "--out", "leak.md")
    written = "".join((talks.folder / name).read_text(encoding="utf-8") for name in ("leak.jsonl", "leak.md"))
    assert key not in result.out + result.err + written
    assert "boom" in result.out


@pytest.mark.parametrize(
    ("options", "runs"),
    [
        (("--persona", "imp*"), ["refund [impatient]  2 turns"]),
        (("--persona", "default"), ["refund  2 turns"]),
        (("--persona", "*i*", "--case", "g*"), ["greeting [polite]  2 turns"]),
    ],
)
def test_personas_are_selected_by_glob(talks: Command, options: tuple[str, ...], runs: list[str]) -> None:
    result = talks("eval", "refund.eval.yaml", "--dry-run", *options)
    assert [line.split("  ", 1)[1].rsplit("  ", 2)[0] for line in result.out.splitlines()[:-1]] == runs
    planned = talks("eval", "refund.eval.yaml", "--dry-run", "--json", *options).lines[:-1]
    assert [plan["turns"] for plan in planned] == [2]


def test_a_glob_without_a_persona_is_an_error_that_lists_them(talks: Command) -> None:
    result = talks("eval", "refund.eval.yaml", "--persona", "angry")
    assert result.code == 2
    assert "no case has the persona 'angry'; the personas are impatient, polite, default" in result.err


def test_a_resumed_execution_keeps_its_personas(talks: Command) -> None:
    first = talks("eval", "refund.eval.yaml", "--persona", "impatient", "--store", "resume.db")
    again = talks("eval", "--resume", "--rerun-failed", "--store", "resume.db")
    for result in (first, again):
        assert result.out.count("refund [impatient]") == 1
        assert "0 passed, 1 failed, 0 errors" in result.out


def test_verbose_shows_the_turns_that_passed(talks: Command) -> None:
    result = talks("eval", "refund.eval.yaml", "--no-store", "--persona", "default", "-v")
    at = [
        result.out.index(part) for part in ("turn 1, the user said", "PASS turn 1:", "turn 2, the user", "FAIL turn 2")
    ]
    assert at == sorted(at)


GOLDEN = """
targets:
  - name: m
    provider: mock
    reply:
      - {output_messages: [{role: assistant, content: Hi}]}
      - {output_messages: [{role: assistant, content: "4", tool_calls: [{tool: roll, input: {sides: 6}}]}]}
      - {output_messages: [{role: assistant, content: "yes", tool_calls: [{tool: prime, input: {number: 5}}]}]}
cases:
  - id: die
    turns: [{user: Hello}, {user: Roll a die}, {user: Is it prime?}]
    expected_messages:
      - {role: user, content: Hello}
      - {role: user, content: Roll a die}
      - {role: assistant, tool_calls: [{tool: roll, input: {sides: 6}}]}
      - {role: user, content: Is it prime?}
      - {role: assistant, tool_calls: [{tool: prime, input: {number: 4}}]}
"""


def test_a_golden_path_shows_the_turn_that_left_it(talks: Command) -> None:
    (talks.folder / "golden.eval.yaml").write_text(GOLDEN, encoding="utf-8")
    result = talks("eval", "golden.eval.yaml", "--no-store")
    shown = [line.strip() for line in result.out[: result.out.index("0 passed")].splitlines()]
    assert shown[1:3] == ["turn 3, the user said: Is it prime?", "FAIL expected_messages  0.50"]
    assert "≠ prime(number=4)          │ 0: prime(number=5)" in shown
    assert "✗ turn 3: tool_calls[0]: input mismatch: input.number expected 4, got 5" in shown
