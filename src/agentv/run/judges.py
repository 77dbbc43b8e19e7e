"""Judge client of evaluators: redaction, cache, limits and costs of the targets that judge."""

from __future__ import annotations

import hmac
import os
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec.structs import replace

from agentv.errors import AgentVError, EvaluationError
from agentv.jsonio import dump_json
from agentv.model.conversation import Message
from agentv.model.judging import JudgeReply
from agentv.model.request import Request
from agentv.model.response import ProviderResponse, TokensUsage
from agentv.run.attempt import RetryPolicy, try_run
from agentv.run.options import DEFAULT_CONCURRENCY
from agentv.run.rate_limit import RateLimiter, RateLimits
from agentv.suggestions import suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agentv.evals import Eval
    from agentv.model.judging import Calibration
    from agentv.protocols import OpenProvider, ProviderSettings
    from agentv.redaction import Redactor
    from agentv.run.costs import Spending
    from agentv.run.options import RunOptions


NONCE_LENGTH = 16
_JSON_STARTS = ("{", "[")


class JudgeCache(Protocol):
    """Cache of judges' replies, with the calibrations of judges."""

    @property
    def secret(self) -> bytes:
        """Secret key of the nonces, unknown outside of this project."""
        ...

    def get(self, key: str) -> bytes | None:
        """Return the reply that is cached under this key."""
        ...

    def put(self, key: str, reply: bytes) -> None:
        """Cache a reply."""
        ...

    def calibration(self, judge_key: str, rubric_key: str) -> Calibration | None:
        """Return the last calibration of this judge for this rubric."""
        ...


class MemoryJudgeCache:
    """Judge cache that lasts as long as the execution."""

    def __init__(self) -> None:
        self.secret = os.urandom(32)
        self._replies: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        """Return the reply that is cached under this key."""
        return self._replies.get(key)

    def put(self, key: str, reply: bytes) -> None:
        """Cache a reply."""
        self._replies[key] = reply

    def calibration(self, judge_key: str, rubric_key: str) -> Calibration | None:
        """Return `None`: calibrations are stored in a file."""
        del judge_key, rubric_key
        return None


class JudgeTarget(msgspec.Struct, frozen=True):
    """Target that judges."""

    provider: tuple[str, str]
    """Key of its provider."""
    identity: bytes
    """Its settings without secrets; empty if they do not determine its replies, as those of a Python function."""
    settings: bytes = b""
    """Its settings as written; a tested target with the same settings shares its rate limiter."""

    @property
    def key(self) -> str:
        """Hash of its settings."""
        return blake2b(self.identity, digest_size=16).hexdigest()


class CachedReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """Reply of a judge as it is cached."""

    text: str
    tokens_usage: TokensUsage | None = None
    cost_usd: float | None = None


_decode = msgspec.json.Decoder(CachedReply).decode
_decode_message = msgspec.json.Decoder(Message).decode


class Judges:
    """Judges of one execution, shared by all its evals."""

    def __init__(
        self,
        targets: Mapping[tuple[str, str], JudgeTarget],
        providers: Mapping[tuple[str, str], OpenProvider],
        redactor: Redactor,
        options: RunOptions,
        cache: JudgeCache | None = None,
    ) -> None:
        self.targets = targets
        self.providers = providers
        self.redactor = redactor
        self.cache: JudgeCache = cache or MemoryJudgeCache()
        self.uses_cache = options.cache
        self.spending: Spending | None = None
        """Costs of the execution, those of judges included."""
        self.limiters: dict[bytes, RateLimiter] = {}
        """Rate limiters by the settings of targets; shared with the engine of an execution."""
        self._options = options
        self._policies: dict[tuple[str, str], RetryPolicy] = {}
        self._spent = 0.0
        self._unpriced: str | None = None
        """Name of a judge whose replies have no cost."""

    def for_eval(self, eval_: Eval) -> ExecutionJudgeClient:
        """Return the judge client of the evaluators of this eval."""
        return ExecutionJudgeClient(self, eval_)

    async def ask(self, eval_: Eval, name: str, target: JudgeTarget, messages: tuple[Message, ...]) -> ProviderResponse:
        """Send messages to a judge; return its reply with its cost."""
        self._check_limit()
        request = Request(id="judge", input_messages=messages)
        policy = self._policies.get(target.provider)
        if policy is None:
            policy = self._policies[target.provider] = self._make_policy(eval_, name, target)
        # Requests in flight may finish when an execution stops; after the grace period this task is cancelled.
        outcome = await try_run(self.providers[target.provider].session, request, policy, lambda: False)
        if outcome is None:
            msg = "the execution was stopped before the judge had answered"
            raise EvaluationError(msg)
        return outcome.response

    def _check_limit(self) -> None:
        limit = self._options.max_judge_cost
        if limit is None:
            return
        if self._unpriced is not None:
            msg = (
                f"not asked: the judge {self._unpriced!r} reports no cost of its replies, so `max_judge_cost` cannot "
                "be kept; give the target a `price`, or run without the limit"
            )
            raise EvaluationError(msg)
        if self._spent >= limit:
            msg = f"not asked: `max_judge_cost` of ${limit:g} is reached (${self._spent:.4f} spent on judges)"
            raise EvaluationError(msg)

    def _make_policy(self, eval_: Eval, name: str, target: JudgeTarget) -> RetryPolicy:
        settings = self.providers[target.provider].settings
        limits = RateLimits.of(settings)
        # Without a limit of its own, a judge gets no more concurrent requests than a tested target.
        usual = self._options.max_concurrency or eval_.limits.max_concurrency or DEFAULT_CONCURRENCY
        limiter = RateLimiter(replace(limits, max_concurrency=limits.max_concurrency or usual))
        return replace(
            RetryPolicy.resolve(self._options, settings, eval_.limits),
            limiter=self.limiters.setdefault(target.settings or name.encode(), limiter),
            count_cost=self._make_cost_counter(eval_, name, settings),
        )

    def _make_cost_counter(
        self, eval_: Eval, name: str, settings: ProviderSettings
    ) -> Callable[[ProviderResponse], ProviderResponse] | None:
        if self.spending is None:
            return None
        count_cost = self.spending.make_cost_counter(settings, eval_.prices)

        def count_judge_cost(response: ProviderResponse) -> ProviderResponse:
            response = count_cost(response)
            self._spent += response.cost_usd or 0.0
            if response.success and response.cost_usd is None:
                self._unpriced = name
            return response

        return count_judge_cost


