"""Tests of collection: names, markers, skipped and deselected cases."""

import json

import pytest

from tests.support.command import calls, cases, mocked
from tests.support.conversations import write_conversations
from tests.support.pytest_project import Project, failing, support

pytest_plugins = ["pytester"]


def test_each_case_with_each_target_and_repetition_is_a_test(project: Project) -> None:
    targets = [mocked(name="first"), mocked(name="second")]
    project.write("evals/support.eval.yaml", {"targets": targets, "cases": [*cases("a"), *cases("b", repeat=2)]})
    assert project.collected() == [
        "evals/support.eval.yaml::a[first]",
        "evals/support.eval.yaml::a[second]",
        "evals/support.eval.yaml::b[first]",
        "evals/support.eval.yaml::b[first-2]",
        "evals/support.eval.yaml::b[second]",
        "evals/support.eval.yaml::b[second-2]",
    ]


def test_both_suffixes_are_evals_and_other_yaml_is_not(project: Project) -> None:
    for name in ("a.eval.yaml", "b.eval.yml", "c.yaml", "eval.yaml"):
        project.write(name, support())
    assert {name.partition("::")[0] for name in project.collected()} == {"a.eval.yaml", "b.eval.yml"}


@pytest.mark.parametrize("args", [(), ("--agentv-case", "*"), ("-o", "agentv=false")])
def test_nothing_is_collected_unless_it_is_asked_for(project: Project, args: tuple[str, ...]) -> None:
    project.write("a.eval.yaml", support())
    project.write("broken.eval.yaml", "cases: [")
    assert project.here(*args).ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_the_ini_file_can_ask_for_it(project: Project) -> None:
    project.write("a.eval.yaml", support())
    project.write("pytest.ini", "[pytest]\nagentv = true\n")
    project.here().assert_outcomes(passed=1, failed=1)


def test_cases_of_a_dataset_are_collected_where_they_stand(project: Project) -> None:
    project.write("cases.jsonl", "\n" + json.dumps(failing()[0]))
    project.write("a.eval.yaml", {"targets": [mocked(calls("search"), name="t")], "dataset": "cases.jsonl"})
    result = project.here("--agentv", "-vv", "--tb=line")
    result.stdout.fnmatch_lines(["a.eval.yaml::verifies?t? <- cases.jsonl FAILED*", "*/cases.jsonl:2: missing call*"])


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (["a.eval.yaml::verifies[agent]"], ["verifies[agent]"]),
        (["a.eval.yaml::finds"], ["finds[agent]", "finds[agent-2]"]),
        (["-k", "verifies and not 2"], ["verifies[agent]"]),
        (["--agentv-case", "f*"], ["finds[agent]", "finds[agent-2]"]),
        (["--agentv-case", "verifies", "--agentv-case", "f?nds", "-k", "2"], ["finds[agent-2]", "verifies[agent-2]"]),
        (["--agentv-case", "nobody"], []),
    ],
)
def test_cases_are_chosen(project: Project, args: list[str], names: list[str]) -> None:
    project.write("a.eval.yaml", support())
    assert project.collected(*args, "--agentv-repeat", "2") == [f"a.eval.yaml::{name}" for name in names]


def test_targets_are_chosen(project: Project) -> None:
    targets = [mocked(name="first"), mocked(name="second"), mocked(name="third")]
    project.write("a.eval.yaml", {"targets": targets, "target": "first", "cases": cases("a")})
    assert project.collected("--agentv-target", "second", "--agentv-target", "third") == [
        "a.eval.yaml::a[second]",
        "a.eval.yaml::a[third]",
    ]


def test_a_target_that_is_not_there_is_an_error_of_the_option(project: Project) -> None:
    project.write("a.eval.yaml", support())
    result = project.here("--agentv", "--agentv-target", "agend")
    result.stdout.fnmatch_lines(["*--agentv-target: got 'agend'; did you mean 'agent'? Expected one of agent*"])
    assert result.ret == pytest.ExitCode.INTERRUPTED


def test_a_second_run_is_told_apart_from_a_target_that_is_called_like_it(project: Project) -> None:
    project.write("a.eval.yaml", {"targets": [mocked(name="gpt"), mocked(name="gpt-2")], "cases": cases("a", repeat=2)})
    names = ["a[gpt]", "a[gpt#2]", "a[gpt-2]", "a[gpt-2-2]"]
    assert project.collected() == [f"a.eval.yaml::{name}" for name in names]


@pytest.mark.parametrize(
    ("name", "shown"), [("a::b", "a:b"), ("x[y]", "x[y]"), ("é ü", "é ü"), ("tab\there", "tab\\u0009here")]
)
def test_any_case_can_be_chosen_by_its_name(project: Project, name: str, shown: str) -> None:
    project.write("a.eval.yaml", {"targets": [mocked(name="t")], "cases": cases(name, "other")})
    node = f"a.eval.yaml::{shown}[t]"
    assert project.collected() == [node, "a.eval.yaml::other[t]"]
    assert project.collected(node) == [node]


def test_tags_are_markers(project: Project) -> None:
    tags = {"smoke": ["smoke"], "key": ["needs a key"], "both": ["smoke", "needs a key"], "none": []}
    tagged = [case for name, words in tags.items() for case in cases(name, tags=words)]
    project.write("a.eval.yaml", {"targets": [mocked(name="t")], "cases": tagged})
    project.write("test_python.py", "def test_python(): pass")
    assert project.collected("-m", "smoke and not needs_a_key") == ["a.eval.yaml::smoke[t]"]
    assert len(project.collected("-m", "agentv")) == 4
    assert project.collected("-m", "not agentv") == ["test_python.py::test_python"]


