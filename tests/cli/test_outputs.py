"""`--out` in every format, `--dump-traces`, and what GitHub shows, as a user or a build server meets them."""

import json
import os
import re
import stat
import sys
from itertools import chain, combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import xmlschema
import yaml

from tests.cli.test_eval_robustness import FORMS, LEAKS, SECRET, mounted
from tests.reports.test_github import obeyed
from tests.support.command import Command, Json, calls, cases, mocked, program
from tests.support.events import HOSTILE

SCHEMA = xmlschema.XMLSchema(Path(__file__).parents[1] / "data" / "junit.xsd")
NAMES = ("results.jsonl", "results.yaml", "results.yml", "results.xml", "results.md")
ALL = tuple(chain.from_iterable(("--out", name) for name in NAMES))
DOWN = {"error": {"kind": "transport", "message": "nobody is there"}}
FULL = {"targets": [mocked(calls("guess", text="x" * 4_000))], "cases": cases(*[f"c{n}" for n in range(100)])}
FLAKY = """
import json, sys
attempt = json.load(sys.stdin)["attempt"]
calls = [{"tool": f"try{attempt}"}]
error = {"kind": "transport", "message": "busy", "retryable": True}
reply = {"output_messages": [{"role": "assistant", "tool_calls": calls}]}
print(json.dumps(reply if attempt > 1 else {**reply, "error": error}))
"""


@pytest.fixture
def mixed(run: Command) -> Command:
    """An eval with one case of each outcome, the first of which ends last."""
    run.write(
        "mixed.eval.yaml",
        {"targets": [mocked(calls("search"), calls("guess"), DOWN)], "cases": cases("good", "bad", "down")},
    )
    return run


def xml(run: Command, name: str = "results.xml") -> ET.Element:
    SCHEMA.validate(run.folder / name)
    return ET.fromstring((run.folder / name).read_bytes())  # noqa: S314 - our own file


def documents(run: Command, name: str = "results.yaml") -> list[Json]:
    return list(yaml.safe_load_all((run.folder / name).read_bytes()))


def line_of(run: Command, case_id: str) -> str:
    """Return the position of the case of this name in the eval."""
    text = (run.folder / "mixed.eval.yaml").read_text(encoding="utf-8")
    return str(text[: text.index(f"- id: {case_id}\n")].count("\n") + 1)


