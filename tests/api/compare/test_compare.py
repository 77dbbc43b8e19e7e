"""Tests of `agentv.compare`."""

import os
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import UNSET
from msgspec.structs import replace
from scipy.stats import binomtest  # type: ignore[import-untyped]  # it has no types

import agentv
from agentv.api.compare.sources import RecordList, read_side
from agentv.model.comparison import CaseList
from agentv.model.response import TokensUsage
from agentv.model.results import DiffLabels, ResultRecord
from agentv.scoring.statistics import paired_difference
from tests.support.records import called, missed, record, results, used, write


def names(named: CaseList) -> list[str]:
    return [case.case_id for case in named.cases]


class TestMatching:
    def test_cases_are_matched_by_eval_and_id_whatever_their_order(self) -> None:
        a = [record("x"), record("y", "f"), record("x", eval_id="sales")]
        b = [record("x", "f", eval_id="sales"), record("y"), record("x")]
        found = agentv.compare(a, b)
        assert (found.cases, found.wins, found.losses, found.both_passed, found.both_failed) == (3, 1, 1, 1, 0)
        assert [(each.eval_id, each.case_id) for each in found.lost] == [("sales", "x")]
        assert names(found.won) == ["y"]

    def test_what_only_one_side_has_is_named_and_in_no_test(self) -> None:
        found = agentv.compare([record("x"), record("gone", "f")], [record("new", "f"), record("x")])
        assert (found.cases, names(found.only_a), names(found.only_b)) == (1, ["gone"], ["new"])
        assert found.measures.pass_rate.a == 1.0

    def test_an_error_on_either_side_is_neither_a_win_nor_a_loss(self) -> None:
        found = agentv.compare(results("p", "e", "e", "p"), results("e", "p", "e", "p"))
        assert (found.cases, found.wins, found.losses) == (1, 0, 0)
        assert (found.not_measured.count, names(found.not_measured)) == (3, ["c0", "c1", "c2"])
        assert found.lost_to_errors == 1, "A could measure it and B could not"
        assert found.regression is False

    def test_names_are_bounded_and_counts_are_not(self) -> None:
        found = agentv.compare([record("x"), *results(*["p"] * 500)], [record("x")])
        assert (found.only_a.count, len(found.only_a.cases)) == (500, 50)

    def test_nothing_in_common_is_a_mistake_that_is_explained(self) -> None:
        with pytest.raises(
            agentv.FormatError, match=r"no case is in both: A has case 'x' of 'support', B has case 'y'"
        ):
            agentv.compare([record("x")], [record("y")])

    def test_a_run_that_is_there_twice_is_refused(self) -> None:
        with pytest.raises(agentv.FormatError, match=r"holds case 'x' of 'support' twice"):
            agentv.compare([record("x"), record("x")], [record("x")])

    @pytest.mark.parametrize("repeat", [-1, 10**9])
    def test_a_repetition_that_cannot_be_is_refused(self, repeat: int) -> None:
        with pytest.raises(agentv.FormatError, match="which cannot be"):
            agentv.compare([record("x", repeat=repeat)], [record("x")])


class TestTargets:
    def test_one_target_is_held_against_one_whatever_they_are_called(self) -> None:
        found = agentv.compare([record("x", target="old")], [record("x", "f", target="new")])
        assert (found.a.targets, found.b.targets, found.losses) == (("old",), ("new",), 1)
        assert found.lost[0].target is None

    def test_several_are_matched_by_name_and_the_others_are_told(self) -> None:
        a = [record("x", target=name) for name in ("one", "two", "old")]
        b = [record("x", "f", target="two"), record("x", target="one"), record("x", target="new")]
        found = agentv.compare(a, b)
        assert (found.cases, [each.target for each in found.lost]) == (2, ["two"])
        assert (found.a.targets_left_out, found.b.targets_left_out) == (("old",), ("new",))

    def test_two_targets_of_one_execution_are_chosen_by_name(self) -> None:
        both = [record("x", "f", target="old"), record("x", target="new")]
        found = agentv.compare(both, both, target_a="old", target_b="new")
        assert (found.wins, found.losses, found.a.targets_left_out) == (1, 0, ())

    @pytest.mark.parametrize(
        ("options", "said"),
        [
            ({}, "no target is on both sides: A has 'one', 'two', B has 'three'; choose one of each with --target-a"),
            ({"target_a": "tow"}, "--target-a: A has no target 'tow'; did you mean 'two'?"),
            ({"target_b": "zzz"}, "--target-b: B has no target 'zzz'; it has 'three'"),
        ],
    )
    def test_what_cannot_be_chosen_is_explained(self, options: dict[str, Any], said: str) -> None:
        a = [record("x", target="one"), record("x", target="two")]
        with pytest.raises(agentv.FormatError) as raised:
            agentv.compare(a, [record("x", target="three")], **options)
        assert said in str(raised.value)


