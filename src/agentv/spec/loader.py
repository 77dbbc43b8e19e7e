"""Load evals from files, folders and Python data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from agentv.errors import Place, Problem, SpecError
from agentv.evals import CheckedCase, ConfiguredEvaluator, Eval, Limits, Target
from agentv.spec.cases import CaseReader, case_text
from agentv.spec.dataset import SearchPaths, open_dataset, validate_dataset
from agentv.spec.discovery import SUFFIXES, find_evals
from agentv.spec.file_format import EvalEntry
from agentv.spec.project import (
    Project,
    check_defaults,
    display,
    find_project,
    load_project,
    merge_checks,
    merge_defaults,
    readable,
)
from agentv.spec.targets import JudgeNames, check_targets, judge_name, select_targets, without_judge
from agentv.spec.validation import CaseCounts, IdRegistry, as_json, as_warning, build, duplicate_id, shown
from agentv.spec.yaml import SourceFile

if TYPE_CHECKING:
    from agentv.spec.dataset import Dataset


def default_id(path: Path, root: Path) -> str:
    """The name of an eval's file, seen from the project's root."""
    name = path.resolve()
    name = name.relative_to(root) if name.is_relative_to(root) else Path(name.name)
    return _stem(readable(name.as_posix()))


def disambiguate(evals: list[Eval]) -> list[Eval]:
    """Evals without a `name` whose files are called the same, in two folders, are called by their whole paths."""
    names = Counter(each.id for each in evals)
    return [
        replace(each, id=_stem(Path(each.file).as_posix()))
        if each.file and names[each.id] > 1 and each.id == _stem(Path(each.file).name)
        else each
        for each in evals
    ]


def same_names(evals: list[Eval]) -> list[Problem]:
    """Two evals of one name could not be told apart in the results."""
    first: dict[str, Eval] = {}
    problems = []
    for each in evals:
        other = first.setdefault(each.id, each)
        if other is not each:
            message = f"the eval's name {each.id!r} is also that of {other.file}; give one of them another `name`"
            problems.append(Problem("", message, "whole", Place(each.file or "", 1)))
    return problems


def _stem(name: str) -> str:
    suffix = next((suffix for suffix in (*SUFFIXES, ".yaml", ".yml") if name.endswith(suffix)), "")
    return name.removesuffix(suffix)


CASE_LISTS = ("cases", "evalcases", "tests")
HINTS = {
    "evaluators": "those of every case belong below `defaults`: `defaults: {evaluators: [...]}`",
    "provider": "a target has it: `targets: [{name: my-agent, provider: ...}]`",
    "repeat": "it belongs below `defaults`: `defaults: {repeat: 3}`",
    "threshold": "it belongs below `defaults`: `defaults: {threshold: 0.8}`",
    "vars": "they belong below `defaults`: `defaults: {vars: {...}}`",
}
"""Keys that people write one level too high."""


class TargetSelection(NamedTuple):
    """Which targets the caller wants, whatever the files say."""

    names: tuple[str, ...]
    lone: Target | None
    judge: Target | str | None = None


class _Cases(NamedTuple):
    """All cases of an eval: those of the file, then those of its dataset."""

    listed: list[CheckedCase]
    dataset: Dataset | None = None

    def walk(self) -> Iterator[CheckedCase]:
        yield from self.listed
        if self.dataset is not None:
            yield from self.dataset


class ReiterableCases:
    """Cases that can be walked any number of times."""

    def __init__(self, cases: _Cases) -> None:
        self._cases = cases

    def __iter__(self) -> Iterator[CheckedCase]:
        return self._cases.walk()


class Loader:
    """Reads one eval."""

    def __init__(
        self, project: Project, source: SourceFile | None, folder: Path, choice: TargetSelection, data: Any = None
    ) -> None:
        self._project = project
        self._source = source
        self._folder = folder
        self._choice = choice
        self._data = data if source is None else source.data
        self._problems: list[Problem] = []

    def load(self, default_id: str) -> Eval:
        """The eval, or a `SpecError` with everything that is wrong with it."""
        data = self._data
        if not isinstance(data, dict):
            got = "an empty file" if data is None else shown(data)
            raise SpecError([Problem("", f"expected a mapping with `cases` and a target, got {got}", "whole")])
        text, problems = as_json({key: _shape(key, data[key]) for key in data}, "")
        entry, wrong = build(EvalEntry, text, "") if text else (None, problems)
        self._problems += [_hinted(problem) for problem in wrong]
        written = data.get("targets")
        own, wrong = check_targets(list(written) if isinstance(written, (list, tuple)) else [], self._source)
        checks, more = check_defaults(data)
        self._problems += [*wrong, *more]
        targets, unknown = self._targets(own)
        # A target that could not be read would only be missed a second time.
        self._problems += [] if wrong else unknown
        judges = self._judges(own, is_known=not wrong)
        self._problems += judges.check(checks, "defaults.evaluators")
        self._problems += self._project_judges(judges)
        defaults = merge_defaults(self._project.defaults, entry.defaults) if entry else self._project.defaults
        reader = CaseReader(
            defaults,
            merge_checks(self._project.checks, checks),
            root=str(self._project.root),
            folder=str(self._folder),
            judges=judges,
        )
        ids = IdRegistry()
        listed = self._listed(reader, ids)
        seen = CaseCounts()
        for case in listed:
            seen.add(case, next(name for name in CASE_LISTS if name in data))
        dataset = self._dataset(reader, len(listed))
        if dataset is not None:
            self._problems += validate_dataset(dataset, ids, seen)
        if self._problems:
            raise SpecError(self._problems)
        assert entry is not None  # noqa: S101 - without problems there is an entry
        targets = self._without(targets, judges)
        return Eval(
            id=entry.name or default_id,
            cases=ReiterableCases(_Cases(listed, dataset)),
            targets=targets,
            file=self._source.file if self._source else None,
            folder=str(self._folder),
            root=str(self._project.root),
            texts=self._texts(dataset),
            inputs=self._inputs(dataset, targets),
            limits=Limits(
                defaults.timeout_s,
                defaults.retries,
                defaults.max_concurrency,
                defaults.max_cost,
                defaults.max_tokens,
            ),
            prices=self._project.prices,
            judge=judges.default,
            judges=judges.used,
            store=self._project.store,
            persist=self._project.persist,
            is_settled=self._source is not None and not _searches(entry.dataset),
            count=seen.count,
            skipped=seen.skipped,
            repeats=seen.repeats,
            has_only=seen.only,
            warnings=(*self._warnings(dataset), *self._doubts(checks, seen)),
        )

    def _warnings(self, dataset: Dataset | None) -> tuple[Problem, ...]:
        own = self._source.warnings if self._source else ()
        files = dataset.files if dataset else ()
        return (*self._project.warnings, *own, *(warning for file in files for warning in file.warnings))

    def _doubts(self, checks: Sequence[ConfiguredEvaluator], seen: CaseCounts) -> list[Problem]:
        """What is allowed in a check and probably not meant, where it stands."""
        found = [*(as_warning(warning) for checked in checks for warning in checked.warnings), *seen.doubts]
        return [self._source.locate(problem) if self._source else problem for problem in found]

    def _inputs(self, dataset: Dataset | None, targets: Iterable[Target]) -> tuple[str, ...]:
        named = [target.settings.get("file") for target in targets]
        return (*self._texts(dataset), *(str(self._folder / name) for name in named if isinstance(name, str)))

    def _texts(self, dataset: Dataset | None) -> tuple[str, ...]:
        files = [self._project.file, self._source.path if self._source else None]
        files += [file.name.path for file in dataset.files] if dataset else []
        return tuple(str(file.resolve()) for file in files if file is not None)

    def _targets(self, own: list[Target]) -> tuple[tuple[Target, ...], list[Problem]]:
        if self._choice.lone is not None:
            return (self._choice.lone,), []
        names = self._data.get("target")
        written = names if isinstance(names, (str, list)) else None
        shared = self._project.targets
        if written is None and not self._choice.names:
            own, shared = without_judge(own, shared, self._judge)
        return select_targets(self._choice.names, written, own, shared)

    @property
    def _judge(self) -> str | None:
        """The name of the default judge: the caller's, else the eval's, else the project's."""
        return judge_name(self._choice.judge, self._data.get("judge"), self._project.judge)

    def _judges(self, own: list[Target], *, is_known: bool) -> JudgeNames:
        judges = JudgeNames([*self._project.targets, *own] if is_known else None, self._judge, self._choice.judge)
        self._problems += judges.problems
        return judges

    def _project_judges(self, judges: JudgeNames) -> list[Problem]:
        """What the evaluators of `agentv.yaml` lack in this eval; the place is in the other file."""
        found = judges.check(self._project.checks, "defaults.evaluators")
        where = f"in {display(self._project.file)}, " if self._project.file else ""
        return [Problem("", f"{where}{problem.path}: {problem.message}", "whole") for problem in found]

    def _without(self, targets: tuple[Target, ...], judges: JudgeNames) -> tuple[Target, ...]:
        """The targets to test; one that judges is tested only where somebody says so."""
        if self._choice.lone is not None or self._choice.names or self._data.get("target") is not None:
            return targets
        names = {target.name for target in judges.used}
        return tuple(target for target in targets if target.name not in names) or targets

    def _listed(self, reader: CaseReader, ids: IdRegistry) -> list[CheckedCase]:
        given = [name for name in CASE_LISTS if name in self._data]
        for name in given[1:]:
            self._problems.append(Problem(name, f"{name!r} is another word for 'cases'; give one of them", "key"))
        if not given:
            if self._data.get("dataset") is None:
                self._problems.append(Problem("", "no cases: add `cases` or `dataset`", "whole"))
            return []
        cases, name = self._data[given[0]], given[0]
        if not isinstance(cases, (list, tuple)):
            return []  # said where the whole is held against its class
        if not cases and self._data.get("dataset") is None:
            self._problems.append(Problem(name, "holds no case"))
        listed = []
        for index, data in enumerate(cases):
            case = self._case(reader, data, index, f"{name}[{index}]", ids)
            if case is not None:
                listed.append(case)
        return listed

    def _case(self, reader: CaseReader, data: Any, index: int, path: str, ids: IdRegistry) -> CheckedCase | None:
        objects = _objects(data)
        text, problems = case_text({**data, "evaluators": []} if objects else data, path)
        if text is None:
            self._problems += problems
            return None
        place = self._source.place(path) if self._source else None
        case, problems = reader.read(text, index, place, objects)
        self._problems += [problem._replace(path=_below(path, problem.path)) for problem in problems]
        if isinstance(data.get("id"), (str, int)) and (first := ids.add(str(data["id"]), place)) is not None:
            self._problems.append(Problem(f"{path}.id", duplicate_id(data["id"], first)))
        return case

    def _dataset(self, reader: CaseReader, first: int) -> Dataset | None:
        within = SearchPaths(self._project.root, self._folder)
        dataset, problems = open_dataset(self._data.get("dataset"), reader, first, within)
        self._problems += problems
        return dataset


