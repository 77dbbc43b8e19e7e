"""LangGraph updates: the messages a graph added to its state, each once and in the order sent."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

from msgspec.structs import replace

from agentv.formats.langchain import decode_langchain, unwrap_langchain
from agentv.formats.langgraph import mark_pending
from agentv.formats.openai import to_openai
from agentv.formats.unread import with_unread_fields
from agentv.jsonio import dump_json, scrub_text
from agentv.model.conversation import Message
from agentv.model.response import ProviderResponse
from agentv.redaction import shorten

INTERRUPT = "__interrupt__"
MAX_STATE_BYTES = 100_000
"""Size limit of the graph's other state in a reply."""
MAX_EXCERPT = 2000
"""Length limit of a quoted value in a message."""
_METADATA = "__metadata__"
_REMOVE_ALL = "__remove_all__"
_OVERWRITE = "__overwrite__"
_TYPES = {"assistant": "ai", "user": "human"}
_PAIR_ROLES = frozenset(("ai", "assistant", "human", "user", "system", "developer", "tool", "function"))
_PAIR = 2
_RETURN = "__return__"
_WRITES = "$writes"
_TYPED = frozenset(("ai", "AIMessageChunk", "human", "system", "tool", "function", "chat", "remove"))


class _SentMessage:
    """A message with the node that sent it."""

    __slots__ = ("by_root", "namespace", "node", "raw", "removed")

    def __init__(self, raw: dict[str, Any], node: str, namespace: tuple[str, ...]) -> None:
        self.raw = raw
        self.node = node
        self.namespace = namespace
        self.by_root = not namespace
        """True if the graph itself has the message, not only a subgraph."""
        self.removed = False

    @property
    def is_answer(self) -> bool:
        """True for a possible answer: an assistant message that was not removed."""
        kind = self.raw.get("role", self.raw.get("type"))
        return not self.removed and isinstance(kind, str) and _TYPES.get(kind, kind) in ("ai", "AIMessageChunk")


