"""Loader of evals from files, folders and Python data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from agentv.errors import Location, Problem, SpecError
from agentv.evals import CheckedCase, ConfiguredEvaluator, Eval, Limits, Target
from agentv.model.mutation import AcceptedMutants
from agentv.other_tools import top_level_hint
from agentv.spec.cases import NOTHING_ASKED, CaseReader, EvaluatorObjects, encode_case
from agentv.spec.dataset import SearchPaths, open_dataset, validate_dataset
from agentv.spec.discovery import SUFFIXES, find_evals
from agentv.spec.evaluators import CASE_NEVER_FAILS, NOTHING_CHECKED
from agentv.spec.file_format import EvalEntry
from agentv.spec.personas import check_personas, select_personas
from agentv.spec.project import (
    Project,
    check_defaults,
    display_path,
    find_foreign_project,
    find_project,
    load_project,
    merge_checks,
    merge_defaults,
    printable_name,
    with_personas,
)
from agentv.spec.targets import JudgeNames, check_targets, default_judge, select_targets, without_judge
from agentv.spec.tools import declared_tools, merge_tools
from agentv.spec.turns import LAST_ANSWER, last_answer_warnings
from agentv.spec.validation import CaseCounts, IdRegistry, as_warning, build, duplicate_id, short_repr, to_json
from agentv.spec.yaml import SourceFile

if TYPE_CHECKING:
    from agentv.model.request import Persona
    from agentv.spec.dataset import Dataset
    from agentv.spec.file_format import DefaultsEntry


def default_id(path: Path, root: Path) -> str:
    """Return the default id of an eval: its file name relative to the project root, without suffix."""
    name = path.resolve()
    name = name.relative_to(root) if name.is_relative_to(root) else Path(name.name)
    return _stem(printable_name(name.as_posix()))


def disambiguate(evals: list[Eval]) -> list[Eval]:
    """Use whole paths as ids of evals without a `name` whose files in different folders have the same name."""
    names = Counter(eval_.id for eval_ in evals)
    return [
        replace(eval_, id=_stem(Path(eval_.file).as_posix()))
        if eval_.file and names[eval_.id] > 1 and eval_.id == _stem(Path(eval_.file).name)
        else eval_
        for eval_ in evals
    ]


def find_duplicate_names(evals: list[Eval]) -> list[Problem]:
    """Return a problem for each eval whose name is used before, since their results would be ambiguous."""
    first: dict[str, Eval] = {}
    problems = []
    for eval_ in evals:
        other = first.setdefault(eval_.id, eval_)
        if other is not eval_:
            message = f"the eval's name {eval_.id!r} is also that of {other.file}; give one of them another `name`"
            problems.append(Problem("", message, "whole", Location(eval_.file or "", 1)))
    return problems


def _stem(name: str) -> str:
    suffix = next((suffix for suffix in (*SUFFIXES, ".yaml", ".yml") if name.endswith(suffix)), "")
    return name.removesuffix(suffix)


CASE_LISTS = ("cases", "evalcases", "tests", "scenarios")
TARGET_LISTS = ("targets", "connectors")
HINTS = {
    "evaluators": "those of every case belong below `defaults`: `defaults: {evaluators: [...]}`",
    "provider": "a target has it: `targets: [{name: my-agent, provider: ...}]`",
    "repeat": "it belongs below `defaults`: `defaults: {repeat: 3}`",
    "threshold": "it belongs below `defaults`: `defaults: {threshold: 0.8}`",
    "vars": "they belong below `defaults`: `defaults: {vars: {...}}`",
}
"""Hints for keys that are often written one level too high."""


class TargetSelection(Struct, frozen=True):
    """Targets and judge that the caller selects, overriding the files."""

    names: tuple[str, ...]
    lone: Target | None
    judge: Target | str | None = None
    policy: bool = False
    """`True` if an eval without cases is a policy: it then has one case, `POLICY`, for all sessions."""


class ReiterableCases:
    """All cases of an eval, those of the file and then those of the dataset; can be iterated any number of times."""

    def __init__(self, listed: list[CheckedCase], dataset: Dataset | None) -> None:
        self._listed = listed
        self._dataset = dataset

    def __iter__(self) -> Iterator[CheckedCase]:
        yield from self._listed
        if self._dataset is not None:
            yield from self._dataset


class Loader:
    """Loads one eval."""

    def __init__(
        self, project: Project, source: SourceFile | None, folder: Path, selection: TargetSelection, data: Any = None
    ) -> None:
        self._project = project
        self._source = source
        self._folder = folder
        self._selection = selection
        self._data = data if source is None else source.data
        self._problems: list[Problem] = []

    def load(self, default_id: str) -> Eval:
        """Return the eval, or raise `SpecError` with all problems."""
        data = self._data
        if not isinstance(data, dict):
            got = "an empty file" if data is None else short_repr(data)
            raise SpecError([Problem("", f"expected a mapping with `cases` and a target, got {got}", "whole")])
        entry = self._build_entry(data)
        own, is_valid = self._own_targets(data)
        checks, problems = check_defaults(data)
        self._problems += problems
        targets, unknown = self._targets(own)
        # An invalid target would only be reported a second time as unknown.
        self._problems += unknown if is_valid else []
        judges = self._judges(own, is_known=is_valid)
        self._problems += judges.check(checks, "defaults.evaluators")
        self._problems += self._project_judges(judges)
        defaults = merge_defaults(self._project.defaults, entry.defaults) if entry else self._project.defaults
        reader = CaseReader(
            defaults,
            merge_checks(self._project.checks, checks),
            root=str(self._project.root),
            folder=str(self._folder),
            judges=judges,
            personas=self._personas(data, defaults),
        )
        ids = IdRegistry()
        listed = self._listed(reader, ids)
        counts = CaseCounts()
        for case in listed:
            counts.add(case, next((name for name in CASE_LISTS if name in data), "cases"))
        dataset = self._dataset(reader, len(listed))
        if dataset is not None:
            self._problems += validate_dataset(dataset, ids, counts)
        if self._problems:
            raise SpecError(without_consequences(self._problems))
        assert entry is not None  # noqa: S101 - otherwise there are problems
        targets = self._without(targets, judges, reader.user_models)
        tools, _ = declared_tools(entry.tools)
        return Eval(
            id=entry.name or default_id,
            cases=ReiterableCases(listed, dataset),
            targets=targets,
            file=self._source.file if self._source else None,
            folder=str(self._folder),
            root=str(self._project.root),
            texts=self._texts(dataset),
            inputs=self._inputs(dataset, targets),
            limits=_limits(defaults),
            prices=self._project.prices,
            judge=judges.default,
            judges=judges.used,
            store=self._project.store,
            executor=self._project.executor,
            persist=self._project.persist,
            is_settled=self._is_settled(entry),
            count=counts.count,
            skipped=counts.skipped,
            variants=counts.variants,
            repeats=counts.repeats,
            has_only=counts.only,
            personas=tuple(reader.used_personas.values()),
            has_conversations=reader.has_conversations,
            user_models=judges.find(reader.user_models),
            tools=merge_tools(self._project.tools, tools),
            accepted=tuple([AcceptedMutants(**asdict(each)) for each in entry.mutate.accept]),
            warnings=(*self._warnings(dataset), *self._evaluator_warnings(checks, counts, defaults.threshold, reader)),
        )

    def _is_settled(self, entry: EvalEntry) -> bool:
        return self._source is not None and not _has_glob(entry.dataset) and not self._project.persona_files

    def _build_entry(self, data: dict[str, Any]) -> EvalEntry | None:
        text, problems = to_json({key: _without_lists(key, data[key]) for key in data}, "")
        entry, problems = build(EvalEntry, text, "") if text else (None, problems)
        self._problems += [_with_hint(problem) for problem in problems]
        self._problems += [] if entry is None else declared_tools(entry.tools)[1]
        return entry

    def _own_targets(self, data: dict[str, Any]) -> tuple[list[Target], bool]:
        """Return the targets of this file, and False if some of them are invalid."""
        name = next((name for name in TARGET_LISTS if name in data), TARGET_LISTS[0])
        if all(name in data for name in TARGET_LISTS):
            self._problems.append(Problem("connectors", "'connectors' is another word for 'targets'; give one", "key"))
        configs = data.get(name)
        listed = list(configs) if isinstance(configs, (list, tuple)) else []
        targets, problems = check_targets(listed, self._source, name)
        self._problems += problems
        return targets, not problems

    def _personas(self, data: dict[str, Any], defaults: DefaultsEntry) -> dict[str, Persona]:
        """Return the personas of the project and of this file by id; those of the file take precedence."""
        own, problems = check_personas(data.get("personas"))
        personas = {persona.id: persona for persona in (*self._project.personas, *own)}
        if not problems:
            _, problems = select_personas(defaults.persona, personas, "defaults.persona")
        self._problems += problems
        return personas

    def _warnings(self, dataset: Dataset | None) -> tuple[Problem, ...]:
        own = [*(self._source.warnings if self._source else ()), *self._other_words()]
        files = dataset.files if dataset else ()
        return (*self._project.warnings, *own, *(warning for file in files for warning in file.warnings))

    def _other_words(self) -> list[Problem]:
        """Return hints about lists under the names of another tool."""
        words = {"scenarios": "cases", "connectors": "targets"}
        hints = [
            Problem(name, f"`{name}` is read as `{ours}`, which is its name here", "key")
            for name, ours in words.items()
            if name in self._data
        ]
        return [self._source.locate(hint) if self._source else hint for hint in hints]

    def _evaluator_warnings(
        self, checks: Sequence[ConfiguredEvaluator], counts: CaseCounts, threshold: float | None, reader: CaseReader
    ) -> list[Problem]:
        """Return the warnings of evaluators, with their locations."""
        warnings = [*(as_warning(warning) for checked in checks for warning in checked.warnings), *counts.warnings]
        if threshold == 0 and not any(checked.evaluator.required for checked in checks):
            warnings.append(Problem("defaults.threshold", CASE_NEVER_FAILS))
        shared = [checked for checked in checks if reader.has_conversations and any(last_answer_warnings(checked, ""))]
        names = [checked.evaluator.name or checked.evaluator.type for checked in shared]
        warnings += [Problem("defaults.evaluators", f"{name!r} {LAST_ANSWER}") for name in names]
        return [self._source.locate(warning) if self._source else warning for warning in warnings]

    def _inputs(self, dataset: Dataset | None, targets: Iterable[Target]) -> tuple[str, ...]:
        named = [(target.folder or self._folder, target.settings.get("file")) for target in targets]
        return (*self._texts(dataset), *(str(Path(folder, name)) for folder, name in named if isinstance(name, str)))

    def _texts(self, dataset: Dataset | None) -> tuple[str, ...]:
        files = [self._project.file, self._source.path if self._source else None, *self._project.persona_files]
        files += [file.name.path for file in dataset.files] if dataset else []
        return tuple(str(file.resolve()) for file in files if file is not None)

    def _targets(self, own: list[Target]) -> tuple[tuple[Target, ...], list[Problem]]:
        if self._selection.lone is not None:
            return (self._selection.lone,), []
        names = self._data.get("target")
        own_names = names if isinstance(names, (str, list)) else None
        shared = self._project.targets
        if own_names is None and not self._selection.names:
            own, shared = without_judge(own, shared, self._judge)
        return select_targets(self._selection.names, own_names, own, shared)

    @property
    def _judge(self) -> str | None:
        """The name of the default judge: the caller's, else the eval's, else the project's."""
        return default_judge(self._selection.judge, self._data.get("judge"), self._project.judge)

    def _judges(self, own: list[Target], *, is_known: bool) -> JudgeNames:
        judges = JudgeNames([*self._project.targets, *own] if is_known else None, self._judge, self._selection.judge)
        self._problems += judges.problems
        return judges

    def _project_judges(self, judges: JudgeNames) -> list[Problem]:
        """Return the problems with judges of the evaluators in `agentv.yaml`; they have no location in this file."""
        problems = judges.check(self._project.checks, "defaults.evaluators")
        where = f"in {display_path(self._project.file)}, " if self._project.file else ""
        return [Problem("", f"{where}{problem.path}: {problem.message}", "whole") for problem in problems]

    def _without(
        self, targets: tuple[Target, ...], judges: JudgeNames, user_models: Iterable[str]
    ) -> tuple[Target, ...]:
        """Return the targets to test, without judges and user models unless they were selected."""
        if self._selection.lone is not None or self._selection.names or self._data.get("target") is not None:
            return targets
        names = {*[target.name for target in judges.used], *user_models}
        return tuple(target for target in targets if target.name not in names) or targets

    def _listed(self, reader: CaseReader, ids: IdRegistry) -> list[CheckedCase]:
        names = [name for name in CASE_LISTS if name in self._data]
        for name in names[1:]:
            self._problems.append(Problem(name, f"{name!r} is another word for 'cases'; give one of them", "key"))
        if self._selection.policy and not self._data.get("dataset") and not (names and self._data[names[0]]):
            return self._policy(reader, ids)
        if not names:
            if self._data.get("dataset") is None:
                self._problems.append(Problem("", NO_CASES, "whole"))
            return []
        cases, name = self._data[names[0]], names[0]
        if not isinstance(cases, (list, tuple)):
            return []  # reported by the validation of the whole file
        if not cases and self._data.get("dataset") is None:
            self._problems.append(Problem(name, "the list is empty: add a case"))
        listed = []
        for index, data in enumerate(cases):
            case = self._case(reader, data, index, f"{name}[{index}]", ids)
            if case is not None:
                listed.append(case)
        return listed

    def _policy(self, reader: CaseReader, ids: IdRegistry) -> list[CheckedCase]:
        """Return the case of an eval without cases, whose evaluators apply to every session."""
        if not reader.has_checks:
            if not self._problems:  # otherwise there are some, and they are invalid
                self._problems.append(Problem("", NO_POLICY, "whole"))
            return []
        case = self._case(reader, {"id": POLICY, "input": POLICY}, 0, "cases[0]", ids)
        return [] if case is None else [case]

    def _case(self, reader: CaseReader, data: Any, index: int, path: str, ids: IdRegistry) -> CheckedCase | None:
        plain, objects = EvaluatorObjects.take_from(data)
        text, problems = encode_case(plain, path)
        if text is None:
            self._problems += problems
            return None
        location = self._source.location(path) if self._source else None
        case, problems = reader.read(text, index, location, objects)
        self._problems += [problem._replace(path=_join(path, problem.path)) for problem in problems]
        if isinstance(data.get("id"), (str, int)) and (first := ids.add(str(data["id"]), location)) is not None:
            self._problems.append(Problem(f"{path}.id", duplicate_id(data["id"], first)))
        return case

    def _dataset(self, reader: CaseReader, first: int) -> Dataset | None:
        within = SearchPaths(self._project.root, self._folder)
        dataset, problems = open_dataset(self._data.get("dataset"), reader, first, within)
        self._problems += problems
        return dataset