class TestFormats:
    def test_one_execution_in_every_format(self, mixed: Command) -> None:
        result = mixed("eval", "mixed.eval.yaml", *ALL, "--json")
        *_, summary = result.lines
        assert (result.code, result.err) == (3, "")
        assert summary["out"] == list(NAMES)
        records = mixed.records()
        assert [record["case_id"] for record in records] == ["good", "bad", "down"]
        assert documents(mixed) == documents(mixed, "results.yml") == records
        assert [case.get("name") for case in xml(mixed).iter("testcase")] == ["good", "bad", "down"]
        assert xml(mixed).findtext(".//testcase[@name='good']/system-out") == (
            f"mixed.eval.yaml:{line_of(mixed, 'good')}:3"
        )
        page = (mixed.folder / "results.md").read_text(encoding="utf-8")
        assert page.startswith("# ⚠️ 1 of 3 runs could not be measured, 1 failed\n")
        assert {stat.S_IMODE((mixed.folder / name).stat().st_mode) for name in NAMES} == {0o600}
        assert list(mixed.temporary.rglob("*")) == []

    def test_every_format_is_in_plan_order(self, run: Command) -> None:
        targets = [mocked(calls("guess"), name="slow", delay_ms=150), mocked(calls("guess"), name="fast")]
        run.write("two.eval.yaml", {"targets": targets, "cases": cases("a", "b")})
        assert run("eval", "two.eval.yaml", *ALL).code == 1
        order = [("a", "slow"), ("a", "fast"), ("b", "slow"), ("b", "fast")]
        assert [(record["case_id"], record["target"]) for record in documents(run)] == order
        page = (run.folder / "results.md").read_text(encoding="utf-8")
        assert re.findall(r"^### FAIL `(.)`\n\n`two` · `(\w+)`", page, re.MULTILINE) == order[:1]
        assert "The same in `a` (`fast`), `b` (`slow`), `b` (`fast`)." in page
        assert [suite.get("name") for suite in xml(run)] == ["two · slow", "two · fast"]

    @pytest.mark.parametrize("name", ["results.tsv", "results.json", "results", "results.jsonl.gz", ".jsonl", "x.ymal"])
    def test_an_unknown_suffix_is_told_before_anything_runs(self, mixed: Command, name: str) -> None:
        result = mixed("eval", "mixed.eval.yaml", "--out", "results.xml", "--out", name)
        assert (result.code, result.out) == (2, "")
        assert (
            f"--out {name}: the name says the format, and must end in .csv, .html, .jsonl, .md, .xml, .yaml or .yml"
            in result.err
        )
        assert [path.name for path in mixed.folder.iterdir()] == ["mixed.eval.yaml"]

    def test_a_suffix_may_be_written_in_capitals(self, mixed: Command) -> None:
        assert mixed("eval", "mixed.eval.yaml", "--out", "R.XML").code == 3
        assert xml(mixed, "R.XML").get("tests") == "3"

    @pytest.mark.parametrize("again", ["r.jsonl", "./r.jsonl", "sub/../r.jsonl", "R.jsonl", "linked.jsonl"])
    def test_one_file_is_not_written_twice(self, mixed: Command, again: str) -> None:
        (mixed.folder / "sub").mkdir()
        mixed.write("r.jsonl", "old\n")
        os.link(mixed.folder / "r.jsonl", mixed.folder / "linked.jsonl")
        result = mixed("eval", "mixed.eval.yaml", "--out", "r.jsonl", "--out", again)
        assert (result.code, result.err) == (2, f"--out {again} is the same file as --out r.jsonl\n")
        assert (mixed.folder / "r.jsonl").read_text() == "old\n"

    @pytest.mark.parametrize("name", ["mixed.eval.yaml", "./mixed.eval.yaml"])
    def test_no_output_overwrites_an_input(self, mixed: Command, name: str) -> None:
        before = (mixed.folder / "mixed.eval.yaml").read_bytes()
        result = mixed("eval", "mixed.eval.yaml", "--out", "r.jsonl", "--out", name)
        assert result.code == 2
        assert "would overwrite" in result.err
        assert (mixed.folder / "mixed.eval.yaml").read_bytes() == before
        assert not (mixed.folder / "r.jsonl").exists()

    def test_a_pipe_gets_lines(self, mixed: Command) -> None:
        os.mkfifo(mixed.folder / "pipe")
        process = mixed.start("eval", "mixed.eval.yaml", "--out", "pipe", "-q")
        lines = (mixed.folder / "pipe").read_bytes().splitlines()
        assert process.wait(timeout=60) == 3
        process.communicate()
        assert [json.loads(line)["status"] for line in lines] == ["pass", "fail", "error"]


