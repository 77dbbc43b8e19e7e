"""`agentv convert-eval`: what it writes, prints and exits with."""

import json

import pytest

from tests.support.command import Command

CONFIG = """\
prompts: ["{{q}}"]
providers: [echo]
tests:
  - vars: {q: A refund takes 14 days}
    assert:
      - {type: icontains, value: REFUND}
      - {type: similar, value: x}
"""


def test_converted_eval_is_valid_and_runs(run: Command) -> None:
    run.write("promptfooconfig.yaml", CONFIG)
    done = run("convert-eval", "promptfooconfig.yaml", "--out", "out")
    assert done.code == 0
    assert "promptfooconfig.yaml:7:9: left out: similar: it needs a model of text" in done.out
    [name] = [path.name for path in (run.folder / "out").iterdir()]
    assert run("validate", f"out/{name}").code == 0
    assert run("eval", f"out/{name}", "--no-store").code == 0


def test_strict_exits_with_3_when_something_was_left_out(run: Command) -> None:
    run.write("promptfooconfig.yaml", CONFIG)
    assert run("convert-eval", "promptfooconfig.yaml", "--out", "out", "--strict").code == 3
    run.write("promptfooconfig.yaml", CONFIG.replace("      - {type: similar, value: x}\n", ""))
    assert run("convert-eval", "promptfooconfig.yaml", "--out", "two", "--strict").code == 0


def test_report_as_json(run: Command) -> None:
    run.write("promptfooconfig.yaml", CONFIG)
    report = json.loads(run("convert-eval", "promptfooconfig.yaml", "--out", "out", "--json").out)
    [source] = report["sources"]
    assert (source["tool"], source["cases"]) == ("promptfoo", 1)
    assert source["assertions"] == {
        "total": 2,
        "translated": 1,
        "deterministic": 1,
        "deterministic_translated": 1,
    }
    [left_out] = source["left_out"]
    assert (left_out["file"], left_out["line"], left_out["path"]) == ("promptfooconfig.yaml", 7, "tests[0].assert[1]")


def test_files_are_not_replaced_unless_asked(run: Command) -> None:
    run.write("promptfooconfig.yaml", CONFIG)
    assert run("convert-eval", "promptfooconfig.yaml", "--out", "out").code == 0
    assert run("convert-eval", "promptfooconfig.yaml", "--out", "out").code == 0
    [path] = (run.folder / "out").iterdir()
    path.write_text("mine: true\n", encoding="utf-8")
    refused = run("convert-eval", "promptfooconfig.yaml", "--out", "out")
    assert (refused.code, "exists and differs; --force replaces it" in refused.err) == (2, True)
    assert path.read_text(encoding="utf-8") == "mine: true\n"
    assert run("convert-eval", "promptfooconfig.yaml", "--out", "out", "--force").code == 0


def test_folder_keeps_its_structure(run: Command) -> None:
    run.write("suites/a/promptfooconfig.yaml", CONFIG)
    run.write("suites/b/promptfooconfig.yaml", CONFIG)
    run.write("suites/b/unrelated.yaml", "a: 1\n")
    assert run("convert-eval", "suites", "--out", "out").code == 0
    assert sorted(str(path.relative_to(run.folder / "out")) for path in (run.folder / "out").rglob("*.yaml")) == [
        "a/a.eval.yaml",
        "b/b.eval.yaml",
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("other.yaml", "a: 1\n", "this is no eval of a known tool"),
        ("broken.yaml", "a: [1\n", "broken.yaml:"),
        ("broken.json", "{", "not JSON"),
    ],
)
def test_file_that_cannot_be_converted_is_refused(run: Command, name: str, text: str, message: str) -> None:
    run.write(name, text)
    done = run("convert-eval", name, "--out", "out")
    assert (done.code, message in done.err) == (2, True)
    assert not (run.folder / "out").exists()
