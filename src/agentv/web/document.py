"""A stored run opened for the viewer: its head, and windows of its conversation, with long values cut."""

from __future__ import annotations

import re
from array import array
from contextlib import suppress
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from msgspec import MsgspecError, Raw, Struct, UnsetType, json
from msgspec.structs import asdict

from agentv.api.runs import case_of, decode_record, response_of, sides_of, translate_damage
from agentv.errors import AgentVError
from agentv.evaluators.judge.transcript import step_places
from agentv.jsonio import dump_json
from agentv.model.conversation import Message, TraceEvent
from agentv.model.results import RunResult
from agentv.reports.diff import diff_rows
from agentv.reports.turns import turn_of
from agentv.scoring.calls import calls_from_trace
from agentv.scoring.scorer import CaseScorer
from agentv.spec.evaluators import check_evaluators

if TYPE_CHECKING:
    from agentv.model.results import DiffLabels, EvaluatorResult
    from agentv.model.stored import StoredRun

WINDOW = 200
"""Messages, rows of a diff, or sentences of an evaluator that are shown at once."""
WINDOW_BYTES = 2_000_000
"""Size of a window of messages after which it ends early."""
MAX_RELABELLED = 1_000_000
"""Bytes of a reply up to which missing labels of a diff are made again."""
MAX_STEPS = 10_000
"""Messages up to which the steps of a judge are links."""
ALIGNED = ("tool_trajectory", "expected_messages")
"""Evaluators whose result is an alignment."""
EXTRA_FIELDS = (
    "turns", "ended_by", "fault", "simulator", "tags", "metadata", "unread", "calls_complete", "latency_share_of",
)  # fmt: skip
"""Fields of a record that it has only if there is something to say."""
REPLY_FIELDS = ("text", "output_messages", "trace", "turns", "ended_by")
"""Fields of a reply that evaluators score."""

MAX_TEXT = 10_000
"""Characters of a text, or of a value as JSON, that a page shows unasked."""
CUT_TEXT = 2_000
"""Characters that are shown of a longer one."""
CUT = "$cut"
"""Key of the object that stands for a value that was cut."""
_LONG_WORD = re.compile(rb"[A-Za-z0-9+/_-]{400}")
_STRETCH = 199
_BASE64 = re.compile(r"(?:data:[\w.+-]+/[\w.+-]+(?:;[\w=.-]+)*;base64,)?[A-Za-z0-9+/_-]{400,}={0,2}")


class _MessageHead(Struct):
    role: str = ""
    content: Raw = Raw(b"null")
    tool_calls: list[Raw] = []


class _TurnHead(Struct):
    """Positions of the messages of a turn in the conversation."""

    first_message: int = 0
    last_message: int = -1
    user_messages: int = 1
    agent_messages: int | None = None

    @property
    def sent(self) -> range:
        """Positions of the messages of the agent."""
        first = self.first_message + self.user_messages
        return range(first, self.last_message + 1 if self.agent_messages is None else first + self.agent_messages)


_decode_head = json.Decoder(_MessageHead).decode


