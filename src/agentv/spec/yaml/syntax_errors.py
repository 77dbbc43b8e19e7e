"""What libyaml finds wrong with a file, said so that its author knows what to change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from agentv.spec.yaml.scalars import shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from yaml import MarkedYAMLError


FORBIDDEN_TAG = "; only !!str, !!int, !!float, !!bool, !!null, !!seq and !!map are, and a type is rarely needed"
MAX_KEY: Final = 1024  # libyaml looks no further for the ':'
_TAB = "a tab is used for indentation; YAML takes spaces only: replace it by spaces"
_COLON = "':' is not allowed inside an unquoted text; put the whole text in quotes"
_END = "the file ends where a value is expected"
_INDENTATION = "this line is indented differently from its neighbours; line it up with the keys it belongs to"


class Complaint(NamedTuple):
    """What libyaml stumbled over, and where."""

    text: str
    """The whole file."""
    problem: str
    """In libyaml's words."""
    context: str
    """What it was doing, in its words."""
    at: int
    """Where it stumbled."""
    since: int
    """Where what it was doing began."""
    inside: int
    """Where the innermost list or mapping begins that has not ended."""

    @property
    def character(self) -> str:
        """What it stumbled over."""
        return self.text[self.at : self.at + 1]

    @property
    def before(self) -> str:
        """The same line up to there."""
        return self.text[max(self.text.rfind("\n", 0, self.at), self.text.rfind("\r", 0, self.at)) + 1 : self.at]

    def line(self, index: int) -> int:
        """The number of the line of this place."""
        return len(re.findall(r"\r\n?|\n", self.text[:index])) + 1


class Explained(NamedTuple):
    """The stretch of text to point at, and what to say about it."""

    start: int
    end: int
    message: str


def explain(error: MarkedYAMLError, text: str, inside: int) -> Explained:
    """A syntax error in plain words, at the place that has to change."""
    context_mark, problem_mark = error.context_mark, error.problem_mark
    # Only the index is right: at the end of a file libyaml reports a line that is not there.
    at = min(problem_mark.index if problem_mark else 0, len(text))
    since = min(context_mark.index if context_mark else at, len(text))
    complaint = Complaint(text, error.problem or "", error.context or "", at, since, inside)
    for words, say in _SAYINGS.items():
        if words in complaint.problem:
            explained = say(complaint)
            if explained:
                return explained
    where = f" {complaint.context}" if complaint.context else ""
    return Explained(at, at + 1, f"not valid YAML:{where} {complaint.problem}".rstrip())


def _bad_start(complaint: Complaint) -> Explained:
    if complaint.character == "\t":
        return _tab(complaint)
    message = f"a text cannot begin with {complaint.character!r}; put it in quotes"
    return Explained(complaint.at, complaint.at + 1, message)


def _tab(complaint: Complaint) -> Explained:
    tabs = re.compile(r"\t*").match(complaint.text, complaint.at)
    return Explained(complaint.at, tabs.end() if tabs else complaint.at, _TAB)


def _colon(complaint: Complaint) -> Explained:
    before = complaint.before.lstrip(" -")
    if ": " in before or before.startswith(("'", '"')):
        message = _COLON
    elif len(before) > MAX_KEY:
        message = f"a key of more than {MAX_KEY:,} characters; put the text in quotes if it is none"
    else:
        message = (
            "':' is not allowed here: the line above is not finished or this one is indented too deeply; "
            "line it up with its neighbours, or put a text that holds ': ' in quotes"
        )
    return Explained(complaint.at, complaint.at + 1, message)


def _not_closed(complaint: Complaint) -> Explained | None:
    opening = complaint.text[complaint.since : complaint.since + 1]
    if opening not in ("[", "{"):
        return None
    if complaint.character == ":" and complaint.since >= complaint.at - len(complaint.before):
        return Explained(complaint.at, complaint.at + 1, _COLON)
    closing, what = {"[": ("]", "list"), "{": ("}", "mapping")}[opening]
    found = complaint.text[complaint.at :].strip()
    where = f"before {complaint.character!r} on line {complaint.line(complaint.at)}" if found else "to the end"
    message = f"this {opening!r} is not closed: no ',' or {closing!r} {where}; quote it if it begins no {what}"
    return Explained(complaint.since, complaint.since + 1, message)


def _open_quote(complaint: Complaint) -> Explained | None:
    quote = complaint.text[complaint.since : complaint.since + 1]
    if quote not in ("'", '"'):
        return None
    message = f"this quote is never closed; end the text with {quote}"
    return Explained(complaint.since, complaint.since + 1, message)