def _searches(dataset: Any) -> bool:
    """Whether the names of a dataset stand for whatever files are there."""
    names = getattr(dataset, "files", dataset) or ()
    return any(set(name) & set("*?[") for name in ([names] if isinstance(names, str) else names))


def _shape(key: str, value: Any) -> Any:
    """What is needed to hold the whole against its class; cases, targets, evaluators are checked one by one."""
    if key == "defaults" and isinstance(value, Mapping) and isinstance(value.get("evaluators"), (list, tuple)):
        return {**value, "evaluators": []}
    return [] if key in (*CASE_LISTS, "targets") and isinstance(value, (list, tuple)) else value


def _objects(data: Any) -> list[Any] | None:
    """The evaluators of a case built in Python, when some are objects rather than words."""
    configs = data.get("evaluators") if isinstance(data, Mapping) else None
    if not isinstance(configs, (list, tuple)) or all(isinstance(config, Mapping) for config in configs):
        return None
    return list(configs)


def _hinted(problem: Problem) -> Problem:
    hint = HINTS.get(problem.path) if problem.about == "key" else None
    return problem._replace(message=f"unknown key {problem.path!r} here: {hint}") if hint else problem


def _below(path: str, rest: str) -> str:
    return f"{path}.{rest}" if rest else path


def load_evals(
    paths: Iterable[str | Path],
    targets: tuple[str, ...] = (),
    *,
    lone: Target | None = None,
    judge: Target | str | None = None,
) -> list[Eval]:
    """Every eval of these files and folders, or one `SpecError` with everything that is wrong in any of them.

    `targets` are chosen instead of those that the files choose, `lone` is one that no file knows; `judge` is asked
    where an evaluator names none.
    """
    evals: list[Eval] = []
    # What is wrong with a project is found with each of its evals, and told once.
    problems: dict[Problem, None] = {}
    project_of = cache(load_project)
    for path in find_evals(paths):
        try:
            evals.append(_load_file(path, TargetSelection(targets, lone, judge), project_of))
        except SpecError as error:
            problems |= dict.fromkeys(error.problems)
    evals = disambiguate(evals)
    problems |= dict.fromkeys(same_names(evals))
    if problems:
        raise SpecError(sorted(problems, key=_order))
    return evals