class TestRepeats:
    def test_a_case_passes_when_more_than_half_of_its_measured_runs_do(self) -> None:
        found = agentv.compare(results("ppp", "ppp", "pp", "ppp"), results("ppf", "pff", "pf", "pee"))
        assert [each.case_id for each in found.lost] == ["c1", "c2"]
        assert found.both_passed == 2
        assert [each.flaky for each in found.lost] == [True, True]
        assert (found.lost[0].a.passed, found.lost[0].b.passed, found.lost[0].b.failed) == (3, 1, 2)
        assert found.lost[0].b.score == pytest.approx(1 / 3, abs=1e-6)

    def test_pass_rates_and_scores_are_means_of_cases_whatever_the_number_of_their_runs(self) -> None:
        found = agentv.compare(results("p" * 8, "f"), results("pf", "f"))
        assert (found.measures.pass_rate.a, found.measures.pass_rate.b) == (0.5, 0.25)
        assert found.measures.pass_rate.method == "bootstrap"
        assert found.measures.score.difference == pytest.approx(-0.25)


class TestVerdict:
    def test_a_significant_loss_is_worse_and_turned_round_better(self) -> None:
        a, b = results(*["p"] * 20), results(*["f"] * 9, "e", *["p"] * 10)
        worse, better = agentv.compare(a, b), agentv.compare(b, a)
        assert (worse.verdict, worse.decided_by, worse.losses, worse.cases) == ("worse", "pass_rate", 9, 19)
        assert worse.p_value == pytest.approx(binomtest(0, 9).pvalue)
        assert (better.verdict, better.wins, better.regression) == ("better", 9, False)
        wanted = paired_difference(10, 0, 9, 0)
        assert worse.measures.pass_rate.interval == pytest.approx(wanted)
        assert worse.measures.pass_rate.method == "newcombe"
        assert better.measures.pass_rate.difference == pytest.approx(9 / 19)

    def test_a_few_flips_are_no_difference_and_it_says_how_many_cases_would_be(self) -> None:
        found = agentv.compare(results(*["p"] * 18, "f", "f"), results("f", *["p"] * 19))
        assert (found.verdict, found.decided_by, found.wins, found.losses) == ("no difference seen", None, 2, 1)
        assert found.needed is not None
        assert (found.needed.difference, found.needed.power) == (0.05, 0.8)
        assert found.needed.more == found.needed.cases - 20 > 0
        larger = agentv.compare(results(*["p"] * 20), results(*["p"] * 20), difference=0.9).needed
        assert larger is not None
        assert larger.more == 0

    def test_scores_decide_where_passes_show_nothing(self) -> None:
        chance = Random(1)  # noqa: S311 - no secret hangs on it
        before = [record(f"c{at}", "f", score=0.5) for at in range(40)]
        after = [record(f"c{at}", "f", score=0.4 - chance.random() / 10) for at in range(40)]
        found = agentv.compare(before, after)
        assert (found.verdict, found.decided_by, found.wins, found.losses) == ("worse", "score", 0, 0)
        assert found.regression
        interval = found.measures.score.interval
        assert interval is not None
        assert interval[0] < found.measures.score.difference < interval[1] < 0  # type: ignore[operator]  # it is there

    def test_few_cases_prove_nothing_by_their_scores_alone(self) -> None:
        before = [record(f"c{at}", "f", score=0.5) for at in range(9)]
        after = [record(f"c{at}", "f", score=0.4) for at in range(9)]
        assert agentv.compare(before, after).verdict == "no difference seen"

    def test_scores_that_only_repeat_pass_and_fail_are_no_second_chance(self) -> None:
        a, b = results(*"p" * 14, *"f" * 5, *"p" * 81), results(*"f" * 14, *"p" * 5, *"p" * 81)
        found = agentv.compare(a, b)
        interval = found.measures.score.interval
        assert interval is not None
        assert interval[1] < 0, "the bootstrap alone would have called it worse"
        assert found.p_value == pytest.approx(binomtest(5, 19).pvalue)
        assert (found.verdict, found.decided_by) == ("no difference seen", None)

    def test_rounding_makes_no_difference(self) -> None:
        thirds = [record(f"c{at}", "f", turn, score=0.1) for at in range(20) for turn in range(3)]
        whole = [record(f"c{at}", "f", score=0.1) for at in range(20)]
        found = agentv.compare(thirds, whole)
        assert (found.verdict, found.measures.score.interval) == ("no difference seen", (0.0, 0.0))

    def test_where_nothing_could_be_measured_it_says_so(self) -> None:
        found = agentv.compare(results("e", "p"), results("p", "e"))
        assert (found.verdict, found.p_value, found.needed, found.cases) == ("nothing measured", None, None, 0)
        assert found.measures.pass_rate.a is None

    def test_a_case_that_is_lost_beyond_chance_is_a_regression_and_a_flaky_one_is_not(self) -> None:
        certain = agentv.compare(results("ppp", "ppp", "fff"), results("fff", "ppp", "fff"))
        assert (certain.verdict, certain.clear_losses, certain.regression) == ("no difference seen", 1, True)
        assert [case.case_id for case in certain.regressed.cases] == ["c0"]
        assert certain.lost[0].regressed
        flaky = agentv.compare(results("ppp", "ppf"), results("pff", "fff"))
        assert (flaky.losses, flaky.clear_losses, flaky.regression) == (2, 0, False)

    def test_one_flip_of_single_runs_is_no_regression_and_it_says_how_many_runs_would_tell(self) -> None:
        found = agentv.compare(results(*"p" * 40), results("f", *"p" * 39))
        assert (found.losses, found.clear_losses, found.regression) == (1, 1, False)
        assert found.power is not None
        assert (found.power.runs, found.power.runs_to_name_a_case) == (1, 3)

    def test_a_clear_loss_is_named_among_flaky_cases_when_there_are_runs_enough(self) -> None:
        flaky = ["pppppfppff"] * 10
        found = agentv.compare(results("p" * 10, *flaky), results("f" * 10, *flaky))
        assert [case.case_id for case in found.regressed.cases] == ["c0"]
        few = ["ppf"] * 5 + ["fpp"] * 5
        assert agentv.compare(results("ppp", *few), results("fff", *few)).regressed.count == 0

    def test_a_case_that_passes_less_often_and_still_mostly_is_named_too(self) -> None:
        found = agentv.compare(results("p" * 20, "p"), results("p" * 12 + "f" * 8, "p"))
        assert (found.losses, found.regression) == (0, True)
        assert [(each.case_id, each.b.passed) for each in found.declined] == [("c0", 12)]

    def test_what_one_side_lacks_is_told(self) -> None:
        found = agentv.compare(results(*"p" * 40), results("p"))
        assert found.missing == ("B lacks 39 of the 40 cases of A: c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, …",)
        two = [*results("p"), *results("p", target="other")]
        assert agentv.compare(two, [*results("p"), *results("p", target="third")]).missing == (
            "B has no results of target 'other' of A",
        )
        assert agentv.compare(two, results("p"), target_a="agent").missing == ()

    def test_the_same_seed_gives_the_same_comparison(self) -> None:
        chance = Random(2)  # noqa: S311 - no secret hangs on it
        a, b = ([record(f"c{at}", "f", score=chance.random()) for at in range(50)] for _ in range(2))
        assert agentv.compare(a, b, seed=7) == agentv.compare(a, b, seed=7)
        assert agentv.compare(a, b, seed=7).measures.score != agentv.compare(a, b, seed=8).measures.score

    @pytest.mark.parametrize("wrong", [{"confidence": 1.0}, {"confidence": 95}, {"difference": 0.0}])
    def test_what_is_no_share_is_refused(self, wrong: dict[str, float]) -> None:
        with pytest.raises(agentv.SpecError, match="between 0 and 1"):
            agentv.compare([record("x")], [record("x")], **wrong)  # type: ignore[arg-type]  # each is a float


