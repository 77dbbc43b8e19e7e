"""Properties that hold for all rows of datasets."""

import csv
import io
import json
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import yaml
from hypothesis import HealthCheck, given, settings

from agentv.evals import Eval
from agentv.spec.loader import load_data, load_evals
from tests.support.examples import examples

QUICK = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
# What YAML allows to be written at all; a lone carriage return it reads as a line feed unless it is escaped.
TEXTS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")) | st.sampled_from("\n\r\t,\"'{}"), max_size=9
)
SUITE: dict[str, Any] = {
    "targets": [{"name": "t", "provider": "mock"}],
    "defaults": {"evaluators": [{"type": "tool_trajectory", "minimums": {"a": 1}}]},
}
TEMPLATE = {
    "id": "{{ number }}-{{ _index }}",
    "input": "Q: {{ question }}",
    "tags": ["{{ some tag }}"],
    "vars": {"all": "{{ question }}", "some": ["{{ some tag }}", {"deep": "<{{ question }}>"}]},
}
IDS = st.lists(st.text("abcdé-", min_size=1, max_size=5), min_size=1, max_size=30, unique=True)


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, str]]:
    values = draw(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=6))
    return [
        {"number": f"n{number}", "question": question, "some tag": tag} for number, (question, tag) in enumerate(values)
    ]


@contextmanager
def folder() -> Iterator[Path]:
    with TemporaryDirectory() as name, chdir(name):
        yield Path(name)


def written(rows: list[dict[str, str]], kind: str) -> str:
    if kind == "jsonl":
        return "".join(json.dumps(row) + "\n" for row in rows)
    if kind == "yaml":
        # With quotes: what PyYAML leaves bare may be a number since YAML 1.2, such as `08`.
        return yaml.safe_dump(rows, allow_unicode=True, default_style='"')
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), delimiter="\t" if kind == "tsv" else ",")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def load(**dataset: Any) -> Eval:
    return load_data({**SUITE, "dataset": dataset})


def ids(found: Eval) -> list[str]:
    return [each.case.id for each in found.cases]


def write_cases(names: list[str], path: Path) -> None:
    path.write_text("".join(json.dumps({"id": name, "input": "x"}) + "\n" for name in names), encoding="utf-8")


@QUICK
@given(tables())
def test_the_same_rows_in_any_format_are_the_same_cases(rows: list[dict[str, str]]) -> None:
    with folder() as root:
        found = {}
        for kind in ("jsonl", "csv", "tsv", "yaml"):
            (root / f"rows.{kind}").write_bytes(written(rows, kind).encode())
            loaded = load(files=f"rows.{kind}", template=TEMPLATE)
            found[kind] = [(each.index, each.case) for each in loaded.cases]
        assert [case.vars["all"] for _, case in found["jsonl"]] == [row["question"] for row in rows]
        assert found["csv"] == found["tsv"] == found["yaml"] == found["jsonl"]


@QUICK
@given(tables())
def test_a_template_of_the_columns_themselves_changes_nothing(rows: list[dict[str, str]]) -> None:
    cases = [{"id": row["number"], "input": row["question"] or "x", "tags": [row["some tag"]]} for row in rows]
    template = {name: f"{{{{ {name} }}}}" for name in cases[0]}
    with folder() as root:
        (root / "cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
        plain = load_data({**SUITE, "dataset": "cases.jsonl"})
        assert list(load(files="cases.jsonl", template=template).cases) == list(plain.cases)


@QUICK
@given(IDS, st.integers(1, 40), st.integers(0, 2**63 - 1), st.data())
def test_a_sample_is_some_of_them_and_the_same_however_they_lie(
    names: list[str], n: int, seed: int, data: st.DataObject
) -> None:
    with folder() as root:
        write_cases(names, root / "all.jsonl")
        sample = {"n": n, "seed": seed}
        found = load(files="all.jsonl", sample=sample)
        taken = ids(found)
        assert len(taken) == len(set(taken)) == min(n, len(names)) == found.count
        assert taken == [name for name in names if name in taken]
        assert ids(load(files="all.jsonl", sample=sample)) == taken
        # In another order, in two files: the same ones.
        shuffled = data.draw(st.permutations(names))
        cut = data.draw(st.integers(0, len(names)))
        write_cases(shuffled[:cut], root / "1.jsonl")
        write_cases(shuffled[cut:], root / "2.jsonl")
        assert set(ids(load(files=["2.jsonl", "1.jsonl"], sample=sample))) == set(taken)
        # One that was not taken is missed by nobody.
        rest = [name for name in names if name not in taken]
        write_cases([name for name in names if name not in rest[:1]], root / "less.jsonl")
        assert ids(load(files="less.jsonl", sample=sample)) == taken


@QUICK
@given(IDS, st.integers(0, 2**63 - 1), st.integers(1, 40), st.data())
def test_a_shuffle_is_an_order_of_all_and_the_same_however_they_lie(
    names: list[str], seed: int, limit: int, data: st.DataObject
) -> None:
    with folder() as root:
        write_cases(names, root / "all.jsonl")
        order = ids(load(files="all.jsonl", shuffle={"seed": seed}))
        assert sorted(order) == sorted(names)
        assert ids(load(files="all.jsonl", shuffle={"seed": seed}, limit=limit)) == order[:limit]
        cut = data.draw(st.integers(0, len(names)))
        write_cases(names[cut:], root / "1.jsonl")
        write_cases(names[:cut], root / "2.jsonl")
        assert ids(load(files=["1.jsonl", "2.jsonl"], shuffle={"seed": seed})) == order
        sample = {"n": limit, "seed": seed}
        both = ids(load(files="all.jsonl", sample=sample, shuffle={"seed": seed}))
        assert both == [name for name in order if name in set(ids(load(files="all.jsonl", sample=sample)))]


def test_many_are_sampled_evenly_and_shuffled_well() -> None:
    with folder() as root:
        names = [f"case-{number:05}" for number in range(20_000)]
        write_cases(names, root / "all.jsonl")
        taken = ids(load(files="all.jsonl", sample={"n": 2_000, "seed": 7}))
        assert len(set(taken)) == 2_000
        assert 900 < sum(name < "case-10000" for name in taken) < 1_100
        order = ids(load(files="all.jsonl", shuffle=True))
        assert sorted(order) == names
        assert 9_500 < sum(first < second for first, second in pairwise(order)) < 10_500
        assert ids(load(files="all.jsonl", shuffle=True, limit=50)) == order[:50]


@QUICK
@given(IDS, st.integers(1, 40))
def test_what_is_loaded_twice_is_the_same_twice(names: list[str], limit: int) -> None:
    with folder() as root:
        write_cases(names, root / "all.jsonl")
        (root / "a.eval.yaml").write_text(json.dumps({**SUITE, "dataset": {"files": "*.jsonl", "limit": limit}}))
        (found,) = load_evals(["a.eval.yaml"])
        assert ids(found) == ids(found) == names[:limit]