class UpdateCollector:
    """Collector of the messages, the other state and the interrupts of one attempt."""

    def __init__(self, key: str, known_ids: Collection[str] = ()) -> None:
        self._key = key
        self._known_ids = set(known_ids)
        """Ids of earlier messages, which a graph may send again with the new ones."""
        self._messages: list[_SentMessage] = []
        self._by_id: dict[str, _SentMessage] = {}
        self._without_id: list[_SentMessage] = []
        self._update_keys: dict[tuple[tuple[str, ...], str], set[str]] = {}
        """Keys in the last update of each subgraph node."""
        self._subgraph_state: dict[str, Any] = {}
        """State of subgraphs without messages; it is searched for calls but not kept."""
        self.state: dict[str, Any] = {}
        self.returned: Any = None
        """Return value of a functional graph (`@entrypoint`) if it is not a state, usually a text."""
        self.interrupts: list[dict[str, Any]] | None = None
        """Interrupts that the graph waits for; empty at a breakpoint, `None` if it does not wait."""

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def has_subgraphs(self) -> bool:
        """True if subgraphs sent updates."""
        return bool(self._update_keys)

    @property
    def last_node(self) -> str:
        """Node that sent the last message."""
        return self._messages[-1].node if self._messages else ""

    def take_update(self, update: Any, namespace: tuple[str, ...] = ()) -> None:
        """Add the updates of one step; the namespace is that of the nodes' subgraph."""
        if not isinstance(update, Mapping):
            return
        for node, written in update.items():
            if node == INTERRUPT:
                self._add_interrupts(written)
            elif node != _METADATA:
                if namespace:
                    self._update_keys[namespace, node] = _keys_of(written)
                else:
                    self._record_return(written)
                # A node may write several times in one step.
                for item in written if isinstance(written, (list, tuple)) else (written,):
                    self._add_values(item, node, namespace)

    def take_task(self, task: Any, namespace: tuple[str, ...]) -> None:
        """Add what a subgraph's node wrote but its update lacks.

        Updates of a subgraph have only the keys of its output schema; those of the graph itself have all keys.
        """
        node = task.get("name") if namespace and isinstance(task, Mapping) else None
        if not isinstance(node, str):
            return
        known_keys = self._update_keys.get((namespace, node), set())
        for key, value in _task_writes(task.get("result")):
            if key not in known_keys:
                self._add_values({key: value}, node, namespace)

    def take_state(self, state: Any) -> None:
        """Add the whole state; known messages keep their position."""
        self._record_return(state)
        if not isinstance(state, Mapping):
            return
        if INTERRUPT in state:
            self._add_interrupts(state[INTERRUPT])
        state = {key: value for key, value in state.items() if key != INTERRUPT}
        self._add_values(state, "", (), is_whole=True)

    def response(self, answer_key: str = "") -> ProviderResponse:
        """Return the reply; the answer is the last message, or the state's value of `answer_key`."""
        decoded = decode_langchain([_with_origin(sent) for sent in self._messages])
        if self.interrupts is not None:
            decoded = mark_pending(decoded, self.interrupts)
        state, warnings = _limit_state(self.state)
        metadata = {**(decoded.metadata or {}), **({"state": state} if state else {})}
        left_out = {key: value for key, value in self.state.items() if key not in state} | self._subgraph_state
        return replace(
            with_unread_fields(decoded, left_out, ()),
            text=_answer_text(self.state[answer_key]) if answer_key in self.state else self._answer(),
            output_messages=decoded.output_messages or None,
            metadata=metadata or None,
            warnings=(*decoded.warnings, *warnings),
        )

    def _record_return(self, written: Any) -> None:
        """Record the last written value: the results of a function's tasks come before its own."""
        items = written if isinstance(written, (list, tuple)) else [written]
        self.returned = None if any(isinstance(item, Mapping) for item in items) else written or None

    def _answer(self) -> str:
        return _answer_text(self.returned) if self.returned is not None and not self._messages else self._last_answer()

    def _last_answer(self) -> str:
        """Return the graph's last answer, or that of its subgraphs if it has none."""
        answers = [sent for sent in self._messages if sent.is_answer]
        own = [sent for sent in answers if sent.by_root]
        return decode_langchain([(own or answers)[-1].raw]).text if answers else ""

    def _add_interrupts(self, interrupts: Any) -> None:
        items = [item for item in interrupts if isinstance(item, dict)] if isinstance(interrupts, (list, tuple)) else []
        pending = self.interrupts or []
        # A subgraph and its parent graph report the same interrupt.
        ids = {item.get("id") for item in pending if isinstance(item.get("id"), str)}
        self.interrupts = [*pending, *(item for item in items if item.get("id") not in ids)]

    def _add_values(self, written: Any, node: str, namespace: tuple[str, ...], *, is_whole: bool = False) -> None:
        if not isinstance(written, Mapping):
            return
        if self._key not in written and "content" in written and ("type" in written or "role" in written):
            self._add_messages([dict(written)], node, namespace, is_whole=is_whole)  # the state is a message itself
            return
        if self._key in written:
            self._add_messages(list(_as_messages(written[self._key])), node, namespace, is_whole=is_whole)
        for key, value in written.items():
            if key == self._key or not isinstance(key, str):
                continue
            if not namespace:
                self.state[key] = value
            if _are_messages(value):
                self._add_other_messages(list(_as_messages(value)), node, namespace)
            elif namespace:
                self._subgraph_state[f"subgraphs.{_subgraph(namespace)}.{key}"] = value

    def _add_other_messages(self, messages: list[dict[str, Any]], node: str, namespace: tuple[str, ...]) -> None:
        """Add messages of another key, such as those between a subgraph's agents.

        They are never the graph's answer. Copies of known messages are skipped.
        """
        for raw in messages:
            own_id = _id(raw)
            if raw.get("type") == "remove":
                continue  # it affects that key only
            if own_id is None or (own_id not in self._known_ids and own_id not in self._by_id):
                sent = next((item for item in self._messages if _comparable(item.raw) == _comparable(raw)), None)
                if sent is None:
                    sent = _SentMessage(raw, node, namespace)
                    sent.by_root = False
                    self._messages.append(sent)
                    if own_id is None:
                        self._without_id.append(sent)
                if own_id is not None:
                    self._by_id[own_id] = sent

    def _add_messages(
        self, messages: list[dict[str, Any]], node: str, namespace: tuple[str, ...], *, is_whole: bool
    ) -> None:
        matched: list[_SentMessage] | None = [] if is_whole else None
        again = is_whole or any(_id(raw) in self._known_ids or _id(raw) in self._by_id for raw in messages if _id(raw))
        for raw in messages:
            if raw.get("type") == "remove":
                self._remove(_id(raw), namespace)
                self._messages.append(_SentMessage(raw, node, namespace))
            elif _id(raw) not in self._known_ids:
                self._add_message(raw, node, namespace, again=again, matched=matched)

    def _add_message(
        self,
        raw: dict[str, Any],
        node: str,
        namespace: tuple[str, ...],
        *,
        again: bool,
        matched: list[_SentMessage] | None,
    ) -> None:
        own_id = _id(raw)
        sent = self._by_id.get(own_id) if own_id else None
        sent = sent or self._find_without_id(raw, namespace, again=again, matched=matched)
        if sent is None:
            sent = _SentMessage(raw, node, namespace)
            self._messages.append(sent)
            if not own_id:
                self._without_id.append(sent)
        else:
            sent.raw = raw
            sent.by_root = sent.by_root or not namespace
            sent.removed = False
        if own_id:
            self._by_id[own_id] = sent

    def _find_without_id(
        self, raw: dict[str, Any], namespace: tuple[str, ...], *, again: bool, matched: list[_SentMessage] | None
    ) -> _SentMessage | None:
        """Find the same message sent without an id: ids are assigned at the end of a step, updates may come earlier.

        A whole state has each message once: `matched` are those already found in it.
        """
        has_id = _id(raw) is not None
        for sent in self._without_id:
            below = len(sent.namespace) > len(namespace) and sent.namespace[: len(namespace)] == namespace
            if matched is not None and sent in matched:
                continue
            if (below or matched is not None or (again and has_id)) and _comparable(sent.raw) == _comparable(raw):
                if has_id:
                    self._without_id.remove(sent)
                elif matched is not None:
                    matched.append(sent)
                return sent
        return None

    def _remove(self, own_id: str | None, namespace: tuple[str, ...]) -> None:
        """Mark messages as removed: they stay in the conversation but are not the answer.

        Messages that a subgraph removes from its own state remain in that of its parent graph.
        """
        removed = self._messages if own_id == _REMOVE_ALL else [self._by_id[own_id]] if own_id in self._by_id else []
        for sent in removed:
            if not namespace or (not sent.by_root and sent.namespace[: len(namespace)] == namespace):
                sent.removed = True


