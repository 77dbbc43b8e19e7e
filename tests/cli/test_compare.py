"""`agentv compare A B`: the verdict, the numbers, what was lost and why, and an exit code that a build can rely on."""

import re
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from tests.support.command import Command, calls, minimum, mocked, strict_json
from tests.support.events import HOSTILE
from tests.support.records import called, missed, record, results, used, write

CALLS = {"type": "tool_trajectory", "mode": "in_order", "expected": [{"tool": "search"}]}


@pytest.fixture
def two(run: Command) -> Command:
    """Twenty cases, of which B lost nine, has one that A has not, and could not measure one."""
    a = [record(f"c{at}", "p", **called("search", "verify"), **used(100, 0.01, 1500.0)) for at in range(20)]
    b = [
        record(
            f"c{at}",
            "f" if at < 9 else "p",
            evaluators=missed(f"verify called 0 times in c{at}") if at < 9 else (),
            **called("search"),
            **used(150, 0.005, 900.0),
        )
        for at in range(20)
    ]
    write(run.folder / "a.jsonl", [*a, record("down"), record("gone")])
    write(run.folder / "b.jsonl", [*b, record("down", "e"), record("new")])
    return run


class TestWords:
    def test_the_verdict_comes_first_then_the_numbers(self, two: Command) -> None:
        result = two("compare", "a.jsonl", "b.jsonl")
        assert (result.code, result.err) == (0, "")
        lines = result.out.splitlines()
        assert lines[0] == "B is worse than A: 0 wins, 9 losses, 11 ties (exact p = 0.004)"
        assert lines[1:3] == ["  A  a.jsonl  agent  22 cases", "  B  b.jsonl  agent  22 cases, 1 error"]
        assert re.split(r"\s{2,}", lines[4].strip()) == ["A", "B", "difference (95 % CI)"]
        table = [re.split(r"\s{2,}", line.strip()) for line in lines[5:12]]
        assert table == [
            ["pass rate", "100.0 %", "55.0 %", "-45.0 pp (-65.8 to -20.0)"],
            ["score", "1.000", "0.550", "-0.450 (-0.650 to -0.250)"],
            ["input tokens", "100", "150", "+50 (+50 to +50), +50.0 %"],
            ["output tokens", "10", "15", "+5 (+5 to +5), +50.0 %"],
            ["cost", "$0.0100", "$0.0050", "-$0.0050 (-$0.0050 to -$0.0050), -50.0 %"],
            ["latency p50", "1.50 s", "0.90 s", "-0.60 s, -40.0 %"],
            ["latency p95", "1.50 s", "0.90 s", "-0.60 s, -40.0 %"],
        ]

    def test_each_loss_says_why_with_the_calls_of_both(self, two: Command) -> None:
        text = two("compare", "a.jsonl", "b.jsonl").out
        assert text.count("LOST ") == 9
        start = text.index("LOST c3")
        assert text[start : text.index("LOST c4")].splitlines() == [
            "LOST c3  1/1 -> 0/1 passed, score 1.00 -> 0.00  agent",
            "  FAIL calls (tool_trajectory)  0.00",
            "    ✗ verify called 0 times in c3",
            "      calls of A               │ calls of B",
            "    ✓ search(n=1)              │ search(n=1)",
            "    ✗ verify(n=1)              │",
            "",
        ]

    def test_what_is_in_no_test_is_named(self, two: Command) -> None:
        lines = two("compare", "a.jsonl", "b.jsonl").out.splitlines()
        assert lines[-5:-2] == [
            "not measured on both sides: down",
            "only in A (a.jsonl): gone",
            "only in B (b.jsonl): new",
        ]
        assert lines[-2].startswith("9 lost cases may be chance: one that fails in every run is told from it by ")
        assert lines[-1] == "missing: b.jsonl lacks 1 of the 22 cases of A: gone"

    def test_where_nothing_is_seen_it_says_what_it_would_take(self, two: Command) -> None:
        result = two("compare", "a.jsonl", "a.jsonl", "--difference", "0.1")
        assert result.out.startswith("no difference seen between A and B: 0 wins, 0 losses, 22 ties (exact p = 1.")
        wanted = r"^about \d+ more cases would be needed to see a difference of 10 pp \(80 % power\)$"
        assert re.search(wanted, result.out, re.MULTILINE)
        assert "not reported" not in result.out

    def test_what_nobody_reported_is_not_called_nothing(self, run: Command) -> None:
        write(run.folder / "r.jsonl", results("p"))
        assert re.search(r"cost +not reported +not reported$", run("compare", "r.jsonl", "r.jsonl").out, re.MULTILINE)

    @pytest.mark.parametrize(
        "text", [text for text in HOSTILE if "\0" not in text], ids=lambda text: text[:6].encode().hex()
    )
    @pytest.mark.parametrize("form", ["text", "markdown", "json"])
    def test_no_agent_and_no_name_gets_out_of_its_place(self, run: Command, text: str, form: str) -> None:
        for name, status in (("a", "p"), ("b", "f")):
            said = {"target": text + name, "evaluators": missed(text), **called(text)}
            write(run.folder / f"{name}.jsonl", [record(text, status, **said)])
        result = run("compare", "a.jsonl", "b.jsonl", "--format", form)
        assert result.code == 0
        assert "\x1b" not in result.out
        if form == "markdown":
            assert len(result.out.encode()) <= 60_000
            assert "\n# out of the fence" not in re.sub(
                r"^(`{3,})text\n.*?\n\1$", "", result.out, flags=re.MULTILINE | re.DOTALL
            )
        elif form == "json":
            assert strict_json(result.out)["lost"][0]["case_id"] == text


