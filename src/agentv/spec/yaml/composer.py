"""Compose data from YAML parser events, with aliases, merge keys and duplicate keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias

from msgspec import Struct
from yaml import MarkedYAMLError
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from agentv.spec.yaml.positions import MERGE, Position, Positions
from agentv.spec.yaml.scalars import MAYBE_NOT_TEXT, ScalarError, parse_plain, parse_tagged, quote
from agentv.spec.yaml.syntax_errors import FORBIDDEN_TAG, explain

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.spec.yaml.scalars import SourceText


# Aliases are counted before they are copied, so the "billion laughs" attack ends at its sixth line. A thousand
# cases with 500 values each from aliases still pass, and the worst attack takes half a second.
MAX_COPIED: Final = 500_000
MAX_COPIED_LENGTH: Final = 100_000_000  # characters: one long text with many aliases is an attack as well
_CONTAINERS = frozenset({dict, list})


class AliasError(ValueError):
    """An alias has no anchor; parsing can go on."""


class AliasLimitError(ValueError):
    """Aliases expand to more than is allowed; parsing has to stop."""


class Anchor:
    """A node with an anchor, and its size when aliases are expanded."""

    __slots__ = ("length", "size", "slot", "value")

    def __init__(self, value: Any, slot: int, size: int, length: int) -> None:
        self.value = value
        self.slot = slot
        self.size = size
        """Number of nodes; until the node ends, minus those copied before it."""
        self.length = length
        """Number of characters at most; until the node ends, minus those copied before it."""


class Anchors:
    """The anchors of a document, and the amount of data copied from them."""

    def __init__(self) -> None:
        self._named: dict[str, Anchor] = {}
        self._copied = 0
        self._copied_length = 0

    def add(self, name: str, text: Any, slot: int, length: int) -> None:
        """Add an anchor of a scalar."""
        self._named[name] = Anchor(text, slot, 1, length)

    def open(self, name: str, container: Any, slot: int) -> Anchor:
        """Add an anchor of a list or a mapping at its start."""
        anchor = self._named[name] = Anchor(container, slot, -self._copied, -self._copied_length)
        return anchor

    def close(self, anchor: Anchor, size: int, length: int) -> None:
        """Set the size of a list or a mapping at its end: its nodes and characters in the file."""
        anchor.size += size + self._copied
        anchor.length += length + self._copied_length

    def copy(self, name: str, levels: int) -> tuple[Any, int]:
        """Return a copy of the value of an alias, so that a change of one does not change others, and its slot."""
        anchor = self._named.get(name)
        if anchor is None:
            msg = (
                f"no {quote('&' + name)} is written above; write it there, or put the text in quotes if it is no alias"
            )
            raise AliasError(msg)
        if anchor.size <= 0:
            msg = f"this alias is inside of {quote('&' + name)} itself"
            raise AliasError(msg)
        self._copied += anchor.size
        self._copied_length += anchor.length
        if self._copied > MAX_COPIED or self._copied_length > MAX_COPIED_LENGTH:
            msg = (
                f"the aliases so far stand for more than {MAX_COPIED:,} values or {MAX_COPIED_LENGTH:,} characters; "
                "put the cases in a file: `dataset: cases.jsonl`"
            )
            raise AliasLimitError(msg)
        return _copy(anchor.value, levels), anchor.slot


def _copy(value: Any, levels: int) -> Any:
    if type(value) not in _CONTAINERS:
        return value
    if levels == 0:
        msg = "the value of this alias is nested too deeply for this place"
        raise AliasLimitError(msg)
    if isinstance(value, dict):
        return {key: _copy(item, levels - 1) if type(item) in _CONTAINERS else item for key, item in value.items()}
    return [_copy(item, levels - 1) if type(item) in _CONTAINERS else item for item in value]


Event: TypeAlias = Any  # the type stubs allow None for every field, which a parser never produces

MAX_DEPTH: Final = 100
MAX_NODES: Final = 2_000_000  # an eval of 10 MB holds about a million keys and values, one for ten bytes
MAX_FINDINGS: Final = 1_000
_TOO_LARGE = f"more than {MAX_NODES:,} keys and values; put the cases in a file: `dataset: cases.jsonl`"
_STANDARD_TAG = "tag:yaml.org,2002:"
_TAGS = {_STANDARD_TAG + kind: kind for kind in ("str", "int", "float", "bool", "null", "seq", "map")}
_INVALID_KEY = "\0"  # replaces an invalid key while the rest of the file is parsed


class SyntaxFinding(NamedTuple):
    """A warning about a file, and its position."""

    position: Position
    message: str


class _StopError(Exception):
    """Parsing stops here; the reason is among the problems."""


class _Frame(Struct, frozen=True):
    """State to restore when a list or a mapping ends."""

    container: dict[Any, Any] | list[Any] | None
    slot: int
    key: str | None
    anchor: Anchor | None


class Composer:
    """Builds the data from parser events with an explicit stack, since deep nesting would exhaust Python's."""

    def __init__(self, text: SourceText) -> None:
        self.data: Any = None
        self.positions = Positions(text.raw)
        self.problems: list[tuple[Position, str]] = []
        self.warnings: list[SyntaxFinding] = []
        self._text = text
        self._container: dict[Any, Any] | list[Any] | None = None
        self._slot = 0
        self._key: str | None = None
        self._stack: list[_Frame] = []
        self._anchors = Anchors()
        self._documents = 0
        self._duplicates: list[tuple[int, int, str]] = []

    def compose(self, next_event: Callable[[], Event]) -> None:
        """Process all events, or those before the first syntax error."""
        handlers: dict[type, Callable[[Event], None]] = {
            ScalarEvent: self._add_scalar,
            MappingStartEvent: self._open,
            SequenceStartEvent: self._open,
            MappingEndEvent: self._close,
            SequenceEndEvent: self._close,
            AliasEvent: self._add_alias,
            DocumentStartEvent: self._start_document,
        }
        try:
            while (event := next_event()) is not None:
                handler = handlers.get(type(event))
                if handler is not None:
                    handler(event)
        except _StopError:
            pass  # the reason is among the problems
        except MarkedYAMLError as error:
            start, end, message = explain(error, self._text.raw, self.positions.start(self._slot) if self._stack else 0)
            self.problems.append((self.positions.at(start, end), message))
        if self._stack:  # these lists and mappings were not closed
            for slot in (self._slot, *(frame.slot for frame in self._stack)):
                self.positions.close(slot)
        self.problems += (self._duplicate_problem(*duplicate) for duplicate in self._duplicates)

    def _start_document(self, event: Event) -> None:
        self._documents += 1
        if self._documents > 1:
            self._stop(event, "a second document begins here; a file holds one: remove the '---', or split the file")

    def _add_scalar(self, event: Event) -> None:
        text = self._unmask(event) if self._text.needs_unmasking else event.value
        if self._key is None and type(self._container) is dict:
            self._add_key(event, text, self._container)
            return
        slot = self._add(event.start_mark.index, event.end_mark.index)
        if event.tag:
            value = self._tagged(event, text)
        elif event.style or text[:1] not in MAYBE_NOT_TEXT:
            value = text
        else:
            value = self._plain(event, text)
        if event.anchor:
            self._anchors.add(event.anchor, value, slot, len(text))
        self._add_value(value)

    def _add_key(self, event: Event, text: str, container: dict[Any, Any]) -> None:
        name = MERGE if text == "<<" and not event.style and not event.tag else text
        slot = self._add(event.start_mark.index, event.end_mark.index, name)
        if event.tag:
            self._tag_kind(event)
        if event.anchor:
            self._anchors.add(event.anchor, text, slot, len(text))
        if name in container:
            if len(self._duplicates) == MAX_FINDINGS:
                self._stop(event, f"more than {MAX_FINDINGS} keys are written twice; the rest was not read")
            self._duplicates.append((self._slot, slot, name))
        self._key = name

    def _open(self, event: Event) -> None:
        slot = self._add(*_start_of(event, self._text.raw))
        container: dict[Any, Any] | list[Any] = {} if type(event) is MappingStartEvent else []
        if event.tag:
            self._check_container_tag(event, container)
        if self._key is None and type(self._container) is dict:
            self._add_problem_at(event, _key_problem(self._text.raw, event.start_mark.index))
        if len(self._stack) == MAX_DEPTH:
            self._stop(event, f"nested deeper than {MAX_DEPTH} levels")
        anchor = self._anchors.open(event.anchor, container, slot) if event.anchor else None
        self._stack.append(_Frame(self._container, self._slot, self._key, anchor))
        self._container, self._slot, self._key = container, slot, None

    def _close(self, event: Event) -> None:
        container, slot = self._container, self._slot
        self.positions.close(slot)
        if type(container) is dict and MERGE in container:
            self._merge(container, slot)
        frame = self._stack.pop()
        self._container, self._slot, self._key = frame.container, frame.slot, frame.key
        if frame.anchor is not None:
            length = event.end_mark.index - self.positions.start(slot)
            self._anchors.close(frame.anchor, len(self.positions) - slot, length)
        if self._key is None and type(self._container) is dict:
            self._key = _INVALID_KEY
        else:
            self._add_value(container)

    def _add_alias(self, event: Event) -> None:
        slot = self._add(event.start_mark.index, event.end_mark.index)
        if self._key is None and type(self._container) is dict:
            self._add_problem_at(event, "an alias cannot be a key; write the key itself")
            self._key = _INVALID_KEY
            return
        try:
            value, original = self._anchors.copy(event.anchor, MAX_DEPTH - len(self._stack))
        except AliasError as error:
            self._add_problem_at(event, str(error))
            self._add_value({} if self._key == MERGE else None)
        except AliasLimitError as error:
            self._stop(event, str(error))
        else:
            self.positions.link(slot, original)
            self._add_value(value)

    def _add_value(self, value: Any) -> None:
        container = self._container
        if container is None:
            self.data = value
        elif isinstance(container, dict):
            container[self._key] = value
            self._key = None
        else:
            container.append(value)

    def _merge(self, container: dict[Any, Any], slot: int) -> None:
        merged = container.pop(MERGE)
        for source in merged if isinstance(merged, list) else [merged]:
            if not isinstance(source, dict):
                message = "'<<' takes a mapping or a list of mappings, mostly aliases: '<<: *base'"
                self._add_problem(self.positions.of(self.positions.first(slot, MERGE)), message)
                return
            for key, value in source.items():
                container.setdefault(key, value)

    def _plain(self, event: Event, text: str) -> Any:
        try:
            value, surprise = parse_plain(text)
        except ScalarError as error:
            self._add_problem_at(event, str(error))
            return None
        if surprise and len(self.warnings) <= MAX_FINDINGS:
            message = surprise if len(self.warnings) < MAX_FINDINGS else "from here on such words are no longer listed"
            self.warnings.append(SyntaxFinding(self._position(event), message))
        return value

    def _tagged(self, event: Event, text: str) -> Any:
        kind = self._tag_kind(event)
        try:
            return kind and parse_tagged(kind, text)
        except ScalarError as error:
            self._add_problem_at(event, str(error))
            return None

    def _check_container_tag(self, event: Event, container: dict[Any, Any] | list[Any]) -> None:
        kind = self._tag_kind(event)
        fitting, what = ("map", "mapping") if isinstance(container, dict) else ("seq", "list")
        if kind not in (None, fitting):
            self._add_problem_at(event, f"'!!{kind}' stands before a {what}; remove it")

    def _tag_kind(self, event: Event) -> str | None:
        kind = _TAGS.get(event.tag)
        if kind is None:
            tag: str = event.tag
            short = "!!" + tag.removeprefix(_STANDARD_TAG) if tag.startswith(_STANDARD_TAG) else tag
            self._add_problem_at(event, f"the tag {quote(short)} is not allowed{FORBIDDEN_TAG}")
        return kind

    def _unmask(self, event: Event) -> str:
        try:
            return self._text.unmask(event.value, event.style, event.start_mark.index, event.end_mark.index)
        except ValueError as error:
            self._add_problem_at(event, str(error))
            return ""

    def _duplicate_problem(self, mapping: int, key: int, name: str) -> tuple[Position, str]:
        line = self.positions.of(self.positions.first(mapping, name)).line
        message = f"the key {quote(name)} is already on line {line}; remove or rename one of the two"
        if name == MERGE:
            message = f"'<<' is already on line {line}; merge several mappings with one: '<<: [*a, *b]'"
        return self.positions.of(key), message

    def _add(self, start: int, end: int, name: str | None = None) -> int:
        slot = self.positions.add(start, end, name)
        if slot == MAX_NODES:
            self.problems.append((self.positions.at(start, end), _TOO_LARGE))
            raise _StopError
        return slot

    def _position(self, event: Event) -> Position:
        return self.positions.at(event.start_mark.index, event.end_mark.index)

    def _add_problem_at(self, event: Event, message: str) -> None:
        self._add_problem(self._position(event), message)

    def _add_problem(self, position: Position, message: str) -> None:
        if len(self.problems) == MAX_FINDINGS:
            self.problems.append((position, f"more than {MAX_FINDINGS} problems; the rest of the file was not read"))
            raise _StopError
        self.problems.append((position, message))

    def _stop(self, event: Event, message: str) -> NoReturn:
        self.problems.append((self._position(event), message))
        raise _StopError


def _start_of(event: Event, text: str) -> tuple[int, int]:
    """Return start and end of the first token of a list or mapping, without its anchor and tag."""
    start, end = event.start_mark.index, event.end_mark.index
    if not event.anchor and not event.tag:
        return start, end
    # The event ends after a bracket or after the dash of a list that is not indented; other blocks begin at its end.
    begins = not event.flow_style and (type(event) is MappingStartEvent or text[end : end + 1] == "-")
    return (end, end) if begins else (end - 1, end)


def _key_problem(text: str, start: int) -> str:
    if text[start - 1 : start + 1] == "{{":
        return "'{{' begins a mapping in YAML; put a text that holds '{{' in quotes"
    return "a list or mapping cannot be a key; keys are text"
