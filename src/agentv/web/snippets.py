"""A run as text to copy: an eval case, a test for pytest, and the command that runs it again."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Literal

from msgspec import json

from agentv.jsonio import dump_json
from agentv.reports.files import dump_yaml

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
    persona = ["--persona", run.persona_id] if run.persona_id else []
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
    configs = [config for config in document.evaluator_configs if _is_written(config, case)]
    if configs:
        entry["evaluators"] = configs
    return dump_yaml({"cases": [entry]}).decode()


def _is_written(config: Any, case: dict[str, Any]) -> bool:
    """Tell whether an evaluator is written in the case, and not made of its `expected_messages`."""
    return not (
        isinstance(config, dict) and config.get("type") == "expected_messages" and case.get("expected_messages")
    )


def _without_empty(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if value not in _EMPTY}


def _pytest(document: RunDocument) -> str:
    """Return a test that scores the recorded reply with the evaluators of the case."""
    name = re.sub(r"\W+", "_", document.run.case_id.lower()).strip("_") or "run"
    reply = document.run.response
    if reply is None:
        return f"# The reply of {document.run.case_id} was not stored (persist: summary).\n"
    if len(reply) > MAX_COPIED:
        return f"# The reply is too long to copy; agentv runs export {document.execution_id}-{document.run.key}\n"
    recorded = {key: value for key, value in json.decode(reply).items() if key in ("text", "output_messages", "trace")}
    expected = json.decode(json.encode(document.case)).get("expected_messages")
    configs = [
        config for config in document.evaluator_configs if not expected or config.get("type") != "expected_messages"
    ]
    return (
        "import json\n\nimport agentv\n\n"
        f"REPLY = json.loads({_literal(recorded)})\n"
        f"EVALUATORS = json.loads({_literal(configs)})\n"
        + (f"EXPECTED = json.loads({_literal(expected)})\n" if expected else "")
        + f"\n\ndef test_{name}():\n"
        f"    result = agentv.score(REPLY, EVALUATORS{', expected_messages=EXPECTED' if expected else ''})\n"
        '    assert result.status == "pass", [miss for each in result.evaluators for miss in each.misses]\n'
    )


def _literal(value: Any) -> str:
    """Return a Python literal of the JSON of a value."""
    return repr(dump_json(value).decode())
