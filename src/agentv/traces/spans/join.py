"""Joining of the spans of a session to its conversation, calls, usage and answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from agentv.formats.fields import MISSING_CALLS
from agentv.formats.incomplete import NOT_FOUND
from agentv.formats.unread import MAX_PLACES, with_unread
from agentv.formats.usage import add_usage
from agentv.model.conversation import REST_MISSING
from agentv.model.response import ProviderResponse, ResponseError, Unread
from agentv.model.session import Session
from agentv.traces.sessions import not_captured_places
from agentv.traces.spans.interpret import is_agent_span, names_calls
from agentv.traces.spans.messages import MessageReader
from agentv.traces.spans.nodes import Node, build_tree, drop_superseded
from agentv.traces.spans.suspects import suspected_calls
from agentv.traces.spans.timeline import Timeline
from agentv.traces.spans.tool_matching import match_tools
from agentv.traces.spans.values import first_of, format_time, text_of
from agentv.traces.spans.writer import SESSION

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator

    from agentv.model.conversation import Message, TokensUsage
    from agentv.model.session import OtelSpan
    from agentv.traces.spans.drafts import MessageDraft

NOT_AGENTS = "traces without spans of an agent"
ONLY_LOGS = "log records without a trace or a session"
_NS_PER_MS = 1_000_000
_NO_ANSWER = "the answer was not captured"
_MAX_TRACES = 20
_NEAR_NS = 1_000_000_000
"""Time between the failure of an agent and the end of what is around it, at most."""
_METADATA = ("service.name", "gen_ai.provider.name", "user.id", "deployment.environment.name")
_SESSION_ATTRIBUTES = frozenset((*_METADATA, SESSION, "agentv.case_id"))
_HISTORIES = ("pydantic_ai.all_messages", "all_messages_events")
"""Attributes of an agent's span that hold the whole conversation with its calls."""


def join_spans(key: str, spans: list[OtelSpan], notes: Counter[str]) -> Session | None:
    """Return the session of these spans; `None`, with a note, if no agent is in them."""
    if not any(map(is_agent_span, spans)):
        notes[NOT_AGENTS] += 1
        return None
    reader = MessageReader()
    tree = build_tree(spans, reader)
    nodes = [node for node in tree.nodes if node.kind != "other"]
    if not nodes:
        notes[NOT_AGENTS] += 1
        return None
    timeline = Timeline(nodes, drop_superseded(nodes))
    timeline.build()
    if not any(node.kind == "model" for node in nodes):
        timeline.add_agent_prompts(nodes)
    match_tools(timeline, nodes)
    timeline.add_silent_turns(nodes)
    session = _Joiner(key, tree.nodes, nodes, timeline).build()
    found = tree.notes + timeline.notes
    return replace(session, notes=tuple([f"{count} {name}" for name, count in sorted(found.items())]))


