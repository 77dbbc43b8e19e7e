"""Conformance kit for executors: `executor_conformance` and `assert_executor_conforms`."""

from __future__ import annotations

import asyncio
import hashlib
import os
import zipfile
from contextlib import asynccontextmanager
from functools import partial
from io import BytesIO
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from agentv.errors import ExecutorError
from agentv.executors.coordinator import ClusterExecutor, ExecutorSettings
from agentv.executors.host import TargetJob
from agentv.model.conversation import Message
from agentv.model.request import Request
from agentv.model.response import WORKER, WORKER_LOST
from agentv.registry import find_executor
from agentv.testing.subject import Check, ConformanceError, run_check, run_in_new_loop

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from agentv.model.response import ProviderResponse
    from agentv.protocols.executors import Cluster

_FILE = "agentv_conformance_agent.py"
_AGENT = """
import asyncio, os, signal, sys

conversations = {}
running = 0
most = 0

async def answer(prompt, conversation_id):
    global running, most
    running += 1
    most = max(most, running)
    try:
        word, _, rest = prompt.partition(" ")
        if word == "sleep":
            await asyncio.sleep(float(rest))
        if word == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "kill_engine":
            os.kill(os.getppid(), signal.SIGKILL)
            await asyncio.sleep(60)
        said = conversations.setdefault(conversation_id, [])
        said.append(prompt)
        print("printed", prompt)
        facts = {"pid": os.getpid(), "most": most, "said": said, "variable": os.environ.get("AGENTV_CONFORMANCE")}
        return {"output": f"{prompt}|{facts['pid']}|{most}|{len(said)}|{facts['variable']}"}
    finally:
        running -= 1
"""
_TIMEOUT_S = 60.0
_AT_ONCE = 50
_VALUE = "sesame"


class _Facts(NamedTuple):
    """Parts of the text of a reply."""

    prompt: str
    pid: int
    most: int
    turns: int
    variable: str


class ExecutorSubject:
    """Executor that is checked, with the jobs that it gets."""

    def __init__(self, make: Callable[[], Cluster]) -> None:
        self._make = make

    @asynccontextmanager
    async def opened(self, function: str = "answer") -> AsyncIterator[ClusterExecutor]:
        """Open the executor with one target, and close it at the end."""
        digest, data = _project()
        job = TargetJob(
            target="agent",
            name="agent",
            provider="python",
            settings={"function": f"./{_FILE}:{function}", "conversation": "thread"},
            env={"AGENTV_CONFORMANCE": _VALUE},
            project=digest,
            folder=".",
        )
        executor = ClusterExecutor(self._make(), [job], {digest: data}, allow_unencrypted=True)
        try:
            await executor.open()
            yield executor
        finally:
            await executor.close()


def _project() -> tuple[str, bytes]:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_FILE), _AGENT)
    data = buffer.getvalue()
    return hashlib.sha256(data).hexdigest(), data


def _request(prompt: str, at: int = 0, *, turn: int = 1, conversation: str = "") -> Request:
    messages = (Message(role="user", content=prompt),)
    return Request(
        id=f"{prompt.partition(' ')[0]}-{at}",
        input_messages=messages,
        new_messages=messages,
        turn=turn,
        is_conversation=bool(conversation),
        conversation_id=conversation or f"single-{prompt}-{at}",
        thread_id=conversation or None,
    )


async def _ask(executor: ClusterExecutor, request: Request, timeout_s: float = _TIMEOUT_S) -> ProviderResponse:
    return (await executor.invoke("agent", (request,), timeout_s))[0]


async def _ask_successfully(executor: ClusterExecutor, request: Request) -> _Facts:
    response = await _ask(executor, request)
    if response.error is not None:
        _fail(f"the request {request.prompt!r} failed: {response.error.message}")
    if not (response.metadata or {}).get(WORKER):
        _fail("the reply does not name its worker")
    prompt, pid, most, turns, variable = (response.text or "").split("|")
    return _Facts(prompt, int(pid), int(most), int(turns), variable)


