"""Host: an object on every worker of an engine, which keeps a child process that runs the requests.

Its methods take and return bytes, never raise, and are called by the coordinator. The child process is separate from
that of the engine, so that an agent cannot end or block the engine's worker, and it ends with the lease.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import signal
import socket
import sys
import tempfile
import zipfile
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from time import time
from typing import Any

from msgspec import Struct
from msgspec.json import decode, encode

from agentv import __version__
from agentv.model.request import Request  # noqa: TC001 - a field of a struct
from agentv.model.response import ProviderResponse  # noqa: TC001 - as above

MAX_LINE = 1 << 27
_MAX_STDERR = 2_000
_CLOSE_S = 3.0
"""Time that a child process gets to end the programs of its agents."""
CANCELLED = b"cancelled"
PROJECT_S = 7 * 86_400.0
"""Age at which an unpacked project is deleted; if it is still used, it is sent again."""


class TargetJob(Struct, frozen=True, kw_only=True):
    """Target to open: its settings as written, the variables that it names, and its folders."""

    target: str
    """Key of the target in later messages."""
    name: str
    provider: str
    settings: dict[str, Any]
    env: dict[str, str] = {}
    project: str = ""
    """Hash of the project; empty if the folders are the same on all machines."""
    root: str = ""
    """Folder of the project, if it was not shipped."""
    folder: str = ""
    """Folder of the target, relative to the root."""
    eval_folder: str = ""
    """Folder of the eval, relative to the root; empty if it is the same."""
    with_raw: bool = False
    """`True` to send `raw_response` back."""


class Task(Struct, frozen=True, kw_only=True):
    """Requests to run."""

    token: str
    target: str
    requests: tuple[Request, ...]
    timeout_s: float
    batch: bool = False
    alone: bool = False
    """`True` to run in a child process of its own, because an earlier one ended during this task."""
    conversation_id: str = ""
    """Conversation whose further turns belong to the same child process."""
    process: str = ""
    """Child process of the earlier turns of the conversation, if it has any there."""


class Reply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Replies to a task, or the reason why there are none."""

    token: str
    responses: tuple[ProviderResponse, ...] = ()
    lost: str = ""
    """Reason, if the child process ended before it replied."""
    process: str = ""
    """Child process that replied."""
    is_closed: bool = False
    """`True` if the host has ended, so that no request is to blame."""


class HostInfo(Struct, frozen=True, kw_only=True):
    """Versions and name of a worker."""

    agentv: str
    python: str
    name: str
    projects: tuple[str, ...] = ()