class TestAmounts:
    def test_tokens_cost_and_latency_stand_side_by_side(self) -> None:
        a = [record(f"c{at}", **used(100 + at, 0.01, 1000.0 + at)) for at in range(20)]
        b = [record(f"c{at}", **used(200 + at, 0.005, 500.0 + at)) for at in range(20)]
        found = agentv.compare(a, b).measures
        assert (found.input_tokens.a, found.input_tokens.b, found.input_tokens.difference) == (109.5, 209.5, 100.0)
        assert found.input_tokens.interval == (100.0, 100.0)
        assert (found.cost_usd.difference, found.cost_usd.cases) == (-0.005, 20)
        assert (found.latency_p50_ms.a, found.latency_p50_ms.b, found.latency_p50_ms.difference) == (1010, 510, -500)
        assert found.latency_p95_ms.a == 1018.0

    def test_an_unknown_number_is_not_nothing(self) -> None:
        a = [record("x", **used(100, 0.5, 10.0)), record("y", **used(300, 0.5, 10.0))]
        found = agentv.compare(a, [record("x"), record("y", cost_usd=0.25)]).measures
        assert (found.input_tokens.a, found.input_tokens.b, found.input_tokens.difference) == (200, None, None)
        assert (found.cost_usd.a, found.cost_usd.b, found.cost_usd.cases) == (0.5, 0.25, 1), "where both are known"
        assert (found.latency_p50_ms.b, found.latency_p50_ms.difference) == (None, None)

    @pytest.mark.parametrize("absurd", [1e308, -1e308, 1e200, 10**400])
    def test_a_number_that_cannot_be_is_as_good_as_unknown(self, absurd: float) -> None:
        usage = TokensUsage(input_tokens=int(absurd), output_tokens=5)
        more: dict[str, Any] = {"tokens_usage": usage}
        if isinstance(absurd, float):
            more = {**more, "cost_usd": absurd, "latency_ms": absurd, "score": absurd}
        found = agentv.compare([record("x", **more), record("y")], [record("x", **used(5, 5.0, 5.0)), record("y")])
        assert (found.measures.input_tokens.a, found.measures.output_tokens.a) == (None, 5.0)
        assert found.measures.score.a in (0.5, 1.0)

    def test_cases_that_are_not_compared_do_not_count(self) -> None:
        a = [record("x", **used(100, 0.5, 10.0)), record("gone", **used(900, 9.0, 9000.0))]
        found = agentv.compare(a, [record("x", **used(100, 0.5, 10.0))])
        assert (found.measures.input_tokens.a, found.measures.latency_p95_ms.a) == (100, 10.0)
        assert (found.a.cases, found.b.cases) == (2, 1)


