"""Where a named thing lives: our own in a table, other people's behind entry points."""

from collections.abc import Mapping
from typing import Any

from agentv.errors import PluginError

EVALUATORS: Mapping[str, str] = {
    "tool_trajectory": "agentv.evaluators.trajectory:ToolTrajectory",
    "expected_messages": "agentv.evaluators.messages:ExpectedMessages",
}

PROVIDERS: Mapping[str, str] = {
    "cli": "agentv.providers.cli:Cli",
    "mock": "agentv.providers.mock:Mock",
    "replay": "agentv.providers.replay:Replay",
}

_found: dict[tuple[str, str], Any] = {}


def find_evaluator(name: str) -> Any | None:
    """The class of this evaluator type, or `None` when nobody provides it."""
    return _find(name.replace("-", "_"), EVALUATORS, "agentv.evaluators")


def evaluator_names() -> list[str]:
    """Every evaluator type that can be written, other people's included."""
    return sorted({*EVALUATORS, *(point.name for point in _entry_points("agentv.evaluators"))})


def find_provider(name: str) -> Any | None:
    """The class of this provider, or `None` when nobody has it."""
    return _find(name.replace("-", "_"), PROVIDERS, "agentv.providers")


def provider_names() -> list[str]:
    """Every provider that can be written, other people's included."""
    return sorted({*PROVIDERS, *(point.name for point in _entry_points("agentv.providers"))})


def _find(name: str, built_in: Mapping[str, str], group: str) -> Any | None:
    known = _found.get((group, name))
    if known is not None:
        return known
    place = built_in.get(name)
    if place is not None:
        from importlib import import_module  # noqa: PLC0415 - a module is loaded when it is named

        module, _, attribute = place.partition(":")
        _found[group, name] = getattr(import_module(module), attribute)
        return _found[group, name]
    for point in _entry_points(group):
        if point.name.replace("-", "_") == name:
            try:
                return point.load()
            except Exception as error:
                distribution = point.dist.name if point.dist else "an unknown distribution"
                raise PluginError(point.name, distribution, error) from error
    return None


def _entry_points(group: str) -> Any:
    from importlib.metadata import entry_points  # noqa: PLC0415 - four times the cost of bare Python

    return entry_points(group=group)