def _limits(defaults: DefaultsEntry) -> Limits:
    return Limits(
        defaults.timeout_s, defaults.retries, defaults.max_concurrency, defaults.max_cost, defaults.max_tokens
    )


def _has_glob(dataset: Any) -> bool:
    """Return whether the files of a dataset are names by a glob."""
    names = getattr(dataset, "files", dataset) or ()
    return any(set(name) & set("*?[") for name in ([names] if isinstance(names, str) else names))


def _without_lists(key: str, value: Any) -> Any:
    """Return a value for the validation of the whole file, without lists whose items are checked separately."""
    if key == "defaults" and isinstance(value, Mapping) and isinstance(value.get("evaluators"), (list, tuple)):
        return {**value, "evaluators": []}
    return [] if key in (*CASE_LISTS, *TARGET_LISTS, "personas") and isinstance(value, (list, tuple)) else value


NO_CASES = "no cases: add `cases` or `dataset`"
NO_POLICY = "nothing to check: add evaluators for every session below `defaults`, or `cases` with the ids of sessions"
POLICY = "*"
"""Id of the case that an eval without cases has when it is a policy for stored sessions."""
NO_TARGET = "no target to test"
UNDEFINED = "is not defined: add it to `targets`"


def without_consequences(problems: Sequence[Problem], *, of_project: bool = False) -> list[Problem]:
    """Return the problems without those that follow from others, such as `no cases` after a misspelt `cases`.

    With `of_project`, the project file has problems, so that its targets and defaults are missing.
    """
    above = [problem for problem in problems if "[" not in problem.path and problem.about == "key"]
    meant = " ".join(f"{problem.path} {problem.message}" for problem in above)
    dropped: list[str] = []
    if "evaluators" in meant or of_project or any(each.path.startswith("defaults.evaluators") for each in problems):
        dropped.append(NOTHING_CHECKED)
    if any(problem.path == "prompts" for problem in above):
        dropped.append(NOTHING_ASKED)
    if "'cases'" in meant or "'dataset'" in meant:
        dropped.append(NO_CASES)
    if "'targets'" in meant or of_project:
        dropped += [NO_TARGET, UNDEFINED]
    kept = [problem for problem in problems if not any(words in problem.message for words in dropped)]
    return kept if kept or of_project else list(problems)


