"""The short way for a configuration that is nothing but a mode and plain expectations.

`ToolTrajectory` says the same of replies. But it is one evaluator among others, made ready for many replies: who has
other expectations for each of them, or no other evaluator, would wait longer for all that than for the verdicts.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, convert
from msgspec.structs import replace

from agentv.evaluators.base import ConstraintTally
from agentv.evaluators.trajectory.alignment import report_alignment
from agentv.evaluators.trajectory.config import ORDERED, Mode
from agentv.evaluators.trajectory.constraints import decide_and_tell, decide_deviating, decide_followed, decide_script
from agentv.evaluators.trajectory.evaluator import DEFAULT_EXCLUDED
from agentv.evaluators.trajectory.expectations import CountedCalls, count_calls
from agentv.evaluators.trajectory.script import Script, plain_script
from agentv.formats.canonical import are_plain
from agentv.formats.reader import decode_calls, read_any
from agentv.jsonio import CONVERT_ERRORS, has_surrogates
from agentv.matching.equality import encoded
from agentv.model.conversation import ToolCall, TraceSummary
from agentv.model.response import ProviderResponse
from agentv.model.results import EvaluatorResult, RunResult
from agentv.scoring.calls import resolve_calls, summarize_calls

TYPE = "tool_trajectory"
MAX_BOXES = 128
"""Objects and lists of all inputs; with more of them one may be too deep, which the longer way finds out."""
MAX_ENTRIES = 128
"""For more of them the index is worth its while that the longer way makes."""


class _Entry(Struct, forbid_unknown_fields=True, gc=False):
    tool: Annotated[str, Meta(min_length=1)]
    input: Any = UNSET


class _Trajectory(Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["tool_trajectory"]
    mode: Mode
    expected: Annotated[list[_Entry], Meta(min_length=1, max_length=MAX_ENTRIES)]


def read_script(config: dict[str, Any]) -> Script | None:
    """The script that a configuration is; `None` when it is more than that, or wrong: the longer way says why."""
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
    """The result under a plain configuration; else the reply, which may have been read, for the longer way."""
    calls = decode_calls(reply)
    if calls is None:
        reply = read_any(reply)
    try:
        return reply, _score_response(script, reply) if calls is None else _score_messages(script, calls)
    except Exception:  # noqa: BLE001 - the longer way makes a finding of whatever it is
        return reply, None


def _score_messages(script: Script, calls: Sequence[ToolCall]) -> RunResult | None:
    """How a reply did that is nothing but messages with these calls; `None` when it takes the longer way."""
    return _score_calls(script, calls, summarize_calls(calls)) if calls else None


def _score_response(script: Script, response: ProviderResponse) -> RunResult | None:
    """How any other reply did, as long as it is a success and has messages; else `None`."""
    known = resolve_calls(response)
    if known.source != "output_messages" or not response.success or response.trace_ref is not None:
        return None
    if not known.complete or response.echo_end is not None:
        return None
    result = _score_calls(script, known.calls or (), known.summary or TraceSummary())
    warnings = (*response.warnings, *known.warnings)
    return replace(result, warnings=warnings) if result is not None and warnings else result


def _score_calls(script: Script, calls: Sequence[ToolCall], summary: TraceSummary) -> RunResult | None:
    made, tally = count_calls(calls, DEFAULT_EXCLUDED), ConstraintTally()
    names, inputs = [call.tool for call in calls], [call.input for call in calls]
    if "" in names:  # what a call without a name leaves undecided
        return None
    if names == script.names and made.is_whole and not script.loose:
        details = _decide_inputs(script, inputs, made, tally)
    elif are_plain(inputs):
        script.read_back(script.names)
        details = decide_script(script, None, made, tally) or _decide_others(script, made, tally)
    else:
        return None
    if details is None:
        return None
    details["unnamed"] = 0
    details["undecided"] = []
    status, score = tally.verdict(1.0)
    hits, misses = tuple(tally.hits), tuple(tally.misses)
    found = EvaluatorResult(name=TYPE, type=TYPE, status=status, score=score, hits=hits, misses=misses, details=details)
    return RunResult(status=status, score=score, evaluators=(found,), trace_summary=summary)


def _decide_inputs(
    script: Script, inputs: list[object], made: CountedCalls, tally: ConstraintTally
) -> dict[str, Any] | None:
    """The details of calls that follow the script but perhaps for their arguments; `None` for the longer way."""
    if encoded(inputs) == script.text:
        return decide_followed(script, None, made, tally)
    unequal = script.unequal(inputs)
    # Whatever is equal to what is expected, letter by letter, needs no further look.
    doubtful = range(len(inputs)) if unequal is None else unequal
    if not are_plain([inputs[place] for place in doubtful]):
        return None
    script.read_back({script.names[place] for place in doubtful})
    places = script.deviations(inputs, unequal)
    if places is None:
        return _decide_others(script, made, tally)
    return decide_deviating(script, None, places, made, tally)


def _decide_others(script: Script, made: CountedCalls, tally: ConstraintTally) -> dict[str, Any]:
    """The details of calls that do not follow the script."""
    laid = report_alignment(script.judge, made, ordered=script.mode in ORDERED)
    return decide_and_tell(script.mode, None, laid, made, tally)
