"""Which targets judge: that every evaluator that asks one names one that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentv.checked import Target
from agentv.errors import Problem, suggest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agentv.checked import Checked


class JudgeNames:
    """The targets that may judge in one eval, and those that do."""

    def __init__(
        self, targets: Sequence[Target] | None, default: str | None, chosen: Target | str | None = None
    ) -> None:
        self._known = None if targets is None else {target.name: target for target in targets}
        """`None` when the targets could not be read, so that nothing can be said of them."""
        self.default = default
        self._used: dict[str, None] = {}
        self.problems: list[Problem] = []
        """What is wrong with the default itself."""
        if self._known is None or default is None:
            return
        if isinstance(chosen, Target):
            self._known[chosen.name] = chosen
        elif default not in self._known:
            path = "judge" if chosen is None else "--judge"
            self.problems.append(Problem(path, unknown(default, self._known)))
        if chosen is not None:
            # One that the caller names is there for whoever asks, also where every evaluator names another.
            self._used[default] = None

    @property
    def used(self) -> tuple[Target, ...]:
        """The targets that are asked by any evaluator that was checked."""
        known = self._known or {}
        return tuple(known[name] for name in self._used if name in known)

    def check(self, checks: Sequence[Checked], path: str) -> list[Problem]:
        """What is wrong with the judges of these evaluators and of those inside them."""
        problems: list[Problem] = []
        for at, checked in enumerate(checks):
            evaluator = checked.evaluator
            asked = getattr(evaluator, "asks", None)
            if asked is not None and not evaluator.skip:
                problems += self._check(asked, f"{path}[{at}]")
            inner = getattr(evaluator, "inner", None)
            if inner:
                problems += self.check(inner, f"{path}[{at}].{getattr(evaluator, 'nested', 'evaluators')}")
        return problems

    def _check(self, asked: Sequence[str | None], path: str) -> Iterator[Problem]:
        if self._known is None:
            return
        for at, written in enumerate(asked):
            name = written or self.default
            if name is None:
                yield Problem(
                    path, f"no judge: add `judge: NAME` here, in the eval, or in agentv.yaml{self._choices}", "whole"
                )
            elif name in self._known:
                self._used[name] = None
            elif written is not None:  # a wrong default is said once, where it stands
                yield Problem(f"{path}.judges[{at}]" if len(asked) > 1 else f"{path}.judge", unknown(name, self._known))

    @property
    def _choices(self) -> str:
        return f"; the targets are {', '.join(self._known)}" if self._known else ""


def judge_name(chosen: Target | str | None, written: Any, shared: str | None) -> str | None:
    """The name of the default judge: the caller's, else the eval's, else the project's."""
    if chosen is not None:
        return chosen if isinstance(chosen, str) else chosen.name
    return written if isinstance(written, str) and written else shared


def without_judge(own: list[Target], shared: list[Target], judge: str | None) -> tuple[list[Target], list[Target]]:
    """The targets that may be meant where nobody says which to test: who judges is not, unless there is no other."""
    tested = [target for target in own if target.name != judge]
    tested_too = [target for target in shared if target.name != judge]
    return (tested, tested_too) if tested or tested_too else (own, shared)


def unknown(name: str, known: Mapping[str, Target]) -> str:
    """That there is no such target, and which one was probably meant."""
    if not known:
        return f"{name!r} is not defined: add it to `targets`, here or in agentv.yaml"
    return f"there is no target {name!r}{suggest(name, known) or '; the targets are ' + ', '.join(known)}"
