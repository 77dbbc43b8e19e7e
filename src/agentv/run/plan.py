"""Evals made into runs, one after the other: case by case, each with every target and repetition."""

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import NamedTuple

from agentv.checked import CheckedCase, Eval, Target
from agentv.jsonio import dump_json
from agentv.matching.glob import name_match
from agentv.run.options import RunOptions

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


class Totals(NamedTuple):
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


def count_runs(evals: Sequence[Eval], options: RunOptions) -> Totals:
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
    return Totals(cases, skipped, left_out, runs, again)


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
