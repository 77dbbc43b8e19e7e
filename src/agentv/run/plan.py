"""Planned runs of an execution: selection and shards."""

from __future__ import annotations

from array import array
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agentv.jsonio import dump_json
from agentv.matching.text import name_match
from agentv.model.results import Shard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from agentv.evals import CheckedCase, Eval, Target
    from agentv.run.options import RunOptions


BYTES = 8
_END = 1 << 8 * BYTES


class Part(Struct, frozen=True, kw_only=True):
    """The runs of one shard."""

    index: int
    """From 1."""
    count: int
    plan: str
    """A hash of the whole plan: parts of one execution have the same, whatever machine made them."""
    total: int
    """How many runs all parts have together."""
    runs: int
    """How many this one has."""
    low: int
    high: int
    """Which cases: those whose hash lies from `low` to just below `high`."""

    def holds(self, planned: PlannedRun) -> bool:
        """Whether a run belongs to this part."""
        return self.low <= _place(planned) < self.high

    def shard(self, planned: PlannedRun) -> Shard:
        """What a result must carry to be put together with the others."""
        return Shard(index=self.index, count=self.count, plan=self.plan, total=self.total, order=planned.order)


def choose_part(runs: Callable[[], Iterable[PlannedRun]], index: int, count: int) -> Part:
    """Part `index` of `count`; the plan is walked twice and never held.

    Cases are laid out by a hash of their names and cut into even pieces: one more case moves few of the others.
    """
    places = array("Q")
    digest = blake2b(digest_size=BYTES)
    total = 0
    last = None
    for planned in runs():
        total += 1
        digest.update(planned.key.encode())
        if planned.case is not last:
            places.append(_place(planned))
            last = planned.case
    ordered = sorted(places)
    low, high = (_cut(ordered, at, count) for at in (index - 1, index))
    part = Part(index=index, count=count, plan=digest.hexdigest(), total=total, runs=0, low=low, high=high)
    return replace(part, runs=sum(map(part.holds, runs())))


def _cut(ordered: list[int], at: int, count: int) -> int:
    """Where piece `at` of `count` begins."""
    if at == 0:
        return 0
    rank = len(ordered) * at // count
    return ordered[rank] if rank < len(ordered) else _END


def _place(planned: PlannedRun) -> int:
    name = f"{planned.eval.id}\0{planned.case.case.id}".encode("utf-8", "replace")
    return int.from_bytes(blake2b(name, digest_size=BYTES).digest(), "big")


KEY_BYTES = 8


class PlannedRun(NamedTuple):
    """One case with one target, once."""

    order: int
    """Its place in the plan, from 0."""
    eval: Eval
    case: CheckedCase
    target: Target
    repeat: int
    key: str
    """A hash of its content: the same work has the same key, in whichever execution."""
    content: bytes = b""
    """The case and its evaluators as JSON: what they were, whatever becomes of the file."""


class PlanCounts(NamedTuple):
    """How much there is to do."""

    cases: int
    skipped: int
    """How many of the selected say `skip`."""
    left_out: int
    """How many are not run because others say `only`."""
    runs: int
    repeats: bool = False
    """Whether any case is run more than once."""


def plan_runs(evals: Sequence[Eval], options: RunOptions) -> Iterator[PlannedRun]:
    """Every run, made when it is asked for."""
    order = 0
    for each in evals:
        targets = [(target, dump_json(target.settings)) for target in each.targets]
        for case in selected_cases(each, options):
            content = _content(case)
            for target, settings in targets:
                for repeat in range(options.repeat or case.repeat):
                    key = _key(each.id, content, settings, repeat)
                    yield PlannedRun(order, each, case, target, repeat, key, content)
                    order += 1


def count_runs(evals: Sequence[Eval], options: RunOptions) -> PlanCounts:
    """How many runs the plan holds, without making any."""
    cases = skipped = left_out = runs = 0
    again = False
    for each in evals:
        if not options.cases and not options.tags and not each.has_only:  # the loader has seen them all
            cases += each.count - each.skipped
            skipped += each.skipped
            repeats = (each.count - each.skipped) * options.repeat if options.repeat else each.repeats
            again = again or repeats > each.count - each.skipped
            runs += len(each.targets) * repeats
            continue
        for case in each.cases:
            if not _wanted(case, options):
                continue
            if each.has_only and not case.only:
                left_out += 1
                continue
            if case.skip:
                skipped += 1
                continue
            cases += 1
            again = again or (options.repeat or case.repeat) > 1
            runs += len(each.targets) * (options.repeat or case.repeat)
    return PlanCounts(cases, skipped, left_out, runs, again)


def selected_cases(each: Eval, options: RunOptions) -> Iterator[CheckedCase]:
    """The cases of an eval that are to be run."""
    return (
        case for case in each.cases if not case.skip and (case.only or not each.has_only) and _wanted(case, options)
    )


def _wanted(case: CheckedCase, options: RunOptions) -> bool:
    if options.tags and not set(options.tags).intersection(case.case.tags):
        return False
    return not options.cases or any(name_match(glob, case.case.id) for glob in options.cases)


def _content(case: CheckedCase) -> bytes:
    checks = [checked.config or checked.evaluator for checked in case.checks]
    return dump_json([case.case, checks])


def _key(eval_id: str, content: bytes, settings: bytes, repeat: int) -> str:
    digest = blake2b(content, digest_size=KEY_BYTES)
    digest.update(b"\0%b\0%b\0%d" % (eval_id.encode("utf-8", "replace"), settings, repeat))
    return digest.hexdigest()
