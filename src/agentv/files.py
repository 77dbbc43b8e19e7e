"""Files that a configuration names, never outside of the root, and imports of user code.

`package.module:name`, or `./checks.py:name` for a file in the eval's folder or the project's.
"""

from __future__ import annotations

import re
import sys
from hashlib import blake2b
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from agentv.errors import FormatError, suggest
from agentv.model.request import Scope

if TYPE_CHECKING:
    from types import CodeType, ModuleType


MAX_BYTES = 64 * 1024 * 1024


def find_below(root: str | Path, name: str, folder: str | Path | None = None) -> Path:
    """The file of this name, relative to `folder`; neither `..` nor a link may lead out of `root`."""
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


def read_below(root: str | Path, name: str, folder: str | Path | None = None) -> bytes:
    """The bytes of such a file, unless it is too large to be meant."""
    path = find_below(root, name, folder)
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


_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class _Loaded(NamedTuple):
    """A file as it was when it was run."""

    stamp: tuple[int, int]
    module: ModuleType


_files: dict[str, _Loaded] = {}
_lock = RLock()
"""Several may ask for the same file at once, and it is run once."""


def is_file(module: str) -> bool:
    """Whether this is a file's name rather than a module's."""
    return module.endswith(".py") or "/" in module or "\\" in module


def is_place(text: str) -> bool:
    """Whether this can be the place of something; nothing is looked for."""
    module, colon, name = text.rpartition(":")
    return bool(colon and _NAME.fullmatch(name) and (is_file(module) or _NAME.fullmatch(module)))


def find_file(name: str, scope: Scope | None) -> Path:
    """The file of this name in the eval's folder, else in the project's; `FormatError` when there is none."""
    here = str(Path.cwd())
    scope = scope or Scope(root=here, folder=here)
    try:
        return find_below(scope.root, name, scope.folder)
    except FormatError as error:
        try:
            return find_below(scope.root, name)
        except FormatError:
            raise error from None


def load_place(place: str, scope: Scope | None) -> Any:
    """Import what is named, which runs the module's own code the first time; `FormatError` when it is not there."""
    name, _, attribute = place.rpartition(":")
    module = _load_file(find_file(name, scope)) if is_file(name) else _load_module(name, attribute)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            public = [each for each in dir(found) if not each.startswith("_")]
            msg = f"{name!r} has no {part!r}{suggest(part, public)}"
            raise FormatError(msg)
        found = getattr(found, part)
    return found


def _load_module(name: str, attribute: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name.partition(".")[0] and error.name != name:
            raise  # found, and itself in want of something
        file = f"./{name.replace('.', '/')}.py:{attribute}"
        msg = f"there is no module {name!r} on the Python path; a file beside the eval is written {file!r}"
        raise FormatError(msg) from None


class _FromSource(SourceFileLoader):
    """Never a compiled file: one that was written in the same second as the last may be out of date."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of the file as it is now."""
        del fullname
        return self.source_to_code(self.get_data(self.path), self.path)


def _load_file(path: Path) -> ModuleType:
    with _lock:
        about = path.stat()
        stamp = (about.st_mtime_ns, about.st_size)
        known = _files.get(str(path))
        if known is not None and known.stamp == stamp:
            return known.module
        # Two folders may each have a `checks.py`.
        name = f"agentv_file_{blake2b(str(path).encode(), digest_size=6).hexdigest()}_{path.stem}"
        loader = _FromSource(name, str(path))
        spec = spec_from_loader(name, loader)
        assert spec is not None  # noqa: S101 - it is made of a loader
        module = module_from_spec(spec)
        before = sys.modules.get(name)
        sys.modules[name] = module  # where its own classes are looked for
        _find_neighbours(path)
        try:
            loader.exec_module(module)
        except BaseException:
            if before is None:
                del sys.modules[name]
            else:
                sys.modules[name] = before
            raise
        _files[str(path)] = _Loaded(stamp, module)
        return module


def _find_neighbours(path: Path) -> None:
    """Let a file import the modules beside it; last, so that none of them takes the place of an installed one."""
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)
