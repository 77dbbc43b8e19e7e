"""Spans of a session as a tree: duplicates merged, log records attached, and the facts of each span."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from agentv.traces.conventions.claude_code import claude_code_spans, is_of_claude_code
from agentv.traces.spans.facts import Facts, Kind
from agentv.traces.spans.interpret import interpret, is_agent_span

if TYPE_CHECKING:
    from agentv.model.session import OtelSpan
    from agentv.traces.spans.messages import MessageReader

MISSING_PARENTS = "spans whose parent is not in the files"
DUPLICATES = "spans that were exported more than once"
UNFINISHED = "spans that have not ended"
COLLISIONS = "spans that have the id of another span"
_IDENTITY = ("gen_ai.tool.name", "tool.name", "gen_ai.tool.call.id", "gen_ai.response.id", "gen_ai.operation.name")
"""Attributes that never differ between two copies of one span."""
_OTHER_RUNS = frozenset(("tool", "agent"))
"""Kinds of spans that may be below a model as well, in which models are asked for something else."""
_MAX_DRIFT_NS = 1_000_000
"""Difference between the starts of two copies: some exports round them to milliseconds."""
_encode = msgspec.json.Encoder(order="deterministic").encode


class Node:
    """A span with its facts and its place in the tree."""

    def __init__(self, span: OtelSpan, facts: Facts, order: int) -> None:
        self.span = span
        self.facts = facts
        self.kind: Kind = facts.kind
        """The kind of the span."""
        self.order = order
        """Number of the span in the order of their starts."""
        self.parent: Node | None = None
        self.children: list[Node] = []
        self._reply_time: int | None = None
        self._tool_starts: list[int] | None = None
        self._tool_ancestor: Node | None = self
        """The node itself while it is not known."""

    @property
    def end(self) -> int:
        """Time of the end; that of the start if it has not ended."""
        return max(self.span.end, self.span.start)

    @property
    def reply_time(self) -> int:
        """Time of a model's reply: the end of its span, or before the tools that it asked for.

        A stream may keep the span of the model open while its tools run.
        """
        if self._reply_time is not None:
            return self._reply_time
        end = self.end
        for node in (self, self.parent):
            starts = node.tool_starts if node is not None else ()
            first = bisect_right(starts, self.span.start)
            if first < len(starts):
                end = min(end, starts[first] - 1) if starts[first] < self.end else end
        self._reply_time = end
        return end

    @property
    def tool_starts(self) -> list[int]:
        """Times at which the tools right below it started, sorted."""
        if self._tool_starts is None:
            self._tool_starts = sorted([node.span.start for node in self.children if node.kind == "tool"])
        return self._tool_starts

    @property
    def tool_ancestor(self) -> Node | None:
        """The nearest tool that it runs within, as a subagent does."""
        if self._tool_ancestor is self:
            node = self.parent
            while node is not None and node.kind != "tool":
                node = node.parent
            self._tool_ancestor = node
        return self._tool_ancestor

    def descendants(self, kind: str, *, within: frozenset[str] = frozenset()) -> list[Node]:
        """Return all spans of a kind below this one, without those that run within spans of other kinds."""
        found: list[Node] = []
        todo = list(self.children)
        while todo:
            node = todo.pop()
            if node.kind == kind:
                found.append(node)
            if node.kind not in within:
                todo += node.children
        return found


class Tree(NamedTuple):
    """All spans of a session in the order of their starts."""

    nodes: list[Node]
    notes: Counter[str]


def build_tree(spans: list[OtelSpan], reader: MessageReader) -> Tree:
    """Return the spans of a session as a tree; the result does not depend on the order in which they arrived."""
    notes: Counter[str] = Counter()
    merged = _merge(spans, notes)
    merged.sort(key=lambda span: (span.start, span.end or span.start, span.trace_id, span.span_id))
    nodes = [Node(span, Facts(unread=[]), order) for order, span in enumerate(merged)]
    by_id = {(node.span.trace_id, node.span.span_id): node for node in nodes}
    for node in nodes:
        span = node.span
        parent = by_id.get((span.trace_id, span.parent_id)) if span.parent_id else None
        if parent is not None and parent is not node and not _is_below(parent, node):
            node.parent = parent
            parent.children.append(node)
        elif span.parent_id and is_agent_span(span):
            notes[MISSING_PARENTS] += 1
        if not span.end and not span.is_log and is_agent_span(span):
            notes[UNFINISHED] += 1
    for node in nodes:
        node.facts = interpret(node.span, reader)
        node.kind = node.facts.kind
    return Tree(nodes, notes)


def _is_below(node: Node | None, other: Node) -> bool:
    """Return whether a node is below another one, so that the other one cannot be its child."""
    while node is not None:
        if node is other:
            return True
        node = node.parent
    return False


def _merge(spans: list[OtelSpan], notes: Counter[str]) -> list[OtelSpan]:
    """Merge the copies of each span, and attach log records to their spans."""
    copies: dict[tuple[str, str], list[OtelSpan]] = {}
    logs: dict[tuple[str, str], list[OtelSpan]] = {}
    for span in spans:
        (logs if span.is_log else copies).setdefault((span.trace_id, span.span_id), []).append(span)
    found: dict[tuple[str, str], OtelSpan] = {}
    for key, group in copies.items():
        if len(group) == 1:
            found[key] = group[0]
            continue
        for number, different in enumerate(_tell_apart(group)):
            notes[DUPLICATES] += len(different) - 1
            if number:
                notes[COLLISIONS] += 1
                own_id = f"{key[1]} {number + 1}"
                found[key[0], own_id] = msgspec.structs.replace(_merge_copies(different), span_id=own_id)
            else:
                found[key] = _merge_copies(different)
    told: list[OtelSpan] = []
    for key, records in logs.items():
        unique = _unique(records, notes)
        told += [record for record in unique if is_of_claude_code(record)]
        if rest := [record for record in unique if not is_of_claude_code(record)]:
            _attach(found, key, rest)
    merged = list(found.values())
    kinds = {span.scope or span.name: span for span in merged}
    is_claude_code = bool(told) or any(map(is_of_claude_code, kinds.values()))
    return claude_code_spans(merged, told) if is_claude_code else merged


def _tell_apart(spans: list[OtelSpan]) -> list[list[OtelSpan]]:
    """Return the copies of each span; spans that are not the same may have one id by mistake."""
    groups: list[list[OtelSpan]] = []
    for span in sorted(spans, key=lambda each: (each.start, _content(each))):
        same = next((group for group in groups if all(_may_be_copies(span, other) for other in group)), None)
        if same is None:
            groups.append([span])
        else:
            same.append(span)
    return groups


def _may_be_copies(one: OtelSpan, other: OtelSpan) -> bool:
    """Return whether two spans with the same id are copies of one, perhaps at different times of its life."""
    if one.start and other.start and abs(one.start - other.start) > _MAX_DRIFT_NS:
        return False
    values = [(one.attributes.get(name), other.attributes.get(name)) for name in _IDENTITY]
    return all(first is None or second is None or first == second for first, second in values)


def _merge_copies(spans: list[OtelSpan]) -> OtelSpan:
    """Return one span with the attributes and events of all copies; those of the most complete copy count most."""
    unique = {_content(span): span for span in spans}
    ranked = [span for _, span in sorted(unique.items(), key=lambda item: _completeness(item[1], item[0]))]
    best = ranked[-1]
    if len(ranked) == 1:
        return min(spans, key=lambda span: (span.file, span.place))
    attributes: dict[str, Any] = {}
    resource: dict[str, Any] = {}
    events = {}
    for span in ranked:
        attributes |= span.attributes
        resource |= span.resource
        events.update({_encode(event): event for event in span.events})
    first = min(spans, key=lambda span: (span.file, span.place))
    return msgspec.structs.replace(
        best,
        parent_id=best.parent_id or next((span.parent_id for span in ranked if span.parent_id), ""),
        start=min((span.start for span in ranked if span.start), default=0),
        attributes=dict(sorted(attributes.items())),
        resource=dict(sorted(resource.items())),
        events=[event for _, event in sorted(events.items(), key=lambda item: (item[1].time, item[0]))],
        is_error=any(span.is_error for span in ranked),
        error=best.error or next((span.error for span in ranked if span.error), ""),
        place=first.place,
        file=first.file,
    )


def _completeness(span: OtelSpan, content: bytes) -> tuple[bool, int, int, bytes]:
    """Order spans with the same id: an ended one is better than one in progress, more attributes are better."""
    return bool(span.end), len(span.attributes) + len(span.events), span.end, content


def _content(span: OtelSpan) -> bytes:
    return _encode(msgspec.structs.replace(span, place="", file=0))


def _unique(records: list[OtelSpan], notes: Counter[str]) -> list[OtelSpan]:
    """Return log records without those that an exporter sent again, in the order of their times."""
    by_content = {_content(record): record for record in records}
    if len(by_content) < len(records):
        notes[DUPLICATES] += len(records) - len(by_content)
    return [record for _, record in sorted(by_content.items(), key=lambda item: (item[1].start, item[0]))]


def _attach(found: dict[tuple[str, str], OtelSpan], key: tuple[str, str], records: list[OtelSpan]) -> None:
    """Add log records to their span, or make a span of them if it is not in the files."""
    span = found.get(key)
    events = [event for record in records for event in record.events]
    if span is not None and key[1]:
        span.events = [*span.events, *events]
        span.dropped += sum(record.dropped for record in records)
        return
    if key[1]:
        first = records[0]
        found[key] = msgspec.structs.replace(first, is_log=False, events=events, end=records[-1].start)
        return
    for index, record in enumerate(records):
        name = f"log {index}"
        found[key[0], name] = msgspec.structs.replace(record, is_log=False, span_id=name, end=record.start)


def drop_superseded(nodes: list[Node]) -> set[int]:
    """Return the orders of model spans that repeat what another model span tells.

    Their usage is that of the other spans, so that it must not be counted twice.
    """
    superseded = _streams_told_later([node for node in nodes if node.kind == "model"])
    for node in nodes:
        if node.kind != "model" or node.order in superseded:
            continue
        below = node.descendants("model", within=_OTHER_RUNS)
        is_told_below = any(each.facts.replies is not None for each in below)
        if _has_calls(node) and not any(map(_has_calls, below)):
            is_told_below = False
        if below and (node.facts.replies is None or is_told_below):
            superseded.add(node.order)
            below[-1].facts.prompt = below[-1].facts.prompt or (node.facts.prompt if len(below) == 1 else None)
        elif below:  # only the outer one has the messages: the inner ones are its parts
            superseded.update(each.order for each in below)
            if all(each.facts.usage is not None for each in below) and node.facts.usage is None:
                node.facts.usage = below[-1].facts.usage
    rest = [node for node in nodes if node.kind == "model" and node.order not in superseded]
    return superseded | _second_records(rest)


def _has_calls(node: Node) -> bool:
    return any(said.calls for said in node.facts.replies or ())


def _second_records(models: list[Node]) -> set[int]:
    """Return the orders of model spans without messages beside a span of another instrumentation with them.

    A client may have telemetry of its own, without content, below or beside that of an instrumentation.
    """
    beside: dict[tuple[str, str], list[Node]] = {}
    for node in models:
        beside.setdefault((node.span.trace_id, node.span.parent_id), []).append(node)
    found: set[int] = set()
    for group in beside.values():
        told = [node for node in group if node.facts.replies is not None]
        for node in group if told else ():
            other = next((each for each in told if _is_record_of(node, each)), None)
            if other is not None:
                told.remove(other)
                found.add(node.order)
                other.facts.usage = other.facts.usage or node.facts.usage
    return found


def _is_record_of(node: Node, other: Node) -> bool:
    """Return whether a model span without messages is a record of the same reply, by its id or its usage."""
    if node.facts.replies is not None or node.span.scope == other.span.scope:
        return False
    if not (node.span.start <= other.end and other.span.start <= node.end):
        return False
    one, same = node.facts, other.facts
    if one.response_id and same.response_id:
        return one.response_id == same.response_id
    return one.usage is not None and same.usage is not None and _counts(one) == _counts(same)


def _streams_told_later(models: list[Node]) -> set[int]:
    """Return the orders of model spans whose reply a later span tells, and of the spans below them."""
    waiting: dict[tuple[str, str, str], list[Node]] = {}
    found: set[int] = set()
    for node in models:
        group = waiting.setdefault((node.span.trace_id, node.span.parent_id, node.span.scope), [])
        if node.facts.replies is None:
            group.append(node)
        elif (begun := next((each for each in group if _is_end_of(node, each)), None)) is not None:
            group.remove(begun)
            parts = [each for each in begun.descendants("model", within=_OTHER_RUNS) if each.facts.replies is None]
            found.update(each.order for each in (begun, *parts))
    return found


def _is_end_of(node: Node, other: Node) -> bool:
    """Return whether a span without a duration tells the reply of a stream, as Logfire adds it after its span."""
    if node.span.end != node.span.start or node.span.start < other.end:
        return False
    keys, same = ([said.key for said in each.facts.prompt or ()] for each in (node, other))
    return bool(keys) and keys == same


def _counts(facts: Facts) -> tuple[int | None, int | None]:
    usage = facts.usage
    return (usage.input_tokens, usage.output_tokens) if usage is not None else (None, None)