class TestExitCodes:
    @pytest.mark.parametrize(
        ("a", "b", "regression", "worse"),
        [
            (["p"] * 9, ["p"] * 9, 0, 0),
            (["p"] * 9, ["f"] + ["p"] * 8, 0, 0),
            (["ppp"] * 9, ["fff"] + ["ppp"] * 8, 1, 0),
            (["ppp"] * 9, ["pff"] + ["ppp"] * 8, 0, 0),
            (["p"] * 9, ["f"] * 9, 1, 1),
            (["ppp"] * 9, ["pff"] * 9, 1, 1),
            (["f"] * 9, ["p"] * 9, 0, 0),
            (["p"] * 9, ["e"] + ["p"] * 8, 3, 3),
            (["e"] + ["p"] * 8, ["p"] * 9, 0, 0),
            (["p"], ["e"], 3, 3),
        ],
        ids=[
            "the same",
            "one lost, which may be chance",
            "one lost for certain",
            "one lost and flaky",
            "all lost",
            "all lost, and flaky",
            "all won",
            "B could not measure what A did",
            "A could not measure what B did",
            "nothing measured",
        ],
    )
    def test_a_gate_is_asked_for_and_tells_flakes_from_regressions(
        self, run: Command, a: list[str], b: list[str], regression: int, worse: int
    ) -> None:
        write(run.folder / "a.jsonl", results(*a))
        write(run.folder / "b.jsonl", results(*b))
        found = [
            run("compare", "a.jsonl", "b.jsonl", *more).code
            for more in ([], ["--fail-on", "regression"], ["--fail-on", "worse"])
        ]
        assert found == [0, regression, worse]

    def test_a_gate_does_not_pass_on_missing_cases(self, run: Command) -> None:
        write(run.folder / "a.jsonl", results(*"p" * 40))
        write(run.folder / "b.jsonl", results("p"))
        for gate in (["--fail-on", "regression"], ["--fail-on", "worse"], ["--max-regressions", "1"]):
            result = run("compare", "a.jsonl", "b.jsonl", *gate)
            assert result.code == 3
            assert "b.jsonl lacks 39 of the 40 cases of A: c1, c2, " in result.err
            assert "--allow-missing compares what there is" in result.err
            assert run("compare", "a.jsonl", "b.jsonl", *gate, "--allow-missing").code == 0
        assert run("compare", "a.jsonl", "b.jsonl").code == 0

    def test_a_gate_does_not_pass_on_a_file_that_is_cut_off(self, run: Command) -> None:
        whole = write(run.folder / "a.jsonl", results(*"p" * 3)).read_bytes()
        (run.folder / "b.jsonl").write_bytes(whole + whole[:100])
        result = run("compare", "a.jsonl", "b.jsonl", "--fail-on", "worse")
        assert (result.code, "b.jsonl: its last line is cut off, as after a crash" in result.err) == (3, True)
        assert run("compare", "a.jsonl", "b.jsonl", "--fail-on", "worse", "--allow-missing").code == 0

    def test_what_is_lost_counts_against_a_number_that_is_allowed(self, run: Command) -> None:
        write(run.folder / "a.jsonl", results(*"p" * 10))
        write(run.folder / "b.jsonl", results(*"ff", *"p" * 8))
        result = run("compare", "a.jsonl", "b.jsonl", "--max-regressions", "1")
        assert result.code == 1
        assert result.out.splitlines()[0] == "2 cases lost (--max-regressions 1): c0, c1"
        assert run("compare", "a.jsonl", "b.jsonl", "--max-regressions", "2").code == 0
        page = run("compare", "a.jsonl", "b.jsonl", "--max-regressions", "0", "--format", "markdown").out
        assert page.startswith("# ❌ 2 cases lost (--max-regressions 0): c0, c1\n")

    def test_b_must_pass_a_share_of_its_runs(self, run: Command) -> None:
        write(run.folder / "a.jsonl", results(*"p" * 10))
        write(run.folder / "b.jsonl", results("f", *"p" * 9))
        result = run("compare", "a.jsonl", "b.jsonl", "--min-pass-rate", "0.95")
        assert result.code == 1
        assert result.out.startswith("90.0 % of 10 measured runs of B passed (--min-pass-rate 0.95)\n")
        assert run("compare", "a.jsonl", "b.jsonl", "--min-pass-rate", "0.9").code == 0

    def test_the_headline_names_what_the_gate_found(self, run: Command) -> None:
        write(run.folder / "a.jsonl", results(*["ppppp"] * 20))
        write(run.folder / "b.jsonl", results("fffff", *["ppppp"] * 19))
        result = run("compare", "a.jsonl", "b.jsonl", "--fail-on", "regression")
        assert result.code == 1
        assert result.out.startswith("B is worse than A: 1 regression: c0; overall -5.0 points (exact p = 0.008)\n")
        assert "REGRESSED c0  5/5 -> 0/5 passed" in result.out
        write(run.folder / "a.jsonl", results(*["ppp"] * 20))
        write(run.folder / "b.jsonl", results("fff", *["ppp"] * 19))
        text = run("compare", "a.jsonl", "b.jsonl", "--fail-on", "regression").out
        assert text.startswith("1 regression: c0; overall -5.0 points, not significant (exact p = 0.100)\n")

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["a.jsonl", "none.jsonl"], "none.jsonl cannot be read: No such file or directory, and no execution"),
            (["a.jsonl", "."], ". cannot be read: Is a directory"),
            (["a.jsonl", "torn.jsonl"], "torn.jsonl holds no results"),
            (["a.jsonl", "broken.jsonl"], "broken.jsonl:1: not a result"),
            (["a.jsonl", "empty.jsonl"], "empty.jsonl holds no results"),
            (["a.jsonl", "other.jsonl"], "no case is in both"),
            (["a.jsonl", "b.jsonl", "--target-a", "agnet"], "did you mean 'agent'?"),
            (["a.jsonl", "b.jsonl", "--confidence", "95"], "95.0 is not in the range 0<x<1"),
            (["a.jsonl", "b.jsonl", "--confidence", "nan"], "'nan' is not a number"),
            (["a.jsonl", "b.jsonl", "--difference", "0"], "0.0 is not in the range 0<x<1"),
            (["a.jsonl", "b.jsonl", "--out", "b.jsonl"], "must end in .md or .json"),
            (["a.jsonl", "b.json", "--out", "b.json"], "--out b.json would overwrite what is compared"),
            (["a.jsonl", "b.jsonl", "--out", "none/r.md"], "none/r.md cannot be written: No such file or directory"),
            (["a.jsonl"], "Missing argument 'B'"),
        ],
    )
    def test_a_mistake_is_one_sentence_and_2(self, two: Command, arguments: list[str], said: str) -> None:
        write(two.folder / "other.jsonl", [record("elsewhere")])
        write(two.folder / "b.json", [record("c0")])
        (two.folder / "empty.jsonl").write_text("")
        (two.folder / "torn.jsonl").write_text('{"schema": "agentv.res')
        (two.folder / "broken.jsonl").write_text('{"schema": "agentv.res\n')
        result = two("compare", *arguments)
        assert result.code == 2
        assert said in result.err
        assert "Traceback" not in result.err

    @pytest.mark.parametrize("form", ["text", "markdown"])
    def test_a_line_that_a_crash_has_cut_off_is_left_out_and_told(self, two: Command, form: str) -> None:
        whole = (two.folder / "b.jsonl").read_bytes()
        (two.folder / "torn.jsonl").write_bytes(whole + whole.splitlines()[0][:100])
        result = two("compare", "b.jsonl", "torn.jsonl", "--format", form)
        assert result.code == 0
        assert result.out.count("its last line is cut off, as after a crash, and left out") == 1
        found = strict_json(two("compare", "b.jsonl", "torn.jsonl", "--json").out)
        assert (found["a"]["cut_off"], found["b"]["cut_off"]) == (False, True)
        assert found["a"]["runs"] == found["b"]["runs"]


