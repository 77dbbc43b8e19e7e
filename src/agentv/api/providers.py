"""Open and close the providers of targets, and collect the secrets that they use."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from agentv.errors import AgentVError
from agentv.model.request import Request, Scope
from agentv.protocols import ExecutingProvider, SecretProvider
from agentv.providers.base import failure
from agentv.spec.targets import env_variables

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Mapping

    from agentv.evals import Eval, Target
    from agentv.model.response import ProviderResponse
    from agentv.protocols import Provider

ProviderKey = tuple[str, str]
"""The id of an eval and the name of a target."""
OPEN_TIMEOUT_S = 60.0
CLOSE_TIMEOUT_S = 30.0


def executes(provider: Provider) -> bool:
    """Return whether a provider runs code of the user's."""
    return isinstance(provider, ExecutingProvider) and provider.executes


def secret_names(provider: object) -> tuple[str, ...]:
    """Return the environment variables that a provider reads by itself and whose values are secret."""
    return tuple(provider.secret_names) if isinstance(provider, SecretProvider) else ()


def find_secrets(target: Target, provider: Provider, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the variables that a target uses, by name: they must not appear in results."""
    names = {*env_variables(target.settings), *secret_names(provider)}
    return {name: environment[name] for name in names if name in environment}


def scope_of(eval_: Eval) -> Scope:
    """Return the folders that a provider of this eval is opened with."""
    return Scope(root=eval_.root, folder=eval_.folder)


async def open_provider(provider: Provider, scope: Scope) -> str | None:
    """Open a provider, and return the reason if that fails."""
    try:
        async with asyncio.timeout(OPEN_TIMEOUT_S):
            await provider.open(scope)
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        return str(error) if isinstance(error, AgentVError) else f"{type(error).__name__}: {error}"
    return None


async def close_providers(providers: Iterable[Provider]) -> None:
    """Close providers; a failure is ignored, because all results are known by then."""
    for provider in providers:
        with suppress(Exception):
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await provider.close()


@asynccontextmanager
async def open_providers(evals: Iterable[Eval], providers: dict[ProviderKey, Provider]) -> AsyncIterator[None]:
    """Keep the providers open; one that cannot be opened is replaced by a `FailedProvider`."""
    scopes = {eval_.id: scope_of(eval_) for eval_ in evals}
    for key, provider in providers.items():
        reason = await open_provider(provider, scopes[key[0]])
        if reason is not None:
            providers[key] = FailedProvider(f"the target could not be opened: {reason}")
    try:
        yield
    finally:
        await close_providers(providers.values())


class FailedProvider:
    """A provider that answers every request with the reason why the real one could not be opened."""

    def __init__(self, message: str) -> None:
        self._message = message

    async def open(self, scope: Scope) -> None:
        """Do nothing."""

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the failure."""
        del request
        return failure("transport", self._message)

    async def close(self) -> None:
        """Do nothing."""