class ExecutionJudgeClient:
    """Judge client of the evaluators of one eval; see `agentv.protocols.JudgeClient`."""

    def __init__(self, judges: Judges, eval_: Eval) -> None:
        self._judges = judges
        self._eval = eval_

    @property
    def default(self) -> str | None:
        """Name of the judge of evaluators that name none."""
        return self._eval.judge

    async def __call__(self, target: str | None, messages: Sequence[Message]) -> ProviderResponse:
        """Return the reply of a target; raise `EvaluationError` if there is none."""
        judged = await self.judge(target, messages)
        response = judged.response
        if not response.success:
            reason = response.error.message if response.error else "it gave no reason"
            msg = f"the judge {judged.target!r} gave no reply: {reason}"
            raise EvaluationError(msg)
        self.remember([judged])
        return response

    async def judge(self, target: str | None, messages: Sequence[Message]) -> JudgeReply:
        """Return the reply of a target with its usage; it is cached only by `remember`."""
        name, judge = self._find(target)
        clean = tuple(self._redact_message(message) for message in messages)
        key = self._key(judge, clean)
        cached = self._look_up(key)
        if cached is not None:
            return JudgeReply(target=name, response=cached, cached=True)
        response = await self._judges.ask(self._eval, name, judge, clean)
        return JudgeReply(target=name, response=response, key=key)

    def _look_up(self, key: str) -> ProviderResponse | None:
        if not key or not self._judges.uses_cache:
            return None
        try:
            data = self._judges.cache.get(key)
            reply = None if data is None else _decode(data)
        except (AgentVError, msgspec.MsgspecError):  # an entry that cannot be read is a cache miss
            return None
        if reply is None:
            return None
        return ProviderResponse(text=reply.text, tokens_usage=reply.tokens_usage, cost_usd=reply.cost_usd)

    def remember(self, replies: Sequence[JudgeReply]) -> None:
        """Cache these replies, which could be understood."""
        for judged in replies:
            if judged.key and not judged.cached:
                response = judged.response
                reply = CachedReply(response.text, response.tokens_usage, response.cost_usd)
                try:
                    self._judges.cache.put(judged.key, self._judges.redactor.line(dump_json(reply)))
                except AgentVError:  # without an entry, the judge is asked again the next time
                    return

    def redact(self, text: str) -> str:
        """Return the text without secrets, as a model may see it."""
        redactor = self._judges.redactor
        if text.startswith(_JSON_STARTS):  # fields with the names of secrets are recognized only in JSON
            text = redactor.line(text.encode("utf-8", "replace")).decode("utf-8", "replace")
        return redactor.text(text)

    def nonce(self, content: bytes) -> str:
        """Return a word that depends on this content and on a secret, so that its author cannot know it."""
        return hmac.new(self._judges.cache.secret, content, sha256).hexdigest()[:NONCE_LENGTH]

    def calibration(self, target: str | None, rubric_key: str) -> Calibration | None:
        """Return the last calibration of this judge for this rubric."""
        return self._judges.cache.calibration(self._find(target)[1].key, rubric_key)

    def _find(self, target: str | None) -> tuple[str, JudgeTarget]:
        name = target or self._eval.judge
        if name is None:
            msg = "no judge is named: add `judge: NAME`, here, in the eval, or in agentv.yaml"
            raise EvaluationError(msg)
        judge = self._judges.targets.get((self._eval.id, name))
        if judge is None:
            known = [judge for eval_id, judge in self._judges.targets if eval_id == self._eval.id]
            msg = f"there is no judge {name!r} here{suggest(name, known)}"
            raise EvaluationError(msg)
        return name, judge

    def _redact_message(self, message: Message) -> Message:
        # Done again for every message, even if an evaluator has called `redact`: no secret may leave here.
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
