"""Faulty replies, each under the name of a model."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from email.utils import formatdate
from time import time
from typing import Any, NamedTuple

from aiohttp import web

from tests.fakes.model_server.replies import Event, written

PAGE = "<!DOCTYPE html><html><body><h1>Sign in to the network</h1></body></html>"


class Fault(NamedTuple):
    """A request that is to go wrong."""

    request: web.Request
    vendor: str
    whole: dict[str, Any]
    """The reply that it would have got."""
    events: Iterator[Event] | None
    """The same in pieces, when it was asked for so."""


Handler = Callable[[Fault], Awaitable[web.StreamResponse]]


def error_body(vendor: str, kind: str, message: str, code: str | None = None) -> dict[str, Any]:
    """An error as this vendor writes it."""
    if vendor == "anthropic":
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def refused(
    status: int, kind: str, message: str, code: str | None = None, **headers: str | Callable[[], str]
) -> Handler:
    """An answer with an error in the body."""

    async def answer(fault: Fault) -> web.StreamResponse:
        sent = {name.replace("_", "-"): value if isinstance(value, str) else value() for name, value in headers.items()}
        return web.json_response(error_body(fault.vendor, kind, message, code), status=status, headers=sent)

    return answer


async def quota(fault: Fault) -> web.StreamResponse:
    """Nothing left to spend; one vendor calls that a 429, the other a bad request."""
    if fault.vendor == "anthropic":
        message = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."
        return web.json_response(error_body("anthropic", "invalid_request_error", message), status=400)
    message = "You exceeded your current quota, please check your plan and billing details."
    body = error_body("openai", "insufficient_quota", message, "insufficient_quota")
    return web.json_response(body, status=429, headers={"Retry-After": "1"})


async def echoed_key(fault: Fault) -> web.StreamResponse:
    """A server that repeats the key it was sent."""
    key = fault.request.headers.get("Authorization") or fault.request.headers.get("x-api-key")
    return web.json_response(error_body(fault.vendor, "authentication_error", f"Incorrect API key: {key}"), status=401)


async def page(fault: Fault) -> web.StreamResponse:
    """A proxy's page in place of a reply."""
    del fault
    return web.Response(text=PAGE, content_type="text/html")


async def malformed(fault: Fault) -> web.StreamResponse:
    """JSON that is none."""
    if fault.events is None:
        return web.Response(text='{"id": "1", "choices": [oops', content_type="application/json")
    response = await _begin(fault)
    await _write(response, fault.events, 2)
    await response.write(b"data: {oops\n\n")
    await response.write_eof()
    return response


async def other_object(fault: Fault) -> web.StreamResponse:
    """JSON, of another API."""
    del fault
    return web.json_response({"hello": "world"})


async def error_with_success(fault: Fault) -> web.StreamResponse:
    """An error in place of the reply, or of its rest, with status 200."""
    body = error_body(fault.vendor, "overloaded_error", "Overloaded", None)
    if fault.events is None:
        return web.json_response(body)
    response = await _begin(fault)
    await _write(response, fault.events, 3)
    name = "event: error\n" if fault.vendor == "anthropic" else ""
    await response.write(f"{name}data: {json.dumps(body)}\n\n".encode())
    await response.write_eof()
    return response


