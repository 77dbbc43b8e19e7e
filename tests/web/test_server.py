"""The API of the viewer: lists, runs, labels, and clear errors when the store is in trouble."""

import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
import yaml
from jsonschema import Draft202012Validator

import agentv
from agentv.model.listing import EvaluatorCounts, RunLabel
from agentv.stores.sqlite.store import SqliteStore
from agentv.web.endpoints import ENDPOINTS, encode_cursor
from agentv.web.openapi import describe_api
from tests.support.command import Command, command_in
from tests.support.viewer import ORDER, open_store, reply, store_file, write_store
from tests.support.viewer_server import Served, serve

FAILED = "executions/last/runs?status=fail"


def failed_run(viewer: Served) -> str:
    return str(viewer.get(FAILED).data["runs"][0]["id"])


WRONG_CURSORS = [
    f"{path}cursor={encode_cursor(value)}"
    for path, value in (
        ("cases?", 2**70),
        ("runs?", (0, 2**70)),
        ("runs?", (2**70, 0)),
        ("runs?", ("x", 0)),
        ("runs?sort=case&", (0, 0)),
        ("runs?sort=latency&", ("x", 0)),
    )
]


class TestLists:
    def test_executions_have_a_pass_rate_with_its_interval(self, viewer: Served) -> None:
        (execution,) = viewer.get("executions").data["executions"]
        assert execution["pass_rate"] == pytest.approx(0.6)
        low, high = execution["pass_rate_interval"]
        assert low < 0.6 < high
        assert execution["evals"]["support"]["passed"] == 12

    def test_pages_follow_each_other(self, viewer: Served) -> None:
        first = viewer.get("executions/last/runs?limit=15").data
        second = viewer.get(f"executions/last/runs?limit=15&cursor={first['next']}").data
        assert first["total"] == 20
        assert second["next"] is None
        assert len({run["id"] for run in first["runs"] + second["runs"]}) == 20

    def test_the_command_line_prints_the_same_shapes(self, viewer: Served, project: Command) -> None:
        by_id = {run["id"]: run for run in viewer.get("executions/last/runs").data["runs"]}
        for run in project("runs", "list", "--json", "--limit", "50").lines[0]["runs"]:
            assert run == by_id[run["id"]]
        (printed,) = project("executions", "list", "--json").lines[0]["executions"]
        assert printed == viewer.get("executions").data["executions"][0]

    def test_equal_failures_are_one_group(self, viewer: Served) -> None:
        (group,) = viewer.get("executions/last/failures").data["failures"]
        assert (group["failure"], group["runs"]) == ("missing call: ask_approval", 8)

    def test_charts_count_every_measured_run(self, viewer: Served) -> None:
        charts = {chart["name"]: chart for chart in viewer.get("executions/last/charts").data["charts"]}
        assert sum(each["pass"] + each["fail"] for each in charts["score"]["bins"]) == 20
        assert charts["cost_usd"]["median"] == 0.002

    def test_a_case_table_has_targets_as_columns(self, viewer: Served) -> None:
        cells = viewer.get("executions/last/cases").data["cells"]
        assert len(cells) == 10
        assert {cell["target"] for cell in cells} == {"careful", "hasty"}


