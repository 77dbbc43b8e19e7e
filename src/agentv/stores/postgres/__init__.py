"""Run stores on PostgreSQL servers, which several machines share."""

from agentv.protocols.stores import StoreKind
from agentv.stores.postgres.address import find_secrets, parse_address
from agentv.stores.postgres.store import PostgresJudgeCache, PostgresStore

__all__ = ["KIND", "PostgresJudgeCache", "PostgresStore"]

KIND = StoreKind(
    open=PostgresStore,
    open_judge_cache=PostgresJudgeCache,
    hosts=lambda address: parse_address(address).hosts,
    secrets=find_secrets,
)
