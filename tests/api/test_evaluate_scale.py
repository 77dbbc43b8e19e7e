"""Memory use of `agentv.evaluate`: replies are released when they are evaluated."""

import weakref

import agentv
from agentv.model.response import ProviderResponse


class _Raw(list[str]):
    """A reply that supports weak references, unlike a plain list."""


def test_a_reply_is_let_go_when_its_result_is_there() -> None:
    made: list[weakref.ref[_Raw]] = []
    alive = []

    def agent(prompt: str) -> ProviderResponse:
        alive.append(sum(each() is not None for each in made))
        raw = _Raw([prompt])
        made.append(weakref.ref(raw))
        return ProviderResponse(text="yes", raw_response=raw)

    checks = [{"type": "contains", "any": ["yes"]}]
    cases = [{"id": str(at), "input": "?", "evaluators": checks} for at in range(20)]
    execution = agentv.evaluate({"cases": cases}, target=agent, max_concurrency=1)
    assert execution.passed
    assert [record.case_id for record in execution.results] == [case["id"] for case in cases]
    assert max(alive) <= 2, "of those before, all but the last are gone"
