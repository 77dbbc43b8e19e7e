"""Personas and conversations of an execution, checked before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentv.errors import Problem, SpecError
from agentv.protocols import ProviderSettings
from agentv.redaction.known_secrets import stored_secrets
from agentv.spec.personas import persona_variables, resolve_persona

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agentv.api.untrusted import Permissions
    from agentv.evals import Eval, Target
    from agentv.model.request import Persona, PersonaSettings
    from agentv.protocols import Provider

PersonaKey = tuple[str, str]
"""Eval and id of a persona."""


def resolve_personas(
    personas: Sequence[Persona], eval_id: str, environment: Mapping[str, str], untrusted: Permissions | None
) -> tuple[dict[PersonaKey, PersonaSettings], dict[str, str], list[Problem]]:
    """Return the settings of the personas of an eval, their secrets, and the problems of both."""
    settings: dict[PersonaKey, PersonaSettings] = {}
    secrets: dict[str, str] = {}
    problems: list[Problem] = []
    for persona in personas:
        allowed = None if untrusted is None else untrusted.variables
        forbidden = [name for name in persona_variables(persona) if allowed is not None and name not in allowed]
        problems += [
            Problem(
                "",
                f"persona {persona.id!r} would use the environment variable {name}, which --no-exec forbids: "
                f"--allow-env {name} allows it",
                "whole",
            )
            for name in forbidden
        ]
        try:
            settings[eval_id, persona.id] = resolve_persona(persona, environment)
        except SpecError as error:
            problems += error.problems
        secrets |= stored_secrets({"headers": persona.headers, "persona_env": persona.env}, environment)
    return settings, secrets, problems


def check_conversations(eval_: Eval, providers: Mapping[tuple[str, str], Provider]) -> list[Problem]:
    """Return the problems of targets that cannot hold the conversations of an eval, or not with its personas."""
    if not eval_.has_conversations and not eval_.personas:
        return []
    opened = [(target, providers.get((eval_.id, target.name))) for target in eval_.targets]
    return [
        problem
        for target, provider in opened
        if provider is not None
        for problem in _check_target(eval_, target, ProviderSettings.of(provider))
    ]


def _check_target(eval_: Eval, target: Target, settings: ProviderSettings) -> list[Problem]:
    problems = []
    if eval_.has_conversations and settings.conversation_problem is not None:
        problems.append(f"cannot hold the conversations of this eval: {settings.conversation_problem}")
    names = [persona.id for persona in eval_.personas if persona.env]
    if names and settings.persona_env_problem is not None:
        problems.append(f"cannot have the variables (`env`) of persona {names[0]!r}: {settings.persona_env_problem}")
    return [Problem("", f"target {target.name!r} {reason}", "whole", target.location) for reason in problems]
