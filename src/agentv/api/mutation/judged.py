"""Evaluation of mutants with judges, within a cost limit."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Self

from agentv.api.judges import judge_target, judges_of, open_judge_cache, used_targets
from agentv.api.providers import find_secrets, scope_of
from agentv.errors import EvaluationError
from agentv.providers.opening import close_providers, open_provider
from agentv.redaction import Redactor
from agentv.run.costs import Spending
from agentv.run.judges import Judges
from agentv.run.options import DEFAULT_CONCURRENCY, RunOptions
from agentv.run.summary import JudgeTotals
from agentv.spec.targets import make_provider

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentv.api.providers import ProviderKey
    from agentv.api.store_files import StoreLocation
    from agentv.evals import Eval
    from agentv.model.response import ProviderResponse
    from agentv.model.results import RunResult
    from agentv.protocols import JudgeClient, OpenProvider
    from agentv.run.judges import JudgeTarget
    from agentv.scoring.scorer import CaseScorer


class JudgedScoring:
    """Evaluation with judges, which are opened when they are first needed; a context manager."""

    asks_judges = True

    def __init__(self, options: RunOptions, store: StoreLocation | None) -> None:
        self._options = options
        self._store = store
        self._opened: dict[ProviderKey, OpenProvider] = {}
        self._targets: dict[ProviderKey, JudgeTarget] = {}
        self._secrets: dict[str, str] = {}
        self.totals = JudgeTotals()

    def __enter__(self) -> Self:
        self._runner = asyncio.Runner()
        self._cache = open_judge_cache(self._store)
        self._judges = Judges(self._targets, self._opened, Redactor({}), self._options, self._cache)
        self._judges.spending = Spending()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._runner.run(close_providers(self._opened.values()))
        finally:
            self._runner.close()
            if self._cache is not None:
                self._cache.close()

    def client(self, eval_: Eval) -> JudgeClient | None:
        """Return the judges of an eval, opened."""
        if not judges_of(eval_, RunOptions()):
            return None
        for key, target in used_targets(eval_, RunOptions()):
            if target not in eval_.judges or (eval_.id, target.name) in self._targets:
                continue
            provider = make_provider(target, os.environ)
            self._secrets |= find_secrets(target, provider, os.environ)
            opened = self._runner.run(open_provider(provider, scope_of(eval_, key[1])))
            if isinstance(opened, str):
                raise EvaluationError(Redactor(self._secrets).text(f"the judge could not be opened: {opened}"))
            self._opened[key] = opened
            self._targets[eval_.id, target.name] = judge_target(key, target, os.environ)
        self._judges.redactor = Redactor(self._secrets)
        return self._judges.for_eval(eval_)

    def evaluate(self, scorer: CaseScorer, responses: Sequence[ProviderResponse]) -> list[RunResult]:
        """Return the results of replies; several are evaluated at the same time."""

        async def evaluate_all() -> list[RunResult]:
            semaphore = asyncio.Semaphore(self._options.max_concurrency or DEFAULT_CONCURRENCY)

            async def evaluate(response: ProviderResponse) -> RunResult:
                async with semaphore:
                    return await scorer.evaluate(response)

            return list(await asyncio.gather(*[evaluate(response) for response in responses]))

        results = self._runner.run(evaluate_all())
        for result in results:
            for each in result.evaluators:
                self.totals.add(each.details)
        return results
