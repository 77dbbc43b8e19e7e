"""Files that a configuration names, never outside of the project root, and imports of user code.

User code is named `package.module:name`, or `./checks.py:name` for a file in the folder of the eval or the project.
"""

from __future__ import annotations

import os
import re
import sys
from glob import escape
from hashlib import blake2b
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from itertools import islice, product
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agentv.errors import FormatError
from agentv.model.request import Scope
from agentv.suggestions import suggest

if TYPE_CHECKING:
    from types import CodeType, ModuleType


MAX_BYTES = 64 * 1024 * 1024
TRACE_PLACEHOLDERS = ("{id}", "{trace_ref}")
"""Placeholders of the identifier in a `trace_store`."""
TRACE_SUFFIXES = (".json", ".jsonl")
"""Suffixes that an identifier may lack in a folder of traces."""
PRIVATE_MODE = 0o600


def restrict_to_owner(file: int) -> None:
    """Let only its owner read and write an open file; on Windows, where a folder's rights count, change nothing."""
    if hasattr(os, "fchmod"):  # Windows has it since Python 3.13, for the read-only flag alone
        os.fchmod(file, PRIVATE_MODE)


def find_in_root(root: str | Path, name: str, folder: str | Path | None = None) -> Path:
    """Return the path of a file, relative to `folder`; raise `FormatError` if `..` or a link leads out of `root`."""
    base = Path(root).resolve()
    try:
        path = (Path(folder).resolve() / name if folder is not None else base / name).resolve()
        if not path.is_relative_to(base):
            msg = f"{name!r} lies outside {base}"
            raise FormatError(msg)
        if not path.is_file():
            msg = f"{name!r} is not a file below {base}"
            raise FormatError(msg)
    except (OSError, ValueError, RuntimeError) as error:
        if isinstance(error, FormatError):
            raise
        msg = f"cannot read {name!r}: {error}"
        raise FormatError(msg) from error
    return path


def read_in_root(root: str | Path, name: str, folder: str | Path | None = None) -> bytes:
    """Return the bytes of a file inside `root`; raise `FormatError` if it is larger than `MAX_BYTES`."""
    path = find_in_root(root, name, folder)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        msg = f"cannot read {name!r}: {error.strerror}"
        raise FormatError(msg) from error
    if len(data) > MAX_BYTES:
        msg = f"{name!r} is larger than {MAX_BYTES // 1024 // 1024} MiB"
        raise FormatError(msg)
    return data


class TraceFiles(Struct, frozen=True):
    """Folders in which a `trace_ref` is looked for."""

    folder: str | Path
    """The folder of the eval: a path is relative to it and never leads out of it."""
    root: str | Path
    """The folder of the project, which holds the trace store."""
    others: tuple[str | Path, ...] = ()
    """Further folders for a path that is not below the first one."""
    store: str | None = None
    """`trace_store` of the target: a folder, or a pattern with `{id}` in place of the identifier."""

    def read(self, name: str) -> bytes:
        """Return the content of the file that a `trace_ref` names, or raise `FormatError`."""
        path = None if self.store is None else self._find_in_store(name, self.store)
        if path is not None:
            return read_in_root(self.root, str(path))
        folders = dict.fromkeys((self.folder, *self.others))
        try:
            return read_in_root(next((folder for folder in folders if _has_file(folder, name)), self.folder), name)
        except FormatError as error:
            if self.store is not None:
                msg = f"{error}, and `trace_store` {self.store!r} has no file for it"
                raise FormatError(msg) from error
            if "/" in name or name.endswith(TRACE_SUFFIXES):
                raise
            msg = f"{error}; if it is an identifier, name the folder of the traces in `trace_store` of the target"
            raise FormatError(msg) from error

    def _find_in_store(self, name: str, store: str) -> Path | None:
        """Return the only file of the store with this identifier; `None` if there is none."""
        parts = name.replace("\\", "/").split("/")
        if "\0" in name or ".." in parts or not parts[0] or Path(name).is_absolute():
            return None
        pattern = store
        if not any(character in store for character in "{*"):
            pattern = f"{store.rstrip('/')}/{{id}}"
            suffixes: tuple[str, ...] = ("", *TRACE_SUFFIXES)
        elif not any(placeholder in store for placeholder in TRACE_PLACEHOLDERS):
            before, _, after = store.rpartition("*")
            pattern, suffixes = f"{before}{{id}}{after}", ("",)
        else:
            suffixes = ("",)
        for placeholder in TRACE_PLACEHOLDERS:
            pattern = pattern.replace(placeholder, escape(name))
        for base, suffix in product(dict.fromkeys(map(Path, (self.folder, *self.others, self.root))), suffixes):
            if path := self._match(base, pattern + suffix):
                return path
        return None

    def _match(self, base: Path, pattern: str) -> Path | None:
        root = Path(self.root).resolve()
        try:
            found = list(islice((path for path in base.resolve().glob(pattern) if path.is_file()), 2))
        except (OSError, ValueError, NotImplementedError, IndexError) as error:
            msg = f"`trace_store` {self.store!r} cannot be searched: {error}"
            raise FormatError(msg) from error
        if len(found) > 1:
            msg = f"`trace_store` {self.store!r} has several files for it: {found[0].name!r}, {found[1].name!r}"
            raise FormatError(msg)
        if found and not found[0].resolve().is_relative_to(root):
            msg = f"`trace_store` {self.store!r} lies outside {root}"
            raise FormatError(msg)
        return found[0].resolve() if found else None


