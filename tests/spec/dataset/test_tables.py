"""CSV, TSV and YAML as datasets: what a row is, and on which line it stands."""

from pathlib import Path

import pytest

from agentv.evals import Eval
from tests.support.evals import HEAD, Write, only, problems

MARK = b"\xef\xbb\xbf"


def table(write: Write, text: str | bytes, name: str = "rows.csv") -> Path:
    write(text, name)
    return write(f"{HEAD}dataset: {name}")


def said(write: Write, text: str | bytes, name: str = "rows.csv") -> list[str]:
    return problems(table(write, text, name))


def asked(found: Eval) -> list[tuple[str, object, int]]:
    return [
        (each.case.id, each.case.input_messages[0].content, each.location.line if each.location else 0)
        for each in found.cases
    ]


class TestTables:
    def test_a_table_of_id_and_input_is_enough(self, write: Write) -> None:
        assert asked(only(table(write, "id,input\na,Hello\nb,Bye\n"))) == [("a", "Hello", 2), ("b", "Bye", 3)]

    def test_quotes_line_ends_and_empty_lines(self, write: Write) -> None:
        text = 'id,input\r\na,"one\r\ntwo, ""three"""\r\n\r\nb,"x\ny"\r\nc,\'z" \r\n'
        assert asked(only(table(write, text))) == [
            ("a", 'one\r\ntwo, "three"', 2),
            ("b", "x\ny", 5),
            ("c", "'z\" ", 7),
        ]

    @pytest.mark.parametrize("mark", [b"", MARK])
    def test_a_byte_order_mark_and_spaces_in_the_first_line(self, write: Write, mark: bytes) -> None:
        assert asked(only(table(write, mark + b'"id", input\na,x'))) == [("a", "x", 2)]

    def test_tabs_separate_in_tsv(self, write: Write) -> None:
        assert asked(only(table(write, 'id\tinput\na\tb, c\nd\t"e\tf"\n', "rows.tsv"))) == [
            ("a", "b, c", 2),
            ("d", "e\tf", 3),
        ]

    def test_other_columns_are_vars(self, write: Write) -> None:
        text = (
            'id,input,city,vars,evaluators,metadata,expected\na,In {{ city }}?,Oslo,"{""n"": 1}",,"{""k"": [2]}",Yes\n'
        )
        (checked,) = only(table(write, text)).cases
        assert checked.case.input_messages[0].content == "In Oslo?"
        assert (checked.case.vars, checked.case.metadata) == ({"n": 1, "city": "Oslo"}, {"k": [2]})
        assert checked.case.expected_messages is not None
        assert checked.case.expected_messages[0].content == "Yes"

    def test_columns_without_a_name_are_passed_over(self, write: Write) -> None:
        (checked,) = only(table(write, ",id,input,\n0,a,x,\n")).cases
        assert (checked.case.id, checked.case.vars) == ("a", {})

    @pytest.mark.parametrize(
        ("text", "said_of_it"),
        [
            ("", "rows.csv:1: expected a line with the names of the columns, got an empty file"),
            ("id,input,id\na,x,b", "rows.csv:1: two columns are called 'id'"),
            (
                "question,answer\nx,y",
                (
                    "rows.csv:1: no column 'id' and no column 'input' among question, answer. "
                    "Rename one, or add a `template`"
                ),
            ),
            (
                "id,inputs\na,x",
                (
                    "rows.csv:1: no column 'input' among id, inputs. Did you mean 'inputs'? "
                    "Rename one, or add a `template`"
                ),
            ),
            (
                "id;input\na;x",
                (
                    "rows.csv:1: no column 'id' and no column 'input' among id;input. "
                    "Write `format: tsv` for tabs, or separate them by commas"
                ),
            ),
            (
                "id,input,expected_mesages\na,x,y",
                (
                    "rows.csv:1: the column 'expected_mesages' is no field of a case; "
                    "did you mean 'expected_messages'? Rename it, or add a `template`"
                ),
            ),
            (
                "id,input\na,x,y",
                (
                    "rows.csv:2: 3 cells where the first line names 2 columns; "
                    "a cell that holds the separator needs quotes"
                ),
            ),
            ("id,input\n\na", "rows.csv:3: 1 cell where the first line names 2 columns; some are missing"),
            ('id,input\na,"x\n\ny', "rows.csv:2: a quote that is opened in this row is never closed"),
            (
                'id,input\na,"x"y',
                'rows.csv:2: a cell goes on after its closing quote; a quote within a cell is written twice: ""',
            ),
            (
                "id,input\ra,x\r",
                (
                    "rows.csv:1: a line ends with a carriage return alone; "
                    "save the file with the line ends of Unix or Windows"
                ),
            ),
            (b"id,input\na,\xff", "rows.csv:2: line 2 is not valid UTF-8; save the file as UTF-8"),
            (b'id,input\na,"x\n\xe4"\n', "rows.csv:2: line 3 is not valid UTF-8; save the file as UTF-8"),
            ("id,input\na,\0", "rows.csv:2: line 2 holds a NUL; is this a text file?"),
            ("id,input\n,x", "rows.csv:2: id: required"),
            ("id,input\na,", "rows.csv:2: case 'a' asks nothing: add `input`"),
            ("id,input,repeat\na,x,often", "rows.csv:2: repeat: expected a whole number, got 'often'"),
            ("id,input,repeat\na,x,0", "rows.csv:2: repeat: expected int >= 1; got 0"),
            ("id,input,only\na,x,1", "rows.csv:2: only: expected true or false, got '1'"),
            ("id,input,skip\na,x,no", "rows.csv:2: skip: expected true, false, or a reason in words; got 'no'"),
            ("id,input,vars\na,x,{a}", "rows.csv:2: vars: expected a mapping, got '{a}'"),
            ("id,input\na,x\na,y", "rows.csv:3: id: 'a' is the id of another case, at rows.csv:2"),
        ],
    )
    def test_problems_name_the_line_and_the_fix(self, write: Write, text: str | bytes, said_of_it: str) -> None:
        (found,) = said(write, text)
        assert found.startswith(said_of_it)

    def test_one_bad_row_does_not_hide_the_next(self, write: Write) -> None:
        found = said(write, b'id,input\na,"x"y\nb,x,z\nc,x\nd,\xff\ne\n"f,x\n')
        assert [each.split(": ")[0] for each in found] == [f"rows.csv:{line}" for line in (2, 3, 5, 6, 7)]

    def test_a_row_of_any_length_is_found_again(self, write: Write) -> None:
        text = "id,input\n" + "".join(f'{n},"{"é" * n}\n\n{"x" * n * 10}"\n' for n in range(200))
        write(text, "rows.csv")
        plain = asked(only(write(f"{HEAD}dataset: rows.csv")))
        mixed = asked(only(write(f"{HEAD}dataset: {{files: rows.csv, shuffle: {{seed: 3}}}}")))
        assert mixed != plain
        assert sorted(mixed) == sorted(plain)

    def test_a_large_cell_is_read(self, write: Write) -> None:
        (found,) = asked(only(table(write, f"id,input\na,{'x' * 1_000_000}\n")))
        assert found[1] == "x" * 1_000_000


