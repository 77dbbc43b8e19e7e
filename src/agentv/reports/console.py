"""The final report on the terminal."""

from __future__ import annotations

import re
from functools import partial
from shlex import quote
from typing import IO, TYPE_CHECKING, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from agentv.model.events import ExecutionStarted, RunFinished
from agentv.model.request import DEFAULT_PERSONA
from agentv.model.response import PRINTED, TRACEBACK
from agentv.redaction import shorten
from agentv.reports.case_table import CaseTable, persona_rates, render_table, tag_rates
from agentv.reports.diff import LONG, SHORT, cut, render_error, render_results
from agentv.reports.failures import ALL, FailedRun, FailureGroups, case_key, which_runs
from agentv.reports.terminal import Style, as_ascii, clean, clean_lines, format_duration, pluralize, wrap_parts
from agentv.reports.turns import case_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agentv.model.events import Event
    from agentv.model.judging import JudgeSums
    from agentv.model.response import Unread
    from agentv.model.results import OutcomeCounts, RepeatedCase, Repeats, ResultRecord, Summary
    from agentv.redaction import Redactor
    from agentv.reports.failures import CaseKey


DASH = "\N{EN DASH}"
_WIDE, _NARROW = 0.05, 0.005
"""Widths of an interval from which whole percents, or tenths of them, are precise enough."""


def format_percent(share: float) -> str:
    """Return a share in percent; less than all is never rounded up to 100 %."""
    if 0 < share < 1:
        share = min(max(share, 0.001), 0.999)
    return f"{share * 100:.3g} %"


def format_interval(interval: tuple[float, float]) -> str:
    """Return `30-95 %`, with an en dash and as many digits as the width of the interval justifies."""
    low, high = interval
    digits = 0 if high - low >= _WIDE else 1 if high - low >= _NARROW else 2
    return f"{low * 100:.{digits}f}{DASH}{high * 100:.{digits}f} %"


def confidence_note(interval: tuple[float, float] | None) -> str:
    """Return ` (95 % CI 30-95 %)`, to be appended to a rate."""
    return "" if interval is None else f" (95 % CI {format_interval(interval)})"


def pass_rate_text(summary: Summary) -> str:
    """Return `75 % of 4 measured passed (95 % CI 30-95 %)`."""
    if summary.pass_rate is None:
        return "nothing could be measured"
    rate = f"{format_percent(summary.pass_rate)} of {summary.passed + summary.failed:,} measured passed"
    return f"{rate}{confidence_note(summary.pass_rate_interval)}"


def outcome_text(counts: OutcomeCounts) -> str:
    """Return `40 % (95 % CI 12-77 %), 3 failed, 1 error`."""
    share = "nothing measured"
    if counts.pass_rate is not None:
        share = f"{format_percent(counts.pass_rate)}{confidence_note(counts.pass_rate_interval)}"
    return f"{share}, {counts.failed:,} failed, {pluralize(counts.errors, 'error')}"


def passed_fraction(case: RepeatedCase) -> str:
    """Return `3/5 passed`, with the number of errors."""
    measured = case.passed + case.failed
    rate = [f"{case.passed}/{measured} passed"] if measured or not case.errors else []
    return ", ".join([*rate, *([pluralize(case.errors, "error")] if case.errors else [])])


def flaky_cases(repeats: Repeats) -> list[RepeatedCase]:
    """Return the flaky cases that are listed; there may be more."""
    return [case for case in repeats.per_case if case.flaky]


def repeats_text(repeats: Repeats) -> str:
    """Return `pass@5 0.92 (95 % CI 0.61-0.99) · pass^5 0.41 (95 % CI 0.15-0.72) · 12 cases, 1 flaky`."""
    k = repeats.k
    rates = [f"nothing could be measured {k} times"]
    if repeats.pass_at_k is not None and repeats.pass_hat_k is not None:
        rates = [
            f"pass@{k} {repeats.pass_at_k:.2f}{_interval_note(repeats.pass_at_k_interval)}",
            f"pass^{k} {repeats.pass_hat_k:.2f}{_interval_note(repeats.pass_hat_k_interval)}",
        ]
    left_out = repeats.cases - repeats.measured
    fewer = f", {left_out:,} measured less often" if left_out and repeats.measured else ""
    return " · ".join([*rates, f"{pluralize(repeats.cases, 'case')}{fewer}, {repeats.flaky:,} flaky"])