class TestFormats:
    def test_json_is_one_object_and_nothing_else(self, two: Command) -> None:
        result = two("compare", "a.jsonl", "b.jsonl", "--json", "--seed", "5")
        found = strict_json(result.out)
        assert next(iter(found)) == "schema"
        assert (found["schema"], found["verdict"], found["regression"]) == ("agentv.comparison/2", "worse", True)
        assert (found["cases"], found["losses"], found["seed"], found["clear_losses"]) == (20, 9, 5, 9)
        assert found["measures"]["cost_usd"]["difference"] == -0.005
        assert found["lost"][0]["evaluators"][0]["misses"] == ["verify called 0 times in c0"]
        assert found["lost"][0]["calls"][1] == {"verdict": "missing", "a": "verify(n=1)", "b": ""}
        assert two("compare", "a.jsonl", "b.jsonl", "--format", "json", "--seed", "5").out == result.out

    def test_a_page_is_printed_or_written(self, two: Command) -> None:
        printed = two("compare", "a.jsonl", "b.jsonl", "--format", "markdown").out
        assert printed.splitlines()[0].startswith("# ❌ B is worse than A: 0 wins, 9 losses, 11 ties")
        assert "| pass rate | 100.0 % | 55.0 % | -45.0 pp (-65.8 to -20.0) |" in printed
        assert re.findall(r"^### (.*)", printed, re.MULTILINE) == [f"`c{at}`" for at in range(9)]
        assert "- Only in B: `new`" in printed
        assert "Missing: b.jsonl lacks 1 of the 22 cases of A: gone." in printed
        result = two("compare", "a.jsonl", "b.jsonl", "--out", "r.md")
        assert result.out.startswith("B is worse than A")
        assert (two.folder / "r.md").read_text(encoding="utf-8") == printed
        assert (two.folder / "r.md").stat().st_mode & 0o777 == 0o600
        two("compare", "a.jsonl", "b.jsonl", "--out", "r.json")
        assert strict_json((two.folder / "r.json").read_text())["losses"] == 9

    def test_a_page_stays_small_enough_for_a_comment(self, run: Command) -> None:
        write(run.folder / "a.jsonl", results(*["p"] * 3_000))
        write(run.folder / "b.jsonl", results(*["f"] * 3_000, evaluators=missed("x" * 20_000)))
        page = run("compare", "a.jsonl", "b.jsonl", "--format", "markdown").out
        assert len(page.encode()) <= 60_000
        shown = len(re.findall("^### ", page, re.MULTILINE))
        assert 1 <= shown <= 20
        assert f"{3_000 - shown - 20:,} more." in page

    def test_many_losses_do_not_scroll_for_ever(self, run: Command) -> None:
        write(run.folder / "a.jsonl", results(*["p"] * 3_000))
        write(run.folder / "b.jsonl", results(*["f"] * 3_000, evaluators=missed("no")))
        text = run("compare", "a.jsonl", "b.jsonl").out
        assert (text.count("LOST "), text.count("FAIL calls")) == (200, 20)
        assert "     2,800 more were lost" in text

    def test_whoever_closes_the_pipe_has_seen_enough(self, run: Command) -> None:
        write(run.folder / "a.jsonl", results(*["p"] * 300))
        write(run.folder / "b.jsonl", results(*["f"] * 300, evaluators=missed("x" * 20_000)))
        process = run.start("compare", "a.jsonl", "b.jsonl", "--json", "--fail-on", "worse")
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
        process.stderr.close()
        assert process.wait(timeout=60) == 1, "what was asked for is still told"

    def test_a_terminal_gets_colours_and_a_pipe_none(self, two: Command) -> None:
        code, text = two.on_terminal("compare", "a.jsonl", "b.jsonl", "--fail-on", "worse")
        assert code == 1
        assert "\x1b[31mB is worse than A" in text
        assert "\x1b[31mLOST\x1b[0m c0" in text
        plain = two.process("compare", "a.jsonl", "b.jsonl", env={"PYTHONIOENCODING": "ascii"})
        assert plain.out.isascii()
        assert (plain.code, "\x1b" in plain.out) == (0, False)