class TestLosses:
    def test_a_loss_says_what_b_missed_and_called_otherwise(self) -> None:
        a = [record("x", "p", **called("search", "verify", "answer"))]
        b = [record("x", "f", evaluators=missed("verify called 0 times"), **called("search", "answer", "answer"))]
        (lost,) = agentv.compare(a, b).lost
        assert lost.status == "fail"
        assert lost.evaluators is not UNSET
        assert [each.name for each in lost.evaluators] == ["calls"], "what passed is no reason"
        assert lost.calls_by_name == {"answer": (1, 2), "verify": (1, 0)}
        assert lost.calls is not UNSET
        assert [(pair.verdict, pair.a, pair.b) for pair in lost.calls] == [
            ("match", "search(n=1)", "search(n=1)"),
            ("missing", "verify(n=1)", ""),
            ("match", "answer(n=1)", "answer(n=1)"),
            ("extra", "", "answer(n=1)"),
        ]

    def test_a_call_with_another_input_stands_beside_the_one_of_a(self) -> None:
        first, second = (called("search") for _ in range(2))
        call = replace(second["messages"][0].tool_calls[0], input={"n": 2})
        second["messages"] = (replace(second["messages"][0], tool_calls=(call,)),)
        (lost,) = agentv.compare([record("x", "p", **first)], [record("x", "f", **second)]).lost
        assert lost.calls is not UNSET
        assert [(pair.verdict, pair.a, pair.b) for pair in lost.calls] == [("mismatch", "search(n=1)", "search(n=2)")]
        assert lost.calls_by_name == {}

    def test_records_without_messages_have_counts_alone(self) -> None:
        first, second = called("search"), called()
        del first["messages"], second["messages"]
        (lost,) = agentv.compare([record("x", "p", **first)], [record("x", "f", **second)]).lost
        assert (lost.calls, lost.calls_by_name) == (UNSET, {"search": (1, 0)})

    def test_calls_that_may_be_missing_are_not_taken_for_a_difference(self) -> None:
        a = [record("x", "p", **called("search"))]
        b = [record("x", "f", evaluators=missed("call 0 pay is not allowed"), calls_complete=False, **called("pay"))]
        (lost,) = agentv.compare(a, b).lost
        assert (lost.calls, lost.calls_by_name) == (UNSET, UNSET)

    def test_of_repetitions_the_first_that_failed_is_shown_beside_one_that_passed(self) -> None:
        a = [record("x", "f", 0, **called("zero")), record("x", "p", 1, **called("one")), record("x", "p", 2)]
        b = [record("x", "p", 0), *(record("x", "f", turn, evaluators=missed(f"miss {turn}")) for turn in (1, 2))]
        (lost,) = agentv.compare(a, b).lost
        assert lost.evaluators is not UNSET
        assert lost.evaluators[0].misses == ("miss 1",)

    def test_many_losses_are_listed_and_the_first_of_them_explained(self) -> None:
        a, b = results(*["p"] * 1_500), results(*["f"] * 1_500, evaluators=missed("no"))
        found = agentv.compare(a, b)
        assert (found.losses, len(found.lost), found.not_listed) == (1_500, 1_000, 500)
        assert [each.evaluators is UNSET for each in found.lost] == [False] * 20 + [True] * 980

    def test_a_source_that_knows_the_sides_of_alignments_hands_them_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        side = DiffLabels("call", ["search"], {0: "search"})
        monkeypatch.setattr(RecordList, "sides", lambda _self, _place: (None, side))
        (lost,) = agentv.compare([record("x")], [record("x", "f", evaluators=missed("no"))]).lost
        assert lost.sides == (side,)


