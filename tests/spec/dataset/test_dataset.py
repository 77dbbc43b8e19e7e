"""Datasets: which files are read, what becomes of their rows, and what is said when something is wrong."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.evals import Eval
from agentv.spec.loader import load_data
from tests.support.evals import CHECK, HEAD, MOCK, Write, only, problems

ROWS: list[dict[str, Any]] = [
    {"id": "a", "question": "What is X?", "topic": "x", "level": "hard", "year": 2024},
    {"id": "b", "question": "What is Y?", "topic": "y", "level": "easy", "year": 2023},
    {"id": "c", "question": "Why?", "topic": None, "level": "hard", "year": 2023},
]
TEMPLATE = 'template: {id: "{{ id }}", input: "{{ question }}"}'


def lines(rows: list[Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def cases(count: int) -> str:
    return lines([{"id": f"case-{number}", "input": "x"} for number in range(count)])


def ids(found: Eval) -> list[str]:
    return [checked.case.id for checked in found.cases]


class TestPlain:
    def test_one_case_a_line_beside_listed_ones(self, write: Write) -> None:
        write('{"id": "b", "input": "x"}\n\n{"id": "c", "input": "y", "tags": ["t"]}\n', "data/cases.jsonl")
        found = only(write(f"{HEAD}cases: [{{id: a, input: x}}]\ndataset: data/cases.jsonl"))
        assert [(case.index, case.case.id, str(case.location)) for case in found.cases] == [
            (0, "a", "a.eval.yaml:3:9"),
            (1, "b", "data/cases.jsonl:1"),
            (2, "c", "data/cases.jsonl:3"),
        ]
        assert [case.case.id for case in found.cases] == ["a", "b", "c"]
        assert (found.count, found.repeats) == (3, 3)

    def test_problems_name_file_and_line(self, write: Write) -> None:
        lines = [
            '{"id": "a", "input": "x"}',
            '{"id": "b", "inputs": "x"}',
            "{broken",
            "[1]",
            '{"id": "a", "input": "x"}',
            '{"id": "c", "input": "x", "evaluators": [{"type": "tool_trajectory", "minimum": {}}]}',
            '{"id": "d", "input": ' + "[" * 500 + "]" * 500 + "}",
        ]
        write("\n".join(lines), "cases.jsonl")
        found = problems(write(f"{HEAD}dataset: cases.jsonl"))
        assert [each.split(": ")[0] for each in found] == [
            "cases.jsonl:2",
            "cases.jsonl:3",
            "cases.jsonl:4",
            "cases.jsonl:5",
            "cases.jsonl:6",
            "cases.jsonl:7",
        ]
        assert "did you mean 'input'?" in found[0]
        assert "'a' is the id of another case, at cases.jsonl:1" in found[3]

    def test_it_lies_below_the_root(self, write: Write) -> None:
        (found,) = problems(write(f"{HEAD}dataset: ../cases.jsonl"))
        assert found.startswith("a.eval.yaml:3:10: dataset: '../cases.jsonl' lies outside")

    def test_a_byte_order_mark_is_no_part_of_the_first_line(self, write: Write) -> None:
        write(b'\xef\xbb\xbf{"id": "a", "input": "x"}\n', "cases.jsonl")
        assert ids(only(write(f"{HEAD}dataset: cases.jsonl"))) == ["a"]

    def test_no_more_than_a_hundred_problems_are_told(self, write: Write) -> None:
        write("{\n" * 1_000, "cases.jsonl")
        found = problems(write(f"{HEAD}dataset: cases.jsonl"))
        assert len(found) == 101
        assert any("the rest was not read" in each for each in found)

    def test_a_dataset_without_a_case(self, write: Write) -> None:
        write("\n", "cases.jsonl")
        (found,) = problems(write(f"{HEAD}dataset: cases.jsonl"))
        assert found == "a.eval.yaml:3:10: dataset: it has no rows: add one, or correct the path"

    def test_it_is_read_anew_and_a_change_is_an_error(self, write: Write) -> None:
        write(cases(2), "cases.jsonl")
        found = only(write(f"{HEAD}dataset: cases.jsonl"))
        write("{\n", "cases.jsonl")
        with pytest.raises(agentv.SpecError, match=r"cases\.jsonl:1"):
            list(found.cases)
        Path("cases.jsonl").unlink()
        with pytest.raises(agentv.FormatError, match="can no longer be read"):
            list(found.cases)

    def test_a_dataset_may_be_given_in_python(self, write: Write) -> None:
        write(lines(ROWS), "rows.jsonl")
        template = {"id": "{{ id }}", "input": "{{ question }}"}
        data = {
            "targets": [{"name": "t", "provider": "mock"}],
            "defaults": {"evaluators": [{"type": "tool_trajectory", "minimums": {"a": 1}}]},
        }
        assert load_data({**data, "dataset": {"files": ("rows.jsonl",), "template": template}}).count == 3
        with pytest.raises(agentv.SpecError, match="cannot be written as JSON"):
            load_data({**data, "dataset": {"files": "rows.jsonl", "template": {"id": object()}}})


class TestFiles:
    def test_several_and_patterns_in_the_order_given_each_once(self, write: Write) -> None:
        for name in ("z", "b", "a", ".hidden", "deep/er/c"):
            write(lines([{"id": Path(name).name, "input": "x"}]), f"more/{name}.jsonl")
        write(lines([{"id": "first", "input": "x"}]), "first.jsonl")
        given = "[first.jsonl, 'more/z.jsonl', 'more/*.jsonl', 'more/**/?.jsonl']"
        found = only(write(f"{HEAD}dataset: {given}"))
        assert ids(found) == ["first", "z", "a", "b", "c"]
        assert [checked.index for checked in found.cases] == [0, 1, 2, 3, 4]
        named = [Path(name).name for name in found.inputs]
        assert {"first.jsonl", "z.jsonl", "a.jsonl", "b.jsonl", "c.jsonl"} <= set(named)
        assert found.texts == tuple(name for name in found.inputs if name in found.texts)

    def test_formats_may_be_mixed(self, write: Write) -> None:
        write("id,input\na,x\n", "1.csv")
        write("id\tinput\nb\tx\n", "2.tsv")
        write("- {id: c, input: x}\n", "3.yaml")
        write("- {id: d, input: x}\n", "4.yml")
        write(lines([{"id": "e", "input": "x"}]), "5.jsonl")
        found = only(write(f"{HEAD}dataset: [1.csv, '2.*', '3.*', '?.yml', 5.jsonl]"))
        assert [(checked.case.id, str(checked.location)) for checked in found.cases] == [
            ("a", "1.csv:2"),
            ("b", "2.tsv:2"),
            ("c", "3.yaml:1"),
            ("d", "4.yml:1"),
            ("e", "5.jsonl:1"),
        ]

    def test_a_format_may_be_named(self, write: Write) -> None:
        write("id,input\na,x\n", "data.txt")
        (found,) = problems(write(f"{HEAD}dataset: data.txt"))
        assert "the suffix of 'data.txt' does not say what it is; add `format: csv`" in found
        assert ids(only(write(f"{HEAD}dataset: {{files: data.txt, format: csv}}"))) == ["a"]

    def test_ids_are_unique_in_all_files(self, write: Write) -> None:
        write("id,input\na,x\n", "1.csv")
        write("- {id: b, input: x}\n- {id: a, input: x}\n", "2.yaml")
        (found,) = problems(write(f"{HEAD}dataset: [1.csv, 2.yaml]"))
        assert found.startswith("2.yaml:2: id: 'a' is the id of another case, at 1.csv:2")

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("../*.jsonl", "lies outside"),
            ("../secret.jsonl", "lies outside"),
            ("/**/*.jsonl", "lies outside"),
            ("*/../../*.jsonl", "`..` comes after a wildcard"),
            ("link.jsonl", "lies outside"),
            ("l*.jsonl", "lies outside"),
            ("out/*.jsonl", "lies outside"),
            ("o*/*.jsonl", "lies outside"),
            ("none*.jsonl", "no file fits"),
            ("nowhere/*/*.jsonl", "no file fits"),
            ("fold*", "no file fits"),
        ],
    )
    def test_nothing_outside_the_root_is_read(self, write: Write, tmp_path: Path, name: str, said: str) -> None:
        outside = tmp_path.parent / f"{tmp_path.name}-outside"
        outside.mkdir()
        for place in (outside / "secret.jsonl", tmp_path.parent / "secret.jsonl"):
            place.write_text(cases(1))
        (tmp_path / "link.jsonl").symlink_to(outside / "secret.jsonl")
        (tmp_path / "out").symlink_to(outside)
        write("", "folder/x")
        (found,) = problems(write(f'{HEAD}dataset: ["{name}"]'))
        assert found.startswith("a.eval.yaml:3:11: dataset[0]: ")
        assert said in found

    def test_a_pattern_may_leave_the_folder_but_not_the_project(self, write: Write) -> None:
        write("", "agentv.yaml")
        write(cases(2), "data/cases.jsonl")
        path = write(f"{HEAD}dataset: '../data/*.jsonl'", "evals/a.eval.yaml")
        assert ids(only(path)) == ["case-0", "case-1"]

    def test_links_in_a_circle_end(self, write: Write, tmp_path: Path) -> None:
        write(cases(1), "in/cases.jsonl")
        for name in ("one", "two"):
            (tmp_path / "in" / name).symlink_to(tmp_path / "in")
        assert ids(only(write(f"{HEAD}dataset: '**/**/*.jsonl'"))) == ["case-0"]

    @pytest.mark.skipif(os.name == "nt" or not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root reads all")
    def test_a_file_that_may_not_be_read(self, write: Write) -> None:
        Path(write(cases(1), "cases.jsonl")).chmod(0)
        (found,) = problems(write(f"{HEAD}dataset: cases.jsonl"))
        assert "cases.jsonl cannot be read" in found


class TestTemplate:
    def test_columns_fill_texts_at_any_depth_and_keep_their_type(self, write: Write) -> None:
        write(lines(ROWS[:1]), "rows.jsonl")
        (checked,) = only(
            write(f"""\
{MOCK}dataset:
  files: rows.jsonl
  template:
    id: "{{{{id}}}}-{{{{ _index }}}}"
    input: [{{role: user, content: "Q: {{{{ question }}}} ({{{{ year }}}})"}}]
    expected_messages: [{{role: assistant, tool_calls: [{{tool: search, input: {{query: "{{{{ topic }}}}"}}}}]}}]
    tags: ["{{{{ level }}}}", "y{{{{ year }}}}"]
    vars: {{year: "{{{{ year }}}}"}}
    metadata: {{source: "{{{{ _file }}}}:{{{{ _line }}}}", row: [1, {{n: "{{{{ _index }}}}"}}]}}
