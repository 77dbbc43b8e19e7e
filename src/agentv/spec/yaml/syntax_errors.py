"""YAML syntax errors: messages of libyaml explained in plain words, with the fix."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from agentv.spec.yaml.scalars import quote

if TYPE_CHECKING:
    from collections.abc import Callable

    from yaml import MarkedYAMLError


FORBIDDEN_TAG = "; only !!str, !!int, !!float, !!bool, !!null, !!seq and !!map are, and a type is rarely needed"
MAX_KEY: Final = 1024  # libyaml looks no further for the ':'
_TAB = "a tab is used for indentation; YAML takes spaces only: replace it by spaces"
_COLON = "':' is not allowed inside an unquoted text; put the whole text in quotes"
_END = "the file ends where a value is expected"
_INDENTATION = "this line is indented differently from its neighbours; line it up with the keys it belongs to"


class ParserError(Struct, frozen=True):
    """A syntax error that libyaml found."""

    text: str
    """The whole file."""
    problem: str
    """Message of libyaml."""
    context: str
    """Construct that libyaml was parsing, in its words."""
    at: int
    """Index of the error."""
    since: int
    """Index at which the construct begins."""
    inside: int
    """Index at which the innermost open list or mapping begins."""

    @property
    def character(self) -> str:
        """The character at the error."""
        return self.text[self.at : self.at + 1]

    @property
    def before(self) -> str:
        """The line of the error, up to the error."""
        return self.text[max(self.text.rfind("\n", 0, self.at), self.text.rfind("\r", 0, self.at)) + 1 : self.at]

    def line(self, index: int) -> int:
        """Return the line number of an index."""
        return len(re.findall(r"\r\n?|\n", self.text[:index])) + 1


class Explanation(NamedTuple):
    """The range of text to point at, and the message about it."""

    start: int
    end: int
    message: str


def explain(yaml_error: MarkedYAMLError, text: str, inside: int) -> Explanation:
    """Explain a syntax error in plain words, at the position that has to change."""
    context_mark, problem_mark = yaml_error.context_mark, yaml_error.problem_mark
    # Only the index is reliable: at the end of a file libyaml reports a line that does not exist.
    at = min(problem_mark.index if problem_mark else 0, len(text))
    since = min(context_mark.index if context_mark else at, len(text))
    error = ParserError(text, yaml_error.problem or "", yaml_error.context or "", at, since, inside)
    for words, explain_error in _EXPLANATIONS.items():
        if words in error.problem:
            explanation = explain_error(error)
            if explanation:
                return explanation
    where = f" {error.context}" if error.context else ""
    return Explanation(at, at + 1, f"not valid YAML:{where} {error.problem}".rstrip())


def _bad_start(error: ParserError) -> Explanation:
    if error.character == "\t":
        return _tab(error)
    message = f"a text cannot begin with {error.character!r}; put it in quotes"
    return Explanation(error.at, error.at + 1, message)


def _tab(error: ParserError) -> Explanation:
    tabs = re.compile(r"\t*").match(error.text, error.at)
    return Explanation(error.at, tabs.end() if tabs else error.at, _TAB)


def _colon(error: ParserError) -> Explanation:
    before = error.before.lstrip(" -")
    if ": " in before or before.startswith(("'", '"')):
        message = _COLON
    elif len(before) > MAX_KEY:
        message = f"a key of more than {MAX_KEY:,} characters; put the text in quotes if it is none"
    else:
        message = (
            "':' is not allowed here: the line above is not finished or this one is indented too deeply; "
            "line it up with its neighbours, or put a text that holds ': ' in quotes"
        )
    return Explanation(error.at, error.at + 1, message)


def _not_closed(error: ParserError) -> Explanation | None:
    opening = error.text[error.since : error.since + 1]
    if opening not in ("[", "{"):
        return None
    if error.character == ":" and error.since >= error.at - len(error.before):
        return Explanation(error.at, error.at + 1, _COLON)
    closing, what = {"[": ("]", "list"), "{": ("}", "mapping")}[opening]
    rest = error.text[error.at :].strip()
    where = f"before {error.character!r} on line {error.line(error.at)}" if rest else "to the end"
    message = f"this {opening!r} is not closed: no ',' or {closing!r} {where}; quote it if it begins no {what}"
    return Explanation(error.since, error.since + 1, message)


def _open_quote(error: ParserError) -> Explanation | None:
    quote = error.text[error.since : error.since + 1]
    if quote not in ("'", '"'):
        return None
    message = f"this quote is never closed; end the text with {quote}"
    return Explanation(error.since, error.since + 1, message)


def _no_key(error: ParserError) -> Explanation:
    if "block collection" in error.context:
        return _no_item(error)
    start, end = error.at, error.at + 1
    began = error.line(error.since)
    if error.character in ("]", "}"):
        message = _closes_nothing(error)
    elif error.before.strip(" \t"):
        message = (
            "unexpected after the value before it; put the whole text in quotes, and write a quote inside it twice"
        )
    elif error.character == "-":
        message = f"a list item cannot stand among the keys of the mapping from line {began}; indent it below its key"
    else:
        message = f"{_INDENTATION} (the mapping began on line {began})"
    return Explanation(start, end, message)


def _no_item(error: ParserError) -> Explanation:
    began = error.line(error.since)
    if error.before.strip(" \t"):
        message = "unexpected after the value before it; put the whole text in quotes"
    else:
        message = f"expected another '- ' item of the list from line {began}; indent this line to match its neighbours"
    return Explanation(error.at, error.at + 1, message)


def _no_content(error: ParserError) -> Explanation:
    if error.character == "-":
        message = "'- ' is not allowed between brackets; separate the items by ','"
    elif error.text[error.at :].strip():
        message = f"a text cannot begin with {error.character!r}; put it in quotes"
    else:
        return _not_closed(replace(error, since=error.inside)) or Explanation(error.at, error.at + 1, _END)
    return Explanation(error.at, error.at + 1, message)


def _no_document(error: ParserError) -> Explanation:
    message = "this does not belong to what stands before it; check its indentation and the brackets and quotes above"
    if error.character in ("]", "}"):
        message = _closes_nothing(error)
    return Explanation(error.at, error.at + 1, message)


def _closes_nothing(error: ParserError) -> str:
    return f"this {error.character!r} closes nothing; remove it, or put the text in quotes"


def _no_colon(error: ParserError) -> Explanation:
    end = re.compile(r"[^\r\n]*").match(error.text, error.since)
    message = "expected 'key: value' on this line, and found no ':'"
    return Explanation(error.since, end.end() if end else error.since + 1, message)


def _no_name(error: ParserError) -> Explanation:
    sign = error.text[error.since : error.since + 1]
    message = f"{sign!r} begins {'an anchor' if sign == '&' else 'an alias'} in YAML; put the text in quotes"
    return Explanation(error.since, error.since + 1, message)


def _escape(error: ParserError) -> Explanation:
    start = error.text.rfind("\\", error.since, error.at + 1)
    start = error.at if start < 0 else start
    match = re.compile(r"\\(?:[uUx][0-9a-fA-F]*|.)?").match(error.text, start)
    end = match.end() if match else start + 1
    what = f"unknown escape {error.text[start:end]} in double quotes"
    return Explanation(start, end, f"{what}; write \\\\ for a backslash, or put the text in single quotes")


def _tag_handle(error: ParserError) -> Explanation:
    match = re.compile(r"\S*").match(error.text, error.at)
    end = match.end() if match else error.at + 1
    tag = quote(error.text[error.at : end])
    return Explanation(error.at, end, f"the tag {tag} is not allowed{FORBIDDEN_TAG}")


def _explain_with(message: str) -> Callable[[ParserError], Explanation]:
    return lambda error: Explanation(error.at, error.at + 1, message)


def _directive(error: ParserError) -> Explanation:
    message = "a line that begins with '%' is an instruction to the YAML reader; remove it, or put the text in quotes"
    return Explanation(error.since, error.since + 1, message)


_BLOCK_TEXT = _explain_with("after '|' or '>' a text begins on the next line; or put it in quotes")

_EXPLANATIONS: dict[str, Callable[[ParserError], Explanation | None]] = {
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
    "sequence entries are not allowed": _explain_with(
        "a list cannot begin on the line of its key; begin it on the next line, or put the text in quotes"
    ),
    "mapping keys are not allowed": _explain_with("'? ' is not allowed here; put the text in quotes"),
    "could not find expected ':'": _no_colon,
    "alphabetic or numeric character": _no_name,
    "unknown escape": _escape,
    "invalid Unicode character escape": _escape,
    "hexdecimal number": _escape,
    "undefined tag handle": _tag_handle,
    "comment or line break": _BLOCK_TEXT,
    "comment or a line break": _BLOCK_TEXT,
    "indentation indicator": _BLOCK_TEXT,
    "found unexpected ':'": _explain_with("put a space after this ':', or the text in quotes"),
    "directive": _directive,
    "incompatible YAML document": _directive,
}
