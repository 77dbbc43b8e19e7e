"""Compare two executions, result files or lists of records, case by case; load the baseline of a gate."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from agentv.api.compare.measures import (
    CasePair,
    Pairs,
    SideTable,
    call_pairs,
    changed_counts,
    measure,
    pair_cases,
    pair_targets,
    recorded_calls,
)
from agentv.api.compare.sources import SideLike, read_last, read_side
from agentv.divergence import find_divergences
from agentv.errors import FormatError, Problem, SpecError
from agentv.model.comparison import CaseChange, CaseList, CaseReference, Comparison, Power, SampleSize, Side
from agentv.run.options import RunOptions
from agentv.run.summary import Gates
from agentv.scoring.regression import (
    Stratum,
    power_of,
    regressed_cases,
    runs_to_name_a_case,
    sign_flip_test,
    stratified_test,
)
from agentv.scoring.statistics import CONFIDENCE, POWER, cases_needed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentv.api.compare.measures import Join, Pairs
    from agentv.api.compare.sources import ComparisonSource
    from agentv.model.comparison import ComparisonVerdict, Divergence
    from agentv.scoring.regression import Tails

MAX_SHOWN = 20
"""Losses that are listed with their evaluators and calls."""
MAX_LISTED = 1_000
"""Losses that are listed."""
MAX_NAMED = 50
MAX_MISSING = 10
MAX_ALIGNED = 200
"""Runs of a case on one side whose calls are aligned."""
DIFFERENCE = 0.05


class CompareOptions(NamedTuple):
    """Options of a comparison."""

    target_a: str | None = None
    target_b: str | None = None
    seed: int = 0
    confidence: float = CONFIDENCE
    difference: float = DIFFERENCE
    judge: str | None = None
    judge_options: RunOptions | None = None
    """Options for the calls of the judge."""
    personas: tuple[str, ...] = ()
    """Globs of the personas to compare, `default` for none; all by default."""

    def check(self) -> CompareOptions:
        """Return the options, or raise a `SpecError` that lists the wrong ones."""
        problems = [
            Problem(name, f"expected a number between 0 and 1; got {value!r}")
            for name, value in (("confidence", self.confidence), ("difference", self.difference))
            if not 0.0 < value < 1.0
        ]
        if problems:
            raise SpecError(problems)
        return self


def compare(  # noqa: PLR0913 - public keyword arguments
    a: SideLike,
    b: SideLike,
    *,
    target_a: str | None = None,
    target_b: str | None = None,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    difference: float = DIFFERENCE,
    judge: str | None = None,
    max_judge_cost: float | None = None,
    cache: bool = True,
    personas: str | Sequence[str] = (),
) -> Comparison:
    """Decide whether B is better or worse than A: result files, executions, or records.

    Cases are matched by eval, id and persona; `personas` are globs of those to compare. `seed` is that of the
    bootstrap. The comparison says how many cases are needed to detect a `difference`. `judge` names a target of this
    project, or of an eval in this folder, that says which answer to each case is better.
    """
    judge_options = RunOptions(max_judge_cost=max_judge_cost, cache=cache)
    chosen = (personas,) if isinstance(personas, str) else tuple(personas)
    options = CompareOptions(target_a, target_b, seed, confidence, difference, judge, judge_options, chosen).check()
    with closing(read_side(a, "A")) as source_a, closing(read_side(b, "B")) as source_b:
        return compare_sources(source_a, source_b, options)


def compare_sources(a: ComparisonSource, b: ComparisonSource, options: CompareOptions) -> Comparison:
    """Compare the results of two sources that are open."""
    return _compare_tables(SideTable(a, options.personas), SideTable(b, options.personas), options)


def _compare_tables(first: SideTable, second: SideTable, options: CompareOptions) -> Comparison:
    targets = pair_targets(first, second, options.target_a, options.target_b)
    pairs = pair_cases(first, second, targets)
    if not pairs.matched:
        raise FormatError(_nothing_in_common(first, second))
    comparison = _compare_pairs(first, second, pairs, options)
    if options.judge is None:
        return comparison
    from agentv.api.compare.judged import judge_sides  # noqa: PLC0415 - 20 ms for the judges, which few comparisons use

    return replace(
        comparison, judged=judge_sides(first, second, pairs, options.judge, options.judge_options or RunOptions())
    )


def _compare_pairs(first: SideTable, second: SideTable, pairs: Pairs, options: CompareOptions) -> Comparison:
    measures = measure(pairs, options.seed, options.confidence)
    wins, losses = len(pairs.won), len(pairs.lost)
    decision = decide(pairs, confidence=options.confidence, difference=options.difference, seed=options.seed)
    regressed = {pair.name for pair in decision.regressed}
    lost_names = {pair.name for pair in pairs.lost}
    declined = [pair for pair in decision.regressed if pair.name not in lost_names]
    # Cases that are lost beyond chance come first.
    lost = sorted(pairs.lost, key=lambda pair: pair.name not in regressed)
    changes = _changes(lost, regressed, first, second)
    return Comparison(
        verdict=decision.verdict,
        decided_by=decision.decided_by,
        regression=decision.is_regression,
        regressed=_case_list([pair.name for pair in decision.regressed]),
        clear_losses=sum(pair.is_clear_loss for pair in pairs.lost),
        missing=tuple(missing_data(first, second, pairs, options)),
        damaged=(*first.source.damaged, *second.source.damaged),
        a=_side(first, [name for name, _ in pairs.targets], chosen=options.target_a),
        b=_side(second, [name for _, name in pairs.targets], chosen=options.target_b),
        confidence=options.confidence,
        seed=options.seed,
        cases=pairs.cases,
        wins=wins,
        losses=losses,
        both_passed=pairs.both_passed,
        both_failed=pairs.both_failed,
        p_value=decision.p_value,
        measures=measures,
        lost=changes,
        declined=_changes(declined, regressed, first, second),
        not_listed=losses - len(changes),
        won=_case_list([pair.name for pair in pairs.won]),
        not_measured=_case_list(pairs.not_measured),
        lost_to_errors=pairs.lost_to_errors,
        only_a=_case_list(pairs.only_a),
        only_b=_case_list(pairs.only_b),
        needed=_sample_size(pairs, options) if decision.verdict == "no difference seen" else None,
        power=decision.power,
    )


def _sample_size(pairs: Pairs, options: CompareOptions) -> SampleSize | None:
    discordant = (len(pairs.won) + len(pairs.lost)) / pairs.cases
    cases = cases_needed(options.difference, discordant, confidence=options.confidence)
    if cases is None:
        return None
    return SampleSize(difference=options.difference, power=POWER, cases=cases, more=max(0, cases - pairs.cases))


def missing_data(first: SideTable, second: SideTable, pairs: Pairs, options: CompareOptions) -> list[str]:
    """Return what is missing on either side, so that a regression could be hidden, one sentence each."""
    sentences = [
        f"{table.source.name}: {sentence}" for table in (first, second) for sentence in table.source.missing_data()
    ]
    if pairs.only_a:
        cases = first.count_cases([ours for ours, _ in pairs.targets])
        lacks = f"{second.source.name} lacks {len(pairs.only_a):,} of the {cases:,} cases of A"
        sentences.append(f"{lacks}: {_first_names(pairs.only_a)}")
    absent = [name for name in first.columns if name not in dict(pairs.targets)]
    if absent and options.target_a is None:
        sentences.append(f"{second.source.name} has no results of target {', '.join(map(repr, absent))} of A")
    return sentences


def _first_names(cases: list[CaseReference]) -> str:
    names = [_label(case) for case in cases[:MAX_MISSING]]
    return ", ".join([*names, *(["…"] if len(cases) > MAX_MISSING else [])])


def _label(case: CaseReference) -> str:
    return case.case_id if case.persona_id is UNSET else f"{case.case_id} [{case.persona_id}]"


def _changes(
    pairs: list[CasePair], regressed: set[CaseReference], first: SideTable, second: SideTable
) -> tuple[CaseChange, ...]:
    """Return the first of these cases, and the first of them with their evaluators and calls."""
    changes = [replace(_change(pair), regressed=pair.name in regressed) for pair in pairs[:MAX_LISTED]]
    changes[:MAX_SHOWN] = [
        _explain(change, pair, first, second) for change, pair in zip(changes[:MAX_SHOWN], pairs, strict=False)
    ]
    return tuple(changes)


def _change(pair: CasePair) -> CaseChange:
    return CaseChange(
        eval_id=pair.name.eval_id,
        case_id=pair.name.case_id,
        persona_id=pair.name.persona_id,
        target=pair.name.target,
        a=pair.a.case_side(pair.row_a),
        b=pair.b.case_side(pair.row_b),
        flaky=pair.is_flaky,
    )


def _explain(change: CaseChange, pair: CasePair, first: SideTable, second: SideTable) -> CaseChange:
    """Return a change with the failed evaluators and the calls of the first run of B that failed."""
    place = pair.b.failing[pair.row_b]
    before, after = first.source.read(pair.a.passing[pair.row_a]), second.source.read(place)
    sides = tuple(second.source.sides(place))
    failed = [at for at, result in enumerate(after.evaluators) if result.status not in ("pass", "skipped")]
    return replace(
        change,
        status=after.status,
        evaluators=tuple(after.evaluators[at] for at in failed),
        turns=after.turns,
        sides=tuple(sides[at] for at in failed) if len(sides) == len(after.evaluators) else UNSET,
        calls_by_name=changed_counts(before, after),
        calls=call_pairs(before, after),
        divergence=_first_divergence(pair, first, second),
    )


def _first_divergence(pair: CasePair, first: SideTable, second: SideTable) -> Divergence | UnsetType:
    """Return the first call at which passing and failing runs of both sides part; unset if there are too few runs."""
    records = [
        table.source.read(place)
        for table, columns, row in ((first, pair.a, pair.row_a), (second, pair.b, pair.row_b))
        for place in columns.runs_of(row, MAX_ALIGNED)
    ]
    known = [(record.status == "fail", calls) for record in records if (calls := recorded_calls(record)) is not None]
    if len(known) <= 2:  # noqa: PLR2004 - two runs are compared by `calls`
        return UNSET
    found = find_divergences([calls for _, calls in known], [is_failing for is_failing, _ in known]).first
    return UNSET if found is None else replace(found, runs=())


def _side(table: SideTable, targets: list[str], *, chosen: str | None) -> Side:
    columns = [table.columns[name] for name in targets]
    errors = sum(sum(column.errors) for column in columns)
    return Side(
        name=table.source.name,
        execution_ids=table.execution_ids[:MAX_NAMED],
        targets=tuple(targets),
        targets_left_out=() if chosen else tuple(name for name in table.columns if name not in targets),
        cases=sum(len(column.passed) for column in columns),
        runs=sum(sum(column.passed) + sum(column.failed) for column in columns) + errors,
        passed=sum(sum(column.passed) for column in columns),
        errors=errors,
        cut_off=table.source.cut_off,
    )


def _case_list(names: list[CaseReference]) -> CaseList:
    return CaseList(count=len(names), cases=tuple(names[:MAX_NAMED]))


def _nothing_in_common(first: SideTable, second: SideTable) -> str:
    examples = []
    for table in (first, second):
        columns = next(iter(table.columns.values()))
        case, _ = next(columns.iter_rows())
        examples.append(f"{table.source.name} has {case}")
    matched = "cases are matched by the eval's name, their id and their persona"
    return f"no case is in both: {examples[0]}, {examples[1]}; {matched}"


def load_gates(
    paths: Sequence[str], min_pass_rate: float | None, max_regressions: int | None, baseline: str | None
) -> Gates | None:
    """Return the conditions of an execution; the baseline is by default the last execution of the project's store.

    Raise `FormatError` or `StoreError` if there is no baseline.
    """
    if max_regressions is None:
        return None if min_pass_rate is None else Gates(min_pass_rate)
    with closing(read_last(paths) if baseline is None else read_side(baseline)) as source:
        table = SideTable(source)
    passed = frozenset(
        (case.eval_id, target, case.case_id, case.persona_id)
        for target, columns in table.columns.items()
        for case, row in columns.iter_rows()
        if columns.passes(row)
    )
    return Gates(min_pass_rate, max_regressions, source.name, passed)


MIN_DIFFERENT = 10
"""With fewer cases whose scores differ, scores decide nothing."""
_EQUAL = 12
"""Decimal digits beyond which two means of the same scores differ only by rounding."""


class ComparisonDecision(NamedTuple):
    """Verdict on B, with the tests that it rests on."""

    verdict: ComparisonVerdict
    decided_by: Literal["pass_rate", "score"] | None
    p_value: float | None
    """Two-sided p-value of the passes over all cases; `None` if nothing was measured."""
    regressed: list[CasePair]
    """Cases that B lost beyond chance."""
    power: Power | None

    @property
    def is_regression(self) -> bool:
        """Return whether B is worse, or has lost a case beyond chance."""
        return self.verdict == "worse" or bool(self.regressed)


def decide(pairs: Pairs, *, confidence: float, difference: float, seed: int) -> ComparisonDecision:
    """Decide by the passes of all cases, by those of each case, and by the scores where they show more."""
    strata = [stratum for join in pairs.joins for stratum in _strata(join)]
    if not strata:
        return ComparisonDecision("nothing measured", None, None, [], None)
    alpha = 1.0 - confidence
    flaky = sum(stratum.is_informative for stratum in strata)
    scores = _score_differences(pairs) if pairs.scores_tell_more else []
    has_scores = len(scores) >= MIN_DIFFERENT
    tails = stratified_test(strata)
    case_alpha = _case_alpha(alpha, flaky, has_scores=has_scores)
    regressed = regressed_cases(strata, case_alpha)
    verdict = _verdict(tails, alpha)
    decided_by: Literal["pass_rate", "score"] | None = None if verdict == "no difference seen" else "pass_rate"
    if decided_by is None and has_scores:
        verdict = _verdict(sign_flip_test(scores, seed), alpha / 2.0)
        decided_by = None if verdict == "no difference seen" else "score"
    power = Power(
        difference=difference,
        power=_rounded(power_of(strata, difference, confidence)),
        runs=min(min(stratum.runs_a, stratum.runs_b) for stratum in strata),
        runs_to_name_a_case=runs_to_name_a_case(case_alpha, max(0, flaky - 1)),
    )
    return ComparisonDecision(verdict, decided_by, tails.two_sided, list(_named(pairs, regressed)), power)


def decide_strata(strata: list[Stratum], confidence: float) -> tuple[ComparisonVerdict, set[int]]:
    """Return the verdict by the passes alone, and the indices of the cases that B lost beyond chance."""
    alpha = 1.0 - confidence
    flaky = sum(stratum.is_informative for stratum in strata)
    return _verdict(stratified_test(strata), alpha), regressed_cases(strata, _case_alpha(alpha, flaky))


def _case_alpha(alpha: float, flaky: int, *, has_scores: bool = False) -> float:
    """Return the share of false alarms that the tests of single cases may have.

    The test over all cases has one half of `alpha`, that of the scores a quarter. Where only one case can differ, it
    is tested once: both tests of the passes are the same one then.
    """
    if has_scores:
        return alpha / 4.0
    return alpha if flaky <= 1 else alpha / 2.0


def _verdict(tails: Tails, alpha: float) -> ComparisonVerdict:
    if tails.two_sided >= alpha:
        return "no difference seen"
    return "worse" if tails.worse < tails.better else "better"


def _strata(join: Join) -> Iterator[Stratum]:
    for row_a, row_b in zip(join.rows_a, join.rows_b, strict=True):
        yield Stratum(join.a.passed[row_a], join.a.measured(row_a), join.b.passed[row_b], join.b.measured(row_b))


def _score_differences(pairs: Pairs) -> list[float]:
    """Return the differences of mean scores that are not 0.

    Their signs are arbitrary under the null hypothesis only if both means are of equally many runs.
    """
    differences = [
        round(join.b.score(row_b) - join.a.score(row_a), _EQUAL)
        for join in pairs.joins
        for row_a, row_b in zip(join.rows_a, join.rows_b, strict=True)
        if join.a.measured(row_a) == join.b.measured(row_b)
    ]
    return [difference for difference in differences if difference]


def _named(pairs: Pairs, indices: set[int]) -> Iterator[CasePair]:
    """Yield the cases of these positions among all compared ones."""
    start = 0
    for (ours, theirs), join in zip(pairs.targets, pairs.joins, strict=True):
        here = [at - start for at in indices if start <= at < start + len(join.rows_a)]
        rows = {join.rows_a[at]: join.rows_b[at] for at in here}
        start += len(join.rows_a)
        if not rows:
            continue
        for case, row in join.a.iter_rows():
            if row in rows:
                name = case.reference(ours if ours == theirs else None)
                yield CasePair(name, join.a, row, join.b, rows[row])


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 6)
