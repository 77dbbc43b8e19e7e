"""Coordinator of an executor: free slots, heartbeat, lost workers, and the sessions that the engine uses."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from contextlib import suppress
from os import urandom
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from agentv import __version__
from agentv.errors import ExecutorError
from agentv.executors.host import HostInfo, OpenReply, Reply, TargetJob, Task, python_version
from agentv.jsonio import dump_json
from agentv.model.response import PRINTED, UNREACHABLE, WORKER, WORKER_LOST, ProviderResponse
from agentv.providers.base import failure
from agentv.providers.python.call import run_label
from agentv.providers.python.printing import show_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agentv.model.request import Request
    from agentv.protocols.executors import Cluster, RemoteHost

LEASE_S = 10.0
"""Time after which a worker that hears nothing from the coordinator ends its processes."""
BEAT_S = 1.0
BEAT_TIMEOUT_S = 8.0
EXTRA_S = 5.0
"""Time that the coordinator waits longer than the worker, which enforces the time limit."""
START_S = 120.0
NO_WORKER_S = 60.0
"""Time without any worker after which requests fail."""
MAX_DEATHS = 3
"""Processes that a request may end before it is not tried again."""
MAX_BATCH = 100


class _WorkerLostError(Exception):
    """The worker of a request was lost."""


class _UnusableWorkerError(ExecutorError):
    """A worker failed in a way that may pass, such as by its end."""


class ExecutorSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Settings of an executor that are not in its address."""

    slots: int | None = None
    """Requests that one worker runs at the same time; by default as many as the engine gives it threads."""


class Member:
    """Worker that takes part, with its free slots."""

    def __init__(self, worker: str, host: RemoteHost, info: HostInfo, slots: int) -> None:
        self.worker = worker
        self.host = host
        self.info = info
        self.free = self.slots = slots
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def call(self, method: str, *arguments: Any) -> bytes:
        """Call the host; raise `_WorkerLostError` if the worker is lost meanwhile: a later reply is dropped."""
        call = asyncio.ensure_future(self.host.call(method, *arguments))
        try:
            await asyncio.wait((call, self.lost), return_when=asyncio.FIRST_COMPLETED)
            if call.done() and not call.exception():
                return call.result()
            if call.done():
                self.mark_lost()
            raise _WorkerLostError
        finally:
            call.cancel()

    def mark_lost(self) -> None:
        """Fail all calls that wait for this worker."""
        if not self.lost.done():
            self.lost.set_result(None)


class Pin(NamedTuple):
    """Process that has a conversation."""

    member: Member
    process: str


