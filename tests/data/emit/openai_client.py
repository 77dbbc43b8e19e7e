"""The OpenAI client with instrumentations of OpenTelemetry, in the generation that the command names."""

import os
import sys
from typing import Any

generation = sys.argv[1]
if generation == "events":
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "true"

import json

from common import TRACER_PROVIDER, attributes, save
from model_server import URL
from openai import OpenAI
from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

RECORDS = InMemoryLogRecordExporter()
LOGS = LoggerProvider()
LOGS.add_log_record_processor(SimpleLogRecordProcessor(RECORDS))
if generation in ("events", "events_without_content"):
    from opentelemetry.instrumentation.openai_v2 import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=TRACER_PROVIDER, logger_provider=LOGS)
elif generation == "openinference":
    from openinference.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=TRACER_PROVIDER)
else:
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=TRACER_PROVIDER)


def log_data(record: Any) -> dict[str, Any]:
    """Return a log record as OTLP in JSON writes it."""
    log = record.log_record
    return {
        "timeUnixNano": str(log.timestamp or log.observed_timestamp),
        "traceId": f"{log.trace_id:032x}",
        "spanId": f"{log.span_id:016x}",
        "eventName": log.event_name or "",
        "attributes": attributes(dict(log.attributes or {})),
        **({"body": attributes({"body": log.body})[0]["value"]} if log.body is not None else {}),
    }


TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("add", "boom")
]
client = OpenAI(base_url=URL, api_key="none")
messages: list[Any] = [{"role": "system", "content": "You add."}, {"role": "user", "content": "add things"}]
with trace.get_tracer("loop").start_as_current_span("invoke_agent loop") as root:
    root.set_attribute("gen_ai.operation.name", "invoke_agent")
    root.set_attribute("gen_ai.agent.name", "loop")
    root.set_attribute("session.id", f"session-{generation}")
    while True:
        answer = client.chat.completions.create(model="gpt-test", messages=messages, tools=TOOLS).choices[0].message
        messages.append(answer.model_dump(exclude_none=True))
        if not answer.tool_calls:
            break
        for call in answer.tool_calls:
            numbers = json.loads(call.function.arguments)
            result = str(sum(numbers.values())) if call.function.name == "add" else "failed"
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
save(f"openai_client_{generation}", [log_data(record) for record in RECORDS.get_finished_logs()])
