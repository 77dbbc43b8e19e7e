"""Run stores on PostgreSQL servers, which several machines share."""

from agentv.stores.postgres.store import PostgresJudgeCache, PostgresStore

__all__ = ["PostgresJudgeCache", "PostgresStore"]
