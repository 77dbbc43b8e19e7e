"""Personas: the users of conversations, from `agentv.yaml`, an eval, or files of the folder `personas`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentv.errors import Problem, SpecError
from agentv.model.request import DEFAULT_PERSONA as DEFAULT
from agentv.model.request import Persona, PersonaSettings
from agentv.spec.discovery import SUFFIXES as EVAL_SUFFIXES
from agentv.spec.environment import env_variables, substitute
from agentv.spec.file_format import PersonaEntry
from agentv.spec.validation import build, choice_message, short_repr, to_json
from agentv.spec.yaml import SourceFile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PERSONA_FOLDER = "personas"
SUFFIXES = (".yaml", ".yml")
_HEADER_BREAKS = ("\r", "\n", "\0")


def check_personas(data: Any, path: str = "personas") -> tuple[list[Persona], list[Problem]]:
    """Return the personas of a list, and all problems of the list."""
    personas: dict[str, Persona] = {}
    problems: list[Problem] = []
    for index, item in enumerate(data if isinstance(data, (list, tuple)) else ()):
        persona, found = check_persona(item, f"{path}[{index}]")
        problems += found
        if persona is not None and persona.id in personas:
            problems.append(Problem(f"{path}[{index}].id", f"{persona.id!r} is already the id of another persona"))
        elif persona is not None:
            personas[persona.id] = persona
    return list(personas.values()), problems


def check_persona(data: Any, path: str) -> tuple[Persona | None, list[Problem]]:
    """Return the persona of a mapping, or its problems."""
    if not isinstance(data, Mapping):
        return None, [Problem(path, f"expected a mapping with an `id`, got {short_repr(data)}")]
    text, problems = to_json(dict(data), path)
    entry, problems = build(PersonaEntry, text, path) if text is not None else (None, problems)
    if entry is None:
        return None, problems
    problems = []
    if entry.id == DEFAULT:
        problems.append(Problem(f"{path}.id", f"{DEFAULT!r} stands for no persona: choose another name"))
    for field, values in (("headers", entry.headers), ("env", entry.env)):
        problems += [
            Problem(f"{path}.{field}.{name}", "holds a line break or a NUL character")
            for name, value in values.items()
            if any(char in text for char in _HEADER_BREAKS for text in (name, value))
        ]
    if problems:
        return None, problems
    return Persona(
        id=entry.id, description=entry.description, vars=entry.vars, headers=entry.headers, env=entry.env
    ), []


def find_persona_files(root: Path) -> list[Path]:
    """Return the files of the folder `personas` of a project, in the order of their names."""
    folder = root / PERSONA_FOLDER
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix in SUFFIXES and path.is_file())


def is_persona_file(path: Path) -> bool:
    """Return whether a file is one of a folder `personas`."""
    is_yaml = path.suffix in SUFFIXES and not path.name.endswith(EVAL_SUFFIXES)
    return is_yaml and path.absolute().parent.name == PERSONA_FOLDER and path.is_file()


def load_persona_files(files: Sequence[tuple[Path, str]]) -> list[Persona]:
    """Load files with one persona each, or a list of them; raise `SpecError` with all problems.

    Each file is given with the name that messages use. The id of a single persona is by default the name of its file.
    """
    personas: dict[str, Persona] = {}
    problems: list[Problem] = []
    for path, name in files:
        source = SourceFile(path, name)
        data = source.data
        if isinstance(data, Mapping) and set(data) == {"personas"}:
            found, wrong = check_personas(data["personas"], "personas")
        elif isinstance(data, list):
            found, wrong = check_personas(data, "")
        else:
            persona, wrong = check_persona({"id": path.stem, **data} if isinstance(data, Mapping) else data, "")
            found = [] if persona is None else [persona]
        problems += [source.locate(problem) for problem in wrong]
        for persona in found:
            if persona.id in personas:
                message = f"{persona.id!r} is already the id of a persona of another file in this folder"
                problems.append(source.locate(Problem("", message, "whole")))
            personas[persona.id] = persona
    if problems:
        raise SpecError(problems)
    return list(personas.values())


def select_personas(
    names: str | list[str] | None, known: Mapping[str, Persona], path: str
) -> tuple[tuple[Persona | None, ...], list[Problem]]:
    """Return the personas of these names, `None` for `default`, and the problems of unknown names."""
    if names is None:
        return (None,), []
    listed = [names] if isinstance(names, str) else names
    problems = []
    for index, name in enumerate(listed):
        if name != DEFAULT and name not in known:
            place = path if isinstance(names, str) else f"{path}[{index}]"
            problems.append(Problem(place, _unknown_persona(name, known)))
    chosen = dict.fromkeys(listed)
    return tuple([known.get(name) for name in chosen if name == DEFAULT or name in known]), problems


def _unknown_persona(name: str, known: Mapping[str, Persona]) -> str:
    if known:
        return f"there is no such persona: {choice_message(name, [*known, DEFAULT])}"
    where = "`personas` of this file or of agentv.yaml, or a file of the folder `personas`"
    return f"there is no persona {name!r}: define it in {where}"


def resolve_persona(persona: Persona, environment: Mapping[str, str]) -> PersonaSettings:
    """Return the headers and the environment variables of a persona with `${NAME}` replaced.

    Raises `SpecError` if a variable is not set.
    """
    missing: list[str] = []
    headers = substitute(persona.headers, environment, missing)
    env = substitute(persona.env, environment, missing)
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        message = f"persona {persona.id!r} needs the environment variables {names}, which are not set"
        fix = "set them, or read a file with `--env-file .env`"
        raise SpecError([Problem("", f"{message}: {fix}", "whole")])
    return PersonaSettings(headers, env)


def persona_variables(persona: Persona) -> list[str]:
    """Return the names of the environment variables that a persona uses."""
    return list(dict.fromkeys(env_variables([persona.headers, persona.env])))
