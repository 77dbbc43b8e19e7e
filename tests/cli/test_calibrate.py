"""`agentv calibrate`: a judge held against people, and what an evaluator makes of it."""

import json
from typing import Any

import pytest

from tests.fakes.judges.program import asked, judge_program
from tests.support.command import Command

Json = dict[str, Any]
CHECK = {
    "name": "right",
    "type": "llm_judge",
    "rubric": ["It names Paris.", {"id": "polite", "criterion": "It is polite."}],
}
LABELS: list[Json] = [
    {"id": "a", "input": "The capital?", "reply": "It is Paris.", "label": "pass", "labels": {"polite": True}},
    {"id": "b", "input": "The capital?", "reply": "Rome.", "label": "fail", "labels": {"polite": False}},
    {"id": "c", "input": "The capital?", "reply": "Paris, fool.", "label": "fail", "labels": {"polite": "not met"}},
    {"input": "The capital?", "reply": [{"role": "assistant", "content": "Surely Paris."}], "label": True},
    {"reply": {"text": "Oslo"}, "label": "not met"},
]


@pytest.fixture
def project(run: Command) -> Command:
    run.write("agentv.yaml", {"targets": [judge_program(run.folder)], "judge": "judge"})
    agent = {"name": "agent", "provider": "mock", "reply": "It is Paris."}
    checks = [{**CHECK, "require_calibration": {"kappa": 0.5}}]
    cases = [{"id": "capital", "input": "The capital?", "evaluators": checks}]
    run.write("a.eval.yaml", {"targets": [agent], "cases": cases})
    write_labels(run, LABELS)
    return run


def write_labels(run: Command, labels: list[Any]) -> None:
    run.write("labels.jsonl", "".join(json.dumps(label) + "\n" for label in labels))


def test_the_report_says_how_far_they_agree_and_where_not(project: Command) -> None:
    done = project("calibrate", "labels.jsonl", "--judge", "judge")
    assert done.code == 0, done.err
    assert (
        done.out
        == """\
judge on right: 5 decisions compared

agreement  80 %
kappa      0.62 (95 % from -0.01 to 1.00)

people say  the judge says   pass    fail
pass                            2       0
fail                            1       2

item by item:
  polite  66.7 % of 3, kappa 0.40 (95 % from -0.37 to 1.00)

they differ on 2 decisions:
  c (line 3): people say fail, the judge says pass
    1 is met: It names Paris. it names a city ("Paris, fool.")
    polite is met: It is polite. it names a city ("Paris, fool.")
  c (line 3), item polite: people say not met, the judge says met
    it names a city

5 decisions say little: the interval is wide. Label 30 or more.
judge was asked 5 times · $1.2500
stored: `require_calibration` of this judge and rubric uses it
"""
    )


def test_for_programs_it_is_one_object(project: Command) -> None:
    (report,) = project("calibrate", "labels.jsonl", "--json").lines
    assert report["schema"] == "agentv.calibration/1"
    assert report["calibration"]["judge"] == "judge"
    assert report["calibration"]["n"] == 5
    # 0.8 seen; 2/5 * 3/5 + 3/5 * 2/5 = 0.48 by chance
    assert report["calibration"]["kappa"] == pytest.approx((0.8 - 0.48) / 0.52)
    assert report["table"] == {"pass": {"pass": 2, "fail": 0}, "fail": {"pass": 1, "fail": 2}}
    assert report["items"]["polite"]["table"]["not met"] == {"met": 1, "not met": 1}
    assert [(each["id"], each["line"], each["item"]) for each in report["differences"]] == [
        ("c", 3, None),
        ("c", 3, "polite"),
    ]
    assert report["judges"]["judge"]["cost_usd"] == 1.25
    assert report["stored"] is True


def status(run: Command) -> tuple[str, str]:
    (record, _) = run("eval", "a.eval.yaml", "--json").lines
    return record["status"], record["evaluators"][0]["details"].get("error", "")


def test_an_evaluator_that_wants_a_calibration_is_an_error_without_one(project: Command) -> None:
    ended, why = status(project)
    assert ended == "error"
    assert why == (
        "the judge 'judge' is not calibrated for this rubric; "
        "run `agentv calibrate LABELS.jsonl --judge judge --evaluator right`"
    )
    assert asked(project.folder) == [], "nobody was asked"
    project("calibrate", "labels.jsonl")
    assert status(project) == ("pass", "")