class OpenReply(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings of a target that was opened, or the reason why it could not be."""

    error: str = ""
    batch: bool = False
    """`True` if its session takes several requests at once."""
    stateful: bool = False
    """`True` if the turns of a conversation belong to one process."""
    keeps_thread: bool = False
    """`True` if a turn carries only its own message, so that no other process can go on with the conversation."""


def python_version() -> str:
    """Return the version of this Python that has to be the same everywhere."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


class Child:
    """Child process of a host, which runs `agentv.executors.worker`."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self.pending: dict[str, asyncio.Future[bytes]] = {}
        self._stderr = b""
        self._readers: list[asyncio.Task[None]] = []
        self.is_closed = False

    async def start(self) -> None:
        """Start the process."""
        path = [os.path.abspath(path) for path in sys.path]  # noqa: ASYNC240, PTH100 - no disk
        program = f"import sys; sys.path[:] = {path!r}; from agentv.executors.worker import main; main()"
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            program,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=MAX_LINE,
            start_new_session=True,
        )
        self._readers = [asyncio.create_task(self._read()), asyncio.create_task(self._read_stderr())]

    def send(self, kind: str, token: str, data: bytes = b"") -> asyncio.Future[bytes]:
        """Send a message and return the future of its reply."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        if self.is_closed or self._process is None or self._process.stdin is None:
            future.set_exception(ConnectionError(self._reason()))
            return future
        self.pending[token] = future
        self._process.stdin.write(b"%s %s %s\n" % (kind.encode(), token.encode(), data))
        return future

    async def _read(self) -> None:
        assert self._process is not None  # noqa: S101 - started before
        assert self._process.stdout is not None  # noqa: S101 - a pipe
        with suppress(ValueError, OSError):  # a line that is longer than any reply may be
            while line := await self._process.stdout.readline():
                token, _, data = line.rstrip(b"\n").partition(b" ")
                future = self.pending.pop(token.decode(), None)
                if future is not None and not future.done():
                    future.set_result(data)
        self.is_closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                await self._process.wait()
        for future in self.pending.values():
            if not future.done():
                future.set_exception(ConnectionError(self._reason()))
        self.pending.clear()
        self.kill()

    async def _read_stderr(self) -> None:
        assert self._process is not None  # noqa: S101 - started before
        assert self._process.stderr is not None  # noqa: S101 - a pipe
        while data := await self._process.stderr.read(1 << 16):
            self._stderr = (self._stderr + data)[-_MAX_STDERR:]

    def _reason(self) -> str:
        code = None if self._process is None else self._process.returncode
        how = f"by signal {-code}" if code is not None and code < 0 else f"with exit code {code}"
        text = self._stderr.decode(errors="replace").strip()
        return f"the process that ran it ended {how}" + (f"; its last output: {text}" if text else "")

    def kill(self) -> None:
        """Kill the process with its group; the programs of its agents are ended by its watcher."""
        if self._process is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def close(self) -> None:
        """End the process: it first ends the programs of its agents."""
        self.is_closed = True
        if self._process is None:
            return
        if self._process.stdin is not None:
            self._process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._process.wait()
        self.kill()
        await asyncio.gather(*self._readers, return_exceptions=True)


class Host:
    """Object on a worker that opens targets and runs tasks in child processes."""

    def __init__(self, lease_s: float) -> None:
        self._lease_s = lease_s
        self._is_renewed = False
        self._jobs: dict[str, bytes] = {}
        self._child: Child | None = None
        self._extra: set[Child] = set()
        self._own: dict[str, Child] = {}
        """Child processes of conversations that run alone."""
        self._starting: asyncio.Lock | None = None
        self._watch: asyncio.Task[None] | None = None
        self._tasks: dict[str, Child] = {}
        self._is_closed = False

    async def hello(self) -> bytes:
        """Return the versions and the name of this worker, and watch the lease from now on."""
        self._watch = asyncio.create_task(self._watch_lease())
        projects = await asyncio.to_thread(known_projects)
        name = f"{socket.gethostname()}:{os.getpid()}"
        return encode(HostInfo(agentv=__version__, python=python_version(), name=name, projects=projects))

    async def put(self, digest: str, data: bytes) -> bytes:
        """Unpack a project, once for each content; return the error, if any."""
        try:
            await asyncio.to_thread(unpack_project, digest, data)
        except (OSError, ValueError, zipfile.BadZipFile) as error:
            return f"{type(error).__name__}: {error}".encode()
        return b""

    async def open(self, job: bytes) -> bytes:
        """Open a target in the child process; return an `OpenReply`."""
        try:
            child = await self._main_child()
            reply = await child.send("open", f"open-{os.urandom(6).hex()}", job)
        except (OSError, ConnectionError) as error:
            return encode(OpenReply(error=str(error)))
        self._jobs[decode(job, type=TargetJob).target] = job  # a child that replaces this one opens it again
        return reply

    async def invoke(self, token: str, data: bytes) -> bytes:
        """Run a task and return its `Reply`."""
        task = decode(data, type=Task)
        child = None
        try:
            child = await (self._own_child(task.conversation_id) if task.alone else self._main_child())
            self._tasks[token] = child
            return await child.send("invoke", token, data)
        except (OSError, ConnectionError) as error:
            self._own.pop(task.conversation_id, None)
            return encode(Reply(token=token, lost=str(error), is_closed=self._is_closed))
        finally:
            self._tasks.pop(token, None)
            if child is not None and task.alone and not task.conversation_id:
                self._extra.discard(child)
                await child.close()

    async def cancel(self, token: str) -> bytes:
        """Cancel a task; its processes have ended when this returns."""
        child = self._tasks.get(token)
        future = None if child is None else child.pending.get(token)
        if child is not None and future is not None:
            with suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await child.send("cancel", f"cancel-{token}", token.encode())
        return CANCELLED

    async def end_conversation(self, target: str, conversation_id: str) -> bytes:
        """Release the state of a conversation."""
        own = self._own.pop(conversation_id, None)
        child = own or self._child
        if child is not None and not child.is_closed:
            data = encode([target, conversation_id])
            with suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(_CLOSE_S):
                    await child.send("end", f"end-{os.urandom(6).hex()}", data)
        if own is not None:
            self._extra.discard(own)
            await own.close()
        return b""

    async def beat(self) -> bytes:
        """Renew the lease."""
        self._is_renewed = True
        return b"closed" if self._is_closed else b""

    async def close(self) -> bytes:
        """End all child processes."""
        self._is_closed = True
        children = [child for child in (self._child, *self._extra) if child is not None]
        await asyncio.gather(*(child.close() for child in children), return_exceptions=True)
        if self._watch is not None and self._watch is not asyncio.current_task():
            self._watch.cancel()
        return b""

    async def _watch_lease(self) -> None:
        """End the host when the lease does: time in which this process stood still is no part of it."""
        left, step = self._lease_s, min(1.0, self._lease_s / 4)
        while left > 0:
            await asyncio.sleep(step)
            left = self._lease_s if self._is_renewed else left - step
            self._is_renewed = False
        await self.close()

    async def _main_child(self) -> Child:
        if self._starting is None:
            self._starting = asyncio.Lock()
        async with self._starting:
            if self._child is None or self._child.is_closed:
                self._child = await self._new_child()
                self._extra.discard(self._child)
            return self._child

    async def _own_child(self, conversation_id: str) -> Child:
        child = self._own.get(conversation_id) or await self._new_child()
        if conversation_id:
            self._own[conversation_id] = child
        return child

    async def _new_child(self) -> Child:
        if self._is_closed:
            msg = "the worker lost its coordinator"
            raise ConnectionError(msg)
        child = Child()
        self._extra.add(child)
        await child.start()
        for job in self._jobs.values():
            await child.send("open", f"open-{os.urandom(6).hex()}", job)
        return child


def is_own_address(host: str) -> bool:
    """Return whether a host is this machine: only its own addresses can be bound."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), 0, type=socket.SOCK_DGRAM)
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
    except OSError:
        return False
    return bool(found)


def project_cache() -> Path:
    """Return the folder with the unpacked projects of this user on this machine."""
    user = os.getuid() if hasattr(os, "getuid") else 0
    folder = Path(tempfile.gettempdir()) / f"agentv-projects-{user}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
        msg = f"{folder} belongs to another user"
        raise PermissionError(msg)
    return folder


def known_projects() -> tuple[str, ...]:
    """Return the hashes of the projects that are unpacked here, without those that are old, which are deleted."""
    known = []
    for folder in project_cache().iterdir():
        with suppress(FileNotFoundError):  # another worker of this machine was faster
            if time() - folder.stat().st_mtime > PROJECT_S:
                shutil.rmtree(folder, ignore_errors=True)
            elif not folder.name.startswith("."):
                known.append(folder.name)
    return tuple(known)


def unpack_project(digest: str, data: bytes) -> Path:
    """Unpack an archive to the folder of its hash, at once, so that workers of one machine share it."""
    if hashlib.sha256(data).hexdigest() != digest:
        msg = "the project was damaged on its way"
        raise ValueError(msg)
    folder = project_cache() / digest
    if folder.is_dir():
        return folder
    part = Path(tempfile.mkdtemp(prefix=f".{digest[:8]}-", dir=project_cache()))
    with zipfile.ZipFile(BytesIO(data)) as archive:
        for entry in archive.infolist():
            path = Path(archive.extract(entry, part))
            mode = entry.external_attr >> 16 & 0o777
            if mode:
                path.chmod(mode)
    try:
        part.rename(folder)
    except OSError:  # another worker was faster
        shutil.rmtree(part, ignore_errors=True)
    return folder