class RunDocument:
    """One run; raises `DamagedRunError` if it is damaged."""

    def __init__(self, run: StoredRun, execution_id: str) -> None:
        with translate_damage(run):
            self.run = run
            self.execution_id = execution_id
            self.case, self.evaluator_configs = case_of(run)
            self.line: dict[str, Any] = {} if run.line is None else json.decode(run.line)
            self.record = None if run.line is None else decode_record(run.line)
            response = {} if run.response is None else json.decode(run.response, type=dict[str, Raw])
            self._response = response
            self._messages = self._read_messages(response)
            self._turns = json.decode(response.get("turns", Raw(b"[]")), type=list[_TurnHead])
            self._has_trace = "trace" in response

    def _read_messages(self, response: dict[str, Raw]) -> list[Raw]:
        """Return the whole conversation, undecoded; a trace without messages becomes a message with its calls."""
        prompt = [Raw(dump_json(message)) for message in self.case.input_messages]
        sent = (
            json.decode(response["output_messages"], type=list[Raw] | None) if "output_messages" in response else None
        )
        sent = sent or []
        heads = [_decode_head(message) for message in sent]
        text = json.decode(response.get("text", Raw(b'""')), type=str)
        tail = []
        if not any(head.tool_calls for head in heads) and "trace" in response:
            events = json.decode(response["trace"], type=list[TraceEvent] | None) or []
            calls = calls_from_trace(events)
            tail += [Raw(dump_json({"role": "assistant", "tool_calls": calls}))] if calls else []
            heads += [_MessageHead(tool_calls=[Raw(b"{}")] * len(calls))] if calls else []
        answer = dump_json(text)
        if text.strip() and not any(head.role == "assistant" and _says(head, answer, text) for head in heads):
            tail.append(Raw(dump_json({"role": "assistant", "content": text})))
            heads.append(_MessageHead())
        self.output_from = len(prompt)
        self._sent = len(sent)
        counts = [0] * len(prompt) + [len(head.tool_calls) for head in heads]
        self._calls_before = array("q", [0, *accumulate(counts)])
        return [*prompt, *sent, *tail]

    @property
    def total_messages(self) -> int:
        """Number of messages."""
        return len(self._messages)

    @property
    def total_calls(self) -> int:
        """Number of tool calls in these messages."""
        return self._calls_before[-1]

    @property
    def known_calls(self) -> int | None:
        """Number of tool calls as far as the reply reports them; `None` if it says nothing about calls."""
        summary = None if self.record is None else self.record.trace_summary
        if summary is None:
            return self.total_calls or None
        return max(self.total_calls, sum(summary.tool_calls_by_name.values()))

    def head(self) -> dict[str, Any]:
        """Return everything but the conversation, without payloads that are long."""
        run, line = self.run, self.line
        return {
            "id": run.own_id or f"{self.execution_id}-{run.key}",
            "execution_id": self.execution_id,
            "key": run.key,
            "eval_id": run.eval_id,
            "case_id": run.case_id,
            "persona_id": run.persona_id,
            "target": run.target,
            "repeat": run.repeat,
            "place": run.place,
            "status": run.status,
            "superseded": run.superseded,
            "result": None if self.record is None else {"status": self.record.status, "score": self.record.score},
            "started_at": run.started_at,
            "completed_at": line.get("completed_at"),
            "latency_ms": line.get("latency_ms"),
            "tokens_usage": line.get("tokens_usage"),
            "cost_usd": line.get("cost_usd"),
            "thread_id": line.get("thread_id"),
            "attempts": line.get("attempts"),
            "attempt_log": [{"round": number, **_plain(attempt)} for number, attempt in run.attempt_log],
            "error": clip(line.get("error")),
            "warnings": line.get("warnings") or [],
            **{name: _clip_each(line[name]) for name in EXTRA_FIELDS if name in line},
            "turn_places": self._turn_places(),
            "answer": clip(line.get("candidate") or ""),
            "evaluators": self._evaluators(),
            "messages": self.total_messages,
            "calls": self.known_calls,
            "output_from": self.output_from,
            "is_reply_stored": run.response is not None,
            "case": clip(json.decode(json.encode(self.case))),
            "target_settings": clip(json.decode(run.target_settings)),
        }

    def window(self, start: int, limit: int = WINDOW) -> dict[str, Any]:
        """Return messages from a position on, with the numbers of their calls."""
        messages: list[dict[str, Any]] = []
        size = 0
        end = min(start + limit, len(self._messages))
        for at in range(start, end):
            message = _clip_message(json.decode(self._messages[at]), self._calls_before[at])
            messages.append({"index": at, **message})
            size += len(dump_json(message))
            if size > WINDOW_BYTES:
                break
        return {"from": start, "total": len(self._messages), "messages": messages}

    def reply(self) -> bytes:
        """Return the part of the reply that evaluators score, as JSON."""
        parts = [b'"%s":%s' % (name.encode(), self._response[name]) for name in REPLY_FIELDS if name in self._response]
        return b"{%s}" % b",".join(parts)

    @property
    def is_short(self) -> bool:
        """Return whether one window holds the whole conversation, and nothing in it is cut."""
        return (
            len(self._messages) <= WINDOW
            and sum(map(len, self._messages)) <= WINDOW_BYTES
            and all(map(_is_shown_whole, self._messages))
        )

    def messages_around_reply(self) -> tuple[list[Raw], list[Raw]]:
        """Return the messages before and after those of the reply: its calls in a trace, and its text."""
        return self._messages[: self.output_from], self._messages[self.output_from + self._sent :]

    def message_of_call(self, number: int) -> int | None:
        """Return the position of the message that holds a call."""
        if not 0 <= number < self.total_calls:
            return None
        return next(at for at in range(len(self._messages)) if self._calls_before[at + 1] > number)

    def _turn_places(self) -> list[dict[str, int]]:
        """Return for each turn its first call, its first message of the agent, and the number of these.

        Sentences about a turn count the calls and the messages of the agent in it; others those of the conversation.
        """
        last = len(self._messages)
        return [
            {
                "call": self._calls_before[min(turn.first_message, last)],
                "message": turn.sent.start,
                "messages": len(turn.sent),
            }
            for turn in self._turns
        ]

    def _step_places(self, turn: int) -> list[dict[str, int]]:
        """Return the call or message of each step of a turn, or of all turns; nothing if the steps are of a trace."""
        if self._has_trace or len(self._messages) > MAX_STEPS:
            return []
        chosen = self._turns[turn - 1 : turn] if turn else self._turns
        numbers = [at for one in chosen for at in one.sent] or range(self.output_from, len(self._messages))
        shown = [at for at in numbers if at < len(self._messages)]
        try:
            messages = [(at, json.decode(self._messages[at], type=Message)) for at in shown]
        except MsgspecError:  # an imported message of another shape
            return []
        return [
            {"message": at} if call is None else {"call": self._calls_before[at] + call}
            for at, call in step_places(messages)
        ]

    def _evaluators(self) -> list[dict[str, Any]]:
        if self.record is None:
            return []
        results = self.record.evaluators
        sides = sides_of(self.run) or self._relabel() or (None,) * len(results)
        items = [_evaluator_item(result, side) for result, side in zip(results, sides, strict=False)]
        for item in items:
            if item["type"] == "trajectory_judge":
                item["steps"] = self._step_places(item["turn"])
        return items

    def _relabel(self) -> list[DiffLabels | None] | None:
        """Return the labels of diffs that were not stored: those of a run that passed."""
        record, reply = self.record, self.run.response
        if record is None or reply is None or len(reply) > MAX_RELABELLED:
            return None
        if not any(result.type in ALIGNED and result.details.get("alignment") for result in record.evaluators):
            return None
        with suppress(AgentVError):
            response = response_of(self.run)
            scorer = CaseScorer(check_evaluators(self.evaluator_configs), self.case, follow=lambda reply: reply)
            result = RunResult(status=record.status, score=record.score, evaluators=record.evaluators)
            return None if response is None else scorer.sides(response, result)
        return None


