"""The requests that a LangGraph server takes, each for one thread."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote
from uuid import uuid4

from msgspec.structs import replace

from agentv.formats.langgraph_updates import describe_interrupts, excerpt
from agentv.model.response import ResponseError
from agentv.providers.transport.client import TransportError, failure_from, join_url, read_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    from agentv.providers.transport.client import HttpClient, HttpResponse, ResponseStream


CANCEL_S = 2.0
"""How long telling the server to stop may take."""
MAX_HISTORY = 1000
"""How many states of a thread are read."""
_FROM_THE_FIRST = {"Accept": "text/event-stream", "Last-Event-ID": "-1"}
_PLACE = re.compile(r"/threads/([^/?#]+)/runs/([^/?#]+)")
_NOT_FOUND = 404
_LIVE = ("pending", "running")


class Server:
    """One thread on a server, and the run that is under way there."""

    def __init__(self, wire: HttpClient, url: str, assistant: str, thread_id: str | None) -> None:
        self._wire = wire
        self._url = url
        self._assistant = assistant
        self._is_ours = thread_id is None
        self.is_known = thread_id is not None
        """Whether the server has the thread, as far as it has said."""
        self.thread_id = thread_id or str(uuid4())
        self.run_id: str | None = None

    def start(self, body: dict[str, Any], *, stream: bool) -> AbstractAsyncContextManager[ResponseStream]:
        """Start a run, whose reply is its events, or the state that it ends with."""
        self.run_id = None
        return self._wire.stream("POST", self._place("runs", "stream" if stream else "wait"), json=body)

    def note_place(self, headers: Mapping[str, str]) -> None:
        """Take note of where the server says that the run is; a proxy may have dropped that."""
        self.is_known = True
        found = _PLACE.search(headers.get("content-location", ""))
        if found:
            self.thread_id, self.run_id = unquote(found[1]), unquote(found[2])

    async def status(self) -> str:
        """How the run ended, or that it did not; `gone` when the server does not know it any more."""
        answer = await self._wire.send("GET", self._place("runs", self.run_id or ""))
        if answer.status == _NOT_FOUND:
            return "gone"
        status = self._read(answer).get("status")
        return status if isinstance(status, str) else "unknown"

    async def join(self) -> Any:
        """The state that the run ends with, when it has ended."""
        url = _with_query(self._place("runs", self.run_id or "", "join"), "cancel_on_disconnect=1")
        return self._read(await self._wire.send("GET", url))

    def replay(self) -> AbstractAsyncContextManager[ResponseStream]:
        """Ask for the events that the server recorded of the run, from the first on."""
        return self._wire.stream("GET", self._place("runs", self.run_id or "", "stream"), headers=_FROM_THE_FIRST)

    async def history(self) -> list[Any]:
        """Return the states that the thread had during the run, the first one first."""
        if self.run_id is None and not self._is_ours:
            return []  # it is not known which of them are of this run
        answer = await self._wire.send("GET", _with_query(self._place("history"), f"limit={MAX_HISTORY}"))
        told = read_json(answer) if answer.is_ok else []
        states = [each for each in told if isinstance(each, dict)] if isinstance(told, list) else []
        return [each.get("values") for each in reversed(states) if self._is_of_run(each.get("metadata"))]

    def _is_of_run(self, metadata: Any) -> bool:
        return self.run_id is None or (isinstance(metadata, dict) and metadata.get("run_id") == self.run_id)

    async def state(self) -> dict[str, Any]:
        """The thread's state as it is now."""
        return self._read(await self._wire.send("GET", self._place("state")))

    async def cancel(self) -> None:
        """Stop the run, as far as that can be done in a moment."""
        try:
            async with asyncio.timeout(CANCEL_S):
                for run_id in [self.run_id] if self.run_id else await self._live_runs():
                    await self._wire.send("POST", self._place("runs", run_id, "cancel"))
        except (TransportError, TimeoutError):
            pass  # the server was told on the way in, too: to stop when nobody listens any more

    async def _live_runs(self) -> list[str]:
        """What runs on the thread: for a request that was given up before the server named its run."""
        if not self._is_ours:
            return []
        answer = await self._wire.send("GET", self._place("runs"))
        runs = read_json(answer) if answer.is_ok else []
        if not isinstance(runs, list):
            return []
        return [str(run.get("run_id")) for run in runs if isinstance(run, dict) and run.get("status") in _LIVE]

    def shorten(self, message: str) -> str:
        """The message with the server's address alone: the rest is another for every attempt, and tells nothing."""
        return re.sub(rf"/threads/{re.escape(quote(self.thread_id, safe=''))}[\w/-]*", "", message)

    def _place(self, *names: str) -> str:
        return join_url(self._url, "/".join(quote(name, safe="") for name in ("threads", self.thread_id, *names)))

    def _read(self, answer: HttpResponse) -> dict[str, Any]:
        if not answer.is_ok:
            raise TransportError(refused(answer, self._assistant, self.thread_id))
        told = read_json(answer)
        return told if isinstance(told, dict) else {}


def _with_query(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"


_UNKNOWN = (404, 422)
_ENDS = {
    "interrupted": "the run was cancelled on the server before it was done",
    "gone": "the run is not on the server any more: something else rolled it back or deleted its thread",
}


def refused(answer: HttpResponse, assistant: str, thread_id: str | None) -> ResponseError:
    """The error for a status that is not success; where the server does not know a name, it says which."""
    error = failure_from(answer).error
    if error is None:
        return ResponseError(kind="protocol", message=f"{answer.url} answered {answer.status}")
    said = error.message.partition("; check the address")[0].rstrip(".")
    if answer.status not in _UNKNOWN or (answer.status == _UNKNOWN[1] and "assistant" not in said.lower()):
        return error
    thread = f", and that the thread {thread_id!r} is still there" if thread_id else ""
    hint = f"check the `assistant` {assistant!r}, a graph of the server's `langgraph.json` or an assistant's id{thread}"
    return replace(error, kind="transport", code="not_found", message=f"{said}; {hint}, and the `url`")


def agent_error(told: Any) -> ResponseError:
    """The error for a graph that raised one, with the name that the server gives it."""
    said = [told.get("error"), told.get("message")] if isinstance(told, dict) else [told]
    words = [excerpt(each) for each in said if each]
    return ResponseError(kind="agent", message=": ".join(words) or "the graph failed and did not say why")


def asked(interrupts: list[dict[str, Any]], after: int = 0) -> ResponseError:
    """The error for a graph that waits for somebody."""
    what = describe_interrupts(interrupts)
    if after:
        return ResponseError(kind="interrupted", message=f"after {after} answers the graph still {what}")
    hint = "give the target a `resume` value to answer with"
    return ResponseError(kind="interrupted", message=f"the graph {what}; {hint}")


def ended(status: str) -> ResponseError:
    """The error for a run that ended in any way but well, without a word in the reply itself."""
    if status == "timeout":
        return ResponseError(kind="timeout", message="the run took longer than the server allows")
    if status in _ENDS:
        return ResponseError(kind="interrupted", message=_ENDS[status])
    message = f"the reply is over, but the server says of the run that its status is {status!r}"
    return ResponseError(kind="agent" if status == "error" else "protocol", message=message)
