"""What repeated runs say of each case, kept in little more than the cases' names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from agentv.model.record import RepeatedCase, RepeatedTarget, Repeats
from agentv.scoring.stats import pass_at_k, pass_hat_k, wilson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from agentv.model.record import ResultRecord

    Times = dict["Ends", int]
    """How many cases ended so."""

MAX_LISTED = 100
"""Cases that a summary lists one by one."""
DIGITS = 6
_DIGITS = re.compile(r"0*(\d+)")


class Ends(NamedTuple):
    """How the runs of one case ended."""

    passed: int = 0
    failed: int = 0
    errors: int = 0

    @property
    def runs(self) -> int:
        """How many there were."""
        return self.passed + self.failed + self.errors

    @property
    def measured(self) -> int:
        """How many could be measured."""
        return self.passed + self.failed

    @property
    def flaky(self) -> bool:
        """Whether it both passed and failed."""
        return bool(self.passed and self.failed)

    @property
    def rank(self) -> int:
        """What is most worth knowing first: flaky, failed, not measured, passed."""
        return 0 if self.flaky else 1 if self.failed else 2 if self.errors else 3


class Cases:
    """The ends of every case, whichever order its runs finish in."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], dict[str, Ends]] = {}
        # Few ends differ and many cases share them, so that a case costs its name and a place in a table.
        self._known: dict[Ends, Ends] = {}

    def add(self, record: ResultRecord) -> None:
        """One more run."""
        group = self._groups.setdefault((record.eval_id, record.target), {})
        passed, failed, errors = group.get(record.case_id) or (0, 0, 0)
        if record.status == "pass":
            passed += 1
        elif record.status == "fail":
            failed += 1
        else:
            errors += 1
        ends = Ends(passed, failed, errors)
        group[record.case_id] = self._known.setdefault(ends, ends)

    def repeats(self, evals: list[str], targets: list[str]) -> Repeats | None:
        """What they say together; `None` when no case was run more than once. The names are in plan order."""
        # Sums over how often each end was met: there are few of them, however many cases there are.
        times: Times = {}
        by_target: dict[str, Times] = {}
        for (_, target), _, ends in self._repeated():
            of_target = by_target.setdefault(target, {})
            times[ends] = times.get(ends, 0) + 1
            of_target[ends] = of_target.get(ends, 0) + 1
        if not times:
            return None
        k = min(ends.runs for ends in times)
        rate = _mean(times, pass_at_k, 1)
        able = sum(often for ends, often in times.items() if ends.measured)
        listed = self._listed(evals, targets)
        told = _told(times, k)
        return Repeats(
            k=k,
            always_passed=sum(often for ends, often in times.items() if ends.passed and not ends.failed),
            always_failed=sum(often for ends, often in times.items() if ends.failed and not ends.passed),
            unmeasured=told["cases"] - able,
            pass_rate=rate,
            pass_rate_interval=_around(rate, able),
            targets={name: RepeatedTarget(**_told(by_target[name], k)) for name in targets if name in by_target},
            per_case=listed,
            not_listed=told["cases"] - len(listed),
            **told,
        )

    def _repeated(self) -> Iterator[tuple[tuple[str, str], str, Ends]]:
        for key, group in self._groups.items():
            for case_id, ends in group.items():
                if ends.runs > 1:
                    yield key, case_id, ends

    def _listed(self, evals: list[str], targets: list[str]) -> tuple[RepeatedCase, ...]:
        """Those that are most worth knowing, in an order that does not depend on which run finished first."""
        from heapq import nsmallest  # noqa: PLC0415 - only repetitions need it

        evals_at = {name: at for at, name in enumerate(evals)}
        targets_at = {name: at for at, name in enumerate(targets)}

        def place(found: tuple[tuple[str, str], str, Ends]) -> tuple[int, int, list[tuple[int, str]], str, int]:
            (eval_id, target), case_id, ends = found
            return ends.rank, evals_at.get(eval_id, 0), _by_number(case_id), case_id, targets_at.get(target, 0)

        return tuple(
            RepeatedCase(
                eval_id=eval_id,
                case_id=case_id,
                target=target,
                passed=ends.passed,
                failed=ends.failed,
                errors=ends.errors,
                flaky=ends.flaky,
                pass_rate=round(ends.passed / ends.measured, DIGITS) if ends.measured else None,
                pass_rate_interval=interval(ends.passed, ends.measured),
            )
            for (eval_id, target), case_id, ends in nsmallest(MAX_LISTED, self._repeated(), key=place)
        )


def _by_number(name: str) -> list[tuple[int, str]]:
    """Sorts `case-2` before `case-10`: numbers by their length first, and only then digit by digit."""
    parts = _DIGITS.split(name)
    return [(len(part) if at % 2 else 0, part) for at, part in enumerate(parts)]


def interval(passed: float, measured: int) -> tuple[float, float] | None:
    """Wilson's interval, in as many digits as anybody reads."""
    found = wilson(passed, measured)
    return None if found is None else (round(found[0], DIGITS), round(found[1], DIGITS))


def _around(mean: float | None, cases: int) -> tuple[float, float] | None:
    return None if mean is None else interval(mean * cases, cases)


def _told(times: Times, k: int) -> dict[str, Any]:
    """What is said of all, and of each target."""
    measured = sum(often for ends, often in times.items() if ends.measured >= k)
    at_k, hat_k = _mean(times, pass_at_k, k), _mean(times, pass_hat_k, k)
    return {
        "cases": sum(times.values()),
        "flaky": sum(often for ends, often in times.items() if ends.flaky),
        "measured": measured,
        "pass_at_k": at_k,
        "pass_at_k_interval": _around(at_k, measured),
        "pass_hat_k": hat_k,
        "pass_hat_k_interval": _around(hat_k, measured),
    }


def _mean(times: Times, estimate: Callable[[int, int, int], float | None], k: int) -> float | None:
    """Over the cases that were measured so often."""
    known = [(estimate(ends.measured, ends.passed, k), often) for ends, often in times.items()]
    cases = sum(often for value, often in known if value is not None)
    return round(sum(value * often for value, often in known if value is not None) / cases, DIGITS) if cases else None
