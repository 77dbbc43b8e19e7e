"""An eval, a case and a project as people write them: these classes are the file format and its JSON Schema."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from agentv.model.response import Price

Share = Annotated[float, Meta(ge=0, le=1)]
Times = Annotated[int, Meta(ge=1, le=100_000)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Messages = str | dict[str, Any] | list[Any]
"""A text, one message, or a list of messages."""
Names = Annotated[str, Meta(min_length=1)] | Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1)]
Plain = str | int | float | bool | None
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]


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
    max_cost: Annotated[float, Meta(gt=0, le=1_000_000_000)] | None = None
    """US dollars that an execution may spend; of several evals, the smallest counts."""
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    """Tokens that an execution may use; of several evals, the smallest counts."""


class NotEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a column must not hold."""

    without: Plain | list[Plain] = field(name="not")
    """A value, or several of which it may hold none."""


class SampleEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How many cases of a dataset to take, and which."""

    n: Annotated[int, Meta(ge=1)]
    """How many; all, where there are no more."""
    seed: Seed = 0
    """Another number takes others; the same number and the same ids always take the same cases."""


class ShuffleEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """In which disorder to run the cases of a dataset."""

    seed: Seed = 0
    """Another number makes another order; the same number and the same ids always make the same."""


class DatasetEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Files of cases, or of rows that are made into cases."""

    files: Names
    """A file, or several; `*` and `?` stand for parts of names, `**` for any folders."""
    format: Literal["jsonl", "csv", "tsv", "yaml"] | None = None
    """What the files are, where their suffixes do not say."""
    template: dict[str, Any] | None = None
    """A case in which `{{ column }}` stands for a column of the row, in any text at any depth."""
    where: dict[str, Plain | list[Plain] | NotEntry] = {}
    """Columns and what they must hold: a value, one of a list of values, or anything `not` of these."""
    sample: SampleEntry | None = None
    """Takes some of the cases, by chance, but the same ones each time."""
    shuffle: bool | ShuffleEntry = False
    """Runs the cases in an order of chance, but the same one each time."""
    limit: Annotated[int, Meta(ge=1)] | None = None
    """Runs no more cases than this, the first ones."""


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
    judge: Annotated[str, Meta(min_length=1)] | None = None
    """The target that judges where an evaluator names none; it need not be tested itself."""
    defaults: DefaultsEntry = DefaultsEntry()
    cases: list[Any] | UnsetType = UNSET
    """The tests."""
    evalcases: list[Any] | UnsetType = UNSET
    """The same as `cases`."""
    tests: list[Any] | UnsetType = UNSET
    """The same as `cases`."""
    dataset: Names | DatasetEntry | None = None
    """Files with one case a line or row, beside or instead of `cases`; or more about such files."""


class ProjectEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`agentv.yaml`: what all evals below its folder share."""

    schema: str | None = field(name="$schema", default=None)
    targets: list[Any] = []
    """The systems under test."""
    judge: Annotated[str, Meta(min_length=1)] | None = None
    """The target that judges where neither an evaluator nor its eval names one."""
    defaults: DefaultsEntry = DefaultsEntry()
    store: Annotated[str, Meta(min_length=1)] | None = None
    """Where runs are kept: a file, relative to this one; `.agentv/runs.db` by default, `off` for nowhere."""
    prices: dict[str, Price] = {}
    """What models cost, by name, beside the table that agentv brings and before it; `*` stands for any letters."""
    persist: Literal["summary", "messages", "full"] | None = None
    """How much of a run is kept: its result alone, the conversation too (the default), or all that the agent sent."""