class TestRun:
    def test_a_failed_run_has_its_aligned_diff(self, viewer: Served) -> None:
        run = viewer.get(f"runs/{failed_run(viewer)}").data
        diff = run["evaluators"][0]["diff"]
        assert [row["verdict"] for row in diff["rows"]] == ["match", "missing", "match"]
        assert run["command"].startswith("agentv eval ")

    def test_a_passed_run_has_its_aligned_diff_too(self, viewer: Served) -> None:
        runs = viewer.get("executions/last/runs?status=pass&target=careful").data["runs"]
        run = viewer.get(f"runs/{runs[0]['id']}").data
        assert [row["verdict"] for row in run["evaluators"][0]["diff"]["rows"]] == ["match"] * 3

    def test_payloads_come_only_when_asked_for(self, viewer: Served) -> None:
        name = failed_run(viewer)
        assert viewer.get(f"runs/{name}").data["messages"] == 3
        window = viewer.get(f"runs/{name}/messages").data
        assert [message["role"] for message in window["messages"]] == ["user", "assistant", "assistant"]
        assert [call["number"] for call in window["messages"][1]["tool_calls"]] == [0, 1]
        assert viewer.get(f"runs/{name}/record").data["schema"] == "agentv.run/2"

    def test_a_copied_case_is_valid_and_fails_in_the_same_way(
        self, viewer: Served, project: Command, tmp_path: Path
    ) -> None:
        text = viewer.get(f"runs/{failed_run(viewer)}/copy?form=case").data["text"]
        data = yaml.safe_load((project.folder / "support.eval.yaml").read_text(encoding="utf-8"))
        run = command_in(tmp_path)
        (run.folder / "copy.eval.yaml").write_text(yaml.safe_dump({**data, **yaml.safe_load(text)}), encoding="utf-8")
        done = run("eval", "copy.eval.yaml", "--json", "--target", "hasty")
        assert [line["status"] for line in done.lines[:-1]] == ["fail"]

    def test_a_copied_test_fails_for_a_failed_run(self, viewer: Served) -> None:
        text = viewer.get(f"runs/{failed_run(viewer)}/copy?form=pytest").data["text"]
        names: dict[str, object] = {}
        exec(compile(text, "copied.py", "exec"), names)  # noqa: S102 - our own text
        test = next(value for name, value in names.items() if name.startswith("test_"))
        with pytest.raises(AssertionError, match="missing call: ask_approval"):
            test()  # type: ignore[operator] # a function

    def test_the_copied_command_runs_the_case(self, viewer: Served, project: Command) -> None:
        text = viewer.get(f"runs/{failed_run(viewer)}/copy?form=command").data["text"]
        done = project(*text.split()[1:], "--no-store", "--json")
        assert [line["status"] for line in done.lines[:-1]] == ["fail"]


class TestCopiesOfConversations:
    """Each text that is copied from a conversation gives the verdict of the conversation."""

    @pytest.fixture
    def talk(self, tmp_path: Path) -> Command:
        run = command_in(tmp_path)
        assert run("init", "--example", "conversation").code == 0
        assert run("eval", ".").code == 1
        return run

    @pytest.mark.parametrize("form", ["case", "pytest", "command"])
    def test_each_form_gives_the_same_verdict(self, talk: Command, form: str) -> None:
        with serve(store_file(talk)) as viewer:
            runs = viewer.get("executions/last/runs").data["runs"]
            texts = [viewer.get(f"runs/{run['id']}/copy?form={form}").data["text"] for run in runs]
        expected = [run["result"]["status"] for run in runs]
        assert sorted(expected) == ["fail", "pass", "pass", "pass"]
        assert [getattr(self, f"run_{form}")(talk, text) for text in texts] == [[status] for status in expected]

    def run_case(self, talk: Command, text: str) -> list[str]:
        path = talk.folder / "copy.eval.yaml"
        path.write_text(yaml.safe_dump({"target": "refund-agent", **yaml.safe_load(text)}), encoding="utf-8")
        return self.statuses(talk("eval", path.name, "--no-store", "--json").lines)

    def run_command(self, talk: Command, text: str) -> list[str]:
        return self.statuses(talk(*text.split()[1:], "--no-store", "--json").lines)

    def run_pytest(self, _talk: Command, text: str) -> list[str]:
        names: dict[str, object] = {}
        exec(compile(text, "copied.py", "exec"), names)  # noqa: S102 - our own text
        test = next(value for name, value in names.items() if name.startswith("test_"))
        try:
            test()  # type: ignore[operator] # a function
        except AssertionError as error:
            return ["fail" if "missing call: ask_approval" in str(error) else str(error)]
        return ["pass"]

    def statuses(self, lines: list[dict[str, str]]) -> list[str]:
        return [line["status"] for line in lines[:-1]]


