"""The short way for one reply and a configuration that is nothing but a mode and plain expectations.

`ToolTrajectory` says the same of them. But who has other expectations for every reply would spend more time on getting
evaluators ready than on their verdicts.
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, MsgspecError, Struct
from msgspec.json import Decoder, encode

from agentv.evaluators.base import Tally
from agentv.evaluators.trajectory.config import ORDERED, Entry, Mode
from agentv.evaluators.trajectory.evaluator import DEFAULT_EXCLUDED
from agentv.evaluators.trajectory.laid import lay_calls
from agentv.evaluators.trajectory.plan import Expectation, Judge, count_calls
from agentv.evaluators.trajectory.script import Script, plain_script
from agentv.evaluators.trajectory.sequence import decide_and_tell, decide_script
from agentv.model.response import ProviderResponse
from agentv.model.result import EvaluatorResult, RunResult
from agentv.scoring.calls import resolve_calls

TYPE = "tool_trajectory"
MAX_BOXES = 128
"""Objects and lists of a configuration; with more of them it may be too deep, which the longer way finds out."""


class _Entry(Struct, forbid_unknown_fields=True, gc=False):
    tool: Annotated[str, Meta(min_length=1)]
    input: Any = UNSET


class _Trajectory(Struct, forbid_unknown_fields=True, gc=False):
    type: Literal["tool_trajectory"]
    mode: Mode
    expected: Annotated[list[_Entry], Meta(min_length=1)]


_decode = Decoder(_Trajectory).decode


def read_script(config: dict[str, Any]) -> Script | None:
    """The script that a configuration is; `None` when it is more than that, or wrong: the longer way says why."""
    try:
        text = encode(config)
        if text.count(b"{") + text.count(b"[") > MAX_BOXES:
            return None
        plain = _decode(text)
    except (TypeError, ValueError, RecursionError, MsgspecError):
        return None
    entries = plain.expected
    return plain_script(plain.mode, [entry.tool for entry in entries], [entry.input for entry in entries])


def score_script(script: Script, response: ProviderResponse) -> RunResult | None:
    """How a reply did; `None` when it is no list of messages, or no success, and takes the longer way."""
    known = resolve_calls(response)
    if known.source != "output_messages" or not response.success or response.trace_ref is not None:
        return None
    calls = known.calls or ()
    made, tally = count_calls(calls, DEFAULT_EXCLUDED), Tally()
    details = decide_script(script, None, made, tally)
    if details is None:
        laid = lay_calls(_judge(script), made, ordered=script.mode in ORDERED)
        details = decide_and_tell(script.mode, None, laid, made, tally)
    details["unnamed"] = [call.tool for call in calls].count("")
    details["undecided"] = []
    status, score = tally.verdict(1.0)
    hits, misses = tuple(tally.hits), tuple(tally.misses)
    found = EvaluatorResult(name=TYPE, type=TYPE, status=status, score=score, hits=hits, misses=misses, details=details)
    warnings = (*response.warnings, *known.warnings)
    return RunResult(status=status, score=score, evaluators=(found,), trace_summary=known.summary, warnings=warnings)


def _judge(script: Script) -> Judge:
    entries = [Entry(tool=name, input=value) for name, value in zip(script.names, script.inputs, strict=True)]
    return Judge([Expectation(entry, "exact", None, plain=True) for entry in entries])
