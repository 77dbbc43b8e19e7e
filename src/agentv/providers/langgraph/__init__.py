"""`langgraph`: a graph behind a LangGraph server, local (`langgraph dev`) or deployed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta

from agentv.errors import Problem
from agentv.providers.transport import HttpProvider

if TYPE_CHECKING:
    from agentv.model.request import Request, Scope
    from agentv.model.response import ProviderResponse

_Name = Annotated[str, Meta(min_length=1)]
MAX_RUN_BYTES = 1024 * 1024 * 1024
"""What the server may send for one run: every task comes with its whole input again, and none of that is kept."""


class LangGraph(HttpProvider, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """A graph that a LangGraph server runs."""

    provider: Literal["langgraph"] = "langgraph"
    url: _Name
    """Where the server is, such as `http://127.0.0.1:2024`."""
    assistant: _Name
    """The graph's name in `langgraph.json`, or the id of an assistant."""
    api_key: str = ""
    """Sent as `x-api-key`."""
    headers: dict[str, str] = {}
    """Headers to send beside it."""
    input_key: _Name = "messages"
    """The key of the graph's state that takes the messages, and where its own are found."""
    input_text: bool = False
    """Whether that key takes the words of the last user message instead of a list of messages."""
    input: dict[str, Any] = {}
    """What else the graph's input holds."""
    output_key: str = ""
    """The key of the state that holds the answer, where that is not the last message."""
    config: dict[str, Any] = {}
    """The run's `config`: `configurable`, `recursion_limit`, `tags`."""
    context: dict[str, Any] = {}
    """The run's `context`, which newer graphs take instead of `config.configurable`."""
    metadata: dict[str, Any] = {}
    """What the server notes with the run, to find it again."""
    stream: bool = True
    """Whether events are read while the graph works; else those that the server recorded, when it is done."""
    subgraphs: bool = True
    """Whether messages that only a subgraph has are part of the reply."""
    resume: Any = UNSET
    """What a graph that waits for somebody (`interrupt`) is answered; without it, that is an error."""
    max_resumes: Annotated[int, Meta(ge=1, le=1000)] = 20
    """How often it is answered at most."""
    durability: Literal["sync", "async", "exit"] | None = None
    """When the server saves the graph's state; by its own default when not said."""
    multitask_strategy: Literal["reject", "enqueue", "interrupt", "rollback"] = "reject"
    """What the server does when the thread is busy."""

    def check(self, path: str) -> list[Problem]:
        """What is wrong with the address, the headers, and `config` beside `context`."""
        from agentv.providers.transport.client import check_address, check_headers  # noqa: PLC0415 - loaded when used

        problems = [*check_address(self.url, f"{path}.url"), *check_headers(self.headers, f"{path}.headers")]
        if self.context and self.config.get("configurable"):
            problems.append(Problem(f"{path}.context", "the server takes `context` or `config.configurable`, not both"))
        return problems

    async def open(self, scope: Scope) -> None:
        """Get ready to connect; nothing is sent yet."""
        await super().open(scope)
        from agentv.providers.transport.client import merge_headers  # noqa: PLC0415 - loaded when a target uses it

        key = {"x-api-key": self.api_key} if self.api_key else {}
        await self.connect(merge_headers(key, self.headers), MAX_RUN_BYTES)

    async def invoke(self, request: Request) -> ProviderResponse:
        """What the graph added to the conversation, on a thread of its own unless the request names one."""
        from agentv.providers.langgraph.run import Attempt  # noqa: PLC0415 - loaded when a target uses it

        return await Attempt(self, self.wire, request).answer()
