"""Commands on stored runs: a store on a server answers as the file does that it was copied from."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.test_calibrate import CHECK, LABELS, write_labels
from tests.fakes.judges.program import judge_program
from tests.support.command import Command, command_in, execution_ids
from tests.support.postgres import PostgresServer
from tests.support.viewer import store_file, support_eval, write_store
from tests.support.viewer_server import Served, serve

Stores = tuple[Command, str]


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory, postgres_server: PostgresServer) -> Stores:
    """Return a project with two executions in a file, and the address of a server with a copy of them."""
    run = command_in(tmp_path_factory.mktemp("parity"))
    write_store(run, "--repeat", "2")
    changed = support_eval()
    changed["cases"][0]["input"] = "Ünïcode \N{PILE OF POO} % _ \\ ' \" ?"
    write_store(run, data=changed)
    address = postgres_server.address()
    assert run("runs", "copy", str(store_file(run)), address).code == 0
    return run, address


@contextmanager
def using(run: Command, store: str | Path) -> Iterator[Command]:
    """Let the project use this store."""
    run.write("agentv.yaml", {"store": str(store)})
    try:
        yield run
    finally:
        (run.folder / "agentv.yaml").unlink()


@pytest.mark.parametrize(
    "command",
    [
        "executions list",
        "executions list --json",
        "executions show",
        "executions show last~1 --json --limit 100",
        "executions show --status fail",
        "executions export last",
        "executions export last~1 --format openai",
        "executions prune --keep 1 --dry-run",
        "runs list --limit 100",
        "runs list --json --limit 7 --status fail",
        "runs list --case refund-? --target hasty",
        "runs show last --case refund-0",
        "runs show last --case refund-1 --json",
        "runs diff refund-2 last last~1 --json",
        "runs export last",
        "compare last~1 last --target-a careful --target-b careful",
        "compare last~1 last --target-a hasty --target-b careful --json",
        "coverage support.eval.yaml --json",
        "mutate last --json",
    ],
)
def test_commands_that_read_print_the_same(stores: Stores, command: str) -> None:
    run, address = stores
    with using(run, ".agentv/runs.db"):
        expected = run(*command.split())
    with using(run, address):
        done = run(*command.split())
    assert (done.code, done.out, done.err) == (expected.code, expected.out, expected.err)
    assert expected.out
    assert expected.code in (0, 1), expected.err


def test_reports_are_the_same(stores: Stores) -> None:
    run, address = stores
    for store, name in ((store_file(run), "file.html"), (address, "server.html")):
        assert run("report", "--store", str(store), "--out", name).code == 0
    assert (run.folder / "server.html").read_bytes() == (run.folder / "file.html").read_bytes()


def test_rescoring_gives_the_same_outcome(stores: Stores) -> None:
    run, address = stores
    (last, *_) = execution_ids(run)
    copy = run.folder / "copy.db"
    assert run("runs", "copy", str(store_file(run)), str(copy)).code == 0
    done = [run("rescore", last, "--json", "--store", str(store)) for store in (copy, address)]
    assert [result.code for result in done] == [1, 1], done[1].err
    file, server = (
        sorted((line["case_id"], line["target"], line["status"]) for line in result.lines if "case_id" in line)
        for result in done
    )
    assert file
    assert server == file
    added = run("executions", "list", "--store", address).out.splitlines()[0].split()[0]
    assert run("executions", "delete", added, "--store", address).code == 0
    assert [row.split()[0] for row in run("executions", "list", "--store", address).out.splitlines()[:1]] == [last]


def test_the_viewer_shows_the_same(stores: Stores) -> None:
    run, address = stores
    last, before = execution_ids(run)
    with serve(store_file(run)) as file, serve(address) as server:
        run_ids = [item["id"] for item in file.get(f"executions/{last}/runs").data["runs"]]
        paths = ["executions", "labels", f"compare?a={before}&b={last}", f"executions/{last}"]
        paths += [f"executions/{before}/{part}" for part in ("cases", "facets", "evaluators", "failures", "charts")]
        filters = (
            "status=fail",
            "tool=refund",
            "tag=money",
            "text=FRIEND",
            "sort=latency&order=desc",
            "limit=3&sort=case",
        )
        paths += [f"executions/{before}/runs?{part}" for part in filters]
        paths += [f"executions/{last}/runs?text=%25%20_", f"executions/{last}/runs?text=%C3%BCn%C3%AFcode"]
        paths += [f"runs/{run_ids[0]}{part}" for part in ("", "/messages", "/record")]
        for path in paths:
            expected, found = file.get(path), server.get(path)
            assert (path, found.status, found.body) == (path, expected.status, expected.body)
            assert found.status == 200, path
        label(server, run_ids[0])
        assert b'"note":"checked"' in server.get("labels").body


def label(viewer: Served, run_id: str) -> None:
    body = b'{"label": "pass", "note": "checked"}'
    headers = {"Content-Type": "application/json", "X-Agentv-Token": viewer.protection.write_token}
    answer = viewer.request("PUT", f"/api/v1/runs/{run_id}/label", body, headers)
    assert answer.status == 200, answer.body


def test_a_calibration_is_kept_on_the_server(server_run: Command) -> None:
    run = server_run
    store = str((run.folder / "agentv.yaml").read_text()).partition("store: ")[2].strip().strip("'\"")
    run.write("agentv.yaml", {"store": store, "targets": [judge_program(run.folder)], "judge": "judge"})
    agent = {"name": "agent", "provider": "mock", "reply": "It is Paris."}
    checks = [{**CHECK, "require_calibration": {"kappa": 0.5}}]
    run.write("a.eval.yaml", {"targets": [agent], "cases": [{"id": "x", "input": "?", "evaluators": checks}]})
    assert run("eval", "a.eval.yaml").code == 3, "the judge is not calibrated"
    write_labels(run, LABELS)
    assert run("calibrate", "labels.jsonl").code == 0
    assert run("eval", "a.eval.yaml").code == 0
    assert not (run.folder / ".agentv" / "runs.db").exists()
