"""pytest collectors: an eval file is a collector, and each case with each target and repetition is a test."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from msgspec.structs import replace

from agentv.errors import AgentVError, SpecError
from agentv.pytest_plugin.fixture import PLAIN, FailureText, describe_run
from agentv.pytest_plugin.run import BackgroundLoop, EvalRunner, TargetError
from agentv.reports.console import other_warnings
from agentv.reports.terminal import clean, pluralize, render_problems
from agentv.run.options import RunOptions
from agentv.run.plan import PlannedRun, plan_runs
from agentv.spec.loader import load_evals

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from agentv.evals import CheckedCase, Eval
    from agentv.model.events import RunFinished
    from agentv.model.results import ResultRecord
    from agentv.redaction import Redactor

LOOP = pytest.StashKey[BackgroundLoop]()
MARKERS = pytest.StashKey[set[str]]()
"""The registered markers, so that they are not looked up for each case."""
RESERVED_MARKERS = {"skip", "skipif", "xfail", "parametrize", "usefixtures", "filterwarnings", "and", "or", "not"}
"""Markers and words with a meaning for pytest: a case with such a tag must run like any other."""
COUNTS = ("input_tokens", "output_tokens", "total_tokens")


class EvalFile(pytest.File):
    """An eval file."""

    _eval: Eval

    @cached_property
    def runner(self) -> EvalRunner:
        """The runner of its cases, created for the first one."""
        return EvalRunner(self._eval, _options(self.config), _loop(self.config))

    def collect(self) -> Iterator[EvalCase]:
        """Yield a test for every case, target and repetition; cases that `skip` and `only` exclude are marked."""
        loaded = self._load()
        options = _options(self.config)
        cases = {case.index: case for case in loaded.cases}
        # All cases are planned: pytest itself reports which tests it skips or deselects.
        planned_cases = [replace(case, skip=False, only=False) for case in cases.values()]
        planned_cases = [
            replace(case, variants=tuple(replace(variant, skip=False, only=False) for variant in case.variants))
            for case in planned_cases
        ]
        variants = [len(case.variants) or 1 for case in planned_cases]
        repeats = sum(count * case.repeat for count, case in zip(variants, planned_cases, strict=True))
        self._eval = replace(
            loaded, cases=planned_cases, has_only=False, skipped=0, variants=sum(variants), repeats=repeats
        )
        left_out: set[int] = set()
        for planned in plan_runs([self._eval], options):
            case = cases[planned.case.index]
            test = EvalCase.from_parent(self, name=_test_name(planned, self._eval), planned=planned)
            _add_markers(test, case)
            if loaded.has_only and not case.only:
                test.is_left_out = True
                left_out.add(case.index)
            yield test
        if left_out:
            self._warn(f"{pluralize(len(left_out), 'case')} left out: others say `only`")
        for warning in dict.fromkeys(loaded.warnings):
            self._warn(str(warning))

    def _load(self) -> Eval:
        try:
            (eval_,) = load_evals([self.path], tuple(self.config.getoption("agentv_target")))
        except SpecError as error:
            problems = [problem._replace(path=_option_name(problem.path)) for problem in error.problems]
            raise self.CollectError(render_problems(problems, PLAIN)) from None
        except AgentVError as error:
            raise self.CollectError(str(error)) from None
        return eval_

    def _warn(self, message: str) -> None:
        try:
            self.warn(pytest.PytestWarning(message))
        except pytest.PytestWarning as warning:  # pytest was told to treat warnings as errors
            raise self.CollectError(str(warning)) from None


class EvalCase(pytest.Item):
    """The test of one run, which happens in `setup`: its `error` is an error of pytest, its `fail` a failure."""

    parent: EvalFile

    def __init__(self, *, planned: PlannedRun, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.planned = planned
        self.is_left_out = False
        """True if other cases say `only`."""
        self.failure: FailureText | None = None
        """The reason why it did not pass."""
        self._finished: RunFinished | None = None
        place = planned.case.location
        # Resolved here, because a test may change the working directory.
        self._place = (Path.cwd() / place.file, place.line - 1) if place else (self.path, 0)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the place of the case in the eval or in its dataset."""
        path, line = self._place
        return path, line, self.name

    @property
    def is_certain_to_run(self) -> bool:
        """True unless a marker may skip the test."""
        is_unconditional = not any(self.get_closest_marker(name) for name in ("skip", "skipif"))
        return is_unconditional and all(mark.kwargs.get("run", True) for mark in self.iter_markers("xfail"))

    def setup(self) -> None:
        """Run the case, and fail here if it could not be measured."""
        self.failure = self._finished = None
        if self.config.getoption("setuponly", default=False):
            return
        try:
            self._finished = self.parent.runner.result(self.planned, self._other_runs())
        except TargetError as error:
            failure = FailureText(f"setup: {error}".partition("\n")[0], f"ERROR (setup): {error}")
        else:
            self._add_properties(self._finished.record)
            if self._finished.record.status != "error":
                return
            failure = self._describe(self._finished)
        self._fail(failure)

    def runtest(self) -> None:
        """Fail with the reasons unless the run passed."""
        if self._finished is not None and self._finished.record.status != "pass":
            self._fail(self._describe(self._finished))

    def _add_properties(self, record: ResultRecord) -> None:
        properties = dict(_properties(record))
        others = [pair for pair in self.user_properties if pair[0] not in properties]
        self.user_properties = [*others, *properties.items()]
        warnings = other_warnings(record.warnings, record.unread or ())  # the text of the failure lists unread places
        if warnings:
            text = self._redactor.text("\n".join(map(clean, warnings)))
            self.add_report_section("setup", "agentv warnings", text)

    def _other_runs(self) -> Iterator[PlannedRun]:
        """Yield the runs of this eval that can be started now; none with xdist: a worker does not know its tests."""
        if hasattr(self.config, "workerinput"):
            return
        for test in self.session.items:
            if isinstance(test, EvalCase) and test.parent is self.parent and test.is_certain_to_run:
                yield test.planned

    def _describe(self, event: RunFinished) -> FailureText:
        return describe_run(event, self._redactor, verbose=self.config.get_verbosity() > 0)

    @property
    def _redactor(self) -> Redactor:
        return self.parent.runner.redactors[self.planned.target.name]

    def _fail(self, failure: FailureText) -> NoReturn:
        self.failure = failure
        pytest.fail(failure.text, pytrace=False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the cases that are left out because others say `only`."""
    left_out = [item for item in items if isinstance(item, EvalCase) and item.is_left_out]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        deselected = set(left_out)
        items[:] = [item for item in items if item not in deselected]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report the place of the case and the reason, in place of this file and `Failed`."""
    report = yield
    crash = getattr(report.longrepr, "reprcrash", None)
    if isinstance(item, EvalCase) and item.failure is not None and crash is not None and call.when != "teardown":
        path, line, _ = item.reportinfo()
        crash.path, crash.lineno, crash.message = str(path), line + 1, item.failure.reason
    return report


def _add_markers(test: EvalCase, case: CheckedCase) -> None:
    test.add_marker(pytest.mark.agentv)
    if case.skip:
        reason = case.skip if isinstance(case.skip, str) else "the case says `skip`"
        test.add_marker(pytest.mark.skip(reason=reason))
    for name in dict.fromkeys(map(_marker_name, case.case.tags)):
        _register(name, test.config)
        test.add_marker(name)


def _register(marker: str, config: pytest.Config) -> None:
    """Register a marker, which `--strict-markers` requires."""
    known = config.stash.setdefault(MARKERS, set())
    if marker not in known:
        known.update(re.split(r"[:(]", line)[0].strip() for line in config.getini("markers"))
    if marker not in known:
        config.addinivalue_line("markers", f"{marker}: a tag of cases that `pytest --agentv` collected")
        known.add(marker)


def _loop(config: pytest.Config) -> BackgroundLoop:
    loop = config.stash.get(LOOP, None)
    if loop is None:
        loop = config.stash[LOOP] = BackgroundLoop()
        config.pluginmanager.register(LoopCloser(loop))
        config.add_cleanup(loop.close)
    return loop


class LoopCloser:
    """Hook that closes the loop at the end of the session: a worker of xdist may be killed before its cleanups run."""

    def __init__(self, loop: BackgroundLoop) -> None:
        self._loop = loop

    def pytest_sessionfinish(self) -> None:
        """Close the loop, and with it the targets."""
        self._loop.close()


def _options(config: pytest.Config) -> RunOptions:
    return RunOptions(
        cases=tuple(config.getoption("agentv_case")),
        personas=tuple(config.getoption("agentv_persona")),
        repeat=config.getoption("agentv_repeat"),
        timeout_s=config.getoption("agentv_timeout"),
        max_concurrency=config.getoption("agentv_max_concurrency"),
        fail_fast=config.getoption("maxfail") == 1,
    )


def _test_name(planned: PlannedRun, eval_: Eval) -> str:
    """Return `case[target]`, `case[target-2]` for the second run, and `case[persona-target]` with a persona."""
    label = _target_label(planned, eval_)
    persona_id = planned.case.case.persona_id
    if persona_id is not None:
        others = [*(target.name for target in eval_.targets), *(persona.id for persona in eval_.personas)]
        is_unclear = any(name.startswith(f"{persona_id}-") for name in others)
        label = f"{persona_id}{':' if is_unclear else '-'}{label}"
    return clean(f"{planned.case.case.id}[{label}]").replace("::", ":")


def _target_label(planned: PlannedRun, eval_: Eval) -> str:
    """Return the name of the target, with the number of the repetition from the second on."""
    target = planned.target.name
    if not planned.repeat:
        return target
    label = f"{target}-{planned.repeat + 1}"
    is_taken = any(label == other.name for other in eval_.targets)
    return f"{target}#{planned.repeat + 1}" if is_taken else label


def _marker_name(tag: str) -> str:
    """Return the name of the marker for a tag."""
    name = re.sub(r"[^\w.-]", "_", tag)
    return f"tag_{name}" if name in RESERVED_MARKERS or not name or name.startswith("_") else name


def _option_name(path: str) -> str:
    return "--agentv-target" if path == "--target" else path


def _properties(record: ResultRecord) -> Iterator[tuple[str, object]]:
    """Yield the numbers of a run for JUnit files and other readers of reports."""
    yield "status", record.status
    if record.persona_id:
        yield "persona_id", record.persona_id
    if record.ended_by:
        yield "ended_by", record.ended_by
        yield "fault", record.fault or "none"
    usage = record.tokens_usage
    numbers = {
        "score": record.score,
        **{name: getattr(usage, name, None) for name in COUNTS},
        "cost_usd": record.cost_usd,
        "latency_ms": record.latency_ms,
        "attempts": record.attempts,
        "turns": len(record.turns) if record.turns else None,
    }
    yield from ((name, number) for name, number in numbers.items() if number is not None)