class _Joiner:
    """Assembly of a session from its timeline."""

    def __init__(self, key: str, all_nodes: list[Node], nodes: list[Node], timeline: Timeline) -> None:
        self._key = key
        self._all = all_nodes
        self._nodes = nodes
        self._timeline = timeline
        self._drafts = timeline.messages
        self._named = self._first_names()

    def build(self) -> Session:
        """Return the session."""
        first = next(
            (at for at, each in enumerate(self._drafts) if each.role == "assistant" and not each.is_context),
            len(self._drafts),
        )
        prompt = tuple([draft.build() for draft in self._drafts[:first]])
        output = tuple([draft.build() for draft in self._drafts[first:]])
        response = self._response(prompt, output)
        spans = [node.span for node in self._all]
        start = min((span.start for span in spans if span.start), default=0)
        formats = {(span.file, span.place): span.format for span in spans}  # many have one place
        place = min(formats, key=lambda each: (each[0], _line_of(each[1]), each[1]))
        return Session(
            id=self._key,
            format=formats[place] or "otlp",
            place=place[1],
            input_messages=prompt,
            response=response,
            case_id=self._attribute("agentv.case_id"),
            started_at=format_time(start),
            ended_at=format_time(max((node.end for node in self._all), default=0)),
            agent=self._agent(),
            model=next((node.facts.model for node in reversed(self._nodes) if node.facts.model), None),
            metadata=self._metadata(),
        )

    def _response(self, prompt: tuple[Message, ...], output: tuple[Message, ...]) -> ProviderResponse:
        text, is_captured = self._answer(output)
        error = self._error() or (self._failure() if not is_captured or self._ends_with_calls() else None)
        rest = self._rest()
        incomplete = [*not_captured_places(output)]
        known = {place.path for place in incomplete}
        incomplete += [place for place in rest.incomplete if place.path not in known and place.path != "text"]
        if not is_captured and error is None:
            text = REST_MISSING
            incomplete.insert(0, Unread(path="text", reason=f"{_NO_ANSWER}, {NOT_FOUND}"))
        response = ProviderResponse(
            success=error is None,
            text=text,
            output_messages=output or None,
            tokens_usage=self._usage() or rest.tokens_usage,
            cost_usd=self._cost() if rest.cost_usd is None else rest.cost_usd,
            latency_ms=self._latency() if rest.latency_ms is None else rest.latency_ms,
            thread_id=self._key,
            error=None if error is None else ResponseError(kind="agent", message=error),
            unread=(*self._unread(), *rest.unread)[:MAX_PLACES],
            incomplete=tuple(incomplete)[:MAX_PLACES],
        )
        return with_unread(response, prompt)

    def _rest(self) -> ProviderResponse:
        """Return the facts in spans of `agentv convert` and `agentv export` that no convention has a name for."""
        text = self._attribute(SESSION)
        try:
            return ProviderResponse() if text is None else msgspec.json.decode(text, type=ProviderResponse)
        except (ValueError, RecursionError):
            reason = f"its attribute `{SESSION}` is invalid, {MISSING_CALLS}"
            return ProviderResponse(unread=(Unread(path="session", reason=reason),))

    def _unread(self) -> list[Unread]:
        """Return the places at which calls may be missing."""
        places = [
            Unread(path=f"span {node.span.span_id} ({node.span.name[:60]})", reason=f"{reason}, {MISSING_CALLS}")
            for node in self._nodes
            for reason in node.facts.unread
        ]
        places += [_lost_reply(draft) for draft in _without_calls(self._drafts)]
        silent = [draft for draft in self._drafts if _tells_nothing(draft)]
        if silent and not self._timeline.calls and not any(node.kind == "tool" for node in self._nodes):
            places += [_lost_reply(draft) for draft in silent]
        places += suspected_calls(self._all, self._timeline.calls)
        places += self._nothing_known()
        ran = {node.facts.call_id for node in self._nodes if node.kind == "tool"}
        for node, result in self._timeline.unpaired_results():
            if result.id not in ran:
                reason = f"it received a result of the call {result.id!r}, which is nowhere, {MISSING_CALLS}"
                places.append(Unread(path=f"span {node.span.span_id}", reason=reason))
        return places

    def _nothing_known(self) -> Iterator[Unread]:
        """Yield one place if no reply of a model and no tool is there: the answer alone says nothing about calls."""
        spoke = any(draft.is_reply and draft.node and draft.node.kind == "model" for draft in self._drafts)
        if spoke or self._timeline.calls or any(node.kind == "tool" for node in self._nodes):
            return
        told = any(node.facts.replies and first_of(node.span.attributes, *_HISTORIES) for node in self._nodes)
        if not told and self._attribute(SESSION) is None:
            agents = [node for node in self._nodes if node.kind == "agent"] or self._nodes
            reason = f"no span tells what its models wrote and which tools it called, {MISSING_CALLS}"
            yield Unread(path=f"span {agents[0].span.span_id} ({agents[0].span.name[:60]})", reason=reason)

    def _answer(self, output: tuple[Message, ...]) -> tuple[str, bool]:
        """Return the answer, from the last message of the agent or from the agent's own span, and if it is there."""
        spoken = [draft for draft in self._drafts if draft.role == "assistant" and draft.is_main]
        spoken = [draft for draft in spoken if not draft.is_context]
        spoken = [draft for draft in spoken if draft.node is None or draft.node.kind != "tool"]
        last = spoken[-1] if spoken else None
        if last is not None and last.said.text:
            return last.said.text, last.is_captured
        roots = [node for node in self._nodes if node.kind == "agent" and node.tool_ancestor is None]
        for node in sorted(roots, key=lambda each: (each.end, -each.order), reverse=True):
            if node.facts.text:
                return node.facts.text, True
            if node.facts.replies and node.facts.replies[-1].text:
                return node.facts.replies[-1].text, True
        earlier = next((draft.said.text for draft in reversed(spoken) if draft.said.text), "")
        if last is None or not last.is_captured:
            return "", False
        return earlier, bool(earlier) or bool(last.calls) or bool(output)

    def _ends_with_calls(self) -> bool:
        """Return whether the agent did not answer any more after its last calls."""
        spoken = [draft for draft in self._drafts if draft.role == "assistant" and draft.is_main]
        return bool(spoken) and bool(spoken[-1].calls)

    def _error(self) -> str | None:
        """Return the error of the agent: that of the root of the last trace."""
        last = max(self._all, key=lambda node: node.span.start).span.trace_id
        roots = [node for node in self._all if node.span.trace_id == last and node.parent is None]
        agents = [node for node in roots if node.kind in ("agent", "other") and is_agent_span(node.span)]
        root = min(agents, key=lambda node: node.order, default=None)
        if root is None or not root.span.is_error:
            return None
        return _message(root)

    def _failure(self) -> str | None:
        """Return the error of an agent after which no model was asked again, for a session without a last answer.

        What is around the agent, such as a workflow, may not repeat its error.
        """
        asked = max((node.span.start for node in self._nodes if node.kind == "model"), default=0)
        agents = [node for node in self._nodes if node.kind == "agent" and node.tool_ancestor is None]
        failed = [node for node in agents if node.span.is_error and node.end > asked]
        last = max((node.end for node in agents), default=0)
        ended = [node for node in failed if node.end >= last - _NEAR_NS]
        return _message(ended[0]) if ended else None

    def _usage(self) -> TokensUsage | None:
        replies = {draft.node.order: draft.node for draft in self._drafts if _counts_usage(draft) and draft.node}
        models = [node.facts.usage for node in replies.values()]
        if any(usage is not None for usage in models):
            return add_usage(models)
        roots = [node for node in self._nodes if node.kind == "agent" and not _is_inner(node)]
        return add_usage([node.facts.usage for node in roots]) if roots else None

    def _cost(self) -> float | None:
        replies = {draft.node.order: draft.node for draft in self._drafts if _counts_usage(draft) and draft.node}
        costs = [node.facts.cost_usd for node in replies.values()]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if known and len(known) == len(costs) else None

    def _latency(self) -> float | None:
        """Return the time that the agent worked: the sum of the durations of its traces."""
        total = 0
        by_trace: dict[str, list[Node]] = {}
        for node in self._nodes:
            by_trace.setdefault(node.span.trace_id, []).append(node)
        for nodes in by_trace.values():
            start = min(node.span.start for node in nodes)
            end = max(node.span.end for node in nodes)
            if not start or end < start:
                return None
            total += end - start
        return total / _NS_PER_MS if by_trace else None

    def _agent(self) -> str | None:
        agents = [node for node in self._nodes if node.kind == "agent" and node.facts.agent]
        if agents:
            return agents[0].facts.agent
        named = next((node.facts.agent for node in self._nodes if node.facts.agent), None)
        service = self._attribute("service.name")
        return named or (None if service is None or service.startswith("unknown_service") else service)

    def _attribute(self, name: str) -> str | None:
        return self._named.get(name)

    def _first_names(self) -> dict[str, str]:
        """Return the first text of each attribute that says something about the whole session."""
        found: dict[str, str] = {}
        missing = set(_SESSION_ATTRIBUTES)
        for node in self._all:
            for place in (node.span.attributes, node.span.resource):
                if missing.isdisjoint(place):
                    continue
                for name in [each for each in missing if each in place]:
                    if (text := text_of(place[name])) is not None:
                        found[name] = text
                        missing.remove(name)
        return found

    def _metadata(self) -> dict[str, Any]:
        traces = list(dict.fromkeys(node.span.trace_id for node in self._all))
        metadata: dict[str, Any] = {"trace_ids": traces[:_MAX_TRACES]}
        for name in _METADATA:
            value = self._attribute(name)
            if value is not None:
                metadata[name] = value
        return metadata


