"""`agentv view`: the viewer of stored runs, in the browser."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import webbrowser
from functools import partial
from urllib.parse import quote

import click
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from agentv.api.store_files import named_store, open_existing_store
from agentv.cli.options import STORE
from agentv.cli.outputs import print_json
from agentv.cli.problems import fail_error, fail_usage
from agentv.errors import AgentVError, StoreConnectionError
from agentv.web.protection import Protection, is_loopback
from agentv.web.server import Viewer

DEFAULT_PORT = 8642


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Port; {DEFAULT_PORT}, or a free one if it is taken.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Answer requests for this host name, too.")
@click.option("--token", metavar="TEXT", help="Token that requests need; made if --host is not this machine alone.")
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
@STORE
@click.option("--json", "as_json", is_flag=True, help="Print the address as one JSON object.")
def command(  # noqa: PLR0913 - one for each option
    host: str,
    port: int | None,
    allow_host: tuple[str, ...],
    token: str | None,
    store: str | None,
    *,
    no_open: bool,
    as_json: bool,
) -> None:
    """Show stored executions and runs in the browser, also while they are under way.

    It reads the store of the project; only labels are written. It ends with Ctrl-C.
    """
    try:
        location = named_store(store)
        open_existing_store(location).close()
    except StoreConnectionError as error:
        fail_error(str(error))
    except AgentVError as error:
        fail_usage(str(error))
    protection = Protection(host, allow_host, token)
    viewer = Viewer(partial(open_existing_store, location), protection)
    try:
        asyncio.run(_serve(viewer, protection, host, port, opens=not no_open, as_json=as_json))
    except OSError as error:
        fail_usage(f"cannot listen on {host}:{port or DEFAULT_PORT}: {error.strerror}; choose another --port or --host")


async def _serve(  # noqa: PLR0913 - one for each option
    viewer: Viewer, protection: Protection, host: str, port: int | None, *, opens: bool, as_json: bool
) -> None:
    logging.getLogger("aiohttp.server").addFilter(_is_worth_showing)
    runner = web.AppRunner(viewer.application(), access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = await _listen(runner, host, port)
        address = _address(site, host)
        token = f"?token={quote(protection.access_token, safe='')}" if protection.access_token else ""
        if as_json:
            print_json({"schema": "agentv.viewer/1", "url": f"{address}/{token}"})
        else:
            click.echo(f"agentv view: {address}/{token}  (Ctrl-C ends it)")
        if not is_loopback(host):
            click.echo("warning: other machines can reach this; who has the token can read all stored runs", err=True)
        sys.stdout.flush()
        if opens:
            webbrowser.open(f"{address}/{token}")
        await _until_signal()
    finally:
        await runner.cleanup()


def _is_worth_showing(record: logging.LogRecord) -> bool:
    """Tell whether a message is one about the viewer; whoever sends what is not HTTP gets an answer that says so."""
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


async def _listen(runner: web.AppRunner, host: str, port: int | None) -> web.TCPSite:
    """Listen on this port; without one, on the usual port or on any free one."""
    if port is None:
        try:
            site = web.TCPSite(runner, host, DEFAULT_PORT)
            await site.start()
        except OSError:
            port = 0
        else:
            return site
    site = web.TCPSite(runner, host, port)
    await site.start()
    return site


def _address(site: web.TCPSite, host: str) -> str:
    sockets = getattr(getattr(site, "_server", None), "sockets", ())
    number = sockets[0].getsockname()[1] if sockets else DEFAULT_PORT
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{number}"


async def _until_signal() -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stopped.set)
    except (NotImplementedError, ValueError, RuntimeError):  # Windows: Ctrl-C raises KeyboardInterrupt
        pass
    await stopped.wait()
