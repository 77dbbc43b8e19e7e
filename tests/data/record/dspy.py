"""DSPy: ReAct with a dummy model; its prediction with the trajectory."""

import json
import logging
from typing import Any

import dspy
from dspy.utils.dummies import DummyLM
from record.common import *

logging.disable(logging.CRITICAL)
record = Recorder("dspy", "dspy")


def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return weather(city)


def get_time(zone: str) -> str:
    """Tell the time in a zone."""
    return time_in(zone)


def ask(scenario: str) -> Any:
    said: list[dict[str, Any]] = []
    for step in script(scenario):
        said += [
            {"next_thought": "I look it up.", "next_tool_name": name, "next_tool_args": json.dumps(given)}
            for _, name, given in step.calls
        ]
        if not step.calls:
            said.append({"next_thought": "I can answer.", "next_tool_name": "finish", "next_tool_args": "{}"})
            said.append({"reasoning": "I know enough.", "answer": step.text})
    with dspy.context(lm=DummyLM(said)):
        return dspy.ReAct("question -> answer", tools=[get_weather, get_time])(question=QUESTIONS[scenario])


def bare(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: each[key] for key in each if key != "id"} for each in calls]


finish = call("finish", {}, output="Completed.")
for scenario, found in {
    "call": expect([*bare(paris()), finish], ANSWER),
    "parallel": expect([*bare(three()), finish], ANSWER_PARALLEL),
    "failed": expect([*bare(atlantis()), finish], ANSWER_FAILED),
    "plain": expect([finish], ANSWER_PLAIN),
}.items():
    prediction = ask(scenario)
    if scenario == "failed":
        found["calls"][0]["output"] = prediction.trajectory["observation_0"]
    title = "parallel (ReAct makes one call after the other)" if scenario == "parallel" else scenario
    record.save(
        f"{scenario}-prediction",
        title,
        "prediction.toDict()",
        prediction.toDict(),
        found,
        "ReAct always ends with a call of its own tool `finish`.",
    )


def ask_again(scenario: str) -> Any:
    """The second ReAct: calls in parallel, a history, a final call of `submit`."""
    said = []
    for step in script(scenario):
        calls = [{"name": name, "args": given} for _, name, given in step.calls]
        calls = calls or [{"name": "submit", "args": {"answer": step.text}}]
        said.append({"next_thought": "I go on.", "tool_calls": json.dumps({"tool_calls": calls})})
    with dspy.context(lm=DummyLM(said)):
        return dspy.ReActV2("question -> answer", tools=[get_weather, get_time])(question=QUESTIONS[scenario])


for scenario, found in {
    "parallel": expect(bare(three(status="ok")), ANSWER_PARALLEL),
    "failed": expect(bare(atlantis(status="error")), ANSWER_FAILED),
    "plain": expect([], ANSWER_PLAIN),
}.items():
    prediction = ask_again(scenario)
    shown = prediction.toDict()
    if scenario == "failed":
        results = shown["history"]["messages"][0]["tool_calls"]["tool_call_results"]["tool_call_results"]
        found["calls"][0]["output"] = results[0]["value"]
    given = {"answer": found["text"]}
    found["calls"].append(call("submit", given, output=given, status="ok"))
    note = "ReActV2 always ends with a call of its own tool `submit`. Ids are only in the results."
    record.save(f"{scenario}-prediction-v2", scenario, "prediction.toDict() of ReActV2", shown, found, note)

steps = ask("call").trajectory
record.save("call-trajectory", "call", "prediction.trajectory", steps, expect([*bare(paris()), finish], None))
