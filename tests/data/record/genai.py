"""Google Gen AI: the client over a scripted endpoint, automatic calls, chats; interactions by their types."""

from typing import Any

import httpx2
from google import genai
from google.genai import interactions as it
from google.genai import types
from record.common import *

record = Recorder("genai", "google-genai", made_by=CLIENT)
built = Recorder("genai_interactions", "google-genai", made_by=TYPES)


def body(step: Step) -> dict[str, Any]:
    parts: list[Any] = [{"text": step.thought, "thought": True}] if step.thought else []
    parts += [{"text": step.text}] if step.text else []
    parts += [{"functionCall": {"id": number, "name": name, "args": given}} for number, name, given in step.calls]
    thought = 4 if step.thought else 0
    counts = {
        "promptTokenCount": step.given,
        "candidatesTokenCount": step.made - thought,
        "totalTokenCount": step.given + step.made,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": step.given}],
    }
    if thought:
        counts["thoughtsTokenCount"] = thought
    return {
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": counts,
        "modelVersion": "scripted-1",
        "responseId": "response_1",
    }


def client_of(*bodies: dict[str, Any]) -> genai.Client:
    left = iter(bodies)
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, json=next(left)))
    return genai.Client(api_key="none", http_options=types.HttpOptions(httpx_client=httpx2.Client(transport=transport)))


def scripted(scenario: str) -> genai.Client:
    return client_of(*(body(step) for step in script(scenario)))


def get_weather(city: str) -> str:
    """Tell the weather in a city."""
    return weather(city)


def get_time(zone: str) -> dict[str, str]:
    """Tell the time in a zone."""
    return {"time": time_in(zone)}


def plain(value: Any) -> Any:
    shown = value.model_dump(mode="json", exclude_none=True)
    shown.pop("sdk_http_response", None)
    return shown


CONFIG = types.GenerateContentConfig(tools=[get_weather, get_time])
OUTPUTS = ["18 C", "24 C", {"time": "12:00"}]
WRAPPED = [{"result": output} for output in OUTPUTS]  # so does the client with whatever a function returned
NOTE = "The results have no id: they pair by name and order. The counts are the last step's."
WHAT = "client.models.generate_content(...).model_dump(mode='json', exclude_none=True), HTTP headers left out"

for scenario, found in {
    "call": expect(paris(output=WRAPPED[0]), ANSWER, usage("call", slice(1, 2))),
    "thinking": expect(paris(output=WRAPPED[0]), ANSWER, usage("call", slice(1, 2))),
    "parallel": expect(three(outputs=WRAPPED), ANSWER_PARALLEL, usage("parallel", slice(2, 3))),
    "failed": expect(atlantis(output={"error": FAILURE}, status="error"), ANSWER_FAILED, usage("failed", slice(1, 2))),
    "plain": expect([], ANSWER_PLAIN, usage("plain")),
}.items():
    response = scripted(scenario).models.generate_content(
        model="scripted-1", contents=QUESTIONS[scenario], config=CONFIG
    )
    if scenario == "failed":
        found["calls"][0]["output"] = (
            response.automatic_function_calling_history[-1].parts[0].function_response.response
        )
    record.save(f"{scenario}-response", scenario, WHAT, plain(response), found, NOTE if found["calls"] else "")
    if scenario in {"parallel", "plain"}:
        chat = scripted(scenario).chats.create(model="scripted-1", config=CONFIG)
        chat.send_message(QUESTIONS[scenario])
        history = [each.model_dump(mode="json", exclude_none=True) for each in chat.get_history()]
        record.save(
            f"{scenario}-chat-history",
            scenario,
            "[content.model_dump(mode='json', exclude_none=True) for chat.get_history()]",
            history,
            found | {"usage": None},
        )
        camel = [each.model_dump(mode="json", exclude_none=True, by_alias=True) for each in chat.get_history()]
        record.save(f"{scenario}-chat-history-camel", scenario, "the same by alias", camel, found | {"usage": None})

off = types.GenerateContentConfig(
    tools=[get_weather], automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
)
response = scripted("call").models.generate_content(model="scripted-1", contents=QUESTION, config=off)
asked = expect([call("get_weather", {"city": "Paris"}, 1)], "", usage("call", slice(1)))
record.save("call-unanswered", "the model asks for a call, nothing runs it", WHAT, plain(response), asked)
record.save(
    "call-unanswered-camel",
    "the model asks for a call, nothing runs it",
    "the same by alias: the body of the HTTP answer",
    body(script("call")[0]),
    asked,
    made_by=HAND,
)