def to_langgraph(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Convert messages for a graph, with ids to recognize them when the graph sends them back."""
    written = []
    for message in to_openai(messages):
        # LangChain passes unknown fields to the model as arguments.
        fields = {key: value for key, value in message.items() if key != "metadata"}
        written.append({**fields, "id": fields.get("id") or str(uuid4())})
    return written


def describe_interrupts(interrupts: Sequence[Mapping[str, Any]]) -> str:
    """Describe what a graph waits for, as a phrase after "the graph"."""
    questions = [excerpt(item.get("value", item)) for item in interrupts]
    return f"asks: {'; '.join(questions)}" if questions else "stopped at a breakpoint"


def excerpt(value: Any) -> str:
    """Return a value as text of limited length for a message."""
    text = scrub_text(value) if isinstance(value, str) else dump_json(value).decode()
    return shorten(text, MAX_EXCERPT + 1)


def message_ids(state: Mapping[str, Any], key: str) -> set[str]:
    """Return the ids of the messages in a state, under `key` and others."""
    lists = [value for name, value in state.items() if name == key or _are_messages(value)]
    return {own_id for value in lists for raw in _as_messages(value) if (own_id := _id(raw)) is not None}


def _are_messages(value: Any) -> bool:
    """Return whether a value is a LangChain or OpenAI message, or a list of such messages."""
    value = _overwrite_value(value)
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    return bool(items) and all(map(_is_message, items))


def _is_message(item: Any) -> bool:
    raw = unwrap_langchain(item)
    if not isinstance(raw, Mapping):
        return False
    kind, role = raw.get("type"), raw.get("role")
    if isinstance(kind, str) and kind in _TYPED:
        return "content" in raw or kind == "remove"
    return isinstance(role, str) and role in _PAIR_ROLES and ("content" in raw or "tool_calls" in raw)


def _keys_of(written: Any) -> set[str]:
    items = written if isinstance(written, (list, tuple)) else [written]
    return {key for item in items if isinstance(item, Mapping) for key in item}


def _task_writes(result: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values that a task wrote, from an object or, with older servers, a list of pairs."""
    listed = result if isinstance(result, (list, tuple)) else ()
    pairs = [item for item in listed if isinstance(item, (list, tuple)) and len(item) == _PAIR]
    for key, value in result.items() if isinstance(result, Mapping) else pairs:
        if not isinstance(key, str) or key == _RETURN:
            continue
        several = value.get(_WRITES) if isinstance(value, Mapping) else None
        for item in several if isinstance(several, list) else [value]:
            yield key, item


def _answer_text(value: Any) -> str:
    """Return an answer that is not a message: a string unchanged, anything else as JSON."""
    if isinstance(value, str):
        return scrub_text(value)
    messages = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
    if messages and all("content" in item and ("type" in item or "role" in item) for item in messages):
        return decode_langchain(messages).text
    return dump_json(value).decode()


def _as_messages(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the messages that a node wrote, in any of the short forms that LangGraph accepts."""
    value = _overwrite_value(value)
    items = value if isinstance(value, (list, tuple)) and not _is_pair(value) else [value]
    for item in items:
        if isinstance(item, str):
            yield {"type": "human", "content": item}
        elif _is_pair(item):
            yield {"type": _TYPES.get(item[0], item[0]), "content": item[1]}
        elif isinstance(item, Mapping):
            yield dict(unwrap_langchain(item))


def _overwrite_value(value: Any) -> Any:
    """Return the value with which a node overwrote a key."""
    return value.get("value") if isinstance(value, Mapping) and value.get("type") == _OVERWRITE else value


def _is_pair(value: Any) -> bool:
    """Return whether a value is a pair such as `("ai", "Hello")`."""
    if not isinstance(value, (list, tuple)) or len(value) != _PAIR:
        return False
    return isinstance(value[0], str) and value[0] in _PAIR_ROLES


def _id(raw: Mapping[str, Any]) -> str | None:
    own_id = raw.get("id")
    return own_id if isinstance(own_id, str) and own_id else None


def _comparable(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message without its id and its empty fields, for comparison."""
    fields = {
        key: value for key, value in raw.items() if key not in ("id", "role", "type") and value not in (None, {}, [])
    }
    kind = raw.get("role", raw.get("type"))
    return {**fields, "type": _TYPES.get(kind, kind) if isinstance(kind, str) else kind}


def _with_origin(sent: _SentMessage) -> dict[str, Any]:
    """Return the message with the names of its node and subgraph, which become metadata."""
    label = {"langgraph_node": sent.node} if sent.node else {}
    if sent.namespace:
        label["langgraph_subgraph"] = _subgraph(sent.namespace)
    return {**label, **sent.raw}


def _subgraph(namespace: tuple[str, ...]) -> str:
    return "/".join(name.partition(":")[0] for name in namespace)


def _limit_state(state: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the values of the state that fit into a reply, and warnings about the others."""
    limited, warnings, room = {}, [], MAX_STATE_BYTES
    for key, value in state.items():
        size = len(dump_json(value))
        if size <= room:
            room -= size
            limited[key] = value
        else:
            warnings.append(f"metadata.state.{key}: left out, it takes {size:,} bytes")
    return limited, warnings