TAGS = ["skip", "xfail", "skipif", "_private", "not", "filterwarnings", "usefixtures"]


@pytest.mark.parametrize("tag", TAGS, ids=lambda tag: f"tag_{tag}")  # other plugins look for tests called `xfail`
def test_a_tag_that_means_something_to_pytest_changes_nothing(project: Project, tag: str) -> None:
    project.write("a.eval.yaml", {"targets": [mocked(calls(), name="t")], "cases": cases("a", tags=[tag])})
    assert project.collected("-m", f"tag_{tag}") == ["a.eval.yaml::a[t]"]
    project.here("--agentv").assert_outcomes(failed=1)


def test_a_marker_that_the_project_registered_is_used_as_it_is(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\nmarkers =\n    slow(why): takes long\n")
    project.write("a.eval.yaml", {"targets": [mocked(calls("search"), name="t")], "cases": cases("a", tags=["slow"])})
    project.here("--agentv", "-m", "slow").assert_outcomes(passed=1)
    assert "slow: a tag" not in project.here("--agentv", "--markers").stdout.str()


def test_a_case_that_says_skip_is_skipped_with_its_reason(project: Project) -> None:
    skipped = [*cases("why", skip="the API is down"), *cases("just", skip=True), *cases("runs")]
    project.write("a.eval.yaml", {"targets": [mocked(calls("search"), name="t")], "cases": skipped})
    result = project.here("--agentv", "-rs")
    result.assert_outcomes(passed=1, skipped=2)
    result.stdout.fnmatch_lines(["SKIPPED*a.eval.yaml:*the API is down", "SKIPPED*a.eval.yaml:*the case says `skip`"])


def test_others_are_left_out_when_a_case_says_only(project: Project) -> None:
    some = [*cases("a", "b"), *cases("this", only=True), *cases("and-this", only=True, skip=True)]
    project.write("a.eval.yaml", {"targets": [mocked(calls("search"), name="t")], "cases": some})
    project.write("b.eval.yaml", support())
    result = project.here("--agentv", "-W", "default")
    result.assert_outcomes(passed=2, failed=1, skipped=1, deselected=2, warnings=1)
    result.stdout.fnmatch_lines(["*2 cases left out: others say `only`"])


def test_only_is_an_error_where_warnings_are(project: Project) -> None:
    project.write("a.eval.yaml", {"targets": [mocked(name="t")], "cases": [*cases("a"), *cases("b", only=True)]})
    result = project.here("--agentv")
    result.assert_outcomes(errors=1)
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.fnmatch_lines(["*ERROR collecting a.eval.yaml*", "1 case left out: others say `only`"])


def test_every_mistake_in_a_file_is_told_with_its_place(project: Project) -> None:
    project.write("evals/bad.eval.yaml", "cases:\n  - id: a\n    inputs: hi\n    threshold: 7\n")
    project.write("good.eval.yaml", {"targets": [mocked(calls("search"), name="t")], "cases": cases("a")})
    result = project.here("--agentv", "--continue-on-collection-errors")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*ERROR collecting evals/bad.eval.yaml*",
            "evals/bad.eval.yaml:1:1: no target to test*",
            "evals/bad.eval.yaml:3:5: unknown key 'inputs'; did you mean 'input'?",
            "evals/bad.eval.yaml:4:16: threshold: expected*",
        ]
    )
    for line in ("*.py:*", "*Traceback*", "E  *"):
        result.stdout.no_fnmatch_line(line)


@pytest.mark.parametrize(
    ("option", "value"),
    [("repeat", "0"), ("repeat", "x"), ("max-concurrency", "-1"), ("timeout", "0"), ("timeout", "nan")],
)
def test_an_option_that_makes_no_sense_is_refused(project: Project, option: str, value: str) -> None:
    result = project.here("--agentv", f"--agentv-{option}={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--agentv-{option}: expected *got '{value}'"])


def test_collecting_runs_nothing_and_needs_no_secret(project: Project) -> None:
    target = {"name": "t", "provider": "cli", "command": ["${NOT_SET}"]}
    project.write("a.eval.yaml", {"targets": [target], "cases": failing()})
    assert project.collected() == ["a.eval.yaml::verifies[t]"]
    assert project.collected("--setup-plan") == ["a.eval.yaml::verifies[t]"]


def test_the_name_of_a_test_holds_the_persona(project: Project) -> None:
    write_conversations(project.folder)
    (project.folder / "broken.eval.yaml").unlink()
    names = [name.partition("::")[2] for name in project.collected("--agentv-repeat", "2")]
    assert names == [
        *("refund[impatient-agent]", "refund[impatient-agent-2]", "refund[agent]", "refund[agent-2]"),
        *("greeting[polite-agent]", "greeting[polite-agent-2]"),
    ]
    chosen = project.collected("--agentv-persona", "default")
    assert [name.partition("::")[2] for name in chosen] == ["refund[agent]"]


def test_properties_tell_how_a_conversation_ended(project: Project) -> None:
    write_conversations(project.folder)
    (project.folder / "broken.eval.yaml").unlink()
    found = project.junit("--agentv-persona", "default")["refund[agent]"]
    properties = {each.get("name"): each.get("value") for each in found.iter("property")}
    assert (properties["ended_by"], properties["fault"]) == ("user", "none")


def test_the_text_of_a_failure_tells_the_turn(project: Project) -> None:
    write_conversations(project.folder)
    result = project.here("--agentv", "refund.eval.yaml", "--agentv-persona", "impatient")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "turn 2, the user said: It is order A-17." in text
    assert "FAIL refund [impatient]  0.50  agent" in text
    assert "turn 2: call 0 get_order" in text
