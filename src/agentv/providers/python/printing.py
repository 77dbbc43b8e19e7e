"""Output of Python agents: kept with the run that printed it, and shown beside the results, not among them."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import Lock, current_thread, main_thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    ShowLine = Callable[[str, str], None]
    """Shows a line of output: the label of the run, and the text."""

MAX_KEPT = 20_000
"""Characters of the output of one run that are kept, from its end."""
_MAX_LINE = 10_000
"""Characters after which a line is shown although it has not ended."""


class PrintedText:
    """Output of one run; threads and tasks that the agent starts may write at the same time."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._lock = Lock()
        self._kept = ""
        self._cut = False
        self._line = ""

    def write(self, text: str) -> None:
        """Keep a text, and show the lines that it completes."""
        with self._lock:
            self._kept += text
            if len(self._kept) > 2 * MAX_KEPT:
                self._kept, self._cut = self._kept[-MAX_KEPT:], True
            *lines, self._line = (self._line + text).split("\n")
            if len(self._line) > _MAX_LINE:
                lines, self._line = [*lines, self._line], ""
        for line in lines:
            show_line(self._label, line)

    def end(self) -> str:
        """Show an unfinished line, and return the whole text, or its end if it is too long."""
        with self._lock:
            line, self._line = self._line, ""
        if line:
            show_line(self._label, line)
        is_cut = self._cut or len(self._kept) > MAX_KEPT
        return f"…{self._kept[-MAX_KEPT:]}" if is_cut else self._kept


_current: ContextVar[PrintedText | None] = ContextVar("agentv_printed_text", default=None)
_labels: dict[int, str] = {}
_lock = Lock()
_users = 0
_display: ShowLine | None = None


def set_display(show: ShowLine | None) -> None:
    """Set the function that shows output while an execution runs; `None` for standard error.

    With a display, output of threads that belong to no run is shown by it, too.
    """
    global _display  # noqa: PLW0603 - so are the streams
    _display = show


def show_line(label: str, line: str) -> None:
    """Show one line of output, with the run or the target that it belongs to."""
    if _display is not None:
        _display(label, line)
        return
    stream = _unwrap(sys.stderr)
    if stream is not None:
        with suppress(OSError, ValueError):  # closed: it is still kept with the run
            stream.write(f"[{label}] {line}\n" if label else f"{line}\n")
            stream.flush()


@contextmanager
def captured(label: str) -> Iterator[PrintedText]:
    """Capture the output of this context, and of threads and tasks that inherit it."""
    printed = PrintedText(label)
    token = _current.set(printed)
    _labels[id(printed)] = label
    try:
        yield printed
    finally:
        _current.reset(token)
        del _labels[id(printed)]


def current_labels() -> list[str]:
    """Return the labels of all contexts whose output is captured now."""
    return list(_labels.values())


def is_captured() -> bool:
    """Return whether the caller runs in the context of an agent."""
    return _current.get() is not None


class OutputRouter:
    """Replacement for stdout or stderr that separates the output of agents from that of agentv."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write to the run of this context, if there is one, else to the stream."""
        printed = _current.get()
        if printed is not None:
            printed.write(text)
        elif _display is not None and current_thread() is not main_thread():
            for line in text.splitlines():
                _display("", line)
        else:
            self.stream.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Flush the stream."""
        with suppress(ValueError):  # closed
            self.stream.flush()

    def close(self) -> None:
        """Do nothing, because others use the stream, too."""

    def __getattr__(self, name: str) -> Any:
        # An agent that writes to the buffer or the descriptor gets those of stderr: stdout is for results.
        return getattr(_unwrap(sys.stderr) or self.stream if is_captured() else self.stream, name)


def _unwrap(stream: Any) -> Any:
    return stream.stream if isinstance(stream, OutputRouter) else stream


def redirect_output() -> None:
    """Replace stdout and stderr, for one more target."""
    global _users  # noqa: PLW0603 - the streams are global, too
    with _lock:
        _users += 1
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and not isinstance(stream, OutputRouter):
                setattr(sys, name, OutputRouter(stream))


def restore_output() -> None:
    """Restore stdout and stderr after the last target; a replacement by others stays."""
    global _users  # noqa: PLW0603 - as above
    with _lock:
        _users -= 1
        for name in ("stdout", "stderr"):
            if not _users:
                setattr(sys, name, _unwrap(getattr(sys, name)))
