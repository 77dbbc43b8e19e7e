"""An eval, a case and a project as people write them: these classes are the file format and its JSON Schema."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

Share = Annotated[float, Meta(ge=0, le=1)]
Times = Annotated[int, Meta(ge=1, le=100_000)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Messages = str | dict[str, Any] | list[Any]
"""A text, one message, or a list of messages."""


class CaseEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One test."""

    id: Annotated[str, Meta(min_length=1)] | int
    """Its name in results; unique in the eval."""
    description: str | None = None
    """What it is for, for people."""
    input: Messages | UnsetType = UNSET
    """What the agent is asked: a text, or messages. `file://` names a file of the project that holds the text."""
    input_messages: Messages | UnsetType = UNSET
    """The same as `input`."""
    expected: Messages | UnsetType = UNSET
    """The same as `expected_messages`."""
    expected_messages: Messages | UnsetType = UNSET
    """A golden conversation: its tool calls must be made, in this order."""
    evaluators: list[Any] = []
    """Checks of this case, beside those of `defaults`."""
    vars: dict[str, Any] = {}
    """Values for the agent; `{{ name }}` in the input stands for one of them."""
    tags: list[str] = []
    """Words to select it by, with `--tag`."""
    threshold: Share | None = None
    """Lets the case pass by its weighted mean, as long as every `required` evaluator passes."""
    repeat: Times | None = None
    """How often it is run."""
    skip: bool | str = False
    """Not run; a text says why."""
    only: bool = False
    """When any case of the eval has this, only those are run."""
    metadata: dict[str, Any] = {}
    """Whatever should be found again beside the case."""


class DefaultsEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What holds for every case that does not say otherwise."""

    evaluators: list[Any] = []
    """Added to each case's; a case's evaluator of the same `name` replaces one of these."""
    repeat: Times | None = None
    """How often each case is run; once by default."""
    threshold: Share | None = None
    """Lets a case pass by its weighted mean, as long as every `required` evaluator passes."""
    vars: dict[str, Any] = {}
    """Values for the agent, beside each case's."""
    tags: list[str] = []
    """Tags of every case."""
    timeout_s: Seconds | None = None
    """How long one attempt may take, where the target does not say."""
    retries: Annotated[int, Meta(ge=0, le=100)] | None = None
    """How often a failure that may pass is tried again, where the target does not say."""
    max_concurrency: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    """How many attempts may be under way at once."""


class EvalEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One file of cases for one or more targets."""

    schema: str | None = field(name="$schema", default=None)
    name: Annotated[str, Meta(min_length=1)] | None = None
    """How results call this eval; by default its file's name."""
    description: str | None = None
    """What it is for, for people."""
    target: str | list[str] | None = None
    """Which of the targets to test, by name; all that are defined in this file by default."""
    targets: list[Any] = []
    """The systems under test, beside those of `agentv.yaml`."""
    defaults: DefaultsEntry = DefaultsEntry()
    cases: list[Any] | UnsetType = UNSET
    """The tests."""
    evalcases: list[Any] | UnsetType = UNSET
    """The same as `cases`."""
    tests: list[Any] | UnsetType = UNSET
    """The same as `cases`."""
    dataset: Annotated[str, Meta(min_length=1)] | None = None
    """A JSONL file with one case a line, beside or instead of `cases`."""


class ProjectEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`agentv.yaml`: what all evals below its folder share."""

    schema: str | None = field(name="$schema", default=None)
    targets: list[Any] = []
    """The systems under test."""
    defaults: DefaultsEntry = DefaultsEntry()
    store: str | None = None
    """Where runs are kept; reserved for the run store."""
    persist: Literal["summary", "messages", "full"] | None = None
    """How much of a run is kept; reserved for the run store."""
