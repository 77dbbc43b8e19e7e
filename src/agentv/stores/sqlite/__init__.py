"""Run stores in SQLite files."""

from agentv.stores.sqlite.store import SqliteJudgeCache, SqliteStore

__all__ = ["SqliteJudgeCache", "SqliteStore"]
