"""`agentv.evaluate` stores runs only on request, and then as `agentv eval` does."""

import json
import time
from pathlib import Path

import pytest

import agentv
from agentv.errors import StoreError
from agentv.stores.sqlite import SqliteStore
from agentv.stores.sqlite import leases as owners
from tests.support.command import command_in

EVAL = {"cases": [{"id": "a", "input": "hello", "evaluators": [{"type": "contains", "value": "HELLO"}]}]}


def held(path: Path) -> list[str]:
    store = SqliteStore(path)
    found = [run.case_id for row in store.executions() for run in store.runs(row.id)]
    store.close()
    return found


def test_nothing_is_kept_unless_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert agentv.evaluate(EVAL, target=str.upper).passed
    assert list(tmp_path.iterdir()) == []


def test_true_means_the_store_of_the_project_and_a_path_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    kept = agentv.evaluate(EVAL, target=str.upper, store=True)
    assert held(tmp_path / ".agentv" / "runs.db") == ["a"]
    plain = agentv.evaluate(EVAL, target=str.upper)
    assert [one.status for one in kept.results] == [one.status for one in plain.results] == ["pass"]
    agentv.evaluate(EVAL, target=str.upper, store="elsewhere.db")
    assert held(tmp_path / "elsewhere.db") == ["a"]


def test_a_project_that_keeps_nothing_is_not_overruled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "agentv.yaml").write_text("store: off\n")
    (tmp_path / "a.eval.yaml").write_text(json.dumps(EVAL))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match="says `store: off`"):
        agentv.evaluate("a.eval.yaml", target=str.upper, store=True)


def test_what_files_began_the_command_line_takes_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = command_in(tmp_path)
    reply = {"output_messages": [{"role": "assistant", "content": "HELLO"}]}
    run.write("a.eval.yaml", {"targets": [{"name": "t", "provider": "mock", "reply": reply}], **EVAL})
    monkeypatch.chdir(run.folder)
    agentv.evaluate("a.eval.yaml", store=True)
    agentv.evaluate("a.eval.yaml", target=str.upper, store=True)
    result = run("eval", "--resume")
    assert (result.code, "nothing is run" in result.err) == (0, True)


def test_whoever_stood_still_and_lost_its_runs_to_another_asks_for_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runs.db"
    asked: list[str] = []

    def agent(text: str) -> str:
        asked.append(text)
        if len(asked) == 1:
            other = SqliteStore(path)
            later = owners.uptime() + owners.LEASE_S + 1
            with monkeypatch.context() as patch:
                patch.setattr(owners, "uptime", lambda: later)
                assert other.active_workers(other.executions()[0].id) == []
            other.db.execute("UPDATE runs SET owner = 'other', rounds = rounds + 1")
            other.close()
        time.sleep(0.1)
        return text

    check = {"type": "contains", "value": "question"}
    many = {"cases": [{"id": f"c{at}", "input": f"question {at}", "evaluators": [check]} for at in range(40)]}
    with pytest.raises(StoreError, match="taken over by another process while this one stood still: resume to see all"):
        agentv.evaluate(many, target=agent, store=path, max_concurrency=1)
    assert len(asked) < 20