def _says(head: _MessageHead, answer: bytes, text: str) -> bool:
    content = bytes(head.content)
    if not content.startswith(b"["):
        return content == answer
    blocks = json.decode(content)
    return "".join(str(block.get("text", "")) for block in blocks if isinstance(block, dict)) == text


def _clip_message(message: dict[str, Any], calls_before: int) -> dict[str, Any]:
    """Return a message with its long parts cut, and its calls with their numbers."""
    calls = message.pop("tool_calls", None) or []
    shown = {name: clip(value) for name, value in message.items()}
    if calls:
        shown["tool_calls"] = [
            {"number": number, **{name: clip(value) for name, value in call.items()}}
            for number, call in enumerate(calls, calls_before)
        ]
    return shown


def _evaluator_item(result: EvaluatorResult, sides: DiffLabels | None) -> dict[str, Any]:
    details = result.details
    item = {
        "name": result.name,
        "type": result.type,
        "kind": result.kind,
        "status": result.status,
        "score": result.score,
        "weight": result.weight,
        "required": result.required is True,
        "turn": turn_of(result),
        "misses": list(result.misses[:WINDOW]),
        "hits": list(result.hits[:WINDOW]),
        "undecided": [str(each) for each in (details.get("undecided") or ())][:WINDOW],
        "error": clip(str(details["error"])) if "error" in details else None,
        "left_out": max(0, len(result.misses) - WINDOW) + max(0, len(result.hits) - WINDOW),
        "details": clip({name: value for name, value in details.items() if name not in ("alignment", "extra")}),
    }
    if sides is not None and details.get("alignment") is not None:
        rows = [
            {"verdict": row.verdict, "expected": row.left, "actual": row.right, "number": row.number,
             "differences": list(row.differences)}
            for row in diff_rows(result, sides)
        ]  # fmt: skip
        item["diff"] = {"unit": sides.unit, "rows": [clip(row) for row in rows[: 5 * WINDOW]], "total": len(rows)}
    return item


