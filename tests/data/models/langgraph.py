"""A chat model that looks up the weather in Paris and then says it."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Scripted(BaseChatModel):
    """Call `get_weather` when a person spoke last, else repeat what it said."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *rest: Any, **more: Any) -> ChatResult:
        last = messages[-1]
        if last.type == "human":
            call = {"name": "get_weather", "args": {"city": "Paris"}, "id": "call_1"}
            said = AIMessage("", tool_calls=[call], usage_metadata=counts(50, 10))
        else:
            said = AIMessage(f"It is {last.content} in Paris.", usage_metadata=counts(70, 8))
        return ChatResult(generations=[ChatGeneration(message=said)])


def counts(given: int, made: int) -> Any:
    return {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}


model = Scripted()
