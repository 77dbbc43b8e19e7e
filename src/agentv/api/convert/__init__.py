"""`agentv convert-eval`: turn evals of other tools into eval files, and report everything that could not be kept."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agentv.api.convert import adk, agentv_npm, evalstudio, openai_evals, promptfoo
from agentv.api.convert.base import Conversion, Converter, slug
from agentv.api.convert.source import TEXT_SUFFIXES, SourceDocument
from agentv.errors import FormatError, OutputError
from agentv.spec.discovery import IGNORED_FOLDERS


class SourceFormat(NamedTuple):
    """A format that can be converted."""

    is_this: Any
    """Return whether the data of a document has this format."""
    convert: Converter


SOURCES: dict[str, SourceFormat] = {
    "evalstudio": SourceFormat(evalstudio.is_evalstudio, evalstudio.convert),
    "adk": SourceFormat(adk.is_evalset, adk.convert),
    "openai-evals": SourceFormat(openai_evals.is_openai_eval, openai_evals.convert),
    "agentv-npm": SourceFormat(agentv_npm.is_agentv, agentv_npm.convert),
    "promptfoo": SourceFormat(promptfoo.is_promptfoo, promptfoo.convert),
}
"""Formats by name, in the order in which they are tried."""
TOOLS = {
    "evalstudio": "EvalStudio",
    "adk": "Google ADK",
    "openai-evals": "OpenAI Evals",
    "agentv-npm": "AgentV, the npm package",
    "promptfoo": "promptfoo",
}
_GENERIC_STEMS = ("promptfooconfig", "suite", "dataset", "eval", "evals", "config", "evalstudio.config", "test")
_SUFFIXES = (".eval", ".EVAL", ".evalset", ".test", ".evals", "_evalset", ".promptfoo")
_LISTS = ("adk", "openai-evals", "evalstudio")
"""Formats whose documents may be lists."""
_WORKSPACE = "evalstudio.config.json"
_CANDIDATES = ("promptfooconfig", ".evalset.", ".test.json", _WORKSPACE)


class WrittenFile(NamedTuple):
    """A file of the output."""

    name: str
    """Path relative to the output folder."""
    content: bytes


def convert_paths(paths: Iterable[str], source: str | None = None) -> list[Conversion]:
    """Convert files and folders; raise `FormatError` for one that cannot be read or recognised."""
    conversions: list[Conversion] = []
    for name in paths:
        path = Path(name)
        files = [path] if path.is_file() else list(_find_sources(path, source))
        if not files:
            what = "does not exist" if not path.exists() else "holds no eval of a known tool"
            msg = f"{name}: {what}; known are {', '.join(SOURCES)}"
            raise FormatError(msg)
        root = path if path.is_dir() else path.parent
        conversions += [_convert_file(file, source, root) for file in files]
    _separate(conversions)
    return conversions


def _convert_file(path: Path, source: str | None, root: Path) -> Conversion:
    document = SourceDocument(path)
    name = source or detect(document)
    if name is None:
        known = ", ".join(SOURCES)
        msg = f"{path}: this is no eval of a known tool; say which it is with --from, one of {known}"
        raise FormatError(msg)
    data = document.data
    if not (isinstance(data, Mapping) or (name in _LISTS and SOURCES[name].is_this(data, path))):
        msg = f"{path}: this is no eval of {TOOLS[name]}"
        raise FormatError(msg)
    folder = path.parent.relative_to(root).as_posix()
    conversion = Conversion(document, TOOLS[name], eval_name(path), "" if folder == "." else folder)
    SOURCES[name].convert(conversion)
    conversion.finish()
    return conversion


def detect(document: SourceDocument) -> str | None:
    """Return the name of the format of a document, if it is known."""
    return next((name for name, format_ in SOURCES.items() if format_.is_this(document.data, document.path)), None)


def _find_sources(folder: Path, source: str | None) -> Iterator[Path]:
    """Yield the files in a folder that look like evals, by their names or, if asked for, by their content."""
    for parent, folders, names in os.walk(folder):
        skipped = {"projects", "data"} if _WORKSPACE in names else set()  # the workspace names its projects
        folders[:] = sorted(each for each in folders if each not in IGNORED_FOLDERS | skipped and each[0] != ".")
        for name in sorted(names):
            if not name.lower().endswith(TEXT_SUFFIXES):
                continue
            path = Path(parent, name)
            if any(part in name.lower() for part in _CANDIDATES) or _is_eval(path, source):
                yield path


def _is_eval(path: Path, source: str | None) -> bool:
    """Return whether a file with an ordinary name is an eval of a known tool, of the given one if it is given."""
    try:
        document = SourceDocument(path)
    except FormatError:
        return False
    if not isinstance(document.data, Mapping):
        return False
    found = detect(document)
    return found is not None and (source is None or found == source)


def eval_name(path: Path) -> str:
    """Return the name of the eval for a source file; one with a generic name is called like its folder."""
    stem = path.name
    for suffix in TEXT_SUFFIXES:
        stem = stem.removesuffix(suffix)
    for suffix in _SUFFIXES:
        stem = stem.removesuffix(suffix)
    if stem.lower() in _GENERIC_STEMS:
        stem = path.resolve().parent.name or stem
    else:
        stem = stem.removeprefix("promptfooconfig").lstrip(".-_") or stem
    return slug(stem) or "eval"


def _separate(conversions: list[Conversion]) -> None:
    """Give conversions names of their own, and folders of their own where their other files differ."""
    taken: set[str] = set()
    contents: dict[str, bytes] = {}
    for conversion in conversions:
        number, name = 1, conversion.name
        while f"{conversion.folder}/{conversion.name}" in taken:
            number += 1
            conversion.rename(f"{name}-{number}")
        taken.add(f"{conversion.folder}/{conversion.name}")
        files = {f"{conversion.folder}/{file}": content for file, content in conversion.files.items()}
        if any(contents.get(file, content) != content for file, content in files.items()):
            conversion.folder = f"{conversion.folder}/{conversion.name}".lstrip("/")
        else:
            contents |= files


def output_files(conversions: Iterable[Conversion]) -> list[WrittenFile]:
    """Return all files of the output."""
    files: dict[str, bytes] = {}
    for conversion in conversions:
        prefix = f"{conversion.folder}/" if conversion.folder else ""
        for eval_ in conversion.evals:
            files[prefix + eval_.file] = eval_.text().encode()
        for name, content in conversion.files.items():
            files[prefix + name] = content
    return [WrittenFile(name, content) for name, content in files.items()]


def write_files(files: Iterable[WrittenFile], out: Path, *, force: bool) -> None:
    """Write the output; raise `FormatError` before a file would be replaced by another one, unless `force` is set."""
    written = list(files)
    if not force:
        for name, content in written:
            path = out / name
            if path.exists() and path.read_bytes() != content:
                msg = f"{path} exists and differs; --force replaces it"
                raise FormatError(msg)
    for name, content in written:
        path = out / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise OutputError(str(path), error) from error
