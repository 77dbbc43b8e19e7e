"""Stop rules of conversations with a simulated user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.matching.matchers import pattern_of
from agentv.scoring.calls import resolve_calls
from agentv.scoring.scorer import await_result, evaluate

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.evals import ConfiguredEvaluator
    from agentv.model.response import EndedBy, ProviderResponse
    from agentv.model.simulation import StopRules
    from agentv.protocols import Context


class StopCheck:
    """Rules that are checked after each turn of the agent."""

    def __init__(
        self, rules: StopRules, goal: ConfiguredEvaluator | None, read: Callable[[ProviderResponse], Context | None]
    ) -> None:
        self.rules = rules
        self._goal = goal
        """Evaluator that passes when the calls of the goal were made."""
        self._read = read

    async def after_turn(self, conversation: ProviderResponse) -> EndedBy | None:
        """Return the side that ended the conversation with this turn: the goal was reached, or the agent said so."""
        if len(conversation.turns) < self.rules.min_turns:
            return None
        if self._goal is not None and await self._is_reached(self._goal, conversation):
            return "goal"
        patterns = self.rules.agent_says
        said = any(pattern_of(pattern, ignore_case=True).find(conversation.text) for pattern in patterns)
        return "agent" if said else None

    async def _is_reached(self, goal: ConfiguredEvaluator, conversation: ProviderResponse) -> bool:
        context = self._read(conversation)
        return context is not None and (await await_result(evaluate(goal, context))).status == "pass"

    def is_limit_reached(self, conversation: ProviderResponse) -> bool:
        """Return whether a limit ends the conversation: the number of turns, or failed tool calls in a row."""
        return (
            len(conversation.turns) >= self.rules.max_turns
            or _errors_in_a_row(conversation) >= self.rules.max_tool_errors
        )


def _errors_in_a_row(conversation: ProviderResponse) -> int:
    count = 0
    for call in reversed(resolve_calls(conversation).calls or ()):
        if call.effective_status != "error":
            break
        count += 1
    return count
