"""Stores of every kind, each in a place of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agentv.model.stored import ExecutionRow
from tests.support.stored_rows import NAME
from tests.support.stores import PostgresPlace, Store, StorePlace, make_place


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StorePlace]:
    server = request.getfixturevalue("postgres_server") if request.param == "postgres" else None
    made = make_place(request.param, tmp_path, server)
    yield made
    if isinstance(made, PostgresPlace):
        made.close_all()


@pytest.fixture
def store(place: StorePlace) -> Iterator[Store]:
    opened = place.open()
    opened.begin(ExecutionRow(id=NAME, status="running", planned=3, started_at="2026-11-16T00:00:00.000Z"))
    yield opened
    opened.close()
