"""Reading of all sessions from files of traces."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agentv.errors import FormatError
from agentv.traces.coverage import CoverageCounter
from agentv.traces.detection import detect, find_format, sample_of
from agentv.traces.files import READ_ERRORS, find_files
from agentv.traces.records import PARSE_ERRORS, describe_error
from agentv.traces.repeats import RepeatedHistory
from agentv.traces.sessions import with_lost_records
from agentv.traces.spans.join import join_spans
from agentv.traces.spans.store import SpanStore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.model.session import OtelSpan, Session
    from agentv.protocols.traces import TraceFormat, TraceSample
    from agentv.traces.files import TraceFile

_UNKNOWN = "no known trace format; name one with --format, `agentv score --formats` lists them"
_EMPTY = "the file is empty"
_MAX_LOST = 1000
REPEATED = "sessions that are there more than once, and count once"
"""Note about sessions that are left out."""


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {describe_error(error)}"


class StrictError(FormatError):
    """A record that cannot be read, with `--strict`."""


class TraceReading:
    """Reader of sessions from any number of files; `coverage` counts what was read."""

    def __init__(self, paths: tuple[str, ...], *, format: str | None = None, strict: bool = False) -> None:  # noqa: A002 - as the option
        found = find_files(paths)
        self._files = found.files
        self._format = None if format is None else find_format(format)
        self._is_strict = strict
        self.coverage = CoverageCounter()
        self.coverage.ignored_files = found.ignored
        self._named = set(paths)
        self._spans: SpanStore | None = None
        self._file: TraceFile | None = None
        self._lost: dict[int, list[str]] = {}
        """Places of records that could not be read, by file."""
        self._repeats = RepeatedHistory()
        self._of_sessions: set[int] = set()
        """Files that hold whole sessions, and so no spans of others."""

    def add_span(self, span: OtelSpan) -> None:
        """Add a span to those of which sessions are made at the end."""
        if self._spans is None:
            self._spans = SpanStore()
        self._spans.add(span)

    def skip(self, place: str, reason: str) -> None:
        """Report a record that cannot be read."""
        if self._is_strict:
            raise StrictError(reason, path=place)
        self.coverage.skip(place, reason)
        if self._file is not None:
            lost = self._lost.setdefault(self._file.index, [])
            if len(lost) < _MAX_LOST:
                lost.append(place)

    def note(self, text: str) -> None:
        """Count a remark about the data."""
        self.coverage.notes[text] += 1

    def sessions(self) -> Iterator[Session]:
        """Yield all sessions: those that are files or records of their own first, then those made of spans."""
        for file in self._files:
            self._file = file
            for session in self._read_file(file):
                self._of_sessions.add(file.index)
                own = self._without_history(session)
                if own is not None and self._count(own, file.name):
                    yield own
            file.close()
        self._file = None
        if self._spans is None:
            return
        try:
            for session in self._join(self._spans):
                if self._count(session, session.place):
                    yield session
        finally:
            self._spans.close()

    def _without_history(self, session: Session) -> Session | None:
        """Return a session without what an earlier one has too; `None`, with a note, if it has all of it."""
        try:
            own = self._repeats.without(session)
        except Exception:  # noqa: BLE001 - a plugin may yield anything; what cannot be used is reported when counted
            return session
        if own is None:
            self.note(REPEATED)
        return own

    def _count(self, session: Session, place: str) -> bool:
        """Count a session; return `False`, with a report, for a value of a plugin's reader that is none."""
        try:
            self.coverage.add(session)
        except Exception as error:  # noqa: BLE001 - a plugin may yield anything
            self.skip(place, f"the reader returned a session that cannot be used: {_describe(error)}")
            return False
        return True

    def _read_file(self, file: TraceFile) -> Iterator[Session]:
        try:
            if not file.head.strip():
                self.note(_EMPTY)
                return
            format_, sample = (self._format, sample_of(file.name, file.head)) if self._format else self._detect(file)
            if format_ is None:
                self._skip_unknown(file)
                return
            self.coverage.files += 1
            yield from format_.read(file, self, sample.is_lines)
        except StrictError:
            raise
        except (*PARSE_ERRORS, *READ_ERRORS) as error:
            self.skip(file.name, describe_error(error))
        except Exception as error:  # noqa: BLE001 - a plugin may raise anything, and a mistake must not end the command
            self.skip(file.name, f"the reader failed: {_describe(error)}")

    def _detect(self, file: TraceFile) -> tuple[TraceFormat | None, TraceSample]:
        """Return the format of a file and its beginning; formats that cannot be tried are noted."""
        detected = detect(file)
        for name, error in detected.failed.items():
            self.note(f"the trace format {name!r} cannot be tried: {_describe(error)}")
        return detected.format, detected.sample

    def _skip_unknown(self, file: TraceFile) -> None:
        """Report a file of no known format: as a mistake if it was named, else as one of a folder that is ignored."""
        if file.name in self._named or file.path is None:
            self.skip(file.name, _UNKNOWN)
        else:
            self.coverage.ignored_files += 1
            self.note(f"{_UNKNOWN.partition(';')[0]}: {file.name}")

    def _join(self, store: SpanStore) -> Iterator[Session]:
        notes: Counter[str] = Counter()
        # A session may be spread over all files of spans, so that what one of them lost may be a part of any session.
        lost = [place for index, places in self._lost.items() if index not in self._of_sessions for place in places]
        for group in store.groups():
            try:
                session = join_spans(group.key, group.spans, notes)
            except Exception as error:  # noqa: BLE001 - hostile spans must not end the command
                self.skip(group.spans[0].place, f"session {group.key!r} cannot be read: {_describe(error)}")
                continue
            if session is not None:
                yield with_lost_records(session, lost)
        self.coverage.notes.update(notes)
