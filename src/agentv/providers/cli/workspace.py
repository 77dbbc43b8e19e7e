"""Private temporary folder of one attempt."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from msgspec.structs import replace

from agentv.errors import FormatError
from agentv.files import read_in_root
from agentv.formats.response import follow_trace_ref
from agentv.process.pipes import omission_marker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.model.response import ProviderResponse


# Do not follow links or block on pipes; Windows has none of these flags and does not need them.
_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class Workspace:
    """Folder and its files, whose names do not depend on the case."""

    def __init__(self, folder: str, request: str, reply: str) -> None:
        self.folder = folder
        self.input_file = os.path.join(folder, request)  # noqa: PTH118 - it becomes an argument
        self.output_file = os.path.join(folder, reply)  # noqa: PTH118 - as above

    @property
    def workspace(self) -> str:
        """Folder, under the name of the placeholder."""
        return self.folder

    def write_input(self, data: bytes) -> None:
        """Write the request file."""
        Path(self.input_file).write_bytes(data)

    def open_output(self) -> BinaryIO | None:
        """Open the output file of the program, if it exists; raise `FormatError` if it is no regular file."""
        try:
            descriptor = os.open(self.output_file, _OPEN)
        except FileNotFoundError:
            return None
        except OSError as error:
            reason = "it is a link" if Path(self.output_file).is_symlink() else error.strerror
            msg = f"the file at {{output_file}} cannot be read: {reason}"
            raise FormatError(msg) from error
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            msg = "the file at {output_file} cannot be read: it is not a regular file"
            raise FormatError(msg)
        return open(descriptor, "rb")  # noqa: PTH123 - it is open already

    def read_output(self, limit: int) -> tuple[bytes, bool]:
        """Return the content of the output file, empty if there is none, and whether its middle was left out."""
        file = self.open_output()
        if file is None:
            return b"", False
        with file:
            size = os.fstat(file.fileno()).st_size
            if size <= limit:
                return file.read(limit), False
            head = file.read(limit - limit // 2)
            file.seek(size - limit // 2)
            return head + omission_marker(size - limit) + file.read(limit // 2), True

    def fetch_trace(self, response: ProviderResponse) -> ProviderResponse:
        """Return the reply with the trace file that the program left here, if it names one."""
        name = response.trace_ref
        if name is None or response.trace:
            return response
        # Other files may be below the eval's folder, where the reference is followed later.
        path = os.path.normpath(os.path.join(self.folder, name))  # noqa: PTH118 - `Path` keeps `..`
        if "\0" in name or not path.startswith(self.folder + os.sep) or not os.path.lexists(path):
            return response
        found = follow_trace_ref(response, partial(read_in_root, self.folder))
        # The file is removed with its folder: its events are those of the reply from now on.
        return found if found.trace_hash is None else replace(found, trace_ref=None, trace_hash=None)


@contextmanager
def workspace(request: str = "request.json", reply: str = "reply") -> Iterator[Workspace]:
    """Create a folder that only its owner can enter, and remove it with its content at the end."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="agentv-"))
    try:
        yield Workspace(folder, request, reply)
    finally:
        _remove(folder)


def _remove(folder: str) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    path = Path(folder)
    if path.is_symlink() or path.is_file():  # a program may replace its folder
        path.unlink(missing_ok=True)
    elif path.exists():  # some tools write-protect their folders, as Go does its modules
        _unprotect(path)
        for here, folders, _ in os.walk(folder):
            for name in folders:
                _unprotect(Path(here, name))
        shutil.rmtree(folder, ignore_errors=True)


def _unprotect(folder: Path) -> None:
    with suppress(OSError):
        if not folder.is_symlink():
            folder.chmod(stat.S_IRWXU)
