"""Interface between the statements that all stores share and the database of one store."""

from __future__ import annotations

from time import gmtime, strftime, time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

T = TypeVar("T")
BLOCK = 256
"""Rows that one statement reads or writes."""


class Insert(NamedTuple):
    """Statement that inserts rows into a table."""

    table: str
    columns: tuple[str, ...]
    on_conflict: str = ""
    """Clause for rows that exist already."""


class Rows(Protocol):
    """Rows that a statement returned."""

    def fetchone(self) -> Any:
        """Return the next row; `None` if there is none."""
        ...

    def fetchall(self) -> list[Any]:
        """Return all other rows."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """Connection to a database."""

    def execute(self, statement: str, values: Any = (), /) -> Rows:
        """Execute a statement with `?` for each value."""
        ...


class StoreConnection:
    """Connection of a store; each kind of database implements the methods."""

    name: str
    """Name for messages."""
    path: Path | None = None
    """File of the store; `None` if it is on a server."""
    db: Database
    contains = "instr({column}, ?) > 0"
    """Condition that a column contains a text."""
    ordered_join = "CROSS JOIN"
    """Join whose first table is read first."""
    damage_errors: tuple[type[Exception], ...] = ()
    """Errors of the database by which single rows cannot be read."""

    def __init__(self, *place: Any) -> None:
        del place

    def translate_errors(self) -> AbstractContextManager[None]:
        """Raise errors of the database and of the system as `StoreError`s that name the store and a remedy."""
        raise NotImplementedError

    def in_transaction(self, function: Callable[[], T]) -> T:
        """Call a function in one transaction: its changes are durable afterwards, or have no effect.

        A store on a server calls it again after a lost connection.
        """
        raise NotImplementedError

    def insert(self, insert: Insert, rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, many rows at a time."""
        raise NotImplementedError

    def clean_text(self, value: Any) -> Any:
        """Return a value as a column of this store returns it."""
        return value

    def on_retry(self) -> None:
        """Forget state that a failed transaction may have left."""

    def stop_retrying(self) -> None:
        """Wait no longer for a lost connection; may be called by any thread."""

    def close(self) -> None:
        """Close the connection."""
        raise NotImplementedError


def timestamp() -> str:
    """Return the current time with milliseconds, as columns have it."""
    moment = time()
    return f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(moment))}.{int(moment % 1 * 1000):03d}Z"


def placeholders(count: int) -> str:
    """Return a list of placeholders in parentheses."""
    return f"({', '.join('?' * count)})"


def blocks(items: Sequence[T], size: int = BLOCK) -> Iterator[Sequence[T]]:
    """Yield the items in blocks of at most this size."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
