"""Folders, stores and links of other users: not used unless the command line names or trusts them."""

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agentv.spec import project as projects
from agentv.spec.discovery import TRUSTS_ALL
from agentv.stores.sqlite import SqliteStore, migrations
from tests.support.command import Command, Json, cases, mocked

SAYS: Json = {"type": "contains", "value": "hi"}
OTHER_USER = 12_345


def write_eval(run: Command, name: str = "a.eval.yaml", **more: object) -> None:
    run.write(name, {"targets": [mocked({"text": "hi"})], "cases": cases("a", check=SAYS), **more})


@pytest.fixture
def planted(run: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """A project file of another user above the eval of this one."""
    run.write("agentv.yaml", {"defaults": {"evaluators": [{"type": "contains", "name": "planted", "value": "x"}]}})
    write_eval(run, "own/a.eval.yaml")
    if os.getuid() == 0:
        os.chown(run.folder, OTHER_USER, -1)
        os.chown(run.folder / "agentv.yaml", OTHER_USER, -1)
    else:
        foreign = run.folder / "agentv.yaml"
        monkeypatch.setattr(projects, "_is_foreign", lambda file, *_: file == foreign and not TRUSTS_ALL.get())
    return run


def test_a_project_of_another_user_is_not_used(planted: Command) -> None:
    result = planted("eval", "own/a.eval.yaml", "--json")
    assert result.code == 0
    assert [check["name"] for check in result.lines[0]["evaluators"]] == ["contains"]
    assert "agentv.yaml belongs to another user and is not used: add --trust-project" in result.err + result.out
    assert (planted.folder / "own" / ".agentv").is_dir()


def test_a_project_of_another_user_can_be_trusted(planted: Command) -> None:
    result = planted("eval", "own/a.eval.yaml", "--json", "--trust-project")
    assert [check["name"] for check in result.lines[0]["evaluators"]] == ["planted", "contains"]
    assert not TRUSTS_ALL.get()


def test_an_eval_that_needs_the_project_is_told_why_it_is_not_used(planted: Command) -> None:
    planted.write("own/b.eval.yaml", {"target": "shared", "cases": cases("a", check=SAYS)})
    result = planted("eval", "own/b.eval.yaml")
    assert result.code == 2
    assert "--trust-project" in result.err


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
def test_the_project_of_the_owner_of_the_eval_is_used(planted: Command) -> None:
    os.chown(planted.folder / "own" / "a.eval.yaml", OTHER_USER, -1)
    result = planted("eval", "own/a.eval.yaml", "--json")
    assert [check["name"] for check in result.lines[0]["evaluators"]] == ["planted", "contains"]


def test_a_store_folder_that_is_a_link_is_refused_unless_it_is_named(run: Command) -> None:
    elsewhere = run.temporary / "elsewhere"
    elsewhere.mkdir()
    (run.folder / ".agentv").symlink_to(elsewhere)
    write_eval(run)
    refused = run("eval", "a.eval.yaml")
    assert refused.code != 0
    assert "is a link to" in refused.err
    assert "--store" in refused.err
    assert list(elsewhere.iterdir()) == []
    assert run("eval", "a.eval.yaml", "--store", ".agentv/runs.db").code == 0
    assert run("runs", "list").code == 2


@pytest.mark.parametrize("store", ["../outside.db", "data/runs.db"])
def test_a_store_outside_of_the_project_is_refused_unless_it_is_named(run: Command, store: str) -> None:
    (run.folder / "data").symlink_to(run.temporary)
    run.write("agentv.yaml", {"store": store})
    write_eval(run)
    refused = run("eval", "a.eval.yaml")
    assert refused.code != 0
    assert "outside of itself" in refused.err
    assert not (run.folder / store).exists()
    assert run("eval", "a.eval.yaml", "--store", store).code == 0
    assert run("eval", "a.eval.yaml", "--resume", "--store", store).code == 0


def test_a_trace_file_that_is_a_link_is_not_written_through(run: Command) -> None:
    write_eval(run)
    assert run("eval", "a.eval.yaml", "--dump-traces", "traces").code == 0
    (file,) = (run.folder / "traces").rglob("*.json")
    target = run.temporary / "target"
    target.write_text("mine")
    file.unlink()
    file.symlink_to(target)
    assert run("eval", "a.eval.yaml", "--dump-traces", "traces").code != 0
    assert target.read_text() == "mine"


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER t AFTER INSERT ON runs BEGIN SELECT 1; END",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TABLE other (a)",
        "CREATE INDEX other ON runs (eval_id)",
    ],
)
def test_a_store_with_anything_beside_our_tables_is_refused(run: Command, statement: str) -> None:
    write_eval(run)
    run("eval", "a.eval.yaml")
    with closing(sqlite3.connect(run.folder / ".agentv" / "runs.db")) as db:
        db.execute(statement)
        db.commit()
    refused = run("eval", "a.eval.yaml")
    assert refused.code != 0
    assert "which agentv did not make" in refused.err
    assert "which agentv did not make" in run("runs", "list").err


def test_the_known_tables_are_those_of_the_migrations(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    rows = store.db.execute("SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'").fetchall()
    assert set(rows) == migrations.known_names()
    assert store.db.execute("PRAGMA trusted_schema").fetchone() == (0,)
    store.close()


def test_a_judge_cache_of_somebody_else_changes_no_verdict(run: Command) -> None:
    reply = {"items": [{"id": "1", "met": False, "quote": "", "reason": "No."}]}
    run.write(
        "judge.py",
        "import json, re, pathlib\n"
        "def judge(prompt):\n"
        "    pathlib.Path('asked').open('a').write('x')\n"
        '    word = re.findall(r\'"verdict" must be "([^"]+)"\', prompt)[-1]\n'
        f"    return json.dumps({{'verdict': word, **json.loads({json.dumps(reply)!r})}})\n",
    )
    judge = {"name": "judge", "provider": "cli", "command": ["python3", "ask.py"]}
    asks = "print(judge(json.load(sys.stdin)['input_messages'][-1]['content']))"
    run.write("ask.py", f"import json, sys\nfrom judge import judge\n{asks}\n")
    check = {"type": "llm_judge", "judge": "judge", "rubric": ["It is polite."]}
    targets = [mocked({"text": "hi"}), judge]
    run.write("a.eval.yaml", {"targets": targets, "target": targets[0]["name"], "cases": cases("a", check=check)})
    asked = run.folder / "asked"
    first = run("eval", "a.eval.yaml")
    assert (first.code, asked.read_text()) == (1, "x"), first.out + first.err
    assert run("eval", "a.eval.yaml").code == 1
    assert asked.read_text() == "x", "one's own reply is remembered"
    with closing(sqlite3.connect(run.folder / ".agentv" / "runs.db")) as db:
        (cached,) = db.execute("SELECT reply FROM judge_replies").fetchone()
        db.execute("UPDATE judge_replies SET reply = ?", (cached.replace(b"false", b"true "),))
        db.commit()
    assert run("eval", "a.eval.yaml").code == 1
    assert asked.read_text() == "xx", "a reply that was changed is asked for again"
    assert run("eval", "a.eval.yaml", env={"AGENTV_CACHE_KEY": "of another user"}).code == 1
    assert asked.read_text() == "xxx", "a reply of somebody else is asked for again"
