"""A model that looks up the weather in Paris and then says it."""

from collections.abc import AsyncIterator
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, TextBlock, ToolCallBlock
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection


class Scripted(FunctionCallingLLM):
    """Call `get_weather` when a person spoke last, else repeat what it said."""

    @property
    def metadata(self) -> LLMMetadata:
        """Tell that it calls tools."""
        return LLMMetadata(is_function_calling_model=True, model_name="scripted")

    def _prepare_chat_with_tools(self, tools: Any, user_msg: Any = None, chat_history: Any = None, **more: Any) -> Any:
        return {"messages": chat_history or []}

    def get_tool_calls_from_response(self, response: ChatResponse, *rest: Any, **more: Any) -> list[ToolSelection]:
        """Find the calls among the blocks."""
        calls = [block for block in response.message.blocks if isinstance(block, ToolCallBlock)]
        return [
            ToolSelection(tool_id=call.tool_call_id, tool_name=call.tool_name, tool_kwargs=call.tool_kwargs)
            for call in calls
        ]

    def chat(self, messages: Any, **more: Any) -> ChatResponse:
        """Say one step."""
        last = messages[-1]
        block: Any = TextBlock(text=f"It is {last.content} in Paris.")
        if last.role != "tool":
            block = ToolCallBlock(tool_call_id="call_1", tool_name="get_weather", tool_kwargs={"city": "Paris"})
        return ChatResponse(message=ChatMessage(role="assistant", blocks=[block]))

    async def achat(self, messages: Any, **more: Any) -> ChatResponse:
        """Say one step."""
        return self.chat(messages, **more)

    async def astream_chat(self, messages: Any, **more: Any) -> AsyncIterator[ChatResponse]:
        """Say one step, in one piece."""

        async def stream() -> AsyncIterator[ChatResponse]:
            yield self.chat(messages, **more)

        return stream()

    def complete(self, *rest: Any, **more: Any) -> Any:
        """Refuse."""
        raise NotImplementedError

    stream_chat = stream_complete = acomplete = astream_complete = complete


model = Scripted()