def _fail(sentence: str) -> None:
    raise ConformanceError(sentence)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


async def _until(is_true: Callable[[], bool], seconds: float) -> bool:
    end = perf_counter() + seconds
    while not is_true() and perf_counter() < end:  # noqa: ASYNC110 - a process sets no event
        await asyncio.sleep(0.1)
    return is_true()


async def it_says_how_much_it_can_run(executor: ClusterExecutor) -> None:
    """An open executor has workers and slots."""
    if executor.workers < 1 or executor.slots < executor.workers:
        _fail(f"it has {executor.workers} workers with {executor.slots} slots")


async def requests_get_their_own_replies(executor: ClusterExecutor) -> None:
    """Each of 50 requests at once gets its own reply, and no worker runs more of them than it has slots."""
    slots = executor.slots
    prompts = [f"sleep 0.0{at % 10}{at:03}" for at in range(_AT_ONCE)]
    found = await asyncio.gather(*(_ask_successfully(executor, _request(text, at)) for at, text in enumerate(prompts)))
    wrong = [text for text, facts in zip(prompts, found, strict=True) if facts.prompt != text]
    if wrong:
        _fail(f"{len(wrong)} requests got the reply to another one")
    if any(facts.most > slots - executor.workers + 1 for facts in found):
        _fail(f"a worker ran {max(facts.most for facts in found)} requests at once, of {slots} slots of all workers")


async def variables_reach_the_worker(executor: ClusterExecutor) -> None:
    """The variables of a target are in the environment of its process."""
    facts = await _ask_successfully(executor, _request("hello"))
    if facts.variable != _VALUE:
        _fail(f"the variable is {facts.variable!r} there")


async def a_conversation_stays_in_one_process(executor: ClusterExecutor) -> None:
    """All turns of a conversation reach the process of its first turn."""

    async def talk(name: str) -> list[_Facts]:
        return [
            await _ask_successfully(executor, _request("sleep 0.01", at, turn=at + 1, conversation=name))
            for at in range(4)
        ]

    talks = await asyncio.gather(*(talk(f"conversation-{at}") for at in range(8)))
    for turns in talks:
        if [facts.turns for facts in turns] != [1, 2, 3, 4]:
            _fail(f"the agent has seen {[facts.turns for facts in turns]} turns of one conversation")


async def the_time_limit_is_enforced(executor: ClusterExecutor) -> None:
    """A request that takes too long ends with the error `timeout`, and the next one is answered."""
    start = perf_counter()
    response = await _ask(executor, _request("sleep 60"), 1.0)
    took = perf_counter() - start
    if response.error is None or response.error.kind != "timeout":
        _fail(f"a request of 60 s with a limit of 1 s ended with {response.error or response.text!r}")
    if not 0.9 < took < 5:  # noqa: PLR2004 - about a second
        _fail(f"a limit of 1 s was enforced after {took:.1f} s")
    await _ask_successfully(executor, _request("hello"))


async def a_cancelled_request_frees_its_slot(executor: ClusterExecutor) -> None:
    """Requests that are cancelled end on the worker, so that all slots are free again."""
    tasks = [asyncio.create_task(_ask(executor, _request("sleep 60", at))) for at in range(executor.slots)]
    await asyncio.sleep(1)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    async with asyncio.timeout(10):
        await asyncio.gather(*(_ask_successfully(executor, _request("sleep 0.1", at)) for at in range(executor.slots)))


async def a_dying_agent_costs_its_own_request(executor: ClusterExecutor) -> None:
    """An agent that kills its process loses its request, which is not tried a fourth time; others are not harmed."""
    for number in (1, 2, 3):
        response = await _ask(executor, _request("die"))
        if response.error is None or response.error.code != WORKER_LOST:
            _fail(f"the request that killed its process ended with {response.error or response.text!r}")
        elif response.error.retryable != (number < 3):  # noqa: PLR2004 - three deaths
            _fail(f"after {number} deaths, trying again is {'' if response.error.retryable else 'not '}allowed")
        await _ask_successfully(executor, _request("hello", number))


