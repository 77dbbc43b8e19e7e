"""Checks of targets in files that are not trusted: which variables and hosts they would use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

from agentv.api.store_files import find_kind
from agentv.errors import Problem
from agentv.protocols import ProviderSettings
from agentv.spec.environment import env_variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agentv.api.store_files import StoreLocation
    from agentv.evals import Target
    from agentv.protocols import Provider

_SCHEMES = ("http://", "https://", "ws://", "wss://")


class Permissions(Struct, frozen=True):
    """Variables and hosts that targets of untrusted files may use."""

    variables: frozenset[str] = frozenset()
    """Names of environment variables."""
    hosts: frozenset[str] = frozenset()
    """Hosts, as `example.com` or `example.com:8080`, in lower case."""

    @classmethod
    def of(cls, variables: tuple[str, ...], hosts: tuple[str, ...]) -> Permissions:
        """Return the permissions that options give."""
        return cls(frozenset(variables), frozenset(host.lower() for host in hosts))


def check_untrusted(target: Target, provider: Provider, allowed: Permissions) -> list[Problem]:
    """Return a problem for everything that `--no-exec` forbids a target: code, variables and hosts."""
    settings = ProviderSettings.of(provider)
    reasons = []
    if settings.executes:
        reasons.append("would run a program, which --no-exec forbids")
    names = dict.fromkeys((*env_variables(target.settings), *settings.secret_names, *settings.variable_names))
    reasons += [
        f"would use the environment variable {name}, which --no-exec forbids: --allow-env {name} allows it"
        for name in names
        if name not in allowed.variables
    ]
    urls = dict.fromkeys((*settings.urls, *_urls_in(_resolved(provider) or target.settings)))
    for host in dict.fromkeys(map(_host, urls)):
        if not {host, host.rpartition(":")[0] or host} & allowed.hosts:
            reasons.append(f"would send to {host!r}, which --no-exec forbids: --allow-host {host} allows it")
    return [Problem("", f"target {target.name!r} {reason}", "whole", target.location) for reason in reasons]


def check_untrusted_store(setting: str, location: StoreLocation, allowed: Permissions) -> list[Problem]:
    """Return a problem for everything that `--no-exec` forbids the `store` of a project: variables and hosts."""
    reasons = [
        f"would use the environment variable {name}, which --no-exec forbids: --allow-env {name} allows it"
        for name in dict.fromkeys(env_variables({"store": setting}))
        if name not in allowed.variables
    ]
    reasons += [
        f"would send runs to {host!r}, which --no-exec forbids: --allow-host {host} allows it"
        for host in find_kind(location).hosts(location.address)
        if host.lower() not in allowed.hosts
    ]
    return [Problem("", f"the `store` of the project {reason}", "whole") for reason in reasons]


def _resolved(provider: Provider) -> Mapping[str, Any] | None:
    """Return the settings of a provider with the values of variables, which may contain the host."""
    names = getattr(provider, "__struct_fields__", ())
    return {name: getattr(provider, name) for name in names} or None


def _urls_in(value: Any) -> Iterator[str]:
    """Yield all texts of settings that are addresses."""
    if isinstance(value, str):
        if value.strip().lower().startswith(_SCHEMES):
            yield value.strip()
    elif isinstance(value, dict):
        for item in value.values():
            yield from _urls_in(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _urls_in(item)


def _host(url: str) -> str:
    """Return the host of a URL, with its port if it has one."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return url
    return f"{parts.hostname}:{port}" if port is not None else parts.hostname or url
