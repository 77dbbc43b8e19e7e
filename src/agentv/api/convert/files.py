"""Files that a configuration of another tool names with `file://`."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentv.api.convert.base import UntranslatableError
from agentv.api.convert.source import SourceDocument
from agentv.errors import FormatError

if TYPE_CHECKING:
    from agentv.api.convert.source import Place

PREFIX = "file://"
SCRIPTS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".py", ".rb", ".go")
MAX_FILE = 64 * 1024 * 1024


def is_file(value: Any) -> bool:
    """Return whether a value names a file."""
    return isinstance(value, str) and value.startswith(PREFIX)


def is_reachable(path: Path, folder: Path) -> bool:
    """Return whether a file is below a folder, its repository or the working folder: others are not read."""
    base, resolved = folder.resolve(), path.resolve()
    repository = next((parent for parent in (base, *base.parents) if (parent / ".git").exists()), base)
    return any(resolved.is_relative_to(root) for root in (base, repository, Path.cwd()))


def find_file(name: str, folder: Path) -> Path:
    """Return the path of a file named with or without `file://`; raise `UntranslatableError`."""
    plain = name.removeprefix(PREFIX)
    path = folder / plain
    if "\0" in plain or not path.is_file():
        msg = f"the file {plain!r} does not exist"
        raise UntranslatableError(msg)
    if not is_reachable(path, folder):
        raise UntranslatableError(outside(plain))
    return path


def outside(name: str) -> str:
    """Return why a file is not read that a path with `..`, an absolute path or a link leads to."""
    return f"the file {name!r} lies outside of the repository and of the working folder"


def find_files(name: str, folder: Path) -> list[Path]:
    """Return the files that a name or a glob stands for, in their order; raise `UntranslatableError`."""
    name = name.removeprefix(PREFIX)
    path = folder / name
    if "\0" not in name and path.is_file():
        return [find_file(name, folder)]
    if any(letter in name for letter in "*?["):
        try:
            found = sorted(each for each in folder.glob(name) if each.is_file())
        except (ValueError, NotImplementedError) as error:
            msg = f"the pattern {name!r} cannot be used: {error}"
            raise UntranslatableError(msg) from error
        if any(not is_reachable(each, folder) for each in found):
            raise UntranslatableError(outside(name))
        if found:
            return found
    msg = f"no file matches {name!r}"
    raise UntranslatableError(msg)


def read_text(path: Path) -> str:
    """Return the text of a file; raise `UntranslatableError`."""
    try:
        if path.stat().st_size > MAX_FILE:
            msg = f"the file {path.name!r} is larger than {MAX_FILE // 1024**2} MB"
            raise UntranslatableError(msg)
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        msg = f"the file {path.name!r} cannot be read: {reason}"
        raise UntranslatableError(msg) from error


def read_structured(path: Path) -> Any:
    """Return the data of a YAML or JSON file; raise `UntranslatableError`."""
    try:
        return SourceDocument(path, path.name).data
    except FormatError as error:
        raise UntranslatableError(str(error)) from error


def load_value(value: Any, place: Place) -> Any:
    """Return a value, or the content of the file that it names; raise `UntranslatableError`."""
    if not is_file(value):
        return value
    suffix = Path(value.partition("#")[0]).suffix.lower()
    if suffix.partition(":")[0] in SCRIPTS:
        msg = f"its value is made by the program {value.removeprefix(PREFIX)!r}"
        raise UntranslatableError(msg)
    if suffix not in {".json", ".yaml", ".yml", ".txt"}:
        msg = f"its value is in {value.removeprefix(PREFIX)!r}, and promptfoo reads only JSON, YAML and .txt there"
        raise UntranslatableError(msg)
    path = find_file(value, place.document.folder)
    return read_text(path).strip() if suffix == ".txt" else read_structured(path)


def read_rows(path: Path, delimiter: str = ",") -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a table with their line numbers; raise `UntranslatableError`."""
    reader = csv.reader(io.StringIO(read_text(path), newline=""), delimiter=delimiter)
    rows: list[tuple[int, dict[str, str]]] = []
    try:
        names = [name.strip() for name in next(reader, [])]
        line = reader.line_num + 1
        for cells in reader:
            if any(cell.strip() for cell in cells):
                filled = [*cells, *[""] * (len(names) - len(cells))]
                rows.append((line, dict(zip(names, filled, strict=False))))
            line = reader.line_num + 1
    except csv.Error as error:
        msg = f"{path.name}:{reader.line_num}: {error}"
        raise UntranslatableError(msg) from error
    return rows


def read_json_lines(path: Path) -> list[tuple[int, Any]]:
    """Return the values of a JSONL file with their line numbers; raise `UntranslatableError`."""
    values: list[tuple[int, Any]] = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip():
            try:
                values.append((number, json.loads(line)))
            except ValueError as error:
                msg = f"{path.name}:{number}: not JSON: {error}"
                raise UntranslatableError(msg) from error
    return values
