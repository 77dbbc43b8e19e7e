"""JSON Schemas of the answers of the API."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": ["number", "null"]}
NULLABLE: Schema = {"type": ["string", "null"]}
ANYTHING: Schema = {}
FLAG: Schema = {"type": "boolean"}


def _object(**properties: Schema) -> Schema:
    """Return the schema of an object with these properties, all of them required."""
    return {"type": "object", "required": list(properties), "properties": properties}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _optional(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


LABEL = _optional(_object(label={"enum": ["pass", "fail"]}, note=TEXT, updated_at=TEXT))
USAGE = _optional({"type": "object"})
RESULT = _optional(_object(status={"enum": ["pass", "fail", "error", "skipped"]}, score=NUMBER))
INTERVAL = _optional({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2})
_EXECUTION = {
    "id": TEXT,
    "status": TEXT,
    "planned": COUNT,
    "runs": COUNT,
    "passed": COUNT,
    "failed": COUNT,
    "errors": COUNT,
    "started_at": TEXT,
    "completed_at": NULLABLE,
    "pass_rate": NUMBER,
    "pass_rate_interval": INTERVAL,
    "latency_ms": ANYTHING,
    "tokens_usage": USAGE,
    "cost_usd": NUMBER,
    "evals": _optional({"type": "object"}),
    "partly_understood": COUNT,
    "command": {"type": "object"},
    "persist": TEXT,
}
_RUN = {
    "id": TEXT,
    "execution_id": TEXT,
    "key": TEXT,
    "eval_id": TEXT,
    "case_id": TEXT,
    "persona_id": NULLABLE,
    "target": TEXT,
    "repeat": COUNT,
    "place": TEXT,
    "status": TEXT,
    "result": RESULT,
    "started_at": NULLABLE,
    "completed_at": NULLABLE,
    "latency_ms": NUMBER,
    "tokens_usage": USAGE,
    "cost_usd": NUMBER,
    "thread_id": NULLABLE,
    "label": LABEL,
}
_CELL = {
    "eval_id": TEXT,
    "case_id": TEXT,
    "target": TEXT,
    "persona_id": NULLABLE,
    **dict.fromkeys(("passed", "failed", "errors", "unfinished"), COUNT),
    **dict.fromkeys(("score", "latency_ms", "cost_usd"), NUMBER),
    "key": TEXT,
}
_EVALUATOR = _object(
    name=TEXT,
    type=TEXT,
    kind=TEXT,
    status=TEXT,
    score=NUMBER,
    weight={"type": "number"},
    turn=COUNT,
    misses=_list(TEXT),
    hits=_list(TEXT),
    undecided=_list(TEXT),
    error=ANYTHING,
    left_out=COUNT,
    details=ANYTHING,
)
_FACET = _list(_object(value=TEXT, runs=COUNT))
_BIN = _object(
    **{"from": {"type": "number"}, "to": {"type": "number"}, **dict.fromkeys(("pass", "fail", "error"), COUNT)}
)
SCHEMAS: dict[str, Schema] = {
    "Error": _object(error=_object(code=TEXT, message=TEXT)),
    "Label": LABEL,
    "Executions": _object(schema=TEXT, executions=_list(_object(**_EXECUTION)), next=NULLABLE),
    "Execution": _object(**_EXECUTION, summary=ANYTHING, workers=_list({"type": "object"}), problem=NULLABLE),
    "Runs": _object(
        schema=TEXT,
        runs=_list(_object(**_RUN, failure=NULLABLE, calls={"type": ["integer", "null"]})),
        next=NULLABLE,
        total={"type": ["integer", "null"]},
        is_partial=FLAG,
    ),
    "Cases": _object(cells=_list(_object(**_CELL)), next=NULLABLE, total={"type": ["integer", "null"]}),
    "Facets": _object(**dict.fromkeys(("evals", "targets", "personas", "statuses", "tools", "tags"), _FACET)),
    "Evaluators": _object(
        evaluators=_list(_object(name=TEXT, type=TEXT, passed=COUNT, failed=COUNT, errors=COUNT, skipped=COUNT))
    ),
    "Failures": _object(failures=_list(_object(failure=TEXT, status=TEXT, runs=COUNT, key=TEXT))),
    "Charts": _object(
        charts=_list(
            _object(name=TEXT, unit=TEXT, missing=COUNT, bins=_list(_BIN), median=NUMBER, p95=NUMBER, max=NUMBER)
        )
    ),
    "Repeats": _object(
        schema=TEXT,
        eval_id=TEXT,
        case_id=TEXT,
        persona_id=NULLABLE,
        personas=_list(NULLABLE),
        runs=_list({"type": "object"}),
        columns=_list({"type": "object"}),
        first=_optional({"type": "object"}),
        left_out=_list(_object(id=TEXT, reason=TEXT)),
    ),
    "Run": _object(
        **_RUN,
        superseded=FLAG,
        attempts={"type": ["integer", "null"]},
        attempt_log=_list({"type": "object"}),
        error=ANYTHING,
        warnings=_list(TEXT),
        answer=ANYTHING,
        evaluators=_list(_EVALUATOR),
        messages=COUNT,
        calls={"type": ["integer", "null"]},
        output_from=COUNT,
        turn_places=_list(_object(call=COUNT, message=COUNT, messages=COUNT)),
        is_reply_stored=FLAG,
        case=ANYTHING,
        target_settings=ANYTHING,
        command=TEXT,
    ),
    "Messages": _object(**{"from": COUNT, "total": COUNT, "messages": _list(_object(index=COUNT, role=TEXT))}),
    "Copy": _object(form=TEXT, text=TEXT),
    "Comparison": _object(a_id=TEXT, b_id=TEXT, verdict=TEXT, wins=COUNT, losses=COUNT, measures={"type": "object"}),
    "Changes": _object(token=TEXT),
}
