"""The command line called in this process: it runs as in a process of its own, without the start of one."""

import gc
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager
from pathlib import Path
from typing import IO
from unittest.mock import patch

from agentv.cli.main import main


def call_main(
    args: Sequence[str], folder: Path, environment: Mapping[str, str], *, merged: bool = False
) -> tuple[int, bytes, bytes]:
    """Return the exit code, stdout and stderr of the command; none of its changes to this process remain.

    With `merged`, stdout holds the output of both streams.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open("rb") as nothing:
        with ExitStack() as stack:
            stack.enter_context(_restored_modules(folder))
            stack.enter_context(_restored_collector())
            stack.enter_context(chdir(folder))
            stack.enter_context(patch.dict(os.environ, environment, clear=True))
            stack.enter_context(patch.object(sys, "argv", ["agentv", *args]))
            stack.enter_context(patch.object(tempfile, "tempdir", None))
            stack.enter_context(_redirected("stdin", 0, nothing))
            stack.enter_context(_redirected("stdout", 1, out))
            stack.enter_context(_redirected("stderr", 2, out if merged else err))
            code = _exit_code()
        return code, _content(out), _content(err)


def _exit_code() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


@contextmanager
def _redirected(name: str, fd: int, file: IO[bytes]) -> Iterator[None]:
    """Let a standard stream and its file descriptor, which child processes inherit, be this file."""
    old, saved = getattr(sys, name), os.dup(fd)
    if fd:
        old.flush()
    os.dup2(file.fileno(), fd)
    # As in a process whose locale is C.UTF-8.
    errors = "backslashreplace" if name == "stderr" else "surrogateescape"
    stream = open(fd, "w" if fd else "r", encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115 - below
    setattr(sys, name, stream)
    try:
        yield
    finally:
        try:
            stream.close()
        finally:
            setattr(sys, name, old)
            os.dup2(saved, fd)
            os.close(saved)


@contextmanager
def _restored_modules(folder: Path) -> Iterator[None]:
    """Forget the modules of the folder afterwards: the next command finds the files as they are then."""
    path, known, inside = list(sys.path), set(sys.modules), f"{folder.parent}{os.sep}"
    try:
        yield
    finally:
        sys.path[:] = path
        for name in sys.modules.keys() - known:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(inside):
                del sys.modules[name]
        for entry in [entry for entry in sys.path_importer_cache if entry.startswith(inside)]:
            del sys.path_importer_cache[entry]


@contextmanager
def _restored_collector() -> Iterator[None]:
    """Turn garbage collection on again, which the command turns off until its end."""
    thresholds = gc.get_threshold()
    try:
        # What the command froze could not be thawed without what tests/conftest.py has frozen.
        with patch.object(gc, "freeze", lambda: None):
            yield
    finally:
        gc.set_threshold(*thresholds)
        gc.enable()


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()