def _has_file(root: str | Path, name: str) -> bool:
    try:
        find_in_root(root, name)
    except FormatError:
        return False
    return True


_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class _LoadedFile(Struct, frozen=True):
    """A Python file that was imported, with the version of the file."""

    version: tuple[int, int]
    """Modification time and size."""
    module: ModuleType


_loaded: dict[str, _LoadedFile] = {}
_roots: set[Path] = set()
"""Roots of projects that were added to the import path."""
_lock = RLock()
"""Held while a file is imported, so that threads that need the same file import it once."""


def is_file_name(module: str) -> bool:
    """Return whether this names a file and not a module."""
    return module.endswith(".py") or "/" in module or "\\" in module


def is_import_path(text: str) -> bool:
    """Return whether a text has the form `module:name` or `file.py:name`; nothing is imported."""
    module, colon, name = text.rpartition(":")
    return bool(colon and _NAME.fullmatch(name) and (is_file_name(module) or _NAME.fullmatch(module)))


def find_file(name: str, scope: Scope | None) -> Path:
    """Return a file of the folder in the scope, or else of the project's or the eval's; raise `FormatError` if none."""
    here = str(Path.cwd())
    scope = scope or Scope(root=here, folder=here)
    first_error: FormatError | None = None
    for folder in (scope.folder, None, *([scope.eval_folder] if scope.eval_folder else [])):
        try:
            return find_in_root(scope.root, name, folder)
        except FormatError as error:
            first_error = first_error or error
    assert first_error is not None  # noqa: S101 - two folders were searched
    raise first_error


def load_object(import_path: str, scope: Scope | None) -> Any:
    """Import an object named `module:name` or `file.py:name`; raise `FormatError` if it does not exist.

    Modules in the project's root can be imported, unless an installed one has the same name.
    """
    name, _, attribute = import_path.rpartition(":")
    root = Path.cwd() if scope is None else Path(scope.root).resolve()
    with _lock:
        _add_to_import_path(root)
        _roots.add(root)
    result: Any = _load_file(find_file(name, scope)) if is_file_name(name) else _load_module(name, attribute, root)
    for part in attribute.split("."):
        if not hasattr(result, part):
            public = [known for known in dir(result) if not known.startswith("_")]
            msg = f"{name!r} has no {part!r}{suggest(part, public)}"
            raise FormatError(msg)
        result = getattr(result, part)
    return result


def _load_module(name: str, attribute: str, root: Path) -> ModuleType:
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0] and error.name != name:
            raise  # the module exists, and one of its own imports is missing
        file = f"./{name.replace('.', '/')}.py:{attribute}"
        msg = f"there is no module {name!r} on the Python path; a file beside the eval is written {file!r}"
        raise FormatError(msg) from None
    place = Path(getattr(module, "__file__", None) or root)
    other = next((folder for folder in _roots if place.is_relative_to(folder) and folder not in root.parents), root)
    if other != root and not place.is_relative_to(root) and _has_module(root, name):
        msg = f"the module {name!r} of {other} is imported already, and {root} has another: name the file instead"
        raise FormatError(msg)
    return module


def _has_module(root: Path, name: str) -> bool:
    path = root.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


class _UncachedLoader(SourceFileLoader):
    """A loader without `.pyc` files, which are out of date if a file is edited twice within a second."""

    def get_code(self, fullname: str) -> CodeType:
        """Compile the file as it is now."""
        del fullname
        return self.source_to_code(self.get_data(self.path), self.path)


def _load_file(path: Path) -> ModuleType:
    with _lock:
        status = path.stat()
        version = (status.st_mtime_ns, status.st_size)
        known = _loaded.get(str(path))
        if known is not None and known.version == version:
            return known.module
        # A hash of the path, because two folders may each have a `checks.py`.
        name = f"agentv_file_{blake2b(str(path).encode(), digest_size=6).hexdigest()}_{path.stem}"
        loader = _UncachedLoader(name, str(path))
        spec = spec_from_loader(name, loader)
        assert spec is not None  # noqa: S101 - a loader is given
        module = module_from_spec(spec)
        before = sys.modules.get(name)
        sys.modules[name] = module  # pickle and dataclasses look up classes there
        _add_to_import_path(path.parent)
        try:
            loader.exec_module(module)
        except BaseException:
            if before is None:
                del sys.modules[name]
            else:
                sys.modules[name] = before
            raise
        _loaded[str(path)] = _LoadedFile(version, module)
        return module


def _add_to_import_path(folder: Path) -> None:
    """Let a file import the modules beside it; appended, so that they do not shadow installed modules."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