def load_projects(paths: Iterable[str | Path]) -> None:
    """Check project files, or raise one `SpecError` with everything that is wrong in any of them."""
    problems: list[Problem] = []
    for path in paths:
        try:
            load_project(Path(path))
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)


def _load_file(path: Path, choice: TargetSelection, project_of: Any) -> Eval:
    folder = path.resolve().parent
    found = find_project(folder)
    try:
        project: Project = project_of(found) if found else Project(folder)
        wrong: tuple[Problem, ...] = ()
    except SpecError as error:
        project, wrong = Project(folder), error.problems
    source = SourceFile(path, display(path))
    try:
        loaded = Loader(project, source, folder, choice).load(default_id(path, project.root))
    except SpecError as error:
        raise SpecError([*wrong, *[source.locate(problem) for problem in error.problems]]) from error
    if wrong:
        raise SpecError(list(wrong))
    return loaded


def load_data(
    data: Any, targets: tuple[str, ...] = (), *, lone: Target | None = None, judge: Target | str | None = None
) -> Eval:
    """An eval built in Python, in the same words as a file, as if it lay in the current folder."""
    here = Path.cwd()
    found = find_project(here)
    project = load_project(found) if found else Project(here)
    return Loader(project, None, here, TargetSelection(targets, lone, judge), data).load("eval")


def _order(problem: Problem) -> tuple[str, int, int]:
    place = problem.place
    return (place.file, place.line, place.column) if place else ("", 0, 0)
