"""`token_budget`: limits on the tokens of a whole run, or of each turn."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from msgspec import UNSET, UnsetType

from agentv.errors import Problem
from agentv.evaluators.base import EvaluatorBase, Example, Tally
from agentv.evaluators.told import NO_TURNS, concluded, first_of, listed, turns_told
from agentv.evaluators.trajectory.config import Count
from agentv.evaluators.unread import unread_messages
from agentv.formats.usage import decode_usage
from agentv.model.message import Message
from agentv.model.result import EvaluatorResult
from agentv.model.usage import TokensUsage
from agentv.protocols import Context

COUNTS = ("total_tokens", "input_tokens", "output_tokens")
PLACES = ("tokens_usage", "usage", "usage_metadata", "token_usage", "tokensUsage", "usageMetadata", "tokenUsage")
"""Where in a message's metadata its own usage is looked for."""
WRAPPED = "response_metadata"
"""Where LangChain keeps what a model's interface said beside the message."""


class TokenBudget(EvaluatorBase, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """The agent used no more tokens than this, in the whole run or in each of its turns."""

    type: Literal["token_budget"] = "token_budget"
    max_total: Count | UnsetType = UNSET
    """The most tokens read and written together."""
    max_input: Count | UnsetType = UNSET
    """The most tokens read, cached ones included."""
    max_output: Count | UnsetType = UNSET
    """The most tokens written, reasoning included."""
    per: Literal["run", "turn"] = "run"
    """What the limits are for: the whole run, or each assistant message by the usage that it reports."""

    examples: ClassVar[tuple[Example, ...]] = tuple(
        Example(
            config={"type": "token_budget", "max_total": 1000, "max_output": 200},
            reply={"text": "Done.", "tokens_usage": {"input_tokens": 700, "output_tokens": wrote}},
            passes=passes,
        )
        for wrote, passes in ((120, True), (260, False))
    )

    @property
    def limits(self) -> list[tuple[str, str, int]]:
        """Each limit that was given: its key, the count that it is for, and the number."""
        found = zip(COUNTS, (self.max_total, self.max_input, self.max_output), strict=True)
        return [(f"max_{name.removesuffix('_tokens')}", name, limit) for name, limit in found if isinstance(limit, int)]

    def check(self, path: str) -> list[Problem]:
        """What cannot be meant."""
        if self.limits:
            return []
        return [Problem(path, "checks nothing: give `max_total`, `max_input` or `max_output`")]

    def evaluate(self, ctx: Context) -> EvaluatorResult:
        """A constraint a limit; with `per: turn` it holds when it holds in every turn."""
        return self._each_turn(ctx) if self.per == "turn" else self._whole_run(ctx)

    def _whole_run(self, ctx: Context) -> EvaluatorResult:
        tally = Tally()
        used = _counts(ctx.response.tokens_usage)
        for key, name, limit in self.limits:
            number = used[name]
            if number is None:
                missing = f"the reply has no `tokens_usage.{name}`; have the agent send `tokens_usage`"
                tally.undecided.append(f"{key} {limit}: {missing}")
            else:
                tally.count(good=number <= limit, sentence=f"the run used {_tokens(number, name)} (max: {limit})")
        return concluded(self, tally, **used)

    def _each_turn(self, ctx: Context) -> EvaluatorResult:
        tally = Tally()
        turns = [(place, _counts(usage_of(message))) for place, message in turns_told(ctx)]
        unread = unread_messages(ctx)
        for key, name, limit in self.limits:
            _decide(key, limit, name, [(place, used[name]) for place, used in turns], unread, tally)
        return concluded(self, tally, turns=[{"message": place, **used} for place, used in turns])


def usage_of(message: Message) -> TokensUsage | None:
    """What one turn cost, from wherever the agent put it in any shape that a reply's usage may have."""
    metadata = message.metadata or {}
    wrapped = metadata.get(WRAPPED)
    for box in (metadata, wrapped) if isinstance(wrapped, dict) else (metadata,):
        for place in PLACES:
            if isinstance(box.get(place), dict):
                usage = decode_usage(box[place])
                if usage is not None:
                    return usage
    return None


def _decide(  # noqa: PLR0913, PLR0917 - the limit, and all that is known of the turns
    key: str, limit: int, name: str, turns: Sequence[tuple[int, int | None]], unread: str, tally: Tally
) -> None:
    told = [(place, number) for place, number in turns if number is not None]
    silent = [place for place, number in turns if number is None]
    over = [
        f"message {place} used {_tokens(number, name)} (max per turn: {limit})"
        for place, number in told
        if number > limit
    ]
    if over:
        tally.fails(*first_of(over))
    elif unread:
        tally.undecided.append(f"{key} {limit} per turn: {unread}")
    elif silent:
        lack = f"{listed('message', silent)} {'reports' if len(silent) == 1 else 'report'} no `usage` with `{name}`"
        tally.undecided.append(f"{key} {limit} per turn: {lack}; have the agent send it with each assistant message")
    elif told:
        place, most = max(told, key=lambda turn: turn[1])
        tally.holds(f"no turn used more than {_tokens(most, name)}, as message {place} did (max per turn: {limit})")
    else:
        tally.undecided.append(f"{key} {limit} per turn: {NO_TURNS}")


def _counts(usage: TokensUsage | None) -> dict[str, int | None]:
    """The three counts; a value made by hand may lack a total that its parts give."""
    if usage is None:
        return dict.fromkeys(COUNTS)
    read, wrote, total = usage.input_tokens, usage.output_tokens, usage.total_tokens
    if total is None and read is not None and wrote is not None:
        total = read + wrote
    return {"total_tokens": total, "input_tokens": read, "output_tokens": wrote}


def _tokens(number: int, name: str) -> str:
    kind = name.removesuffix("_tokens")
    what = "" if kind == "total" else f"{kind} "
    return f"{number} {what}{'token' if number == 1 else 'tokens'}"
