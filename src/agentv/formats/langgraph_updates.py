"""What a graph added to its state, gathered from its updates: every message once, in the order it was sent."""

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

INTERRUPT = "__interrupt__"
MAX_STATE_BYTES = 100_000
"""How much of the graph's other state a reply keeps."""
MAX_WORDS = 2000
"""Characters of a question that a message quotes."""
_METADATA = "__metadata__"
_REMOVE_ALL = "__remove_all__"
_OVERWRITE = "__overwrite__"
_TYPES = {"assistant": "ai", "user": "human"}
_PAIR_ROLES = frozenset(("ai", "assistant", "human", "user", "system", "developer", "tool", "function"))
_PAIR = 2
_RETURN = "__return__"
_WRITES = "$writes"
_TYPED = frozenset(("ai", "AIMessageChunk", "human", "system", "tool", "function", "chat", "remove"))


class _Sent:
    """One message, and who sent it."""

    __slots__ = ("by_root", "namespace", "node", "raw", "removed")

    def __init__(self, raw: dict[str, Any], node: str, namespace: tuple[str, ...]) -> None:
        self.raw = raw
        self.node = node
        self.namespace = namespace
        self.by_root = not namespace
        """Whether the graph itself has it, and not only a subgraph."""
        self.removed = False

    @property
    def is_answer(self) -> bool:
        """Whether it could be the last word: the assistant's, and not taken back."""
        kind = self.raw.get("role", self.raw.get("type"))
        return not self.removed and isinstance(kind, str) and _TYPES.get(kind, kind) in ("ai", "AIMessageChunk")