class TestHarm:
    def test_every_file_can_be_read_whatever_an_agent_says(self, run: Command) -> None:
        replies: list[Json] = [calls(text[:2000], text=text) for text in HOSTILE]
        replies += [{"error": {"kind": "agent", "message": text}} for text in HOSTILE]
        ids = [f"c{number} {text[:50]}" for number, text in enumerate([*HOSTILE, *HOSTILE])]
        ids = [name.replace("\0", "").encode(errors="replace").decode() for name in ids]
        lines = [json.dumps({"id": name, **reply}) for name, reply in zip(ids, replies, strict=True)]
        run.write("replies.jsonl", "\n".join(lines))
        target = {"name": "recorded", "provider": "replay", "file": "replies.jsonl"}
        run.write("h.eval.yaml", json.dumps({"targets": [target], "cases": cases(*ids)}))
        github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(run.folder / "summary.md")}
        result = run("eval", "h.eval.yaml", *ALL, "--dump-traces", "traces", "-v", env=github)
        assert result.code == 3, result.err
        assert len(documents(run)) == len(run.records()) == int(xml(run).get("tests") or 0) == 2 * len(HOSTILE)
        assert documents(run) == run.records()
        assert len(list((run.folder / "traces").rglob("*.json"))) == 2 * len(HOSTILE)
        for path in (run.folder / "traces").rglob("*.json"):
            json.loads(path.read_bytes())
        assert (run.folder / "summary.md").read_bytes() == (run.folder / "results.md").read_bytes()
        found = obeyed(result.out)
        assert [each[0] for each in found] == ["error"] * 10 + ["notice"]
        assert all(properties["file"] == "h.eval.yaml" for _, properties, _ in found[:10])
        assert obeyed(result.err) == []

    def test_a_secret_is_in_no_file(self, run: Command) -> None:
        run.write("agent.py", LEAKS)
        target = program("agent.py", "{case_id}", env=["MY_SECRET"])
        check: Json = {
            "type": "tool_trajectory",
            "mode": "exact",
            "expected": [{"tool": "search", "input": {"query": "x"}}],
        }
        run.write("secret.eval.yaml", {"targets": [target], "cases": cases("calls", "text", "fails", check=check)})
        env = {"MY_SECRET": SECRET, "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(run.folder / "summary.md")}
        before = set(run.folder.iterdir())
        more = ("--include-messages", "--include-trace", "--dump-traces", "traces")
        result = run("eval", "secret.eval.yaml", *ALL, *more, env=env)
        assert result.code == 3
        left = [path for path in run.folder.rglob("*") if path not in before and path.is_file()]
        texts = {path.name: path.read_text(encoding="utf-8", errors="replace") for path in left}
        assert len(texts) == len(NAMES) + 1 + 3 + len(["runs.db", ".gitignore"])
        for place, text in {**texts, "log": result.out + result.err}.items():
            assert [name for name, form in FORMS.items() if form.lower() in text.lower()] == [], place
        assert all("[redacted:MY_SECRET]" in texts[name] for name in NAMES)

    @pytest.mark.skipif(sys.platform != "linux", reason="file systems are mounted in another way elsewhere")
    @pytest.mark.parametrize("name", NAMES)
    def test_a_full_disk_leaves_what_can_be_read(self, run: Command, name: str) -> None:
        run.write("a.eval.yaml", FULL)
        with mounted(run.folder / "small", "size=16k"):
            result = run.process("eval", "a.eval.yaml", "--out", f"small/{name}", "--json", "--out", "results.jsonl")
            data = (run.folder / "small" / name).read_bytes()
            names = [path.name for path in (run.folder / "small").iterdir()]
        if name == "results.md":  # it fits, as it always does
            assert (result.code, data[:20]) == (1, "# ❌ 100 of 100 runs".encode()[:20])
            return
        assert result.code == 3
        assert f"small/{name} cannot be written: No space left on device" in result.err
        assert "Traceback" not in result.err
        assert names == [name]
        if name.endswith((".yaml", ".yml")):
            assert 1 <= len(list(yaml.safe_load_all(data))) < 100
        elif name.endswith(".xml"):
            assert data == b""
        assert len(run.records()) >= 1, "the other files have what was finished"

    @pytest.mark.skipif(sys.platform != "linux", reason="file systems are mounted in another way elsewhere")
    def test_a_full_disk_of_traces_ends_it(self, run: Command) -> None:
        run.write(
            "a.eval.yaml", {"targets": [mocked(calls("guess" * 2_000))], "cases": cases(*[f"c{n}" for n in range(50)])}
        )
        with mounted(run.folder / "small", "size=64k"):
            result = run.process("eval", "a.eval.yaml", "--dump-traces", "small/traces", "--json")
            whole = [path.read_bytes() for path in (run.folder / "small").rglob("*.json")]
        assert result.code == 3
        assert "small/traces cannot be written: No space left on device" in result.err
        assert [json.loads(data)["attempt"] for data in whole if data] == [1] * (len(whole) - whole.count(b""))


class TestTraces:
    def test_every_attempt_has_its_trace(self, run: Command) -> None:
        run.write("agent.py", FLAKY)
        run.write(
            "f.eval.yaml",
            {
                "targets": [program("agent.py", name="flaky")],
                "cases": cases("a", check={"type": "tool_trajectory", "minimums": {"try2": 1}}),
            },
        )
        assert run("eval", "f.eval.yaml", "--dump-traces", "traces", "--repeat", "2").code == 0
        folder = run.folder / "traces" / "f" / "flaky"
        names = ["a.attempt-1.json", "a.attempt-2.json", "a~repeat-2.attempt-1.json", "a~repeat-2.attempt-2.json"]
        assert sorted(path.name for path in folder.iterdir()) == names
        found = [json.loads((folder / name).read_bytes()) for name in names]
        assert [(each["repeat"], each["attempt"], each["trace"][0]["name"]) for each in found] == [
            (0, 1, "try1"),
            (0, 2, "try2"),
            (1, 1, "try1"),
            (1, 2, "try2"),
        ]
        assert {each["case_id"] for each in found} == {"a"}

    def test_a_run_that_ran_out_of_time_has_a_file_without_a_trace(self, run: Command) -> None:
        run.write("s.eval.yaml", {"targets": [mocked(calls("search"), delay_ms=5_000)], "cases": cases("a")})
        assert run("eval", "s.eval.yaml", "--dump-traces", "t", "--run-timeout", "0.1").code == 3
        (path,) = (run.folder / "t").rglob("*.json")
        assert json.loads(path.read_bytes())["trace"] is None

    def test_a_trace_kept_elsewhere_is_fetched(self, run: Command) -> None:
        run.write("trace.json", json.dumps([{"type": "tool_call", "name": "search"}]))
        run.write("e.eval.yaml", {"targets": [mocked({"text": "x", "trace_ref": "trace.json"})], "cases": cases("a")})
        assert run("eval", "e.eval.yaml", "--dump-traces", "t").code == 0
        (path,) = (run.folder / "t").rglob("*.json")
        assert json.loads(path.read_bytes())["trace"] == [{"type": "tool_call", "name": "search"}]

    def test_ids_never_become_paths(self, run: Command) -> None:
        ids = ["../../x", "/abs", "CON", "a", "A", "x" * 300, "b/c", "..", "d\\e"]
        run.write("ids.eval.yaml", {"targets": [mocked(calls("search"), name="../up")], "cases": cases(*ids)})
        assert run("eval", "ids.eval.yaml", "--dump-traces", "sub/traces").code == 0
        made = {path for path in run.folder.rglob("*") if path.is_file() and path.parent.name != ".agentv"}
        traces = {path for path in made if path.is_relative_to(run.folder / "sub" / "traces")}
        assert {path.name for path in made - traces} == {"ids.eval.yaml"}
        assert {json.loads(path.read_bytes())["case_id"] for path in traces} == set(ids)
        folded = [str(path).casefold() for path in traces]
        assert not any(one == other for one, other in combinations(folded, 2))

    def test_traces_are_replayed_by_name_and_as_lines(self, run: Command) -> None:
        run.write("a.eval.yaml", {"targets": [mocked(calls("search"), calls("guess"))], "cases": cases("one", "Two!")})
        assert run("eval", "a.eval.yaml", "--dump-traces", "t").code == 1
        files = sorted((run.folder / "t").rglob("*.json"))
        run.write("t.jsonl", b"".join(path.read_bytes() for path in files))
        named = {"name": "named", "provider": "replay", "file": "t/a/scripted/{case_id}.attempt-1.json"}
        lines = {"name": "lines", "provider": "replay", "file": "t.jsonl"}
        run.write("b.eval.yaml", {"targets": [named, lines], "cases": cases("one", "Two!")})
        *records, _ = run("eval", "b.eval.yaml", "--json").lines
        ends = {(record["case_id"], record["target"]): record["status"] for record in records}
        assert ends == {
            ("one", "named"): "pass",
            ("one", "lines"): "pass",
            ("Two!", "named"): "error",
            ("Two!", "lines"): "fail",
        }
        refused = run("eval", "b.eval.yaml", "--dump-traces", "t")
        assert refused.code == 2
        assert "holds files that the eval is read from" in refused.err

    @pytest.mark.parametrize("name", ["a.eval.yaml", "a.eval.yaml/x", "."])
    def test_a_folder_that_cannot_be_used_is_told_before_anything_runs(self, run: Command, name: str) -> None:
        run.write("agent.py", "from pathlib import Path; Path('touched').touch(); print('{}')")
        run.write("a.eval.yaml", {"targets": [program("agent.py")], "cases": cases("a")})
        result = run("eval", "a.eval.yaml", "--dump-traces", name)
        assert (result.code, result.out) == (2, "")
        assert not (run.folder / "touched").exists()


class TestGitHub:
    def test_failures_are_annotated_where_they_stand(self, mixed: Command) -> None:
        result = mixed("eval", "mixed.eval.yaml", env={"GITHUB_ACTIONS": "true"})
        assert [(name, properties["line"], message) for name, properties, message in obeyed(result.out)] == [
            ("error", line_of(mixed, "bad"), "search called 0 times (minimum: 1)"),
            ("error", line_of(mixed, "down"), "nobody is there"),
        ]

    def test_with_json_the_annotations_are_on_standard_error(self, mixed: Command) -> None:
        result = mixed("eval", "mixed.eval.yaml", "--json", env={"GITHUB_ACTIONS": "true"})
        assert len(result.lines) == 4
        assert [each[0] for each in obeyed(result.err)] == ["error", "error"]

    @pytest.mark.parametrize("value", ["", "false", "1"])
    def test_elsewhere_nothing_is_annotated(self, mixed: Command, value: str) -> None:
        result = mixed("eval", "mixed.eval.yaml", env={"GITHUB_ACTIONS": value})
        assert obeyed(result.out + result.err) == []

    def test_mistakes_in_files_are_annotated(self, run: Command) -> None:
        run.write("a.eval.yaml", "targets: [{name: m, provider: mock}]\ncases:\n  - {id: a, inptu: b}\n")
        result = run("eval", "a.eval.yaml", "--json", env={"GITHUB_ACTIONS": "true"})
        found = obeyed(result.err)
        assert result.code == 2
        assert found[0][1] == {"file": "a.eval.yaml", "line": "3", "col": "5", "title": "agentv"}
        assert any("inptu" in message for _, _, message in found)
        assert len(result.lines) == 1

    def test_the_page_is_in_the_summary_without_being_asked_for(self, mixed: Command) -> None:
        mixed.write("summary.md", "before\n")
        env = {"GITHUB_STEP_SUMMARY": str(mixed.folder / "summary.md")}
        assert mixed("eval", "mixed.eval.yaml", "--case", "good", env=env).code == 0
        assert (mixed.folder / "summary.md").read_text().startswith("before\n# ✅ 1 run passed\n")

    def test_a_summary_that_cannot_be_written_costs_a_warning_only(self, mixed: Command) -> None:
        env = {"GITHUB_STEP_SUMMARY": str(mixed.folder / "nowhere" / "summary.md")}
        result = mixed("eval", "mixed.eval.yaml", "--case", "good", env=env)
        assert result.code == 0
        assert result.err == "warning: the page for $GITHUB_STEP_SUMMARY cannot be written: No such file or directory\n"

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
    def test_nor_does_one_that_does_not_fit_cost_the_verdict(self, mixed: Command) -> None:
        result = mixed("eval", "mixed.eval.yaml", "--case", "good", env={"GITHUB_STEP_SUMMARY": "/dev/full"})
        assert result.code == 0
        assert result.err == "warning: the page for $GITHUB_STEP_SUMMARY cannot be written: No space left on device\n"


def test_a_format_of_another_package_is_found_by_its_suffix(run: Command) -> None:
    run.write(
        "counts.py",
        "class Counts:\n"
        "    def __init__(self, path, redactor):\n"
        "        self.path, self.count = path, 0\n"
        "    def handle(self, event):\n"
        "        self.count += hasattr(event, 'record')\n"
        "        if hasattr(event, 'summary'):\n"
        "            self.path.write_text(str(self.count))\n",
    )
    run.write("counts-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: counts\nVersion: 1.0\n")
    run.write("counts-1.0.dist-info/entry_points.txt", "[agentv.reporters]\ncount = counts:Counts\nbad = nowhere:X\n")
    run.write("a.eval.yaml", {"targets": [mocked(calls("search"))], "cases": cases("a", "b")})
    env: dict[str, Any] = {"PYTHONPATH": str(run.folder)}
    assert run.process("eval", "a.eval.yaml", "--out", "r.count", env=env).code == 0
    assert (run.folder / "r.count").read_text() == "2"
    broken = run.process("eval", "a.eval.yaml", "--out", "r.bad", env=env)
    assert (broken.code, broken.out) == (2, "")
    assert "'bad' from counts does not load" in broken.err
