"""Find and open the run store of a project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from agentv.errors import StoreError
from agentv.spec.discovery import find_evals
from agentv.spec.project import find_project, store_setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.evals import Eval
    from agentv.protocols import Store

OFF = "off"
FOLDER = ".agentv"
"""Folder of the default store."""
MAX_NAMED = 5
"""Number of stores that a message names."""


def store_path(evals: Sequence[Eval]) -> Path | None:
    """Return the store of the project of these evals; `None` when it is `off`."""
    return project_store(evals[0].root, evals[0].store)


def project_store(root: str | Path, setting: str | None) -> Path | None:
    """Return the store of the project in this folder, with this `store` setting; `None` when it is `off`."""
    return None if setting == OFF else check_place(Path(root), setting)


def check_place(root: Path, setting: str | None) -> Path:
    """Return the store that a project has; raise `StoreError` if it, or a link to it, leads out of the project."""
    path = _default_store(root) if setting is None else root / setting
    remedy = "name it with --store if you trust it, or use --no-store"
    for part in (path.parent, path):
        if part.name in (FOLDER, path.name) and part.is_symlink():
            msg = f"{part} is a link to {part.readlink()}, which a project may not choose: {remedy}"
            raise StoreError(msg)
    if setting is not None and not path.resolve().is_relative_to(root.resolve()):
        msg = f"the project in {root} keeps its runs outside of itself, in {path}: {remedy}"
        raise StoreError(msg)
    return path


def _default_store(folder: str | Path) -> Path:
    from agentv.stores.sqlite.connection import default_path  # noqa: PLC0415 - sqlite3 is loaded only if a store is used

    return default_path(folder)


def open_store_file(path: Path) -> Store:
    """Open the store in this file; create or migrate it if necessary."""
    from agentv.stores.sqlite import SqliteStore  # noqa: PLC0415 - sqlite3 is loaded only if a store is opened

    return SqliteStore(path)


def locate_store(paths: Sequence[str | Path] = ()) -> Path:
    """Return the store of the project of these paths, or of the working directory."""
    start = Path(paths[0]) if paths else Path.cwd()
    folder = start if start.is_dir() else start.parent
    project = find_project(folder.resolve())
    if project is not None:
        setting = store_setting(project)
        if setting == OFF:
            msg = f"{project} says `store: off`: no runs are kept"
            raise StoreError(msg)
        return check_place(project.parent, setting)
    if paths and start.is_dir():
        folder = find_evals([start])[0].parent
    folder = folder.resolve()
    own = check_place(folder, None)
    if own.is_file():
        return own
    return _store_below(folder) or next((path for path in map(_default_store, folder.parents) if path.is_file()), own)


def _store_below(folder: Path) -> Path | None:
    """Return the only store below a folder: without a project, each folder of evals has its own."""
    patterns = [str(_default_store(pattern)) for pattern in ("*", "*/*")]
    stores = [path for pattern in patterns for path in folder.glob(pattern) if path.is_file()]
    if len(stores) > 1:
        some = ", ".join(str(path) for path in stores[:MAX_NAMED])
        msg = f"there are several stores below this folder: {some}; name one with --store, or name the evals"
        raise StoreError(msg)
    return stores[0] if stores else None


def existing_store(paths: Sequence[str | Path] = ()) -> Store:
    """Open the store of these paths or of the working directory; raise `StoreError` if it does not exist."""
    path = locate_store(paths)
    if not path.is_file():
        msg = f"no runs are kept here yet: {path} does not exist; `agentv eval` makes it"
        raise StoreError(msg)
    return open_store_file(path)
