"""Compare two executions, result files or lists of records, case by case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from agentv.api.compare.measures import Pairs, SideTable, call_pairs, changed_counts, gather, measure, pair_targets
from agentv.api.compare.sources import read_side
from agentv.errors import FormatError, Problem, SpecError
from agentv.model.comparison import CaseChange, CaseList, CaseReference, Comparison, SampleSize, Side
from agentv.run.options import RunOptions
from agentv.scoring.statistics import CONFIDENCE, POWER, cases_needed, mcnemar

if TYPE_CHECKING:
    from agentv.api.compare.measures import CasePair
    from agentv.api.compare.sources import SideLike
    from agentv.model.comparison import ComparisonVerdict, Measures


MAX_SHOWN = 20
"""Losses with everything that is known of them."""
MAX_LISTED = 1_000
"""Losses at all."""
MAX_NAMED = 50
DIFFERENCE = 0.05
MIN_DIFFERENT = 10
"""From fewer cases whose scores differ an interval is too narrow to be believed on its own."""


class Options(NamedTuple):
    """How to compare."""

    target_a: str | None = None
    target_b: str | None = None
    seed: int = 0
    confidence: float = CONFIDENCE
    difference: float = DIFFERENCE
    judge: str | None = None
    asking: RunOptions | None = None
    """How the judge is asked."""

    def check(self) -> Options:
        """Itself, or a `SpecError` that says what cannot be."""
        problems = [
            Problem(name, f"expected a number between 0 and 1; got {value!r}")
            for name, value in (("confidence", self.confidence), ("difference", self.difference))
            if not 0.0 < value < 1.0
        ]
        if problems:
            raise SpecError(problems)
        return self


def compare(  # noqa: PLR0913 - each is a question that somebody has
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
    """Whether B is better or worse than A: result files, executions, or records.

    Cases are matched by eval and id. `seed` is that of the bootstrap, `difference` the one to ask how many cases it
    would take to see. `judge` names a target of this folder's project, or of an eval in it, that says which answer to
    each case is better.
    """
    asking = RunOptions(max_judge_cost=max_judge_cost, cache=cache)
    options = Options(target_a, target_b, seed, confidence, difference, judge, asking).check()
    first, second = SideTable(read_side(a, "A")), SideTable(read_side(b, "B"))
    targets = pair_targets(first, second, target_a, target_b)
    pairs = gather(first, second, targets)
    if not pairs.matched:
        raise FormatError(_nothing_in_common(first, second))
    concluded = _conclude(first, second, pairs, options)
    if judge is None:
        return concluded
    from agentv.api.compare.judged import judge_sides  # noqa: PLC0415 - only who asks a judge needs it

    return replace(concluded, judged=judge_sides(first, second, pairs, judge, asking))


def _conclude(first: SideTable, second: SideTable, pairs: Pairs, options: Options) -> Comparison:
    measures = measure(pairs, options.seed, options.confidence)
    wins, losses = len(pairs.won), len(pairs.lost)
    p_value = mcnemar(wins, losses) if pairs.cases else None
    verdict, decided_by = _judge(pairs, measures, p_value, options.confidence)
    clear = sum(pair.is_clear_loss for pair in pairs.lost)
    changes = [_change(pair) for pair in pairs.lost[:MAX_LISTED]]
    changes[:MAX_SHOWN] = [
        _explained(change, pair, first, second) for change, pair in zip(changes[:MAX_SHOWN], pairs.lost, strict=False)
    ]
    return Comparison(
        verdict=verdict,
        decided_by=decided_by,
        regression=verdict == "worse" or clear > 0,
        clear_losses=clear,
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
        won=_named([pair.name for pair in pairs.won]),
        not_measured=_named(pairs.not_measured),
        lost_to_errors=pairs.lost_to_errors,
        only_a=_named(pairs.only_a),
        only_b=_named(pairs.only_b),
        needed=_needed(pairs, options) if verdict == "no difference seen" else None,
    )


def _judge(
    pairs: Pairs, measures: Measures, p_value: float | None, confidence: float
) -> tuple[ComparisonVerdict, Literal["pass_rate", "score"] | None]:
    """Pass and fail decide; where they show nothing, the scores do."""
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


def _needed(pairs: Pairs, options: Options) -> SampleSize | None:
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


def _explained(change: CaseChange, pair: CasePair, first: SideTable, second: SideTable) -> CaseChange:
    """The same with what B missed and what it called, of its first run that failed."""
    place = pair.b.failing[pair.row_b]
    before, after = first.source.read(pair.a.passing[pair.row_a]), second.source.read(place)
    sides = tuple(second.source.sides(place))
    wanted = [at for at, each in enumerate(after.evaluators) if each.status not in ("pass", "skipped")]
    return replace(
        change,
        status=after.status,
        evaluators=tuple(after.evaluators[at] for at in wanted),
        sides=tuple(sides[at] for at in wanted) if len(sides) == len(after.evaluators) else UNSET,
        calls_by_name=changed_counts(before, after),
        calls=call_pairs(before, after),
    )


def _side(sheet: SideTable, targets: list[str], *, chosen: str | None) -> Side:
    halves = [sheet.halves[name] for name in targets]
    errors = sum(sum(half.errors) for half in halves)
    return Side(
        name=sheet.source.name,
        execution_ids=sheet.execution_ids[:MAX_NAMED],
        targets=tuple(targets),
        targets_left_out=() if chosen else tuple(name for name in sheet.halves if name not in targets),
        cases=sum(len(half.passed) for half in halves),
        runs=sum(sum(half.passed) + sum(half.failed) for half in halves) + errors,
        errors=errors,
        cut_off=sheet.source.cut_off,
    )


def _named(names: list[CaseReference]) -> CaseList:
    return CaseList(count=len(names), cases=tuple(names[:MAX_NAMED]))


def _nothing_in_common(first: SideTable, second: SideTable) -> str:
    found = []
    for sheet in (first, second):
        half = next(iter(sheet.halves.values()))
        eval_id, case_id, _ = next(half.each())
        found.append(f"{sheet.source.name} has case {case_id!r} of {eval_id!r}")
    return f"no case is in both: {found[0]}, {found[1]}; cases are matched by the eval's name and their id"
