"""Run stores in SQLite files."""

from pathlib import Path

from agentv.protocols.stores import StoreKind
from agentv.stores.sqlite.store import SqliteJudgeCache, SqliteStore

__all__ = ["KIND", "SqliteJudgeCache", "SqliteStore"]

KIND = StoreKind(
    open=lambda address: SqliteStore(Path(address)),
    open_judge_cache=lambda address: SqliteJudgeCache(Path(address)),
)
