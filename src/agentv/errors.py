"""Everything this package raises on purpose; any other exception is our bug.

AgentVError
├── SpecError       a configuration that cannot mean anything, with every problem found
├── PluginError     somebody's package was found and does not load
├── FormatError     foreign data that cannot be read at all
├── ProviderError   a target that could not be asked
├── OutputError     results that could not be written
├── StoreError      the run store cannot be opened, or was written by a newer version
└── EvaluationError a check that could not be carried out on this data
    └── UndecidedError because the reply was not understood completely
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple


class Place(NamedTuple):
    """Somewhere in a file."""

    file: str
    line: int
    """From 1."""
    column: int = 0
    """From 1; 0 when only the line is known."""
    width: int = 1
    """How many characters to underline."""
    text: str = ""
    """The line itself, to be shown."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


class Problem(NamedTuple):
    """One thing wrong with a configuration."""

    path: str
    """Where, as `evaluators[0].expected[2].tool`."""
    message: str
    """What, what was expected instead, and the likely fix."""
    about: Literal["value", "key", "whole"] = "value"
    """What in the file it points at: the value there, its key, or the value with a message that names it itself."""
    place: Place | None = None
    """Where in which file, when it comes from one."""

    @property
    def sentence(self) -> str:
        """The message with the name of what it is about; the place says the rest."""
        name = self.path.rpartition(".")[2]
        return f"{name}: {self.message}" if name and self.about == "value" else self.message

    def __str__(self) -> str:
        if self.place is not None:
            return f"{self.place}: {self.sentence}"
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


class UndecidedError(EvaluationError):
    """A check cannot be decided because the reply was not understood completely; the message names the place."""


class ProviderError(AgentVError):
    """A target could not be asked; a transient reason may pass, so that asking again makes sense."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class OutputError(AgentVError):
    """Results could not be written; those that were stay where they are."""

    def __init__(self, name: str, cause: OSError) -> None:
        reason = cause.strerror or type(cause).__name__
        super().__init__(
            f"{name} cannot be written: {reason}. What was finished before is in it; make room and run again"
        )
        self.name = name
        self.cause = cause

    def __reduce__(self) -> tuple[type["OutputError"], tuple[str, OSError]]:
        return type(self), (self.name, self.cause)


class StoreError(AgentVError):
    """The run store cannot be used; what was committed before is safe."""


def suggest(value: object, known: Iterable[str], opening: str = "; did") -> str:
    """`; did you mean 'minimums'?`, or nothing when no known name is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    # The first of several spellings is the one that we write ourselves.
    by_letters = {name.replace("_", "").replace("-", "").lower(): name for name in reversed(list(known))}
    plain = str(value).replace("_", "").replace("-", "").lower()
    close = get_close_matches(plain, by_letters, n=1, cutoff=0.6)
    return f"{opening} you mean {by_letters[close[0]]!r}?" if close else ""