class Gathered:
    """The messages of one attempt so far, with what else the graph's state holds and what it asks."""

    def __init__(self, key: str, known: Collection[str] = ()) -> None:
        self._key = key
        self._known = set(known)
        """Ids of messages that were there before, which a graph may send again with all the others."""
        self._sent: list[_Sent] = []
        self._by_id: dict[str, _Sent] = {}
        self._nameless: list[_Sent] = []
        self._shown: dict[tuple[tuple[str, ...], str], set[str]] = {}
        """Keys that the last update of each subgraph's node held."""
        self._beside: dict[str, Any] = {}
        """The state of subgraphs without their messages, which is searched for calls and not kept."""
        self.state: dict[str, Any] = {}
        self.returned: Any = None
        """What a graph in functional form (`@entrypoint`) returned, where that is no state: a text, most of all."""
        self.interrupts: list[dict[str, Any]] | None = None
        """What the graph asks before it goes on; empty at a breakpoint, `None` when it does not wait."""

    def __len__(self) -> int:
        return len(self._sent)

    @property
    def has_subgraphs(self) -> bool:
        """Whether subgraphs sent updates."""
        return bool(self._shown)

    @property
    def last_node(self) -> str:
        """Who sent the last message."""
        return self._sent[-1].node if self._sent else ""

    def take_update(self, update: Any, namespace: tuple[str, ...] = ()) -> None:
        """Take note of what the nodes of one step wrote; the namespace tells which subgraph they belong to."""
        if not isinstance(update, Mapping):
            return
        for node, written in update.items():
            if node == INTERRUPT:
                self._ask(written)
            elif node != _METADATA:
                if namespace:
                    self._shown[namespace, node] = _keys_of(written)
                else:
                    self._return(written)
                # A node may write several times in one step.
                for each in written if isinstance(written, (list, tuple)) else (written,):
                    self._take_written(each, node, namespace)

    def take_task(self, task: Any, namespace: tuple[str, ...]) -> None:
        """Take note of what a subgraph's node wrote and its update left out.

        The updates of a subgraph hold the keys of its output schema alone; the graph's own hold all keys.
        """
        node = task.get("name") if namespace and isinstance(task, Mapping) else None
        if not isinstance(node, str):
            return
        shown = self._shown.get((namespace, node), set())
        for key, value in _task_writes(task.get("result")):
            if key not in shown:
                self._take_written({key: value}, node, namespace)

    def take_state(self, state: Any) -> None:
        """Take note of the whole state; whatever of it is known already stays where it is."""
        self._return(state)
        if not isinstance(state, Mapping):
            return
        if INTERRUPT in state:
            self._ask(state[INTERRUPT])
        state = {key: value for key, value in state.items() if key != INTERRUPT}
        self._take_written(state, "", (), is_whole=True)

    def response(self, answer_key: str = "") -> ProviderResponse:
        """All of it as a reply; the answer is the last message, or what the state holds under this key."""
        decoded = decode_langchain([_labelled(sent) for sent in self._sent])
        if self.interrupts is not None:
            decoded = mark_pending(decoded, self.interrupts)
        state, warnings = _bounded(self.state)
        metadata = {**(decoded.metadata or {}), **({"state": state} if state else {})}
        left_out = {key: value for key, value in self.state.items() if key not in state} | self._beside
        return replace(
            with_unread_fields(decoded, left_out, ()),
            text=_words(self.state[answer_key]) if answer_key in self.state else self._answer(),
            output_messages=decoded.output_messages or None,
            metadata=metadata or None,
            warnings=(*decoded.warnings, *warnings),
        )

    def _return(self, written: Any) -> None:
        """Take note of what was written last: before a function's own result come those of its tasks."""
        items = written if isinstance(written, (list, tuple)) else [written]
        self.returned = None if any(isinstance(item, Mapping) for item in items) else written or None

    def _answer(self) -> str:
        return _words(self.returned) if self.returned is not None and not self._sent else self._last_words()

    def _last_words(self) -> str:
        """What the graph itself said last; what its subgraphs say among themselves counts when it says nothing."""
        answers = [sent for sent in self._sent if sent.is_answer]
        own = [sent for sent in answers if sent.by_root]
        return decode_langchain([(own or answers)[-1].raw]).text if answers else ""

    def _ask(self, asked: Any) -> None:
        items = [item for item in asked if isinstance(item, dict)] if isinstance(asked, (list, tuple)) else []
        pending = self.interrupts or []
        # A subgraph and the graph around it tell of the same one.
        ids = {item.get("id") for item in pending if isinstance(item.get("id"), str)}
        self.interrupts = [*pending, *(item for item in items if item.get("id") not in ids)]

    def _take_written(self, written: Any, node: str, namespace: tuple[str, ...], *, is_whole: bool = False) -> None:
        if not isinstance(written, Mapping):
            return
        if self._key not in written and "content" in written and ("type" in written or "role" in written):
            self._take_messages(
                [dict(written)], node, namespace, is_whole=is_whole
            )  # a state that is nothing but its messages
            return
        if self._key in written:
            self._take_messages(list(_messages(written[self._key])), node, namespace, is_whole=is_whole)
        for key, value in written.items():
            if key == self._key or not isinstance(key, str):
                continue
            if not namespace:
                self.state[key] = value
            if _are_messages(value):
                self._take_other_messages(list(_messages(value)), node, namespace)
            elif namespace:
                self._beside[f"subgraphs.{_subgraph(namespace)}.{key}"] = value

    def _take_other_messages(self, messages: list[dict[str, Any]], node: str, namespace: tuple[str, ...]) -> None:
        """Take messages under another key, such as those between a subgraph's own agents.

        They are never the answer of the graph itself. Copies of messages that are known already are left out.
        """
        for raw in messages:
            own_id = _id(raw)
            if raw.get("type") == "remove":
                continue  # it concerns that key alone
            if own_id is None or (own_id not in self._known and own_id not in self._by_id):
                sent = next((each for each in self._sent if _said(each.raw) == _said(raw)), None)
                if sent is None:
                    sent = _Sent(raw, node, namespace)
                    sent.by_root = False
                    self._sent.append(sent)
                    if own_id is None:
                        self._nameless.append(sent)
                if own_id is not None:
                    self._by_id[own_id] = sent

    def _take_messages(
        self, messages: list[dict[str, Any]], node: str, namespace: tuple[str, ...], *, is_whole: bool
    ) -> None:
        matched: list[_Sent] | None = [] if is_whole else None
        again = is_whole or any(_id(raw) in self._known or _id(raw) in self._by_id for raw in messages if _id(raw))
        for raw in messages:
            if raw.get("type") == "remove":
                self._remove(_id(raw), namespace)
                self._sent.append(_Sent(raw, node, namespace))
            elif _id(raw) not in self._known:
                self._take_message(raw, node, namespace, again=again, matched=matched)

    def _take_message(
        self,
        raw: dict[str, Any],
        node: str,
        namespace: tuple[str, ...],
        *,
        again: bool,
        matched: list[_Sent] | None,
    ) -> None:
        own_id = _id(raw)
        sent = self._by_id.get(own_id) if own_id else None
        sent = sent or self._twin(raw, namespace, again=again, matched=matched)
        if sent is None:
            sent = _Sent(raw, node, namespace)
            self._sent.append(sent)
            if not own_id:
                self._nameless.append(sent)
        else:
            sent.raw = raw
            sent.by_root = sent.by_root or not namespace
            sent.removed = False
        if own_id:
            self._by_id[own_id] = sent

    def _twin(
        self, raw: dict[str, Any], namespace: tuple[str, ...], *, again: bool, matched: list[_Sent] | None
    ) -> _Sent | None:
        """Find the same message, sent before it had an id: ids are given when a step is over, updates may be sooner.

        A whole state holds each message once: `matched` are those that it was found to hold already.
        """
        has_id = _id(raw) is not None
        for sent in self._nameless:
            below = len(sent.namespace) > len(namespace) and sent.namespace[: len(namespace)] == namespace
            if matched is not None and sent in matched:
                continue
            if (below or matched is not None or (again and has_id)) and _said(sent.raw) == _said(raw):
                if has_id:
                    self._nameless.remove(sent)
                elif matched is not None:
                    matched.append(sent)
                return sent
        return None

    def _remove(self, own_id: str | None, namespace: tuple[str, ...]) -> None:
        """Note that messages were removed: they were said all the same, but none of them is the answer.

        What a subgraph removes from its own state stays in that of the graph around it.
        """
        found = self._sent if own_id == _REMOVE_ALL else [self._by_id[own_id]] if own_id in self._by_id else []
        for sent in found:
            if not namespace or (not sent.by_root and sent.namespace[: len(namespace)] == namespace):
                sent.removed = True


