"""File format of evals, cases and projects: these classes define the YAML keys and the JSON Schema."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from agentv.model.mutation import Operator
from agentv.model.response import Price

Share = Annotated[float, Meta(ge=0, le=1)]
Times = Annotated[int, Meta(ge=1, le=100_000)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Messages = str | dict[str, Any] | list[Any]
"""A text, one message, or a list of messages."""
Names = Annotated[str, Meta(min_length=1)] | Annotated[list[Annotated[str, Meta(min_length=1)]], Meta(min_length=1)]
Plain = str | int | float | bool | None
Seed = Annotated[int, Meta(ge=0, le=2**63 - 1)]


class TurnEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One turn of a conversation: a message of the user, or a value that resumes a pending agent."""

    user: str | dict[str, Any] | UnsetType = UNSET
    """The message of the user: a text, or a message with `content`. `file://` names a file that contains the text."""
    simulate: dict[str, Any] | UnsetType | None = UNSET
    """From here on, the simulated user goes on; settings for it may follow. It is the last entry."""
    resume: Any = UNSET
    """The value for an agent that waits for one, such as an approval, in place of a message."""
    expected: Messages | UnsetType = UNSET
    """The same as `expected_messages`."""
    expected_messages: Messages | UnsetType = UNSET
    """The expected messages of this turn: their tool calls must be made, in this order."""
    evaluators: list[Any] = []
    """Evaluators of this turn only."""


class PersonaEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A person on the user side of a conversation."""

    id: Annotated[str, Meta(min_length=1)]
    """The name of the persona, which `persona` of a case and results use."""
    description: str = ""
    """A description for a simulated user; it is never sent to the target."""
    vars: dict[str, Any] = {}
    """Variables of its cases, unless a case has its own."""
    headers: dict[str, str] = {}
    """Headers of its requests, over those of the target; `${NAME}` stands for an environment variable."""
    env: dict[str, str] = {}
    """Environment variables of the program of a `cli` target; `${NAME}` stands for one of ours."""


class FactEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A fact that a simulated user states when the agent asks for it."""

    value: str | int | float
    """The value."""
    asked: Names | UnsetType = UNSET
    """Words or regular expressions in the agent's message that ask for it; by default the words of the fact's name."""
    tell: Annotated[str, Meta(min_length=1)] | None = None
    """The sentence that states it, with `{{ value }}`; by default the value alone."""


class StopEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Rules that end a conversation with a simulated user."""

    agent_says: Names | UnsetType = UNSET
    """Regular expressions for the agent's message, in any case of letters."""
    made: list[dict[str, Any] | str] = []
    """Calls that reach the goal, as in `expected` of `tool_trajectory`; their status is `ok` unless stated."""
    max_turns: Annotated[int, Meta(ge=1, le=1000)] | UnsetType = UNSET
    """The largest number of messages of the user, scripted ones included; 12 by default."""
    min_turns: Annotated[int, Meta(ge=1, le=1000)] | UnsetType = UNSET
    """The smallest number of turns, unless an error or a limit ends the conversation; 1 by default."""
    max_tool_errors: Annotated[int, Meta(ge=1, le=1000)] | UnsetType = UNSET
    """The number of failed tool calls in a row that ends the conversation; 5 by default."""


class SimulateEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A simulated user."""

    user: Literal["script", "facts", "model"] | UnsetType = UNSET
    """The driver: `facts` states facts when asked for them, `model` asks a model, `script` says the turns only."""
    opening: Annotated[str, Meta(min_length=1)] | None = None
    """The first message; without it the driver writes one."""
    goal: Annotated[str, Meta(min_length=1)] | None = None
    """The goal of the user."""
    facts: dict[str, FactEntry | str | int | float] = {}
    """The facts by name: a value, a mapping with `value`, or `unknown` for something that the user does not know."""
    fallback: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    """The answer to questions that no fact answers; `I do not know.` by default."""
    nudge: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    """The message when the agent neither asks nor finishes; `Please go on.` by default."""
    stop: StopEntry = StopEntry()
    """Rules that end the conversation."""
    target: Annotated[str, Meta(min_length=1)] | None = None
    """The target that writes the messages, with `user: model`."""
    retries: Annotated[int, Meta(ge=0, le=10)] | UnsetType = UNSET
    """The number of new conversations after a fault of the simulated user; 1 by default."""


class SimulateTurnEntry(SimulateEntry, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The turn from which on the simulated user goes on; its settings take precedence over those of the case."""

    max_turns: Annotated[int, Meta(ge=1, le=1000)] | UnsetType = UNSET
    """The same as `max_turns` of `stop`."""


class CaseEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One test case."""

    id: Annotated[str, Meta(min_length=1)] | int
    """The name of the case in results; unique in the eval."""
    description: str | None = None
    """A description for readers of the file."""
    input: Messages | UnsetType = UNSET
    """The input of the agent: a text, or messages. `file://` names a file of the project that contains the text."""
    input_messages: Messages | UnsetType = UNSET
    """The same as `input`."""
    expected: Messages | UnsetType = UNSET
    """The same as `expected_messages`."""
    expected_messages: Messages | UnsetType = UNSET
    """The expected conversation: its tool calls must be made, in this order."""
    turns: list[Any] | UnsetType = UNSET
    """The turns of a conversation, each a mapping or the text of the user; `input` is then the history before it."""
    simulate: dict[str, Any] | UnsetType = UNSET
    """A simulated user, who writes the messages of the conversation, or goes on after its `turns`."""
    persona: Names | None = None
    """The user: the id of a persona, or a list, which runs the case with each; `default` stands for none."""
    evaluators: list[Any] = []
    """Evaluators of this case, in addition to those of `defaults`; in a conversation, of all of its turns."""
    vars: dict[str, Any] = {}
    """Variables for the agent; `{{ name }}` in the input is replaced by the value of one of them."""
    tags: list[str] = []
    """Tags to select the case by, with `--tag`."""
    threshold: Share | None = None
    """Weighted mean score from which on the case passes, if every `required` evaluator passes."""
    repeat: Times | None = None
    """Number of runs of the case."""
    skip: bool | str = False
    """Do not run the case; a text is the reason."""
    only: bool = False
    """If any case of the eval has this, only those cases are run."""
    metadata: dict[str, Any] = {}
    """Any other data to keep with the case."""


class DefaultsEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Defaults for all cases."""

    evaluators: list[Any] = []
    """Evaluators added to each case; an evaluator of a case with the same `name` replaces one of these."""
    repeat: Times | None = None
    """Number of runs of each case; 1 by default."""
    threshold: Share | None = None
    """Weighted mean score from which on a case passes, if every `required` evaluator passes."""
    vars: dict[str, Any] = {}
    """Variables for the agent, in addition to those of each case."""
    persona: Names | None = None
    """The user of cases without a `persona`."""
    tags: list[str] = []
    """Tags of every case."""
    timeout_s: Seconds | None = None
    """Time limit of one attempt in seconds, unless the target has its own."""
    retries: Annotated[int, Meta(ge=0, le=100)] | None = None
    """Number of retries after a transient failure, unless the target has its own setting."""
    max_concurrency: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    """Number of attempts at the same time."""
    max_cost: Annotated[float, Meta(gt=0, le=1_000_000_000)] | None = None
    """US dollars that an execution may spend; of several evals, the smallest value applies."""
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    """Tokens that an execution may use; of several evals, the smallest value applies."""


class NotEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Values that a column must not have."""

    without: Plain | list[Plain] = field(name="not")
    """A value, or a list of values."""


class SampleEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A random sample of the cases of a dataset."""

    n: Annotated[int, Meta(ge=1)]
    """Number of cases; all, if there are fewer."""
    seed: Seed = 0
    """Seed of the sample; the same seed and the same ids always give the same cases."""


class ShuffleEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A random order of the cases of a dataset."""

    seed: Seed = 0
    """Seed of the order; the same seed and the same ids always give the same order."""


class DatasetEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Files of cases, or of rows that a template turns into cases."""

    files: Names
    """One or more files; `*` and `?` match parts of names, `**` matches any folders."""
    format: Literal["jsonl", "csv", "tsv", "yaml"] | None = None
    """The format of the files; by default that of their suffix."""
    template: dict[str, Any] | None = None
    """A case in which `{{ column }}` is replaced by a column of the row, in any text at any depth."""
    types: dict[str, Literal["string", "number", "integer", "boolean", "json"]] = {}
    """Types of columns of a table, whose cells are texts otherwise; an empty cell of another type is null."""
    where: dict[str, Plain | list[Plain] | NotEntry] = {}
    """Filter of rows by column: a value, a list of allowed values, or `not` with excluded values."""
    sample: SampleEntry | None = None
    """Run a random sample of the cases (seeded)."""
    shuffle: bool | ShuffleEntry = False
    """Run the cases in random order (seeded)."""
    limit: Annotated[int, Meta(ge=1)] | None = None
    """Run only the first cases, at most this many."""


class AcceptEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Changes of a reply that the eval need not notice."""

    operator: Operator
    """The kind of change, as `agentv mutate` names it."""
    tool: Annotated[str, Meta(min_length=1)] | None = None
    """The tool of the changed call; `*` and `?` make it a glob. By default any."""
    case: Annotated[str, Meta(min_length=1)] | None = None
    """The id of the case; `*` and `?` make it a glob. By default any."""
    reason: Annotated[str, Meta(min_length=1)]
    """The reason why the eval need not notice it."""


class MutateEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Settings of `agentv mutate`."""

    accept: list[AcceptEntry] = []
    """Changes that the eval need not notice: surviving mutants that are accepted."""


class ToolFunctionEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tool in OpenAI's format."""

    name: Annotated[str, Meta(min_length=1)]
    """The name of the tool."""
    description: str | None = None
    """A description of the tool."""
    parameters: dict[str, Any] | None = None
    """The JSON Schema of its arguments."""
    strict: bool | None = None
    """Not used."""


class ToolEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A tool of the agent, as OpenAI, Anthropic or MCP describe it."""

    name: Annotated[str, Meta(min_length=1)] | None = None
    """The name of the tool."""
    description: str | None = None
    """A description of the tool."""
    input_schema: dict[str, Any] | None = None
    """The JSON Schema of its arguments; values of `enum` are covered one by one."""
    input_schema_camel: dict[str, Any] | None = field(name="inputSchema", default=None)
    """The same as `input_schema`."""
    parameters: dict[str, Any] | None = None
    """The same as `input_schema`."""
    type: str | None = None
    """Not used."""
    function: ToolFunctionEntry | None = None
    """The tool, in OpenAI's format."""
    title: str | None = None
    """Not used."""
    annotations: dict[str, Any] | None = None
    """Not used."""
    output_schema: dict[str, Any] | None = field(name="outputSchema", default=None)
    """Not used."""


class EvalEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An eval: cases for one or more targets."""

    schema: str | None = field(name="$schema", default=None)
    """Address of the JSON Schema of this file, for editors."""
    name: Annotated[str, Meta(min_length=1)] | None = None
    """The name of the eval in results; by default the name of its file."""
    description: str | None = None
    """A description for readers of the file."""
    target: str | list[str] | None = None
    """Names of the targets to test; by default all that are defined in this file."""
    targets: list[Any] = []
    """The systems under test, in addition to those of `agentv.yaml`."""
    connectors: list[Any] | UnsetType = UNSET
    """The same as `targets`."""
    personas: list[Any] = []
    """The users of conversations, in addition to those of `agentv.yaml` and of the folder `personas`."""
    judge: Annotated[str, Meta(min_length=1)] | None = None
    """The judge of evaluators that name none: a target, which need not be tested itself."""
    defaults: DefaultsEntry = DefaultsEntry()
    cases: list[Any] | UnsetType = UNSET
    """The test cases."""
    evalcases: list[Any] | UnsetType = UNSET
    """The same as `cases`."""
    tests: list[Any] | UnsetType = UNSET
    """The same as `cases`."""
    scenarios: list[Any] | UnsetType = UNSET
    """The same as `cases`."""
    dataset: Names | DatasetEntry | None = None
    """Files with one case per line or row, in addition to or instead of `cases`; or settings for such files."""
    tools: list[Annotated[str, Meta(min_length=1)] | ToolEntry] = []
    """The tools of the agent, in addition to those of `agentv.yaml`: names or definitions, for `agentv coverage`."""
    mutate: MutateEntry = MutateEntry()
    """Settings of `agentv mutate`."""


class ProjectEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The project file `agentv.yaml`: settings of all evals below its folder."""

    schema: str | None = field(name="$schema", default=None)
    """Address of the JSON Schema of this file, for editors."""
    targets: list[Any] = []
    """The systems under test."""
    personas: list[Any] = []
    """The users of conversations, in addition to those of the folder `personas`."""
    judge: Annotated[str, Meta(min_length=1)] | None = None
    """The judge of evaluators, if neither they nor their eval name one: a target."""
    defaults: DefaultsEntry = DefaultsEntry()
    store: Annotated[str, Meta(min_length=1)] | None = None
    """The file of the run store, relative to this one; `.agentv/runs.db` by default, `off` for none."""
    prices: dict[str, Price] = {}
    """Prices of models by name, which override the table of agentv; `*` matches any characters."""
    tools: list[Annotated[str, Meta(min_length=1)] | ToolEntry] = []
    """The tools of the agent: names or definitions, for `agentv coverage`."""
    executor: Annotated[str, Meta(min_length=1)] | None = None
    """The workers that run the targets: `local` by default, `dask`, `ray`, or an address such as `dask://HOST:PORT`."""
    persist: Literal["summary", "messages", "full"] | None = None
    """Data of a run to store: its result, also the conversation (the default), or everything that the agent sent."""
