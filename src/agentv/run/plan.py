"""Planned runs of an execution: selection of cases, repetitions, and keys."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from msgspec import Struct

from agentv.jsonio import dump_json
from agentv.matching.text import name_match
from agentv.model.request import DEFAULT_PERSONA

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agentv.evals import CheckedCase, Eval, Target
    from agentv.run.options import RunOptions


KEY_BYTES = 8
"""Length of the hash that is the key of a run."""


class PlannedRun(Struct, frozen=True):
    """One repetition of one case with one target and one persona."""

    order: int
    """Position in the plan, from 0."""
    eval: Eval
    case: CheckedCase
    target: Target
    repeat: int
    """Number of the repetition, from 0."""
    key: str
    """Hash of its content: the same in every execution of the same case and target."""
    content: bytes = b""
    """Snapshot of the case and its evaluators, as JSON."""


class PlanCounts(Struct, frozen=True):
    """Numbers of cases and runs of a plan."""

    cases: int
    skipped: int
    """Selected cases with `skip`."""
    left_out: int
    """Cases that are not run because others have `only`."""
    runs: int
    repeats: bool = False
    """`True` if a case is run more than once."""


def plan_runs(evals: Sequence[Eval], options: RunOptions) -> Iterator[PlannedRun]:
    """Yield all runs of the evals, one by one."""
    order = 0
    for eval_ in evals:
        targets = [(target, dump_json(target.settings)) for target in eval_.targets]
        for case in selected_cases(eval_, options):
            for variant in selected_variants(case, options):
                content = _content(variant)
                for target, settings in targets:
                    for repeat in range(options.repeat or case.repeat):
                        key = run_key(eval_.id, content, settings, repeat)
                        yield PlannedRun(order, eval_, variant, target, repeat, key, content)
                        order += 1


def count_runs(evals: Sequence[Eval], options: RunOptions) -> PlanCounts:
    """Count the runs of a plan without making it."""
    cases = skipped = left_out = runs = 0
    repeats = False
    for eval_ in evals:
        is_whole = not (options.cases or options.tags or options.personas or eval_.has_only)
        if is_whole:  # the loader has counted all cases
            cases += eval_.count - eval_.skipped
            skipped += eval_.skipped
            selected = eval_.variants
            planned = selected * options.repeat if options.repeat else eval_.repeats
            repeats = repeats or planned > selected
            runs += len(eval_.targets) * planned
            continue
        for case in eval_.cases:
            if not _is_selected(case, options):
                continue
            if eval_.has_only and not case.only:
                left_out += 1
                continue
            if case.skip:
                skipped += 1
                continue
            variants = len(selected_variants(case, options))
            cases += variants > 0
            repeats = repeats or (options.repeat or case.repeat) > 1
            runs += len(eval_.targets) * variants * (options.repeat or case.repeat)
    return PlanCounts(cases, skipped, left_out, runs, repeats)


def selected_cases(eval_: Eval, options: RunOptions) -> Iterator[CheckedCase]:
    """Return the cases of an eval that are to be run."""
    return (
        case
        for case in eval_.cases
        if not case.skip and (case.only or not eval_.has_only) and _is_selected(case, options)
    )


def selected_variants(case: CheckedCase, options: RunOptions) -> Sequence[CheckedCase]:
    """Return the case with each of its personas that is to be run; without personas the case itself."""
    variants = case.variants or (case,)
    if not options.personas:
        return variants
    return [variant for variant in variants if has_persona(variant.case.persona_id, options.personas)]


def has_persona(persona_id: str | None, globs: Sequence[str]) -> bool:
    """Return whether a persona matches one of the globs; `default` stands for none."""
    return any(name_match(glob, persona_id or DEFAULT_PERSONA) for glob in globs)


def _is_selected(case: CheckedCase, options: RunOptions) -> bool:
    if options.tags and not set(options.tags).intersection(case.case.tags):
        return False
    return not options.cases or any(name_match(glob, case.case.id) for glob in options.cases)


def _content(case: CheckedCase) -> bytes:
    configs = [check.config or check.evaluator for check in case.checks]
    return dump_json([case.case, configs])


def run_key(eval_id: str, content: bytes, settings: bytes, repeat: int) -> str:
    """Return the hash of a run's content."""
    digest = blake2b(content, digest_size=KEY_BYTES)
    digest.update(b"\0%b\0%b\0%d" % (eval_id.encode("utf-8", "replace"), settings, repeat))
    return digest.hexdigest()
