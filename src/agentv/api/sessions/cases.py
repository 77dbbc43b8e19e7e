"""Cases from sessions of stored traces: what the user said, the calls that the agent made, and a recording of it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UNSET, to_builtins

from agentv.api.convert.writer import Commented, write_eval
from agentv.api.freeze import expected_calls
from agentv.api.sessions.runs import question_start, split_session
from agentv.jsonio import dump_json
from agentv.model.conversation import LABEL_PATTERN
from agentv.model.session import Session
from agentv.redaction import Redactor
from agentv.reports.terminal import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentv.model.conversation import Message, ToolCall
    from agentv.scoring.turns import Exchange

SECRET = "<redacted>"  # noqa: S105 - in place of one
"""Text in place of a secret."""
TARGET = "recorded"
_MARK = re.compile(LABEL_PATTERN.encode())
_decode = msgspec.json.Decoder(Session).decode
_HEADER = (
    "Cases from stored sessions: the words of the user, and the calls that the agent made.",
    "They pass as they are, with the recorded replies. Replace the target by your agent, and edit them:",
    "remove arguments that may differ and calls that do not matter, and add what the answer must contain.",
)


class TraceCases(NamedTuple):
    """An eval with a case for each session, and the recorded replies."""

    cases: list[tuple[list[str], dict[str, Any]]]
    """Each case, after the notes about it."""
    replies: list[dict[str, Any]]
    """Reply to each case, with its id."""
    left_out: list[str]
    """Sessions of which no case can be made, each with the reason."""

    def to_yaml(self, recording: str | None = None) -> str:
        """Return the eval; its target replays the file `recording`, or without one has the replies in it."""
        target: dict[str, Any] = {"name": TARGET, "provider": "replay", "file": recording}
        if recording is None:
            replies = [each.get("turns", {"output_messages": each.get("output_messages")}) for each in self.replies]
            target = {"name": TARGET, "provider": "mock", "reply": _escape_variables(replies)}
        header = [*_HEADER, *(f"Left out: {reason}" for reason in self.left_out)]
        cases = [Commented(case, above=tuple(notes)) for notes, case in self.cases]
        return write_eval({"targets": [target], "cases": cases}, header)

    def recording(self) -> bytes:
        """Return the replies as JSON Lines."""
        return b"".join([dump_json(reply) + b"\n" for reply in self.replies])


def _escape_variables(value: Any) -> Any:
    """Return settings of a target in which no text is the name of an environment variable."""
    if isinstance(value, str):
        return value.replace("${", "$${")
    if isinstance(value, dict):
        return {key: _escape_variables(item) for key, item in value.items()}
    return [_escape_variables(item) for item in value] if isinstance(value, list) else value


def cases_from_sessions(sessions: Iterable[Session]) -> TraceCases:
    """Return a case for each session: expected calls, or for several turns a scripted conversation."""
    made = TraceCases([], [], [])
    redactor = Redactor({})
    for session in sessions:
        data = dump_json(session)
        redacted = _MARK.sub(SECRET.encode(), redactor.line(data))
        problem = _problem(session)
        if problem is not None:
            made.left_out.append(f"session {session.id} ({session.place}): {problem}")
            continue
        clean_session = session if redacted == data else msgspec.structs.replace(_decode(redacted), id=session.id)
        notes = _notes(session)
        if redacted != data:
            notes.append(f"Secrets were replaced by {SECRET}.")
        case, reply = _case(clean_session, notes)
        made.cases.append((notes, case))
        made.replies.append(reply)
    return made


def _problem(session: Session) -> str | None:
    """Return the reason why a session cannot be a case."""
    if session.response.error is not None:
        return f"the agent failed: {session.response.error.message}"
    for number, exchange in enumerate(split_session(session), 1):
        if not any(message.role == "user" and message.text for message in exchange.user):
            return f"the words of the user were not captured in turn {number}"
        if not _said(exchange):
            return f"it has no messages of the agent in turn {number}"
    return None


def _notes(session: Session) -> list[str]:
    count = sum(len(message.tool_calls) for message in session.response.output_messages or ())
    about = [f"{session.place}: {session.format}", *([session.agent] if session.agent else [])]
    about += [session.model] if session.model else []
    notes = [", ".join([*about, *([session.started_at] if session.started_at else []), pluralize(count, "call")])]
    notes += [f"Not understood, so that calls may be missing: {place}" for place in session.response.unread]
    return notes


def _case(session: Session, notes: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    exchanges = split_session(session)
    case: dict[str, Any] = {"id": session.id}
    replies = [{"output_messages": [_recorded(each) for each in _said(exchange)]} for exchange in exchanges]
    if len(exchanges) == 1:
        prompt = session.input_messages
        lone = len(prompt) == 1 and isinstance(prompt[0].content, str)
        case["input"] = prompt[0].content if lone else _history(prompt)
        case["evaluators"] = [_checks(exchanges[0], notes)]
        return case, {"id": session.id, **replies[0]}
    history = session.input_messages[: question_start(session.input_messages)]
    if history:
        case["input"] = _history(history)
    case["turns"] = [
        {"user": "\n\n".join([message.text for message in exchange.user]), "evaluators": [_checks(exchange, notes)]}
        for exchange in exchanges
    ]
    return case, {"id": session.id, "turns": replies}


def _said(exchange: Exchange) -> list[Message]:
    """Return the messages of the agent; those of the user and of tools are part of others."""
    return [message for message in exchange.response.output_messages or () if message.role == "assistant"]


def _named(message: Message) -> list[ToolCall]:
    return [call for call in message.tool_calls if call.tool]


def _checks(exchange: Exchange, notes: list[str]) -> dict[str, Any]:
    """Return the check of a turn, and add notes about calls whose arguments are not known."""
    calls = [call for message in _said(exchange) for call in _named(message)]
    unknown = dict.fromkeys(call.tool for call in calls if call.input is UNSET)
    notes += [f"The arguments of {tool} were not captured." for tool in unknown]
    return expected_calls(calls)


def _history(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Return messages of the input; those of which nothing was captured are left out."""
    return [_plain(message) for message in messages if message.text or _named(message)]


def _plain(message: Message) -> dict[str, Any]:
    """Return a message of the input without times and other data about it."""
    fields: dict[str, Any] = {"role": message.role, "content": message.text or None}
    calls = [_recorded_call(call) for call in _named(message)]
    names = ("tool_call_id", "name")
    others = {name: value for name in names if (value := getattr(message, name)) is not None}
    return {**fields, **({"tool_calls": calls} if calls else {}), **others}


def _recorded(message: Message) -> dict[str, Any]:
    calls = [_recorded_call(call) for call in _named(message)]
    return {"role": "assistant", "content": message.text or None, **({"tool_calls": calls} if calls else {})}


def _recorded_call(call: ToolCall) -> dict[str, Any]:
    names: Sequence[str] = ("tool", "input", "output", "id", "status", "error")
    fields = to_builtins(call)
    return {name: fields[name] for name in names if name in fields}
