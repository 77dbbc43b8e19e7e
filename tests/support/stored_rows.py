"""Rows of a run store: claims, results, and identities of other processes."""

from itertools import count
from typing import Any

from msgspec.structs import replace

from agentv.jsonio import dump_json
from agentv.model.events import Attempt
from agentv.model.response import Unread
from agentv.model.results import EvaluatorResult, ResultRecord
from agentv.model.stored import Claim, ResultRow
from agentv.stores.processes import ProcessIdentity, this_process

NOBODY = 2**22 + 1
"""No process has this id."""
NAME = "20261116T000000-abcdef"
PLACE = Unread(path="output_messages[0].content[1]", reason="a block of type 'chart' was not understood")
_numbers = count()


def claim(key: str, rounds: int = 0) -> Claim:
    content = dump_json([{"id": key, "input_messages": [{"role": "user", "content": "hello"}]}, []])
    return Claim(
        key,
        int(key, 16) % 1000,
        "eval",
        f"case-{key}",
        "target",
        0,
        "a.yaml:1:1",
        content,
        b'{"name":"target"}',
        rounds,
    )


def saved(key: str, status: str = "pass") -> ResultRow:
    found = EvaluatorResult(name="check", type="contains", status=status, score=1.0)  # type: ignore[arg-type]  # a verdict
    record = ResultRecord(
        execution_id=NAME,
        run_id=f"{NAME}-{key}",
        eval_id="eval",
        case_id=f"case-{key}",
        target="target",
        repeat=0,
        attempts=1,
        status=status,  # type: ignore[arg-type]  # as above
        score=None if status == "error" else 1.0,
        candidate="hi",
        evaluators=(found,),
        trace_summary=None,
        tokens_usage=None,
        cost_usd=None,
        latency_ms=1.5,
        thread_id=None,
        warnings=(),
        error=None,
        started_at="2026-11-16T00:00:00.000Z",
        completed_at="2026-11-16T00:00:01.000Z",
    )
    return ResultRow(key, record, dump_json(record), b'{"text":"hi"}', None, (Attempt(number=1, latency_ms=1.5),))


def partly(key: str, *places: Unread) -> ResultRow:
    """A result whose reply was only partly understood."""
    whole = saved(key)
    record = replace(whole.record, unread=places or (PLACE,))
    return whole._replace(record=record, line=dump_json(record))


def somebody(**changed: Any) -> ProcessIdentity:
    """Return the identity of another process."""
    return this_process()._replace(id=f"other-{next(_numbers)}", **changed)
