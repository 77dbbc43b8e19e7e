"""One line per test; a failure is the aligned diff."""

from support_agent import agent

import agentv


def test_it_searches_before_it_answers() -> None:
    """The calls are these, and no others."""
    agentv.assert_trajectory(agent("branch"), expected=[{"tool": "search"}], mode="exact")
