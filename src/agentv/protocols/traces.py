"""Protocols of trace formats, which plugins may implement: the format, the file that it reads, and the receiver."""

from collections.abc import Callable, Iterator, Sequence
from typing import IO, Any, NamedTuple, Protocol

from msgspec import Struct

from agentv.model.session import OtelSpan, Session


class TraceSample(NamedTuple):
    """The beginning of a file of traces, for detection."""

    name: str
    """Name of the file."""
    head: bytes
    """Its first bytes, at most 64 KB, decompressed."""
    values: Sequence[Any]
    """The first JSON values: of the lines, of the list, or the document itself; a cut one as far as it goes."""
    is_lines: bool
    """`True` if each line is a JSON value of its own."""


class TraceSource(Protocol):
    """A file of traces."""

    name: str
    """Name for messages and places."""
    index: int
    """Number of the file."""

    @property
    def stem(self) -> str:
        """Name of the file without folders and suffixes."""
        ...

    @property
    def path(self) -> Any:
        """Path of the file; `None` for standard input."""
        ...

    def open(self) -> IO[bytes]:
        """Open the content, decompressed."""
        ...

    def document(self) -> bytes:
        """Return the whole content; raise `FormatError` if it is too large."""
        ...

    def lines(self) -> Iterator[Any]:
        """Yield the lines that are not blank, each with `number`, `data` and `is_whole`."""
        ...


class TraceSink(Protocol):
    """Receiver of spans and problems of a reader."""

    def add_span(self, span: OtelSpan) -> None:
        """Add a span; sessions are made of all spans after the last file."""
        ...

    def skip(self, place: str, reason: str) -> None:
        """Report a record that cannot be read; with `--strict` it ends the command."""
        ...

    def note(self, text: str) -> None:
        """Report a remark about the data; equal ones are counted."""
        ...


class TraceFormat(Struct, frozen=True, kw_only=True):
    """Format of stored traces, an entry of `agentv.registry.TRACE_FORMATS` or of the entry points `agentv.traces`."""

    name: str
    """Name for `--format` and reports."""
    description: str
    """Description in a few words, for lists."""
    detect: Callable[[TraceSample], bool]
    """Return whether a file has this format."""
    read: Callable[[TraceSource, TraceSink, bool], Iterator[Session]]
    """Yield the sessions of a file, or add its spans to the sink; the last argument says whether it is JSON Lines."""
