"""Compose data from parser events, with aliases and merge keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn, TypeAlias

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

from agentv.spec.yaml.positions import MERGE, Mark, Positions
from agentv.spec.yaml.scalars import SUSPECT, ScalarError, plain, shown, tagged
from agentv.spec.yaml.syntax_errors import FORBIDDEN_TAG, explain

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.spec.yaml.scalars import Text


# What an alias stands for is counted before it is copied, so the billion laughs end at their sixth line. A thousand
# cases with 500 values each from aliases still pass, and the worst bomb takes half a second.
MAX_COPIED: Final = 500_000
MAX_COPIED_LENGTH: Final = 100_000_000  # characters: one long text, named often, is a bomb as well
_BOXES = frozenset({dict, list})


class AliasError(ValueError):
    """An alias stands for nothing; the file can be read on."""


class BombError(ValueError):
    """An alias stands for more than is allowed; reading has to end."""


class Anchor:
    """A node that aliases may stand for, and how much it is when written out."""

    __slots__ = ("length", "size", "slot", "value")

    def __init__(self, value: Any, slot: int, size: int, length: int) -> None:
        self.value = value
        self.slot = slot
        self.size = size
        """In nodes; until it ends, minus those copied before it."""
        self.length = length
        """In characters, at most; until it ends, minus those copied before it."""


class Anchors:
    """The anchors read so far, and how much has been copied from them."""

    def __init__(self) -> None:
        self._named: dict[str, Anchor] = {}
        self._copied = 0
        self._copied_length = 0

    def add(self, name: str, text: Any, slot: int, length: int) -> None:
        """Remember a text, a number and the like."""
        self._named[name] = Anchor(text, slot, 1, length)

    def open(self, name: str, box: Any, slot: int) -> Anchor:
        """Remember a list or a mapping that only begins."""
        anchor = self._named[name] = Anchor(box, slot, -self._copied, -self._copied_length)
        return anchor

    def close(self, anchor: Anchor, size: int, length: int) -> None:
        """A list or a mapping ended; it is so many nodes and characters in the file."""
        anchor.size += size + self._copied
        anchor.length += length + self._copied_length

    def copy(self, name: str, levels: int) -> tuple[Any, int]:
        """A copy of what an alias stands for, so that nobody who changes one place changes another, and its slot."""
        anchor = self._named.get(name)
        if anchor is None:
            msg = (
                f"no {shown('&' + name)} is written above; write it there, or put the text in quotes if it is no alias"
            )
            raise AliasError(msg)
        if anchor.size <= 0:
            msg = f"this alias stands inside of {shown('&' + name)} itself"
            raise AliasError(msg)
        self._copied += anchor.size
        self._copied_length += anchor.length
        if self._copied > MAX_COPIED or self._copied_length > MAX_COPIED_LENGTH:
            msg = (
                f"the aliases so far stand for more than {MAX_COPIED:,} values or {MAX_COPIED_LENGTH:,} characters; "
                "put the cases in a file: `dataset: cases.jsonl`"
            )
            raise BombError(msg)
        return _copy(anchor.value, levels), anchor.slot


def _copy(value: Any, levels: int) -> Any:
    if type(value) not in _BOXES:
        return value
    if levels == 0:
        msg = "what this alias stands for is nested too deeply to stand here"
        raise BombError(msg)
    if isinstance(value, dict):
        return {key: _copy(item, levels - 1) if type(item) in _BOXES else item for key, item in value.items()}
    return [_copy(item, levels - 1) if type(item) in _BOXES else item for item in value]


Event: TypeAlias = Any  # the stubs let every field be None, which those that a parser makes never are

MAX_DEPTH: Final = 100
MAX_NODES: Final = 2_000_000  # an eval of 10 MB holds about a million keys and values, one for ten bytes
MAX_FINDINGS: Final = 1_000
_TOO_LARGE = f"more than {MAX_NODES:,} keys and values; put the cases in a file: `dataset: cases.jsonl`"
_STANDARD_TAG = "tag:yaml.org,2002:"
_TAGS = {_STANDARD_TAG + kind: kind for kind in ("str", "int", "float", "bool", "null", "seq", "map")}
_NO_KEY = "\0"  # stands for a key that is wrong, while the rest of the file is read


class SyntaxFinding(NamedTuple):
    """Something to say about a file, and where."""

    mark: Mark
    message: str


class _StopError(Exception):
    """Reading ends here; the reason has been noted."""


class _Frame(NamedTuple):
    """What to go back to when a list or a mapping ends."""

    box: dict[Any, Any] | list[Any] | None
    slot: int
    key: str | None
    anchor: Anchor | None


class Composer:
    """Builds the data with a stack of its own, so that no depth of nesting can exhaust another one."""

    def __init__(self, text: Text) -> None:
        self.data: Any = None
        self.marks = Positions(text.raw)
        self.problems: list[tuple[Mark, str]] = []
        self.warnings: list[SyntaxFinding] = []
        self._text = text
        self._box: dict[Any, Any] | list[Any] | None = None
        self._slot = 0
        self._key: str | None = None
        self._stack: list[_Frame] = []
        self._anchors = Anchors()
        self._documents = 0
        self._duplicates: list[tuple[int, int, str]] = []

    def compose(self, next_event: Callable[[], Event]) -> None:
        """Read it all, or up to where it stops making sense."""
        handlers: dict[type, Callable[[Event], None]] = {
            ScalarEvent: self._scalar,
            MappingStartEvent: self._open,
            SequenceStartEvent: self._open,
            MappingEndEvent: self._close,
            SequenceEndEvent: self._close,
            AliasEvent: self._alias,
            DocumentStartEvent: self._document,
        }
        try:
            while (event := next_event()) is not None:
                handler = handlers.get(type(event))
                if handler is not None:
                    handler(event)
        except _StopError:
            pass  # why it stopped is among the problems already
        except MarkedYAMLError as error:
            start, end, message = explain(error, self._text.raw, self.marks.start(self._slot) if self._stack else 0)
            self.problems.append((self.marks.at(start, end), message))
        if self._stack:  # the file broke off inside of these
            for slot in (self._slot, *(frame.slot for frame in self._stack)):
                self.marks.close(slot)
        self.problems += (self._duplicate(*duplicate) for duplicate in self._duplicates)

    def _document(self, event: Event) -> None:
        self._documents += 1
        if self._documents > 1:
            self._stop(event, "a second document begins here; a file holds one: remove the '---', or split the file")

    def _scalar(self, event: Event) -> None:
        text = self._meant(event) if self._text.watched else event.value
        if self._key is None and type(self._box) is dict:
            self._name(event, text, self._box)
            return
        slot = self._add(event.start_mark.index, event.end_mark.index)
        if event.tag:
            value = self._tagged(event, text)
        elif event.style or text[:1] not in SUSPECT:
            value = text
        else:
            value = self._plain(event, text)
        if event.anchor:
            self._anchors.add(event.anchor, value, slot, len(text))
        self._put(value)

    def _name(self, event: Event, text: str, box: dict[Any, Any]) -> None:
        name = MERGE if text == "<<" and not event.style and not event.tag else text
        slot = self._add(event.start_mark.index, event.end_mark.index, name)
        if event.tag:
            self._kind(event)
        if event.anchor:
            self._anchors.add(event.anchor, text, slot, len(text))
        if name in box:
            if len(self._duplicates) == MAX_FINDINGS:
                self._stop(event, f"more than {MAX_FINDINGS} keys are written twice; the rest was not read")
            self._duplicates.append((self._slot, slot, name))
        self._key = name

    def _open(self, event: Event) -> None:
        slot = self._add(*_beginning(event, self._text.raw))
        box: dict[Any, Any] | list[Any] = {} if type(event) is MappingStartEvent else []
        if event.tag:
            self._check_box(event, box)
        if self._key is None and type(self._box) is dict:
            self._problem(event, _bad_key(self._text.raw, event.start_mark.index))
        if len(self._stack) == MAX_DEPTH:
            self._stop(event, f"nested deeper than {MAX_DEPTH} levels")
        anchor = self._anchors.open(event.anchor, box, slot) if event.anchor else None
        self._stack.append(_Frame(self._box, self._slot, self._key, anchor))
        self._box, self._slot, self._key = box, slot, None

    def _close(self, event: Event) -> None:
        box, slot = self._box, self._slot
        self.marks.close(slot)
        if type(box) is dict and MERGE in box:
            self._merge(box, slot)
        frame = self._stack.pop()
        self._box, self._slot, self._key = frame.box, frame.slot, frame.key
        if frame.anchor is not None:
            length = event.end_mark.index - self.marks.start(slot)
            self._anchors.close(frame.anchor, len(self.marks) - slot, length)
        if self._key is None and type(self._box) is dict:
            self._key = _NO_KEY
        else:
            self._put(box)

    def _alias(self, event: Event) -> None:
        slot = self._add(event.start_mark.index, event.end_mark.index)
        if self._key is None and type(self._box) is dict:
            self._problem(event, "an alias cannot be a key; write the key itself")
            self._key = _NO_KEY
            return
        try:
            value, original = self._anchors.copy(event.anchor, MAX_DEPTH - len(self._stack))
        except AliasError as error:
            self._problem(event, str(error))
            self._put({} if self._key == MERGE else None)
        except BombError as error:
            self._stop(event, str(error))
        else:
            self.marks.link(slot, original)
            self._put(value)

    def _put(self, value: Any) -> None:
        box = self._box
        if box is None:
            self.data = value
        elif isinstance(box, dict):
            box[self._key] = value
            self._key = None
        else:
            box.append(value)

    def _merge(self, box: dict[Any, Any], slot: int) -> None:
        merged = box.pop(MERGE)
        for source in merged if isinstance(merged, list) else [merged]:
            if not isinstance(source, dict):
                message = "'<<' takes a mapping or a list of mappings, mostly aliases: '<<: *base'"
                self._note(self.marks.of(self.marks.first(slot, MERGE)), message)
                return
            for key, value in source.items():
                box.setdefault(key, value)

    def _plain(self, event: Event, text: str) -> Any:
        try:
            value, surprise = plain(text)
        except ScalarError as error:
            self._problem(event, str(error))
            return None
        if surprise and len(self.warnings) <= MAX_FINDINGS:
            message = surprise if len(self.warnings) < MAX_FINDINGS else "from here on such words are no longer listed"
            self.warnings.append(SyntaxFinding(self._mark(event), message))
        return value

    def _tagged(self, event: Event, text: str) -> Any:
        kind = self._kind(event)
        try:
            return kind and tagged(kind, text)
        except ScalarError as error:
            self._problem(event, str(error))
            return None

    def _check_box(self, event: Event, box: dict[Any, Any] | list[Any]) -> None:
        kind = self._kind(event)
        fitting, what = ("map", "mapping") if isinstance(box, dict) else ("seq", "list")
        if kind not in (None, fitting):
            self._problem(event, f"'!!{kind}' stands before a {what}; remove it")

    def _kind(self, event: Event) -> str | None:
        kind = _TAGS.get(event.tag)
        if kind is None:
            tag: str = event.tag
            short = "!!" + tag.removeprefix(_STANDARD_TAG) if tag.startswith(_STANDARD_TAG) else tag
            self._problem(event, f"the tag {shown(short)} is not allowed{FORBIDDEN_TAG}")
        return kind

    def _meant(self, event: Event) -> str:
        try:
            return self._text.meant(event.value, event.style, event.start_mark.index, event.end_mark.index)
        except ValueError as error:
            self._problem(event, str(error))
            return ""

    def _duplicate(self, mapping: int, key: int, name: str) -> tuple[Mark, str]:
        line = self.marks.of(self.marks.first(mapping, name)).line
        message = f"the key {shown(name)} is already on line {line}; remove or rename one of the two"
        if name == MERGE:
            message = f"'<<' is already on line {line}; merge several mappings with one: '<<: [*a, *b]'"
        return self.marks.of(key), message

    def _add(self, start: int, end: int, name: str | None = None) -> int:
        slot = self.marks.add(start, end, name)
        if slot == MAX_NODES:
            self.problems.append((self.marks.at(start, end), _TOO_LARGE))
            raise _StopError
        return slot

    def _mark(self, event: Event) -> Mark:
        return self.marks.at(event.start_mark.index, event.end_mark.index)

    def _problem(self, event: Event, message: str) -> None:
        self._note(self._mark(event), message)

    def _note(self, mark: Mark, message: str) -> None:
        if len(self.problems) == MAX_FINDINGS:
            self.problems.append((mark, f"more than {MAX_FINDINGS} problems; the rest of the file was not read"))
            raise _StopError
        self.problems.append((mark, message))

    def _stop(self, event: Event, message: str) -> NoReturn:
        self.problems.append((self._mark(event), message))
        raise _StopError


def _beginning(event: Event, text: str) -> tuple[int, int]:
    """The place of a list or mapping, without the anchor and the tag before it."""
    start, end = event.start_mark.index, event.end_mark.index
    if not event.anchor and not event.tag:
        return start, end
    # A bracket, and the dash of a list that is not indented, end there; any other block begins there.
    begins = not event.flow_style and (type(event) is MappingStartEvent or text[end : end + 1] == "-")
    return (end, end) if begins else (end - 1, end)


def _bad_key(text: str, start: int) -> str:
    if text[start - 1 : start + 1] == "{{":
        return "'{{' begins a mapping in YAML; put a text that holds '{{' in quotes"
    return "a list or mapping cannot be a key; keys are text"
