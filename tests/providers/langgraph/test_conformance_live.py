"""The `langgraph` provider passes the conformance kit with a real server."""

from msgspec.structs import replace

from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.providers.langgraph import LangGraph
from agentv.providers.langgraph.run import LangGraphSession
from agentv.testing import provider_conformance
from tests.fakes.langgraph.server import KEY
from tests.support.langgraph_requests import target


class Slow(LangGraph, kw_only=True):
    """Asks the graph to sleep, whatever it is asked itself."""

    async def open(self, scope: Scope) -> LangGraphSession:
        del scope
        return await SlowSession.open(self)


class SlowSession(LangGraphSession):
    async def invoke(self, request: Request) -> ProviderResponse:
        return await super().invoke(replace(request, input_messages=(Message(role="user", content="sleep 600"),)))


def test_it_keeps_the_contract(server: str) -> None:
    checks = provider_conformance(
        lambda: target(server),
        failing=lambda: target(server, assistant="nobody"),
        slow=lambda: Slow(url=server, assistant="agent", api_key=KEY),
    )
    assert [f"{check.name}: {check.sentence}" for check in checks if check.status == "fail"] == []
    looked_at = {check.name for check in checks if check.status == "pass"}
    assert {"every attempt has a thread of its own", "cancelling ends it at once"} <= looked_at
