"""How evaluators reach the targets that judge: cleaned, remembered, limited, and paid for apart from the agent."""

from __future__ import annotations

import hmac
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from agentv.errors import AgentVError, EvaluationError, suggest
from agentv.jsonio import dump_json
from agentv.model.conversation import Message
from agentv.model.judging import Judged
from agentv.model.request import Request
from agentv.model.response import (
    ProviderResponse,
    TokensUsage,
)
from agentv.run.attempt import RetryPolicy, try_run
from agentv.run.options import DEFAULT_CONCURRENCY, DEFAULT_RETRIES, DEFAULT_TIMEOUT_S
from agentv.run.rate_limit import Limiter, RateLimits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agentv.evals import Eval
    from agentv.model.judging import Calibration
    from agentv.protocols import Provider
    from agentv.redaction import Redactor
    from agentv.run.costs import Spending
    from agentv.run.options import RunOptions


WORD_LENGTH = 16
_JSON_STARTS = ("{", "[")


class JudgeCache(Protocol):
    """Where replies of judges are remembered, and how well judges did."""

    @property
    def secret(self) -> bytes:
        """What the words that fence data are made with; nobody outside of this project knows it."""
        ...

    def get(self, key: str) -> bytes | None:
        """The reply that is remembered under this key."""
        ...

    def put(self, key: str, reply: bytes) -> None:
        """Remember a reply."""
        ...

    def calibration(self, judge_key: str, rubric_key: str) -> Calibration | None:
        """The last calibration of this judge for this rubric."""
        ...


class MemoryJudgeCache:
    """A memory that lasts as long as the execution."""

    def __init__(self) -> None:
        import os  # noqa: PLC0415 - only this needs it

        self.secret = os.urandom(32)
        self._replies: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        """The reply that is remembered under this key."""
        return self._replies.get(key)

    def put(self, key: str, reply: bytes) -> None:
        """Remember a reply."""
        self._replies[key] = reply

    def calibration(self, judge_key: str, rubric_key: str) -> Calibration | None:
        """Nothing: calibrations are kept in a file."""
        del judge_key, rubric_key
        return None


class JudgeTarget(NamedTuple):
    """A target that judges."""

    provider: tuple[str, str]
    """Where its provider is among all providers."""
    identity: bytes
    """Its settings without secrets; empty when they do not tell what it does, as those of a Python function."""
    settings: bytes = b""
    """Its settings as written: who tests it too shares its limits."""

    @property
    def key(self) -> str:
        """A hash of its settings."""
        return blake2b(self.identity, digest_size=16).hexdigest()


class CachedReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """A judge's reply as it is kept."""

    text: str
    tokens_usage: TokensUsage | None = None
    cost_usd: float | None = None


_decode = msgspec.json.Decoder(CachedReply).decode
_decode_message = msgspec.json.Decoder(Message).decode


class Judges:
    """The judges of one execution, whichever evals ask them."""

    def __init__(
        self,
        targets: Mapping[tuple[str, str], JudgeTarget],
        providers: Mapping[tuple[str, str], Provider],
        redactor: Redactor,
        options: RunOptions,
        memory: JudgeCache | None = None,
    ) -> None:
        self.targets = targets
        self.providers = providers
        self.redactor = redactor
        self.memory: JudgeCache = memory or MemoryJudgeCache()
        self.uses_memory = options.cache
        self.spending: Spending | None = None
        """Where the execution counts what it spends, judges included."""
        self._options = options
        self._patience: dict[tuple[str, str], RetryPolicy] = {}
        self.limiters: dict[bytes, Limiter] = {}
        """By the settings of targets; an execution's own, where it has agents to ask as well."""
        self._spent = 0.0
        self._unpriced: str | None = None

    def for_eval(self, each: Eval) -> ExecutionJudgeClient:
        """What the evaluators of this eval are handed."""
        return ExecutionJudgeClient(self, each)

    async def ask(self, each: Eval, name: str, target: JudgeTarget, messages: tuple[Message, ...]) -> ProviderResponse:
        """One reply of a judge, with what it cost."""
        self._check_limit()
        request = Request(id="judge", input_messages=messages)
        patience = self._patience_for(each, name, target)
        # What is under way when an execution stops may finish; after the time for that, this is cancelled.
        tried = await try_run(self.providers[target.provider], request, patience, lambda: False)
        if tried is None:
            msg = "the execution was stopped before the judge had answered"
            raise EvaluationError(msg)
        return tried.response

    def _check_limit(self) -> None:
        limit = self._options.max_judge_cost
        if limit is None:
            return
        if self._unpriced is not None:
            msg = (
                f"not asked: the judge {self._unpriced!r} does not tell what a reply costs, so `max_judge_cost` cannot "
                "be kept; give the target a `price`, or run without the limit"
            )
            raise EvaluationError(msg)
        if self._spent >= limit:
            msg = f"not asked: `max_judge_cost` of ${limit:g} is reached (${self._spent:.4f} spent on judges)"
            raise EvaluationError(msg)

    def _patience_for(self, each: Eval, name: str, target: JudgeTarget) -> RetryPolicy:
        known = self._patience.get(target.provider)
        if known is not None:
            return known
        provider, limits, options = self.providers[target.provider], each.limits, self._options
        retries = (options.retries, getattr(provider, "retries", None), limits.retries, DEFAULT_RETRIES)
        found = self._patience[target.provider] = RetryPolicy(
            timeout_s=options.timeout_s
            or getattr(provider, "timeout_s", None)
            or limits.timeout_s
            or DEFAULT_TIMEOUT_S,
            retries=next(each for each in retries if each is not None),
            retry_timeouts=getattr(provider, "retry_timeouts", False),
            limiter=self.limiters.setdefault(target.settings or name.encode(), Limiter(self._pace(each, provider))),
            account=self._accountant(each, name, provider),
        )
        return found

    def _pace(self, each: Eval, provider: Provider) -> RateLimits:
        """Its own; where it does not say how much it takes at once, no more than agents would be asked."""
        pace = RateLimits.of(provider)
        usual = self._options.max_concurrency or each.limits.max_concurrency or DEFAULT_CONCURRENCY
        return pace._replace(most=pace.most or usual)

    def _accountant(
        self, each: Eval, name: str, provider: Provider
    ) -> Callable[[ProviderResponse], ProviderResponse] | None:
        if self.spending is None:
            return None
        price = self.spending.accountant(provider, each.prices)

        def account(response: ProviderResponse) -> ProviderResponse:
            response = price(response)
            self._spent += response.cost_usd or 0.0
            if response.success and response.cost_usd is None:
                self._unpriced = name
            return response

        return account


