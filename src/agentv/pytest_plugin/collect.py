"""Eval files as pytest sees them: a file is a collector, each case with each target and repetition is a test."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from msgspec.structs import replace

from agentv.errors import AgentVError, SpecError
from agentv.pytest_plugin.fixture import PLAIN, Told, tell
from agentv.pytest_plugin.run import BackgroundLoop, EvalRunner, Unready
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
"""Those that are registered, so that they need not be looked up for each case."""
MEANT_OTHERWISE = {"skip", "skipif", "xfail", "parametrize", "usefixtures", "filterwarnings", "and", "or", "not"}
"""Markers and words that mean something to pytest: a case with such a tag must be run like any other."""
COUNTS = ("input_tokens", "output_tokens", "total_tokens")


class EvalFile(pytest.File):
    """One eval."""

    _whole: Eval

    @cached_property
    def runner(self) -> EvalRunner:
        """Where its cases run; made when the first of them does."""
        return EvalRunner(self._whole, _options(self.config), _loop(self.config))

    def collect(self) -> Iterator[EvalCase]:
        """Every case with every target and repetition; those that `skip` and `only` leave out are marked."""
        found = self._load()
        options = _options(self.config)
        cases = {case.index: case for case in found.cases}
        # All of them are planned: pytest says itself which tests it skips or leaves out.
        every = [replace(case, skip=False, only=False) for case in cases.values()]
        repeats = sum(case.repeat for case in every)
        self._whole = whole = replace(found, cases=every, has_only=False, skipped=0, repeats=repeats)
        left_out: set[int] = set()
        for planned in plan_runs([whole], options):
            case = cases[planned.case.index]
            test = EvalCase.from_parent(self, name=_name(planned, whole), planned=planned)
            _mark(test, case)
            if found.has_only and not case.only:
                test.is_left_out = True
                left_out.add(case.index)
            yield test
        if left_out:
            self._warn(f"{pluralize(len(left_out), 'case')} left out: others say `only`")
        for warning in dict.fromkeys(found.warnings):
            self._warn(str(warning))

    def _load(self) -> Eval:
        try:
            (found,) = load_evals([self.path], tuple(self.config.getoption("agentv_target")))
        except SpecError as error:
            problems = [each._replace(path=_option(each.path)) for each in error.problems]
            raise self.CollectError(render_problems(problems, PLAIN)) from None
        except AgentVError as error:
            raise self.CollectError(str(error)) from None
        return found

    def _warn(self, message: str) -> None:
        try:
            self.warn(pytest.PytestWarning(message))
        except pytest.PytestWarning as warning:  # warnings are errors here
            raise self.CollectError(str(warning)) from None


class EvalCase(pytest.Item):
    """One run: it is made when the test is set up, so that pytest's error is our error, and its failure ours too."""

    parent: EvalFile

    def __init__(self, *, planned: PlannedRun, **named: Any) -> None:
        super().__init__(**named)
        self.planned = planned
        self.is_left_out = False
        """Whether others say `only`."""
        self.told: Told | None = None
        """Why it did not pass."""
        self._finished: RunFinished | None = None
        place = planned.case.place
        # Now, because a test may change the working directory.
        self._place = (Path.cwd() / place.file, place.line - 1) if place else (self.path, 0)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the case stands: in the eval, or in its dataset."""
        path, line = self._place
        return path, line, self.name

    @property
    def may_begin_early(self) -> bool:
        """Whether it will be run for certain."""
        is_free = not any(self.get_closest_marker(name) for name in ("skip", "skipif"))
        return is_free and all(mark.kwargs.get("run", True) for mark in self.iter_markers("xfail"))

    def setup(self) -> None:
        """Run the agent and evaluate its reply; what could not be measured ends here."""
        self.told = self._finished = None
        if self.config.getoption("setuponly", default=False):
            return
        try:
            self._finished = self.parent.runner.result(self.planned, self._others())
        except Unready as error:
            told = Told(f"setup: {error}".partition("\n")[0], f"ERROR (setup): {error}")
        else:
            self._note(self._finished.record)
            if self._finished.record.status != "error":
                return
            told = self._tell(self._finished)
        self._fail(told)

    def runtest(self) -> None:
        """Say what did not hold."""
        if self._finished is not None and self._finished.record.status != "pass":
            self._fail(self._tell(self._finished))

    def _note(self, record: ResultRecord) -> None:
        known = dict(_properties(record))
        self.user_properties = [*(pair for pair in self.user_properties if pair[0] not in known), *known.items()]
        warnings = other_warnings(record.warnings, record.unread or ())  # the failure itself names unread places
        if warnings:
            text = self._redactor.text("\n".join(map(clean, warnings)))
            self.add_report_section("setup", "agentv warnings", text)

    def _others(self) -> Iterator[PlannedRun]:
        """Those of the same eval that are worth beginning now: a worker of xdist does not know which it will get."""
        if hasattr(self.config, "workerinput"):
            return
        for test in self.session.items:
            if isinstance(test, EvalCase) and test.parent is self.parent and test.may_begin_early:
                yield test.planned

    def _tell(self, event: RunFinished) -> Told:
        return tell(event, self._redactor, verbose=self.config.get_verbosity() > 0)

    @property
    def _redactor(self) -> Redactor:
        return self.parent.runner.redactors[self.planned.target.name]

    def _fail(self, told: Told) -> NoReturn:
        self.told = told
        pytest.fail(told.text, pytrace=False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what others' `only` leaves out."""
    left_out = [item for item in items if isinstance(item, EvalCase) and item.is_left_out]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        dropped = set(left_out)
        items[:] = [item for item in items if item not in dropped]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Point at the case and say why, where pytest would point at this file and say `Failed`."""
    report = yield
    crash = getattr(report.longrepr, "reprcrash", None)
    if isinstance(item, EvalCase) and item.told is not None and crash is not None and call.when != "teardown":
        path, line, _ = item.reportinfo()
        crash.path, crash.lineno, crash.message = str(path), line + 1, item.told.reason
    return report


def _mark(test: EvalCase, case: CheckedCase) -> None:
    test.add_marker(pytest.mark.agentv)
    if case.skip:
        reason = case.skip if isinstance(case.skip, str) else "the case says `skip`"
        test.add_marker(pytest.mark.skip(reason=reason))
    for name in dict.fromkeys(map(_marker, case.case.tags)):
        _register(name, test.config)
        test.add_marker(name)


def _register(marker: str, config: pytest.Config) -> None:
    """Make a marker known, or `--strict-markers` would refuse it."""
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
        config.add_cleanup(loop.close)
    return loop


def _options(config: pytest.Config) -> RunOptions:
    return RunOptions(
        cases=tuple(config.getoption("agentv_case")),
        repeat=config.getoption("agentv_repeat"),
        timeout_s=config.getoption("agentv_timeout"),
        max_concurrency=config.getoption("agentv_max_concurrency"),
        fail_fast=config.getoption("maxfail") == 1,
    )


def _name(planned: PlannedRun, whole: Eval) -> str:
    """`case[target]`, and `case[target-2]` for its second run."""
    target = label = planned.target.name
    if planned.repeat:
        label = f"{target}-{planned.repeat + 1}"
        if any(label == each.name for each in whole.targets):  # which may be called so
            label = f"{target}#{planned.repeat + 1}"
    return clean(f"{planned.case.case.id}[{label}]").replace("::", ":")


def _marker(tag: str) -> str:
    """A tag as a marker may be called."""
    name = re.sub(r"[^\w.-]", "_", tag)
    return f"tag_{name}" if name in MEANT_OTHERWISE or not name or name.startswith("_") else name


def _option(path: str) -> str:
    return "--agentv-target" if path == "--target" else path


def _properties(record: ResultRecord) -> Iterator[tuple[str, object]]:
    """What is known of a run, for JUnit files and whoever else reads reports."""
    yield "status", record.status
    usage = record.tokens_usage
    numbers = {
        "score": record.score,
        **{name: getattr(usage, name, None) for name in COUNTS},
        "cost_usd": record.cost_usd,
        "latency_ms": record.latency_ms,
        "attempts": record.attempts,
    }
    yield from ((name, number) for name, number in numbers.items() if number is not None)