class TestYaml:
    def test_a_list_of_cases(self, write: Write) -> None:
        text = "# cases\n- id: a\n  input: Hello\n\n- {id: b, input: Bye, vars: {n: 1}}\n"
        assert asked(only(table(write, text, "rows.yaml"))) == [("a", "Hello", 2), ("b", "Bye", 5)]

    def test_a_list_of_rows(self, write: Write) -> None:
        write("- {q: &q What?, n: 1}\n- {q: *q, n: 2}\n", "rows.yaml")
        template = '{id: "{{ n }}", input: "{{ q }}", vars: {n: "{{ n }}"}}'
        found = only(write(f"{HEAD}dataset: {{files: rows.yaml, template: {template}}}"))
        assert asked(found) == [("1", "What?", 1), ("2", "What?", 2)]
        assert [each.case.vars for each in found.cases] == [{"n": 1}, {"n": 2}]

    def test_problems_have_line_and_column(self, write: Write) -> None:
        text = "- id: a\n  inputs: Hello\n  input: x\n- 3\n- {id: a, input: x, skip: no}\n"
        assert said(write, text, "rows.yaml") == [
            "rows.yaml:2:3: unknown key 'inputs'; did you mean 'input'?",
            "rows.yaml:4:3: expected a mapping with an `id` and an `input`",
            "rows.yaml:5:27: skip: expected true, false, or a reason in words; got 'no'",
        ]

    def test_what_surprises_is_a_warning(self, write: Write) -> None:
        found = only(table(write, "- {id: 007, input: x}\n", "rows.yaml"))
        assert [str(warning) for warning in found.warnings] == [
            "rows.yaml:1:8: read as the number 7; quote it to keep the zeros"
        ]

    @pytest.mark.parametrize(
        ("text", "said_of_it"),
        [
            ("", "rows.yaml:1:1: expected a list of cases, or of rows for a `template`; got an empty file"),
            ("a: 1", "rows.yaml:1:1: expected a list of cases, or of rows for a `template`; got a mapping"),
            ("- {id: a, id: b}", "rows.yaml:1:11: "),
            ("- [", "rows.yaml:1:"),
        ],
    )
    def test_what_is_no_list_is_refused(self, write: Write, text: str, said_of_it: str) -> None:
        (found,) = said(write, text, "rows.yaml")
        assert found.startswith(said_of_it)