def test_two_real_executions_are_compared(run: Command) -> None:
    eval_file: dict[str, Any] = {
        "targets": [
            mocked(calls("search"), calls("search"), name="old"),
            mocked(calls("search"), calls(), name="new"),
        ],
        "cases": [{"id": name, "input": "x", "evaluators": [minimum(search=1)]} for name in ("first", "second")],
    }
    run.write("s.eval.yaml", eval_file)
    run("eval", "s.eval.yaml", "--out", "both.jsonl", "-q")
    result = run("compare", "both.jsonl", "both.jsonl", "--target-a", "old", "--target-b", "new")
    assert "LOST second  1/1 -> 0/1 passed" in result.out
    assert "    ✗ search called 0 times (minimum: 1)" in result.out
    assert "    calls: search 1 -> 0" in result.out
    by_name = run("compare", "both.jsonl", "both.jsonl")
    assert by_name.out.startswith("no difference seen between A and B: 0 wins, 0 losses, 4 ties")


class TestStore:
    @pytest.fixture
    def stored(self, run: Command) -> Command:
        """Two executions of one eval; in the second, one case has lost a call."""
        for replies in ((calls("search"), calls("search")), (calls("search"), calls("guess"))):
            cases = [{"id": name, "input": "?", "evaluators": [CALLS]} for name in ("a", "b")]
            run.write("a.eval.yaml", {"targets": [mocked(*replies)], "cases": cases})
            run("eval", "a.eval.yaml", "-q")
        return run

    def names(self, run: Command) -> list[str]:
        listed = strict_json(run("executions", "list", "--json").out)["executions"]
        return [row["id"] for row in listed]

    def test_executions_are_named_by_their_ids_and_losses_show_their_diff(self, stored: Command) -> None:
        after, before = self.names(stored)
        result = stored("compare", before, "last", "--max-regressions", "0")
        assert result.code == 1, result.err
        assert f"  A  {before}" in result.out
        assert f"  B  {after}" in result.out
        assert "missing call: search" in result.out
        assert re.search(r"search\s+[│|]", result.out), "the aligned diff"

    def test_the_execution_before_the_last_has_a_name(self, stored: Command) -> None:
        after, before = self.names(stored)
        result = stored("compare", "last~1", "last")
        assert f"  A  {before}" in result.out
        assert f"  B  {after}" in result.out
        assert "holds only 2 of them yet" in stored("compare", "last~2", "last").err
        assert before in stored("executions", "show", "last~1").out

    def test_a_gate_does_not_pass_on_an_execution_that_was_interrupted(self, stored: Command) -> None:
        after, _ = self.names(stored)
        with closing(sqlite3.connect(stored.folder / ".agentv/runs.db")) as db, db:
            db.execute(
                "UPDATE executions SET planned = 9, status = 'interrupted', checksum = NULL WHERE id = ?", (after,)
            )
        db.close()
        result = stored("compare", "last", "last", "--fail-on", "worse")
        assert (result.code, f"{after}: only 2 of 9 runs have a result (interrupted)" in result.err) == (3, True)

    def test_an_execution_is_compared_with_a_file(self, stored: Command) -> None:
        stored("eval", "a.eval.yaml", "-q", "--no-store", "--out", "now.jsonl")
        assert stored("compare", "last", "now.jsonl").out.startswith("no difference seen")

    def test_a_name_that_is_neither_is_told(self, stored: Command) -> None:
        result = stored("compare", "1999", "last")
        assert result.code == 2
        assert "holds no execution '1999'" in result.err
        assert "nowhere.jsonl" in stored("compare", "nowhere.jsonl", "last").err