def test_one_that_is_not_good_enough_says_how_good_it_is(project: Command) -> None:
    text = (project.folder / "a.eval.yaml").read_text()
    project("calibrate", "labels.jsonl")
    project.write("a.eval.yaml", text.replace("kappa: 0.5", "kappa: 0.9"))
    ended, why = status(project)
    assert ended == "error"
    assert "agrees with people by a kappa of 0.62, and 0.9 is wanted" in why
    project.write("a.eval.yaml", text.replace("kappa: 0.5", "kappa: 0.5\n      n: 30"))
    assert "was calibrated on 5 decisions, and 30 are wanted" in status(project)[1]


def test_replies_that_the_judge_left_undecided_are_held_against_it(project: Command) -> None:
    write_labels(project, [*LABELS, {"id": "odd", "reply": "BABBLE", "label": "fail"}])
    done = project("calibrate", "labels.jsonl")
    assert done.code == 3
    assert "stored: `require_calibration` uses it only where `max_errors` is 1 or more" in done.out
    ended, why = status(project)
    assert ended == "error"
    assert "the judge 'judge' left 1 of the labelled replies undecided when it was calibrated" in why
    text = (project.folder / "a.eval.yaml").read_text()
    project.write("a.eval.yaml", text.replace("kappa: 0.5", "kappa: 0.5\n      max_errors: 1"))
    assert status(project) == ("pass", "")


@pytest.mark.parametrize(
    "change", [("It is polite.", "It is kind."), ("name: agent", "name: agent2"), ("name: right", "name: correct")]
)
def test_a_calibration_counts_for_its_rubric_and_its_judge(project: Command, change: tuple[str, str]) -> None:
    project("calibrate", "labels.jsonl")
    text = (project.folder / "a.eval.yaml").read_text()
    assert change[0] in text
    project.write("a.eval.yaml", text.replace(*change))
    assert status(project)[0] == ("error" if "kind" in change[1] else "pass")


def test_another_judge_has_to_be_calibrated_itself(project: Command) -> None:
    project("calibrate", "labels.jsonl")
    project.write("agentv.yaml", {"targets": [judge_program(project.folder, env=["REPLY", "LANG"])], "judge": "judge"})
    assert status(project)[0] == "error"


def test_the_last_calibration_counts(project: Command) -> None:
    project("calibrate", "labels.jsonl")
    wrong = [{**label, "label": "fail" if label["label"] in ("pass", True) else "pass"} for label in LABELS]
    write_labels(project, wrong)
    project("calibrate", "labels.jsonl")
    assert status(project)[0] == "error"


def test_replies_that_cannot_be_judged_are_counted_apart(project: Command) -> None:
    write_labels(project, [*LABELS, {"id": "odd", "reply": "BABBLE", "label": "pass"}])
    done = project("calibrate", "labels.jsonl")
    assert done.code == 3
    assert "judge on right: 5 decisions compared" in done.out
    assert "1 reply could not be judged:\n  odd (line 6): the reply of the judge 'judge' could not be read" in done.out


def test_labels_of_one_kind_say_nothing(project: Command) -> None:
    write_labels(project, [label for label in LABELS if label["label"] in ("pass", True)])
    done = project("calibrate", "labels.jsonl")
    assert "kappa      not defined" in done.out
    assert "Kappa needs both kinds" in done.out
    assert "found no kappa: label cases of both kinds" in status(project)[1]


def test_items_alone_may_be_labelled(project: Command) -> None:
    write_labels(project, [{key: value for key, value in label.items() if key != "label"} for label in LABELS[:3]])
    (report,) = project("calibrate", "labels.jsonl", "--json").lines
    assert report["over"] == "items"
    assert report["calibration"]["n"] == 3


def test_lines_of_a_result_file_may_be_labelled(project: Command) -> None:
    project("eval", "a.eval.yaml", "--out", "results.jsonl")
    (record,) = project.records()
    write_labels(project, [{**record, "label": "pass"}, {**record, "candidate": "Rome", "label": "fail"}])
    (report,) = project("calibrate", "labels.jsonl", "--json").lines
    assert report["calibration"]["agreement"] == 1.0