class ClusterExecutor:
    """Executor on the workers of a cluster: it submits no more tasks than there are free slots, in a fair order."""

    def __init__(
        self,
        cluster: Cluster,
        jobs: Sequence[TargetJob],
        projects: Mapping[str, bytes],
        on_lost: Callable[[ExecutorError], None] | None = None,
        *,
        allow_unencrypted: bool = False,
    ) -> None:
        self._cluster = cluster
        self._jobs = {job.target: job for job in jobs}
        self._projects = projects
        self.on_lost = on_lost
        self._allow_unencrypted = allow_unencrypted
        self._members: dict[str, Member] = {}
        self._waiters: deque[tuple[asyncio.Future[Member], Member | None]] = deque()
        self._pins: dict[str, Pin] = {}
        self._deaths: Counter[tuple[str, str, int, str | None]] = Counter()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._joining: set[str] = set()
        self._error: ExecutorError | None = None
        self.targets: dict[str, OpenReply] = {}

    @property
    def slots(self) -> int:
        """Number of requests that may run at the same time."""
        return sum(member.slots for member in self._members.values())

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self._members)

    async def open(self) -> None:
        """Connect and start a host on every worker; raise `ExecutorError` if that fails."""
        await self._cluster.open()
        found = await self._cluster.workers()
        if not found:
            msg = f"{self._cluster.address} has no workers: start some, then run again"
            raise ExecutorError(msg)
        joined = [self._join(worker, slots) for worker, slots in found.items()]
        errors = [error for error in await asyncio.gather(*joined, return_exceptions=True) if error is not None]
        lasting = [error for error in errors if not isinstance(error, _UnusableWorkerError)]
        if lasting or not self._members:
            raise (lasting or errors)[0]
        self._spawn(self._heartbeat())

    async def _join(self, worker: str, slots: int) -> None:
        """Start a host on a worker, and open all targets there."""
        try:
            async with asyncio.timeout(START_S):
                host = await self._cluster.start(worker, LEASE_S)
                member = Member(worker, host, decode(await host.call("hello"), type=HostInfo), slots)
                lease = asyncio.ensure_future(self._keep_lease(member))  # targets may take long to open
                try:
                    await self._equip(member)
                finally:
                    lease.cancel()
        except ExecutorError:
            raise
        except TimeoutError as error:
            msg = f"worker {worker} cannot be used: its targets were not open within {START_S:g} s"
            raise _UnusableWorkerError(msg) from error
        except Exception as error:
            msg = f"worker {worker} cannot be used: {type(error).__name__}: {error}"
            raise _UnusableWorkerError(msg) from error
        self._members[worker] = member
        self._wake()

    async def _keep_lease(self, member: Member) -> None:
        with suppress(_WorkerLostError):
            while True:
                await member.call("beat")
                await asyncio.sleep(BEAT_S)

    async def _equip(self, member: Member) -> None:
        """Check the versions of a worker, send it the projects, and open all targets there."""
        self._check_versions(member)
        for job in self._jobs.values():
            if job.env and not self._allow_unencrypted and not self._cluster.is_private(member.worker):
                raise ExecutorError(unencrypted(job, f"worker {member.worker}"))
        for digest, data in self._projects.items():
            if digest not in member.info.projects and (reason := await member.host.call("put", digest, data)):
                msg = f"worker {member.worker} cannot unpack the project: {reason.decode()}"
                raise ExecutorError(msg)
        for key, job in self._jobs.items():
            reply = decode(await member.host.call("open", encode(job)), type=OpenReply)
            if reply.error:
                msg = f"target {job.name!r} cannot be opened on worker {member.worker}: {reply.error}"
                raise ExecutorError(msg)
            self.targets[key] = reply

    def _check_versions(self, member: Member) -> None:
        info, own = member.info, python_version()
        if (info.agentv, info.python) != (__version__, own):
            theirs = f"agentv {info.agentv} with Python {info.python}"
            msg = f"worker {member.worker} has {theirs}, this machine agentv {__version__} with Python {own}"
            msg = f"{msg}: install the same versions"
            raise ExecutorError(msg)

    async def _heartbeat(self) -> None:
        """Renew leases, drop workers that are gone, and take in those that are new."""
        while self._error is None:
            await asyncio.sleep(BEAT_S)
            try:
                async with asyncio.timeout(BEAT_TIMEOUT_S):
                    found = await self._cluster.workers()
            except Exception as error:  # noqa: BLE001 - engines raise what they like
                reason = f"{error}" or f"no answer within {BEAT_TIMEOUT_S:g} s"
                self._fail(f"the connection to {self._cluster.address} was lost ({reason})")
                return
            for worker, member in list(self._members.items()):
                if worker not in found or member.lost.done():
                    self._drop(member)
                else:
                    self._spawn(self._beat(member))
            for worker in found.keys() - self._members.keys() - self._joining:
                self._joining.add(worker)
                self._spawn(self._rejoin(worker, found[worker]))

    async def _rejoin(self, worker: str, slots: int) -> None:
        try:
            with suppress(ExecutorError):  # it is tried again while the engine lists it
                await self._join(worker, slots)
        finally:
            self._joining.discard(worker)

    async def _beat(self, member: Member) -> None:
        try:
            async with asyncio.timeout(BEAT_TIMEOUT_S):
                if await member.call("beat"):
                    self._drop(member)
        except (TimeoutError, _WorkerLostError):
            self._drop(member)

    def _drop(self, member: Member) -> None:
        member.mark_lost()
        if self._members.get(member.worker) is member:
            del self._members[member.worker]
        self._wake()

    def _fail(self, message: str) -> None:
        """Give up: nothing can be run any more, and what has no result can be resumed."""
        self._error = ExecutorError(f"{message}: runs without a result can be resumed")
        if self.on_lost is not None:
            self.on_lost(self._error)
        for member in list(self._members.values()):
            self._drop(member)
        self._wake()  # those who wait, also if no worker was left

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _acquire(self, pin: Member | None) -> Member:
        """Wait for a free slot, on one worker if the state of a conversation is there."""
        future: asyncio.Future[Member] = asyncio.get_running_loop().create_future()
        self._waiters.append((future, pin))
        self._wake()
        try:
            while not future.done():
                await asyncio.wait((future,), timeout=NO_WORKER_S)
                if not future.done() and not self._members and not self._joining:
                    raise _WorkerLostError  # noqa: TRY301 - the slot is given back below
            return future.result()
        except BaseException:
            if future.done() and not future.cancelled() and not future.exception():
                self._release(future.result())
            future.cancel()
            raise

    def _release(self, member: Member) -> None:
        member.free += 1
        self._wake()

    def _wake(self) -> None:
        """Give free slots to those who wait, the first one first."""
        waiting: deque[tuple[asyncio.Future[Member], Member | None]] = deque()
        while self._waiters:
            future, pin = self._waiters.popleft()
            if future.done():
                continue
            if self._error is not None or (pin is not None and pin.lost.done()):
                future.set_exception(_WorkerLostError())
                continue
            choices = self._members.values() if pin is None else (pin,)
            member = max(choices, key=lambda each: each.free, default=None)
            if member is None or not member.free:
                waiting.append((future, pin))
                continue
            member.free -= 1
            future.set_result(member)
        self._waiters = waiting

    async def invoke(
        self, target: str, requests: Sequence[Request], timeout_s: float, *, batch: bool = False
    ) -> list[ProviderResponse]:
        """Wait for a free slot, run requests to a target there, and return their replies."""
        if len(requests) > MAX_BATCH:
            return [
                response
                for at in range(0, len(requests), MAX_BATCH)
                for response in await self.invoke(target, requests[at : at + MAX_BATCH], timeout_s, batch=True)
            ]
        keys = [(target, request.id, request.repeat, request.persona_id) for request in requests]
        held = self.targets[target].stateful and requests[0].is_conversation
        conversation_id = requests[0].conversation_id if held else ""
        pin = self._pins.get(conversation_id) if held and requests[0].turn > 1 else None
        if pin is not None and pin.member.lost.done() and not self.targets[target].keeps_thread:
            pin = None  # the request has the whole conversation, with which any other process can go on
        name = "" if pin is None else pin.member.info.name
        task = Task(
            token=urandom(8).hex(),
            target=target,
            requests=tuple(requests),
            timeout_s=timeout_s,
            batch=batch,
            alone=any(self._deaths[key] for key in keys),
            conversation_id=conversation_id,
            process="" if pin is None else pin.process,
        )
        try:
            member = await self._acquire(None if pin is None else pin.member)
            name = member.info.name
            if held:
                self._pins.setdefault(conversation_id, Pin(member, task.process))
            reply = await self._run(member, task)
        except _WorkerLostError:
            code = UNREACHABLE if self._error is not None or not name else WORKER_LOST
            message = str(self._error or f"worker {name or 'of a free slot'} was lost before it replied")
            lost = failure("transport", message, retryable=True, code=code)
            return [_with_worker(lost, name)] * len(requests)
        if not reply.lost:
            if held:
                self._pins[conversation_id] = Pin(member, reply.process)
            return [_with_worker(response, name) for response in reply.responses]
        if reply.process:  # another request had ended the process of this conversation
            self._pins.pop(conversation_id, None)
            lost = failure("transport", f"worker {name}: {reply.lost}", retryable=True, code=WORKER_LOST)
            return [_with_worker(lost, name)]
        if len(requests) > 1:
            self._deaths.update(keys)
            middle = len(requests) // 2
            halves = (requests[:middle], requests[middle:])
            return [response for half in halves for response in await self.invoke(target, half, timeout_s, batch=batch)]
        self._deaths[keys[0]] += 1
        deaths = self._deaths[keys[0]]
        message = f"worker {name}: {reply.lost}" + (f" ({deaths} times)" if deaths > 1 else "")
        lost = failure("transport", message, retryable=deaths < MAX_DEATHS, code=WORKER_LOST)
        return [_with_worker(lost, name)]

    async def _run(self, member: Member, task: Task) -> Reply:
        token, count = task.token, len(task.requests)
        try:
            async with asyncio.timeout(task.timeout_s + EXTRA_S):
                reply = decode(await member.call("invoke", token, dump_json(task)), type=Reply)
        except TimeoutError:
            self._spawn(self._cancel(member, token))
            late = failure("timeout", f"no reply within {task.timeout_s:g} s, and none from the worker after it")
            return Reply(token=token, responses=(late,) * count)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.ensure_future(self._cancel(member, token)))
            raise
        except _WorkerLostError:
            self._drop(member)
            raise
        if reply.is_closed:  # its lease has ended: no request is to blame
            self._drop(member)
            raise _WorkerLostError
        self._release(member)
        if not reply.lost and (reply.token != token or len(reply.responses) != count):
            wrong = failure("protocol", "the worker replied to another task")
            return Reply(token=token, responses=(wrong,) * count)
        return reply

    async def _cancel(self, member: Member, token: str) -> None:
        """End a task on its worker, and free its slot after that."""
        try:
            async with asyncio.timeout(EXTRA_S):
                await member.call("cancel", token)
        except (TimeoutError, _WorkerLostError):
            self._drop(member)
        else:
            self._release(member)

    async def end_conversation(self, target: str, conversation_id: str) -> None:
        """Release the state of a conversation on its worker."""
        pin = self._pins.pop(conversation_id, None)
        if pin is not None and not pin.member.lost.done():
            with suppress(_WorkerLostError):
                await pin.member.call("end_conversation", target, conversation_id)

    async def close(self) -> None:
        """End all processes on workers, and disconnect."""
        for task in list(self._tasks):
            task.cancel()
        members = list(self._members.values())
        with suppress(TimeoutError):
            async with asyncio.timeout(EXTRA_S):
                await asyncio.gather(*(member.call("close") for member in members), return_exceptions=True)
        await self._cluster.close()


