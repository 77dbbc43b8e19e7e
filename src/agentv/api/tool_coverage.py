"""Find out which tools, arguments and personas the evals of a project cover: `agentv coverage`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from agentv.api.mutation.kills import asks_judge, is_noticed
from agentv.api.mutation.sources import reply_of
from agentv.api.runs import read_runs
from agentv.api.score import evaluate_reply
from agentv.api.stored_traces import StoredTraces
from agentv.api.traces import trace_follower
from agentv.errors import DamagedRunError
from agentv.jsonio import dump_json
from agentv.matching.diff import quote
from agentv.matching.equality import canonical_key
from agentv.model.request import Scope
from agentv.model.tool_coverage import (
    ArgumentCoverage,
    CoverageReport,
    DeclaredTool,
    PersonaCoverage,
    ToolCoverage,
    ToolSource,
    ToolStatus,
    ValueCoverage,
)
from agentv.mutation.operators import mutants_of_calls
from agentv.scoring.calls import resolve_calls
from agentv.scoring.scorer import CaseScorer
from agentv.spec.evaluators import can_fail
from agentv.spec.tools import merge_tools, reported_tools

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from agentv.evals import CheckedCase, Eval
    from agentv.model.conversation import ToolCall
    from agentv.model.response import ProviderResponse
    from agentv.model.stored import ExecutionRow, RunRow
    from agentv.protocols import Store

MAX_TRIES = 3
"""Runs with the same evaluators in which a change of a tool's call is tried."""
MAX_ARGUMENTS = 100
"""Arguments of one tool that are counted, beside declared ones."""
MAX_NEXT = 50
"""Cases to write next that are listed."""
SOURCES: tuple[ToolSource, ...] = ("declared", "target", "seen")
REPORTED_KEYS = ("tools", "available_tools", "tool_definitions")
"""Keys of a reply's metadata that list the tools of the agent."""


