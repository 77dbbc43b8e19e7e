"""OpenAI Evals exports: graders with their scales, labels and thresholds."""

from pathlib import Path
from typing import Any

import pytest

from agentv.api.convert.writer import plain_data
from tests.support.convert import convert_data, left_out, only_case

OUTPUT = "{{ sample.output_text }}"
ASKED = [{"role": "user", "content": f"Rate {OUTPUT} for {{{{ item.q }}}}."}]


def export(*criteria: dict[str, Any]) -> dict[str, Any]:
    template = {"type": "template", "template": [{"role": "user", "content": "{{ item.q }}"}]}
    rows = {"type": "file_content", "content": [{"item": {"q": "Why?", "a": "So."}}]}
    source = {"type": "completions", "model": "gpt-4o", "input_messages": template, "source": rows}
    config = {"type": "custom", "item_schema": {}}
    return {
        "name": "why",
        "data_source_config": config,
        "testing_criteria": list(criteria),
        "runs": [{"data_source": source}],
    }


def convert(folder: Path, **criterion: Any) -> tuple[list[dict[str, Any]], list[str]]:
    conversion = convert_data(export(criterion), folder, "why.json", "openai-evals")
    return only_case(conversion).get("evaluators", []), left_out(conversion)


@pytest.mark.parametrize(
    ("operation", "evaluator"),
    [
        ("eq", {"type": "equals", "value": "So."}),
        ("ne", {"type": "equals", "value": "So.", "not": True}),
        ("like", {"type": "contains", "value": "So."}),
        ("ilike", {"type": "contains", "value": "So.", "ignore_case": True}),
    ],
)
def test_string_check(tmp_path: Path, operation: str, evaluator: dict[str, Any]) -> None:
    criterion = {"type": "string_check", "input": OUTPUT, "reference": "{{ item.a }}", "operation": operation}
    assert convert(tmp_path, **criterion) == ([evaluator], [])


def test_label_model_keeps_every_label(tmp_path: Path) -> None:
    criterion = {"type": "label_model", "model": "gpt-4o", "input": ASKED}
    labels = {"labels": ["good", "bad", "fair"], "passing_labels": ["good"]}
    [evaluator], named = convert(tmp_path, **criterion, **labels)
    [item] = evaluator["rubric"]
    assert named == []
    assert item["criterion"] == "Rate (the answer) for Why?."
    assert item["scores"] == {"0": "the label is 'bad'", "1": "the label is 'fair'", "2": "the label is 'good'"}
    assert evaluator["threshold"] == 1


@pytest.mark.parametrize(
    "labels",
    [{}, {"labels": ["a"], "passing_labels": ["a"]}, {"labels": ["a", "b"], "passing_labels": ["c"]}],
)
def test_label_model_that_decides_nothing_is_left_out(tmp_path: Path, labels: dict[str, Any]) -> None:
    assert convert(tmp_path, type="label_model", model="gpt-4o", input=ASKED, **labels) == ([], ["label_model"])


@pytest.mark.parametrize(
    ("span", "threshold", "scores", "least"),
    [
        ([1, 7], 5.5, ["1-5", "6-7"], 0.833333),
        ([0, 10], 10, ["0-9", "10"], 1),
        ([1, 3], 2, ["1", "2-3"], 0.5),
    ],
)
def test_score_model_keeps_its_scale(tmp_path: Path, span: Any, threshold: float, scores: Any, least: float) -> None:
    criterion = {"type": "score_model", "model": "gpt-4o", "input": ASKED, "range": span, "pass_threshold": threshold}
    [evaluator], named = convert(tmp_path, **criterion)
    assert (list(evaluator["rubric"][0]["scores"]), evaluator["threshold"], named) == (scores, least, [])


@pytest.mark.parametrize(
    "settings",
    [{}, {"pass_threshold": 0.5}, {"range": [0, 2.5], "pass_threshold": 1}, {"range": [1, 7], "pass_threshold": 1}],
)
def test_score_model_that_would_be_weakened_is_left_out(tmp_path: Path, settings: dict[str, Any]) -> None:
    assert convert(tmp_path, type="score_model", model="gpt-4o", input=ASKED, **settings) == ([], ["score_model"])


def test_python_grader_without_threshold_measures_only(tmp_path: Path) -> None:
    source = "def grade(sample, item):\n    return 1.0\n"
    [evaluator], named = convert(tmp_path, type="python", name="mine", source=source)
    assert (evaluator["kind"], named) == ("metric", ["pass_threshold"])
    [evaluator], named = convert(tmp_path, type="python", name="mine", source=source, pass_threshold=0.5)
    assert (evaluator["threshold"], evaluator["config"], named) == (0.5, {"file": "graders/mine.py"}, [])