async def cut(fault: Fault) -> web.StreamResponse:
    """A connection that breaks in the middle of the reply."""
    if fault.events is None:
        data = json.dumps(fault.whole).encode()
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(data))})
        await response.prepare(fault.request)
        await response.write(data[: len(data) // 2])
    else:
        response = await _begin(fault)
        await _write(response, fault.events, 2)
    await asyncio.sleep(0.01)
    _hang_up(fault)
    return response


async def ended_early(fault: Fault) -> web.StreamResponse:
    """A stream that ends properly, before the reply does."""
    response = await _begin(fault)
    await _write(response, fault.events or iter(()), 2)
    await response.write_eof()
    return response


async def no_answer(fault: Fault) -> web.StreamResponse:
    """A connection that breaks before anything was said."""
    _hang_up(fault)
    return web.Response()


async def trickle(fault: Fault) -> web.StreamResponse:
    """A reply that comes byte by byte, its characters and events cut anywhere."""
    if fault.events is None:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(fault.request)
        data = json.dumps(fault.whole, ensure_ascii=False).encode()
    else:
        response = await _begin(fault)
        data = b"".join(map(written, fault.events))
    for at in range(0, len(data), 3):
        await response.write(data[at : at + 3])
        await asyncio.sleep(0)
    await response.write_eof()
    return response


async def drip(fault: Fault) -> web.StreamResponse:
    """A reply that never stops coming and never comes to its end, too slow for anybody's patience."""
    response = await _begin(fault)
    while True:
        await response.write(b": one moment\n\n")
        await asyncio.sleep(0.05)


async def endless(fault: Fault) -> web.StreamResponse:
    """A reply that never ends."""
    response = await _begin(fault) if fault.events else web.StreamResponse()
    if not fault.events:
        await response.prepare(fault.request)
    while True:
        await response.write(b": " + b"x" * 65_536 + b"\n")


async def silent(fault: Fault) -> web.StreamResponse:
    """A server that takes the request and says nothing more."""
    await asyncio.sleep(60)
    return web.json_response(fault.whole)


async def silent_body(fault: Fault) -> web.StreamResponse:
    """A server that begins to answer, and says nothing more."""
    response = await _begin(fault)
    await response.write(b": one moment")
    await asyncio.sleep(60)
    return response


async def redirect(fault: Fault) -> web.StreamResponse:
    """Somewhere else."""
    return web.Response(status=307, headers={"Location": f"http://localhost:1{fault.request.path}"})


async def plain_events(fault: Fault) -> web.StreamResponse:
    """Events that do not say that they are."""
    return web.Response(body=b"".join(map(written, fault.events or ())), content_type="text/plain")


async def no_streaming(fault: Fault) -> web.StreamResponse:
    """A server that answers as a whole, whatever it was asked for."""
    return web.json_response(fault.whole)


async def _begin(fault: Fault) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(fault.request)
    return response


async def _write(response: web.StreamResponse, events: Iterator[Event], number: int) -> None:
    for event, _ in zip(events, range(number), strict=False):
        await response.write(written(event))


def _hang_up(fault: Fault) -> None:
    transport = fault.request.transport
    assert transport is not None
    transport.abort()


_LIMITED = "Rate limit reached for requests"
FAULTS: dict[str, Handler] = {
    "limited": refused(429, "rate_limit_error", _LIMITED, "rate_limit_exceeded"),
    "limited-seconds": refused(429, "rate_limit_error", _LIMITED, "rate_limit_exceeded", Retry_After="7"),
    "limited-ms": refused(429, "rate_limit_error", _LIMITED, "rate_limit_exceeded", retry_after_ms="1500"),
    "limited-shortly": refused(429, "rate_limit_error", _LIMITED, "rate_limit_exceeded", retry_after_ms="300"),
    "limited-date": refused(
        429, "rate_limit_error", _LIMITED, Retry_After=lambda: formatdate(time() + 30, usegmt=True)
    ),
    "quota": quota,
    "server-error": refused(500, "server_error", "The server had an error"),
    "unavailable": refused(503, "server_error", "Try again", Retry_After="0"),
    "overloaded": refused(529, "overloaded_error", "Overloaded"),
    "unauthorized": refused(401, "authentication_error", "invalid x-api-key", "invalid_api_key"),
    "echoed-key": echoed_key,
    "unknown": refused(404, "not_found_error", "The model `unknown` does not exist", "model_not_found"),
    "bad-request": refused(400, "invalid_request_error", "temperature must be at most 2"),
    "page": page,
    "malformed": malformed,
    "other-object": other_object,
    "error-with-success": error_with_success,
    "cut": cut,
    "ended-early": ended_early,
    "no-answer": no_answer,
    "trickle": trickle,
    "drip": drip,
    "endless": endless,
    "silent": silent,
    "silent-body": silent_body,
    "redirect": redirect,
    "plain-events": plain_events,
    "no-streaming": no_streaming,
}
