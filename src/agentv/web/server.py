"""Server of the viewer: routes, errors as JSON, and the thread that owns the store."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from aiohttp import web

from agentv.errors import AgentVError, DamagedRunError, FormatError, SpecError
from agentv.jsonio import dump_json
from agentv.model.listing import RunLabel
from agentv.web.assets import ASSETS, page_html
from agentv.web.endpoints import COMPARE_PATH, ENDPOINTS, LABEL_PATH, ParameterError, parse_arguments
from agentv.web.openapi import DESCRIPTION_PATH, describe_api
from agentv.web.store_view import NotFoundError, StoreView

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.typedefs import Handler

    from agentv.protocols import Store
    from agentv.web.endpoints import Endpoint
    from agentv.web.protection import Protection

T = TypeVar("T")
LOGGER = logging.getLogger("agentv.web")
MAX_BODY = 20_000
"""Bytes of a request with a label."""
MAX_NOTE = 5_000
"""Characters of a note."""


class LabelBody(msgspec.Struct, forbid_unknown_fields=True):
    """Body of a request that sets a label; `null` removes it."""

    label: str | None
    note: str = ""


class StoreThread:
    """A thread that owns a connection to the store; what is called in it runs one after the other."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="agentv-view")
        self._view: StoreView | None = None

    async def call(self, function: Callable[[StoreView], T]) -> T:
        """Call a function with the store; a store that is gone is opened again."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._with_store, function)

    def _with_store(self, function: Callable[[StoreView], T]) -> T:
        if self._view is None:
            self._view = StoreView(self._open_store())
        try:
            self._view.store.change_token()
        except AgentVError:
            self._view.store.close()
            self._view = None
            raise
        return function(self._view)

    async def close(self) -> None:
        """Close the store, and end the thread."""
        if self._view is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._view.store.close)
        self._thread.shutdown(wait=True)


class Viewer:
    """The viewer of one store."""

    def __init__(self, open_store: Callable[[], Store], protection: Protection) -> None:
        self._protection = protection
        self._lists, self._comparisons, self._labels = [StoreThread(open_store) for _ in range(3)]
        """A comparison of large executions takes seconds, and a label waits for a store that another process writes."""

    def application(self) -> web.Application:
        """Return the application with all routes."""
        app = web.Application(middlewares=[self._protection.middleware, errors_as_json], client_max_size=MAX_BODY)
        app.router.add_get("/", self._page)
        for name in ASSETS:
            app.router.add_get(f"/static/{name}", partial(_asset, name))
        app.router.add_get(DESCRIPTION_PATH, _description)
        for endpoint in ENDPOINTS:
            app.router.add_get(endpoint.path, partial(self._answer, endpoint))
        app.router.add_put(LABEL_PATH, self._set_label)
        app.on_cleanup.append(self._close)
        return app

    async def _page(self, request: web.Request) -> web.Response:
        del request
        return web.Response(text=page_html(self._protection.write_token), content_type="text/html", charset="utf-8")

    async def _answer(self, endpoint: Endpoint, request: web.Request) -> web.Response:
        args = parse_arguments(endpoint, request.match_info, request.query)
        thread = self._comparisons if endpoint.path == COMPARE_PATH else self._lists
        data = await thread.call(lambda view: endpoint.encode_answer(view, args))
        if endpoint.file:
            name = f"{request.match_info.get('run', 'labels')[:100]}.{endpoint.file.rpartition('/')[2]}"
            safe = "".join(char if char.isalnum() or char in "-._" else "_" for char in name)
            headers = {"Content-Disposition": f'attachment; filename="{safe.encode("ascii", "replace").decode()}"'}
            return web.Response(body=data, content_type=endpoint.file, headers=headers)
        return web.Response(body=data, content_type="application/json")

    async def _set_label(self, request: web.Request) -> web.Response:
        self._protection.check_write(request)
        try:
            body = msgspec.json.decode(await request.read(), type=LabelBody)
        except msgspec.MsgspecError as error:
            raise ParameterError(str(error)) from error
        if body.label not in ("pass", "fail", None) or len(body.note) > MAX_NOTE:
            msg = f"label: expected pass, fail or null, and a note of at most {MAX_NOTE:,} characters"
            raise ParameterError(msg)
        label = None if body.label is None else RunLabel(label=body.label, note=body.note)  # type: ignore[arg-type] # checked
        name = request.match_info["run"]
        stored = await self._labels.call(lambda view: _write_label(view, name, label))
        return web.Response(body=dump_json({"label": stored}), content_type="application/json")

    async def _close(self, app: web.Application) -> None:
        del app
        for thread in (self._lists, self._comparisons, self._labels):
            await thread.close()


def _write_label(view: StoreView, name: str, label: RunLabel | None) -> Any:
    execution_id, run = view.stored_run(name)
    view.store.set_label(execution_id, run.key, label)
    return view.store.run_label(execution_id, run.key)


async def _asset(name: str, request: web.Request) -> web.Response:
    del request
    content_type, data = ASSETS[name].read()
    return web.Response(body=data, content_type=content_type, charset="utf-8")


async def _description(request: web.Request) -> web.Response:
    del request
    return web.Response(body=dump_json(describe_api()), content_type="application/json")


ERRORS: tuple[tuple[type[AgentVError], int, str], ...] = (
    (ParameterError, 400, "bad_request"),
    (NotFoundError, 404, "not_found"),
    (DamagedRunError, 409, "damaged"),
    (FormatError, 422, "not_possible"),
    (SpecError, 422, "not_possible"),
    (AgentVError, 503, "store"),
)
"""Status and code of an error, by its first class."""


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn errors into an answer that says what happened."""
    try:
        return await handler(request)
    except AgentVError as error:
        status, code = next((status, code) for kind, status, code in ERRORS if isinstance(error, kind))
        return problem(status, code, str(error))
    except web.HTTPException as error:
        return problem(error.status, error.reason.lower().replace(" ", "_"), error.text or error.reason, error.headers)
    except Exception:
        # Whatever one answer raises, the page gets an answer that it can show, and the others are shown.
        LOGGER.exception("%s could not be answered", request.path)
        return problem(500, "internal", "this could not be read; agentv view printed the reason")


def problem(status: int, code: str, message: str, headers: Any = None) -> web.Response:
    """Return an error as JSON."""
    kept = {name: value for name, value in (headers or {}).items() if name == "Allow"}
    body = dump_json({"error": {"code": code, "message": message}})
    return web.Response(status=status, body=body, content_type="application/json", headers=kept)