async def a_lost_worker_is_replaced(executor: ClusterExecutor) -> None:
    """A worker that is killed costs the requests on it within seconds, and its slots come back."""
    slots = executor.slots
    async with asyncio.timeout(15):
        response = await _ask(executor, _request("kill_engine"))
    if response.error is None or response.error.code != WORKER_LOST or not response.error.retryable:
        _fail(f"the request on a killed worker ended with {response.error or response.text!r}")
    await _ask_successfully(executor, _request("hello"))
    if not await _until(lambda: executor.slots == slots, 30):
        _fail(f"30 s after a worker was killed, {executor.slots} of {slots} slots are there")


async def nothing_is_left_running(subject: ExecutorSubject) -> None:
    """All processes of the target have ended when the executor is closed."""
    async with subject.opened() as executor:
        facts = await asyncio.gather(
            *(_ask_successfully(executor, _request("sleep 0.2", at)) for at in range(executor.slots))
        )
        pids = {each.pid for each in facts}
        own = {pid for pid in pids if _is_alive(pid)}
    if own and not await _until(lambda: not any(map(_is_alive, own)), 5):
        _fail("a process of the target runs 5 s after the executor was closed")


async def a_target_that_cannot_be_opened_is_named(subject: ExecutorSubject) -> None:
    """A target that a worker cannot open is an error before anything runs."""
    try:
        async with subject.opened("not_there"):
            pass
    except ExecutorError as error:
        if "not_there" not in str(error):
            _fail(f"the error does not name what is missing: {error}")
    else:
        _fail("a target whose function does not exist was opened")


SHARED_CHECKS = (
    it_says_how_much_it_can_run,
    requests_get_their_own_replies,
    variables_reach_the_worker,
    a_conversation_stays_in_one_process,
    the_time_limit_is_enforced,
    a_cancelled_request_frees_its_slot,
    a_dying_agent_costs_its_own_request,
    a_lost_worker_is_replaced,
)
"""Checks of one open executor, in this order."""
OWN_CHECKS = (nothing_is_left_running, a_target_that_cannot_be_opened_is_named)


def executor_conformance(make: Callable[[], Cluster] | str) -> list[Check]:
    """Run all checks on an executor.

    `make` is the address of an engine, as after `--executor`, or a function that makes a `Cluster`. Its workers must be
    on this machine: one of them is killed, and has to be replaced by the engine or by `Cluster.start`.
    """
    return run_in_new_loop(partial(_check_all, ExecutorSubject(_from_address(make) if isinstance(make, str) else make)))


async def _check_all(subject: ExecutorSubject) -> list[Check]:
    async with subject.opened() as executor:
        found = [await run_check(check, executor) for check in SHARED_CHECKS]
    return found + [await run_check(check, subject) for check in OWN_CHECKS]


def _from_address(address: str) -> Callable[[], Cluster]:
    cls = find_executor(address.partition("://")[0])
    if cls is None:
        msg = f"there is no executor {address!r}"
        raise ExecutorError(msg)

    def make() -> Cluster:
        cluster: Cluster = cls(address, ExecutorSettings())
        return cluster

    return make


def assert_executor_conforms(make: Callable[[], Cluster] | str) -> None:
    """Raise `AssertionError` with a sentence for each failed check; `make` is that of `executor_conformance`."""
    __tracebackhide__ = True
    checks = executor_conformance(make)
    wrong = [f"- {check.name}: {check.sentence}" for check in checks if check.status == "fail"]
    if wrong:
        msg = "\n".join([f"the executor breaks its contract in {len(wrong)} of {len(checks)} points:", *wrong])
        raise AssertionError(msg)