def _with_hint(problem: Problem) -> Problem:
    hint = HINTS.get(problem.path) or top_level_hint(problem.path) if problem.about == "key" else None
    return problem._replace(message=f"unknown key {problem.path!r} here: {hint}") if hint else problem


def _join(path: str, rest: str) -> str:
    return f"{path}.{rest}" if rest else path


def load_evals(
    paths: Iterable[str | Path],
    targets: tuple[str, ...] = (),
    *,
    lone: Target | None = None,
    judge: Target | str | None = None,
    policy: bool = False,
) -> list[Eval]:
    """Load the evals of these files and folders, or raise one `SpecError` with all problems of all of them.

    `targets` override those that the files select, `lone` is a target that is in no file; `judge` is the judge of
    evaluators that name none. With `policy`, an eval without cases is one for all stored sessions.
    """
    evals: list[Eval] = []
    # Problems of a project are found with each of its evals, and reported once.
    problems: dict[Problem, None] = {}
    load_cached_project = cache(load_project)
    for path in find_evals(paths):
        try:
            evals.append(_load_file(path, TargetSelection(targets, lone, judge, policy), load_cached_project))
        except SpecError as error:
            problems |= dict.fromkeys(error.problems)
    evals = disambiguate(evals)
    problems |= dict.fromkeys(find_duplicate_names(evals))
    if problems:
        raise SpecError(sorted(problems, key=_location_key))
    return evals


