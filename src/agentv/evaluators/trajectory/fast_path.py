"""Fast path of `agentv.score` for a single `tool_trajectory` with a mode and plain expectations.

It gives the same result as the general path (`ToolTrajectory`, `CaseScorer`), which handles everything else. Validating
the configuration and building an evaluator for it costs more than the comparison itself when every reply comes with its
own expectations: `make bench` measures this as *fresh*.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, convert
from msgspec.structs import replace

from agentv.evaluators.base import ConstraintTally
from agentv.evaluators.call_checks import DEFAULT_EXCLUDED
from agentv.evaluators.trajectory.config import ORDERED, Mode
from agentv.evaluators.trajectory.constraints import (
    decide_report,
    decide_script,
    decide_script_match,
    decide_script_mismatch,
)
from agentv.evaluators.trajectory.expectations import CountedCalls, count_calls
from agentv.evaluators.trajectory.report import report_alignment
from agentv.evaluators.trajectory.script import Script, plain_script
from agentv.formats.canonical import are_plain
from agentv.formats.reader import decode_calls, read_any
from agentv.jsonio import CONVERT_ERRORS, has_surrogates
from agentv.matching.equality import sorted_json
from agentv.model.conversation import ToolCall, TraceSummary
from agentv.model.response import ProviderResponse
from agentv.model.results import EvaluatorResult, RunResult
from agentv.scoring.calls import resolve_calls, summarize_calls

TYPE = "tool_trajectory"
MAX_BOXES = 128
"""Objects and lists of all inputs; with more of them one may be nested too deeply, which the general path detects."""
MAX_ENTRIES = 128
"""With more of them the index of the general path is faster."""


class _Entry(Struct, forbid_unknown_fields=True, gc=False):
    tool: Annotated[str, Meta(min_length=1)]
    input: Any = UNSET


class _Trajectory(Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["tool_trajectory"]
    mode: Mode
    expected: Annotated[list[_Entry], Meta(min_length=1, max_length=MAX_ENTRIES)]


def read_script(config: dict[str, Any]) -> Script | None:
    """Return the script of a configuration; `None` if it has other keys or is invalid (see the general path)."""
    try:
        plain = convert(config, _Trajectory)
    except CONVERT_ERRORS:
        return None
    names = [entry.tool for entry in plain.expected]
    script = plain_script(plain.mode, names, [entry.input for entry in plain.expected])
    if script is None or script.text is None or script.text.count(b"{") + script.text.count(b"[") > MAX_BOXES:
        return None
    return None if has_surrogates("".join(names)) else script


def score_plain(script: Script, reply: Any) -> tuple[Any, RunResult | None]:
    """Return the reply, which may have been read, and its result; `None` if the general path has to score it."""
    calls = decode_calls(reply)
    if calls is None:
        reply = read_any(reply)
    elif not calls:
        return reply, None
    try:
        if calls is None:
            return reply, _score_response(script, reply)
        return reply, _score_calls(script, calls, summarize_calls(calls))
    except Exception:  # noqa: BLE001 - the general path turns it into a result
        return reply, None


def _score_response(script: Script, response: ProviderResponse) -> RunResult | None:
    """Score any other reply if it succeeded and has messages; `None` if the general path has to."""
    known = resolve_calls(response)
    if known.source != "output_messages" or not response.success or response.trace_ref is not None:
        return None
    if not known.complete or response.incomplete or response.echo_end is not None:
        return None
    result = _score_calls(script, known.calls or (), known.summary or TraceSummary())
    warnings = (*response.warnings, *known.warnings)
    return replace(result, warnings=warnings) if result is not None and warnings else result


def _score_calls(script: Script, calls: Sequence[ToolCall], summary: TraceSummary) -> RunResult | None:
    counted, tally = count_calls(calls, DEFAULT_EXCLUDED), ConstraintTally()
    names, inputs = [call.tool for call in calls], [call.input for call in calls]
    if "" in names:  # what an unnamed call leaves undecided, the general path decides
        return None
    if names == script.names and counted.is_whole and not script.loose:
        details = _decide_inputs(script, inputs, counted, tally)
    elif are_plain(inputs):
        script.normalize_inputs(script.names)
        details = decide_script(script, None, counted, tally) or _decide_others(script, counted, tally)
    else:
        return None
    if details is None or (tally.misses and len(counted) < len(calls)):  # the general path says which do not count
        return None
    details["unnamed"] = 0
    details["undecided"] = []
    status, score = tally.verdict(1.0)
    result = EvaluatorResult(
        name=TYPE,
        type=TYPE,
        status=status,
        score=score,
        hits=tuple(tally.hits),
        misses=tuple(tally.misses),
        details=details,
    )
    return RunResult(status=status, score=score, evaluators=(result,), trace_summary=summary)


def _decide_inputs(
    script: Script, inputs: list[object], counted: CountedCalls, tally: ConstraintTally
) -> dict[str, Any] | None:
    """Decide calls whose names follow the script; `None` if the general path has to."""
    if sorted_json(inputs) == script.text:
        return decide_script_match(script, None, counted, tally)
    unequal = script.unequal(inputs)
    # Inputs whose JSON text equals the expected one need no further comparison.
    doubtful = range(len(inputs)) if unequal is None else unequal
    if not are_plain([inputs[place] for place in doubtful]):
        return None
    script.normalize_inputs({script.names[place] for place in doubtful})
    places = script.deviations(inputs, unequal)
    if places is None:
        return _decide_others(script, counted, tally)
    return decide_script_mismatch(script, None, places, counted, tally)


def _decide_others(script: Script, counted: CountedCalls, tally: ConstraintTally) -> dict[str, Any]:
    """Decide calls that do not follow the script."""
    report = report_alignment(script.matcher, counted, ordered=script.mode in ORDERED)
    return decide_report(script.mode, None, report, counted, tally)