class ExecutionJudgeClient:
    """How the evaluators of one eval reach judges."""

    def __init__(self, judges: Judges, each: Eval) -> None:
        self._judges = judges
        self._eval = each

    @property
    def default(self) -> str | None:
        """The judge of evaluators that name none."""
        return self._eval.judge

    async def __call__(self, target: str | None, messages: Sequence[Message]) -> ProviderResponse:
        """The reply of a target; `EvaluationError` when there is none."""
        judged = await self.judge(target, messages)
        response = judged.response
        if not response.success:
            reason = response.error.message if response.error else "it gave no reason"
            msg = f"the judge {judged.target!r} gave no reply: {reason}"
            raise EvaluationError(msg)
        self.keep([judged])
        return response

    async def judge(self, target: str | None, messages: Sequence[Message]) -> Judged:
        """The same with what it took; it is remembered for the next time only when `keep` is told so."""
        name, found = self._find(target)
        clean = tuple(self._clean(message) for message in messages)
        key = self._key(found, clean)
        known = self._recall(key)
        if known is not None:
            return Judged(target=name, response=known, cached=True)
        response = await self._judges.ask(self._eval, name, found, clean)
        return Judged(target=name, response=response, key=key)

    def _recall(self, key: str) -> ProviderResponse | None:
        if not key or not self._judges.uses_memory:
            return None
        try:
            found = self._judges.memory.get(key)
            kept = None if found is None else _decode(found)
        except (AgentVError, msgspec.MsgspecError):  # what cannot be remembered is asked again
            return None
        if kept is None:
            return None
        return ProviderResponse(text=kept.text, tokens_usage=kept.tokens_usage, cost_usd=kept.cost_usd)

    def keep(self, judged: Sequence[Judged]) -> None:
        """Remember these replies: they made sense."""
        redact = self._judges.redactor.line
        for each in judged:
            if each.key and not each.cached:
                response = each.response
                kept = CachedReply(response.text, response.tokens_usage, response.cost_usd)
                try:
                    self._judges.memory.put(each.key, redact(dump_json(kept)))
                except AgentVError:  # what cannot be remembered is asked again the next time
                    return

    def clean(self, text: str) -> str:
        """The text without secrets, as a model may see it."""
        redactor = self._judges.redactor
        if text.startswith(_JSON_STARTS):  # fields that are named as secrets are seen only in JSON
            text = redactor.line(text.encode("utf-8", "replace")).decode("utf-8", "replace")
        return redactor.text(text)

    def word(self, content: bytes) -> str:
        """A word that only this content has, and that nobody who wrote it can know."""
        return hmac.new(self._judges.memory.secret, content, sha256).hexdigest()[:WORD_LENGTH]

    def calibration(self, target: str | None, rubric_key: str) -> Calibration | None:
        """The last calibration of this judge for this rubric."""
        return self._judges.memory.calibration(self._find(target)[1].key, rubric_key)

    def judge_key(self, target: str | None) -> str:
        """A hash of the settings of this judge."""
        return self._find(target)[1].key

    def _find(self, target: str | None) -> tuple[str, JudgeTarget]:
        name = target or self._eval.judge
        if name is None:
            msg = "no judge is named: add `judge: NAME`, here, in the eval, or in agentv.yaml"
            raise EvaluationError(msg)
        found = self._judges.targets.get((self._eval.id, name))
        if found is None:
            known = [judge for eval_id, judge in self._judges.targets if eval_id == self._eval.id]
            msg = f"there is no judge {name!r} here{suggest(name, known)}"
            raise EvaluationError(msg)
        return name, found

    def _clean(self, message: Message) -> Message:
        # Once more, whatever an evaluator did: nothing leaves this place with a secret in it.
        redactor = self._judges.redactor
        if message == Message(role=message.role, content=message.content) and isinstance(message.content, str):
            return replace(message, content=redactor.text(message.content))
        return _decode_message(redactor.line(dump_json(message)))

    def _key(self, target: JudgeTarget, messages: Sequence[Message]) -> str:
        if not target.identity:
            return ""
        digest = blake2b(target.identity, digest_size=16)
        digest.update(dump_json(messages))
        return digest.hexdigest()
