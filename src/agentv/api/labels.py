"""Labels of people as lines of a labels file, for `agentv calibrate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import json

from agentv.api.runs import case_of, translate_damage
from agentv.errors import DamagedRunError
from agentv.jsonio import dump_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agentv.protocols import Store

REPLY_FIELDS = ("text", "output_messages", "trace")
"""Fields of a reply that a judge may look at."""


def label_lines(store: Store, execution_id: str | None = None) -> Iterator[bytes]:
    """Yield a line for each label: the reply with its input, the label and the note; damaged runs are left out."""
    for labelled in store.labelled_runs(execution_id):
        for run in store.stored_runs(labelled.execution_id, labelled.key):
            try:
                with translate_damage(run):
                    case, _ = case_of(run)
                    record = {} if run.line is None else json.decode(run.line)
                    stored = {} if run.response is None else json.decode(run.response)
            except DamagedRunError:
                continue
            reply = {name: stored[name] for name in REPLY_FIELDS if stored.get(name)}
            line: dict[str, Any] = {
                "id": f"{labelled.execution_id}-{run.key}",
                "input": list(case.input_messages) or None,
                "expected": case.expected_messages,
                "reply": reply or record.get("candidate", ""),
                "label": labelled.label.label,
                "note": labelled.label.note or None,
            }
            yield dump_json({name: value for name, value in line.items() if value is not None}) + b"\n"