def _message(node: Node) -> str:
    """Return why an agent failed."""
    for event in node.span.events:
        message = event.attributes.get("exception.message")
        if event.name == "exception" and isinstance(message, str) and message:
            return message
    return node.span.error or "the agent failed, and does not say why"


def _without_calls(drafts: list[MessageDraft]) -> list[MessageDraft]:
    """Return the replies that ended in order to call tools, and whose calls no tool span or history tells.

    A call that only a tool span tells belongs to the last reply before it: the one below the same parent, else the one
    of the same trace. A message that was recovered from the history stands for one reply that has no other text.
    """
    lacking: list[MessageDraft] = []
    last: dict[tuple[str, int], MessageDraft] = {}
    for draft in drafts:
        node = draft.node
        if node is None or draft.role != "assistant" or draft.is_context:
            continue
        trace, parent = node.span.trace_id, id(node.parent)
        found: MessageDraft | None = None
        if draft.is_reply:
            last[trace, 0] = last[trace, parent] = last[trace, id(node)] = draft
            if _lacks_calls(draft):
                lacking.append(draft)
        elif node.kind == "tool":
            found = last.get((trace, parent)) or last.get((trace, 0))
        elif draft.calls:
            found = next((each for each in reversed(lacking) if _may_be_same_text(each, draft)), None)
        lacking = [each for each in lacking if each is not found] if found is not None else lacking
    return lacking


