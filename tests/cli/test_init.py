"""`agentv init`: from nothing to a failing case that one understands, without any key."""

import json
import re
import sys
import time
from pathlib import Path

import pytest

from agentv.cli.init import BEGIN, END
from tests.cli.test_eval_robustness import mounted
from tests.support.command import Command, statuses, strict_json


def test_a_new_project_runs_and_teaches_with_its_one_failure(run: Command) -> None:
    began = time.monotonic()
    made = run("init", "demo")
    assert (made.code, made.err) == (0, "")
    assert made.out.endswith("next: agentv eval demo\n")
    assert run("validate", "demo").code == 0
    result = run("eval", "demo", "--out", "results.jsonl")
    records = run.records()
    assert time.monotonic() - began < 30, "seconds, even on a busy machine"

    assert (result.code, result.err) == (1, "")
    found = statuses(records)
    assert [name for name, status in found.items() if status != "pass"] == ["refund-large"]
    assert found["refund-large"] == "fail"
    assert len(found) >= 3
    lines = result.out.splitlines()
    heads = [line for line in lines if re.match("(PASS|FAIL|ERROR) ", line)]
    assert heads[-1].startswith("FAIL refund-large"), "what failed comes last, next to the summary"
    assert any(re.match(r"\s+✗ ask_approval.*│", line) for line in lines), "the diff names what is missing"
    assert any("missing call: ask_approval (expected after check_policy)" in line for line in lines)
    sums = r"^3 passed, 1 failed, 0 errors: 75 % of 4 measured passed \(95 % CI 30.95 %\)$"
    assert re.search(sums, result.out, re.MULTILINE)
    assert re.fullmatch(r"next: agentv eval demo/\S+ --case refund-large -v", lines[-1])
    assert all(record["tokens_usage"] for record in records)
    assert list(run.temporary.iterdir()) == [], "every attempt's workspace is gone"


def test_the_eval_tells_the_editor_where_its_schema_is(run: Command) -> None:
    assert run("init").code == 0
    (path,) = run.folder.glob("*.eval.yaml")
    first = path.read_text(encoding="utf-8").splitlines()[0]
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    assert found is not None
    schema = strict_json(Path(path.parent, found[1]).read_text(encoding="utf-8"))
    assert schema == strict_json(run("schema").out), "the one that `agentv schema` prints"
    assert "cases" in json.dumps(schema)


def test_nothing_is_overwritten_unless_asked_for(run: Command) -> None:
    run.write("demo/agent.py", "mine")
    result = run("init", "demo")
    assert (result.code, result.out) == (2, "")
    assert "demo already has agent.py" in result.err
    assert [path.name for path in (run.folder / "demo").iterdir()] == ["agent.py"]
    assert (run.folder / "demo/agent.py").read_text() == "mine"
    assert run("init", "demo", "--force").code == 0
    assert (run.folder / "demo/agent.py").read_text() != "mine"
    assert run("init", "demo").code == 2


def test_a_folder_that_cannot_be_made_is_told(run: Command) -> None:
    run.write("file", "")
    for folder in ("file", "file/below"):
        result = run("init", folder)
        assert result.code == 2
        assert "file" in result.err
        assert "Traceback" not in result.err


def test_a_folder_with_spaces_gets_a_command_that_can_be_typed(run: Command) -> None:
    assert run("init", "my demo").out.endswith("next: agentv eval 'my demo'\n")


@pytest.mark.skipif(sys.platform != "linux", reason="file systems are mounted in another way elsewhere")
def test_a_full_disk_is_told_by_name(run: Command) -> None:
    with mounted(run.folder / "small", "size=4k"):
        result = run.process("init", "small/project")
    assert result.code == 2
    assert result.err == "small/project cannot be written: No space left on device\n"


def test_with_json_the_files_are_listed(run: Command) -> None:
    made = strict_json(run("init", "demo", "--json").out)
    assert made["schema"] == "agentv.init/1"
    assert made["next"] == "agentv eval demo"
    assert {file["action"] for file in made["files"]} == {"created"}
    assert all((run.folder / file["file"]).is_file() for file in made["files"])
    refused = run("init", "demo", "--json")
    assert (refused.code, strict_json(refused.out)["schema"]) == (2, "agentv.problems/1")


class TestTheSectionForCodingAgents:
    def test_is_written_beside_a_new_project(self, run: Command) -> None:
        assert run("init", "--agents").code == 0
        text = (run.folder / "AGENTS.md").read_text()
        assert text.startswith(BEGIN)
        assert text.endswith(f"{END}\n")
        assert (run.folder / "agentv.yaml").exists()

    def test_names_only_commands_that_there_are(self, run: Command) -> None:
        run("init", "--agents")
        text = (run.folder / "AGENTS.md").read_text()
        commands = re.findall("`agentv ([^`]+)`", text)
        assert len(commands) >= 5
        for command in commands:
            words = command.split()
            options = [word for word in words if word.startswith("--")]
            depth = 2 if words[0] in {"runs", "executions", "evaluators", "providers"} else 1
            shown = run(*words[:depth], "--help")
            assert shown.code == 0, command
            assert [option for option in options if option not in shown.out] == []

    def test_is_the_same_when_written_again(self, run: Command) -> None:
        run("init", "--agents")
        before = (run.folder / "AGENTS.md").read_bytes()
        again = run("init", "--agents")
        assert (again.code, again.out.splitlines()[0]) == (0, "unchanged AGENTS.md")
        assert (run.folder / "AGENTS.md").read_bytes() == before

    @pytest.mark.parametrize("mine", ["# Mine\n", "# Mine", "# Mine\r\n\r\nText\r\n", ""])
    def test_leaves_the_rest_of_the_file_alone(self, run: Command, mine: str) -> None:
        run.write("evals/a.eval.yaml", {"cases": []})
        path = run.folder / "AGENTS.md"
        path.write_bytes(mine.encode())
        assert run("init", "--agents").out.startswith("updated AGENTS.md\n")
        written = path.read_bytes().decode()
        assert written.startswith(mine or BEGIN)
        assert written.count(BEGIN) == written.count(END) == 1
        assert ("\r\n" in mine) == ("\r\n" in written)
        assert not ("\r\n" in mine and re.search(r"(?<!\r)\n", written))
        assert not (run.folder / "agentv.yaml").exists(), "there is a project already"
        path.write_bytes((written + "After.\n").encode())
        assert run("init", "--agents").out.startswith("unchanged")
        path.write_bytes((written.replace("Exit codes", "Old words") + "After.\n").encode())
        assert run("init", "--agents").out.startswith("updated")
        assert path.read_bytes().decode() == written + "After.\n"

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (f"# Mine\n{BEGIN}\n".encode(), "AGENTS.md:2: the section begins with"),
            (b"\xff\xfe", "AGENTS.md is not valid UTF-8"),
        ],
    )
    def test_is_not_written_into_a_file_that_is_not_understood(
        self, run: Command, content: bytes, message: str
    ) -> None:
        (run.folder / "AGENTS.md").write_bytes(content)
        result = run("init", "--agents")
        assert result.code == 2
        assert message in result.err
        assert [path.name for path in run.folder.iterdir()] == ["AGENTS.md"]
        assert (run.folder / "AGENTS.md").read_bytes() == content