class TestSources:
    def test_files_records_and_executions_are_the_same_to_it(self, tmp_path: Path) -> None:
        a, b = results("p", "p", "f"), results("f", "p", "p", evaluators=missed("no"))
        files = write(tmp_path / "a.jsonl", a), str(write(tmp_path / "b.jsonl", b))
        by_file, by_record = agentv.compare(*files), agentv.compare(a, iter(b))
        assert by_file.a.name == str(tmp_path / "a.jsonl")
        assert replace(by_file, a=by_record.a, b=by_record.b) == by_record

    def test_an_execution_from_python_is_compared_as_it_is(self) -> None:
        check = {"type": "contains", "value": "yes"}
        cases = [{"id": "x", "input": "?", "evaluators": [check]}]
        good = agentv.evaluate({"cases": cases}, target=lambda _: "yes")
        bad = agentv.evaluate({"cases": cases}, target=lambda _: "no")
        found = agentv.compare(good, bad)
        assert (found.losses, found.a.name) == (1, good.summary.execution_id)
        unkept = agentv.evaluate({"cases": cases}, target=lambda _: "no", keep_results=False)
        with pytest.raises(agentv.FormatError, match="keep_results=False"):
            agentv.compare(good, unkept)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
    def test_a_pipe_is_read_once_and_kept(self, tmp_path: Path) -> None:
        b = results("f", evaluators=missed("no"))
        pipe, content = tmp_path / "pipe", write(tmp_path / "b.jsonl", b).read_bytes()
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_bytes, args=(content,), daemon=True)
        writer.start()
        (lost,) = agentv.compare(results("p"), pipe).lost
        writer.join()
        assert lost.evaluators is not UNSET
        assert lost.evaluators[0].misses == ("no",)

    def test_a_file_is_read_again_for_the_few_that_are_shown(self, tmp_path: Path) -> None:
        source = read_side(write(tmp_path / "r.jsonl", results("p", "f", "p")))
        for place, found in list(source.records()):
            assert source.read(place) == found
        assert list(source.sides(0)) == []

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"", "holds no results"),
            (b"{}\n", "r.jsonl:1: not a result"),
            (b'{"schema": 1}\n', "r.jsonl:1: not a result"),
            (b"\xff\xfe\n", "r.jsonl:1: not a result"),
        ],
    )
    def test_what_cannot_be_read_is_explained(self, tmp_path: Path, content: bytes, said: str) -> None:
        path = tmp_path / "r.jsonl"
        path.write_bytes(content)
        with pytest.raises(agentv.FormatError, match=said):
            agentv.compare(path, path)
        with pytest.raises(agentv.FormatError, match="cannot be read"):
            agentv.compare(tmp_path / "none.jsonl", path)
        with pytest.raises(agentv.FormatError, match="A: expected a result file, an `Execution`, or result records"):
            agentv.compare([{"case_id": "x"}], path)  # type: ignore[list-item]  # that is the point