def _may_be_same_text(one: MessageDraft, other: MessageDraft) -> bool:
    return not one.said.text or not other.said.text or one.said.text == other.said.text


def _lacks_calls(draft: MessageDraft) -> bool:
    """Return whether a model said that it calls tools, and no call is known."""
    if not draft.is_reply or draft.node is None or draft.calls:
        return False
    return names_calls(draft.node.facts.finish) or names_calls((draft.said.finish or "",))


def _tells_nothing(draft: MessageDraft) -> bool:
    """Return whether nothing is known of a reply: neither its content nor the reason why it ended."""
    if not draft.is_reply or draft.node is None or draft.node.kind != "model":
        return False
    if draft.is_captured or draft.calls or draft.said.content is not None:
        return False
    return not draft.node.facts.finish or _is_gemini(draft.node)


def _is_gemini(node: Node) -> bool:
    """Return whether a span is of Gemini, whose reason to stop is the same with calls and without."""
    attributes = node.span.attributes
    provider = attributes.get("gen_ai.provider.name") or attributes.get("gen_ai.system")
    return str(provider or node.facts.model or "").startswith(("gcp", "google", "gemini", "vertex"))


def _lost_reply(draft: MessageDraft) -> Unread:
    node = draft.node
    assert node is not None  # noqa: S101 - of a model
    reason = f"the reply of the model was not captured, {MISSING_CALLS}"
    return Unread(path=f"span {node.span.span_id} ({node.span.name[:60]})", reason=reason)


def _counts_usage(draft: MessageDraft) -> bool:
    """Return whether the tokens of a message count: each reply of a model once."""
    return draft.is_reply and draft.node is not None and draft.node.kind == "model"


def _is_inner(node: Node) -> bool:
    parent = node.parent
    while parent is not None:
        if parent.kind == "agent":
            return True
        parent = parent.parent
    return False


def _line_of(place: str) -> int:
    line = place.rpartition(":")[2]
    return int(line) if line.isdigit() else 0


__all__ = ["NOT_AGENTS", "ONLY_LOGS", "join_spans"]
