"""Open and close the providers of targets, and collect the secrets that they use."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agentv.model.request import Scope
from agentv.protocols import OpenProvider, ProviderSettings
from agentv.providers.opening import FailedSession, close_providers, open_provider
from agentv.redaction import Redactor
from agentv.redaction.known_secrets import credential_variables, is_secret_variable
from agentv.spec.environment import env_variables

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

    from agentv.evals import Eval, Target
    from agentv.protocols import Provider

ProviderKey = tuple[str, str]
"""The id of an eval and the name of a target."""
LOCAL_PROVIDERS = ("mock", "replay")
"""Providers that run in this process with any executor: they only repeat what was recorded."""
OPEN_TIMEOUT_S = 60.0
LOAD_TIMEOUT_S = 600.0
"""Time for the import of user code: some libraries take minutes on a cold disk."""
CLOSE_TIMEOUT_S = 30.0
MAX_NAMED_CASES = 1_000
"""Cases of an eval whose names are compared with the values of secrets."""


def find_secrets(target: Target, provider: Provider, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that a target uses, by the names of their variables: they must not appear in results.

    Secrets are the variables that the target marks as such, and those that look like one.
    """
    settings = ProviderSettings.of(provider)
    marked = {*settings.secret_names, *credential_variables(target.settings)}
    used = {*env_variables(target.settings), *settings.variable_names}
    secrets = {name for name in used if name in environment and is_secret_variable(name, environment[name])}
    return {name: environment[name] for name in (*marked, *secrets) if name in environment}


def make_redactor(evals: Sequence[Eval], secrets: Mapping[str, str]) -> Redactor:
    """Return the redactor of these secrets; values that are names in the evals are left out, as they are no secrets."""
    values = {value.strip() for value in secrets.values()}
    names = {name for eval_ in evals for name in _names_in(eval_) if name in values} if values else set()
    return Redactor({name: value for name, value in secrets.items() if value.strip() not in names})


def _names_in(eval_: Eval) -> Iterator[str]:
    """Yield the names that the author of an eval wrote; a large dataset is not read again for its ids."""
    yield eval_.id
    yield from (target.name for target in (*eval_.targets, *eval_.judges))
    for case in eval_.cases if eval_.count <= MAX_NAMED_CASES else ():
        yield from (case.case.id, *case.case.tags)
        yield from (check.evaluator.name or "" for check in case.checks)


def scope_of(eval_: Eval, target: str = "") -> Scope:
    """Return the folders of an eval, or those that the provider of one of its targets or judges is opened with."""
    name = target.rpartition("\0")[2]  # the key of a judge has a prefix
    folders = {target.name: target.folder for target in (*eval_.judges, *eval_.targets)}
    folder = folders.get(name) or eval_.folder
    return Scope(root=eval_.root, folder=folder, eval_folder="" if folder == eval_.folder else eval_.folder)


@asynccontextmanager
async def open_providers(
    evals: Iterable[Eval], providers: Mapping[ProviderKey, Provider], opened: dict[ProviderKey, OpenProvider]
) -> AsyncIterator[None]:
    """Open the providers, add them to `opened` and close them at the end; one that fails gets a `FailedSession`."""
    by_id = {eval_.id: eval_ for eval_ in evals}
    for key, provider in providers.items():
        if key in opened:  # by an executor
            continue
        result = await open_provider(provider, scope_of(by_id[key[0]], key[1]))
        if isinstance(result, str):
            result = OpenProvider(ProviderSettings(), FailedSession(f"the target could not be opened: {result}"))
        opened[key] = result
    try:
        yield
    finally:
        await close_providers(opened.values())
