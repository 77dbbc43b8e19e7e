"""`langgraph`: a graph behind a LangGraph server, local (`langgraph dev`) or deployed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta

from agentv.errors import Problem
from agentv.providers.base import ProviderBase
from agentv.providers.transport.urls import check_address, check_headers

if TYPE_CHECKING:
    from agentv.model.request import ConversationMode, Scope
    from agentv.providers.langgraph.run import LangGraphSession

_NO_CONTEXT = (
    "with `input_text` a turn is the last message alone, and with `conversation: full` no thread has those before it: "
    "leave one of the two out"
)
_Name = Annotated[str, Meta(min_length=1)]


class LangGraph(ProviderBase, kw_only=True):
    """Graph that a LangGraph server runs."""

    provider: Literal["langgraph"] = "langgraph"
    url: _Name
    """URL of the server, such as `http://127.0.0.1:2024`."""
    assistant: _Name
    """Name of the graph in `langgraph.json`, or id of an assistant."""
    api_key: str = ""
    """Sent as `x-api-key`."""
    headers: dict[str, str] = {}
    """Headers to send beside it."""
    input_key: _Name = "messages"
    """Key of the graph's state that holds the messages."""
    input_text: bool = False
    """True if that key takes the text of the last user message instead of a list of messages."""
    input: dict[str, Any] = {}
    """Other keys of the graph's input."""
    output_key: str = ""
    """Key of the state that holds the answer, if that is not the last message."""
    config: dict[str, Any] = {}
    """The run's `config`: `configurable`, `recursion_limit`, `tags`."""
    context: dict[str, Any] = {}
    """The run's `context`, which newer graphs take instead of `config.configurable`."""
    metadata: dict[str, Any] = {}
    """Metadata of the run on the server."""
    stream: bool = True
    """True to read events during the run; else those that the server recorded are read at its end."""
    subgraphs: bool = True
    """True if messages that only a subgraph has are part of the reply."""
    resume: Any = UNSET
    """Answer to a graph that waits for input (`interrupt`); without it, that is an error, unless a turn of a
    conversation answers it."""
    max_resumes: Annotated[int, Meta(ge=1, le=1000)] = 20
    """Largest number of answers."""
    durability: Literal["sync", "async", "exit"] | None = None
    """Time at which the server saves the graph's state; its own default if not given."""
    multitask_strategy: Literal["reject", "enqueue", "interrupt", "rollback"] = "reject"
    """Strategy of the server if the thread is busy."""

    @property
    def conversation_mode(self) -> ConversationMode:
        """`thread` by default: the server keeps the state of the graph."""
        return self.conversation or "thread"

    @property
    def conversation_problem(self) -> str | None:
        """Reason why it cannot hold conversations: the text of the last message alone has no context."""
        return _NO_CONTEXT if self.input_text and self.conversation_mode == "full" else None

    def check(self, path: str) -> list[Problem]:
        """Return the problems of the URL, the headers, and `config` beside `context`."""
        problems = [*check_address(self.url, f"{path}.url"), *check_headers(self.headers, f"{path}.headers")]
        if self.context and self.config.get("configurable"):
            problems.append(Problem(f"{path}.context", "the server takes `context` or `config.configurable`, not both"))
        return problems

    async def open(self, scope: Scope) -> LangGraphSession:
        """Create the HTTP client; nothing is sent yet."""
        del scope
        from agentv.providers.langgraph.run import LangGraphSession  # noqa: PLC0415 - checking a target needs no HTTP

        return await LangGraphSession.open(self)
