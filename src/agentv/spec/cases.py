"""One case of an eval: its messages, turns, personas and evaluators."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from agentv.errors import Problem, SpecError
from agentv.evals import CheckedCase, ConfiguredEvaluator, iter_evaluators
from agentv.model.conversation import Message
from agentv.model.request import Case, OneTurn
from agentv.protocols import evaluated_part
from agentv.spec.evaluators import (
    CASE_NEVER_FAILS,
    NOTHING_CHECKED,
    can_fail,
    check_evaluators,
    has_expected_calls,
    with_expected_messages,
)
from agentv.spec.file_format import CaseEntry, DefaultsEntry
from agentv.spec.messages import FILE_PREFIX, VariableFiller, check_expected_field, check_messages
from agentv.spec.personas import select_personas
from agentv.spec.simulation import CheckedSimulation, check_simulation
from agentv.spec.turns import check_golden_path, check_turns, warn_of_last_answers
from agentv.spec.validation import NOT_JSON, TOO_DEEP, build, is_too_deep, short_repr, to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.errors import Location
    from agentv.model.request import Persona, Turn
    from agentv.spec.targets import JudgeNames


NOTHING_ASKED = "asks nothing: add `input`, or `turns` for a conversation"
NOT_A_REASON = {"", "y", "n", "yes", "no", "on", "off", "true", "false"}
"""Texts that other YAML parsers read as true or false; as a reason they would skip a case that should run."""
CAMEL_CASE = {"inputMessages": "input_messages", "expectedMessages": "expected_messages"}
MESSAGE_FIELDS = {"input_messages": "input", "expected_messages": "expected"}
"""Fields of messages, and their short names."""
NOT_WRITTEN = (UNSET,) * 5


class EvaluatorObjects(msgspec.Struct, frozen=True):
    """Evaluators of a case that were made in Python, which JSON cannot hold."""

    of_case: list[Any] | None
    """Evaluators of the case; `None` if all of them are configurations."""
    of_turns: dict[int, list[Any]]
    """Evaluators of turns by the index of the turn; without those that are configurations."""

    @classmethod
    def take_from(cls, data: Any) -> tuple[Any, EvaluatorObjects | None]:
        """Return the data of a case without evaluators that are objects, and these."""
        if not isinstance(data, Mapping):
            return data, None
        of_case = _objects_in(data)
        turns = data.get("turns")
        listed = list(enumerate(turns)) if isinstance(turns, (list, tuple)) else []
        of_turns = {index: objects for index, turn in listed if (objects := _objects_in(turn)) is not None}
        if of_case is None and not of_turns:
            return data, None
        changed = dict(data)
        if of_case is not None:
            changed["evaluators"] = []
        if of_turns:
            changed["turns"] = [{**turn, "evaluators": []} if index in of_turns else turn for index, turn in listed]
        return changed, cls(of_case, of_turns)


def _objects_in(data: Any) -> list[Any] | None:
    """Return the evaluators of a case or a turn if some are Python objects, otherwise `None`."""
    configs = data.get("evaluators") if isinstance(data, Mapping) else None
    if not isinstance(configs, (list, tuple)) or all(isinstance(config, Mapping) for config in configs):
        return None
    return list(configs)


class CaseReader:
    """Reads the cases of one eval."""

    def __init__(  # noqa: PLR0913 - constructed in one place
        self,
        defaults: DefaultsEntry,
        default_checks: list[ConfiguredEvaluator],
        *,
        root: str,
        folder: str,
        judges: JudgeNames | None = None,
        personas: Mapping[str, Persona] | None = None,
    ) -> None:
        self._defaults = defaults
        self._default_checks = default_checks
        self._default_names = {name for checked in default_checks if (name := checked.evaluator.name)}
        self._root = root
        self._folder = folder
        self._judges = judges
        self._personas = personas or {}
        self.used_personas: dict[str, Persona] = {}
        """Personas of all cases that were read, by id."""
        self.has_conversations = False
        """`True` if a case that was read is a conversation."""
        self.user_models: dict[str, None] = {}
        """Names of the targets of simulated users."""
        self._goals: dict[str, ConfiguredEvaluator | None] = {}

    @property
    def has_checks(self) -> bool:
        """`True` if there are evaluators for every case."""
        return bool(self._default_checks)

    def read(
        self,
        text: bytes,
        index: int,
        location: Location | None = None,
        objects: EvaluatorObjects | None = None,
        files: frozenset[str] | None = None,
    ) -> tuple[CheckedCase | None, list[Problem]]:
        """Build the case of this JSON; return it, or its problems with paths within the case.

        `objects` are the evaluators that were made in Python. With `files`, only the texts at these paths are filled.
        """
        if is_too_deep(text):
            return None, [Problem("", TOO_DEEP, "whole")]
        entry, problems = build(CaseEntry, text, "")
        if entry is None and problems[0].message.startswith(NOT_JSON):
            return None, problems
        if entry is None:
            text = _with_snake_case(text)
            entry, problems = build(CaseEntry, text, "")
        if entry is None:
            return None, [*problems, *self._find_more_problems(text, problems, objects)]
        if files is None and objects is None and (plain := self._read_plain(entry, index, location)) is not None:
            return plain, []
        cases, checks, problems = self._make(entry, files, objects)
        if problems or not cases:
            return None, problems
        warnings = [warning for checked in checks for warning in checked.warnings]
        if entry.threshold == 0 and not any(checked.evaluator.required for checked in checks):
            warnings.append(f"threshold: {CASE_NEVER_FAILS}")
        checked = CheckedCase(
            case=cases[0],
            checks=checks,
            index=index,
            repeat=entry.repeat or self._defaults.repeat or 1,
            skip=entry.skip,
            only=entry.only,
            location=location,
            warnings=tuple(warnings),
            goal=self._goals.pop(cases[0].id, None),
        )
        if len(cases) > 1:
            checked = replace(checked, variants=tuple([replace(checked, case=case) for case in cases]))
        return checked, []

    @cached_property
    def _plain_checks(self) -> tuple[ConfiguredEvaluator, ...] | None:
        """Evaluators of a case with an input and nothing else to check; `None` if they depend on the case."""
        checks = self._default_checks
        if not can_fail(checks) or self._defaults.persona is not None:
            return None
        return None if any(_is_golden(checked) for checked in iter_evaluators(checks)) else tuple(checks)

    @cached_property
    def _plain_warnings(self) -> tuple[str, ...]:
        return tuple([warning for checked in self._default_checks for warning in checked.warnings])

    def _read_plain(self, entry: CaseEntry, index: int, location: Location | None) -> CheckedCase | None:
        """Return a case that has one text as its input and the default evaluators; `None` if it has more than that.

        Most rows of a dataset are such cases, and each is read twice. `_make` returns the same for them.
        """
        text, checks = entry.input, self._plain_checks
        if checks is None or type(text) is not str or "{{" in text or text.startswith(FILE_PREFIX):
            return None
        if entry.evaluators or entry.skip or entry.persona is not None or entry.threshold == 0:
            return None
        others = (entry.input_messages, entry.expected, entry.expected_messages, entry.turns, entry.simulate)
        if others != NOT_WRITTEN:
            return None
        defaults = self._defaults
        return CheckedCase(
            case=Case(
                id=str(entry.id),
                input_messages=(Message(role="user", content=text),),
                vars={**defaults.vars, **entry.vars} if defaults.vars else entry.vars,
                tags=(*defaults.tags, *entry.tags),
                threshold=defaults.threshold if entry.threshold is None else entry.threshold,
                metadata=entry.metadata,
            ),
            checks=checks,
            index=index,
            repeat=entry.repeat or defaults.repeat or 1,
            only=entry.only,
            location=location,
            warnings=self._plain_warnings,
        )

    def _find_more_problems(
        self, text: bytes, problems: list[Problem], objects: EvaluatorObjects | None
    ) -> list[Problem]:
        """Return the other problems of a case that cannot be built, so that all are reported in one pass."""
        data = msgspec.json.decode(text)
        if not isinstance(data, dict):
            return []
        invalid_keys = {problem.path.partition(".")[0].partition("[")[0] for problem in problems}
        valid = {"id": "", **{key: value for key, value in data.items() if key not in invalid_keys}}
        entry, _ = build(CaseEntry, msgspec.json.encode({**valid, "id": valid["id"] or "?"}), "")
        if entry is None:
            return _check_evaluators_only(objects.of_case if objects else valid.get("evaluators"))
        _, _, more = self._make(entry, None, objects)
        # A missing field may be the one that was misspelt.
        messages = " ".join([*invalid_keys, *(problem.message for problem in problems)])
        return [problem for problem in more if not (problem.about == "whole" and _is_explained(problem, messages))]

    def _make(
        self, entry: CaseEntry, files: frozenset[str] | None = None, objects: EvaluatorObjects | None = None
    ) -> tuple[list[Case], tuple[ConfiguredEvaluator, ...], list[Problem]]:
        """Return the case once for each of its personas, and its evaluators; or its problems."""
        problems: list[Problem] = []
        try:
            expected = check_expected_field(entry)
        except SpecError as error:
            problems += error.problems
            expected = None
        personas: Sequence[Persona | None] = (None,)
        names = self._defaults.persona if entry.persona is None else entry.persona
        if names is not None:
            personas, unknown = select_personas(names, self._personas, "persona")
            self.used_personas |= {persona.id: persona for persona in personas if persona is not None}
            problems += unknown if entry.persona is not None else []  # the loader reports those of the defaults
        cases = []
        checks: dict[str, list[ConfiguredEvaluator]] = {}
        for persona in personas:
            case, checks, found = self._make_case(entry, persona, expected, files, objects)
            cases.append(case)
            problems += [problem for problem in found if problem not in problems]
        if isinstance(entry.skip, str) and entry.skip.strip().lower() in NOT_A_REASON:
            problems.append(Problem("skip", f"expected true, false, or a reason in words; got {entry.skip!r}"))
        all_checks = self._checks(entry, expected, checks, objects, problems)
        return ([], (), problems) if problems else (cases, all_checks, [])

    def _make_case(
        self,
        entry: CaseEntry,
        persona: Persona | None,
        expected: tuple[Message, ...] | None,
        files: frozenset[str] | None,
        objects: EvaluatorObjects | None,
    ) -> tuple[Case, dict[str, list[ConfiguredEvaluator]], list[Problem]]:
        """Return the case with one persona, the evaluators of its turns, and its problems."""
        problems: list[Problem] = []
        values = entry.vars
        if self._defaults.vars or persona is not None:
            values = {**self._defaults.vars, **(persona.vars if persona else {}), **entry.vars}
        filler = VariableFiller(self._root, self._folder, values, files)
        input_messages = self._input_messages(entry, filler, problems)
        turns: tuple[Turn, ...] | msgspec.UnsetType = UNSET
        simulated: tuple[str, dict[str, Any]] | None = None
        checks: dict[str, list[ConfiguredEvaluator]] = {}
        if entry.turns is not UNSET:
            self.has_conversations = True
            turns, checks, found, simulated = check_turns(entry.turns, filler, objects.of_turns if objects else None)
            problems += found
            if not found and entry.simulate is UNSET and simulated is None:
                problems += check_golden_path(expected, len(turns), _written_name(entry, "expected_messages"))
            if input_messages and input_messages[-1].role == "user":
                name = _written_name(entry, "input_messages")
                problems.append(Problem(name, "is the history before the first turn: it may not end with the user"))
        elif entry.simulate is not UNSET:
            self.has_conversations = True
        elif not input_messages and not problems:
            problems.append(Problem("", f"case {entry.id!r} {NOTHING_ASKED}", "whole"))
        simulation, goal, wrong = self._simulation(entry, simulated)
        problems += wrong
        if simulation is not None and input_messages and input_messages[-1].role == "user":
            name = _written_name(entry, "input_messages")
            problems.append(Problem(name, "is the history before the first turn: it may not end with the user"))
        case = Case(
            id=str(entry.id),
            input_messages=input_messages or (),
            expected_messages=expected,
            vars=values,
            tags=(*self._defaults.tags, *entry.tags),
            threshold=self._defaults.threshold if entry.threshold is None else entry.threshold,
            metadata=entry.metadata,
            turns=turns,
            persona=persona or UNSET,
            simulate=simulation or UNSET,
        )
        self._goals[case.id] = goal
        return case, checks, [*problems, *filler.problems]

    def _simulation(self, entry: CaseEntry, turn: tuple[str, dict[str, Any]] | None) -> CheckedSimulation:
        """Return the simulated user of a case, if it has one."""
        if entry.simulate is UNSET and turn is None:
            return CheckedSimulation(None)
        path, settings = turn or ("", None)
        data = None if entry.simulate is UNSET else entry.simulate
        checked = check_simulation(data, settings, path)
        simulation = checked.simulation
        if simulation is not None and simulation.target is not None and self._judges is not None:
            place = "simulate.target" if data and "target" in data else f"{path}.target"
            checked.problems.extend(self._judges.use(simulation.target, place))
            self.user_models[simulation.target] = None
        return checked

    def _input_messages(
        self, entry: CaseEntry, filler: VariableFiller, problems: list[Problem]
    ) -> tuple[Message, ...] | None:
        if entry.input_messages is not UNSET and entry.input is not UNSET:
            problems.append(Problem("input", "'input' is another word for 'input_messages'; give one of them", "key"))
            return None
        path = _written_name(entry, "input_messages")
        data = getattr(entry, path)
        if data is UNSET:
            return None
        try:
            messages = check_messages(data, path)
        except SpecError as error:
            problems += error.problems
            return None
        paths = [_content_path(path, data, index) for index in range(len(messages))]
        return tuple(map(filler.fill, messages, paths))

    def _checks(
        self,
        entry: CaseEntry,
        expected: tuple[Message, ...] | None,
        of_turns: Mapping[str, list[ConfiguredEvaluator]],
        objects: EvaluatorObjects | None,
        problems: list[Problem],
    ) -> tuple[ConfiguredEvaluator, ...]:
        configs = entry.evaluators if objects is None or objects.of_case is None else objects.of_case
        try:
            own = check_evaluators(configs) if configs else []
            if len(entry.turns or ()) > 1 or entry.simulate is not UNSET:
                own = warn_of_last_answers(own)
            if self._judges is not None:
                for path, listed in {"evaluators": own, **of_turns}.items():
                    problems += self._judges.check(listed, path)
            names = {checked.evaluator.name for checked in own} & self._default_names if own else ()
            kept = [item for item in self._default_checks if not names or item.evaluator.name not in names]
            checks = kept + own
            if has_expected_calls(expected) or any(_is_golden(checked) for checked in iter_evaluators(checks)):
                checks = with_expected_messages(checks, expected)
            problems += _check_turn_numbers(own, entry)
            checks += [checked for listed in of_turns.values() for checked in listed]
            is_empty = not can_fail(checks)
        except SpecError as error:
            is_empty = False  # what is wrong with them comes first
            problems += error.problems
            checks = []
        written = not (entry.expected is UNSET and entry.expected_messages is UNSET)
        # A case that is skipped measures nothing anyway; invalid expected messages are reported already.
        is_reported = (written and expected is None) or (entry.turns is not UNSET and bool(problems))
        if is_empty and not entry.skip and not is_reported:
            problems.append(Problem("", f"case {entry.id!r} {NOTHING_CHECKED}", "whole"))
        return tuple(checks)


def _written_name(entry: CaseEntry, name: str) -> str:
    """Return the name under which a case has its messages: this one, or the short one."""
    return name if getattr(entry, name) is not UNSET else MESSAGE_FIELDS[name]


def _is_golden(checked: ConfiguredEvaluator) -> bool:
    return checked.evaluator.type == "expected_messages"


def _check_turn_numbers(checks: Sequence[ConfiguredEvaluator], entry: CaseEntry) -> list[Problem]:
    """Return the problems of evaluators that look at a turn that the case does not have."""
    if entry.simulate is not UNSET or any("simulate" in turn for turn in entry.turns or () if isinstance(turn, dict)):
        return []  # the number of turns is not known
    turns = 1 if entry.turns is UNSET else len(entry.turns)
    problems = []
    for index, checked in enumerate(checks):
        over = evaluated_part(checked.evaluator)
        if isinstance(over, OneTurn) and over.turn > turns:
            message = f"there is no turn {over.turn}: the case has {turns} {'turn' if turns == 1 else 'turns'}"
            problems.append(Problem(f"evaluators[{index}].over.turn", message))
    return problems


def encode_case(data: Any, path: str) -> tuple[bytes | None, list[Problem]]:
    """Encode the data of a case as JSON, or return its problems."""
    if not isinstance(data, Mapping):
        return None, [Problem(path, f"expected a mapping with an `id` and an `input`, got {short_repr(data)}")]
    return to_json(dict(data), path)


def _is_explained(problem: Problem, messages: str) -> bool:
    """Return whether a missing input or evaluator follows from the problems in these messages."""
    if "asks nothing" in problem.message:
        return any(name in messages for name in ("input", "turns", "simulate"))
    return "evaluators" in messages or "expected" in messages


def _check_evaluators_only(configs: Any) -> list[Problem]:
    """Return the problems of the evaluators of a case that cannot be built."""
    if not isinstance(configs, list):
        return []
    try:
        check_evaluators(configs)
    except SpecError as error:
        return list(error.problems)
    return []


def _content_path(path: str, data: Any, index: int) -> str:
    if isinstance(data, str):
        return path
    return f"{path}.content" if isinstance(data, dict) else f"{path}[{index}].content"


def _with_snake_case(text: bytes) -> bytes:
    """Return the JSON of a case with camelCase names of messages in snake_case."""
    data = msgspec.json.decode(text)
    if not isinstance(data, dict) or CAMEL_CASE.keys().isdisjoint(data):
        return text
    # If both spellings are given, camelCase stays and is rejected, so that neither silently wins.
    names = {key: name for key, name in CAMEL_CASE.items() if name not in data}
    return msgspec.json.encode({names.get(key, key): value for key, value in data.items()})