def test_one_criterion_needs_no_eval(project: Command) -> None:
    (project.folder / "a.eval.yaml").unlink()
    write_labels(project, [{key: value for key, value in label.items() if key != "labels"} for label in LABELS])
    (report,) = project("calibrate", "labels.jsonl", "--criterion", "It names Paris.", "--json").lines
    assert report["calibration"]["n"] == 5


def test_a_known_reply_costs_nothing_and_no_store_keeps_nothing(project: Command) -> None:
    project("calibrate", "labels.jsonl")
    (report,) = project("calibrate", "labels.jsonl", "--json").lines
    assert report["judges"]["judge"]["cached"] == 5
    (report,) = project("calibrate", "labels.jsonl", "--json", "--no-store").lines
    assert (report["judges"]["judge"]["cached"], report["stored"]) == (0, False)


def test_max_judge_cost_holds_here_too(project: Command) -> None:
    done = project("calibrate", "labels.jsonl", "--json", "--max-judge-cost", "0.5", "--max-concurrency", "1")
    assert done.code == 3
    (report,) = done.lines
    assert report["calibration"]["n"] == 2
    assert len(asked(project.folder)) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "labels.jsonl:1: "),
        ("[1]", "expected an object with a `reply` and a `label`, got a list"),
        ('{"reply": "x"}', "label: required: what a person says of this reply"),
        ('{"label": "pass"}', "reply: required"),
        (
            '{"reply": "x", "label": "perhaps"}',
            "label: expected true, false, pass, fail, met or not met; got 'perhaps'",
        ),
        ('{"reply": "x", "labels": {"polit": true}}', "unknown key 'polit'; did you mean 'polite'?"),
        ('{"reply": "x", "lable": "pass"}', "unknown key 'lable'; did you mean 'label'?"),
        ('{"reply": 7, "label": "pass"}', "expected an object or a list of messages"),
        ('{"reply": "x", "label": "pass", "input": 5}', "labels.jsonl:1: input: expected a text, a message, or a list"),
        ('{"reply": "x", "label": "pass", "label": "fail"}', "labels.jsonl:1: duplicate key 'label'"),
        ('\ufeff{"reply": "x", "label": "pass", "reply": ""}', "labels.jsonl:1: duplicate key 'reply'"),
        ("", "labels.jsonl:1: holds no label"),
    ],
)
def test_mistakes_in_the_labels_are_found_before_anybody_is_asked(project: Command, line: str, message: str) -> None:
    project.write("labels.jsonl", line + "\n")
    done = project("calibrate", "labels.jsonl")
    assert done.code == 2
    assert message in done.err
    assert asked(project.folder) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--judge", "jugde"), "there is no target 'jugde'; did you mean 'judge'?"),
        (("--evaluator", "wrong"), "no evaluator called 'wrong'"),
        (("--criterion", "x", "--evaluator", "right"), "--criterion replaces an evaluator"),
        (("--eval", "b.eval.yaml"), "2 evaluators ask a judge: 'one', 'two'"),
        (("--criterion", "x", "--judge", "nobody"), "'nobody' is no target of agentv.yaml"),
    ],
)
def test_mistakes_on_the_command_line(project: Command, options: tuple[str, ...], message: str) -> None:
    checks = [{**CHECK, "name": "one"}, {**CHECK, "name": "two", "rubric": ["It is short."]}]
    suite = (project.folder / "a.eval.yaml").read_text()
    assert suite
    agent = {"name": "agent", "provider": "mock"}
    project.write("b.eval.yaml", {"targets": [agent], "cases": [{"id": "x", "input": "?", "evaluators": checks}]})
    given = options if "--eval" in options or "--criterion" in options else (*options, "--eval", "a.eval.yaml")
    done = project("calibrate", "labels.jsonl", *given)
    assert done.code == 2
    assert message in done.err