def _no_key(complaint: Complaint) -> Explained:
    if "block collection" in complaint.context:
        return _no_item(complaint)
    start, end = complaint.at, complaint.at + 1
    began = complaint.line(complaint.since)
    if complaint.character in ("]", "}"):
        message = _closes_nothing(complaint)
    elif complaint.before.strip(" \t"):
        message = (
            "unexpected after the value before it; put the whole text in quotes, and write a quote inside it twice"
        )
    elif complaint.character == "-":
        message = f"a list item cannot stand among the keys of the mapping from line {began}; indent it below its key"
    else:
        message = f"{_INDENTATION} (the mapping began on line {began})"
    return Explained(start, end, message)


def _no_item(complaint: Complaint) -> Explained:
    began = complaint.line(complaint.since)
    if complaint.before.strip(" \t"):
        message = "unexpected after the value before it; put the whole text in quotes"
    else:
        message = f"expected another '- ' item of the list from line {began}; indent this line to match its neighbours"
    return Explained(complaint.at, complaint.at + 1, message)


def _no_content(complaint: Complaint) -> Explained:
    if complaint.character == "-":
        message = "'- ' is not allowed between brackets; separate the items by ','"
    elif complaint.text[complaint.at :].strip():
        message = f"a text cannot begin with {complaint.character!r}; put it in quotes"
    else:
        return _not_closed(complaint._replace(since=complaint.inside)) or Explained(
            complaint.at, complaint.at + 1, _END
        )
    return Explained(complaint.at, complaint.at + 1, message)


def _no_document(complaint: Complaint) -> Explained:
    message = "this does not belong to what stands before it; check its indentation and the brackets and quotes above"
    if complaint.character in ("]", "}"):
        message = _closes_nothing(complaint)
    return Explained(complaint.at, complaint.at + 1, message)


def _closes_nothing(complaint: Complaint) -> str:
    return f"this {complaint.character!r} closes nothing; remove it, or put the text in quotes"


def _no_colon(complaint: Complaint) -> Explained:
    end = re.compile(r"[^\r\n]*").match(complaint.text, complaint.since)
    message = "expected 'key: value' on this line, and found no ':'"
    return Explained(complaint.since, end.end() if end else complaint.since + 1, message)


def _no_name(complaint: Complaint) -> Explained:
    sign = complaint.text[complaint.since : complaint.since + 1]
    message = f"{sign!r} begins {'an anchor' if sign == '&' else 'an alias'} in YAML; put the text in quotes"
    return Explained(complaint.since, complaint.since + 1, message)


def _escape(complaint: Complaint) -> Explained:
    start = complaint.text.rfind("\\", complaint.since, complaint.at + 1)
    start = complaint.at if start < 0 else start
    found = re.compile(r"\\(?:[uUx][0-9a-fA-F]*|.)?").match(complaint.text, start)
    end = found.end() if found else start + 1
    what = f"unknown escape {complaint.text[start:end]} in double quotes"
    return Explained(start, end, f"{what}; write \\\\ for a backslash, or put the text in single quotes")


def _tag_handle(complaint: Complaint) -> Explained:
    found = re.compile(r"\S*").match(complaint.text, complaint.at)
    end = found.end() if found else complaint.at + 1
    tag = shown(complaint.text[complaint.at : end])
    return Explained(complaint.at, end, f"the tag {tag} is not allowed{FORBIDDEN_TAG}")


def _said(message: str) -> Callable[[Complaint], Explained]:
    return lambda complaint: Explained(complaint.at, complaint.at + 1, message)


def _directive(complaint: Complaint) -> Explained:
    message = "a line that begins with '%' is an instruction to the YAML reader; remove it, or put the text in quotes"
    return Explained(complaint.since, complaint.since + 1, message)


_BLOCK_TEXT = _said("after '|' or '>' a text begins on the next line; or put it in quotes")

_SAYINGS: dict[str, Callable[[Complaint], Explained | None]] = {
    "cannot start any token": _bad_start,
    "tab character": _tab,
    "mapping values are not allowed": _colon,
    "did not find expected ',' or": _not_closed,
    "expected ',' or": _not_closed,
    "unexpected end of stream": _open_quote,
    "unexpected document": _open_quote,
    "did not find expected key": _no_key,
    "expected <block end>": _no_key,
    "expected '-' indicator": _no_item,
    "expected node content": _no_content,
    "expected the node content": _no_content,
    "<document start>": _no_document,
    "sequence entries are not allowed": _said(
        "a list cannot begin on the line of its key; begin it on the next line, or put the text in quotes"
    ),
    "mapping keys are not allowed": _said("'? ' is not allowed here; put the text in quotes"),
    "could not find expected ':'": _no_colon,
    "alphabetic or numeric character": _no_name,
    "unknown escape": _escape,
    "invalid Unicode character escape": _escape,
    "hexdecimal number": _escape,
    "undefined tag handle": _tag_handle,
    "comment or line break": _BLOCK_TEXT,
    "comment or a line break": _BLOCK_TEXT,
    "indentation indicator": _BLOCK_TEXT,
    "found unexpected ':'": _said("put a space after this ':', or the text in quotes"),
    "directive": _directive,
    "incompatible YAML document": _directive,
}
