"""A run as text to copy: an eval case, a test for pytest, and the command that runs it again."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Literal

from msgspec import json

from agentv.jsonio import dump_json
from agentv.model.request import DEFAULT_PERSONA
from agentv.reports.files import dump_yaml
from agentv.spec.turns import turn_name

if TYPE_CHECKING:
    from agentv.web.document import RunDocument

CopyForm = Literal["case", "pytest", "command"]
MAX_COPIED = 200_000
"""Bytes of a reply up to which a test is written out."""
_EMPTY: tuple[Any, ...] = (None, [], {}, ())


def copy_text(document: RunDocument, form: CopyForm) -> str:
    """Return the text of a run in this form."""
    return {"case": _case, "pytest": _pytest, "command": command_of}[form](document)


def command_of(document: RunDocument) -> str:
    """Return the command that runs the case of a run again."""
    run = document.run
    file = run.place.rsplit(":", 2)[0] if run.place else f"{run.eval_id}.eval.yaml"
    name = run.persona_id or (DEFAULT_PERSONA if document.case.is_conversation else None)
    persona = ["--persona", name] if name else []
    return shlex.join(["agentv", "eval", file, "--case", run.case_id, "--target", run.target, *persona])


def _case(document: RunDocument) -> str:
    """Return the case as an entry of `cases` in an eval file."""
    case = json.decode(json.encode(document.case))
    messages = [_without_empty(message) for message in case.get("input_messages") or ()]
    is_text = len(messages) == 1 and set(messages[0]) == {"role", "content"} and messages[0]["role"] == "user"
    entry: dict[str, Any] = {"id": document.run.case_id}
    if messages:
        entry |= {"input": messages[0]["content"]} if is_text else {"input_messages": messages}
    entry |= {name: case[name] for name in ("vars", "tags", "threshold", "metadata") if case.get(name) not in _EMPTY}
    if case.get("expected_messages"):
        entry["expected_messages"] = [_without_empty(message) for message in case["expected_messages"]]
    if document.run.persona_id:
        entry["persona"] = document.run.persona_id
    entry |= _conversation(case, document.evaluator_configs)
    configs = [config for config in document.evaluator_configs if _is_written(config, case)]
    if configs:
        entry["evaluators"] = configs
    return dump_yaml({"cases": [entry]}).decode()


def _conversation(case: dict[str, Any], configs: list[Any]) -> dict[str, Any]:
    """Return the turns and the simulated user of a case, as an eval file has them."""
    entry: dict[str, Any] = {}
    turns = [_turn(turn, number, configs) for number, turn in enumerate(case.get("turns") or (), 1)]
    simulate = case.get("simulate")
    if simulate:
        facts = {name: fact if "value" in fact else "unknown" for name, fact in (simulate.get("facts") or {}).items()}
        entry["simulate"] = {**simulate, **({"facts": facts} if facts else {})}
    if turns:
        entry["turns"] = [*turns, {"simulate": None}] if simulate else turns
    return entry


def _turn(turn: dict[str, Any], number: int, configs: list[Any]) -> dict[str, Any]:
    """Return a turn with its evaluators, which in a plan are named after it."""
    entry: dict[str, Any] = {"resume": turn["resume"]} if "resume" in turn else {}
    if turn.get("user"):
        message = _without_empty(turn["user"])
        is_text = set(message) == {"role", "content"} and isinstance(message["content"], str)
        entry["user"] = message["content"] if is_text else message
    expected = turn.get("expected_messages")
    if expected:
        entry["expected"] = [_without_empty(message) for message in expected]
    own = []
    for config in configs:
        if _turn_of(config) == number and not (expected and config["type"] == "expected_messages"):
            name = str(config.get("name", "")).removeprefix(turn_name(number, ""))
            plain = {key: value for key, value in config.items() if key not in ("over", "name")}
            own.append({"name": name, **plain} if name not in ("", config["type"]) else plain)
    return {**entry, "evaluators": own} if own else entry


def _turn_of(config: Any) -> int | None:
    """Return the turn that an evaluator is restricted to; `None` if it is written in no turn."""
    over = config.get("over") if isinstance(config, dict) else None
    return over.get("turn") if isinstance(over, dict) else None


def _is_written(config: Any, case: dict[str, Any]) -> bool:
    """Return whether an evaluator is written in the case itself, not in a turn, nor made of expected messages."""
    is_made = isinstance(config, dict) and config.get("type") == "expected_messages" and case.get("expected_messages")
    return not is_made and _turn_of(config) is None


def _without_empty(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if value not in _EMPTY}


def _pytest(document: RunDocument) -> str:
    """Return a test that scores the recorded reply with the evaluators of the case."""
    reply = document.run.response
    if reply is None:
        return f"# The reply of {document.run.case_id} was not stored (persist: summary).\n"
    if len(reply) > MAX_COPIED:
        return f"# The reply is too long to copy; agentv runs export {document.execution_id}-{document.run.key}\n"
    before, after = test_parts(document)
    return f"{before}{_literal(document.reply())}{after}"


def test_parts(document: RunDocument) -> tuple[str, str]:
    """Return the text of a test before and after the literal of the reply."""
    name = re.sub(r"\W+", "_", document.run.case_id.lower()).strip("_") or "run"
    expected = _golden_path(json.decode(json.encode(document.case)))
    configs = [
        config for config in document.evaluator_configs if not expected or config.get("type") != "expected_messages"
    ]
    return (
        "import json\n\nimport agentv\n\nREPLY = json.loads(",
        f")\nEVALUATORS = json.loads({_literal(dump_json(configs))})\n"
        + (f"EXPECTED = json.loads({_literal(dump_json(expected))})\n" if expected else "")
        + f"\n\ndef test_{name}():\n"
        f"    result = agentv.score(REPLY, EVALUATORS{', expected_messages=EXPECTED' if expected else ''})\n"
        '    assert result.status == "pass", [miss for each in result.evaluators for miss in each.misses]\n',
    )


def _golden_path(case: dict[str, Any]) -> list[Any]:
    """Return the messages that a case expects; those of turns follow the message of their user."""
    turns = case.get("turns") or ()
    if case.get("expected_messages") or not any(turn.get("expected_messages") for turn in turns):
        return case.get("expected_messages") or []
    path: list[Any] = []
    for turn in turns:
        path += [turn.get("user") or {"role": "user", "content": ""}, *(turn.get("expected_messages") or ())]
    return path


def _literal(data: bytes) -> str:
    """Return a Python literal of a JSON text."""
    return repr(data.decode())
