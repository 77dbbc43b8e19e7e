"""`agentv.yaml`: found upwards from an eval, and shared by all evals below its folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from agentv.errors import Problem, SpecError
from agentv.spec.evaluators import check_evaluators
from agentv.spec.file_format import DefaultsEntry, ProjectEntry
from agentv.spec.targets import check_targets, unknown
from agentv.spec.validation import as_warning, build, shown
from agentv.spec.yaml import SourceFile

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.evals import ConfiguredEvaluator, Target
    from agentv.model.response import Price
    from agentv.model.stored import Persist

NAME = "agentv.yaml"


class Project(NamedTuple):
    """What an eval inherits."""

    root: Path
    targets: list[Target] = []
    defaults: DefaultsEntry = DefaultsEntry()
    checks: list[ConfiguredEvaluator] = []
    warnings: tuple[Problem, ...] = ()
    file: Path | None = None
    store: str | None = None
    persist: Persist | None = None
    prices: dict[str, Price] = {}
    judge: str | None = None


def find_project(folder: Path) -> Path | None:
    """The nearest `agentv.yaml` in this folder or above."""
    return next((parent / NAME for parent in (folder, *folder.parents) if (parent / NAME).is_file()), None)


def store_setting(path: Path) -> str | None:
    """Where a project keeps its runs, whatever else is right or wrong with its file."""
    data = SourceFile(path, display(path)).data
    setting = data.get("store") if isinstance(data, dict) else None
    return setting if isinstance(setting, str) else None


def load_project(path: Path) -> Project:
    """The project of this file, or a `SpecError` with everything that is wrong with it."""
    source = SourceFile(path, display(path))
    path = path.resolve()
    data = {} if source.data is None else source.data
    if not isinstance(data, dict):
        problem = Problem("", f"expected a mapping with `targets` or `defaults`, got {shown(data)}", "whole")
        raise SpecError([source.locate(problem)])
    entry, problems = build(ProjectEntry, msgspec.json.encode(data), "")
    written = data.get("targets")
    targets, wrong = check_targets(written if isinstance(written, list) else [], source)
    checks, more = check_defaults(data)
    problems = [*problems, *wrong, *more]
    if entry is not None and entry.judge is not None and not wrong:
        known = {target.name: target for target in targets}
        problems += [] if entry.judge in known else [Problem("judge", unknown(entry.judge, known))]
    if problems or entry is None:
        raise SpecError([source.locate(problem) for problem in problems])
    return Project(
        path.parent,
        targets,
        entry.defaults,
        checks,
        (*source.warnings, *(source.locate(as_warning(warning)) for check in checks for warning in check.warnings)),
        path,
        store=entry.store,
        persist=entry.persist,
        prices=entry.prices,
        judge=entry.judge,
    )


def check_defaults(data: dict[str, object]) -> tuple[list[ConfiguredEvaluator], list[Problem]]:
    """The evaluators of `defaults`, and what is wrong with them."""
    defaults = data.get("defaults")
    configs = defaults.get("evaluators") if isinstance(defaults, dict) else None
    if not isinstance(configs, (list, tuple)):  # anything else is said where the whole is held against its class
        return [], []
    try:
        return check_evaluators(list(configs), "defaults.evaluators"), []
    except SpecError as error:
        return [], list(error.problems)


def merge_defaults(shared: DefaultsEntry, own: DefaultsEntry) -> DefaultsEntry:
    """What holds for an eval: its own words first."""
    return DefaultsEntry(
        evaluators=[*shared.evaluators, *own.evaluators],
        repeat=own.repeat or shared.repeat,
        threshold=shared.threshold if own.threshold is None else own.threshold,
        vars={**shared.vars, **own.vars},
        tags=[*shared.tags, *own.tags],
        timeout_s=own.timeout_s or shared.timeout_s,
        retries=shared.retries if own.retries is None else own.retries,
        max_concurrency=own.max_concurrency or shared.max_concurrency,
        max_cost=own.max_cost or shared.max_cost,
        max_tokens=own.max_tokens or shared.max_tokens,
    )


def merge_checks(shared: list[ConfiguredEvaluator], own: list[ConfiguredEvaluator]) -> list[ConfiguredEvaluator]:
    """Both, but for those of `shared` whose name comes again."""
    names = {name for checked in own if (name := getattr(checked.evaluator, "name", None))}
    return [checked for checked in shared if getattr(checked.evaluator, "name", None) not in names] + own


def display(path: Path) -> str:
    """The path as the user would type it from here, in letters that can be written down."""
    try:
        shorter = os.path.relpath(path)
    except ValueError:  # another drive
        return readable(str(path))
    return readable(str(path) if shorter.startswith(f"..{os.sep}..") else shorter)


def readable(name: str) -> str:
    """A file's name; bytes in it that are no UTF-8, which neither a store nor a file of results takes, are shown."""
    return name if name.isascii() else name.encode(errors="surrogateescape").decode(errors="backslashreplace")
