"""The plan of a run's conversations: its user side, stop rules, and checks of a simulated user."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, to_builtins

from agentv.model.request import Persona
from agentv.model.simulation import SimulatorUse
from agentv.run.conversation import ConversationPlan
from agentv.run.users import ScriptedUser, make_user
from agentv.run.users.faults import FaultFinder
from agentv.run.users.stop import StopCheck
from agentv.scoring.scorer import CaseScorer
from agentv.scoring.turns import COST_DIGITS, add_numbers, add_usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from agentv.model.conversation import Message
    from agentv.model.request import Case
    from agentv.model.response import ProviderResponse
    from agentv.model.simulation import Simulation
    from agentv.run.plan import PlannedRun
    from agentv.scoring.scorer import TraceLoader

    AskTarget = Callable[[str, Sequence[Message], int], Awaitable[ProviderResponse]]
    """Sends messages with a seed to the target of this name."""


def plan_conversation(planned: PlannedRun, follow: TraceLoader, ask: AskTarget) -> ConversationPlan:
    """Return the plan of the conversations of a run."""
    case = planned.case.case
    turns = case.turns or ()
    simulation = case.simulate
    if simulation is UNSET or simulation.user == "script":
        return ConversationPlan(lambda _: ScriptedUser(turns))
    persona = case.persona if isinstance(case.persona, Persona) else None
    model = _UserModel(simulation, planned, ask)
    scorer = CaseScorer((), case, follow=follow)
    scripted = [turn.user.text for turn in turns if turn.user is not None]
    history = [message.text for message in case.input_messages]
    return ConversationPlan(
        make_user=lambda number: make_user(turns, simulation, persona, model.ask, model.start(number)),
        stop=StopCheck(simulation.stop, planned.case.goal, lambda response: scorer.read(response)[1]),
        # All words of the driver `facts` are those of the author, which are no mistakes of a simulator.
        faults=FaultFinder(simulation, persona, list(hidden_texts(planned)), [*scripted, *history])
        if simulation.user == "model"
        else None,
        nudge=simulation.nudge,
        retries=simulation.retries,
        use=model.use,
    )


def seed_of(planned: PlannedRun, number: int) -> int:
    """Return the seed of the user model for a conversation of a run: the same in every execution."""
    content = f"{planned.key}/{planned.repeat}/user/{number}".encode()
    return int.from_bytes(blake2b(content, digest_size=4).digest(), "big") >> 1


def hidden_texts(planned: PlannedRun) -> Iterator[str]:
    """Yield the texts of evaluators and expectations, which no user has seen."""
    case: Case = planned.case.case
    values: list[Any] = [check.config or to_builtins(check.evaluator) for check in planned.case.checks]
    values.append(to_builtins(case.expected_messages))
    values += [to_builtins(turn.expected_messages) for turn in case.turns or ()]
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            values += value.values()
        elif isinstance(value, (list, tuple)):
            values += value


class _UserModel:
    """Requests of a run to its user model, and their sums."""

    def __init__(self, simulation: Simulation, planned: PlannedRun, ask: AskTarget) -> None:
        self._simulation = simulation
        self._planned = planned
        self._ask = ask
        self._replies: list[ProviderResponse] = []
        self._seed = 0

    def start(self, number: int) -> int:
        """Begin conversation `number`, from 0, and return its seed."""
        self._seed = seed_of(self._planned, number)
        return self._seed

    async def ask(self, messages: Sequence[Message], seed: int) -> ProviderResponse:
        """Send messages to the user model."""
        reply = await self._ask(self._simulation.target or "", messages, seed)
        self._replies.append(reply)
        return reply

    def use(self, conversations: int, faults: Sequence[str]) -> SimulatorUse:
        """Return the use of the simulator in all conversations of the run."""
        replies = self._replies
        is_model = self._simulation.user == "model"
        return SimulatorUse(
            user=self._simulation.user,
            target=(self._simulation.target or UNSET) if is_model else UNSET,
            seed=self._seed if is_model else UNSET,
            conversations=conversations,
            requests=len(replies),
            tokens_usage=add_usage([reply.tokens_usage for reply in replies]) if replies else None,
            cost_usd=add_numbers([reply.cost_usd for reply in replies], COST_DIGITS) if replies else None,
            latency_ms=add_numbers([reply.latency_ms for reply in replies], 3) if replies else None,
            faults=tuple(faults),
        )
