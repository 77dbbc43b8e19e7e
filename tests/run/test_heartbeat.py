"""The heartbeat: the lease is renewed once in an interval, by the thread that owns the store."""

from types import SimpleNamespace
from typing import Any

import pytest

from agentv.run import heartbeat


def test_the_lease_is_renewed_once_in_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    beats: list[float] = []
    store: Any = SimpleNamespace(heartbeat=lambda: beats.append(clock[0]))
    monkeypatch.setattr(heartbeat, "monotonic", lambda: clock[0])
    timer = heartbeat.HeartbeatTimer(store)
    for clock[0] in (100.0, 104.9, 105.0, 105.1, 109.9, 112.0):
        timer.beat_if_due()
    assert beats == [105.0, 112.0]
