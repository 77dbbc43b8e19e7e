"""Files of traces: finding, opening and decompressing them, and reading them by lines or as one document."""

from __future__ import annotations

import gzip
import io
import os
import sys
import tempfile
import zlib
from functools import cached_property
from glob import glob, has_magic
from importlib import import_module
from pathlib import Path
from shutil import copyfileobj
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from agentv.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD_BYTES = 64 * 1024
"""Number of bytes that detection reads."""
MAX_DOCUMENT = 512 * 1024 * 1024
"""Size of the largest JSON document or line that is read."""
ADVICE = "write it as JSON Lines, with one trace, batch or session in each line (`jq -c '.[]' FILE > FILE.jsonl`)"
"""Advice about a document that is too large."""
GZIP, ZSTD, ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
STDIN = "-"
SUFFIXES = (".json", ".jsonl", ".ndjson", ".pb", ".bin", ".otlp", ".eval", ".gz", ".zst", ".log", ".txt", ".csv")
"""Suffixes of files in a folder that may hold traces; others are counted as ignored."""
READ_ERRORS = (OSError, EOFError, zlib.error)
"""Errors of a file that cannot be read or decompressed."""
_IGNORED = (".git", ".agentv", "node_modules", "__pycache__")
_NO_ZSTD = "it is compressed with zstd, which needs an extra package: pip install 'agentv[zstd]'"


class Line(NamedTuple):
    """One line of a file."""

    number: int
    """From 1."""
    data: bytes
    """Its content without the line end; empty if it is too long."""
    is_whole: bool = True
    """`False` if the file ended within the line, or it is longer than the limit."""


class TraceFile:
    """One file of traces, decompressed while it is read."""

    def __init__(self, name: str, path: Path | None, index: int = 0, stream: IO[bytes] | None = None) -> None:
        self.name = name
        self.index = index
        self._path = path
        self._stream = stream

    @property
    def stem(self) -> str:
        """Name of the file without folders and suffixes."""
        name = self._path.name if self._path else "stdin"
        for suffix in (".gz", ".zst", *SUFFIXES):
            name = name.removesuffix(suffix)
        return name or self.name

    @property
    def path(self) -> Path | None:
        """Path of the file; `None` for standard input."""
        return self._path

    @cached_property
    def head(self) -> bytes:
        """The first bytes, decompressed, for detection."""
        with self.open() as stream:
            return stream.read(HEAD_BYTES)

    def open(self) -> IO[bytes]:
        """Open the content; a compressed file is decompressed. Raise `FormatError` if a package is missing."""
        if self._stream is not None:
            raw: IO[bytes] = os.fdopen(os.dup(self._stream.fileno()), "rb")  # closing it must not close the copy
            raw.seek(0)
        else:
            assert self._path is not None  # noqa: S101 - one of them is there
            raw = self._path.open("rb")
        magic = raw.read(4)
        raw.seek(0)
        if magic.startswith(GZIP):
            return _ClosingGzip(raw)  # type: ignore[return-value]  # a binary stream
        return _open_zstd(raw) if magic == ZSTD else raw

    def close(self) -> None:
        """Remove the copy of a pipe, if there is one."""
        if self._stream is not None:
            self._stream.close()

    def lines(self) -> Iterator[Line]:
        """Yield the lines that are not blank; memory does not depend on the size of the file."""
        with self.open() as stream:
            number = 0
            while data := stream.readline(MAX_DOCUMENT + 1):
                number += 1
                if len(data) > MAX_DOCUMENT:
                    while (rest := stream.readline(HEAD_BYTES)) and not rest.endswith(b"\n"):
                        pass
                    yield Line(number, b"", is_whole=False)
                elif text := data.strip():
                    yield Line(number, text.removeprefix(b"\xef\xbb\xbf"), data.endswith(b"\n"))

    def document(self) -> bytes:
        """Return the whole content; raise `FormatError` if it is too large for one document."""
        with self.open() as stream:
            data = stream.read(MAX_DOCUMENT + 1)
        if len(data) > MAX_DOCUMENT:
            msg = f"one JSON document of more than {MAX_DOCUMENT // 1024 // 1024} MB is not read: {ADVICE}"
            raise FormatError(msg)
        return data.removeprefix(b"\xef\xbb\xbf")


