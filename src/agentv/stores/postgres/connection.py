"""Connection to a PostgreSQL store: transactions, and retries after a lost connection."""

from __future__ import annotations

import logging
import struct
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain, repeat
from random import uniform
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import psycopg
from msgspec import MsgspecError
from psycopg import errors
from psycopg.adapt import Dumper
from psycopg.pq import Format

from agentv.errors import StoreConnectionError, StoreError
from agentv.stores.database import StoreConnection
from agentv.stores.postgres.address import parse_address
from agentv.stores.postgres.migrations import migrate, set_search_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from agentv.stores.database import Insert, Rows

T = TypeVar("T")
FIRST_WAIT_S, MAX_WAIT_S = 0.05, 2.0
"""Waits between two attempts to connect."""
MIN_VERSION = 13_00_00
"""Oldest version of a server: `pg_current_snapshot` came with it."""
ENCODING = "UTF8"
MAX_CONFLICTS = 20
"""Attempts at a transaction that others get in the way of."""
NUL_SYMBOL = "\u2400"
"""Stands in text columns for the character U+0000, which PostgreSQL cannot store; records have the original."""
_TYPES = {
    "bigint": (
        "calls checksum content execution id input_tokens number output_tokens position repeat response_checksum"
        " round rounds run seq superseded target_settings total_tokens turn turns"
    ),
    "double precision": "cost_usd latency_ms score waited_ms weight",
    "bytea": "data error record response sides unread",
}
COLUMN_TYPES = {name: kind for kind, names in _TYPES.items() for name in names.split()}
"""Types of the columns of bulk statements; all others are texts."""
CONFLICTS = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable)
REFUSALS = ("authentication failed", "no pg_hba.conf entry", "does not exist", "no password supplied")
"""Parts of messages of a server that another attempt to connect does not change."""

ELEMENTS = {"bigint": (20, "q"), "double precision": (701, "d"), "bytea": (17, ""), "text": (25, "")}
"""Object ids of the types of array elements, and the format of numbers in `struct`."""
_ARRAY_HEADER = struct.Struct(">iiIii")
"""Number of dimensions, 1 if there are nulls, object id of the elements, number of elements, index of the first one."""
_NULL = b"\xff\xff\xff\xff"

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # failures are reported as `StoreError`s


