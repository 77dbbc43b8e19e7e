"""Find and open the run store of a project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from agentv.errors import StoreError
from agentv.registry import find_store, store_schemes
from agentv.spec.discovery import find_evals
from agentv.spec.environment import substitute
from agentv.spec.project import find_project, store_setting

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.evals import Eval
    from agentv.protocols import Store
    from agentv.protocols.stores import StoreKind

OFF = "off"
FOLDER = ".agentv"
"""Folder of the default store."""
FILE_SCHEME = "file"
"""Scheme of the kind of store that a path stands for."""
EXTRAS = {"postgresql": "postgres"}
"""Extras that install the library of a kind of store, where they have another name than its scheme."""
MAX_NAMED = 5
"""Number of stores that a message names."""


class StoreLocation(Struct, frozen=True):
    """Location of a run store."""

    scheme: str
    """Name of its kind in the registry."""
    address: str
    """Path of a file, or address with a password: only the `name` of the open store is for messages."""

    @property
    def path(self) -> Path | None:
        """Its file; `None` if it is on a server."""
        return Path(self.address) if self.scheme == FILE_SCHEME else None

    @property
    def may_exist(self) -> bool:
        """`False` if it is a file that does not exist."""
        return self.path is None or self.path.is_file()


def parse_location(setting: str | Path) -> StoreLocation:
    """Return the location that a path or an address stands for."""
    scheme, separator, _ = str(setting).partition("://")
    if not separator or not scheme.isalnum():
        return StoreLocation(FILE_SCHEME, str(setting))
    scheme = scheme.lower()
    if scheme not in store_schemes():
        known = ", ".join(f"{name}://" for name in store_schemes())
        msg = f"there is no store {scheme}://; a store is a file, or an address that begins with {known}"
        raise StoreError(msg)
    return StoreLocation(scheme, str(setting))


def store_path(evals: Sequence[Eval]) -> StoreLocation | None:
    """Return the store of the project of these evals; `None` when it is `off`."""
    return project_store(evals[0].root, evals[0].store)


def project_store(root: str | Path, setting: str | None) -> StoreLocation | None:
    """Return the store of the project in this folder, with this `store` setting; `None` when it is `off`."""
    return None if setting == OFF else check_place(Path(root), setting)


def check_place(root: Path, setting: str | None) -> StoreLocation:
    """Return the store that a project has; raise `StoreError` if it, or a link to it, leads out of the project."""
    if setting is not None and (location := parse_location(_with_variables(setting))).path is None:
        return location
    path = _default_store(root) if setting is None else root / setting
    remedy = "name it with --store if you trust it, or use --no-store"
    for part in (path.parent, path):
        if part.name in (FOLDER, path.name) and part.is_symlink():
            msg = f"{part} is a link to {part.readlink()}, which a project may not choose: {remedy}"
            raise StoreError(msg)
    if setting is not None and not path.resolve().is_relative_to(root.resolve()):
        msg = f"the project in {root} keeps its runs outside of itself, in {path}: {remedy}"
        raise StoreError(msg)
    return StoreLocation(FILE_SCHEME, str(path))


def _with_variables(setting: str) -> str:
    """Return the `store` setting of a project with `${NAME}` replaced, such as the password of a server."""
    missing: list[str] = []
    resolved: str = substitute(setting, os.environ, missing)
    if missing:
        msg = f"`store` of the project needs the environment variable {missing[0]}, which is not set"
        raise StoreError(msg)
    return resolved


def _default_store(folder: str | Path) -> Path:
    from agentv.stores.sqlite.connection import default_path  # noqa: PLC0415 - sqlite3 is loaded only if a store is used

    return default_path(folder)


def unwritten_folder(evals: Sequence[Eval]) -> Path:
    """Return the folder of a project for results that its store could not take."""
    return Path(evals[0].root) / FOLDER / "unwritten"


def open_location(location: StoreLocation) -> Store:
    """Open a store; create or migrate it if necessary."""
    store: Store = find_kind(location).open(location.address)
    return store


def find_kind(location: StoreLocation) -> StoreKind:
    """Return the kind of a store; its library is loaded only if a store is used."""
    try:
        kind = find_store(location.scheme)
    except ImportError as error:
        fix = f"install it with `pip install 'agentv[{EXTRAS.get(location.scheme, location.scheme)}]'`"
        msg = f"a store {location.scheme}:// needs a library that cannot be loaded ({error}): {fix}"
        raise StoreError(msg) from error
    return cast("StoreKind", kind)


def address_secrets(location: StoreLocation | None) -> dict[str, str]:
    """Return the secrets of an address, by names for messages: an agent may print them."""
    if location is None or location.path is not None:
        return {}
    secrets = dict.fromkeys((*find_kind(location).secrets(location.address), os.environ.get("PGPASSWORD", "")))
    return {f"STORE_PASSWORD_{number}": secret for number, secret in enumerate(secrets, 1) if secret}


def locate_store(paths: Sequence[str | Path] = ()) -> StoreLocation:
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
    if own.may_exist:
        return own
    above = (path for path in map(_default_store, folder.parents) if path.is_file())
    found = _store_below(folder) or next(above, None)
    return own if found is None else StoreLocation(FILE_SCHEME, str(found))


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
    return open_existing_store(locate_store(paths))


def open_existing_store(location: StoreLocation) -> Store:
    """Open a store; raise `StoreError` if it does not exist."""
    if not location.may_exist:
        msg = f"no runs are kept here yet: {location.address} does not exist; `agentv eval` makes it"
        raise StoreError(msg)
    return open_location(location)


def named_store(setting: str | None) -> StoreLocation:
    """Return the store of `--store`, or else that of the project in the working directory."""
    return locate_store() if setting is None else parse_location(setting)