def test_grader_without_counterpart_is_named(tmp_path: Path) -> None:
    assert convert(tmp_path, type="multi", graders={})[1] == ["multi"]


@pytest.mark.parametrize(("reference", "value"), [("3", {"$oneof": ["3", 3]}), ("three", "three")])
def test_field_of_the_answer_may_be_a_number_or_its_text(tmp_path: Path, reference: str, value: Any) -> None:
    criterion = {"type": "string_check", "input": "{{ sample.output_json.total }}", "reference": reference}
    wanted = {"type": "json", "pointer": "/total", "equals": value, "not": True}
    assert convert(tmp_path, **criterion, operation="ne") == ([wanted], [])


@pytest.mark.parametrize(
    ("written", "reference"),
    [
        ("{{ sample.output_json.ok }}", "true"),
        ("{{ sample.output_tools[0].function.arguments }}", "{}"),
        ("The answer: {{ sample.output_text }}", "So."),
    ],
)
def test_comparison_that_depends_on_the_form_of_a_text_is_left_out(
    tmp_path: Path, written: str, reference: str
) -> None:
    criterion = {"type": "string_check", "input": written, "reference": reference, "operation": "eq"}
    assert convert(tmp_path, **criterion) == ([], ["string_check"])


def test_picture_in_the_instructions_of_a_judge_is_not_dropped(tmp_path: Path) -> None:
    parts = [
        {"type": "input_text", "text": f"Rate {OUTPUT}"},
        {"type": "input_image", "image_url": "https://x.example/a"},
    ]
    criterion = {"type": "label_model", "model": "gpt-4o", "labels": ["a", "b"], "passing_labels": ["a"]}
    asked = [{"role": "user", "content": parts[:1]}]
    [evaluator], named = convert(tmp_path, **criterion, input=asked)
    assert (evaluator["rubric"][0]["criterion"], named) == ("Rate (the answer)", [])
    assert convert(tmp_path, **criterion, input=[{"role": "user", "content": parts}]) == ([], ["label_model"])


def test_recorded_output_of_a_row_is_named(tmp_path: Path) -> None:
    data = export({"type": "string_check", "input": OUTPUT, "reference": "So.", "operation": "eq"})
    source = data["runs"][0]["data_source"]["source"]
    source["content"][0]["sample"] = {"output_text": "So."}
    assert left_out(convert_data(data, tmp_path, "why.json", "openai-evals")) == ["row.sample"]


def test_rows_of_all_runs_are_cases_once_each(tmp_path: Path) -> None:
    texts = [["a", "b", "b"], ["b", "c"]]
    runs = [
        {
            "data_source": {
                "type": "completions",
                "model": "gpt-4.1",
                "input_messages": {"type": "template", "template": [{"role": "user", "content": "{{ item.q }}"}]},
                "source": {"type": "file_content", "content": [7, *({"item": {"q": text}} for text in each)]},
            }
        }
        for each in texts
    ]
    grader = {"type": "string_check", "input": "{{ sample.output_text }}", "reference": "x", "operation": "eq"}
    conversion = convert_data({"name": "n", "testing_criteria": [grader], "runs": runs}, tmp_path, "export.json")
    [eval_] = conversion.evals
    assert [case["vars"]["item"]["q"] for case in plain_data(eval_.data)["cases"]] == list("abbc")
    assert left_out(conversion) == ["row", "row"]


def test_further_rows_of_an_export_are_named(tmp_path: Path) -> None:
    data = export({"type": "string_check", "input": OUTPUT, "reference": "x", "operation": "eq"})
    data["output_items"] = [{"datasource_item": {"q": "Why?", "a": "So."}, "results": [{"passed": True}]}]
    conversion = convert_data(data, tmp_path, "export.json")
    assert left_out(conversion) == ["output_items"]
    assert only_case(conversion)["vars"] == {"item": {"q": "Why?", "a": "So."}}


@pytest.mark.parametrize(("measure", "count"), [("cosine", 0), ("bleu", 1)])
def test_similarity_by_embeddings_counts_as_an_assertion_that_asks_a_model(
    tmp_path: Path, measure: str, count: int
) -> None:
    grader = {"type": "text_similarity", "input": OUTPUT, "reference": "x", "evaluation_metric": measure}
    counts = convert_data(export({**grader, "pass_threshold": 0.5}), tmp_path, "export.json").report.counts
    assert (counts.total, counts.translated, counts.deterministic) == (1, 0, count)
