"""`agentv convert-eval --check`: verdicts of another tool held against ours, on the outputs that it recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from agentv.api.convert.base import UntranslatableError, as_mapping, is_number
from agentv.api.convert.files import is_file, read_json_lines, read_structured
from agentv.api.convert.templates import has_template
from agentv.api.score import evaluate_reply
from agentv.api.traces import trace_follower
from agentv.errors import FormatError
from agentv.formats.reader import read_any
from agentv.model.request import Scope
from agentv.scoring.scorer import CaseScorer
from agentv.spec.loader import load_evals

if TYPE_CHECKING:
    from pathlib import Path

    from agentv.api.convert.base import CaseOrigin, Conversion
    from agentv.evals import CheckedCase, Eval

AGENTV_THRESHOLD = 0.8
"""The score from which a result of AgentV passes, if it does not say whether it does."""
_PROMPTFOO_ERROR = 2
_AGENTV_OUTPUTS = ("output", "output_messages", "outputMessages", "candidate_answer", "candidateAnswer", "answer")
Agreement = Literal["same", "different", "not_compared"]


class RecordedResult(Struct, frozen=True):
    """One result of the other tool."""

    test_id: str
    prompt: str
    vars: Mapping[str, Any]
    target: str
    verdict: str
    """`pass`, `fail` or `error`."""
    reply: Any
    """Reply that our evaluators are given; `None` if the file does not hold the output."""


class CheckedVerdict(Struct, frozen=True):
    """Both verdicts on one recorded output."""

    case: str
    target: str
    agreement: Agreement
    theirs: str
    ours: str
    """`pass`, `fail`, `error`, or empty if there was nothing to evaluate."""
    reason: str


def check_results(conversions: Sequence[Conversion], out: Path, results: Path) -> list[CheckedVerdict]:
    """Evaluate every recorded output with the converted evals in `out`; raise `FormatError` for another file."""
    cases = list(_cases(conversions, out))
    by_prompt: dict[str, list[int]] = {}
    for at, (origin, *_) in enumerate(cases):
        by_prompt.setdefault(_canonical(origin.prompt), []).append(at)
    seen: Counter[tuple[str, int]] = Counter()
    verdicts: list[CheckedVerdict] = []
    tested: set[str] = set()
    for result in read_results(results):
        found = _find(result, cases, by_prompt)
        if not found:
            name = result.test_id or result.prompt[:60]
            verdicts.append(_not_compared(name, result, "no converted case has this test"))
            continue
        # Tests that are equal in all respects are distinguished by their order.
        key = (result.target, found[0])
        index = found[seen[key] % len(found)]
        seen[key] += 1
        origin, eval_, checked, left_out = cases[index]
        tested.add(checked.case.id)
        verdicts.append(_compare(result, origin, eval_, checked, left_out=left_out))
    for _, _, checked, _ in cases:
        if checked.case.id not in tested:
            reason = "the file has no result of this case"
            verdicts.append(CheckedVerdict(checked.case.id, "", "not_compared", "", "", reason))
    return verdicts


def _cases(conversions: Sequence[Conversion], out: Path) -> Iterator[tuple[CaseOrigin, Eval, CheckedCase, bool]]:
    for conversion in conversions:
        left_out = any(finding.kind == "left_out" for finding in conversion.report.findings)
        for converted in conversion.evals:
            [eval_] = load_evals([out / conversion.folder / converted.file])
            origins = {origin.case_id: origin for origin in converted.origins}
            for checked in eval_.cases:
                origin = origins.get(checked.case.id)
                if origin is not None:
                    yield origin, eval_, checked, left_out


def _find(
    result: RecordedResult,
    cases: Sequence[tuple[CaseOrigin, Eval, CheckedCase, bool]],
    by_prompt: Mapping[str, Sequence[int]],
) -> list[int]:
    """Return the cases of a result: by the prompt and the variables, or by the id of the test."""
    if not result.prompt:
        return [at for at, (origin, *_) in enumerate(cases) if result.test_id in {origin.test_id, origin.case_id}]
    found = [
        at
        for at in by_prompt.get(_canonical(result.prompt), ())
        if all(_is_same(result.vars.get(key), value) for key, value in cases[at][0].vars.items())
    ]
    named = [at for at in found if cases[at][0].test_id == result.test_id]
    # A description may be a template, which promptfoo fills in.
    return named or [at for at in found if not cases[at][0].test_id or has_template(cases[at][0].test_id)]


def _is_same(theirs: Any, ours: Any) -> bool:
    """Return whether a recorded variable is ours: theirs may be the name of the file that ours was read from."""
    if not (isinstance(theirs, str) and isinstance(ours, str)):
        return bool(theirs == ours)
    return is_file(theirs) or _canonical(theirs.strip()) == _canonical(ours.strip())


@lru_cache(maxsize=4096)
def _canonical(text: str) -> str:
    """Return a text that is JSON without its spaces: promptfoo writes it anew."""
    if text.lstrip()[:1] not in {"{", "["}:
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return text


def _compare(
    result: RecordedResult, origin: CaseOrigin, eval_: Eval, checked: CheckedCase, *, left_out: bool
) -> CheckedVerdict:
    name = checked.case.id
    reason = _obstacle(result, origin, checked)
    if reason:
        return _not_compared(name, result, reason)
    scope = Scope(root=eval_.root, folder=eval_.folder)
    scorer = CaseScorer(checked.checks, checked.case, follow=trace_follower(eval_.root), scope=scope)
    try:
        ours = evaluate_reply(scorer, read_any(result.reply))
    except FormatError as error:
        return _not_compared(name, result, f"the output cannot be read: {error}")
    if ours.status not in {"pass", "fail"}:
        failed = [each for each in ours.evaluators if each.status == "error"]
        reason = next((miss for each in failed for miss in each.misses), "an evaluator could not decide")
        return CheckedVerdict(name, result.target, "not_compared", result.verdict, ours.status, reason)
    if ours.status == result.verdict:
        return CheckedVerdict(name, result.target, "same", result.verdict, ours.status, "")
    reason = "assertions that were left out may be the reason" if left_out and ours.status == "pass" else ""
    return CheckedVerdict(name, result.target, "different", result.verdict, ours.status, reason)


def _obstacle(result: RecordedResult, origin: CaseOrigin, checked: CheckedCase) -> str:
    """Return the reason why there are not two verdicts to compare, if there is one."""
    if checked.skip or origin.source_skip:
        return f"the case is skipped: {origin.source_skip or checked.skip}"
    if result.verdict == "error":
        return "the other tool has an error and no verdict"
    if result.reply is None:
        return "the result does not hold the output"
    return "the output of each turn is not recorded" if checked.case.turns or checked.case.simulate else ""


def _not_compared(name: str, result: RecordedResult, reason: str) -> CheckedVerdict:
    return CheckedVerdict(name, result.target, "not_compared", result.verdict, "", reason)


def read_results(path: Path) -> list[RecordedResult]:
    """Read the results of promptfoo (`--output` as JSON) or AgentV (JSONL); raise `FormatError`."""
    try:
        if path.suffix.lower() == ".jsonl":
            return [_agentv_result(row) for _, row in read_json_lines(path) if isinstance(row, Mapping)]
        data = read_structured(path)
    except UntranslatableError as error:
        raise FormatError(str(error)) from error
    results = data.get("results") if isinstance(data, Mapping) else None
    rows = results.get("results") if isinstance(results, Mapping) else results
    if not isinstance(rows, list):
        msg = f"{path}: this is neither an output of promptfoo in JSON nor results of AgentV in JSONL"
        raise FormatError(msg)
    return [_promptfoo_result(row) for row in rows if isinstance(row, Mapping)]


def _promptfoo_result(row: Mapping[str, Any]) -> RecordedResult:
    response = as_mapping(row.get("response"))
    has_error = row.get("failureReason") == _PROMPTFOO_ERROR or response.get("error")
    verdict = "error" if has_error else "pass" if row.get("success") is True else "fail"
    test = as_mapping(row.get("testCase"))
    provider = as_mapping(row.get("provider"))
    reply: dict[str, Any] | None = None
    if "output" in response:
        reply = {"output_messages": [_message(response["output"])], "metadata": _metadata(response)}
        for key, value in (("latency_ms", row.get("latencyMs")), ("cost_usd", row.get("cost", response.get("cost")))):
            if is_number(value):
                reply[key] = value
    return RecordedResult(
        str(test.get("description") or row.get("description") or ""),
        str(as_mapping(row.get("prompt")).get("raw") or ""),
        as_mapping(row.get("vars")) or as_mapping(test.get("vars")),
        str(provider.get("label") or provider.get("id") or ""),
        verdict,
        reply,
    )


def _metadata(response: Mapping[str, Any]) -> dict[str, Any]:
    """Return what assertions look at beside the output."""
    metadata = dict(as_mapping(response.get("metadata")))
    for ours, theirs in (("finish_reason", "finishReason"), ("guardrails", "guardrails")):
        if response.get(theirs) is not None:
            metadata[ours] = response[theirs]
    return metadata


def _message(output: Any) -> dict[str, Any]:
    """Return the output of promptfoo as a message: a text, the tool calls of a model, or data as JSON."""
    if isinstance(output, list) and output and all(isinstance(item, Mapping) and "function" in item for item in output):
        return {"role": "assistant", "content": "", "tool_calls": output}
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, separators=(",", ":"))
    return {"role": "assistant", "content": text}


def _agentv_result(row: Mapping[str, Any]) -> RecordedResult:
    output = next((row[key] for key in _AGENTV_OUTPUTS if row.get(key) is not None), None)
    if isinstance(output, str):
        output = [{"role": "assistant", "content": output}]
    reply: dict[str, Any] | None = None if output is None else {"output_messages": output}
    for ours, theirs in (("latency_ms", "duration_ms"), ("cost_usd", "cost_usd")):
        if reply is not None and is_number(row.get(theirs)):
            reply[ours] = row[theirs]
    test_id = row.get("test_id") or row.get("testId") or row.get("eval_id") or ""
    return RecordedResult(str(test_id), "", {}, str(row.get("target") or ""), _agentv_verdict(row), reply)


def _agentv_verdict(row: Mapping[str, Any]) -> str:
    status = row.get("execution_status") or row.get("executionStatus")
    score = row.get("score")
    if row.get("error") or status == "execution_error" or not is_number(score):
        return "error"
    if status is not None:
        return "pass" if status == "ok" else "fail"
    return "pass" if float(score or 0) >= AGENTV_THRESHOLD else "fail"
