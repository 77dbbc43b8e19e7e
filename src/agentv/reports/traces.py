"""What each attempt called, one file an attempt, named after its case."""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from typing import TYPE_CHECKING
from unicodedata import normalize

from agentv.jsonio import dump_json
from agentv.model.events import AttemptFinished, RunFinished
from agentv.reports.files import open_private, write_all
from agentv.scoring.calls import trace_from_messages

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.model.conversation import TraceEvent
    from agentv.model.events import Event
    from agentv.model.response import ProviderResponse
    from agentv.redaction import Redactor

MAX_NAME_BYTES = 100
"""Of a case's id in a name: file systems allow 255 bytes, and the number of the attempt comes after it."""
_SAFE = re.compile(r"\w[-\w. @+=,()]*").fullmatch
_UNSAFE = re.compile(r"[^\w-]+")
_DEVICES = re.compile(r"(?i)(?:aux|con|nul|prn|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?:\..*)?").fullmatch

_Run = tuple[str, str, str, int]


class TraceFolder:
    """Writes a file for each attempt as soon as it has ended."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self.name = str(path)
        self._path = path
        self._redactor = redactor
        self._told: set[_Run] = set()
        """Runs under way of which an attempt was written."""
        self._folders: dict[tuple[str, str], Path] = {}
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A folder that cannot be written to must not cost an execution.
        probe = path / f".agentv-{os.getpid()}"
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT, 0o600))
        probe.unlink()

    def handle_attempt(self, event: AttemptFinished) -> None:
        """Write what this attempt called."""
        run = (event.eval_id, event.target, event.case_id, event.repeat)
        self._told.add(run)
        self._write(run, event.attempt, event.execution_id, trace_of(event.response))

    def handle(self, event: Event) -> None:
        """Write the attempt of a run that ended without any being told of: its time was over."""
        if isinstance(event, RunFinished):
            record = event.record
            run = (record.eval_id, record.target, record.case_id, record.repeat)
            if run not in self._told:
                self._write(run, record.attempts, record.execution_id, trace_of(event.response))
            self._told.discard(run)

    def _write(self, run: _Run, attempt: int, execution_id: str, trace: tuple[TraceEvent, ...] | None) -> None:
        eval_id, target, case_id, repeat = run
        value = {
            "case_id": case_id,
            "eval_id": eval_id,
            "execution_id": execution_id,
            "target": target,
            "repeat": repeat,
            "attempt": attempt,
            "trace": trace,
        }
        again = f"~repeat-{repeat + 1}" if repeat else ""
        name = f"{self._safe(case_id)}{again}.attempt-{attempt}.json"
        file, is_plain = open_private(self._folder(eval_id, target) / name)
        try:
            write_all(file, self._redactor.line(dump_json(value)) + b"\n")
        except OSError:
            if is_plain:  # half a file would be read as something else
                os.ftruncate(file, 0)
            raise
        finally:
            os.close(file)

    def _folder(self, eval_id: str, target: str) -> Path:
        folder = self._folders.get((eval_id, target))
        if folder is None:
            folder = self._path
            for name in (eval_id, target):
                folder /= self._safe(name)
                folder.mkdir(mode=0o700, exist_ok=True)
            self._folders[eval_id, target] = folder
        return folder

    def _safe(self, name: str) -> str:
        return file_name(self._redactor.text(name))


def trace_of(response: ProviderResponse) -> tuple[TraceEvent, ...] | None:
    """The agent's own, else one made of its messages."""
    if response.trace is not None or response.output_messages is None:
        return response.trace
    return trace_from_messages(response.output_messages)


def file_name(name: str) -> str:
    """A name as part of a file's: itself where every file system takes it so, else what it can of it and a hash."""
    plain = _SAFE(name) and name[-1] not in ". " and not _DEVICES(name)
    # Some file systems see no difference between `A` and `a`, or between two ways to write `é`.
    if plain and len(name.encode()) <= MAX_NAME_BYTES and name == normalize("NFC", name.casefold()):
        return name
    kept = _UNSAFE.sub("-", name).encode("utf-8", "replace")[: MAX_NAME_BYTES - 20].decode("utf-8", "ignore")
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{kept}~{digest}"
