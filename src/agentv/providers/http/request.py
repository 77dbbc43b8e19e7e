"""Write HTTP requests: URL, headers and body with their placeholders filled; values of the placeholders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from msgspec import UNSET, Struct, to_builtins

from agentv.errors import FormatError, Problem
from agentv.formats.conversation import KEY
from agentv.formats.openai import to_openai
from agentv.jsonio import dump_json
from agentv.providers.base import request_fields
from agentv.suggestions import suggest
from agentv.templating import MISSING, Template, check_keys, iter_placeholders, lookup, unescape_placeholders

if TYPE_CHECKING:
    from collections.abc import Callable

    from agentv.model.conversation import Message
    from agentv.model.request import ConversationMode, Request
    from agentv.templating import Fill

NAMES = (
    *("prompt", "messages", "new_messages", "id", "vars", "attempt"),
    *("thread_id", "conversation_id", "turn", "resume"),
)
"""Names of placeholders; `vars` also with a path, such as `vars.user.city`."""
_MAX_NAMED = 20

Values = Mapping[str, Any]


def values_of(request: Request, message_format: str, mode: ConversationMode = "full") -> dict[str, Any]:
    """Return the values of the names; `UNSET` are `thread_id` in a new thread, and `prompt` beside a `resume`."""
    return {
        "prompt": request.prompt if request.resume is UNSET else UNSET,
        "messages": write_messages(request.messages_to_send(mode), message_format),
        "new_messages": write_messages(request.messages_to_send("thread"), message_format),
        "id": request.id,
        "vars": request.vars,
        "thread_id": UNSET if request.thread_id is None else request.thread_id,
        "conversation_id": request.conversation_id,
        "turn": request.turn,
        "resume": request.resume,
        "attempt": request.attempt,
    }


def write_messages(messages: Sequence[Message], message_format: str) -> list[Any]:
    """Return messages in the format of the target."""
    if message_format == "compact":
        written: list[Any] = to_builtins(list(messages))
        return written
    return [_without_marker(message) for message in to_openai(messages)]


def _without_marker(message: dict[str, Any]) -> dict[str, Any]:
    """Remove our own metadata from a message, because other servers reject unknown fields."""
    metadata = message.get("metadata")
    if not isinstance(metadata, dict) or KEY not in metadata:
        return message
    kept = {key: value for key, value in metadata.items() if key != KEY}
    return {**message, "metadata": kept} if kept else {key: message[key] for key in message if key != "metadata"}


def is_known(name: str) -> bool:
    """Return whether a name can be filled; the value of a name in `vars` is looked up only when a case runs."""
    return name in NAMES or (name.startswith("vars.") and all(name.split(".")))


def find_value(values: Values, name: str, path: str = "") -> Any:
    """Return the value of a name, or raise `FormatError` if the `vars` of this case have none."""
    del path
    value = lookup(values, name)
    if value is MISSING:
        names = list(map(str, values["vars"]))
        near = suggest(name.partition(".")[2], names, ". Did")
        msg = (
            f"{{{{ {name} }}}} names no value of this case's `vars`; "
            f"there are {', '.join(names[:_MAX_NAMED]) or 'none'}{near}"
        )
        raise FormatError(msg)
    return value


TEMPLATE = Template(find_value, is_name=lambda written: is_known(written.strip()), unescape=unescape_placeholders)


def check_template(value: Any, path: str) -> Iterator[Problem]:
    """Yield the problems of a template: unknown names, and placeholders in keys."""
    for placeholder in iter_placeholders(value, path):
        if not is_known(placeholder.name):
            yield Problem(placeholder.path, _unknown(placeholder.written, placeholder.name), "whole")
    yield from check_keys(value, path)


def _unknown(written: str, name: str) -> str:
    choices = [*(known for known in NAMES if known != "vars"), "vars.NAME"]
    near = suggest(name, NAMES, ". Did") or (". Did you mean 'vars." + name + "'?" if name.isidentifier() else "")
    return f"{written} is not a placeholder; expected one of {', '.join(choices)}{near}"


def names_in(value: Any) -> set[str]:
    """Return all names that are filled in a value."""
    return {placeholder.name for placeholder in iter_placeholders(value) if is_known(placeholder.name)}


FORM = "application/x-www-form-urlencoded"
_WITHOUT_BODY = ("GET", "HEAD")
_ACCEPTED = {
    "sse": "text/event-stream",
    "ndjson": "application/x-ndjson, application/jsonl;q=0.9",
    "none": "application/json, text/plain;q=0.9, */*;q=0.8",
}
_AT_QUERY = re.compile(r"([^?#]*)([?#]?)(.*)", re.DOTALL)
_ANY = "application/json, text/event-stream;q=0.9, */*;q=0.8"


class HttpRequest(Struct, frozen=True, kw_only=True):
    """HTTP request to send."""

    method: str
    url: str
    headers: dict[str, str]
    data: bytes | None


class RequestSettings(Struct, frozen=True, kw_only=True):
    """Settings of a target for its requests."""

    url: str
    method: str
    headers: Mapping[str, str]
    query: Mapping[str, Any]
    body: Any
    message_format: str
    stream: str | None
    thread_header: str | None
    mode: ConversationMode = "full"


class RequestWriter:
    """Writer of HTTP requests, with compiled templates."""

    def __init__(self, settings: RequestSettings) -> None:
        self._settings = settings
        self._url = _compile_address(settings.url)
        self._query = {name: TEMPLATE.compile(value) for name, value in settings.query.items()}
        self._headers: dict[str, Fill] = {name: TEMPLATE.compile(value) for name, value in settings.headers.items()}
        self._body: Callable[[Request, Values], Any] = self._make_body_writer()
        self._type = content_type(settings.headers)
        written = [settings.url, dict(settings.headers), dict(settings.query), settings.body]
        has_default_body = settings.body is UNSET and settings.method not in _WITHOUT_BODY
        self._takes_resume = has_default_body or any("resume" in names_in(value) for value in written)

    def write(self, request: Request) -> HttpRequest:
        """Return the HTTP request; raise `FormatError` if a value is missing or cannot be sent."""
        if request.resume is not UNSET and not self._takes_resume:
            msg = "this turn resumes the agent with a value, which is sent nowhere: write {{ resume }} into the `body`"
            raise FormatError(msg)
        values = values_of(request, self._settings.message_format, self._settings.mode)
        body = self._body(request, values)
        headers = {"Accept": _ACCEPTED.get(self._settings.stream or "", _ANY)}
        if body is not None and not self._type:
            headers["Content-Type"] = "application/json"
        return HttpRequest(
            method=self._settings.method,
            url=_with_query(self._url(values), {name: fill(values) for name, fill in self._query.items()}),
            headers=_merge_headers(headers, _merge_headers(self._fill_headers(request, values), _persona(request))),
            data=None if body is None else _encode_body(body, self._type),
        )

    def _fill_headers(self, request: Request, values: Values) -> dict[str, str]:
        filled = {name: fill(values) for name, fill in self._headers.items()}
        if self._settings.thread_header and request.thread_id is not None:
            filled = {self._settings.thread_header: request.thread_id, **filled}
        return {name: _one_line(name, _text(value)) for name, value in filled.items() if value is not UNSET}

    def _make_body_writer(self) -> Callable[[Request, Values], Any]:
        template = self._settings.body
        if template is UNSET:
            if self._settings.method in _WITHOUT_BODY:
                return lambda request, values: None  # noqa: ARG005 - one of several that are called alike
            return lambda request, values: _default_body(request)  # noqa: ARG005 - as above
        fill = TEMPLATE.compile(template)
        return lambda request, values: None if (filled := fill(values)) is UNSET else filled  # noqa: ARG005


def _default_body(request: Request) -> dict[str, Any]:
    """Return the default body, as programs of the `cli` provider receive it."""
    return {"id": request.id, **request_fields(request)}


def _persona(request: Request) -> dict[str, str]:
    """Return the headers of the persona."""
    return {name: _one_line(name, value) for name, value in request.headers.items()}


def content_type(headers: Mapping[str, str]) -> str:
    """Return the content type in the headers, in lower case and without parameters."""
    template = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    return template.partition(";")[0].strip().lower()


def is_json(kind: str) -> bool:
    """Return whether a content type is JSON."""
    return kind in ("application/json", "text/json") or kind.endswith("+json")


def _encode_body(body: Any, kind: str) -> bytes:
    if not kind or is_json(kind):
        return dump_json(body)
    if isinstance(body, str):
        return body.encode("utf-8", "replace")
    if kind == FORM and isinstance(body, dict):
        return urlencode(_pairs(body)).encode()
    msg = f"a body of type {kind} is a text{' or a mapping' if kind == FORM else ''}, not a {type(body).__name__}"
    raise FormatError(msg)


def _merge_headers(defaults: dict[str, str], headers: dict[str, str]) -> dict[str, str]:
    """Merge headers; the second take precedence over the first."""
    named = {name.lower() for name in headers}
    return {**{name: value for name, value in defaults.items() if name.lower() not in named}, **headers}


def _one_line(name: str, value: str) -> str:
    value = value.strip()  # a key from a file often ends with a line break
    try:
        # The client sends Latin-1 as it is; other characters are not portable.
        value.encode("latin-1")
    except UnicodeEncodeError:
        value = quote(value, safe=" !#$&'()*+,-./:;<=>?@[]^_`{|}~")
    if any(char in value for char in "\r\n\0"):
        msg = f"the header {name!r} would hold a line break, which no header can"
        raise FormatError(msg)
    return value


def _compile_address(url: str) -> Callable[[Values], str]:
    """Return a function that fills a URL; values are percent-encoded and cannot change its structure."""
    path, mark, rest = _AT_QUERY.match(url).groups()  # type: ignore[union-attr]  # it fits every text
    fill_path, fill_rest = TEMPLATE.compile_text(path, encode=_quoted), TEMPLATE.compile_text(rest, encode=_quoted)
    template = path.split("/")

    def fill(values: Values) -> str:
        filled = fill_path(values)
        for before, after in zip(template, filled.split("/"), strict=True):
            if after in (".", "..") and before != after:
                msg = f"{before} in `url` would be {after!r}, which names another place"
                raise FormatError(msg)
        return f"{filled}{mark}{fill_rest(values)}"

    return fill


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", "replace"), safe="")


def _with_query(url: str, query: Mapping[str, Any]) -> str:
    pairs = _pairs(query)
    if not pairs:
        return url
    parts = urlsplit(url)
    joined = "&".join(part for part in (parts.query, urlencode(pairs, quote_via=quote)) if part)
    return urlunsplit(parts._replace(query=joined))


def _pairs(fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return fields as pairs, one for each item of a list of plain values; other values are written as JSON."""
    pairs: list[tuple[str, str]] = []
    for name, value in fields.items():
        if value is UNSET or value is None:
            continue
        several = isinstance(value, list) and not any(isinstance(item, (dict, list)) for item in value)
        pairs += [(name, _text(item)) for item in (value if several else [value])]
    return pairs


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dump_json(value).decode()
