"""The cases of a file as a task of Inspect AI: for an environment of its own."""

from typing import Any

from inspect_ai import Task, task  # type: ignore[import-not-found]  # installed there, not here
from inspect_ai.dataset import json_dataset  # type: ignore[import-not-found]  # likewise
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # type: ignore[import-not-found]  # likewise
from inspect_ai.scorer import includes  # type: ignore[import-not-found]  # likewise


def _answer(*_: Any) -> ModelOutput:
    """An answer with its usage: without, the mock counts tokens, and loads a list of them from the network."""
    answer = ModelOutput.from_content("mockllm", "ok")
    answer.usage = ModelUsage(input_tokens=2, output_tokens=1, total_tokens=3)
    return answer


@task  # type: ignore[untyped-decorator]  # its types are known there, not here
def loop() -> Task:
    """Ask the model, and look for the target in its answer."""
    model = get_model("mockllm/model", custom_outputs=_answer)
    return Task(dataset=json_dataset("cases.jsonl"), model=model, scorer=includes())
