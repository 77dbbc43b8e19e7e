"""The coordinator with hosts in this process, which start real child processes."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.json import encode

from agentv.errors import ExecutorError
from agentv.executors import coordinator
from agentv.executors.coordinator import ClusterExecutor, RemoteSession
from agentv.executors.host import (
    Host,
    HostInfo,
    TargetJob,
    is_own_address,
    known_projects,
    project_cache,
    unpack_project,
)
from agentv.executors.shipping import pack_project
from agentv.model.conversation import Message
from agentv.model.request import Request
from agentv.model.response import WORKER_LOST
from agentv.testing.executors import SHARED_CHECKS
from agentv.testing.subject import run_check

AGENT = """
import os, signal
said = {}
def answer(prompt, conversation_id):
    print("printed", prompt)
    if prompt == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    said.setdefault(conversation_id, []).append(prompt)
    return f"{len(said[conversation_id])} {os.getpid()}"
"""
BATCH = """
import json, os, signal, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
if any(line["input_messages"][-1]["content"] == "poison" for line in lines):
    os.kill(os.getppid(), signal.SIGKILL)
for line in lines:
    print(json.dumps({"id": line["id"], "output": f"hello of {len(lines)}"}))
"""


class InProcessHost:
    def __init__(self, lease_s: float, info: HostInfo | None) -> None:
        self.host = Host(lease_s)
        self.info = info

    async def call(self, method: str, *arguments: Any) -> bytes:
        if method == "hello" and self.info is not None:
            return encode(self.info)
        reply: bytes = await getattr(self.host, method)(*arguments)
        return reply


class InProcessCluster:
    """Engine whose workers are objects of this process."""

    address = "here"

    def __init__(self, *, private: bool = True, info: HostInfo | None = None, workers: int = 1) -> None:
        self.private = private
        self.info = info
        self.names = {f"worker-{at}": 4 for at in range(workers)}
        self.hosts: list[Host] = []

    def is_private(self, worker: str = "") -> bool:
        return self.private or not worker

    async def open(self) -> None:
        pass

    async def workers(self) -> Mapping[str, int]:
        return self.names

    async def start(self, worker: str, lease_s: float) -> InProcessHost:
        del worker
        found = InProcessHost(lease_s, self.info)
        self.hosts.append(found.host)
        return found

    async def close(self) -> None:
        pass


@asynccontextmanager
async def opened(
    folder: Path, cluster: InProcessCluster | None = None, **settings: Any
) -> AsyncIterator[ClusterExecutor]:
    (folder / "agent.py").write_text(AGENT)
    (folder / "batch.py").write_text(BATCH)
    settings = settings or {"function": "./agent.py:answer", "conversation": "thread"}
    provider = "cli" if "command" in settings else "python"
    job = TargetJob(
        target="e\tagent",
        name="agent",
        provider=provider,
        settings=settings,
        root=str(folder),
        folder=".",
        env={"TOKEN_X": "1"},
    )
    cluster = cluster or InProcessCluster()
    executor = ClusterExecutor(cluster, [job], {})
    try:
        await executor.open()
        yield executor
    finally:
        await executor.close()
        for host in cluster.hosts:  # also of workers that were lost, whose leases have not ended yet
            await host.close()


def request(prompt: str, case: str = "a", turn: int = 1, conversation: str = "") -> Request:
    messages = (Message(role="user", content=prompt),)
    return Request(
        id=case,
        input_messages=messages,
        new_messages=messages,
        turn=turn,
        is_conversation=bool(conversation),
        conversation_id=conversation or case,
        thread_id=conversation or None,
    )


def test_a_conversation_whose_process_was_ended_by_another_request_is_lost(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(tmp_path) as executor:
            session = RemoteSession(executor, "e\tagent")
            first = await session.invoke(request("hello", "a", 1, "talk"))
            assert (first.text or "").startswith("1 ")
            await session.invoke(request("die", "b"))
            second = await session.invoke(request("and then?", "a", 2, "talk"))
            assert second.error is not None, second.text
            assert (second.error.code, second.error.retryable) == (WORKER_LOST, True)
            again = await session.invoke(request("hello", "a", 1, "other"))
            assert (again.text or "").startswith("1 ")

    asyncio.run(run())


def test_a_conversation_that_killed_its_process_has_one_of_its_own(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(tmp_path) as executor:
            session = RemoteSession(executor, "e\tagent")
            shared = await session.invoke(request("hello", "b"))
            await session.invoke(request("hello", "a", 1, "one"))
            await session.invoke(request("die", "a", 2, "one"))
            shared = await session.invoke(request("hello", "c"))
            texts = [(await session.invoke(request("hello", "a", at, "two"))).text or "" for at in (1, 2)]
            assert [text.split()[0] for text in texts] == ["1", "2"]
            assert texts[0].split()[1] == texts[1].split()[1] != (shared.text or "").split()[1]
            await session.end_conversation("two")
            with pytest.raises(ProcessLookupError):
                os.kill(int(texts[0].split()[1]), 0)

    asyncio.run(run())


def test_the_poison_case_of_a_batch_is_found(tmp_path: Path) -> None:
    async def run() -> None:
        batch: dict[str, Any] = {"command": ["python3", "batch.py", "{input_file}"], "mode": "batch"}
        async with opened(tmp_path, **batch) as executor:
            assert executor.targets["e\tagent"].batch
            asked = [request("poison" if at == 2 else "hello", f"c{at}") for at in range(4)]
            found = await executor.invoke("e\tagent", asked, 30, batch=True)
            failed = [at for at, response in enumerate(found) if response.error is not None]
            assert failed == [2], [response.error for response in found]
            assert found[2].error is not None
            assert found[2].error.code == WORKER_LOST

    asyncio.run(run())


def test_prints_are_shown_with_their_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def run() -> None:
        async with opened(tmp_path) as executor:
            await RemoteSession(executor, "e\tagent").invoke(request("hello", "case-1"))

    asyncio.run(run())
    assert capsys.readouterr().err == "[case-1, agent] printed hello\n"


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (InProcessCluster(workers=0), "here has no workers"),
        (InProcessCluster(private=False), "would send TOKEN_X unencrypted to worker worker-0"),
        (
            InProcessCluster(info=HostInfo(agentv="0.0.1", python="3.9", name="w")),
            "worker worker-0 has agentv 0.0.1 with Python 3.9, this machine agentv",
        ),
    ],
)
def test_workers_that_cannot_be_used_are_named(cluster: InProcessCluster, message: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with opened(tmp_path, cluster):
            pass

    with pytest.raises(ExecutorError, match=message):
        asyncio.run(run())


def test_a_worker_that_ends_while_it_starts_keeps_no_other_from_running(tmp_path: Path) -> None:
    class Unsteady(InProcessCluster):
        async def start(self, worker: str, lease_s: float) -> InProcessHost:
            if worker == "worker-0":
                msg = "killed"
                raise ConnectionError(msg)
            return await super().start(worker, lease_s)

    async def run() -> None:
        async with opened(tmp_path, Unsteady(workers=2)) as executor:
            assert executor.workers == 1
            assert (await RemoteSession(executor, "e\tagent").invoke(request("hello"))).success
        async with opened(tmp_path, Unsteady(workers=1)):
            pass

    with pytest.raises(ExecutorError, match="worker worker-0 cannot be used: ConnectionError: killed"):
        asyncio.run(run())


def test_a_target_that_takes_longer_to_open_than_the_lease_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "LEASE_S", 0.4)
    monkeypatch.setattr(coordinator, "BEAT_S", 0.1)
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(1.2)\ndef answer(prompt):\n    return 'ready'\n")

    async def run() -> None:
        async with opened(tmp_path, function="./slow.py:answer") as executor:
            assert (await RemoteSession(executor, "e\tagent").invoke(request("hello"))).text == "ready"

    asyncio.run(run())


def test_a_request_is_not_blamed_for_a_worker_whose_lease_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "BEAT_S", 0.1)

    async def run() -> None:
        cluster = InProcessCluster()
        async with opened(tmp_path, cluster) as executor:
            session = RemoteSession(executor, "e\tagent")
            for _ in range(coordinator.MAX_DEATHS + 1):
                ending = asyncio.ensure_future(cluster.hosts[-1].close())
                await asyncio.sleep(0)  # it has begun to end, and no heartbeat has seen it
                error = (await session.invoke(request("hello"))).error
                assert error is not None
                assert (error.code, error.retryable) == (WORKER_LOST, True)
                async with asyncio.timeout(10):
                    while not executor.workers:  # noqa: ASYNC110 - the heartbeat sets no event
                        await asyncio.sleep(0.05)
                await ending
            assert (await session.invoke(request("hello"))).success

    asyncio.run(run())


def test_requests_that_wait_end_when_the_engine_is_lost_after_its_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coordinator, "BEAT_S", 0.1)

    class Lost(InProcessCluster):
        is_lost = False

        async def workers(self) -> Mapping[str, int]:
            if self.is_lost:
                msg = "gone"
                raise ConnectionError(msg)
            return self.names

    async def run() -> None:
        cluster = Lost()
        async with opened(tmp_path, cluster) as executor:
            session = RemoteSession(executor, "e\tagent")
            cluster.names = {}
            async with asyncio.timeout(10):
                while executor.workers:  # noqa: ASYNC110 - the heartbeat sets no event
                    await asyncio.sleep(0.05)
                waiting = asyncio.ensure_future(session.invoke(request("hello")))
                cluster.is_lost = True
                error = (await waiting).error
            assert error is not None
            assert "the connection to here was lost (gone): runs without a result can be resumed" in error.message

    asyncio.run(run())


def test_a_project_that_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(bytes(2_000))
    with pytest.raises(ExecutorError, match=r"is larger than 0 MB: add what workers do not need to .gitignore"):
        pack_project(str(tmp_path), 1_000)


def test_projects_that_were_unpacked_long_ago_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    digests = []
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text(name)
        digest, data = pack_project(str(tmp_path / name))
        digests.append(digest)
        folder = unpack_project(digest, data)
        assert (folder / name).read_text() == name
    old = project_cache() / digests[0]
    os.utime(old, (0, 0))
    assert known_projects() == (digests[1],)
    assert not old.exists()


@pytest.mark.parametrize(("host", "is_own"), [("127.0.0.1", True), ("localhost", True), ("203.0.113.9", False)])
def test_own_addresses_are_known(host: str, is_own: bool) -> None:
    assert is_own_address(host) is is_own


def test_the_conformance_kit_finds_an_executor_without_workers_and_one_that_mixes_up_replies() -> None:
    class Wrong:
        workers = slots = 0

        async def invoke(self, *_: object, **__: object) -> list[Any]:
            text = "sleep 0.00|1|99|1|none"
            return [SimpleNamespace(error=None, metadata={"worker": "w"}, text=text)]

    async def run() -> dict[str, str]:
        found = [await run_check(check, Wrong()) for check in SHARED_CHECKS]
        return {check.name: check.status for check in found}

    assert set(asyncio.run(run()).values()) == {"fail"}
