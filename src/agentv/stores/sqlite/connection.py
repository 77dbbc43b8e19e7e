"""Connection to a SQLite store: its folder, its file and its transactions."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import contextmanager
from errno import EACCES, EROFS
from functools import cache
from itertools import chain
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import finalize

from msgspec import MsgspecError

from agentv.errors import StoreError
from agentv.files import PRIVATE_MODE, restrict_to_owner
from agentv.stores.checksums import CHECKSUM_FUNCTION, row_checksum
from agentv.stores.database import StoreConnection, placeholders
from agentv.stores.sqlite.migrations import REPLACE_IT, check_header, is_outdated, migrate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from agentv.stores.database import Insert

T = TypeVar("T")

FOLDER = ".agentv"
FILE = "runs.db"
GITIGNORE = "runs.db*\n"


def default_path(root: str | Path) -> Path:
    """Return the store of a project that sets no other."""
    return Path(root) / FOLDER / FILE


def ensure_private_file(path: Path) -> tuple[int, int]:
    """Create the file if needed, readable by its owner only; return its device and inode.

    SQLite gives the files beside it the same mode.
    """
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE_MODE)
    try:
        status = os.fstat(file)
        if stat.S_IMODE(status.st_mode) != PRIVATE_MODE:
            restrict_to_owner(file)
    finally:
        os.close(file)
    ignore = path.parent / ".gitignore"
    if path.parent.name == FOLDER and not ignore.exists():
        ignore.write_text(GITIGNORE, encoding="utf-8")
    return status.st_dev, status.st_ino


BUSY_TIMEOUT_S = 30.0
"""Longest wait for the transaction of another process, which takes milliseconds."""
RETRY_S = 0.01
CHECKPOINT_PAGES = 4000
"""Pages of the write-ahead log before a checkpoint: pages that change often are then written once."""


ROWS = "{rows}"
"""Place of the rows in a statement for `execute_rows`."""
_ROWS_PER_STATEMENT = (256, 64, 16, 4, 1)
"""Few sizes, so that each statement is prepared once."""


def execute_rows(db: sqlite3.Connection, statement: str, rows: Sequence[Sequence[Any]]) -> None:
    """Execute a statement for these rows, many rows at a time.

    Python releases its lock around every statement, so that one statement per row would wait for other threads often.
    """
    start = 0
    for size in _ROWS_PER_STATEMENT:
        while len(rows) - start >= size:
            block = rows[start : start + size]
            db.execute(with_placeholders(statement, size, len(block[0])), list(chain.from_iterable(block)))
            start += size


@cache
def with_placeholders(statement: str, rows: int, columns: int) -> str:
    """Return the statement with placeholders for this number of rows in place of `{rows}`."""
    return statement.replace(ROWS, ", ".join([placeholders(columns)] * rows))


class Connection(StoreConnection):
    """Connection to a store file with current tables; used by one thread at a time."""

    db: sqlite3.Connection
    damage_errors = (sqlite3.DatabaseError,)

    def __init__(self, path: Path, *_: object) -> None:
        super().__init__()
        self.name = str(path)
        self.path = self._file_path = path
        self._file: tuple[int, int] | None = None
        """Device and inode, to notice that the file was replaced; `None` if it is read-only."""
        with self.translate_errors():
            self.db = self._open(path)
            try:
                is_copy = self._file is None and is_outdated(self.db)
                if is_copy:
                    self.db = _copy(self.db)
                migrate(self.db, self.name)
                if is_copy:
                    self.db.execute("PRAGMA query_only = ON")  # what is written into a copy would be lost
            except BaseException:
                self.db.close()
                raise
            # An error that ends a command may leave it open, and Python 3.13 warns of a database that nobody closed.
            finalize(self, self.db.close).atexit = False
            self.db.text_factory = _decode_text
            self.db.create_function(CHECKSUM_FUNCTION, -1, row_checksum, deterministic=True)

    def _open(self, path: Path) -> sqlite3.Connection:
        check_header(path, self.name)
        try:
            self._file = ensure_private_file(path)
        except OSError as error:
            if error.errno in (EACCES, EROFS) and path.is_file():
                return _open_read_only(path)
            raise
        db = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        try:
            _enable_wal(db)
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        except BaseException as error:
            db.close()
            # The file may be written, but no log beside it.
            if isinstance(error, sqlite3.Error) and not os.access(path.parent, os.W_OK):
                self._file = None
                return _open_read_only(path)
            raise
        return db

    def close(self) -> None:
        """Close the file."""
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a block as one transaction: it is on the disk afterwards, or has no effect."""
        with self.translate_errors():
            self.check_file()
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    def in_transaction(self, function: Callable[[], T]) -> T:
        """Call a function in one transaction."""
        with self.transaction():
            return function()

    def insert(self, insert: Insert, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, many rows at a time."""
        if rows:
            start = f"INSERT INTO {insert.table} ({', '.join(insert.columns)}) VALUES {ROWS} "  # noqa: S608 - names, ours
            execute_rows(self.db, start + insert.on_conflict, rows)

    def check_file(self) -> None:
        """Raise `StoreError` if the file was deleted or replaced: SQLite would go on writing into the deleted one."""
        try:
            status = self._file_path.stat()
        except FileNotFoundError:
            status = None
        if self._file is not None and (status is None or (status.st_dev, status.st_ino) != self._file):
            msg = f"{self.name} was deleted or replaced while it was in use: what this execution had kept in it is gone"
            raise StoreError(msg)

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Raise errors of SQLite and of the system as `StoreError`s that name the file and a remedy."""
        try:
            yield
        except sqlite3.Error as error:
            msg = f"{self.name}: {_explain(error)}"
            raise StoreError(msg) from error
        except (MsgspecError, UnicodeDecodeError) as error:
            msg = f"{self.name}: it is damaged ({error}); {REPLACE_IT}"
            raise StoreError(msg) from error
        except OverflowError as error:
            msg = f"{self.name}: a number is too large to be kept"
            raise StoreError(msg) from error
        except OSError as error:
            msg = f"{self.name} cannot be written: {error.strerror}; name another place with `store`, or use --no-store"
            raise StoreError(msg) from error


def _decode_text(data: bytes) -> str | bytes:
    """Decode a text; one that is damaged stays as bytes, so that the rows around it can be read."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _enable_wal(db: sqlite3.Connection) -> None:
    """Switch to a write-ahead log; in a new file, SQLite does not wait for other processes that do the same."""
    deadline = monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or monotonic() >= deadline:
                raise
            sleep(RETRY_S)
        else:
            return


def _open_read_only(path: Path) -> sqlite3.Connection:
    """Open a file without write permission; `immutable` where no lock can be taken, and so no process writes."""
    reason: sqlite3.Error | None = None
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        db = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, isolation_level=None)
        try:
            db.execute("SELECT count(*) FROM sqlite_schema")
        except sqlite3.Error as error:
            db.close()
            reason = error
        else:
            return db
    raise reason or PermissionError(EACCES, "Permission denied")


def _copy(db: sqlite3.Connection) -> sqlite3.Connection:
    """Copy a read-only store into a temporary file, in which its tables can be updated; SQLite deletes the file."""
    copy = sqlite3.connect("", isolation_level=None)
    try:
        db.backup(copy)
    except BaseException:
        copy.close()
        raise
    db.close()
    return copy


ELSEWHERE = "name another place with `store`, or use --no-store"
_EXPLANATIONS = {
    sqlite3.SQLITE_FULL: "the disk is full. What was finished before is in it; make room and resume",
    sqlite3.SQLITE_READONLY: f"it cannot be written; {ELSEWHERE}",
    sqlite3.SQLITE_PERM: f"it cannot be opened: permission denied; {ELSEWHERE}",
    sqlite3.SQLITE_CANTOPEN: f"it cannot be opened: is its folder there, and may you write there? {ELSEWHERE}",
    sqlite3.SQLITE_PROTOCOL: f"the file system does not lock files as a database needs it; {ELSEWHERE}",
    sqlite3.SQLITE_NOLFS: f"the file system cannot hold a file of this size; {ELSEWHERE}",
    sqlite3.SQLITE_TOOBIG: "a value is too large to be kept",
}
"""Explanation of an error by its primary result code."""
_LOCK_FAILURES = ("SQLITE_IOERR_LOCK", "SQLITE_IOERR_RDLOCK", "SQLITE_IOERR_UNLOCK", "SQLITE_IOERR_CHECKRESERVEDLOCK")
_DAMAGED = ("not a database", "malformed", "no such", "already exists", "duplicate column", "Could not decode")


def _explain(error: sqlite3.Error) -> str:
    """Return what happened and what to do; errors that the `sqlite3` module raises itself have no result code."""
    text = str(error)
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    name = getattr(error, "sqlite_errorname", "")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"another process has held it for {BUSY_TIMEOUT_S:g} s; try again when that one is done"
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB) or any(words in text for words in _DAMAGED):
        return f"it is damaged, or no run store ({text}); {REPLACE_IT}"
    if name in _LOCK_FAILURES:
        return f"it cannot be locked ({name}), as in some network folders; {ELSEWHERE}"
    if code == sqlite3.SQLITE_IOERR:
        return (
            f"the system could not read or write it ({name}): check the disk, its free space and its limits. "
            "What was finished before is in it"
        )
    return _EXPLANATIONS.get(code, f"{text}. What was finished before is in it")