""")
        ).cases
        case = checked.case
        assert case.id == "a-0"
        assert case.input_messages[0].content == "Q: What is X? (2024)"
        assert case.expected_messages == (
            agentv.Message(role="assistant", tool_calls=(agentv.ToolCall(tool="search", input={"query": "x"}),)),
        )
        assert (case.tags, case.vars) == (("hard", "y2024"), {"year": 2024})
        assert case.metadata == {"source": "rows.jsonl:1", "row": [1, {"n": 0}]}

    def test_columns_may_be_called_anything_and_hold_anything(self, write: Write) -> None:
        row: dict[str, Any] = {"the id": "a", "user.name": "exact", "user": {"name": "inner", "city": "Oslo"}}
        row["talk"] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
        write(lines([row]), "rows.jsonl")
        (checked,) = only(
            write(
                f'{HEAD}dataset: {{files: rows.jsonl, template: {{id: "{{{{ the id }}}}", input: "{{{{ talk }}}}", '
                'vars: {a: "{{ user.name }}", b: "{{ user.city }}", c: "is {{ user }}"}}}'
            )
        ).cases
        assert [message.role for message in checked.case.input_messages] == ["system", "user"]
        assert checked.case.vars == {"a": "exact", "b": "Oslo", "c": 'is {"name":"inner","city":"Oslo"}'}

    @pytest.mark.parametrize("hostile", ["{{ id }}", "{{ secret }}", "file://prompt.md", "{{ nothing }}", "${HOME}"])
    def test_values_are_never_parsed_again(self, write: Write, hostile: str) -> None:
        write("from a file", "prompt.md")
        write(lines([{"id": "a", "q": hostile}]), "rows.jsonl")
        eval_text = f"{MOCK}defaults: {{{CHECK}, vars: {{secret: 1}}}}\n"
        template = '{id: "{{ id }}", input: [{role: user, content: "{{ q }}"}, {role: user, content: "> {{ q }}"}]}'
        (checked,) = only(write(f"{eval_text}dataset: {{files: rows.jsonl, template: {template}}}")).cases
        assert [message.content for message in checked.case.input_messages] == [hostile, f"> {hostile}"]

    def test_the_template_may_name_a_file_and_that_file_values(self, write: Write) -> None:
        write("About {{ topic }}", "prompts/x.md")
        write(lines([{"id": "a", "name": "x"}]), "rows.jsonl")
        template = '{id: "{{ id }}", input: "file://prompts/{{ name }}.md", vars: {topic: "{{ id }}"}}'
        path = write(f"{HEAD}dataset: {{files: rows.jsonl, template: {template}}}")
        (checked,) = only(path).cases
        assert checked.case.input_messages[0].content == "About a"
        write(lines([{"id": "a", "name": "../../../etc/passwd\0"}]), "rows.jsonl")
        (found,) = problems(path)
        assert found.startswith("rows.jsonl:1: input: ")

    def test_an_unknown_column_is_told_once_with_its_place_and_a_guess(self, write: Write) -> None:
        write(lines(ROWS), "rows.jsonl")
        template = '{id: "{{ id }}", input: [{role: user, content: "{{ quesion }}"}]}'
        assert problems(write(f"{HEAD}dataset: {{files: rows.jsonl, template: {template}}}")) == [
            (
                "rows.jsonl:1: {{ quesion }} names no column; did you mean 'question'? "
                "There are id, question, topic, level, year (in template.input[0].content); "
                "2 other rows have the same problem"
            )
        ]

    def test_what_is_wrong_with_the_template_itself_stands_in_the_eval(self, write: Write) -> None:
        write(lines(ROWS), "rows.jsonl")
        text = f"""\
{HEAD}dataset:
  files: rows.jsonl
  template:
    inputs: "{{{{ question }}}}"
    metadata: {{"{{{{ topic }}}}": "{{{{ }}}}"}}
