"""The project file `agentv.yaml`: found in a folder above the eval, and shared by all evals below it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from agentv.errors import Problem, SpecError
from agentv.spec.discovery import SUFFIXES, TRUSTS_ALL
from agentv.spec.evaluators import check_evaluators
from agentv.spec.file_format import DefaultsEntry, ProjectEntry
from agentv.spec.personas import check_personas, find_persona_files, load_persona_files
from agentv.spec.targets import check_targets, unknown_target
from agentv.spec.tools import declared_tools
from agentv.spec.validation import as_warning, build, short_repr
from agentv.spec.yaml import SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agentv.evals import ConfiguredEvaluator, Target
    from agentv.model.request import Persona
    from agentv.model.response import Price
    from agentv.model.stored import Persist
    from agentv.model.tool_coverage import DeclaredTool

PROJECT_FILE = "agentv.yaml"
ADMINISTRATOR = 0
"""User id of root."""


class Project(msgspec.Struct, frozen=True):
    """The project that an eval belongs to, with its shared settings."""

    root: Path
    targets: list[Target] = []
    defaults: DefaultsEntry = DefaultsEntry()
    checks: list[ConfiguredEvaluator] = []
    warnings: tuple[Problem, ...] = ()
    file: Path | None = None
    store: str | None = None
    executor: str | None = None
    persist: Persist | None = None
    prices: dict[str, Price] = {}
    judge: str | None = None
    personas: list[Persona] = []
    """Personas of the project file and of the folder `personas`."""
    persona_files: tuple[Path, ...] = ()
    tools: tuple[DeclaredTool, ...] = ()


def with_personas(folder: Path) -> Project:
    """Return the project of a folder without a project file, with the personas of its folder `personas`."""
    files = find_persona_files(folder)
    personas = load_persona_files([(path, display_path(path)) for path in files])
    return Project(folder, personas=personas, persona_files=tuple(files))


def find_project(folder: Path, owner: int | None = None) -> Path | None:
    """Return the nearest `agentv.yaml` in this folder or above that does not belong to another user.

    `owner` is the owner of the eval, by default of the folder: files of the same owner are used.
    """
    return next((file for file in _project_files(folder) if not _is_foreign(file, folder, owner)), None)


def find_foreign_project(folder: Path, owner: int | None = None) -> Path | None:
    """Return the nearest `agentv.yaml` if it is not used because it belongs to another user."""
    nearest = next(_project_files(folder), None)
    return nearest if nearest is not None and _is_foreign(nearest, folder, owner) else None


def _project_files(folder: Path) -> Iterator[Path]:
    files = (parent / PROJECT_FILE for parent in (folder, *folder.parents))
    return (file for file in files if file.is_file())


def _is_foreign(file: Path, folder: Path, owner: int | None) -> bool:
    """Return whether a project file, or its folder, belongs to a user who is neither this one nor the administrator."""
    if TRUSTS_ALL.get() or not hasattr(os, "getuid"):
        return False
    trusted = {os.getuid(), ADMINISTRATOR, folder.stat().st_uid if owner is None else owner}
    return not {file.stat().st_uid, file.parent.stat().st_uid} <= trusted


def evals_here(folder: Path) -> str | None:
    """Return the path that a command without one stands for: the project of this folder, or a folder of evals."""
    file = find_project(folder)
    if file is not None:
        return os.path.relpath(file.parent, folder)
    has_evals = any(path.name.endswith(SUFFIXES) and path.is_file() for path in folder.iterdir())
    return "." if has_evals else None


def store_setting(path: Path) -> str | None:
    """Return the `store` setting of a project file, whose other settings may be invalid."""
    data = SourceFile(path, display_path(path)).data
    setting = data.get("store") if isinstance(data, dict) else None
    return setting if isinstance(setting, str) else None


def load_project(path: Path) -> Project:
    """Load a project file, or raise `SpecError` with all problems."""
    source = SourceFile(path, display_path(path))
    path = path.resolve()
    data = {} if source.data is None else source.data
    if not isinstance(data, dict):
        problem = Problem("", f"expected a mapping with `targets` or `defaults`, got {short_repr(data)}", "whole")
        raise SpecError([source.locate(problem)])
    entry, problems = build(ProjectEntry, msgspec.json.encode(data), "")
    configs = data.get("targets")
    targets, target_problems = check_targets(configs if isinstance(configs, list) else [], source)
    checks, evaluator_problems = check_defaults(data)
    own, persona_problems = check_personas(data.get("personas"))
    tools, tool_problems = declared_tools(() if entry is None else entry.tools)
    problems = [*problems, *target_problems, *evaluator_problems, *persona_problems, *tool_problems]
    if entry is not None and entry.judge is not None and not target_problems:
        known = {target.name: target for target in targets}
        problems += [] if entry.judge in known else [Problem("judge", unknown_target(entry.judge, known))]
    if problems or entry is None:
        raise SpecError([source.locate(problem) for problem in problems])
    shared = with_personas(path.parent)
    return Project(
        path.parent,
        [replace(target, folder=str(path.parent)) for target in targets],
        entry.defaults,
        checks,
        (*source.warnings, *(source.locate(as_warning(warning)) for check in checks for warning in check.warnings)),
        path,
        store=entry.store,
        executor=entry.executor,
        persist=entry.persist,
        prices=entry.prices,
        judge=entry.judge,
        personas=[*shared.personas, *own],
        persona_files=shared.persona_files,
        tools=tools,
    )


def check_defaults(data: dict[str, object]) -> tuple[list[ConfiguredEvaluator], list[Problem]]:
    """Return the evaluators of `defaults`, and their problems."""
    defaults = data.get("defaults")
    configs = defaults.get("evaluators") if isinstance(defaults, dict) else None
    if not isinstance(configs, (list, tuple)):  # reported by the validation of the whole file
        return [], []
    try:
        return check_evaluators(list(configs), "defaults.evaluators"), []
    except SpecError as error:
        return [], list(error.problems)


def merge_defaults(shared: DefaultsEntry, own: DefaultsEntry) -> DefaultsEntry:
    """Return the defaults of an eval: its own settings override those of the project."""
    return DefaultsEntry(
        evaluators=[*shared.evaluators, *own.evaluators],
        repeat=own.repeat or shared.repeat,
        threshold=shared.threshold if own.threshold is None else own.threshold,
        vars={**shared.vars, **own.vars},
        persona=shared.persona if own.persona is None else own.persona,
        tags=[*shared.tags, *own.tags],
        timeout_s=own.timeout_s or shared.timeout_s,
        retries=shared.retries if own.retries is None else own.retries,
        max_concurrency=own.max_concurrency or shared.max_concurrency,
        max_cost=own.max_cost or shared.max_cost,
        max_tokens=own.max_tokens or shared.max_tokens,
    )


def merge_checks(shared: list[ConfiguredEvaluator], own: list[ConfiguredEvaluator]) -> list[ConfiguredEvaluator]:
    """Return both lists, without evaluators of `shared` whose name is used again in `own`."""
    names = {name for checked in own if (name := checked.evaluator.name)}
    return [checked for checked in shared if checked.evaluator.name not in names] + own


def display_path(path: Path) -> str:
    """Return a path relative to the current folder if it is near, printable."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return printable_name(str(path))
    return printable_name(str(path) if relative.startswith(f"..{os.sep}..") else relative)


def printable_name(name: str) -> str:
    """Return a file name with bytes that are not UTF-8 escaped, since stores and result files reject them."""
    return name if name.isascii() else name.encode(errors="surrogateescape").decode(errors="backslashreplace")
