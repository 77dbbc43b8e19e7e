"""Libraries that emit OpenTelemetry, run anew: their traces tell the same sessions as those in `tests/data/traces`."""

import os
from pathlib import Path

import pytest

from tests.data.emit.__main__ import EMITTERS, emit
from tests.support.traces import FIXTURES, calls, read_traces, results

pytestmark = pytest.mark.skipif(
    "AGENTV_FRAMEWORKS" not in os.environ, reason="it installs the libraries: `make frameworks`"
)


def told(path: Path) -> list[object]:
    """Return what a file of traces says, without times and ids."""
    sessions, coverage = read_traces(path)
    assert not coverage.skipped_records
    assert not coverage.unread_places
    return [
        (calls(each), [status for _, _, status in results(each)], each.turns, each.response.text) for each in sessions
    ]


@pytest.mark.parametrize(
    ("environment", "script", "variables"), EMITTERS, ids=[" ".join(script) for _, script, _ in EMITTERS]
)
def test_an_emitter_says_what_it_said(
    environment: str, script: list[str], variables: dict[str, str], tmp_path: Path
) -> None:
    assert not emit(environment, script, variables, tmp_path)
    fixtures = {path.name.partition(".")[0]: path for path in FIXTURES.iterdir()}
    made = sorted(tmp_path.iterdir())
    assert made
    for path in made:
        assert told(path) == told(fixtures[path.name.partition(".")[0]])
