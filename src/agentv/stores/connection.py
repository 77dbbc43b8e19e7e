"""Open a SQLite store: its folder, its connection, its migrations."""

from __future__ import annotations

import os
import sqlite3
import stat
from contextlib import contextmanager
from errno import EACCES, EROFS
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING

from msgspec import MsgspecError

from agentv.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator


FOLDER = ".agentv"
FILE = "runs.db"
IGNORED = "runs.db*\n"
PRIVATE = 0o600


def default_path(root: str | Path) -> Path:
    """Where the runs of a project are kept unless it says otherwise."""
    return Path(root) / FOLDER / FILE


def private_file(path: Path) -> tuple[int, int]:
    """Make sure that the file is there, for its owner only, as what SQLite puts beside it will be; says which it is."""
    if not path.parent.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE)
    try:
        found = os.fstat(file)
        if stat.S_IMODE(found.st_mode) != PRIVATE:
            os.fchmod(file, PRIVATE)
    finally:
        os.close(file)
    ignore = path.parent / ".gitignore"
    if path.parent.name == FOLDER and not ignore.exists():
        ignore.write_text(IGNORED, encoding="utf-8")
    return found.st_dev, found.st_ino


APPLICATION = 0x61677476
"""`agtv`: tells our files from anybody else's."""
MAGIC = b"SQLite format 3\0"
HEAD, TABLES, NAME = 100, slice(40, 44), slice(68, 72)
"""Of SQLite's header: how long it is, where it counts changes of tables, and where it says whose file it is."""
MIGRATIONS = Path(__file__).parent / "schema"


def steps() -> list[Path]:
    """The migrations, in order; the first is number 1."""
    return sorted(MIGRATIONS.glob("[0-9]*.sql"))


def migrate(connection: sqlite3.Connection, name: str) -> None:
    """Bring a file to today's tables; a `StoreError` when it is newer than this program, or not ours."""
    todo = steps()
    version = _version(connection)
    if version > len(todo):
        msg = (
            f"{name} was written by a newer agentv (its tables are version {version}, this one knows {len(todo)}): "
            "update agentv, or name another store"
        )
        raise StoreError(msg)
    if version == 0:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        _refuse(name, tables=bool(tables), application=connection.execute("PRAGMA application_id").fetchone()[0])
    for number in range(version + 1, len(todo) + 1):
        _step(connection, number, todo[number - 1].read_text(encoding="utf-8"))


def _step(connection: sqlite3.Connection, number: int, statements: str) -> None:
    """One step, unless another process has done it meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) == number - 1:
            for statement in _split(statements):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {number}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _split(statements: str) -> list[str]:
    """Each statement by itself: `executescript` would commit behind our back."""
    plain = "\n".join(line for line in statements.splitlines() if not line.lstrip().startswith("--"))
    return [statement for statement in map(str.strip, plain.split(";")) if statement]


def _version(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def refuse_foreign(path: Path, name: str) -> None:
    """A file of somebody else's is not ours to change, and to open it for writing would be a change already."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
    except OSError:  # it is not there, or whoever opens it next says why not
        return
    if head and not head.startswith(MAGIC):
        msg = "file is not a database"
        raise sqlite3.DatabaseError(msg)
    # One without tables has no name yet; its first ones may be in the log beside it still.
    _refuse(name, tables=any(head[TABLES]), application=int.from_bytes(head[NAME], "big"))


def _refuse(name: str, *, tables: bool, application: int) -> None:
    if tables and application != APPLICATION:
        msg = f"{name} is a database of another program: name another store"
        raise StoreError(msg)


BUSY_S = 30.0
"""How long a process waits for another one's transaction, which takes milliseconds."""
AGAIN_S = 0.01
CHECKPOINT_PAGES = 4000
"""How much is gathered before it is moved to its place: pages that change often are then moved once."""


class Connection:
    """The file, with today's tables; one thread at a time may use it."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._path = path
        self._file: tuple[int, int] | None = None
        """Which file it is, whatever its name comes to stand for."""
        with self.told():
            self.db = self._open(path)
            try:
                migrate(self.db, self.name)
            except BaseException:
                self.db.close()
                raise

    def _open(self, path: Path) -> sqlite3.Connection:
        refuse_foreign(path, self.name)
        try:
            self._file = private_file(path)
        except OSError as error:
            if error.errno in (EACCES, EROFS) and path.is_file():
                return _open_to_look(path)
            raise
        db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            _keep_a_log(db)
            db.execute("PRAGMA synchronous = FULL")
            db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        except BaseException:
            db.close()
            raise
        return db

    def close(self) -> None:
        """Let go of it."""
        self.db.close()

    @contextmanager
    def step(self) -> Iterator[None]:
        """Everything in it is on the disk afterwards, or nothing of it."""
        with self.told():
            self._refuse_another()
            self.db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.db.execute("COMMIT")
            except BaseException:
                if self.db.in_transaction:
                    self.db.execute("ROLLBACK")
                raise

    def _refuse_another(self) -> None:
        """SQLite would go on writing into a file that was deleted, where nobody finds it again."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            found = None
        if self._file is not None and (found is None or (found.st_dev, found.st_ino) != self._file):
            msg = f"{self.name} was deleted or replaced while it was in use: what this execution had kept in it is gone"
            raise StoreError(msg)

    @contextmanager
    def told(self) -> Iterator[None]:
        """What SQLite and the system complain about, in words that name the file and say what to do."""
        try:
            yield
        except sqlite3.Error as error:
            msg = f"{self.name}: {_complaint(error)}"
            raise StoreError(msg) from error
        except (MsgspecError, UnicodeDecodeError) as error:
            msg = f"{self.name}: it is damaged ({error}); move it away, and a new one is made"
            raise StoreError(msg) from error
        except OverflowError as error:
            msg = f"{self.name}: a number is too large to be kept"
            raise StoreError(msg) from error
        except OSError as error:
            msg = f"{self.name} cannot be written: {error.strerror}; name another place with `store`, or use --no-store"
            raise StoreError(msg) from error


def _keep_a_log(db: sqlite3.Connection) -> None:
    """Set how the file is written to; on the day it is made SQLite does not wait for others who do the same."""
    end = monotonic() + BUSY_S
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or monotonic() >= end:
                raise
            sleep(AGAIN_S)
        else:
            return


def _open_to_look(path: Path) -> sqlite3.Connection:
    """A file that may be read and not written; where not even a lock may be, nobody else can be writing."""
    for mode in ("mode=ro", "mode=ro&immutable=1"):
        db = sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True, isolation_level=None)
        try:
            db.execute("SELECT count(*) FROM sqlite_schema")
        except sqlite3.Error:
            db.close()
        else:
            return db
    raise PermissionError(EACCES, "Permission denied")


def _complaint(error: sqlite3.Error) -> str:
    text = str(error)
    if "full" in text:
        return "the disk is full. What was finished before is in it; make room and resume"
    if "readonly" in text or "unable to open" in text:
        return "it cannot be written; name another place with `store`, or use --no-store"
    if "locked" in text:
        return f"another process has held it for {BUSY_S:g} s; try again when that one is done"
    if "not a database" in text or "malformed" in text:
        return f"it is damaged, or no run store ({text}); move it away, and a new one is made"
    return f"{text}. What was finished before is in it"
