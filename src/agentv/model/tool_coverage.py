"""Declared tools, and the report of `agentv coverage`."""

from typing import Any, Literal

from msgspec import Struct

COVERAGE_SCHEMA = "agentv.tool_coverage/1"
ToolStatus = Literal["never called", "called", "asserted"]
ToolSource = Literal["declared", "target", "seen"]


class ToolArgument(Struct, frozen=True, kw_only=True):
    """Argument of a declared tool."""

    name: str
    """Name of the argument."""
    values: tuple[Any, ...] = ()
    """All values that it may have; empty if they are not enumerated."""
    required: bool = False
    """`True` if every call needs it."""


class DeclaredTool(Struct, frozen=True, kw_only=True):
    """Tool that an eval or a project declares."""

    name: str
    """Name of the tool."""
    arguments: tuple[ToolArgument, ...] = ()
    """Arguments of the tool, as far as they are declared."""


class ValueCoverage(Struct, frozen=True, kw_only=True):
    """Enumerated value of an argument."""

    value: Any
    """The value."""
    calls: int
    """Number of calls with this value."""


class ArgumentCoverage(Struct, frozen=True, kw_only=True):
    """Argument of a tool."""

    name: str
    """Name of the argument."""
    declared: bool
    """`True` if a definition of the tool has it."""
    calls: int
    """Number of calls with this argument."""
    values: tuple[ValueCoverage, ...] = ()
    """Enumerated values, if a definition has them."""


class ToolCoverage(Struct, frozen=True, kw_only=True):
    """Tool, and the extent to which the evals cover it."""

    name: str
    """Name of the tool."""
    sources: tuple[ToolSource, ...]
    """Places that name it: a declaration in a file, the target, or stored calls."""
    status: ToolStatus
    """`asserted` if the evals notice a change of one of its calls, `called` if they do not."""
    calls: int
    """Number of calls."""
    cases: int
    """Number of cases in which it is called."""
    failing_path: bool
    """`True` if one of its calls failed."""
    asserted_by: str | None
    """Case whose evaluators notice a change of a call; `None` if there is none."""
    called_by: str | None
    """First case in which it is called."""
    arguments: tuple[ArgumentCoverage, ...] = ()
    """Arguments, declared ones first."""


class PersonaCoverage(Struct, frozen=True, kw_only=True):
    """Persona, and the number of its runs."""

    id: str
    """Id of the persona."""
    runs: int
    """Number of its runs."""


class CoverageReport(Struct, frozen=True, kw_only=True):
    """Result of `agentv coverage`."""

    schema: str = COVERAGE_SCHEMA
    """Format and its version."""
    runs: int
    """Number of runs that were looked at: the last ones of each case."""
    unknown_calls: int
    """Number of these whose calls are not known, or not all of them."""
    cases: int
    """Number of cases of the evals."""
    cases_without_runs: int
    """Number of these without any stored run."""
    tools: tuple[ToolCoverage, ...]
    """All known tools."""
    asserted: int
    """Number of tools of which a change is noticed."""
    called: int
    """Number of tools that are called, and of which no change is noticed."""
    never_called: int
    """Number of tools that are never called."""
    coverage: float | None
    """Share of the tools that are asserted; `None` without any tools."""
    personas: tuple[PersonaCoverage, ...] = ()
    """Personas of the evals and of the runs."""
    next_cases: tuple[str, ...] = ()
    """Cases and evaluators to write next, one sentence each."""
