"""Places for run stores of every kind, each with what a test does behind the back of the store."""

from abc import ABC, abstractmethod
from itertools import count
from pathlib import Path

from agentv.stores.postgres import PostgresStore
from agentv.stores.postgres.connection import ServerConnection
from agentv.stores.processes import ProcessIdentity
from agentv.stores.sqlite import SqliteStore
from agentv.stores.sqlite.connection import Connection
from tests.support.postgres import PostgresServer

_numbers = count()
Store = SqliteStore | PostgresStore


class StorePlace(ABC):
    """Place of a store, which several processes open."""

    @abstractmethod
    def open(self, owner: ProcessIdentity | None = None) -> Store:
        """Open the store, as another process does."""

    @abstractmethod
    def other(self) -> "StorePlace":
        """Return the place of another store of the same kind."""

    @property
    @abstractmethod
    def ages(self) -> str:
        """Assignment that makes a lease older than it may be."""

    def age_leases(self) -> None:
        """Make all leases expire."""
        store = self.open()
        store.db.execute(f"UPDATE owners SET {self.ages}")  # noqa: S608 - one of two, below
        self.abandon(store)

    def kill(self, store: Store) -> None:
        """Leave a store as a killed process does: its claims stay, and its process is gone."""
        store.db.execute("UPDATE owners SET pid = 4194305, born = '1' WHERE id = ?", (store._owner.id,))  # noqa: SLF001 - it dies here
        self.abandon(store)

    def abandon(self, store: Store) -> None:
        """Close the connection of a store, and nothing else."""
        if isinstance(store, SqliteStore):
            Connection.close(store)
        else:
            ServerConnection.close(store)


class SqlitePlace(StorePlace):
    ages = "beat = beat - 100, seen_at = '0'"

    def __init__(self, path: Path) -> None:
        self.path = path

    def open(self, owner: ProcessIdentity | None = None) -> SqliteStore:
        return SqliteStore(self.path, owner)

    def other(self) -> "SqlitePlace":
        return SqlitePlace(self.path.parent / f"{next(_numbers)}" / self.path.name)


class PostgresPlace(StorePlace):
    ages = "seen_at = seen_at - interval '100 s'"

    def __init__(self, server: PostgresServer) -> None:
        self.server = server
        self.address = server.address()
        self._opened: list[PostgresStore] = []

    def open(self, owner: ProcessIdentity | None = None) -> PostgresStore:
        self._opened.append(PostgresStore(self.address, owner))
        return self._opened[-1]

    def close_all(self) -> None:
        """Close the connections that a test has left open."""
        for store in self._opened:
            ServerConnection.close(store)

    def other(self) -> "PostgresPlace":
        return PostgresPlace(self.server)


def make_place(kind: str, folder: Path, server: PostgresServer | None) -> StorePlace:
    """Return the place of a new store."""
    if kind == "sqlite":
        return SqlitePlace(folder / ".agentv" / "runs.db")
    assert server is not None
    return PostgresPlace(server)