def unencrypted(job: TargetJob, receiver: str) -> str:
    """Return the error of a target whose variables would leave this machine unencrypted."""
    about = f"target {job.name!r} would send {', '.join(job.env)} unencrypted to {receiver}"
    return f"{about}: use a tls:// address, or --allow-unencrypted"


def _with_worker(response: ProviderResponse, name: str) -> ProviderResponse:
    return replace(response, metadata={**(response.metadata or {}), WORKER: name}) if name else response


class RemoteSession:
    """Session of a target whose requests an executor runs."""

    def __init__(self, executor: ClusterExecutor, target: str) -> None:
        self._executor = executor
        self._target = target

    async def invoke(self, request: Request) -> ProviderResponse:
        """Return the reply to a request without a time limit of its own."""
        return await self.invoke_within(request, 86_400.0)

    async def invoke_within(self, request: Request, timeout_s: float) -> ProviderResponse:
        """Return the reply to a request."""
        response = (await self._executor.invoke(self._target, (request,), timeout_s))[0]
        printed = (response.metadata or {}).get(PRINTED)
        for line in printed.splitlines() if isinstance(printed, str) else ():
            show_line(run_label(request, self._target.rpartition("\t")[2]), line)
        return response

    async def invoke_many_within(self, requests: Sequence[Request], timeout_s: float) -> Sequence[ProviderResponse]:
        """Return the replies to a batch."""
        return await self._executor.invoke(self._target, requests, timeout_s, batch=True)

    async def end_conversation(self, conversation_id: str) -> None:
        """Release the state of a conversation."""
        await self._executor.end_conversation(self._target, conversation_id)

    async def close(self) -> None:
        """Do nothing: the executor is closed for all targets."""


class RemoteBatchSession(RemoteSession):
    """Session of a target that takes several requests at once."""

    async def invoke_many(self, requests: Sequence[Request]) -> Sequence[ProviderResponse]:
        """Return the replies to a batch without a time limit of its own."""
        return await self.invoke_many_within(requests, 86_400.0)