"""
        assert problems(write(text)) == [
            "a.eval.yaml:6:5: unknown key 'inputs'; did you mean 'input'?",
            'a.eval.yaml:6:5: id: required; without a column for it: id: "{{ _index }}"',
            "a.eval.yaml:6:5: input: required",
            "a.eval.yaml:7:16: '{{ topic }}' is a key; only values are filled",
            "a.eval.yaml:7:31: {{ topic }}: {{ }} names no column",
        ]

    def test_what_is_wrong_with_a_case_names_row_and_template(self, write: Write) -> None:
        write(lines([{**ROWS[0], "id": ""}, {**ROWS[1], "question": 3}, "row"]), "rows.jsonl")
        found = problems(write(f"{HEAD}dataset: {{files: rows.jsonl, {TEMPLATE}}}"))
        assert [each.partition(": ")[0] for each in found] == ["rows.jsonl:1", "rows.jsonl:2", "rows.jsonl:3"]
        assert found[0].endswith("(in template.id)")
        assert found[1].endswith("(in template.input)")
        assert "expected a row" in found[2]

    def test_fields_of_a_case_work_in_rows_and_templates(self, write: Write) -> None:
        rows = [
            {"id": "a", "input": "x", "repeat": 3, "tags": ["t"], "threshold": 0.5},
            {"id": "b", "input": "x", "skip": "not yet"},
            {"id": "c", "input": "x", "only": True},
        ]
        write(lines(rows), "rows.jsonl")
        found = only(write(f"{HEAD}dataset: rows.jsonl"))
        assert (found.count, found.skipped, found.repeats, found.has_only) == (3, 1, 4, True)
        write('id,input,repeat,tags,threshold,skip,only\na,x,3,"t, u",0.5,,\nb,x,,,,TRUE,\nc,x,,,,,true\n', "rows.csv")
        found = only(write(f"{HEAD}dataset: rows.csv"))
        assert (found.count, found.skipped, found.repeats, found.has_only) == (3, 1, 4, True)
        first = next(iter(found.cases))
        assert (first.repeat, first.case.tags, first.case.threshold) == (3, ("t", "u"), 0.5)
        template = (
            '{id: "{{ id }}", input: "{{ input }}", repeat: "{{ repeat }}", tags: "{{ tags }}", skip: "{{ skip }}"}'
        )
        found = only(write(f"{HEAD}dataset: {{files: rows.csv, template: {template}}}"))
        assert [(each.repeat, each.case.tags, each.skip) for each in found.cases] == [
            (3, ("t", "u"), False),
            (1, (), True),
            (1, (), False),
        ]


class TestWhere:
    @pytest.mark.parametrize(
        ("where", "kept"),
        [
            ("{level: hard}", "ac"),
            ("{level: [easy, other]}", "b"),
            ("{level: {not: hard}}", "b"),
            ("{level: {not: [hard, easy]}, year: 2024}", ""),
            ("{level: hard, year: 2023}", "c"),
            ("{year: 2024}", "a"),
            ("{year: 2023.0}", "bc"),
            ("{topic: null}", "c"),
            ("{topic: {not: null}}", "ab"),
            ("{_line: [1, 2]}", "ab"),
            ("{_index: 2}", "c"),
            ("{_file: rows.jsonl}", "abc"),
        ],
    )
    def test_rows_are_kept_by_what_their_columns_hold(self, write: Write, where: str, kept: str) -> None:
        write(lines(ROWS), "rows.jsonl")
        path = write(f"{HEAD}dataset: {{files: rows.jsonl, {TEMPLATE}, where: {where}}}")
        if kept:
            found = only(path)
            assert "".join(ids(found)) == kept
            assert found.count == len(kept)
        else:
            (said,) = problems(path)
            assert said.endswith("where: keeps none of 3 rows")

    def test_true_is_not_one_and_a_list_holds_its_items(self, write: Write) -> None:
        rows = [{"id": "a", "input": "x", "vars": {"v": 1}}, {"id": "b", "input": "x", "vars": {"v": True}}]
        write(lines([*rows, {"id": "c", "input": "x", "tags": ["p", "q"]}]), "rows.jsonl")
        assert ids(only(write(f"{HEAD}dataset: {{files: rows.jsonl, where: {{vars.v: true}}}}"))) == ["b"]
        assert ids(only(write(f"{HEAD}dataset: {{files: rows.jsonl, where: {{tags: q}}}}"))) == ["c"]

    def test_cells_of_a_table_are_compared_as_text(self, write: Write) -> None:
        write("id,input,n,ok\na,x,1,true\nb,x,1.0,\n", "rows.csv")
        assert ids(only(write(f"{HEAD}dataset: {{files: rows.csv, where: {{n: 1, ok: true}}}}"))) == ["a"]
        assert ids(only(write(f"{HEAD}dataset: {{files: rows.csv, where: {{ok: null}}}}"))) == ["b"]

    def test_a_column_that_no_row_has_is_an_error(self, write: Write) -> None:
        write(lines(ROWS), "rows.jsonl")
        (found,) = problems(write(f"{HEAD}dataset: {{files: rows.jsonl, {TEMPLATE}, where: {{levle: {{not: hard}}}}}}"))
        assert found.startswith("a.eval.yaml:3:")
        assert "'levle' names no column; did you mean 'level'? There are id, question, topic, level, year" in found
        (again,) = problems(
            write(f"{HEAD}dataset: {{files: rows.jsonl, {TEMPLATE}, where: {{levle: {{not: hard}}}}, limit: 1}}")
        )
        assert again == found

    def test_the_place_in_the_eval_does_not_depend_on_what_is_left_out(self, write: Write) -> None:
        write(lines(ROWS), "rows.jsonl")
        settings = ["where: {level: hard}", "sample: {n: 2}", "shuffle: true", "limit: 2"]
        for more in ["", *[f", {setting}" for setting in settings], ", " + ", ".join(settings)]:
            head = f"{HEAD}cases: [{{id: z, input: x}}]\n"
            found = only(write(f"{head}dataset: {{files: rows.jsonl, {TEMPLATE}{more}}}"))
            assert {"zabc".index(each.case.id): each.case.id for each in found.cases} == {
                each.index: each.case.id for each in found.cases
            }


class TestChance:
    def test_a_sample_comes_in_the_order_of_the_files(self, write: Write) -> None:
        write(cases(50), "cases.jsonl")
        found = only(write(f"{HEAD}dataset: {{files: cases.jsonl, sample: {{n: 10, seed: 1}}}}"))
        # Pinned: a sample that changed with a version would make results incomparable without a word.
        assert [int(name[5:]) for name in ids(found)] == [1, 2, 3, 8, 13, 15, 16, 30, 37, 49]
        assert [int(each.case.id[5:]) for each in found.cases] == [each.index for each in found.cases]
        assert next(str(each.location) for each in found.cases) == "cases.jsonl:2"
        assert found.count == 10

    def test_what_is_counted_is_what_is_run(self, write: Write) -> None:
        rows = [{"id": f"{n}", "input": "x", "repeat": n + 1, "skip": n % 2 == 0, "only": n == 3} for n in range(10)]
        write(lines(rows), "cases.jsonl")
        for more in (
            "sample: {n: 4}",
            "shuffle: true",
            "shuffle: true, limit: 4",
            "limit: 3",
            "limit: 4",
            "shuffle: {}",
        ):
            found = only(write(f"{HEAD}dataset: {{files: cases.jsonl, {more}}}"))
            run = list(found.cases)
            assert found.count == len(run)
            assert found.skipped == sum(bool(each.skip) for each in run)
            assert found.repeats == sum(each.repeat for each in run if not each.skip)
            assert found.has_only == any(each.only for each in run)

    def test_a_limit_reads_no_further(self, write: Write) -> None:
        write(cases(3) + "{broken\n", "cases.jsonl")
        assert ids(only(write(f"{HEAD}dataset: {{files: cases.jsonl, limit: 3}}"))) == ["case-0", "case-1", "case-2"]
        (found,) = problems(write(f"{HEAD}dataset: {{files: cases.jsonl, limit: 3, shuffle: true}}"))
        assert found.startswith("cases.jsonl:4: not JSON")

    def test_a_file_that_changes_under_way_is_an_error(self, write: Write) -> None:
        write(cases(100), "cases.jsonl")
        found = only(write(f"{HEAD}dataset: {{files: cases.jsonl, shuffle: true}}"))
        write(cases(1), "cases.jsonl")
        with pytest.raises(agentv.FormatError, match="has changed since it was checked"):
            list(found.cases)


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        ("null", "no cases: add `cases` or `dataset`"),
        ("3", "dataset: expected a string or a list or a mapping, got 3"),
        ("''", "dataset: expected str of length >= 1"),
        ("[]", "dataset: expected array of length >= 1"),
        ("{}", "files: required"),
        ("{file: a.csv}", "unknown key 'file'; did you mean 'files'?"),
        ("{files: a.csv, format: xls}", "format: expected one of jsonl, csv, tsv, yaml; got 'xls'"),
        ("{files: a.csv, sample: 3}", "sample: expected a mapping, got 3"),
        ("{files: a.csv, sample: {n: 0}}", "n: expected int >= 1; got 0"),
        ("{files: a.csv, sample: {n: 1, seed: -1}}", "seed: expected int >= 0; got -1"),
        ("{files: a.csv, shuffle: 3}", "shuffle: expected true or false or a mapping, got 3"),
        ("{files: a.csv, limit: 0}", "limit: expected int >= 1; got 0"),
        ("{files: a.csv, where: {level: {is: 1}}}", "unknown key 'is'"),
        ("{files: a.csv, template: [a]}", "template: expected a mapping, got a list"),
    ],
)
def test_what_is_no_dataset_is_refused(write: Write, dataset: str, said: str) -> None:
    found = problems(write(f"{HEAD}dataset: {dataset}"))
    assert any(said in each for each in found), found


class TestTypes:
    TABLE = 'id,question,amount,vip,extra\na,refund,10,true,"[1, 2]"\nb,refund,2.5,FALSE,\nc,refund,,,{}\n'

    def load(self, write: Write, types: str, table: str = TABLE) -> Path:
        write(table, "a.csv")
        names = ", ".join(f'{name}: "{{{{ {name} }}}}"' for name in ("amount", "vip", "extra"))
        template = f'template: {{id: "{{{{ id }}}}", input: "{{{{ question }}}}", vars: {{{names}}}}}'
        return write(f"{HEAD}dataset: {{files: a.csv, types: {types}, {template}}}")

    def test_cells_become_values_of_their_type(self, write: Write) -> None:
        found = only(self.load(write, "{amount: number, vip: boolean, extra: json}"))
        assert [checked.case.vars for checked in found.cases] == [
            {"amount": 10, "vip": True, "extra": [1, 2]},
            {"amount": 2.5, "vip": False, "extra": None},
            {"amount": None, "vip": None, "extra": {}},
        ]

    def test_without_types_they_stay_texts(self, write: Write) -> None:
        found = only(self.load(write, "{amount: string}"))
        assert [checked.case.vars["amount"] for checked in found.cases] == ["10", "2.5", ""]

    def test_other_columns_of_a_table_without_a_template_are_typed_variables(self, write: Write) -> None:
        write("id,input,amount\na,hi,007\n", "a.csv")
        (checked,) = only(write(f"{HEAD}dataset: {{files: a.csv, types: {{amount: integer}}}}")).cases
        assert checked.case.vars == {"amount": 7}

    @pytest.mark.parametrize(
        ("types", "cell", "said"),
        [
            ("{amount: number}", "ten", "a.csv:2: column 'amount': expected a number, got 'ten'"),
            ("{amount: number}", "1e999", "expected a number"),
            ("{amount: number}", "NaN", "expected a number"),
            ("{amount: integer}", "2.5", "expected a whole number, got '2.5'"),
            ("{amount: boolean}", "yes", "expected true or false, got 'yes'"),
            ("{amount: json}", "{", "expected JSON, got '{'"),
            ("{amout: number}", "1", "'amout' names no column; did you mean 'amount'?"),
            ("{amount: float}", "1", "expected one of string, number, integer, boolean, json; got 'float'"),
            ("{input: number}", "1", "'input' is a field of a case, which has a type of its own"),
        ],
    )
    def test_what_does_not_fit_is_an_error_with_its_place(self, write: Write, types: str, cell: str, said: str) -> None:
        table = f"id,question,amount,vip,extra\na,refund,{cell},,\n"
        found = problems(self.load(write, types, table))
        assert any(said in each for each in found), found

    def test_only_tables_need_types(self, write: Write) -> None:
        write('{"id": "a", "input": "hi"}\n', "a.jsonl")
        (found,) = problems(write(f"{HEAD}dataset: {{files: a.jsonl, types: {{amount: number}}}}"))
        assert "the values of a.jsonl have types already" in found
