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


def promptfoo_results(*rows: tuple[str, object, bool]) -> str:
    results = [
        {
            "prompt": {"raw": prompt},
            "vars": {"q": prompt},
            "provider": {"id": "echo"},
            "response": {} if output is None else {"output": output},
            "success": success,
        }
        for prompt, output, success in rows
    ]
    return json.dumps({"results": {"version": 3, "results": results}})


CHECKED = """\
prompts: ["{{q}}"]
providers: [echo]
tests:
  - {vars: {q: one}, assert: [{type: contains, value: "1"}]}
  - {vars: {q: two}, assert: [{type: contains, value: "2"}]}
  - {vars: {q: three}, assert: [{type: contains, value: "3"}]}
  - {vars: {q: four}, assert: [{type: llm-rubric, value: It is four}]}
"""


def test_check_compares_verdicts_case_by_case(run: Command) -> None:
    run.write("promptfooconfig.yaml", CHECKED)
    rows = [("one", "1", True), ("two", "2", False), ("three", None, True), ("four", "4", True), ("five", "5", True)]
    run.write("results.json", promptfoo_results(*rows))
    arguments = ("convert-eval", "promptfooconfig.yaml", "--out", "out", "--check", "results.json")
    done = run(*arguments)
    assert done.code == 1
    assert "fail there, pass here" in done.out
    assert "the result does not hold the output" in done.out
    assert "check: five [echo]: not compared: no converted case has this test" in done.out
    assert "check: 1 verdict the same, 1 different, 3 not compared" in done.out
    checked = json.loads(run(*arguments, "--json").out)["check"]
    assert [each["agreement"] for each in checked] == ["same", "different", *["not_compared"] * 3]


FILED = """\
prompts: ['[ {"role": "user", "content": "{{q}}"} ]']
providers: [echo]
tests:
  - vars: {q: file://question.txt, data: '{ "a": 1 }'}
    assert:
      - {type: contains, value: "1"}
      - {type: finish-reason, value: stop}
"""


def test_check_finds_cases_whose_prompt_and_variables_are_written_in_another_way(run: Command) -> None:
    run.write("promptfooconfig.yaml", FILED)
    run.write("question.txt", "one\n")
    row = {
        "prompt": {"raw": '[{"role":"user","content":"one"}]'},
        "vars": {"q": "file://question.txt", "data": '{"a":1}\n'},
        "response": {"output": "1", "finishReason": "stop"},
        "success": True,
    }
    run.write("results.json", json.dumps({"results": {"results": [row]}}))
    done = run("convert-eval", "promptfooconfig.yaml", "--out", "out", "--check", "results.json")
    assert "check: 1 verdict the same, 0 different, 0 not compared" in done.out


DESCRIBED = """\
prompts: ["{{q}}"]
providers: [echo]
tests:
  - {description: first, vars: {q: one}, assert: [{type: contains, value: "1"}]}
  - {description: "in {{lang}}", vars: {q: two, lang: French}, assert: [{type: contains, value: "2"}]}
"""


def test_check_does_not_mix_up_tests_with_the_same_prompt(run: Command) -> None:
    run.write("promptfooconfig.yaml", DESCRIBED)
    rows = [
        {"vars": {"q": "one"}, "prompt": {"raw": "one"}, "testCase": {"description": "another"}},
        {"vars": {"q": "two", "lang": "French"}, "prompt": {"raw": "two"}, "testCase": {"description": "in French"}},
    ]
    results = [{**row, "response": {"output": "2"}, "success": True} for row in rows]
    run.write("results.json", json.dumps({"results": {"results": results}}))
    done = run("convert-eval", "promptfooconfig.yaml", "--out", "out", "--check", "results.json")
    assert "check: another: not compared: no converted case has this test" in done.out
    assert "check: 1 verdict the same, 0 different, 2 not compared" in done.out


def test_check_names_cases_without_a_result(run: Command) -> None:
    run.write("promptfooconfig.yaml", CHECKED)
    run.write("results.json", promptfoo_results(("one", "1", True)))
    done = run("convert-eval", "promptfooconfig.yaml", "--out", "out", "--check", "results.json")
    assert (done.code, "1 verdict the same, 0 different, 3 not compared" in done.out) == (0, True)


def test_check_of_agentv_results(run: Command) -> None:
    case = "  - {id: %s, criteria: greets, input: Hi, assertions: [{type: contains, value: Hello}]}\n"
    run.write("greet.eval.yaml", "tests:\n" + case % "a" + case % "b" + case % "c")
    rows = [
        {"test_id": "a", "score": 1, "output": [{"role": "assistant", "content": "Hello!"}]},
        {"test_id": "b", "score": 1, "execution_status": "ok", "candidate_answer": "Bye"},
        {"test_id": "c", "score": 0, "error": "timeout"},
    ]
    run.write("results.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    done = run("convert-eval", "greet.eval.yaml", "--from", "agentv-npm", "--out", "out", "--check", "results.jsonl")
    assert "check: b: pass there, fail here" in done.out
    assert "check: c: not compared: the other tool has an error and no verdict" in done.out
    assert "check: 1 verdict the same, 1 different, 1 not compared" in done.out


def test_check_refuses_another_file(run: Command) -> None:
    run.write("promptfooconfig.yaml", CHECKED)
    run.write("results.json", "[]")
    done = run("convert-eval", "promptfooconfig.yaml", "--out", "out", "--check", "results.json")
    assert (done.code, "neither an output of promptfoo" in done.err) == (2, True)
