"""Leases on the clock of a server, and limits of targets that processes share by it."""

import time
from collections.abc import Iterator

import pytest

from agentv.protocols.stores import SharedLimit, SharedLimitStore
from agentv.stores.postgres import PostgresStore
from tests.support.postgres import PostgresServer
from tests.support.stored_rows import somebody
from tests.support.stores import PostgresPlace


@pytest.fixture
def place(postgres_server: PostgresServer) -> Iterator[PostgresPlace]:
    made = PostgresPlace(postgres_server)
    yield made
    made.close_all()


def test_the_clock_of_this_machine_does_not_count(place: PostgresPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    other, store = place.open(somebody(machine="elsewhere/x")), place.open()
    other.heartbeat()
    later = time.time() + 1e6
    monkeypatch.setattr(time, "time", lambda: later)
    assert len(store._leases.living()) == 1  # noqa: SLF001 - what all methods rely on
    place.age_leases()
    assert store._leases.living() == []  # noqa: SLF001 - as above


def shares(store: PostgresStore, *used: str) -> dict[str, tuple[int, int]]:
    assert isinstance(store, SharedLimitStore)
    return {name: share[:2] for name, share in store.share_limits(used, {}).items()}


def test_the_users_of_a_target_are_counted_and_numbered(place: PostgresPlace) -> None:
    first, second = place.open(somebody(machine="a/1")), place.open(somebody(machine="b/1"))
    assert shares(first, "x", "y") == {"x": (1, 0), "y": (1, 0)}
    both = [shares(second, "x")["x"], shares(first, "x", "y")["x"]]
    assert sorted(both) == [(2, 0), (2, 1)]
    assert shares(first, "y") == {"y": (1, 0)}
    assert shares(second, "x") == {"x": (1, 0)}, "whoever has stopped using a target counts no more"
    shares(first, "x")
    place.age_leases()
    second.heartbeat()
    assert shares(second, "x") == {"x": (1, 0)}, "nor does a dead one"
    first.heartbeat()
    first.close()
    assert shares(second, "x") == {"x": (1, 0)}, "nor one that has ended"


def test_the_longest_pause_of_a_target_is_read_by_all(place: PostgresPlace) -> None:
    first, second = place.open(somebody(machine="a/1")), place.open(somebody(machine="b/1"))
    first.share_limits(["x"], {"x": 30.0})
    second.share_limits(["x"], {"x": 5.0})
    found = second.share_limits(["x", "y"], {})
    assert 20 < found["x"].pause_s <= 30
    assert found["y"] == SharedLimit(1, 0, 0.0)
    first.share_limits([], {"y": 0.01})
    time.sleep(0.05)
    assert second.share_limits(["y"], {})["y"].pause_s == 0, "it is over"