def load_projects(paths: Iterable[str | Path]) -> None:
    """Check project files, or raise one `SpecError` with all problems of all of them."""
    problems: list[Problem] = []
    for path in paths:
        try:
            load_project(Path(path))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)


def _load_file(path: Path, selection: TargetSelection, load_cached_project: Any) -> Eval:
    folder, owner = path.resolve().parent, path.lstat().st_uid
    project_file = find_project(folder, owner)
    foreign = find_foreign_project(folder, owner)
    try:
        project: Project = load_cached_project(project_file) if project_file else with_personas(folder)
        if foreign is not None:
            project = replace(project, warnings=(*project.warnings, _foreign_problem(foreign)))
        project_problems: tuple[Problem, ...] = ()
    except SpecError as error:
        project, project_problems = Project(folder), error.problems
    source = SourceFile(path, display_path(path))
    try:
        loaded = Loader(project, source, folder, selection).load(default_id(path, project.root))
    except SpecError as error:
        own = without_consequences(error.problems, of_project=bool(project_problems))
        notes = [] if foreign is None else [_foreign_problem(foreign)]
        raise SpecError([*notes, *project_problems, *[source.locate(problem) for problem in own]]) from error
    if project_problems:
        raise SpecError(list(project_problems))
    return loaded


def _foreign_problem(path: Path) -> Problem:
    """Return the warning that a project file is not used."""
    about = f"{display_path(path)} belongs to another user and is not used"
    return Problem("", f"{about}: add --trust-project if you trust it", "whole")


def load_data(
    data: Any, targets: tuple[str, ...] = (), *, lone: Target | None = None, judge: Target | str | None = None
) -> Eval:
    """Load an eval from Python data with the keys of a file, as if it were in the current folder."""
    here = Path.cwd()
    project_file = find_project(here)
    project = load_project(project_file) if project_file else with_personas(here)
    return Loader(project, None, here, TargetSelection(targets, lone, judge), data).load("eval")


def _location_key(problem: Problem) -> tuple[str, int, int]:
    location = problem.location
    return (location.file, location.line, location.column) if location else ("", 0, 0)