def test_a_panel_is_calibrated_judge_by_judge(project: Command) -> None:
    second = {**judge_program(project.folder, env=["REPLY", "LANG"]), "name": "second"}
    project.write("agentv.yaml", {"targets": [judge_program(project.folder), second]})
    check = {
        "type": "panel",
        "judges": ["judge", "second"],
        "criterion": "It names Paris.",
        "require_calibration": {"kappa": 0.5},
    }
    agent = {"name": "agent", "provider": "mock", "reply": "It is Paris."}
    project.write("a.eval.yaml", {"targets": [agent], "cases": [{"id": "x", "input": "?", "evaluators": [check]}]})
    labels = [{key: value for key, value in label.items() if key != "labels"} for label in LABELS]
    write_labels(project, labels)
    assert project("calibrate", "labels.jsonl", "--judge", "judge").code == 0
    assert "the judge 'second' is not calibrated" in status(project)[1]
    assert project("calibrate", "labels.jsonl", "--judge", "second").code == 0
    assert status(project) == ("pass", "")


def test_the_judge_that_is_taken_is_named(project: Command) -> None:
    done = project("calibrate", "labels.jsonl")
    assert (done.code, done.err.splitlines()[0]) == (0, "judge: judge (--judge NAME takes another)")
    assert "judge: judge" not in project("calibrate", "labels.jsonl", "--judge", "judge").err


def two_judges(project: Command, **check: Any) -> list[Json]:
    second = {**judge_program(project.folder, env=["REPLY", "LANG"]), "name": "second"}
    project.write("agentv.yaml", {"targets": [judge_program(project.folder), second]})
    agent = {"name": "agent", "provider": "mock", "reply": "It is Paris."}
    evaluators = [{"name": "right", "criterion": "It names Paris.", **check}]
    cases = [{"id": "x", "input": "?", "evaluators": evaluators}]
    project.write("a.eval.yaml", {"targets": [agent], "cases": cases})
    write_labels(project, [{key: value for key, value in label.items() if key != "labels"} for label in LABELS])
    return cases


MISSING = "no judge is named; choose a target with --judge: 'judge', 'second', 'agent'"
SEVERAL = "the evaluator 'right' asks 2 judges: 'judge', 'second'; choose one with --judge"


@pytest.mark.parametrize(
    ("check", "options", "message"),
    [
        ({"type": "llm_judge"}, (), MISSING),
        ({"type": "llm_judge"}, ("--criterion", "It is polite."), MISSING),
        ({"type": "panel", "judges": ["judge", "second"]}, (), SEVERAL),
    ],
    ids=["no judge", "no judge for a criterion", "a panel"],
)
def test_a_judge_that_is_not_named_is_asked_for_with_the_names(
    project: Command, monkeypatch: pytest.MonkeyPatch, check: Json, options: tuple[str, ...], message: str
) -> None:
    two_judges(project, **check)
    done = project("calibrate", "labels.jsonl", *options)
    assert (done.code, message in done.err) == (2, True), done.err
    assert asked(project.folder) == []
    monkeypatch.setattr("agentv.cli.calibrate._choose_judge", lambda names: names[1])
    done = project("calibrate", "labels.jsonl", *options)
    assert (done.code, done.err.splitlines()[0]) == (0, "judge: second (--judge NAME takes another)"), done.err


def test_a_rubric_with_two_judges_is_not_calibrated_for_the_first(project: Command) -> None:
    cases = two_judges(project, type="llm_judge", judge="judge")
    again = {"type": "llm_judge", "name": "right", "criterion": "It names Paris.", "judge": "second"}
    cases.append({"id": "y", "input": "?", "evaluators": [again]})
    project.write("a.eval.yaml", {"targets": [{"name": "agent", "provider": "mock"}], "cases": cases})
    done = project("calibrate", "labels.jsonl")
    assert (done.code, SEVERAL in done.err) == (2, True), done.err


def test_secrets_of_the_judge_are_nowhere(project: Command) -> None:
    secret = "hunter2-hunter2-hunter2"  # noqa: S105 - nobody's
    project.write("agentv.yaml", {"targets": [judge_program(project.folder, env=["REPLY", "KEY"])], "judge": "judge"})
    write_labels(project, [*LABELS, {"reply": f"Paris {secret}", "label": "fail"}])
    done = project("calibrate", "labels.jsonl", env={"KEY": secret})
    assert secret not in done.out
    assert all(secret not in prompt for prompt in asked(project.folder))