class _ClosingGzip(gzip.GzipFile):
    """Gzip stream that closes the file below it."""

    def __init__(self, raw: IO[bytes]) -> None:
        super().__init__(fileobj=raw)
        self._raw = raw

    def close(self) -> None:
        """Close both."""
        super().close()
        self._raw.close()


def load_zstd() -> Any:
    """Return the module that decompresses zstd, or raise `FormatError` if the extra is not installed."""
    try:
        return import_module("zstandard")
    except ImportError:
        raise FormatError(_NO_ZSTD) from None


def _open_zstd(raw: IO[bytes]) -> IO[bytes]:
    zstandard = load_zstd()
    reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=True)
    stream: Any = _ZstdErrors(reader, zstandard.ZstdError)
    return io.BufferedReader(stream)


class _ZstdErrors(io.RawIOBase):
    """Raw stream that raises `OSError` for damaged data, as other streams do."""

    def __init__(self, reader: IO[bytes], error: type[Exception]) -> None:
        self._reader = reader
        self._error = error

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def close(self) -> None:
        """Close the file below it."""
        self._reader.close()
        super().close()

    def readinto(self, buffer: bytearray, /) -> int:  # type: ignore[override]  # of this buffer type only
        """Read bytes into a buffer."""
        try:
            data = self._reader.read(len(buffer))
        except self._error as error:
            raise OSError(str(error)) from error
        buffer[: len(data)] = data
        return len(data)


class FoundFiles(NamedTuple):
    """The files that paths name."""

    files: list[TraceFile]
    ignored: int
    """Number of files in folders that cannot hold traces, by their suffix."""


def find_files(paths: tuple[str, ...]) -> FoundFiles:
    """Return the files of these paths, folders and globs, and standard input for `-`, or raise `FormatError`."""
    found: dict[str, TraceFile] = {}
    ignored = 0
    for path in paths:
        if path == STDIN:
            found[STDIN] = TraceFile("stdin", None, len(found), _copy_stdin())
            continue
        names, passed = _names(path)
        ignored += passed
        for name in names:
            if (key := str(Path(name).resolve())) not in found:
                is_pipe = Path(name).exists() and not Path(name).is_file()
                stream = _copy(Path(name)) if is_pipe else None
                found[key] = TraceFile(name, Path(name), len(found), stream)
    return FoundFiles(list(found.values()), ignored)


def _names(path: str) -> tuple[list[str], int]:
    if Path(path).is_dir():
        return _folder(path)
    if Path(path).exists():
        return [path], 0
    names = sorted(glob(path, recursive=True)) if has_magic(path) else []  # noqa: PTH207 - a pattern of the user
    if not names:
        msg = f"{path}: no such file or folder" if not has_magic(path) else f"{path}: no file matches"
        raise FormatError(msg)
    files: list[str] = []
    ignored = 0
    for name in names:
        if Path(name).is_dir():
            inner, passed = _folder(name)
            files, ignored = files + inner, ignored + passed
        else:
            files.append(name)
    return files, ignored


def _folder(path: str) -> tuple[list[str], int]:
    files, ignored = [], 0
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(name for name in folders if name not in _IGNORED)
        for name in sorted(names):
            own = Path(folder, name)
            # A pipe or a device would be read for ever.
            if name.endswith(SUFFIXES) and not name.startswith(".") and (own.is_file() or not own.exists()):
                files.append(str(own))
            else:
                ignored += 1
    return files, ignored


def _copy_stdin() -> IO[bytes]:
    """Copy standard input to a temporary file, since a trace is read from its beginning more than once."""
    copy: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the command runs
    copyfileobj(sys.stdin.buffer, copy)
    copy.flush()
    return copy


def _copy(path: Path) -> IO[bytes]:
    """Copy a pipe, such as that of `<(command)`, to a temporary file; raise `FormatError` if it cannot be read."""
    copy: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the command runs
    try:
        with path.open("rb") as stream:
            copyfileobj(stream, copy)
        copy.flush()
    except OSError as error:
        msg = f"{path}: {error.strerror or error}"
        raise FormatError(msg) from error
    return copy
