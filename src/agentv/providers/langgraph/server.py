"""Client of the API of a LangGraph server, for one thread."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote
from uuid import uuid4

from msgspec.structs import replace

from agentv.formats.langgraph_updates import describe_interrupts, excerpt
from agentv.model.response import ResponseError
from agentv.providers.transport.failures import TransportError, failure_from, read_json
from agentv.providers.transport.urls import join_url, merge_headers

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractAsyncContextManager

    from agentv.providers.transport.client import HttpClient, ResponseStream
    from agentv.providers.transport.failures import HttpResponse


CANCEL_S = 2.0
"""Time limit for the cancellation of a run."""
MAX_HISTORY = 1000
"""Number of states of a thread that are read."""
_FROM_THE_FIRST = {"Accept": "text/event-stream", "Last-Event-ID": "-1"}
_RUN_PATH = re.compile(r"/threads/([^/?#]+)/runs/([^/?#]+)")
_NOT_FOUND = 404
_LIVE = ("pending", "running")


class Server:
    """Thread on a server, and its current run."""

    def __init__(
        self, client: HttpClient, url: str, assistant: str, thread_id: str | None, headers: Mapping[str, str]
    ) -> None:
        self._client = client
        self._headers = headers
        """Headers beside those of the client."""
        self._url = url
        self._assistant = assistant
        self._is_new_thread = thread_id is None
        self.is_known = thread_id is not None
        """True if the server is known to have the thread."""
        self.thread_id = thread_id or str(uuid4())
        self.run_id: str | None = None

    def start(self, body: dict[str, Any], *, stream: bool) -> AbstractAsyncContextManager[ResponseStream]:
        """Start a run; its reply is a stream of events, or the final state."""
        self.run_id = None
        return self._client.stream(
            "POST", self._url_of("runs", "stream" if stream else "wait"), json=body, headers=self._headers
        )

    def read_run_ids(self, headers: Mapping[str, str]) -> None:
        """Read the ids of the run from headers, which a proxy may have dropped."""
        self.is_known = True
        match = _RUN_PATH.search(headers.get("content-location", ""))
        if match:
            self.thread_id, self.run_id = unquote(match[1]), unquote(match[2])

    async def status(self) -> str:
        """Return the status of the run; `gone` if the server does not know it any more."""
        answer = await self._get(self._url_of("runs", self.run_id or ""))
        if answer.status == _NOT_FOUND:
            return "gone"
        status = self._read(answer).get("status")
        return status if isinstance(status, str) else "unknown"

    async def join(self) -> Any:
        """Wait for the end of the run and return its final state."""
        url = _with_query(self._url_of("runs", self.run_id or "", "join"), "cancel_on_disconnect=1")
        return self._read(await self._get(url))

    def replay(self) -> AbstractAsyncContextManager[ResponseStream]:
        """Ask for the events that the server recorded of the run, from the first on."""
        headers = merge_headers(_FROM_THE_FIRST, self._headers)
        return self._client.stream("GET", self._url_of("runs", self.run_id or "", "stream"), headers=headers)

    async def history(self) -> list[Any]:
        """Return the states that the thread had during the run, the first one first."""
        if self.run_id is None and not self._is_new_thread:
            return []  # the states of this run are unknown
        answer = await self._get(_with_query(self._url_of("history"), f"limit={MAX_HISTORY}"))
        document = read_json(answer) if answer.is_ok else []
        states = [state for state in document if isinstance(state, dict)] if isinstance(document, list) else []
        return [state.get("values") for state in reversed(states) if self._is_of_run(state.get("metadata"))]

    def _is_of_run(self, metadata: Any) -> bool:
        return self.run_id is None or (isinstance(metadata, dict) and metadata.get("run_id") == self.run_id)

    async def state(self) -> dict[str, Any]:
        """Return the current state of the thread."""
        return self._read(await self._get(self._url_of("state")))

    async def cancel(self) -> None:
        """Cancel the run, within `CANCEL_S`."""
        try:
            async with asyncio.timeout(CANCEL_S):
                for run_id in [self.run_id] if self.run_id else await self._live_runs():
                    await self._client.send("POST", self._url_of("runs", run_id, "cancel"), headers=self._headers)
        except (TransportError, TimeoutError):
            pass  # `on_disconnect` cancels the run, too

    async def _live_runs(self) -> list[str]:
        """Return the runs of the thread, for a request that was cancelled before the server named its run."""
        if not self._is_new_thread:
            return []
        answer = await self._get(self._url_of("runs"))
        runs = read_json(answer) if answer.is_ok else []
        if not isinstance(runs, list):
            return []
        return [str(run.get("run_id")) for run in runs if isinstance(run, dict) and run.get("status") in _LIVE]

    def shorten(self, message: str) -> str:
        """Shorten URLs in a message to that of the server, because their paths differ in every attempt."""
        return re.sub(rf"/threads/{re.escape(quote(self.thread_id, safe=''))}[\w/-]*", "", message)

    async def _get(self, url: str) -> HttpResponse:
        return await self._client.send("GET", url, headers=self._headers)

    def _url_of(self, *names: str) -> str:
        return join_url(self._url, "/".join(quote(name, safe="") for name in ("threads", self.thread_id, *names)))

    def _read(self, answer: HttpResponse) -> dict[str, Any]:
        if not answer.is_ok:
            raise TransportError(response_error(answer, self._assistant, self.thread_id))
        document = read_json(answer)
        return document if isinstance(document, dict) else {}


def _with_query(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"


_UNKNOWN = (404, 422)
_STATUS_MESSAGES = {
    "interrupted": "the run was cancelled on the server before it was done",
    "gone": "the run is not on the server any more: something else rolled it back or deleted its thread",
}


def response_error(answer: HttpResponse, assistant: str, thread_id: str | None) -> ResponseError:
    """Return the error for a status that is no success, with the name that the server does not know."""
    error = failure_from(answer).error
    if error is None:
        return ResponseError(kind="protocol", message=f"{answer.url} answered {answer.status}")
    message = error.message.partition("; check the address")[0].rstrip(".")
    if answer.status not in _UNKNOWN or (answer.status == _UNKNOWN[1] and "assistant" not in message.lower()):
        return error
    thread = f", and that the thread {thread_id!r} is still there" if thread_id else ""
    hint = f"check the `assistant` {assistant!r}, a graph of the server's `langgraph.json` or an assistant's id{thread}"
    return replace(error, kind="transport", code="not_found", message=f"{message}; {hint}, and the `url`")


def agent_error(document: Any) -> ResponseError:
    """Return the error for an exception of the graph, with its class."""
    parts = [document.get("error"), document.get("message")] if isinstance(document, dict) else [document]
    texts = [excerpt(part) for part in parts if part]
    return ResponseError(kind="agent", message=": ".join(texts) or "the graph failed and did not say why")


def interrupted_error(interrupts: list[dict[str, Any]], after: int = 0) -> ResponseError:
    """Return the error for a graph that waits for input."""
    what = describe_interrupts(interrupts)
    if after:
        return ResponseError(kind="interrupted", message=f"after {after} answers the graph still {what}")
    hint = "give the target a `resume` value to answer with"
    return ResponseError(kind="interrupted", message=f"the graph {what}; {hint}")


def status_error(status: str) -> ResponseError:
    """Return the error for a run that ended without success and without an error event."""
    if status == "timeout":
        return ResponseError(kind="timeout", message="the run took longer than the server allows")
    if status in _STATUS_MESSAGES:
        return ResponseError(kind="interrupted", message=_STATUS_MESSAGES[status])
    message = f"the reply is over, but the server says of the run that its status is {status!r}"
    return ResponseError(kind="agent" if status == "error" else "protocol", message=message)