def _plain(value: Struct) -> dict[str, Any]:
    return {
        name: _plain(item) if isinstance(item, Struct) else item
        for name, item in asdict(value).items()
        if not isinstance(item, UnsetType)
    }


def clip(value: Any) -> Any:
    """Return a value for a page: long texts and base64 data are replaced by their beginning and their length."""
    if isinstance(value, str):
        return _clip_text(value)
    if isinstance(value, dict | list) and value:
        encoded = dump_json(value)
        if len(encoded) <= MAX_TEXT and not _may_hold_base64(encoded):
            return value
        clipped = _clip_items(value)
        size = len(dump_json(clipped))
        return clipped if size <= MAX_TEXT else _cut(encoded.decode(), "json")
    return value


def _clip_each(value: Any) -> Any:
    """Clip the items of a list one by one, so that a long list stays a list."""
    return [clip(item) for item in value] if isinstance(value, list) else clip(value)


def _clip_items(value: Any, depth: int = 0) -> Any:
    """Clip the texts inside of a value; what is deeply nested stays as it is, and is cut as a whole."""
    if isinstance(value, str):
        return _clip_text(value)
    if depth > 8 or not isinstance(value, dict | list):  # noqa: PLR2004 - deeper values are cut as JSON
        return value
    if isinstance(value, list):
        return [_clip_items(item, depth + 1) for item in value]
    return {key: _clip_items(item, depth + 1) for key, item in value.items()}


def _clip_text(text: str) -> Any:
    if len(text) >= 400 and _BASE64.fullmatch(text):  # noqa: PLR2004 - the shortest base64 that is left out
        return {CUT: text[:60], "characters": len(text), "form": "base64"}
    return text if len(text) <= MAX_TEXT else _cut(text, "text")


def _cut(text: str, form: str) -> dict[str, Any]:
    return {CUT: text[:CUT_TEXT], "characters": len(text), "form": form}


def _may_hold_base64(encoded: bytes) -> bool:
    """Return whether a JSON text has a word as long as base64 that is left out; such a word fills a whole stretch."""
    starts = range(0, len(encoded) - _STRETCH + 1, _STRETCH)
    is_dense = any(encoded.find(b" ", at, at + _STRETCH) < 0 for at in starts)
    return is_dense and _LONG_WORD.search(encoded) is not None


def _is_shown_whole(message: Raw) -> bool:
    data = bytes(message)
    if _may_hold_base64(data):
        return False
    if len(data) <= MAX_TEXT:
        return True
    head = _decode_head(message)
    calls = sum(map(len, head.tool_calls))
    rest = len(data) - calls - len(head.content)
    return all(len(part) <= MAX_TEXT for part in (*head.tool_calls, head.content)) and rest <= MAX_TEXT