code = body(Step(90, 30, (), "The sum is 5117."))
code["candidates"][0]["content"]["parts"] = [
    {"executableCode": {"id": "code_1", "language": "PYTHON", "code": "print(5117)"}},
    {"codeExecutionResult": {"id": "code_1", "outcome": "OUTCOME_OK", "output": "5117\n"}},
    {"toolCall": {"id": "tool_1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["sum of primes"]}}},
    {"toolResponse": {"id": "tool_1", "toolType": "GOOGLE_SEARCH_WEB", "response": {"search_suggestions": "primes"}}},
    {"text": "The sum is 5117."},
]
response = client_of(code).models.generate_content(
    model="scripted-1", contents="What is the sum of the first 50 primes?"
)
ran = call("code_execution", {"language": "PYTHON", "code": "print(5117)"}, "code_1", output="5117\n", status="ok")
looked = call("GOOGLE_SEARCH_WEB", {"queries": ["sum of primes"]}, "tool_1", output={"search_suggestions": "primes"})
counts = {"input_tokens": 90, "output_tokens": 30, "total_tokens": 120}
record.save(
    "server-tools-response",
    "code and a search that ran at the provider",
    WHAT,
    plain(response),
    expect([ran, looked], "The sum is 5117.", counts),
)


def interaction(scenario: str, **more: Any) -> it.Interaction:
    steps: list[Any] = [it.UserInputStep(content=[it.TextContent(text=QUESTIONS[scenario])])]
    for step in script(scenario):
        if step.thought:
            steps.append(it.ThoughtStep(summary=[it.TextContent(text=step.thought)], signature="c2lnbmF0dXJl"))
        if step.text:
            steps.append(it.ModelOutputStep(content=[it.TextContent(text=step.text)]))
        for number, name, given in step.calls:
            steps.append(it.FunctionCallStep(id=number, name=name, arguments=given))
        for number, name, given in step.calls:
            lost = given.get("city") == "Atlantis"
            told: Any = FAILURE if lost else (get_weather if name == "get_weather" else get_time)(**given)
            steps.append(it.FunctionResultStep(call_id=number, name=name, result=told, is_error=lost))
    summed = usage("call" if scenario == "thinking" else scenario)
    thought = 4 if scenario == "thinking" else 0
    counts = it.Usage(
        total_input_tokens=summed["input_tokens"],
        total_output_tokens=summed["output_tokens"] - thought,
        total_thought_tokens=thought,
        total_tokens=summed["total_tokens"],
    )
    return it.Interaction(
        id="interaction_1",
        status="completed",
        model="gemini-2.5-flash",
        created="2026-01-01T00:00:00Z",
        updated="2026-01-01T00:00:00Z",
        steps=steps,
        usage=counts,
        **more,
    )


def shown(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_none=True)


for scenario, found in {
    "thinking": expect(paris(status="ok"), ANSWER, usage("call"), "interaction_1"),
    "parallel": expect(three(outputs=OUTPUTS, status="ok"), ANSWER_PARALLEL, usage("parallel"), "interaction_1"),
    "failed": expect(atlantis(output=FAILURE, status="error"), ANSWER_FAILED, usage("failed"), "interaction_1"),
    "plain": expect([], ANSWER_PLAIN, usage("plain"), "interaction_1"),
}.items():
    built.save(
        scenario,
        scenario,
        "Interaction(...).model_dump(mode='json', exclude_none=True)",
        shown(interaction(scenario)),
        found | {"thread_id": None},
    )

steps = [
    it.GoogleSearchCallStep(id="search_1", arguments=it.GoogleSearchCallArguments(queries=["weather in Paris"])),
    it.GoogleSearchResultStep(call_id="search_1", result=[it.GoogleSearchResult(search_suggestions="Paris, 18 C")]),
    it.FunctionCallStep(id="call_1", name="delete_file", arguments={"path": "notes.txt"}),
]
waits = it.Interaction(
    id="interaction_1",
    status="requires_action",
    model="gemini-2.5-flash",
    created="2026-01-01T00:00:00Z",
    updated="2026-01-01T00:00:00Z",
    steps=steps,
)
searched = call(
    "google_search", {"queries": ["weather in Paris"]}, "search_1", output=[{"search_suggestions": "Paris, 18 C"}]
)
built.save(
    "requires-action",
    "a search at the provider, then a call for the client to run",
    "Interaction(...).model_dump(mode='json', exclude_none=True)",
    shown(waits),
    expect([searched, *notes()], ""),
)

live = [
    {"setup_complete": {}},
    {"tool_call": {"function_calls": [{"id": "call_1", "name": "get_weather", "args": {"city": "Paris"}}]}},
    {"server_content": {"model_turn": {"role": "model", "parts": [{"text": "It is 18 C"}]}}},
    {"server_content": {"model_turn": {"role": "model", "parts": [{"text": " in Paris."}]}}},
    {
        "server_content": {"turn_complete": True},
        "usage_metadata": {"prompt_token_count": 50, "response_token_count": 10, "total_token_count": 60},
    },
]
told = [shown(types.LiveServerMessage.model_validate(each)) for each in live]
found = expect([call("get_weather", {"city": "Paris"}, 1)], ANSWER, usage("call", slice(1)))
what = "[message.model_dump(mode='json', exclude_none=True) ...] of a live session"
record.save("call-live-messages", "call", what, told, found, made_by=TYPES)
plain = expect([], ANSWER, usage("call", slice(1)))
record.save("plain-live-messages", "plain", what, [told[0], *told[2:]], plain, made_by=TYPES)
