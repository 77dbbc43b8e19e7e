"""The conversation of a session, from what its models received and wrote, in the order of time."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET
from msgspec.structs import replace

from agentv.matching.equality import json_equal
from agentv.traces.spans.drafts import CallDraft, MessageDraft, call_key
from agentv.traces.spans.messages import Said

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from agentv.model.conversation import ToolCall
    from agentv.traces.spans.nodes import Node

RECOVERED = "messages of spans that are missing, recovered from the history in later spans"
REPEATED = "replies that two instrumentations recorded"
FAILED_MODELS = "calls of models that failed"
_PROMPT, _REPLY = 0, 1
_RECENT = 10
"""Number of last messages among which the record of another instrumentation is looked for."""


class _Moment(NamedTuple):
    """A point in time at which a message was received or written."""

    time: int
    order: int
    rank: int
    node: Node


class Timeline:
    """Builder of the conversation of one session."""

    def __init__(self, nodes: list[Node], superseded: set[int]) -> None:
        self.notes: Counter[str] = Counter()
        self.messages: list[MessageDraft] = []
        self.calls: list[CallDraft] = []
        self._models = [node for node in nodes if node.kind == "model" and node.order not in superseded]
        self._has_scopes = len({node.span.scope for node in self._models}) > 1
        self._by_id: dict[str, list[CallDraft]] = {}
        """Calls by id, in the order of time: some emitters number the calls of each reply anew."""
        self._reply_of: dict[str, MessageDraft] = {}
        """The last message that has a call, by its id."""
        self._seen: Counter[Any] = Counter()
        """Messages of the user and the system that were added, by key."""
        self._said_in_trace: dict[str, Counter[Any]] = {}
        self._has_history: dict[str, bool] = {}
        self._replies: Counter[Any] = Counter()
        """All replies of models by key, to recognize them in the history of later spans."""
        self._reply_ids: set[str] = set()
        self._reply_calls: Counter[tuple[str, bytes]] = Counter()
        for node in self._models:
            for said in node.facts.replies or ():
                self._replies[said.key] += 1
                self._reply_ids.update(call.id for call in said.calls if call.id)
                self._reply_calls.update(call_key(call.tool, call.input) for call in said.calls)
        self._keeps_ids = {node.span.scope for node in self._models if self._repeats_ids(node)}
        """Instrumentations whose histories have the ids of the replies, so that another id is another call."""

    def _repeats_ids(self, node: Node) -> bool:
        return any(call.id in self._reply_ids for said in node.facts.prompt or () for call in said.calls)

    def build(self) -> None:
        """Add all messages in the order of time."""
        moments = [_Moment(node.span.start, node.order, _PROMPT, node) for node in self._models]
        moments += [_Moment(node.reply_time, node.order, _REPLY, node) for node in self._models]
        for moment in sorted(moments, key=lambda each: each[:3]):
            if moment.rank == _PROMPT:
                self._add_prompt(moment.node)
            else:
                self._add_replies(moment.node)
        for node in self._models:
            self._add_results(node)

    def add_silent_turns(self, nodes: list[Node]) -> None:
        """Add a message of the user, of unknown text, for each trace of an agent whose prompts were not captured."""
        traces = {node.span.trace_id for node in nodes if node.kind == "agent"}
        told = {message.node.span.trace_id for message in self.messages if message.node and message.role == "user"}
        for trace in sorted(traces - told):
            asked = [node for node in self._models if node.span.trace_id == trace and node.tool_ancestor is None]
            if not asked or any(_is_user(said) for node in asked for said in node.facts.prompt or ()):
                continue
            if any(node.facts.prompt for node in asked) and not any(node.facts.unread for node in asked):
                continue  # no user asked
            first = asked[0].span.start
            place = next((at for at, each in enumerate(self.messages) if each.time >= first), len(self.messages))
            draft = MessageDraft(Said("user", is_captured=False), node=asked[0], time=first, is_captured=False)
            self.messages.insert(place, draft)

    def add_agent_prompts(self, nodes: list[Node]) -> None:
        """Add what agents received and wrote, for a session whose models have no spans of their own."""
        for node in nodes:
            if node.kind == "agent" and node.tool_ancestor is None and (node.facts.prompt or node.facts.replies):
                self._add_prompt(node)
                self._add_replies(node)

    def _add_prompt(self, node: Node) -> None:
        """Add those messages of a prompt that were not there before."""
        prompt = node.facts.prompt or []
        is_first = not any(message.role == "assistant" for message in self.messages)
        last_user = max((at for at, said in enumerate(prompt) if _is_user(said)), default=-1)
        unknown = self._unknown_calls(prompt, keeps_ids=node.span.scope in self._keeps_ids)
        if node.tool_ancestor is None:
            counts = self._counts(node, prompt)
            in_prompt: defaultdict[Any, int] = defaultdict(int)
            for at, said in enumerate(prompt):
                if said.role == "assistant":
                    self._recover(node, said, unknown, is_context=is_first and at < last_user)
                elif said.role != "tool":
                    in_prompt[said.key] += 1
                    if in_prompt[said.key] > counts[said.key]:
                        counts[said.key] += 1
                        self.messages.append(MessageDraft(said, node=node, time=node.span.start))
                        if counts is not self._seen:
                            self._seen[said.key] += 1
            return
        for said in prompt:
            if said.role == "assistant":
                self._recover(node, said, unknown, is_context=False)

    def _unknown_calls(self, prompt: list[Said], *, keeps_ids: bool) -> set[int]:
        """Return those calls of a history, by `id()`, that no reply of a model tells.

        They are recognized by id. Calls without one, and all calls where ids never match, as those that ADK invents,
        are recognized by tool and input, each reply standing for one of them.
        """
        calls = [call for said in prompt if said.role == "assistant" for call in said.calls]
        if all(call.id in self._reply_ids for call in calls):
            return set()
        spare = self._reply_calls.copy()
        spare.subtract(call_key(call.tool, call.input) for call in calls if call.id in self._reply_ids)
        unknown = set()
        for call in calls:
            if call.id in self._reply_ids:
                continue
            if call.id and keeps_ids:
                unknown.add(id(call))
                continue
            key = call_key(call.tool, call.input)
            if spare[key] > 0:
                spare[key] -= 1
            else:
                unknown.add(id(call))
        return unknown

    def _counts(self, node: Node, prompt: list[Said]) -> Counter[Any]:
        """Return how often each message was said: in all traces, or in this one if its models get no history."""
        trace = node.span.trace_id
        if trace not in self._has_history:
            repeated = any(said.role == "assistant" for said in prompt)
            self._has_history[trace] = repeated or not self.messages
            own: Counter[Any] = Counter()
            own.update({key: count for key, count in self._seen.items() if key[0] == "system"})
            self._said_in_trace[trace] = self._seen if self._has_history[trace] else own
        return self._said_in_trace[trace]

    def _recover(self, node: Node, said: Said, unknown: set[int], *, is_context: bool) -> None:
        """Add a message of the agent from the history, if no span of a model tells it."""
        calls = tuple([call for call in said.calls if id(call) in unknown])
        if said.calls and not calls:
            self._complete(said)
            return
        if calls and not is_context and (silent := self._silent_reply(node, said)) is not None:
            silent.said, silent.is_captured = said, True
            self._note_reply(said, calls)
            self._add_calls(silent, calls)
            self.notes[RECOVERED] += 1
            return
        if not said.calls and (self._replies[said.key] or not is_context):
            return  # a text that is not in any reply may have been changed on its way into the history
        self._note_reply(said, calls)
        draft = MessageDraft(said, node=node, time=node.span.start, is_context=is_context)
        self._add_calls(draft, calls)
        self.messages.append(draft)
        if not is_context:
            self.notes[RECOVERED] += 1

    def _complete(self, said: Said) -> None:
        """Add what the history tells of a reply and its own span does not: its text, and arguments of its calls."""
        for call in said.calls:
            drafts = self._by_id.get(call.id or "", ())
            if len(drafts) != 1:
                continue
            drafts[0].tool = drafts[0].tool or call.tool
            if drafts[0].input is UNSET:
                drafts[0].input = call.input
            reply = self._reply_of.get(call.id or "")
            if reply is not None and reply.is_reply and reply.said.content is None and said.text:
                reply.said = replace(reply.said, content=said.content)

    def _note_reply(self, said: Said, calls: Iterable[ToolCall]) -> None:
        self._replies[said.key] += 1
        self._reply_ids.update(call.id for call in calls if call.id)
        self._reply_calls.update(call_key(call.tool, call.input) for call in calls)

    def _silent_reply(self, node: Node, said: Said) -> MessageDraft | None:
        """Return the first reply in the trace of a span that its history may tell.

        Its content was not captured, or only its text, which is the same.
        """
        for draft in self.messages:
            other = draft.node
            is_told = draft.is_captured or draft.said.content is not None
            is_text = bool(said.text) and draft.said.text == said.text
            if other is None or not draft.is_reply or draft.calls or (is_told and not is_text):
                continue
            if other.span.trace_id == node.span.trace_id and other.tool_ancestor is node.tool_ancestor:
                return draft
        return None

    def _add_replies(self, node: Node) -> None:
        facts = node.facts
        if node.span.is_error and not facts.replies:
            self.notes[FAILED_MODELS] += 1
            return
        if facts.replies is None:
            draft = MessageDraft(
                Said("assistant"), node=node, time=node.reply_time, usage=facts.usage, is_captured=False
            )
            draft.is_reply = True
            self.messages.append(draft)
            return
        usage = facts.usage
        for said in facts.replies:
            if self._is_repeated(node, said):
                self.notes[REPEATED] += 1
                continue
            is_captured = said.is_captured and (said.content is not None or bool(said.calls))
            draft = MessageDraft(said, node=node, time=node.reply_time, usage=usage, is_captured=is_captured)
            draft.is_reply = True
            usage = None  # of the whole reply, not of each message
            self._add_calls(draft, said.calls)
            is_told = self._add_own_results(draft, said)
            if said.role != "tool" or said.content is not None or not is_told:
                self.messages.append(draft)

    def _is_repeated(self, node: Node, said: Said) -> bool:
        """Return whether another instrumentation recorded the same reply of the model."""
        asked = [call for call in said.calls if call.id]
        if asked and all(self._is_known(call, node) for call in asked):
            return True
        if said.calls or not self._has_scopes:
            return False
        return any(_is_second_record(draft, node, said) for draft in self.messages[-_RECENT:])

    def _is_known(self, call: ToolCall, node: Node) -> bool:
        """Return whether the reply of another span at the same time, or of another instrumentation, has a call."""
        for other in self._by_id.get(call.id or "", ()):
            if other.asked_by is None or other.trace_id != node.span.trace_id or other.tool != call.tool:
                continue
            if not (UNSET in (call.input, other.input) or json_equal(call.input, other.input)):
                continue  # ids may be numbers of the calls in each reply
            if other.asked_by.span.scope != node.span.scope or _is_beside(other.asked_by, node):
                return True
        return False

    def _add_calls(self, draft: MessageDraft, calls: tuple[ToolCall, ...]) -> None:
        node = draft.node
        drafts = []
        for call in calls:
            new = CallDraft(
                tool=call.tool,
                input=call.input,
                output=call.output,
                id=call.id,
                status=call.status,
                time=draft.time,
                trace_id=node.span.trace_id if node is not None else "",
                asked_by=node,
                metadata=call.metadata,
            )
            drafts.append(new)
            if not draft.is_context:
                self.calls.append(new)
            if call.id:
                self._by_id.setdefault(call.id, []).append(new)
                self._reply_of[call.id] = draft
        draft.calls = drafts

    def _add_own_results(self, draft: MessageDraft, said: Said) -> bool:
        """Add results that stand in the reply itself, such as those of tools that the server runs.

        Return whether the call of each of them is known.
        """
        is_told = True
        for result in said.results:
            own = [each for each in draft.calls if result.id and each.id == result.id]
            own += self._by_id.get(result.id or "", [])[-1:]
            own += [each for each in draft.calls if each.output is UNSET and result.tool in ("", each.tool)]
            call = next(iter(own), None)
            is_told = is_told and call is not None
            if call is not None and call.output is UNSET:
                call.output = result.output
        return is_told

    def _add_results(self, node: Node) -> None:
        """Add the results in the prompt of a model to their calls: by id, else by name and order."""
        unnamed: defaultdict[str, int] = defaultdict(int)
        prompt = node.facts.prompt or ()
        answered = {result.id for said in prompt for result in said.results}
        waiting: list[CallDraft] = []
        """Calls in the history whose ids no result has, as the items of OpenAI's responses have ids of their own."""
        told: dict[str, CallDraft] = {}
        """Calls in the history by the ids that they have in it."""
        for said, asked in zip(prompt, self._told_calls(node, prompt), strict=True):
            for told_call, call in zip(said.calls, asked, strict=True):
                if call is not None and told_call.id and told_call.id in answered:
                    told[told_call.id] = call
                elif call is not None and told_call.id:
                    waiting.append(call)
            for result in said.results:
                call = told.get(result.id or "") or self._latest(self._by_id.get(result.id or "", []), node, 0)
                if call is None and not result.id:
                    call = self._nth_call(result.tool, unnamed[result.tool], node.span.trace_id)
                    unnamed[result.tool] += 1
                elif call is None:
                    call = next((each for each in waiting if result.tool in ("", each.tool)), None)
                    waiting = [each for each in waiting if each is not call]
                if call is None:
                    continue
                call.is_told = True
                if call.output is UNSET:
                    call.output = result.output
                    call.error = result.error if call.error is None else call.error
                call.status = call.status or result.status

    def _told_calls(self, node: Node, prompt: Sequence[Said]) -> list[list[CallDraft | None]]:
        """Return the calls that each message of a history tells: by id, else by tool and input, the last one last."""
        by_key: dict[Any, list[CallDraft]] = {}
        later: defaultdict[Any, int] = defaultdict(int)
        found: list[list[CallDraft | None]] = []
        for said in reversed(prompt):
            calls: list[CallDraft | None] = []
            for call in reversed(said.calls):
                same, key = self._by_id.get(call.id or "", []), call.id or ""
                if call.id and not same:
                    by_key = by_key or self._calls_by_key()
                    key = call_key(call.tool, call.input)  # type: ignore[assignment]  # a key of another kind
                    same = by_key.get(key, [])
                calls.append(self._latest(same, node, later[key]))
                later[key] += 1
            found.append(calls[::-1])
        return found[::-1]

    def _calls_by_key(self) -> dict[Any, list[CallDraft]]:
        by_key: dict[Any, list[CallDraft]] = {}
        for call in self.calls:
            by_key.setdefault(call.key, []).append(call)
        return by_key

    @staticmethod
    def _latest(calls: list[CallDraft], node: Node, later: int) -> CallDraft | None:
        """Return the last of these calls before a span, without the number of those that follow in its history."""
        if len(calls) > 1:
            calls = [each for each in calls if each.time <= node.span.start]
            calls = calls[: max(0, len(calls) - later)]
        return calls[-1] if calls else None

    def _nth_call(self, tool: str, number: int, trace_id: str) -> CallDraft | None:
        """Return a call without an id by its tool and its number among them."""
        calls = [call for call in self.calls if call.id is None and tool in ("", call.tool)]
        in_trace = [call for call in calls if call.trace_id == trace_id]
        chosen = calls if self._has_history.get(trace_id, True) else in_trace
        return chosen[number] if number < len(chosen) else None

    def unpaired_results(self) -> list[tuple[Node, ToolCall]]:
        """Return the results that models received of calls that are nowhere."""
        found: dict[str, tuple[Node, ToolCall]] = {}
        earlier = self._earlier_results()
        for node in self._models:
            waiting = 0
            for said in node.facts.prompt or ():
                waiting += len(said.calls)
                for result in said.results:
                    waiting -= 1
                    if result.id and result.id not in self._by_id and result.id not in earlier and waiting < 0:
                        found.setdefault(result.id, (node, result))
        return list(found.values())

    def _earlier_results(self) -> set[str | None]:
        """Return the ids of results of earlier turns: in the first prompt, before the last message of the user."""
        prompt: Sequence[Said] = next((node.facts.prompt for node in self._models if node.facts.prompt), ())
        last_user = max((at for at, said in enumerate(prompt) if _is_user(said)), default=0)
        return {result.id for said in prompt[:last_user] for result in said.results}


def _is_beside(one: Node, other: Node) -> bool:
    """Return whether two models were asked at the same time by one agent, and not by agents that work in parallel."""
    if not (one.span.start <= other.end and other.span.start <= one.end):
        return False
    first, second = _agent_of(one), _agent_of(other)
    return first is None or second is None or first is second


def _agent_of(node: Node) -> Node | None:
    parent = node.parent
    while parent is not None and parent.kind != "agent":
        parent = parent.parent
    return parent


def _is_second_record(draft: MessageDraft, node: Node, said: Said) -> bool:
    """Return whether a reply was recorded by another instrumentation at the same time."""
    other = draft.node
    if not draft.is_reply or other is None or other is node or other.span.scope == node.span.scope:
        return False
    if other.span.trace_id != node.span.trace_id or draft.said.key != said.key:
        return False
    return other.span.start <= node.end and node.span.start <= other.end


def _is_user(said: Said) -> bool:
    return said.role == "user" and not said.results
