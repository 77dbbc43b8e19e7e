"""Exceptions of this package, and problems of a configuration with their locations.

AgentVError
├── SpecError         a configuration is wrong; it lists every problem
├── PluginError       an installed plugin cannot be imported
├── FormatError       data in a foreign format cannot be read
├── ProviderError     a target could not be called
├── OutputError       results could not be written
├── StoreError        the run store cannot be opened, or was written by a newer version
│   └── DamagedRunError  the data of stored runs was changed or lost
└── EvaluationError   an evaluator could not decide on this data
    └── UndecidedError  because the reply was not understood completely

Any other exception that leaves this package is a bug.
"""

from typing import Literal, NamedTuple


class Location(NamedTuple):
    """A position in a file."""

    file: str
    line: int
    """Counted from 1."""
    column: int = 0
    """Counted from 1; 0 if only the line is known."""
    width: int = 1
    """Number of characters to underline."""
    text: str = ""
    """The line itself, for the excerpt in a report."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.column else f"{self.file}:{self.line}"


class Problem(NamedTuple):
    """One thing that is wrong with a configuration."""

    path: str
    """Path of the value, such as `evaluators[0].expected[2].tool`."""
    message: str
    """The mistake, what was expected instead, and the likely fix."""
    about: Literal["value", "key", "whole"] = "value"
    """The part that is wrong: the value at `path`, its key, or the value with a message that already names it."""
    location: Location | None = None
    """Position in a file, if the configuration comes from one."""
    code: str = ""
    """Code of the problem; the command line derives it from the message if this is empty."""

    @property
    def sentence(self) -> str:
        """The message with the name of the value, without its location."""
        name = self.path.rpartition(".")[2]
        return f"{name}: {self.message}" if name and self.about == "value" else self.message

    def __str__(self) -> str:
        if self.location is not None:
            return f"{self.location}: {self.sentence}"
        return f"{self.path}: {self.message}" if self.path else self.message


class AgentVError(Exception):
    """Base class of all exceptions of this package."""


class SpecError(AgentVError, ValueError):
    """A configuration is wrong; nothing was evaluated."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)

    def __reduce__(self) -> tuple[type["SpecError"], tuple[list[Problem]]]:
        return type(self), (list(self.problems),)


class PluginError(AgentVError):
    """An installed package provides this name but cannot be imported."""

    def __init__(self, name: str, distribution: str, cause: BaseException) -> None:
        super().__init__(f"{name!r} from {distribution} does not load: {type(cause).__name__}: {cause}")
        self.name = name
        self.distribution = distribution
        self.cause = cause

    def __reduce__(self) -> tuple[type["PluginError"], tuple[str, str, BaseException]]:
        return type(self), (self.name, self.distribution, self.cause)


class FormatError(AgentVError, ValueError):
    """Data cannot be read as `format`; `path` is the position in the data."""

    def __init__(self, message: str, *, format: str = "agentv", path: str = "") -> None:  # noqa: A002 - public name
        super().__init__(f"{path}: {message}" if path else message)
        self.format = format
        self.path = path


class EvaluationError(AgentVError):
    """An evaluator could not decide on this data; the result is an error, neither a pass nor a fail."""


class UndecidedError(EvaluationError):
    """An evaluator cannot decide because the reply was not understood completely; the message says where."""


class ProviderError(AgentVError):
    """A target could not be called; with `transient`, a retry may succeed."""

    def __init__(self, message: str, *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient


class ExecutorError(AgentVError):
    """The engine that runs the targets cannot be used, or was lost."""


class OutputError(AgentVError):
    """Results could not be written; those already written remain."""

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
    """The run store cannot be used; data committed before is safe."""


class StoreConnectionError(StoreError):
    """The server of a run store cannot be reached; the command may succeed later."""


MAX_DAMAGED = 5
"""Number of damaged runs that a message names."""


class DamagedRunError(StoreError):
    """Stored runs whose data was changed or lost; `runs` holds the reasons by the ids of the runs."""

    def __init__(self, runs: dict[str, str]) -> None:
        named = [f"run {name} is damaged ({reason})" for name, reason in list(runs.items())[:MAX_DAMAGED]]
        more = [f"and {len(runs) - MAX_DAMAGED:,} more"] if len(runs) > MAX_DAMAGED else []
        execution = next(iter(runs)).rpartition("-")[0]
        super().__init__(
            f"{', '.join([*named, *more])}: what is stored of it cannot be trusted. Run it again with"
            f" `agentv eval --resume {execution} --retry-errors`, or restore a copy of the store"
        )
        self.runs = runs

    def __reduce__(self) -> tuple[type["DamagedRunError"], tuple[dict[str, str]]]:
        return type(self), (self.runs,)
