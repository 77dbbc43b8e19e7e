"""The user side of conversations: a script, then possibly a simulated user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.model.simulation import Say, Stop
from agentv.run.users.facts import FactsUser
from agentv.run.users.model import ModelUser

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agentv.model.conversation import Message
    from agentv.model.request import Persona, Turn
    from agentv.model.response import ProviderResponse
    from agentv.model.simulation import Simulation, UserView

    AskModel = Callable[[Sequence[Message], int], Awaitable[ProviderResponse]]
    """Sends messages to the user model with a seed, and returns its reply."""


class ScriptedUser:
    """User side that says the turns of a case, one after the other, and then leaves the word to a simulated user."""

    def __init__(self, turns: Sequence[Turn], then: FactsUser | ModelUser | None = None) -> None:
        self._turns = turns
        self._then = then
        self._next = 0

    @property
    def is_scripted(self) -> bool:
        """True while the script goes on after the last message."""
        return self._next < len(self._turns)

    async def next(self, view: UserView) -> Say | Stop:
        """Return the next turn of the script, or of the simulated user after it."""
        if self._next == len(self._turns):
            return Stop("the script ended") if self._then is None else await self._then.next(view)
        turn = self._turns[self._next]
        self._next += 1
        return Say(turn.user, turn.resume)


def make_user(
    turns: Sequence[Turn],
    simulation: Simulation | None,
    persona: Persona | None = None,
    ask: AskModel | None = None,
    seed: int = 0,
) -> ScriptedUser:
    """Return the user side of one conversation.

    It is made of the script and the brief alone, so that no evaluator and no expectation can reach a simulated user.
    """
    if simulation is None or simulation.user == "script":
        return ScriptedUser(turns)
    if simulation.user == "facts":
        return ScriptedUser(turns, FactsUser(simulation))
    if ask is None:
        msg = "a user model needs a target"
        raise ValueError(msg)
    description = "" if persona is None else persona.description
    return ScriptedUser(turns, ModelUser(simulation, description, ask, seed))