def some_results(chance: Random) -> list[ResultRecord]:
    ends = ("".join(chance.choices("ppfe", k=chance.randrange(1, 4))) for _ in range(30))
    return [each for each in results(*ends) if each.case_id == "c0" or chance.random() < 0.9]


@pytest.mark.parametrize("seed", range(20))
def test_sums_hold_for_any_two_executions(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - no secret hangs on it
    a, b = some_results(chance), some_results(chance)
    found, turned = agentv.compare(a, b), agentv.compare(b, a)
    assert found.cases == found.wins + found.losses + found.both_passed + found.both_failed
    assert found.cases + found.not_measured.count + found.only_a.count == found.a.cases
    assert found.cases + found.not_measured.count + found.only_b.count == found.b.cases
    assert (turned.wins, turned.losses) == (found.losses, found.wins)
    assert turned.p_value == pytest.approx(found.p_value)


class TestPersonas:
    """A case with two personas is two cases."""

    A = (record("c", "p", persona_id="x"), record("c", "f", persona_id="y"), record("c", "p"))
    B = (record("c", "p"), record("c", "p", persona_id="y"), record("c", "f", persona_id="x"))

    def test_cases_are_paired_by_persona(self) -> None:
        compared = agentv.compare(self.A, self.B)
        assert (compared.cases, compared.wins, compared.losses, compared.both_passed) == (3, 1, 1, 1)
        assert [change.persona_id for change in compared.lost] == ["x"]
        assert [case.persona_id for case in compared.won.cases] == ["y"]

    def test_one_persona_can_be_compared(self) -> None:
        assert agentv.compare(self.A, self.B, personas="y").wins == 1
        assert agentv.compare(self.A, self.B, personas=["default"]).both_passed == 1
        with pytest.raises(agentv.FormatError, match="no results of persona z"):
            agentv.compare(self.A, self.B, personas="z")

    def test_a_persona_of_one_side_is_named(self) -> None:
        compared = agentv.compare(self.A, self.B[:2])
        assert [case.persona_id for case in compared.only_a.cases] == ["x"]
        assert compared.missing == ("B lacks 1 of the 3 cases of A: c [x]",)
        with pytest.raises(agentv.FormatError, match="A has case 'c' with persona 'x' of 'support'"):
            agentv.compare(self.A[:1], self.B[:1])
