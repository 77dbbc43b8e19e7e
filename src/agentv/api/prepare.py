"""Everything that can be found out about an execution before anything runs."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agentv.api.judges import asked_targets, is_judge, judge_target
from agentv.checked import every_check
from agentv.errors import Problem, SpecError
from agentv.formats.plain_blocks import check_plain_blocks
from agentv.jsonio import dump_json
from agentv.redaction import Redactor
from agentv.run.plan import Totals as Planned
from agentv.run.plan import count_runs, plan_runs
from agentv.run.shard import choose_part
from agentv.run.spending import with_limits
from agentv.spec.targets import add_plain_blocks, make_provider, variables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from agentv.checked import Eval
    from agentv.protocols import Provider
    from agentv.run.judging import JudgeTarget, Memory
    from agentv.run.options import RunOptions
    from agentv.run.plan import PlannedRun
    from agentv.run.shard import Part

MAX_NAMED = 5


class Prepared(Struct, frozen=True, kw_only=True):
    """An execution that is ready to begin: everything was checked, nothing has run."""

    evals: list[Eval]
    options: RunOptions
    planned: Planned
    providers: dict[tuple[str, str], Provider]
    redactor: Redactor
    judges: dict[tuple[str, str], JudgeTarget] = {}
    """The targets that judge, by eval and name."""
    memory: Memory | None = None
    """What judges said before; without it, they are remembered for this execution only."""
    part: Part | None = None
    """Which shard of the plan is run, when it is not all of it."""
    keep: Callable[[PlannedRun], bool] | None = None
    """Which of the runs are wanted, when not all are."""

    def runs(self) -> Iterator[PlannedRun]:
        """Every run, made when it is asked for."""
        runs = plan_runs(self.evals, self.options)
        runs = runs if self.part is None else filter(self.part.holds, runs)
        return runs if self.keep is None else filter(self.keep, runs)


def prepare(
    evals: list[Eval],
    options: RunOptions,
    *,
    environment: Mapping[str, str] | None = None,
    no_exec: bool = False,
    dry: bool = False,
) -> Prepared:
    """Everything that can be found out before anything runs; for a dry run, that needs no secrets."""
    environment = os.environ if environment is None else environment
    evals, problems = _with_plain_blocks(evals, options)
    providers: dict[tuple[str, str], Provider] = {}
    hidden: dict[str, str] = {}
    judges: dict[tuple[str, str], JudgeTarget] = {}
    for each in evals:
        for key, target in () if dry else asked_targets(each, options):
            try:
                provider = make_provider(target, environment)
            except SpecError as error:
                problems += [problem for problem in error.problems if problem not in problems]
                continue
            if no_exec and getattr(provider, "executes", False):
                message = f"target {target.name!r} would run a program, which --no-exec forbids"
                problems.append(Problem("", message, "whole", target.place))
            providers[key] = provider
            if is_judge(key):
                judges[each.id, target.name] = judge_target(key, target, environment)
            names = {*variables_of(target.settings), *getattr(provider, "secret_names", ())}
            hidden.update({name: environment[name] for name in names if name in environment})
    if no_exec and not dry:
        problems += _would_execute(evals, options)
    if problems:
        raise SpecError(problems)
    options = with_limits(options, evals)
    planned = count_runs(evals, options)
    if not planned.runs:
        raise SpecError([_nothing_selected(evals, options, planned)])
    part = None
    if options.shard is not None:
        part = choose_part(partial(plan_runs, evals, options), *options.shard)
        planned = planned._replace(runs=part.runs)
    return Prepared(
        evals=evals,
        options=options,
        planned=planned,
        providers=providers,
        judges=judges,
        redactor=Redactor(hidden),
        part=part,
    )


def _with_plain_blocks(evals: list[Eval], options: RunOptions) -> tuple[list[Eval], list[Problem]]:
    """Add the block types of the options to the settings of all targets; also return what is wrong with them."""
    names = options.plain_blocks
    if not names:
        return evals, []
    problems = [Problem("plain_blocks", problem) for problem in check_plain_blocks(names)]
    changed = [replace(each, targets=tuple([add_plain_blocks(one, names) for one in each.targets])) for each in evals]
    return changed, problems


def _would_execute(evals: list[Eval], options: RunOptions) -> list[Problem]:
    """The evaluators of selected cases that run somebody's code, each with the first case that has it."""
    found: dict[tuple[str, bytes], Problem] = {}
    for planned in plan_runs(evals, options):
        case = planned.case
        for checked in every_check(case.checks):
            if getattr(checked.evaluator, "executes", False):
                name = getattr(checked.evaluator, "name", None) or checked.evaluator.type
                about = f"evaluator {name!r} of case {case.case.id!r}"
                message = f"{about} would run code of the eval's, which --no-exec forbids"
                key = (planned.eval.id, dump_json(checked.config))
                found.setdefault(key, Problem("", message, "whole", case.place))
    return list(found.values())


def _nothing_selected(evals: list[Eval], options: RunOptions, planned: Planned) -> Problem:
    if planned.skipped:
        return Problem("", f"no case to run: all {planned.skipped} selected say `skip`", "whole")
    if planned.left_out:
        return Problem("", f"no case to run: {planned.left_out} selected, but others say `only`", "whole")
    asked = [*(f"--case {glob}" for glob in options.cases), *(f"--tag {tag}" for tag in options.tags)]
    some = [repr(case.case.id) for each in evals for case, _ in zip(each.cases, range(MAX_NAMED), strict=False)]
    more = ["…"] if sum(each.count for each in evals) > MAX_NAMED else []
    there = ", ".join([*some[:MAX_NAMED], *more])
    return Problem("", f"no case selected by {' '.join(asked)}; there are {there}", "whole")