class TestUnknown:
    def test_calls_that_a_reply_does_not_report_are_not_zero(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        case = {"id": "a", "input": "x", "evaluators": [{"type": "contains", "value": "x"}]}
        replies = ["x", {"text": "x", "output_messages": [{"role": "assistant", "content": "x"}]}]
        targets = [{"name": f"t{at}", "provider": "mock", "reply": each} for at, each in enumerate(replies)]
        write_store(run, data={"targets": targets, "cases": [case]})
        with serve(store_file(run)) as viewer:
            runs = viewer.get("executions/last/runs?sort=target").data["runs"]
            assert [each["calls"] for each in runs] == [None, 0]
            assert [viewer.get(f"runs/{each['id']}").data["calls"] for each in runs] == [None, 0]


class TestComparisons:
    def test_repeats_of_different_personas_are_not_mixed(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        case = {
            "id": "a",
            "persona": ["ann", "ben"],
            "input": "x",
            "evaluators": [{"type": "tool_trajectory", "maximums": {"*": 9}}],
        }
        targets = [{"name": "t", "provider": "mock", "reply": reply(ORDER)}]
        personas = [{"id": "ann"}, {"id": "ben"}]
        write_store(run, "--repeat", "2", data={"targets": targets, "personas": personas, "cases": [case]})
        with serve(store_file(run)) as viewer:
            path = "executions/last/repeats?case_id=a"
            for query, persona in (("", "ann"), ("&persona=ann", "ann"), ("&persona=ben", "ben")):
                answer = viewer.get(path + query).data
                assert (answer["persona_id"], answer["personas"]) == (persona, ["ann", "ben"])
                assert [each["repeat"] for each in answer["runs"]] == [0, 1]
            assert viewer.get(f"{path}&persona=").status == 404

    def test_repeats_are_aligned_and_their_divergence_is_named(self, viewer: Served) -> None:
        answer = viewer.get("executions/last/repeats?case_id=refund-1").data
        assert len(answer["runs"]) == 4
        assert "ask_approval" in answer["first"]["sentence"]

    def test_two_executions_are_compared(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        first = write_store(run, "--target", "careful")
        data = yaml.safe_load((run.folder / "support.eval.yaml").read_text(encoding="utf-8"))
        data["targets"][0]["reply"] = reply(ORDER)
        second = write_store(run, "--target", "careful", data=data)
        with serve(store_file(run)) as viewer:
            comparison = viewer.get(f"compare?a={first}&b={second}").data
            assert (comparison["wins"], comparison["losses"]) == (0, 4)
            assert comparison["lost"][0]["calls"][0] == {
                "verdict": "match",
                **dict.fromkeys("ab", 'get_order(order_id="B-42")'),
            }

    def test_a_comparison_names_runs_that_are_damaged(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        first, second = write_store(run, "--target", "careful"), write_store(run, "--target", "careful")
        with serve(store_file(run)) as viewer:
            path = f"compare?a={first}&b={second}"
            assert viewer.get(path).data["missing"] == []
            store = open_store(run)
            key = next(iter(store.runs(second))).key
            store.db.execute("UPDATE payloads SET record = X'00' WHERE run = (SELECT max(seq) - 4 FROM runs)")
            store.close()
            comparison = viewer.get(path).data
            assert comparison["damaged"] == [f"{second}-{key}"]
            assert f"{second}-{key}" in comparison["missing"][0]
            assert comparison["cases"] == 4

    def test_answers_that_are_kept_follow_the_store(self, tmp_path: Path) -> None:
        run = command_in(tmp_path)
        name = write_store(run, "--target", "careful")
        with serve(store_file(run)) as viewer:
            path = f"executions/{name}/cases?label=fail"
            assert viewer.get(path).data["total"] == viewer.get(path).data["total"] == 0
            store = open_store(run)
            store.set_label(name, next(iter(store.runs(name))).key, RunLabel(label="fail"))
            store.close()
            assert viewer.get(path).data["total"] == 1

    def test_answers_of_a_finished_execution_are_kept_while_another_one_runs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run = command_in(tmp_path)
        name = write_store(run, "--target", "careful")
        asked: list[str] = []
        counts = SqliteStore.evaluator_counts

        def count(store: SqliteStore, name: str) -> list[EvaluatorCounts]:
            asked.append(name)
            return counts(store, name)

        monkeypatch.setattr(SqliteStore, "evaluator_counts", count)
        with serve(store_file(run)) as viewer:
            first = viewer.get(f"executions/{name}/evaluators").body
            other = write_store(run, "--target", "careful")
            assert viewer.get(f"executions/{name}/evaluators").body == first
            assert viewer.get("executions/last/evaluators").status == 200
            assert asked == [name, other]
            assert run("executions", "delete", name).code == 0
            assert viewer.get(f"executions/{name}/evaluators").status == 404


class TestLabels:
    def put(self, viewer: Served, name: str, body: bytes, **headers: str) -> int:
        sent = {"Content-Type": "application/json", "X-Agentv-Token": viewer.protection.write_token, **headers}
        return viewer.request("PUT", f"/api/v1/runs/{name}/label", body, sent).status

    def test_a_label_is_set_listed_and_removed(self, viewer: Served) -> None:
        name = failed_run(viewer)
        assert self.put(viewer, name, b'{"label": "pass", "note": "fine with me"}') == 200
        assert viewer.get(f"runs/{name}").data["label"]["note"] == "fine with me"
        assert [run["id"] for run in viewer.get("executions/last/runs?label=pass").data["runs"]] == [name]
        assert b'"label":"pass"' in viewer.get("labels").body
        assert self.put(viewer, name, b'{"label": null}') == 200
        assert viewer.get("labels").body == b""

    @pytest.mark.parametrize("body", [b"", b"[]", b'{"label": "maybe"}', b'{"label": "pass", "more": 1}', b"\xff"])
    def test_a_wrong_body_is_refused(self, viewer: Served, body: bytes) -> None:
        assert self.put(viewer, failed_run(viewer), body) == 400

    def test_a_run_that_is_not_there_cannot_be_labelled(self, viewer: Served) -> None:
        assert self.put(viewer, "nothing-0", b'{"label": "pass"}') == 404


class TestTrouble:
    @pytest.fixture
    def own(self, project: Command, tmp_path: Path) -> Command:
        """Return a copy of the project, to break it."""
        run = command_in(tmp_path)
        shutil.copytree(project.folder, run.folder, dirs_exist_ok=True)
        return run

    @pytest.mark.parametrize(
        ("path", "status"),
        [
            ("executions/nothing", 404),
            ("executions/nothing/runs", 404),
            ("runs/nothing", 404),
            ("runs/a-b/messages", 404),
            ("executions/last/repeats?case_id=nothing", 404),
            ("executions/last/runs?sort=colour", 400),
            ("executions/last/runs?limit=0", 400),
            ("executions/last/runs?limit=1&limit=2", 400),
            *((f"executions/last/{path}", 400) for path in WRONG_CURSORS),
            ("executions/last/runs?cursor=%00", 400),
            ("executions/last/runs?unknown=1", 400),
            ("executions/last/repeats", 400),
            ("/api/v1/nothing", 404),
            ("/static/../server.py", 404),
            ("/static/%2e%2e/server.py", 404),
        ],
    )
    def test_a_wrong_request_gets_a_clear_answer(self, viewer: Served, path: str, status: int) -> None:
        answer = viewer.get(path)
        assert answer.status == status
        assert answer.data["error"]["message"]

    def test_a_damaged_run_is_an_error_and_the_others_are_shown(self, own: Command) -> None:
        store = open_store(own)
        store.db.execute("UPDATE payloads SET record = X'00' WHERE run = 1")
        store.db.execute("UPDATE runs SET score = 0.125 WHERE seq = 2")
        store.close()
        with serve(store_file(own)) as viewer:
            runs = viewer.get("executions/last/runs").data["runs"]
            assert sum("damage" in run for run in runs) == 1
            records = [viewer.get(f"runs/{run['id']}/record").status for run in runs]
            assert records.count(409) == 2, "nothing of a damaged run is offered as its record"
            answers = [viewer.get(f"runs/{run['id']}") for run in runs]
            assert sorted({answer.status for answer in answers}) == [200, 409]
            assert "damaged" in next(answer for answer in answers if answer.status == 409).data["error"]["message"]

    @pytest.mark.parametrize("change", ["snapshots SET data = X'00'", "payloads SET response = X'00'"])
    def test_damage_of_any_part_of_a_run_is_named(self, own: Command, change: str) -> None:
        store = open_store(own)
        store.db.execute(f"UPDATE {change}")
        store.close()
        with serve(store_file(own)) as viewer:
            name = viewer.get("executions/last/runs").data["runs"][0]["id"]
            for part in ("", "/messages", "/record", "/copy?form=case"):
                assert viewer.get(f"runs/{name}{part}").status == 409, part

    def test_an_execution_that_is_deleted_meanwhile_is_not_found(self, own: Command) -> None:
        with serve(store_file(own)) as viewer:
            name = viewer.get("executions").data["executions"][0]["id"]
            assert viewer.get(f"executions/{name}/runs").status == 200
            assert own("executions", "delete", name).code == 0
            for path in (f"executions/{name}", f"executions/{name}/runs", f"executions/{name}/charts"):
                assert viewer.get(path).status == 404
            assert viewer.get("executions").data["executions"] == []

    def test_a_store_that_is_gone_is_named_and_seen_again_when_it_is_back(self, own: Command) -> None:
        file = store_file(own)
        with serve(file) as viewer:
            assert viewer.get("executions").status == 200
            file.rename(file.with_name("away.db"))
            answer = viewer.get("executions")
            assert answer.status == 503
            assert "runs.db" in answer.data["error"]["message"]
            assert viewer.get("executions").status == 503
            assert not file.exists(), "no new store is made"
            file.with_name("away.db").rename(file)
            assert viewer.get("executions").status == 200

    def test_a_label_waits_for_a_store_that_is_locked_and_the_pages_do_not(self, own: Command) -> None:
        with (
            serve(store_file(own)) as viewer,
            closing(sqlite3.connect(store_file(own), isolation_level=None)) as other,
            ThreadPoolExecutor(1) as thread,
        ):
            name = failed_run(viewer)
            other.execute("BEGIN IMMEDIATE")
            headers = {"Content-Type": "application/json", "X-Agentv-Token": viewer.protection.write_token}
            label = thread.submit(viewer.request, "PUT", f"/api/v1/runs/{name}/label", b'{"label": "pass"}', headers)
            for _ in range(20):
                assert viewer.get("executions/last/runs").status == 200
            assert not label.done()
            other.execute("ROLLBACK")
            assert label.result().status == 200
            assert viewer.get(f"runs/{name}").data["label"]["label"] == "pass"

    def test_a_store_of_a_newer_version_is_named(self, own: Command) -> None:
        with serve(store_file(own)) as viewer:
            assert viewer.get("changes").status == 200
            with closing(sqlite3.connect(store_file(own))) as other, other:
                other.execute("PRAGMA user_version = 99")
            other.close()
            answer = viewer.get("executions")
            assert answer.status == 503
            assert "newer agentv" in answer.data["error"]["message"]


class TestDescription:
    def test_each_answer_has_the_described_shape(self, viewer: Served) -> None:
        described = viewer.get("openapi.json").data
        assert described == describe_api()
        run = failed_run(viewer)
        execution = run.rpartition("-")[0]
        given = {"form": "case", "a": execution, "b": execution, "case_id": "refund-1"}
        for endpoint in ENDPOINTS:
            path = endpoint.path.replace("{run}", run).replace("{execution}", execution)
            needed = [each.name for each in endpoint.parameters if each.place == "query" and "minLength" in each.schema]
            query = "&".join(f"{name}={quote(given[name])}" for name in needed)
            answer = viewer.get(f"{path}?{query}")
            assert answer.status == 200, (path, answer.body)
            if endpoint.schema:
                schema = described["components"]["schemas"][endpoint.schema]
                Draft202012Validator({**schema, "components": described["components"]}).validate(answer.data)

    def test_the_version_is_that_of_the_package(self) -> None:
        assert describe_api()["info"]["version"] == agentv.__version__