class _Tool:
    """Counts of one tool."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sources: set[ToolSource] = set()
        self.definition = DeclaredTool(name=name)
        self.calls = 0
        self.cases: dict[tuple[str, str], None] = {}
        self.has_failed = False
        self.asserted_by: str | None = None
        self.arguments: Counter[str] = Counter()
        self.values: Counter[tuple[str, Hashable]] = Counter()
        """Calls by the values of arguments whose values are enumerated."""
        self.tries: Counter[bytes] = Counter()
        self._enumerated: set[str] = set()

    def define(self, tool: DeclaredTool, source: ToolSource) -> None:
        """Add a definition; the first one with arguments counts."""
        self.sources.add(source)
        if tool.arguments and not self.definition.arguments:
            self.definition = tool
            self._enumerated = {argument.name for argument in tool.arguments if argument.values}

    def add(self, call: ToolCall, case: tuple[str, str]) -> None:
        """Count a call."""
        self.sources.add("seen")
        self.calls += 1
        self.cases[case] = None
        self.has_failed = self.has_failed or call.effective_status == "error"
        if isinstance(call.input, dict):
            for name in call.input:
                if len(self.arguments) < MAX_ARGUMENTS or name in self.arguments:
                    self.arguments[name] += 1
            for name in self._enumerated & call.input.keys():
                self.values[name, canonical_key(call.input[name])] += 1

    @property
    def status(self) -> ToolStatus:
        if self.asserted_by is not None:
            return "asserted"
        return "called" if self.calls else "never called"

    def coverage(self) -> ToolCoverage:
        """Return the result."""
        declared = {argument.name: argument for argument in self.definition.arguments}
        names = [*declared, *(name for name in self.arguments if name not in declared)]
        arguments = [
            ArgumentCoverage(
                name=name,
                declared=name in declared,
                calls=self.arguments[name],
                values=tuple(
                    [
                        ValueCoverage(value=value, calls=self.values[name, canonical_key(value)])
                        for value in (declared[name].values if name in declared else ())
                    ]
                ),
            )
            for name in names
        ]
        return ToolCoverage(
            name=self.name,
            sources=tuple([source for source in SOURCES if source in self.sources]),
            status=self.status,
            calls=self.calls,
            cases=len(self.cases),
            failing_path=self.has_failed,
            asserted_by=self.asserted_by,
            called_by=next((case_id for _, case_id in self.cases), None),
            arguments=tuple(arguments),
        )


class CoverageMeter:
    """Coverage of some evals, measured run by run."""

    def __init__(self, evals: Sequence[Eval]) -> None:
        self._evals = {eval_.id: eval_ for eval_ in evals}
        self._cases = {(eval_.id, case.case.id): case for eval_ in evals for case in eval_.cases if not case.skip}
        self._variants = {
            (eval_.id, case.case.id, variant.case.persona_id): variant
            for eval_ in evals
            for case in eval_.cases
            for variant in case.variants
        }
        self._tools: dict[str, _Tool] = {}
        cases = [(*each, case.case.persona_id) for each, case in self._cases.items() if not case.variants]
        self._case_of_persona = {name: case for _, case, name in (*cases, *self._variants) if name is not None}
        """Case of each persona that a case names."""
        self._personas: Counter[str] = Counter(dict.fromkeys(self._case_of_persona, 0))
        self._scorers: dict[tuple[str, str, str | None], CaseScorer | None] = {}
        self._runs = self._unknown = 0
        self._measured: set[tuple[str, str]] = set()
        for eval_ in evals:
            self._define(eval_.tools, "declared")
            for target in eval_.targets:
                self._define(reported_tools(target.settings.get("tools")), "target")

    def _define(self, tools: Sequence[DeclaredTool], source: ToolSource) -> None:
        for tool in merge_tools((), tools):
            self._tool(tool.name).define(tool, source)

    def _tool(self, name: str) -> _Tool:
        if name not in self._tools:
            self._tools[name] = _Tool(name)
        return self._tools[name]

    def add_store(self, store: Store) -> None:
        """Count the last runs of each case: those of the newest execution that ran it with the same target."""
        found: dict[tuple[str, str, str, str | None], str] = {}
        for execution in store.executions():
            wanted: dict[str, RunRow] = {}
            for row in store.runs(execution.id):
                identity = (row.eval_id, row.case_id, row.target, row.persona_id)
                if (row.eval_id, row.case_id) not in self._cases or row.verdict is None or row.damage is not None:
                    continue
                if found.setdefault(identity, execution.id) == execution.id:
                    wanted[row.key] = row
            if wanted:
                self._add_runs(store, execution, wanted)

    def _add_runs(self, store: Store, execution: ExecutionRow, wanted: dict[str, RunRow]) -> None:
        traces = StoredTraces(store, execution)
        for stored in read_runs(store, execution, wanted):
            row = wanted[stored.key]
            if stored.superseded:
                continue
            try:
                response = reply_of(stored, traces)
            except DamagedRunError:
                response = None
            self._add_run(row, response)

    def _add_run(self, row: RunRow, response: ProviderResponse | None) -> None:
        self._runs += 1
        case = (row.eval_id, row.case_id)
        self._measured.add(case)
        if row.persona_id is not None:
            self._personas[row.persona_id] += 1
        known = None if response is None else resolve_calls(response)
        if known is None or known.calls is None or not known.complete:
            self._unknown += 1
        if response is None or known is None:
            return
        for key in REPORTED_KEYS if response.metadata else ():
            self._define(reported_tools((response.metadata or {}).get(key)), "target")
        calls = known.calls or ()
        for call in calls:
            if call.tool:
                self._tool(call.tool).add(call, case)
        if row.verdict == "pass":
            open_tools = {call.tool for call in calls if call.tool and self._tools[call.tool].asserted_by is None}
            if open_tools:
                self._assert((*case, row.persona_id), response, sorted(open_tools))

    def _case(self, name: tuple[str, str, str | None]) -> CheckedCase:
        """Return the case of an eval with a persona; an imported run may have one that its case does not name."""
        return self._variants.get(name) or self._cases[name[:2]]

    def _assert(self, case: tuple[str, str, str | None], response: ProviderResponse, names: Sequence[str]) -> None:
        """Find out which of these tools the evaluators of a passing run assert: a change of a call is noticed."""
        key = _evaluators_key(self._case(case))
        tools = [self._tools[name] for name in names if self._tools[name].tries[key] < MAX_TRIES]
        if not tools:
            return
        scorer = self._scorer(case)
        if scorer is None or evaluate_reply(scorer, response).status != "pass":
            return
        for tool in tools:
            tool.tries[key] += 1
            for mutant in mutants_of_calls(response, tool.name):
                if is_noticed(evaluate_reply(scorer, mutant.response), self._case(case).case.threshold):
                    tool.asserted_by = case[1]
                    break

    def _scorer(self, case: tuple[str, str, str | None]) -> CaseScorer | None:
        """Return the evaluators of a case without judges; `None` if there are no others."""
        if case not in self._scorers:
            eval_, checked = self._evals[case[0]], self._case(case)
            checks = [each for each in checked.checks if not asks_judge(each)]
            scope = Scope(root=eval_.root, folder=eval_.folder)
            follow = trace_follower(eval_.folder, eval_.root)
            scorer = CaseScorer(checks, checked.case, follow=follow, scope=scope) if can_fail(checks) else None
            self._scorers[case] = scorer
        return self._scorers[case]

    def report(self) -> CoverageReport:
        """Return the report on all runs so far."""
        order = {"never called": 0, "called": 1, "asserted": 2}
        tools = sorted(
            (tool.coverage() for tool in self._tools.values()), key=lambda tool: (order[tool.status], tool.name)
        )
        counts = Counter(tool.status for tool in tools)
        return CoverageReport(
            runs=self._runs,
            unknown_calls=self._unknown,
            cases=len(self._cases),
            cases_without_runs=len(self._cases.keys() - self._measured),
            tools=tuple(tools),
            asserted=counts["asserted"],
            called=counts["called"],
            never_called=counts["never called"],
            coverage=counts["asserted"] / len(tools) if tools else None,
            personas=tuple([PersonaCoverage(id=name, runs=runs) for name, runs in sorted(self._personas.items())]),
            next_cases=(*_next_cases(tools), *self._next_personas())[:MAX_NEXT],
        )

    def _next_personas(self) -> Iterator[str]:
        """Yield what to run next: a case of each persona that has no run."""
        for name, runs in sorted(self._personas.items()):
            if not runs:
                yield f"a run of case {self._case_of_persona[name]} with persona {name}"


def _evaluators_key(case: CheckedCase) -> bytes:
    """Return what distinguishes the evaluators of two cases, with the tools that they expect."""
    expected = sorted({call.tool for message in case.case.expected_messages or () for call in message.tool_calls})
    return dump_json([[check.config for check in case.checks], expected])


def _next_cases(tools: Sequence[ToolCoverage]) -> Iterator[str]:
    """Yield what to write next: calls that are missing, then evaluators, then failures, then values."""
    yield from (f"a case in which {tool.name} is called" for tool in tools if tool.status == "never called")
    for tool in tools:
        if tool.status == "called":
            yield f"an evaluator that notices a change of {tool.name}, as in case {tool.called_by}: see `agentv mutate`"
    for tool in tools:
        for argument in tool.arguments:
            unused = [value.value for value in argument.values if not value.calls]
            if tool.calls and unused:
                values = ", ".join(map(quote, unused))
                yield f"a case in which {tool.name} is called with {argument.name}: {values}"
            elif tool.calls and argument.declared and not argument.calls:
                yield f"a case in which {tool.name} is called with {argument.name}"
    yield from (f"a case in which {tool.name} fails" for tool in tools if tool.calls and not tool.failing_path)


def measure_coverage(evals: Sequence[Eval], store: Store | None) -> CoverageReport:
    """Return the coverage of these evals by the stored runs; without a store, nothing is called."""
    meter = CoverageMeter(evals)
    if store is not None:
        meter.add_store(store)
    return meter.report()
