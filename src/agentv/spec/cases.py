"""A case as written made into one that may run, or everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from agentv.checked import Checked, CheckedCase, every_check
from agentv.errors import Problem, SpecError
from agentv.model.case import Case
from agentv.spec.check import NOT_JSON, TOO_DEEP, as_json, build, is_too_deep, shown
from agentv.spec.content import Filler
from agentv.spec.entries import CaseEntry, DefaultsEntry
from agentv.spec.evaluators import NOTHING_CHECKED, can_fail, check_evaluators, checks_anything, with_expected_messages
from agentv.spec.messages import check_expected_messages, check_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.errors import Place
    from agentv.model.message import Message
    from agentv.spec.judges import JudgeNames

NOT_A_REASON = {"", "y", "n", "yes", "no", "on", "off", "true", "false"}
"""What other YAML readers take for true or false; as a reason it would skip a case that was meant to run."""
CAMEL = {"inputMessages": "input_messages", "expectedMessages": "expected_messages"}
LISTS = {"input_messages": "input", "expected_messages": "expected"}
"""Where messages stand, and the short word for it."""


class CaseReader:
    """Reads the cases of one eval."""

    def __init__(
        self,
        defaults: DefaultsEntry,
        default_checks: list[Checked],
        *,
        root: str,
        folder: str,
        judges: JudgeNames | None = None,
    ) -> None:
        self._defaults = defaults
        self._default_checks = default_checks
        self._default_names = {name for checked in default_checks if (name := _name(checked))}
        self._root = root
        self._folder = folder
        self._judges = judges

    def read(
        self,
        text: bytes,
        index: int,
        place: Place | None = None,
        evaluators: list[Any] | None = None,
        files: frozenset[str] | None = None,
    ) -> tuple[CheckedCase | None, list[Problem]]:
        """The case that this JSON describes, its evaluators given apart if they are objects.

        Of a case that was filled before, only the texts at the paths `files` stand for something else. Problems have
        paths within the case.
        """
        if is_too_deep(text):
            return None, [Problem("", TOO_DEEP, "whole")]
        entry, problems = build(CaseEntry, text, "")
        if entry is None and problems[0].message.startswith(NOT_JSON):
            return None, problems
        if entry is None:
            text = _renamed(text)
            entry, problems = build(CaseEntry, text, "")
        if entry is None:
            return None, [*problems, *self._look_further(text, problems, evaluators)]
        if evaluators is not None:
            entry = replace(entry, evaluators=evaluators)
        case, checks, problems = self._make(entry, files)
        if problems or case is None:
            return None, problems
        return self._checked(entry, case, checks, index, place), []

    def _look_further(self, text: bytes, problems: list[Problem], evaluators: list[Any] | None) -> list[Problem]:
        """What else is wrong in a case that cannot be built: all of it is told in one pass."""
        data = msgspec.json.decode(text)
        if not isinstance(data, dict):
            return []
        wrong = {problem.path.partition(".")[0].partition("[")[0] for problem in problems}
        kept = {"id": "", **{key: value for key, value in data.items() if key not in wrong}}
        entry, _ = build(CaseEntry, msgspec.json.encode({**kept, "id": kept["id"] or "?"}), "")
        if entry is None:
            return _check_alone(evaluators or kept.get("evaluators"))
        _, _, further = self._make(replace(entry, evaluators=evaluators) if evaluators is not None else entry)
        # What is missing may be just what was misspelt.
        said = " ".join([*wrong, *(problem.message for problem in problems)])
        return [problem for problem in further if not (problem.about == "whole" and _explained(problem, said))]

    def _make(
        self, entry: CaseEntry, files: frozenset[str] | None = None
    ) -> tuple[Case | None, tuple[Checked, ...], list[Problem]]:
        problems: list[Problem] = []
        values = {**self._defaults.vars, **entry.vars} if self._defaults.vars else entry.vars
        filler = Filler(self._root, self._folder, values, files)
        asked = self._messages(entry, "input_messages", filler, problems)
        golden = self._messages(entry, "expected_messages", filler, problems)
        if not asked and not problems:
            problems.append(Problem("", f"case {entry.id!r} asks nothing: add `input`", "whole"))
        if isinstance(entry.skip, str) and entry.skip.strip().lower() in NOT_A_REASON:
            problems.append(Problem("skip", f"expected true, false, or a reason in words; got {entry.skip!r}"))
        checks = self._checks(entry, golden, problems)
        problems += filler.problems
        if problems:
            return None, (), problems
        case = Case(
            id=str(entry.id),
            input_messages=asked or (),
            expected_messages=golden,
            vars=values,
            tags=(*self._defaults.tags, *entry.tags),
            threshold=self._defaults.threshold if entry.threshold is None else entry.threshold,
            metadata=entry.metadata,
        )
        return case, checks, []

    def _messages(
        self, entry: CaseEntry, name: str, filler: Filler, problems: list[Problem]
    ) -> tuple[Message, ...] | None:
        short = LISTS[name]
        long_form, short_form = getattr(entry, name), getattr(entry, short)
        if long_form is not UNSET and short_form is not UNSET:
            problems.append(Problem(short, f"{short!r} is another word for {name!r}; give one of them", "key"))
            return None
        written = short if long_form is UNSET else name
        data = short_form if long_form is UNSET else long_form
        if data is UNSET:
            return None
        try:
            if name == "input_messages":
                messages = check_messages(data, written)
                return tuple([filler.fill(message, _content(written, data, at)) for at, message in enumerate(messages)])
            messages = check_messages(data, written, "assistant") if isinstance(data, (str, dict)) else ()
            return check_expected_messages(messages or data, written)
        except SpecError as error:
            problems += error.problems
            return None

    def _checks(
        self, entry: CaseEntry, golden: tuple[Message, ...] | None, problems: list[Problem]
    ) -> tuple[Checked, ...]:
        has_calls = any(message.tool_calls for message in golden or () if message.role == "assistant")
        try:
            own = check_evaluators(entry.evaluators) if entry.evaluators else []
            if own and self._judges is not None:
                problems += self._judges.check(own, "evaluators")
            names = {_name(checked) for checked in own} & self._default_names if own else ()
            checks = [checked for checked in self._default_checks if not names or _name(checked) not in names] + own
            if has_calls or any(checked.evaluator.type == "expected_messages" for checked in every_check(checks)):
                checks = with_expected_messages(checks, golden)
            nothing = not can_fail(checks)
        except SpecError as error:
            nothing = not has_calls and not self._default_checks and _check_nothing(entry.evaluators, error.problems)
            problems += error.problems
            checks = []
        if nothing:
            problems.append(Problem("", f"case {entry.id!r} {NOTHING_CHECKED}", "whole"))
        return tuple(checks)

    def _checked(
        self, entry: CaseEntry, case: Case, checks: tuple[Checked, ...], index: int, place: Place | None
    ) -> CheckedCase:
        return CheckedCase(
            case=case,
            checks=checks,
            index=index,
            repeat=entry.repeat or self._defaults.repeat or 1,
            skip=entry.skip,
            only=entry.only,
            place=place,
            warnings=tuple([warning for checked in checks for warning in checked.warnings]),
        )


def case_text(data: Any, path: str) -> tuple[bytes | None, list[Problem]]:
    """A case of plain data as JSON text."""
    if not isinstance(data, Mapping):
        return None, [Problem(path, f"expected a mapping with an `id` and an `input`, got {shown(data)}")]
    return as_json(dict(data), path)


def _explained(problem: Problem, said: str) -> bool:
    """Whether a case asks or checks nothing only because of what was said already."""
    return "input" in said if "asks nothing" in problem.message else "evaluators" in said or "expected" in said


def _check_alone(configs: Any) -> list[Problem]:
    """What is wrong with the evaluators of a case that cannot be built for other reasons."""
    if not isinstance(configs, list):
        return []
    try:
        check_evaluators(configs)
    except SpecError as error:
        return list(error.problems)
    return []


def _check_nothing(configs: list[Any], problems: Sequence[Problem]) -> bool:
    """Whether nothing would be checked even if all that is wrong were left out."""
    places = [f"evaluators[{index}]" for index in range(len(configs))]
    return not any(
        checks_anything(config, [problem for problem in problems if problem.path.startswith(place)], place)
        for config, place in zip(configs, places, strict=True)
    )


def _name(checked: Checked) -> str | None:
    name: str | None = getattr(checked.evaluator, "name", None)
    return name


def _content(path: str, data: Any, index: int) -> str:
    if isinstance(data, str):
        return path
    return f"{path}.content" if isinstance(data, dict) else f"{path}[{index}].content"


def _renamed(text: bytes) -> bytes:
    """The same with camelCase field names of the contract in snake_case."""
    data = msgspec.json.decode(text)
    if not isinstance(data, dict) or CAMEL.keys().isdisjoint(data):
        return text
    # Where both spellings are given, the odd one stays and is refused: neither may silently win.
    names = {key: name for key, name in CAMEL.items() if name not in data}
    return msgspec.json.encode({names.get(key, key): value for key, value in data.items()})
