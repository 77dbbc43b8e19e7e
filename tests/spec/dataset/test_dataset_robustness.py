"""Datasets that were made to do harm, or by accident look as if they were."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.evals import HEAD, Write, problems

MEGA = 1024 * 1024
TEMPLATE = '{id: "{{ id }}", input: "{{ q }}"}'
PEAK = """
import sys
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from agentv.errors import SpecError
from agentv.spec.loader import load_evals
try:
    load_evals(["a.eval.yaml"])
except SpecError as error:
    print(error)
status = Path("/proc/self/status")
if status.exists():  # what the parent held counts towards `ru_maxrss`
    kilo = next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
else:
    kilo = getrusage(RUSAGE_SELF).ru_maxrss // (1024 if sys.platform == "darwin" else 1)
print(kilo // 1024)
"""


def peak(tmp_path: Path) -> tuple[list[str], int]:
    """Return the output of `agentv` in a process of its own, and its peak memory in MB."""
    command = [sys.executable, "-c", PEAK]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    *said, megabytes = done.stdout.splitlines()
    return said, int(megabytes)


@pytest.mark.parametrize("more", ["", f", template: {TEMPLATE}", ", where: {id: a}"])
@pytest.mark.parametrize("deep", ["[" * 200_000, "[" * 200_000 + "]" * 200_000, '{"a":' * 500 + "1" + "}" * 500])
def test_deep_json_is_refused(write: Write, more: str, deep: str) -> None:
    write(f'{{"id": "a", "q": {deep}}}\n', "rows.jsonl")
    (found,) = problems(write(f"{HEAD}dataset: {{files: rows.jsonl{more}}}"))
    assert found.startswith("rows.jsonl:1: ")
    assert "nested deeper than" in found or "not JSON" in found


def test_a_template_may_be_no_deeper_than_a_case(write: Write) -> None:
    write('{"id": "a", "q": ' + "[" * 90 + "1" + "]" * 90 + "}\n", "rows.jsonl")
    template = '{id: "{{ id }}", input: x, metadata: {a: ' + "[" * 60 + '"{{ q }}"' + "]" * 60 + "}}"
    (found,) = problems(write(f"{HEAD}dataset: {{files: rows.jsonl, template: {template}}}"))
    assert found == "rows.jsonl:1: nested deeper than 128 levels"


def test_a_bomb_of_aliases_is_refused(write: Write) -> None:
    names = "abcdefghi"
    parts = [f"- &{name} [{', '.join([f'*{last}'] * 9)}]" for last, name in pairwise(names)]
    write("\n".join(["- &a [x, x, x, x, x, x, x, x, x]", *parts]), "rows.yaml")
    (found,) = problems(write(f"{HEAD}dataset: rows.yaml"))
    assert found.startswith("rows.yaml:")
    assert "alias" in found


def test_a_table_full_of_columns(write: Write) -> None:
    columns = [f"c{number}" for number in range(20_000)]
    write(",".join(["id", "q", *columns]) + "\n" + "a,b" + ",x" * 20_000 + "\n", "rows.csv")
    template = '{id: "{{ id }}", input: "{{ nope }}"}'
    (found,) = problems(write(f"{HEAD}dataset: {{files: rows.csv, template: {template}}}"))
    assert len(found) < 1_000


@pytest.mark.skipif(sys.platform == "win32", reason="its peak is not to be had")
class TestMemory:
    def test_a_line_of_100_megabytes(self, write: Write, tmp_path: Path) -> None:
        write(b'{"id": "a", "input": "' + b"x" * 100 * MEGA + b'"}\n{"id": "b", "inputs": "x"}\n', "rows.jsonl")
        write(f"{HEAD}dataset: rows.jsonl")
        said, megabytes = peak(tmp_path)
        assert said == [
            "rows.jsonl:1: a line of more than 67,108,864 bytes",
            "rows.jsonl:2: unknown key 'inputs'; did you mean 'input'?",
        ]
        assert megabytes < 250

    @pytest.mark.parametrize("line", [b"b,x\n", b"b" * 100 * MEGA])
    def test_a_quote_that_is_never_closed(self, write: Write, tmp_path: Path, line: bytes) -> None:
        write(b'id,input\na,"x\n' + line * (100 * MEGA // len(line)), "rows.csv")
        write(f"{HEAD}dataset: rows.csv")
        said, megabytes = peak(tmp_path)
        assert said == [
            "rows.csv:2: a row of more than 10,485,760 bytes; is a quote not closed? The rest of the file was not read"
        ]
        assert megabytes < 250

    def test_many_bad_rows(self, write: Write, tmp_path: Path) -> None:
        write(b"id,input\n" + b'a,"x"y\n' * 1_000_000, "rows.csv")
        write(f"{HEAD}dataset: rows.csv")
        said, megabytes = peak(tmp_path)
        assert len(said) == 101
        assert megabytes < 100

    def test_shuffling_remembers_places_and_not_cases(self, write: Write, tmp_path: Path) -> None:
        few = "".join(f'{{"id": "{number}", "input": "x"}}\n' for number in range(50_000))
        write(few, "rows.jsonl")
        write(f"{HEAD}dataset: rows.jsonl")
        _, plain = peak(tmp_path)
        write(f"{HEAD}dataset: {{files: rows.jsonl, shuffle: true}}")
        _, shuffled = peak(tmp_path)
        write(f"{HEAD}dataset: {{files: rows.jsonl, sample: {{n: 1000}}}}")
        _, sampled = peak(tmp_path)
        # 37 bytes a case while all are read, and a hash function to load; the cases would take a hundred times that.
        assert shuffled - plain < 12
        assert sampled - plain < 8
