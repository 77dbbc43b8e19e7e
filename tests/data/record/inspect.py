"""Inspect: an agent over the mock model; messages and agent states, also of a solver's log."""

import tempfile
from typing import Any

import inspect_ai
from inspect_ai import Task
from inspect_ai.approval import Approval, ApprovalPolicy, approver
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ContentReasoning,
    ContentText,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import ToolCall, ToolError, tool
from record.common import *

record = Recorder(
    "inspect",
    "inspect-ai",
    ids=[r"\b(?<![A-Za-z0-9])[A-Za-z0-9]{22}(?![A-Za-z0-9])"],
    durations=["time", "working_start", "working_time", "total_time"],
)


def said(step: Step) -> ModelOutput:
    content: Any = step.text
    if step.thought:
        content = [ContentReasoning(reasoning=step.thought, signature="c2lnbmF0dXJl"), ContentText(text=step.text)]
    calls = [ToolCall(id=number, function=name, arguments=given) for number, name, given in step.calls]
    message = ChatMessageAssistant(content=content, tool_calls=calls or None, model="mockllm/model", source="generate")
    output = ModelOutput.from_message(message, stop_reason="tool_calls" if calls else "stop")
    output.usage = ModelUsage(input_tokens=step.given, output_tokens=step.made, total_tokens=step.given + step.made)
    return output


def played(steps: list[Step]) -> Any:
    return get_model("mockllm/model", custom_outputs=[said(step) for step in steps], memoize=False)


@tool
def get_weather() -> Any:
    async def execute(city: str) -> str:
        """Tell the weather in a city.

        Args:
            city: The city.
        """
        try:
            return weather(city)
        except ValueError as error:
            raise ToolError(str(error)) from error

    return execute


@tool
def get_time() -> Any:
    async def execute(zone: str) -> str:
        """Tell the time in a zone.

        Args:
            zone: The zone.
        """
        return time_in(zone)

    return execute


@tool
def delete_file() -> Any:
    async def execute(path: str) -> str:
        """Delete a file.

        Args:
            path: The file.
        """
        return f"deleted {path}"

    return execute


def log_of(scenario: str, **more: Any) -> Any:
    task = Task(
        dataset=[Sample(input=QUESTIONS[scenario])],
        solver=[use_tools(get_weather(), get_time(), delete_file()), generate()],
        **more,
    )
    with tempfile.TemporaryDirectory() as place:
        (log,) = inspect_ai.eval(task, model=played(script(scenario)), log_dir=place, display="none")
        assert log.status == "success", log.error
        return log.samples[0]


WANTED = {
    "call": expect(paris(), ANSWER),
    "thinking": expect(paris(), ANSWER),
    "parallel": expect(three(), ANSWER_PARALLEL),
    "failed": expect(atlantis(output="", status="error", error=FAILURE), ANSWER_FAILED),
    "plain": expect([], ANSWER_PLAIN),
}
for scenario, found in WANTED.items():
    sample = log_of(scenario)
    messages = [message.model_dump(mode="json", exclude_none=True) for message in sample.messages]
    record.save(
        f"{scenario}-messages",
        scenario,
        "[message.model_dump(mode='json', exclude_none=True) ...] of a sample",
        messages,
        found,
    )
    if scenario in {"parallel", "plain"}:
        shown = {"messages": messages, "output": sample.output.model_dump(mode="json", exclude_none=True)}
        record.save(
            f"{scenario}-state",
            scenario,
            '{"messages", "output"} of a sample, as of an AgentState',
            shown,
            found | {"usage": usage(scenario, slice(-1, None))},
            "The output's usage is the last step's.",
        )
        whole = sample.model_dump(
            mode="json",
            exclude_none=True,
            include={"id", "epoch", "input", "target", "messages", "output", "model_usage", "scores", "metadata"},
        )
        record.save(
            f"{scenario}-sample",
            scenario,
            "the sample of a log, model_dump(), events left out",
            whole,
            found | {"usage": usage(scenario)},
        )


@approver(name="refuse")
def refuse() -> Any:
    async def approve(message: Any, call: Any, view: Any, history: Any) -> Approval:
        return Approval(decision="reject", explanation="the user said no")

    return approve


sample = log_of("delete", approval=[ApprovalPolicy(refuse(), "*")])
messages = [message.model_dump(mode="json", exclude_none=True) for message in sample.messages]
record.save(
    "denied-messages",
    "denied: an approver rejects the call",
    "[message.model_dump(mode='json', exclude_none=True) ...] of a sample",
    messages,
    expect(notes(output="", status="denied", error="the user said no"), ANSWER_DENIED),
)
