"""AG2 before its version 1 (the classic AutoGen): two agents over a scripted endpoint; chat results and histories."""

import logging
from typing import Any

import httpx
from autogen import AssistantAgent, UserProxyAgent, register_function
from record import wire
from record.common import *

logging.disable(logging.CRITICAL)
record = Recorder("ag2_classic", "ag2")
SWAPPED = "Roles are as the one who asked sees them: the question is of role `assistant`, the answer of role `user`."


class Client(httpx.Client):
    """The library copies its configuration; this is one thing in it that may not be copied."""

    def __deepcopy__(self, memo: Any) -> "Client":
        return self


def chat(scenario: str) -> Any:
    steps = script(scenario)
    steps[-1] = Step(steps[-1].given, steps[-1].made, (), steps[-1].text + " TERMINATE")
    bodies = (wire.chat_body(step, number) for number, step in enumerate(steps, 1))
    client = Client(transport=wire.transport(bodies, httpx))
    config = {
        "config_list": [{"model": "scripted-1", "api_key": wire.KEY, "http_client": client, "price": [0, 0]}],
        "cache_seed": None,
    }
    assistant = AssistantAgent("assistant", llm_config=config)
    user = UserProxyAgent(
        "user",
        human_input_mode="NEVER",
        code_execution_config=False,
        is_termination_msg=lambda message: "TERMINATE" in (message.get("content") or ""),
    )
    for name, function in (("get_weather", weather), ("get_time", time_in)):
        register_function(function, caller=assistant, executor=user, name=name, description=f"Tool {name}.")
    return user.initiate_chat(assistant, message=QUESTIONS[scenario], silent=True), assistant


for scenario, found in {
    "call": expect(paris(), f"{ANSWER} TERMINATE"),
    "parallel": expect(three(), f"{ANSWER_PARALLEL} TERMINATE"),
    "failed": expect(atlantis(), f"{ANSWER_FAILED} TERMINATE"),
    "plain": expect([], f"{ANSWER_PLAIN} TERMINATE"),
}.items():
    result, assistant = chat(scenario)
    if scenario == "failed":
        found["calls"][0]["output"] = result.chat_history[2]["tool_responses"][0]["content"]
    record.save(f"{scenario}-chat-history", scenario, "chat_result.chat_history", result.chat_history, found, SWAPPED)
    if scenario in {"parallel", "plain"}:
        shown = {
            "chat_id": 1,
            "chat_history": result.chat_history,
            "summary": result.summary,
            "cost": result.cost,
            "human_input": result.human_input,
        }
        record.save(
            f"{scenario}-chat-result",
            scenario,
            "fields of the ChatResult",
            shown,
            found | {"usage": usage(scenario)},
            SWAPPED,
        )
        messages = next(iter(assistant.chat_messages.values()))
        record.save(
            f"{scenario}-chat-messages",
            scenario,
            "assistant.chat_messages[user]: the same from the assistant's side",
            messages,
            found,
        )
