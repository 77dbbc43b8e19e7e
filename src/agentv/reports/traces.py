"""`--dump-traces`: the trace of each attempt, or of each turn, in a file of its own, named after its case."""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from typing import TYPE_CHECKING
from unicodedata import normalize

from msgspec import Struct

from agentv.jsonio import dump_json
from agentv.model.events import AttemptFinished, RunFinished
from agentv.reports.files import NO_LINKS, open_private, write_all
from agentv.scoring.calls import trace_from_messages
from agentv.scoring.turns import split_turns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from agentv.model.conversation import TraceEvent
    from agentv.model.events import Event
    from agentv.model.response import ProviderResponse
    from agentv.redaction import Redactor

MAX_NAME_BYTES = 100
"""Bytes of a case id in a file name: file systems allow 255, and the number of the attempt follows."""
_SAFE = re.compile(r"\w[-\w. @+=,()]*").fullmatch
_UNSAFE = re.compile(r"[^\w-]+")
_DEVICES = re.compile(r"(?i)(?:aux|con|nul|prn|conin\$|conout\$|(?:com|lpt)[0-9¹²³])(?:\..*)?").fullmatch


class _RunId(Struct, frozen=True):
    """The names of a run."""

    eval_id: str
    target: str
    case_id: str
    persona_id: str | None
    repeat: int


class _Part(Struct, frozen=True):
    """An attempt at a run, or at one of its turns."""

    attempt: int
    turn: int = 0
    """Number of the turn, from 1; 0 if the case is one question."""
    conversation: int = 1
    """Number of the conversation: one that fails on its thread is held again on another."""


class TraceFolder:
    """Writes the trace of each attempt as soon as it has ended."""

    def __init__(self, path: Path, redactor: Redactor) -> None:
        self.name = str(path)
        self._path = path
        self._redactor = redactor
        self._active: dict[_RunId, list[str]] = {}
        """Unfinished runs of which an attempt was written, with the ids of their conversations."""
        self._folders: dict[tuple[str, str], Path] = {}
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A folder that cannot be written to must not waste an execution.
        probe = path / f".agentv-{os.getpid()}"
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT, 0o600))
        probe.unlink()

    def handle_attempt(self, event: AttemptFinished) -> None:
        """Write the trace of this attempt."""
        run = _RunId(event.eval_id, event.target, event.case_id, event.persona_id, event.repeat)
        conversations = self._active.setdefault(run, [])
        if event.turn and event.conversation_id not in conversations:
            conversations.append(event.conversation_id)
        part = _Part(event.attempt, event.turn, len(conversations))
        self._write(run, part, event.execution_id, trace_of(event.response))

    def handle(self, event: Event) -> None:
        """Write the trace of a run that ended without a finished attempt, by its time limit."""
        if isinstance(event, RunFinished):
            record = event.record
            run = _RunId(record.eval_id, record.target, record.case_id, record.persona_id or None, record.repeat)
            if run not in self._active:
                for part, response in _parts(event):
                    self._write(run, part, record.execution_id, trace_of(response))
            self._active.pop(run, None)

    def _write(self, run: _RunId, part: _Part, execution_id: str, trace: tuple[TraceEvent, ...] | None) -> None:
        value = {
            "case_id": run.case_id,
            **({"persona_id": run.persona_id} if run.persona_id else {}),
            "eval_id": run.eval_id,
            "execution_id": execution_id,
            "target": run.target,
            "repeat": run.repeat,
            **({"turn": part.turn} if part.turn else {}),
            "attempt": part.attempt,
            "trace": trace,
        }
        # Only the folder was named: a link in it may lead anywhere.
        path = self._folder(run.eval_id, run.target) / self._name(run, part)
        file, is_regular = open_private(path, os.O_TRUNC | NO_LINKS)
        try:
            write_all(file, self._redactor.line(dump_json(value)) + b"\n")
        except OSError:
            if is_regular:  # an incomplete file could be mistaken for a trace
                os.ftruncate(file, 0)
            raise
        finally:
            os.close(file)

    def _name(self, run: _RunId, part: _Part) -> str:
        """Return the name of a file; `~` is in no safe name, so that no two runs share one."""
        suffix = f"~persona-{self._safe(run.persona_id)}" if run.persona_id else ""
        suffix += f"~repeat-{run.repeat + 1}" if run.repeat else ""
        suffix += f"~conversation-{part.conversation}" if part.conversation > 1 else ""
        suffix += f"~turn-{part.turn}" if part.turn else ""
        return f"{self._safe(run.case_id)}{suffix}.attempt-{part.attempt}.json"

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
        return safe_file_name(self._redactor.text(name))


def _parts(event: RunFinished) -> Iterator[tuple[_Part, ProviderResponse]]:
    """Yield the reply of a run, or those of its turns."""
    if not event.response.turns:
        yield _Part(event.record.attempts), event.response
    for number, exchange in enumerate(split_turns(event.response), 1):
        yield _Part(max(1, exchange.attempts), number), exchange.response


def trace_of(response: ProviderResponse) -> tuple[TraceEvent, ...] | None:
    """Return the agent's own trace, else one made from its messages."""
    if response.trace is not None or response.output_messages is None:
        return response.trace
    return trace_from_messages(response.output_messages)


def safe_file_name(name: str) -> str:
    """Return the name if it is safe on every file system, else its safe characters and a hash."""
    is_safe = _SAFE(name) and name[-1] not in ". " and not _DEVICES(name)
    # Some file systems do not distinguish `A` and `a`, or the composed and decomposed forms of `é`.
    if is_safe and len(name.encode()) <= MAX_NAME_BYTES and name == normalize("NFC", name.casefold()):
        return name
    prefix = _UNSAFE.sub("-", name).encode("utf-8", "replace")[: MAX_NAME_BYTES - 20].decode("utf-8", "ignore")
    digest = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{prefix}~{digest}"
