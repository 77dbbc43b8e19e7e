"""Compare two executions, result files or lists of records, case by case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from agentv.api.compare.measures import Pairs, SideTable, call_pairs, changed_counts, measure, pair_cases, pair_targets
from agentv.api.compare.sources import SideLike, read_side
from agentv.errors import FormatError, Problem, SpecError
from agentv.model.comparison import CaseChange, CaseList, CaseReference, Comparison, SampleSize, Side
from agentv.run.options import RunOptions
from agentv.scoring.statistics import CONFIDENCE, POWER, cases_needed, mcnemar

if TYPE_CHECKING:
    from agentv.api.compare.measures import CasePair
    from agentv.model.comparison import ComparisonVerdict, Measures


MAX_SHOWN = 20
"""Losses that are listed with their evaluators and calls."""
MAX_LISTED = 1_000
"""Losses that are listed."""
MAX_NAMED = 50
DIFFERENCE = 0.05
MIN_DIFFERENT = 10
"""With fewer cases whose scores differ, the interval of the bootstrap is too narrow."""


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
) -> Comparison:
    """Decide whether B is better or worse than A: result files, executions, or records.

    Cases are matched by eval and id. `seed` is that of the bootstrap. The comparison says how many cases are needed to
    detect a `difference`. `judge` names a target of this project, or of an eval in this folder, that says which answer
    to each case is better.
    """
    judge_options = RunOptions(max_judge_cost=max_judge_cost, cache=cache)
    options = CompareOptions(target_a, target_b, seed, confidence, difference, judge, judge_options).check()
    first, second = SideTable(read_side(a, "A")), SideTable(read_side(b, "B"))
    targets = pair_targets(first, second, target_a, target_b)
    pairs = pair_cases(first, second, targets)
    if not pairs.matched:
        raise FormatError(_nothing_in_common(first, second))
    comparison = _compare_pairs(first, second, pairs, options)
    if judge is None:
        return comparison
    from agentv.api.compare.judged import judge_sides  # noqa: PLC0415 - 20 ms for the judges, which few comparisons use

    return replace(comparison, judged=judge_sides(first, second, pairs, judge, judge_options))


def _compare_pairs(first: SideTable, second: SideTable, pairs: Pairs, options: CompareOptions) -> Comparison:
    measures = measure(pairs, options.seed, options.confidence)
    wins, losses = len(pairs.won), len(pairs.lost)
    p_value = mcnemar(wins, losses) if pairs.cases else None
    verdict, decided_by = _decide(pairs, measures, p_value, options.confidence)
    clear_losses = sum(pair.is_clear_loss for pair in pairs.lost)
    changes = [_change(pair) for pair in pairs.lost[:MAX_LISTED]]
    changes[:MAX_SHOWN] = [
        _explain(change, pair, first, second) for change, pair in zip(changes[:MAX_SHOWN], pairs.lost, strict=False)
    ]
    return Comparison(
        verdict=verdict,
        decided_by=decided_by,
        regression=verdict == "worse" or clear_losses > 0,
        clear_losses=clear_losses,
        a=_side(first, [name for name, _ in pairs.targets], chosen=options.target_a),
        b=_side(second, [name for _, name in pairs.targets], chosen=options.target_b),
        confidence=options.confidence,
        seed=options.seed,
        cases=pairs.cases,
        wins=wins,
        losses=losses,
        both_passed=pairs.both_passed,
        both_failed=pairs.both_failed,
        p_value=p_value,
        measures=measures,
        lost=tuple(changes),
        not_listed=losses - len(changes),
        won=_case_list([pair.name for pair in pairs.won]),
        not_measured=_case_list(pairs.not_measured),
        lost_to_errors=pairs.lost_to_errors,
        only_a=_case_list(pairs.only_a),
        only_b=_case_list(pairs.only_b),
        needed=_sample_size(pairs, options) if verdict == "no difference seen" else None,
    )


def _decide(
    pairs: Pairs, measures: Measures, p_value: float | None, confidence: float
) -> tuple[ComparisonVerdict, Literal["pass_rate", "score"] | None]:
    """Decide by passed and failed cases, and by the scores if those show no difference."""
    if p_value is None:
        return "nothing measured", None
    if p_value < 1.0 - confidence:
        return ("better" if len(pairs.won) > len(pairs.lost) else "worse"), "pass_rate"
    interval = measures.score.interval
    if interval is not None and pairs.scores_tell_more and pairs.scores_differing >= MIN_DIFFERENT:
        if interval[0] > 0.0:
            return "better", "score"
        if interval[1] < 0.0:
            return "worse", "score"
    return "no difference seen", None


def _sample_size(pairs: Pairs, options: CompareOptions) -> SampleSize | None:
    discordant = (len(pairs.won) + len(pairs.lost)) / pairs.cases
    cases = cases_needed(options.difference, discordant, confidence=options.confidence)
    if cases is None:
        return None
    return SampleSize(difference=options.difference, power=POWER, cases=cases, more=max(0, cases - pairs.cases))


def _change(pair: CasePair) -> CaseChange:
    return CaseChange(
        eval_id=pair.name.eval_id,
        case_id=pair.name.case_id,
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
        sides=tuple(sides[at] for at in failed) if len(sides) == len(after.evaluators) else UNSET,
        calls_by_name=changed_counts(before, after),
        calls=call_pairs(before, after),
    )


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
        errors=errors,
        cut_off=table.source.cut_off,
    )


def _case_list(names: list[CaseReference]) -> CaseList:
    return CaseList(count=len(names), cases=tuple(names[:MAX_NAMED]))


def _nothing_in_common(first: SideTable, second: SideTable) -> str:
    examples = []
    for table in (first, second):
        columns = next(iter(table.columns.values()))
        eval_id, case_id, _ = next(columns.iter_rows())
        examples.append(f"{table.source.name} has case {case_id!r} of {eval_id!r}")
    return f"no case is in both: {examples[0]}, {examples[1]}; cases are matched by the eval's name and their id"
