"""Everything this package raises on purpose; any other exception is our bug.

AgentVError
├── SpecError       a configuration that cannot mean anything, with every problem found
├── PluginError     somebody's package was found and does not load
├── FormatError     foreign data that cannot be read at all
└── EvaluationError a check that could not be carried out on this data
"""

from typing import Literal, NamedTuple


class Problem(NamedTuple):
    """One thing wrong with a configuration."""

    path: str
    """Where, as `evaluators[0].expected[2].tool`."""
    message: str
    """What, what was expected instead, and the likely fix."""
    about: Literal["value", "key", "whole"] = "value"
    """What in the file it points at: the value there, its key, or the value with a message that names it itself."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class AgentVError(Exception):
    """The root of this package's own exceptions."""


class SpecError(AgentVError, ValueError):
    """A configuration is wrong; nothing was evaluated."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[type["SpecError"], tuple[list[Problem]]]:
        return type(self), (list(self.problems),)


class PluginError(AgentVError):
    """A package offers this name but fails to load: its defect, not the user's."""

    def __init__(self, name: str, distribution: str, cause: BaseException) -> None:
        super().__init__(f"{name!r} from {distribution} does not load: {type(cause).__name__}: {cause}")
        self.name = name
        self.distribution = distribution
        self.cause = cause

    def __reduce__(self) -> tuple[type["PluginError"], tuple[str, str, BaseException]]:
        return type(self), (self.name, self.distribution, self.cause)


class FormatError(AgentVError, ValueError):
    """Foreign data cannot be read as `format`; `path` says where."""

    def __init__(self, message: str, *, format: str = "agentv", path: str = "") -> None:  # noqa: A002 - the house's word
        super().__init__(f"{path}: {message}" if path else message)
        self.format = format
        self.path = path


class EvaluationError(AgentVError):
    """A check could not be carried out on this data, which is neither a pass nor a fail."""