class RowTable(NamedTuple):
    """Rows that a statement reads like a table."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


class PackedArray(bytes):
    """Array in the binary format of PostgreSQL."""


class PackedArrayDumper(Dumper):
    """Sends an array as it is; the server knows its type from the cast in the statement."""

    format = Format.BINARY

    def dump(self, obj: PackedArray) -> bytes:
        """Return the array."""
        return obj


class _SelfClosingConnection(psycopg.Connection[Any]):
    """Connection that closes when it is collected: a command that ends with an error leaves its store open."""

    def __del__(self, *_: Any) -> None:
        with suppress(Exception):
            self.close()


class ServerConnection(StoreConnection):
    """Connection to the tables of a store on a server; used by one thread at a time."""

    contains = "strpos({column}, ?) > 0"
    ordered_join = "JOIN"
    damage_errors = (errors.InternalError_,)

    def __init__(self, address: str, *_: object) -> None:
        super().__init__()
        self.address = parse_address(address)
        self.name = self.address.name
        self.db = self
        self._in_transaction = False
        self._failure: StoreConnectionError | None = None
        """Error after which no connection is made any more."""
        self._gives_up = False
        self._is_pooled = False
        """`True` behind a connection pooler, which may hand each transaction to another session of the server."""
        with self.translate_errors():
            self._pg = self._connect_first()
            try:
                migrate(self._pg, self.address)
            except BaseException:
                self._pg.close()
                raise

    def close(self) -> None:
        """Close the connection."""
        self._pg.close()

    def execute(self, statement: str, values: Any = (), /) -> Rows:
        """Execute a statement with `?` for each value; outside of a transaction, it is one."""
        query = _with_percents(statement)
        values = [clean_text(value) for value in values]
        if self._in_transaction:
            return self._execute(query, values)
        if self._is_pooled:
            return self._retry(lambda: self._attempt(lambda: self._execute(query, values)))
        return self._retry(lambda: self._execute(query, values))

    def execute_rows(self, statement: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Rows:
        """Execute a statement with these rows for `{it}`, as a table with these columns."""
        return self.execute_tables(statement, {"it": RowTable(columns, rows)})

    def execute_tables(self, statement: str, tables: Mapping[str, RowTable], **values: Any) -> Rows:
        """Execute a statement with these tables for `{name}`, and values for `%(name)s`.

        Each round trip also waits for the interpreter's lock, so that one statement for many rows is faster than many.
        """
        parameters = dict(values)
        sources = {}
        for name, (columns, rows) in tables.items():
            names = [f"{name}_{at}" for at in range(len(columns))]
            columns_of_rows = zip(*rows, strict=True) if rows else [()] * len(columns)
            parameters |= dict(zip(names, map(pack_array, columns, columns_of_rows), strict=True))
            types = [COLUMN_TYPES.get(column, "text") for column in columns]
            arrays = ", ".join(f"%({each})s::{kind}[]" for each, kind in zip(names, types, strict=True))
            sources[name] = f"unnest({arrays}) AS {name} ({', '.join(columns)})"
        return self._execute(statement.format(**sources), parameters)

    def insert(self, insert: Insert, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, all in one statement."""
        if rows:
            self.execute_rows(insert_from(insert, "{it}"), insert.columns, rows)

    def in_transaction(self, function: Callable[[], T]) -> T:
        """Call a function in one transaction, and again if the connection is lost or another transaction conflicts."""
        with self.translate_errors():
            return self._retry(lambda: self._attempt(function))

    def in_pipeline(self, function: Callable[[], T]) -> T:
        """Call a function in one transaction, whose statements are sent without waiting for the rows of earlier ones.

        They are awaited where rows are read, and at the end.
        """
        if self._is_pooled or not psycopg.Pipeline.is_supported():
            return self.in_transaction(function)
        with self.translate_errors():
            return self._retry(lambda: self._attempt_in_pipeline(function))

    def on_retry(self) -> None:
        """Forget state that a failed transaction may have left."""

    def stop_retrying(self) -> None:
        """Wait no longer for a lost connection; may be called by any thread."""
        self._gives_up = True

    def clean_text(self, value: Any) -> Any:
        """Return a value as a column of this store returns it."""
        return clean_text(value)

    def _attempt(self, function: Callable[[], T]) -> T:
        self._in_transaction = True
        try:
            with self._pg.transaction():
                if self._is_pooled:
                    set_search_path(self._pg, self.address)
                return function()
        finally:
            self._in_transaction = False

    def _attempt_in_pipeline(self, function: Callable[[], T]) -> T:
        self._in_transaction = True
        try:
            with self._pg.pipeline():
                self._pg.execute("BEGIN")
                result = function()
                self._pg.execute("COMMIT")  # not executed if a statement before it failed
        except BaseException:
            if not self._pg.closed:
                self._pg.rollback()
            raise
        finally:
            self._in_transaction = False
        return result

    def _execute(self, query: str, values: Sequence[Any] | Mapping[str, Any]) -> Rows:
        return self._pg.cursor(binary=True).execute(query, values)

    def _retry(self, function: Callable[[], T]) -> T:
        """Call a function; call it again after a lost connection, for a while, and after a conflict."""
        conflicts = 0
        deadline: float | None = None
        while True:
            if self._failure is not None:
                raise self._failure
            try:
                if self._pg.closed:
                    self._pg = self._connect()
                return function()
            except CONFLICTS:
                conflicts += 1
                if conflicts >= MAX_CONFLICTS:
                    raise
                sleep(uniform(0, FIRST_WAIT_S))  # noqa: S311 - not for secrets
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if not self._pg.closed:
                    raise
                deadline = deadline or monotonic() + self.address.reconnect_s
                self._reconnect(deadline, error)
            self.on_retry()

    def _reconnect(self, deadline: float, reason: Exception) -> None:
        """Make a lost connection again; raise `StoreConnectionError` after the deadline."""
        wait = FIRST_WAIT_S
        while True:
            if monotonic() >= deadline or self._gives_up:
                lost = f"the connection was lost, and could not be made again within {self.address.reconnect_s:g} s"
                msg = f"{self.name}: {lost}: {self._text(reason)}. What was finished before is in it"
                self._failure = StoreConnectionError(msg)
                raise self._failure from reason
            sleep(max(0.0, min(uniform(wait / 2, wait), deadline - monotonic())))  # noqa: S311 - as above
            wait = min(MAX_WAIT_S, wait * 2)
            try:
                self._pg = self._connect()
            except psycopg.OperationalError as error:
                if any(words in str(error) for words in REFUSALS):
                    raise
                reason = error
            else:
                return

    def _connect_first(self) -> psycopg.Connection[Any]:
        """Connect, and wait only for a server that is starting."""
        deadline = monotonic() + self.address.reconnect_s
        while True:
            try:
                return self._connect()
            except psycopg.OperationalError as error:
                is_starting = isinstance(error, errors.CannotConnectNow) or "starting up" in str(error)
                if not is_starting or monotonic() >= deadline:
                    msg = f"{self.name}: no connection: {self._text(error)}"
                    raise StoreConnectionError(msg) from error
                sleep(FIRST_WAIT_S)

    def _connect(self) -> psycopg.Connection[Any]:
        connection = _SelfClosingConnection.connect(self.address.conninfo, autocommit=True)
        connection.adapters.register_dumper(PackedArray, PackedArrayDumper)
        try:
            self._check_server(connection.info)
            query = "SELECT set_config('client_encoding', 'UTF8', false), pg_backend_pid()"
            row = connection.execute(query).fetchone()
            # A pooler answers for the server, with a process id of its own.
            self._is_pooled = row is not None and row[1] != connection.info.backend_pid
            if self._is_pooled:
                connection.prepare_threshold = None
            else:
                set_search_path(connection, self.address, is_local=False)
        except BaseException:
            connection.close()
            raise
        return connection

    def _check_server(self, info: psycopg.ConnectionInfo) -> None:
        """Raise `StoreError` if a server is too old, or stores texts in another encoding."""
        if 0 < info.server_version < MIN_VERSION:
            version = info.parameter_status("server_version") or info.server_version
            msg = f"{self.name}: the server is PostgreSQL {version}: agentv needs {MIN_VERSION // 10_000} or later"
            raise StoreError(msg)
        encoding = info.parameter_status("server_encoding") or ENCODING
        if encoding != ENCODING:
            fix = f"name a database that was created with `ENCODING '{ENCODING}'`"
            msg = f"{self.name}: the database has the encoding {encoding}, and cannot store every text; {fix}"
            raise StoreError(msg)

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Raise errors of the server as `StoreError`s that name the store and a remedy."""
        try:
            yield
        except psycopg.Error as error:
            kind = StoreConnectionError if isinstance(error, psycopg.OperationalError) else StoreError
            msg = f"{self.name}: {self._explain(error)}"
            raise kind(msg) from error
        except (MsgspecError, UnicodeDecodeError) as error:
            msg = f"{self.name}: it is damaged ({error}); restore it from a backup, or name another schema"
            raise StoreError(msg) from error
        except (struct.error, OverflowError) as error:
            msg = f"{self.name}: a number is too large to be kept"
            raise StoreError(msg) from error

    def _explain(self, error: psycopg.Error) -> str:
        text = self._text(error)
        if "statement pooling" in text:
            return f"the connection pooler must pool sessions or transactions, `pool_mode` of PgBouncer ({text})"
        for kind, explanation in _EXPLANATIONS:
            if isinstance(error, kind):
                return f"{explanation} ({text})"
        return f"{text}. What was finished before is in it"

    def _text(self, error: Exception) -> str:
        """Return the message of an error in one line, without passwords."""
        text = str(error)
        if isinstance(error, psycopg.Error) and error.diag.message_primary:
            text = "\n".join(filter(None, (error.diag.message_primary, error.diag.message_detail)))
        # Of several hosts, each failure is listed behind these words, and the last one also before them.
        text = text.rpartition("All failures were:")[2]
        return self.address.redact(
            "; ".join(line.strip(" -\t").rstrip(".?") for line in text.splitlines() if line.strip(" -\t"))
        )


_EXPLANATIONS: tuple[tuple[type[psycopg.Error] | tuple[type[psycopg.Error], ...], str], ...] = (
    (errors.InsufficientPrivilege, "the role lacks a privilege: ask its owner for it, or name another role"),
    (
        errors.InvalidSchemaName,
        "the role may not use this schema: ask its owner to grant USAGE on it",
    ),
    (errors.DiskFull, "the disk of the server is full. What was finished before is in it; make room and resume"),
    (errors.TooManyConnections, "the server has no free connection; try again, or raise its `max_connections`"),
    (errors.ReadOnlySqlTransaction, "the server is read-only, as a standby is: name the primary server"),
    ((errors.UndefinedTable, errors.UndefinedColumn), "its tables were changed or deleted while they were in use"),
)
"""Explanations of errors, by their class."""


def clean_text(value: Any) -> Any:
    """Return a value as a column can hold it."""
    return value.replace("\0", NUL_SYMBOL) if isinstance(value, str) and "\0" in value else value


@cache
def _with_percents(statement: str) -> str:
    """Return a statement with the placeholders of psycopg."""
    return statement.replace("%", "%%").replace("?", "%s")


def insert_from(insert: Insert, source: str) -> str:
    """Return the statement that inserts rows of a table or a join."""
    names = ", ".join(insert.columns)
    return f"INSERT INTO {insert.table} ({names}) SELECT {names} FROM {source} {insert.on_conflict}"  # noqa: S608 - names, ours


def pack_array(name: str, column: Sequence[Any]) -> PackedArray:
    """Return a column of rows as an array of its type.

    `psycopg` searches every element for characters to escape, which took half of the time of a write.
    """
    oid, number = ELEMENTS[COLUMN_TYPES.get(name, "text")]
    has_nulls = None in column
    if number and not has_nulls:
        body = struct.pack(f">{f'i{number}' * len(column)}", *chain.from_iterable(zip(repeat(8), column)))
    else:
        body = b"".join(chain.from_iterable(_pack_element(value, number) for value in column))
    return PackedArray(_ARRAY_HEADER.pack(1, has_nulls, oid, len(column), 1) + body)


def _pack_element(value: Any, number: str) -> tuple[bytes, ...]:
    if value is None:
        return (_NULL,)
    if number:
        return (struct.pack(f">i{number}", 8, value),)
    data = clean_text(value).encode() if isinstance(value, str) else value
    return len(data).to_bytes(4, "big"), data