def to_langgraph(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Write messages for a graph, each with an id by which its echo is known."""
    written = []
    for message in to_openai(messages):
        # To LangChain, fields that it does not know are arguments for the model.
        fields = {key: value for key, value in message.items() if key != "metadata"}
        written.append({**fields, "id": fields.get("id") or str(uuid4())})
    return written


def describe_interrupts(interrupts: Sequence[Mapping[str, Any]]) -> str:
    """Say what a graph waits for, after the words "the graph"."""
    questions = [excerpt(item.get("value", item)) for item in interrupts]
    return f"asks: {'; '.join(questions)}" if questions else "stopped at a breakpoint"


def excerpt(value: Any) -> str:
    """Return a value as a text of bounded length, for a message."""
    text = scrub_text(value) if isinstance(value, str) else dump_json(value).decode()
    return text if len(text) <= MAX_WORDS else text[:MAX_WORDS] + "…"


def message_ids(state: Mapping[str, Any], key: str) -> set[str]:
    """Return the ids of the messages that a state holds, under this key and others."""
    lists = [value for name, value in state.items() if name == key or _are_messages(value)]
    return {own_id for value in lists for raw in _messages(value) if (own_id := _id(raw)) is not None}


def _are_messages(value: Any) -> bool:
    """Return whether a value of the state is a message of LangChain's or OpenAI's, or a list of nothing else."""
    value = _overwritten(value)
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
    """Yield each key with a value that a task wrote to it: an object, or in older servers a list of pairs."""
    listed = result if isinstance(result, (list, tuple)) else ()
    pairs = [each for each in listed if isinstance(each, (list, tuple)) and len(each) == _PAIR]
    for key, value in result.items() if isinstance(result, Mapping) else pairs:
        if not isinstance(key, str) or key == _RETURN:
            continue
        several = value.get(_WRITES) if isinstance(value, Mapping) else None
        for each in several if isinstance(several, list) else [value]:
            yield key, each


def _words(value: Any) -> str:
    """An answer that is no message: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return scrub_text(value)
    messages = [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]
    if messages and all("content" in item and ("type" in item or "role" in item) for item in messages):
        return decode_langchain(messages).text
    return dump_json(value).decode()


def _messages(value: Any) -> Iterator[dict[str, Any]]:
    """The messages that a node wrote, in any of the short forms that LangGraph takes."""
    value = _overwritten(value)
    items = value if isinstance(value, (list, tuple)) and not _is_pair(value) else [value]
    for item in items:
        if isinstance(item, str):
            yield {"type": "human", "content": item}
        elif _is_pair(item):
            yield {"type": _TYPES.get(item[0], item[0]), "content": item[1]}
        elif isinstance(item, Mapping):
            yield dict(unwrap_langchain(item))


def _overwritten(value: Any) -> Any:
    """Return the value that a node put in place of all that a key held."""
    return value.get("value") if isinstance(value, Mapping) and value.get("type") == _OVERWRITE else value


def _is_pair(value: Any) -> bool:
    """Tell whether it is `("ai", "Hello")`."""
    if not isinstance(value, (list, tuple)) or len(value) != _PAIR:
        return False
    return isinstance(value[0], str) and value[0] in _PAIR_ROLES


def _id(raw: Mapping[str, Any]) -> str | None:
    own_id = raw.get("id")
    return own_id if isinstance(own_id, str) and own_id else None


def _said(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A message without its id and without what says nothing."""
    said = {
        key: value for key, value in raw.items() if key not in ("id", "role", "type") and value not in (None, {}, [])
    }
    kind = raw.get("role", raw.get("type"))
    return {**said, "type": _TYPES.get(kind, kind) if isinstance(kind, str) else kind}


def _labelled(sent: _Sent) -> dict[str, Any]:
    """The message with the names of its node and of its subgraph, which end up in its metadata."""
    label = {"langgraph_node": sent.node} if sent.node else {}
    if sent.namespace:
        label["langgraph_subgraph"] = _subgraph(sent.namespace)
    return {**label, **sent.raw}


def _subgraph(namespace: tuple[str, ...]) -> str:
    return "/".join(name.partition(":")[0] for name in namespace)


def _bounded(state: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """What of the state fits into a reply, and which values were left out."""
    kept, warnings, room = {}, [], MAX_STATE_BYTES
    for key, value in state.items():
        size = len(dump_json(value))
        if size <= room:
            room -= size
            kept[key] = value
        else:
            warnings.append(f"metadata.state.{key}: left out, it takes {size:,} bytes")
    return kept, warnings
