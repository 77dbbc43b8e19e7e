"""Stored conversations: shown by turns, listed, exported, imported, evaluated again and compared."""

import json

import pytest

import agentv
from tests.support.command import Command
from tests.support.conversations import write_conversations


@pytest.fixture(scope="module")
def stored(module_run: Command) -> Command:
    write_conversations(module_run.folder)
    assert module_run("eval", "refund.eval.yaml", "-q").code == 1
    return module_run


def test_show_prints_turns(stored: Command) -> None:
    out = stored("runs", "show", "--case", "refund", "--persona", "impatient").out
    assert "case refund [impatient] of refund, target agent" in out
    assert "· 2 turns, ended by the user" in out
    first, second = out.index("turn 1 · "), out.index("turn 2 · ")
    assert "tokens 10 in, 5 out · $0.001000 · 0 calls" in out[first:second]
    assert "[0] user: I want my money back.\n[1] assistant: Which order is it?" in out[first:second]
    assert "tokens 20 in, 7 out · $0.002000 · 1 call" in out[second:]
    assert '    -> get_order({"order_id":"A-18"})' in out[second:]
    assert "turn 2, the user said: It is order A-17." in out[second:]


def test_show_of_an_error_tells_end_and_fault(stored: Command) -> None:
    stored("eval", "broken.eval.yaml", "-q", "--store", "broken.db")
    out = stored("runs", "show", "--case", "crash", "--store", "broken.db").out
    assert "2 turns, ended by an error, fault: agent" in out
    assert "the reply is an error (agent): turn 2: ValueError: no such order" in out


def test_lists_carry_persona_and_turns(stored: Command) -> None:
    out = stored("executions", "show", "--persona", "imp*").out
    assert "FAIL refund [impatient]  agent  0.50 · 2 turns" in out
    assert "greeting" not in out
    listed = stored("runs", "list", "--persona", "default", "--json").lines[0]["runs"]
    assert [(run["case_id"], run["persona_id"], run["turn_count"]) for run in listed] == [("refund", None, 2)]
    missing = stored("runs", "show", "--case", "refund", "--persona", "polite")
    assert missing.code == 2
    assert "has no run of case 'refund' with persona polite" in missing.err


def test_python_reads_turns(stored: Command) -> None:
    with agentv.open_store(stored.folder) as store:
        runs = list(store.runs(persona="impatient"))
        assert [run.persona_id for run in runs] == ["impatient"]
        (run,) = runs
        assert run.messages is not None
        assert [run.messages[turn.first_message].text for turn in run.turns] == [turn.user for turn in run.turns]
        assert (run.ended_by, run.fault) == ("user", "none")
        assert [run.case_id for run in store.runs(persona="default")] == ["refund"]


@pytest.mark.parametrize("form", ["agentv", "openai"])
def test_export_import_and_rescore_agree(stored: Command, form: str) -> None:
    stored("executions", "export", "--format", form, "--out", f"{form}.jsonl")
    store = ("--store", f"{form}.db")
    assert stored("runs", "import", f"{form}.jsonl", *store).code == 0
    if form == "agentv":
        stored("executions", "export", "--out", "again.jsonl", *store)
        assert (stored.folder / "again.jsonl").read_bytes() == (stored.folder / "agentv.jsonl").read_bytes()
    out = stored("rescore", "--out", f"{form}-rescored.jsonl", *store)
    assert out.code == 1
    lines = (stored.folder / f"{form}-rescored.jsonl").read_text(encoding="utf-8").splitlines()
    for line in lines:
        record = json.loads(line)
        is_refund = record["case_id"] == "refund"
        assert (record["status"], record["score"]) == (("fail", 0.5) if is_refund else ("pass", 1.0))
        assert [turn["calls"] for turn in record["turns"]] == [0, 1]
        assert record["tokens_usage"]["input_tokens"] == 30
        assert record["ended_by"] == "user"


def test_rescore_selects_personas(stored: Command) -> None:
    rescored = stored("rescore", "--persona", "polite", "--json", "--store", "agentv.db").lines
    assert [line["case_id"] for line in rescored[:-1]] == ["greeting"]


def test_comparisons_pair_by_persona(stored: Command) -> None:
    assert stored("eval", "refund.eval.yaml", "-q", "--store", "b.db", "--out", "b.jsonl").code == 1
    compared = stored("compare", "b.jsonl", "b.jsonl", "--json").lines[0]
    assert compared["cases"] == 3
    sliced = stored("compare", "b.jsonl", "b.jsonl", "--persona", "polite", "--json").lines[0]
    assert sliced["cases"] == 1
    none = stored("compare", "b.jsonl", "b.jsonl", "--persona", "nobody")
    assert none.code == 2
    assert "holds no results of persona nobody" in none.err


LEGACY = [
    {"role": "system", "content": "Be nice."},
    {"role": "user", "content": "I want my money back."},
    {"role": "assistant", "content": "Which order is it?"},
    {"role": "user", "content": "It is order A-17."},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "1", "type": "function", "function": {"name": "get_order", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "sent"},
    {"role": "assistant", "content": "Found."},
]
RULES = """
targets: [{name: agent, provider: mock, reply: hi}]
cases:
  - id: refund
    turns:
      - user: I want my money back.
        evaluators: [{type: tool_trajectory, mode: exact, expected: []}]
      - user: It is order A-17.
        evaluators: [{type: tool_trajectory, mode: exact, expected: [{tool: get_order}]}]
    evaluators: [{type: contains, value: Found}]
"""


def test_legacy_messages_of_several_turns_are_a_conversation(run: Command) -> None:
    legacy = [
        {"scenarioId": "refund", "personaId": name, "connectorId": "agent", "evalId": "rules", "messages": LEGACY}
        for name in ("impatient", "polite")
    ]
    lines = [json.dumps({**each, "tokensUsage": {"input_tokens": 9}, "status": "completed"}) for each in legacy]
    (run.folder / "old.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (run.folder / "rules.eval.yaml").write_text(RULES, encoding="utf-8")
    assert run("runs", "import", "old.jsonl").code == 0
    shown = run("runs", "show", "--case", "refund", "--persona", "polite").out
    assert "history\n[0] system: Be nice.\n\nturn 1 · 0 calls\n[1] user: I want my money back." in shown
    assert "turn 2 · 1 call\n[3] user: It is order A-17." in shown
    rescored = run("rescore", "--eval", "rules.eval.yaml", "--out", "new.jsonl")
    assert rescored.code == 0, rescored.out + rescored.err
    records = [json.loads(line) for line in (run.folder / "new.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {record["persona_id"] for record in records} == {"impatient", "polite"}
    assert [[turn["calls"] for turn in record["turns"]] for record in records] == [[0, 1], [0, 1]]
    assert [record["tokens_usage"]["input_tokens"] for record in records] == [9, 9]
    assert run("compare", "new.jsonl", "last", "--json").lines[0]["cases"] == 2
