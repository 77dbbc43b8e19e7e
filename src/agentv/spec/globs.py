"""Which files a dataset's names stand for: `*`, `?` and `**`, sorted, and only ever below the project's root."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from agentv.errors import FormatError
from agentv.files import find_below
from agentv.matching.glob import is_glob, name_match

if TYPE_CHECKING:
    from collections.abc import Iterator

ANY_FOLDERS = "**"


def find_files(root: Path, folder: Path, name: str) -> list[Path]:
    """The files of this name, or that fit this pattern, relative to `folder`; raises `FormatError`."""
    if not is_glob(name):
        return [find_below(root, name, folder)]
    start, parts = _split(root, folder, name)
    # Each is held against the root again: a link that fits may lead elsewhere.
    found = [find_below(root, path) for path in sorted(set(_matches(start, parts)))]
    if not found:
        msg = f"no file fits {name!r}"
        raise FormatError(msg)
    return list(dict.fromkeys(found))


def _split(root: Path, folder: Path, name: str) -> tuple[Path, list[str]]:
    """The folder at which a pattern begins, and its parts from there on."""
    parts = list(Path(name).parts)
    first = next(at for at, part in enumerate(parts) if is_glob(part))
    base = root.resolve()
    try:
        start = folder.resolve().joinpath(*parts[:first]).resolve()
    except (OSError, ValueError, RuntimeError) as error:
        msg = f"cannot read {name!r}: {error}"
        raise FormatError(msg) from error
    if not start.is_relative_to(base):
        msg = f"{name!r} lies outside {base}"
        raise FormatError(msg)
    rest = parts[first:]
    if ".." in rest:
        msg = f"`..` comes after a wildcard in {name!r}; write it before, or name the folders"
        raise FormatError(msg)
    # One after the other they mean the same as one, and cost more with each.
    return start, [part for at, part in enumerate(rest) if at == 0 or (part, rest[at - 1]) != (ANY_FOLDERS,) * 2]


def _matches(start: Path, parts: list[str]) -> Iterator[str]:
    # A stack of our own: folders may be deeper than Python lets functions call each other.
    todo = [(str(start), 0)]
    met = set(todo)
    while todo:
        folder, at = todo.pop()
        files, steps = _look(folder, parts[at], last=at == len(parts) - 1)
        yield from files
        new = {(path, at + step) for path, step in steps} - met
        met |= new
        todo += new


def _look(folder: str, part: str, *, last: bool) -> tuple[list[str], list[tuple[str, int]]]:
    """The files in a folder that fit the last part, and where to go on, how many parts further."""
    shown = [entry for entry in _entries(folder) if part.startswith(".") or not entry.name.startswith(".")]
    if part == ANY_FOLDERS:
        # A link to a folder above would never end.
        steps = [(entry.path, 0) for entry in shown if entry.is_dir(follow_symlinks=False)]
        return [entry.path for entry in shown if last and entry.is_file()], steps if last else [(folder, 1), *steps]
    fitting = [entry for entry in shown if name_match(part, entry.name)]
    if last:
        return [entry.path for entry in fitting if entry.is_file()], []
    return [], [(entry.path, 1) for entry in fitting if entry.is_dir()]


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:  # no folder, or none that may be read: nothing fits there
        return []