def target_repeats_text(repeats: Repeats, name: str) -> str:
    """Return ` · pass@5 0.92 · pass^5 0.41`, to be appended to the line of a target."""
    target = repeats.targets.get(name)
    if target is None or target.pass_at_k is None or target.pass_hat_k is None:
        return ""
    return f" · pass@{repeats.k} {target.pass_at_k:.2f} · pass^{repeats.k} {target.pass_hat_k:.2f}"


def _interval_note(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" (95 % CI {interval[0]:.2f}{DASH}{interval[1]:.2f})"


MAX_PLACES = 5
MAX_KEPT = 200
"""Distinct places that are counted for each target, so that memory does not grow with the execution."""
MAX_LENGTH = 300
"""Characters of one place: its path may contain text of an agent."""
HINT = "docs/reference/replies.md: what agentv reads; declare block types that hold no calls with `plain_blocks`"
_INDEX = re.compile(r"\[\d+\]")


class UnreadCounts:
    """Counts the partly understood replies of each target, and how many of them have which unread place."""

    def __init__(self) -> None:
        self._targets: dict[str, _TargetCounts] = {}

    def add(self, record: ResultRecord) -> None:
        """Count one run, if there was a reply."""
        if record.error is None or record.unread:
            self._targets.setdefault(record.target, _TargetCounts()).add(record.unread or ())

    def render(self, targets: Iterable[str], style: Style) -> list[str]:
        """Return the lines for these targets, with one hint below them; none when everything was understood."""
        lines = []
        for name in targets:
            lines += self._targets[name].render(name, style) if name in self._targets else []
        return [*lines, style.paint("dim", HINT)] if lines else []


class _TargetCounts:
    """The counts of one target."""

    def __init__(self) -> None:
        self._replies = 0
        self._partly = 0
        self._places: dict[str, int] = {}

    def add(self, unread: Sequence[Unread]) -> None:
        """Count one reply; equal places of different messages are one: `output_messages[*].content[*]`."""
        self._replies += 1
        self._partly += bool(unread)
        for place in {_shorten(f"{_INDEX.sub('[*]', place.path)}: {place.reason}"): None for place in unread}:
            if place in self._places or len(self._places) < MAX_KEPT:
                self._places[place] = self._places.get(place, 0) + 1

    def render(self, name: str, style: Style) -> list[str]:
        if not self._partly:
            return []
        verb = "was" if self._replies == 1 else "were"
        share = f"{self._partly:,} of {_replies(self._replies)} {verb} only partly understood"
        lines = [style.paint("yellow", f"target {clean(name)}: {share}, so calls may be missing")]
        places = sorted(self._places.items(), key=lambda item: -item[1])
        lines += [f"  {place} ({_replies(count)})" for place, count in places[:MAX_PLACES]]
        more = len(places) - MAX_PLACES
        return [*lines, style.paint("dim", f"  {more:,} more in the results")] if more > 0 else lines


def render_unread(unread: Sequence[Unread]) -> list[str]:
    """Return the unread places of one reply as lines, safe to print, under a line that says what they mean."""
    if not unread:
        return []
    more = len(unread) - MAX_PLACES
    lines = [f"  {_shorten(str(place))}" for place in unread[:MAX_PLACES]]
    return [
        "the reply was only partly understood, so calls may be missing:",
        *lines,
        *([f"  {more:,} more"] if more > 0 else []),
    ]


def other_warnings(warnings: Iterable[str], unread: Sequence[Unread]) -> tuple[str, ...]:
    """Return the warnings without those that name an unread place, which is shown on its own."""
    places = tuple(map(str, unread))
    return tuple([warning for warning in warnings if not any(place in warning for place in places)])


def _shorten(text: str) -> str:
    return clean(shorten(text, MAX_LENGTH))


def _replies(count: int) -> str:
    return f"{count:,} {'reply' if count == 1 else 'replies'}"


MAX_SHOWN = 20
"""Different failures shown in full, however many there are."""
MAX_NAMED = 200
MAX_PASSED = 20
"""Passing cases that are listed; more are only counted."""
MAX_TRACKED = 10_000
MAX_OUTPUT_LINES = 100
"""Lines of a traceback or of an agent's output, from the end."""
MAX_ERROR_LINE = 2_000
"""Characters of one line of an error message."""


class PassedCase(NamedTuple):
    """A case that passed, by its first run."""

    order: int
    head: str
    body: tuple[str, ...] = ()


class Console:
    """Collects results and prints the report at the end of an execution."""

    name = "the terminal"

    def __init__(
        self, stream: IO[str], redactor: Redactor, *, verbosity: int = 0, has_target_option: bool = False
    ) -> None:
        self._stream = stream
        self._style = Style.of(stream)
        self._line_width = self._style.width if stream.isatty() else ALL
        """Columns of a line of the summary; a log is not wrapped."""
        self._redactor = redactor
        self._verbosity = verbosity
        self._has_target_option = has_target_option
        """The target was chosen with `--target`, so the suggested command has to do so too."""
        is_verbose = verbosity > 0
        self._extent = replace(LONG if is_verbose else SHORT, redact=redactor.text)
        self._failures = FailureGroups(self._body, ALL if is_verbose else MAX_SHOWN, is_grouped=not is_verbose)
        self._failed_cases: set[CaseKey] = set()
        self._passed: dict[CaseKey, PassedCase] = {}
        self._table: CaseTable | None = None
        self._first_failure: RunFinished | None = None
        self._warnings: dict[str, int] = {}
        self._unread = UnreadCounts()

    def handle(self, event: Event) -> None:
        """Collect a result; print the report at the end."""
        if isinstance(event, ExecutionStarted):
            self._table = CaseTable() if len(event.targets) > 1 else None
        elif isinstance(event, RunFinished):
            self._add(event)
        else:
            text = self._redactor.text("\n".join(self._report(event.summary)))
            self._stream.write(text if self._style.unicode else as_ascii(text))
            self._stream.flush()

    def _add(self, event: RunFinished) -> None:
        record = event.record
        self._unread.add(record)
        for warning in other_warnings(record.warnings, record.unread or ()):
            if warning in self._warnings or len(self._warnings) < MAX_NAMED:
                self._warnings[warning] = self._warnings.get(warning, 0) + 1
        if self._verbosity < 0:
            return
        if self._table is not None:
            self._table.add(event)
        if record.status == "pass":
            self._add_passed(event)
            return
        self._failures.add(event)
        if len(self._failed_cases) < MAX_TRACKED:
            self._failed_cases.add(case_key(record))
        if self._first_failure is None or event.order < self._first_failure.order:
            self._first_failure = event

    def _add_passed(self, event: RunFinished) -> None:
        record, key = event.record, case_key(event.record)
        if self._verbosity > 0:
            key = (*key[:3], f"{record.target} {event.order}")
            self._passed[key] = PassedCase(event.order, self._run_head(event), tuple(self._body(event)))
            return
        known = self._passed.get(key)
        if known is None and len(self._passed) > MAX_PASSED:
            return
        if known is None or event.order < known.order:
            self._passed[key] = PassedCase(event.order, "", (clean(event.place), f"{record.score or 0.0:.2f}"))

    def _run_head(self, event: RunFinished) -> str:
        """Return the heading of one run, as `-v` shows it."""
        run = FailedRun.of(event)
        repeat = f" #{run.repeat + 1}" if run.repeat else ""
        return self._head(run, f"{clean(run.name)}{repeat}")

    def _head(self, run: FailedRun, label: str) -> str:
        score = "" if run.score is None else f"  {run.score:.2f}"
        attempts = f", {run.attempts} attempts" if run.attempts > 1 else ""
        about = self._style.paint("dim", f"  {clean(run.target)}{attempts}  {clean(run.place)}".rstrip())
        return f"{self._style.verdict(run.status)} {label}{score}{about}"

    def _body(self, event: RunFinished) -> list[str]:
        record = event.record
        lines: list[str] = []
        if record.error is not None:
            first, *rest = [cut(line, MAX_ERROR_LINE) for line in render_error(record.error.message, self._extent)]
            lines.append(f"  {self._style.paint('yellow', '!')} {record.error.kind}: {first}")
            lines += [f"    {line}" for line in rest]
        is_verbose = self._verbosity > 0
        results = render_results(event, self._style, self._extent, hidden=() if is_verbose else ("pass",))
        lines += [f"  {line}".rstrip() for line in results]
        if is_verbose:
            lines += self._agent_output(event)
        if self._verbosity > 0 and record.candidate:
            lines += [f"  {self._style.paint('dim', 'answer')} {line}" for line in clean_lines(record.candidate)[:5]]
        return lines

    def _agent_output(self, event: RunFinished) -> list[str]:
        """Return the traceback of a Python agent and the text that it printed."""
        lines: list[str] = []
        for key in (TRACEBACK, PRINTED):
            text = (event.response.metadata or {}).get(key)
            if isinstance(text, str) and text:
                shown = clean_lines(text.rstrip("\n"))[-MAX_OUTPUT_LINES:]
                lines += [f"  {self._style.paint('dim', key)} {cut(line, MAX_ERROR_LINE)}" for line in shown]
        return lines

    def _report(self, summary: Summary) -> list[str]:
        """Return the report: what is read most often stands at the end, next to the prompt."""
        blocks = [
            self._passed_lines(summary),
            self._warning_lines(summary),
            self._unread_lines(summary),
            *self._failure_blocks(summary),
            self._flaky_lines(summary),
            [] if self._table is None or self._verbosity < 0 else render_table(self._table, summary, self._style),
            self._totals(summary),
        ]
        lines: list[str] = []
        for block in blocks:
            lines += ["", *block] if block and lines and lines[-1] else block
        return [*lines, ""]

    def _passed_lines(self, summary: Summary) -> list[str]:
        if self._verbosity > 0:
            lines: list[str] = []
            for case in sorted(self._passed.values()):
                lines += [case.head, *case.body, *([""] if case.body else [])]
            return lines
        if self._table is not None:
            return []  # it has all of them
        if len(self._passed) > MAX_PASSED:
            passed = pluralize(summary.passed, "run") if summary.repeats else pluralize(summary.passed, "case")
            return [self._style.paint("dim", f"{passed} passed; -v lists them")]
        rates = _rates(summary)
        lines = []
        for key, case in sorted(self._passed.items(), key=lambda item: item[1].order):
            if key not in self._failed_cases:
                place, score = case.body
                rate = f"  {passed_fraction(rates[key])}" if key in rates else ""
                about = self._style.paint("dim", f"  {clean(key[3])}  {place}".rstrip())
                lines.append(f"{self._style.verdict('pass')} {clean(case_name(*key[1:3]))}{rate}  {score}{about}")
        return lines

    def _failure_blocks(self, summary: Summary) -> Iterator[list[str]]:
        """Yield the lines of each group of failures: its first case, the reasons, and the other cases."""
        rates = _rates(summary)
        has_repeats = summary.repeats is not None and self._verbosity <= 0
        names: list[str] = []
        last: tuple[CaseKey, str] | None = None
        for group in self._failures:
            first = group.first
            rate = f"  {passed_fraction(rates[first.case])}" if first.case in rates and has_repeats else ""
            repeat = f" #{first.repeat + 1}" if first.repeat and not has_repeats else ""
            head = self._head(first, f"{clean(first.name)}{repeat}{rate}")
            if group.body is None:
                more = f" and {group.count - 1:,} more for the same reasons" if group.count > 1 else ""
                names.append(f"{head}{more}")
                continue
            lines = [] if (first.case, first.status) == last else [head]
            last = (first.case, first.status)
            if has_repeats:
                lines.append(self._style.paint("dim", f"  {which_runs(group.cases()[0])}"))
            lines += group.body
            others = group.others(partial(self._other_case, summary=summary))
            if others:
                noun = "other case" if len(summary.targets) == 1 and not has_repeats else "other run"
                count = pluralize(group.count - len(group.cases()[0]), noun)
                lines += wrap_parts([f"  the same in {count}:", *others], ", ", self._style.width, "    ")
            yield lines
        if self._failures.dropped:
            names.append(self._style.paint("dim", f"     {self._failures.dropped:,} more did not pass"))
        yield names

    def _other_case(self, runs: list[FailedRun], summary: Summary) -> str:
        first = runs[0]
        notes = [clean(first.target)] if len(summary.targets) > 1 else []
        notes += [which_runs(runs)] if summary.repeats is not None else []
        return f"{clean(first.name)} ({', '.join(notes)})" if notes else clean(first.name)

    def _flaky_lines(self, summary: Summary) -> list[str]:
        repeats = summary.repeats
        if repeats is None or not repeats.flaky or self._verbosity < 0:
            return []
        lines = []
        shown = flaky_cases(repeats)[: MAX_NAMED if self._verbosity > 0 else MAX_SHOWN]
        for case in shown:
            share = (
                ""
                if case.pass_rate is None
                else f"{format_percent(case.pass_rate)}{confidence_note(case.pass_rate_interval)}"
            )
            about = self._style.paint("dim", f"  {share}  {clean(case.target)}")
            label = self._style.paint("yellow", "FLAKY")
            name = clean(case_name(case.case_id, case.persona_id))
            lines.append(f"{label} {name} {passed_fraction(case)}{about}")
        if repeats.flaky > len(shown):
            lines.append(self._style.paint("dim", f"      {repeats.flaky - len(shown):,} more are flaky"))
        return [*lines, ""]

    def _warning_lines(self, summary: Summary) -> list[str]:
        general = () if summary.warnings is UNSET else summary.warnings
        if not (self._warnings or general) or self._verbosity < 0:
            return []
        lines = [f"{self._style.paint('yellow', 'warning')}: {clean(warning)}" for warning in general]
        for warning, times in list(self._warnings.items())[:5]:
            often = f" ({pluralize(times, 'run')})" if times > 1 else ""
            lines.append(f"{self._style.paint('yellow', 'warning')}: {clean(warning)}{often}")
        if len(self._warnings) > 5:  # noqa: PLR2004 - those above
            lines.append(self._style.paint("dim", f"         {len(self._warnings) - 5} more in the results"))
        return [*lines, ""]

    def _unread_lines(self, summary: Summary) -> list[str]:
        lines = [] if self._verbosity < 0 else self._unread.render(summary.targets, self._style)
        return [*lines, ""] if lines else []

    def _totals(self, summary: Summary) -> list[str]:
        style = self._style
        counts = [
            style.paint("green", f"{summary.passed:,} passed") if summary.passed else "0 passed",
            style.paint("red", f"{summary.failed:,} failed") if summary.failed else "0 failed",
            style.paint("yellow", pluralize(summary.errors, "error")) if summary.errors else "0 errors",
        ]
        if summary.skipped:
            counts.append(f"{summary.skipped:,} skipped")
        if summary.left_out:
            counts.append(style.paint("yellow", f"{summary.left_out:,} left out by `only`"))
        if summary.planned > summary.runs:
            counts.append(style.paint("yellow", f"{summary.planned - summary.runs:,} not run"))
        width = self._line_width
        lines = wrap_parts([f"{', '.join(counts)}:", pass_rate_text(summary)], " ", width)
        lines += [] if summary.repeats is None else wrap_parts(repeats_text(summary.repeats).split(" · "), " · ", width)
        lines += [style.paint("dim", line) for line in wrap_parts(usage_parts(summary), " · ", width)]
        lines += [style.paint("dim", line) for line in judge_lines(summary)]
        if len(summary.targets) > 1 and self._verbosity >= 0:
            for name, tally in summary.targets.items():
                again = "" if summary.repeats is None else target_repeats_text(summary.repeats, name)
                lines.append(f"  {clean(name)}: {outcome_text(tally)}{again}")
        lines += self._group_lines(summary)
        lines += [f"results: {clean(path)}" for path in summary.out]
        return lines + self._next(summary)

    def _group_lines(self, summary: Summary) -> list[str]:
        """Return a line for each persona and for each tag."""
        tags, more = tag_rates(summary) if self._verbosity >= 0 else ([], 0)
        shown = persona_rates(summary) if self._verbosity >= 0 else ()
        lines = [f"  persona {clean(name)}: {outcome_text(counts)}" for name, counts in shown]
        lines += [f"  tag {clean(tag)}: {outcome_text(counts)}" for tag, counts in tags]
        return [*lines, self._style.paint("dim", f"  {more:,} more tags in the summary")] if more else lines

    def _next(self, summary: Summary) -> list[str]:
        """Return why the execution stopped, or the command to run next."""
        first = self._first_failure
        if summary.stopped is not UNSET:
            return [self._style.paint("yellow", f"stopped: {clean(summary.stopped)}")]
        if summary.status == "interrupted":
            finished = f"; the finished ones are in {clean(summary.out[0])}" if summary.out else ""
            missing = summary.planned - summary.runs
            verb = "is" if missing == 1 else "are"
            return [f"interrupted: {missing:,} of {pluralize(summary.planned, 'run')} {verb} missing{finished}"]
        if self._verbosity < 0 or first is None:
            return []
        if self._verbosity > 0 and summary.runs == 1:
            return []
        target = (
            f" --target {quote(first.record.target)}" if len(summary.targets) > 1 or self._has_target_option else ""
        )
        persona = "" if summary.personas is UNSET else f" --persona {quote(first.record.persona_id or DEFAULT_PERSONA)}"
        command = f"agentv eval {quote(first.file)} --case {quote(first.record.case_id)}{persona}{target} -v"
        return [f"next: {clean(command)}"] if first.file else []


def _rates(summary: Summary) -> dict[CaseKey, RepeatedCase]:
    """Return the outcomes of repeated cases, as far as the summary lists them."""
    listed = summary.repeats.per_case if summary.repeats else ()
    return {(case.eval_id, case.case_id, case.persona_id or None, case.target): case for case in listed}


def judge_lines(summary: Summary) -> list[str]:
    """Return a line for each judge: its calls, tokens and cost."""
    lines = []
    for name, sums in ({} if summary.judges is UNSET else summary.judges).items():
        lines.append(f"judge {clean(name)}: {judge_usage_text(sums)}")
    return lines


def judge_usage_text(sums: JudgeSums) -> str:
    """Return the number of calls of a judge, with their tokens and cost."""
    known = f", {sums.cached:,} known already" if sums.cached else ""
    usage = sums.tokens_usage
    tokens = "" if usage is None else f" · tokens {usage.input_tokens or 0:,} in, {usage.output_tokens or 0:,} out"
    some = "" if sums.reported_cost == sums.findings else f" ({sums.reported_cost:,} of {sums.findings:,} findings)"
    cost = "cost not reported" if sums.cost_usd is None else f"cost ${sums.cost_usd:.4f}{some}"
    return f"asked {pluralize(sums.calls, 'time')}{known}{tokens} · {cost}"


def usage_parts(summary: Summary) -> list[str]:
    """Return latency, tokens, cost and duration, each with the number of runs that report it unless all do."""
    parts = []
    spread, reported = summary.latency_ms, summary.reported
    if spread is not None:
        parts.append(f"latency {format_duration(spread.p50)} median, {format_duration(spread.p95)} p95")
    usage = summary.tokens_usage
    if usage is None:
        parts.append("tokens not reported")
    else:
        known = [
            f"{count:,} {unit}"
            for count, unit in ((usage.input_tokens, "in"), (usage.output_tokens, "out"))
            if count is not None
        ] or [f"{usage.total_tokens or 0:,}"]
        parts.append(f"tokens {', '.join(known)}{_coverage(reported.tokens_usage, summary.runs)}")
    if summary.cost_usd is None:
        parts.append("cost not reported")
    else:
        parts.append(f"cost ${summary.cost_usd:.4f}{_coverage(reported.cost_usd, summary.runs)}")
    return [*parts, f"took {format_duration(summary.duration_ms)}"]


def _coverage(known: int, runs: int) -> str:
    return "" if known == runs else f" ({known:,} of {pluralize(runs, 'run')})"
