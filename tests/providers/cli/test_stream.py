"""Programs that stay up: many requests at a time, replies in any order, and everything that can go wrong with that."""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import agentv
from agentv.model.conversation import Message
from agentv.model.request import Request, Scope
from agentv.model.response import ProviderResponse
from agentv.process import orphans
from agentv.providers.cli import Cli
from agentv.providers.cli import stream as cli_stream
from agentv.providers.cli.stream import WorkerPool

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the programs here are for POSIX")

PATIENCE = 60.0
"""Far more than anything here takes: a busy machine is no failure."""
HEAD = """
import json, os, sys, time
open(f"started-{os.getpid()}", "w").close()
def reply(request, **fields):
    print(json.dumps({"id": request["id"], "text": request["input_messages"][-1]["content"], **fields}), flush=True)
def requests():
    for line in sys.stdin:
        yield json.loads(line)
"""
ECHO = "for request in requests(): reply(request)"


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither a process nor a workspace."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = set(orphans._children())  # noqa: SLF001 - the same view of the world
    yield
    assert set(orphans._children()) <= before  # noqa: SLF001 - as above
    assert list(folder.iterdir()) == []


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "evals"
    made.mkdir()
    monkeypatch.chdir(made)
    return made


def ask(case_id: str, repeat: int = 0, attempt: int = 1) -> Request:
    words = (Message(role="user", content=f"{case_id}?"),)
    return Request(id=case_id, input_messages=words, repeat=repeat, attempt=attempt)


@asynccontextmanager
async def streaming(program: str, *arguments: str, **options: Any) -> AsyncIterator[WorkerPool]:
    command = (sys.executable, "-S", "-c", HEAD + program, *arguments)
    provider = Cli(name="agent", mode="stream", command=options.pop("command", command), **options)
    assert provider.check("target") == []
    folder = str(Path.cwd())
    session = await provider.open(Scope(root=folder, folder=folder))
    assert isinstance(session, WorkerPool)
    try:
        async with asyncio.timeout(PATIENCE):
            yield session
    finally:
        await session.close()


def stream(program: str, *requests: Request, **options: Any) -> list[ProviderResponse]:
    """The replies to requests that are all made at once."""

    async def main() -> list[ProviderResponse]:
        async with streaming(program, **options) as provider:
            return await asyncio.gather(*map(provider.invoke, requests or [ask("a"), ask("b"), ask("c")]))

    return asyncio.run(main())


def starts() -> int:
    return len(list(Path.cwd().glob("started-*")))


def error_of(response: ProviderResponse) -> tuple[str, str, bool]:
    assert not response.success, response
    assert response.error is not None
    return response.error.kind, response.error.message, response.error.retryable


def texts(responses: list[ProviderResponse]) -> list[str]:
    return [response.text for response in responses]


# Talking


@pytest.mark.usefixtures("folder")
def test_one_process_answers_all() -> None:
    found = stream(ECHO, *[ask(f"case-{number}") for number in range(500)])
    assert texts(found) == [f"case-{number}?" for number in range(500)]
    assert starts() == 1


@pytest.mark.usefixtures("folder")
def test_replies_in_any_order() -> None:
    program = "held = [next(requests()) for _ in range(3)]\nfor request in reversed(held): reply(request)\n" + ECHO
    assert texts(stream(program)) == ["a?", "b?", "c?"]


def test_what_a_request_looks_like(folder: Path) -> None:
    stream('request = next(requests()); json.dump(request, open("told", "w")); reply(request)', ask("a"))
    assert json.loads((folder / "told").read_text()) == {
        "id": "a",
        "case_id": "a",
        "input_messages": [{"role": "user", "content": "a?"}],
        "new_messages": [{"role": "user", "content": "a?"}],
        "turn": 1,
        "conversation_id": "",
        "vars": {},
        "attempt": 1,
    }


def test_no_id_is_ever_used_twice_in_a_process(folder: Path) -> None:
    program = 'for request in requests():\n    print(request["id"], file=open("told", "a")); reply(request)'
    found = stream(program, ask("a"), ask("a", 1), ask("a#2"), ask("a", attempt=2))
    assert texts(found) == ["a?", "a?", "a#2?", "a?"]
    assert (folder / "told").read_text().splitlines() == ["a", "a#2", "a#2#2", "a#3"]


@pytest.mark.usefixtures("folder")
def test_several_workers() -> None:
    wait = "for request in requests():\n    time.sleep(0.05); reply(request, metadata={'pid': os.getpid()})"
    found = stream(wait, *[ask(f"case-{number}") for number in range(12)], workers=3)
    pids = [response.metadata["pid"] for response in found if response.metadata]
    assert starts() == 3
    assert sorted(pids.count(pid) for pid in set(pids)) == [4, 4, 4]


@pytest.mark.usefixtures("folder")
def test_no_more_processes_than_are_needed() -> None:
    async def main() -> None:
        async with streaming(ECHO, workers=8) as provider:
            for number in range(5):
                await provider.invoke(ask(f"case-{number}"))

    asyncio.run(main())
    assert starts() == 1


@pytest.mark.usefixtures("folder")
def test_latency_is_the_programs_unless_it_says_otherwise() -> None:
    program = "for request in requests():\n    time.sleep(0.05); reply(request)"
    assert 50 <= (stream(program, ask("a"))[0].latency_ms or 0) < PATIENCE * 1000
    assert stream("for request in requests(): reply(request, latency_ms=7)", ask("a"))[0].latency_ms == 7


@pytest.mark.usefixtures("folder")
def test_large_requests_and_replies_both_ways_at_once() -> None:
    words = (Message(role="user", content="x" * 300_000),)
    found = stream(ECHO, *[Request(id=f"case-{number}", input_messages=words) for number in range(20)])
    assert [len(response.text) for response in found] == [300_000] * 20


@pytest.mark.usefixtures("folder")
def test_workspace_stays_as_long_as_the_process() -> None:
    program = """
for request in requests():
    json.dump([{"type": "tool_call", "name": "search"}], open(sys.argv[1] + "/trace.json", "w"))
    reply(request, trace_ref="trace.json")
"""

    async def main() -> None:
        async with streaming(program, "{workspace}") as provider:
            for _ in range(2):
                response = await provider.invoke(ask("a"))
                assert response.trace is not None

    asyncio.run(main())


# What is no reply


@pytest.mark.usefixtures("folder")
def test_logs_on_stdout_are_one_warning() -> None:
    program = 'print("loading"); print("{broken"); print([1])\n' + ECHO
    found = stream(program)
    warnings = [warning for response in found for warning in response.warnings]
    assert texts(found) == ["a?", "b?", "c?"]
    assert warnings == ["line 1 of stdout is no reply: 'loading'; print logs to stderr"]


@pytest.mark.usefixtures("folder")
def test_structured_logs_are_no_replies_either() -> None:
    program = 'for request in requests():\n    print(json.dumps({"level": "info", "text": "hm"})); reply(request)'
    assert texts(stream(program)) == ["a?", "b?", "c?"]


@pytest.mark.usefixtures("folder")
def test_reply_without_an_id_is_an_error_at_once() -> None:
    found = stream('for request in requests(): print(json.dumps({"text": "hi"}), flush=True)')
    for response in found:
        kind, message, _ = error_of(response)
        assert kind == "protocol"
        assert message.endswith("send back the `id` of the request")


@pytest.mark.usefixtures("folder")
def test_bad_reply_is_its_cases_error() -> None:
    program = """
for request in requests():
    if request["id"] == "b":
        print('{"id": "b", "text": ', flush=True)
    else:
        reply(request)
"""
    found = stream(program)
    assert [response.success for response in found] == [True, False, True]
    assert "line 2 of stdout cannot be read" in error_of(found[1])[1]


@pytest.mark.usefixtures("folder")
def test_answers_twice_and_to_nobody() -> None:
    program = """
for request in requests():
    reply(request); reply(request, text="again"); reply({**request, "id": "x"})
"""

    async def main() -> list[ProviderResponse]:
        async with streaming(program) as provider:
            return [await provider.invoke(ask("a", repeat)) for repeat in range(3)]

    found = asyncio.run(main())
    assert texts(found) == ["a?"] * 3
    warnings = [warning for response in found for warning in response.warnings]
    assert warnings == ["line 2 of stdout is a reply to 'a', which is unknown"]


@pytest.mark.usefixtures("folder")
def test_a_gigabyte_on_one_line() -> None:
    import resource  # noqa: PLC0415 - Windows has none

    program = (
        """
request = next(requests())
os.write(1, b'{"id": "a", "text": "')
for _ in range(1024):
    os.write(1, b"x" * (1 << 20))
os.write(1, b'"}\\n')
reply(request)
"""
        + ECHO
    )

    async def main() -> list[ProviderResponse]:
        async with streaming(program) as provider:
            return [await provider.invoke(ask(each)) for each in "ab"]

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    first, second = asyncio.run(main())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB
    assert "line 1 of stdout is longer than 10,000,000 bytes" in error_of(first)[1]
    assert second.text == "b?"


@pytest.mark.usefixtures("folder")
def test_bytes_that_are_no_text() -> None:
    program = r"""
os.write(1, b"\xff\xfe\0\n")
for request in requests(): os.write(1, b'{"id": "a", "text": "\xff\0"}\n')
"""
    (found,) = stream(program, ask("a"))
    assert found.text == "\ufffd\ufffd"


@pytest.mark.usefixtures("folder")
def test_floods_of_stderr() -> None:
    program = 'for request in requests():\n    sys.stderr.write("x" * 5_000_000 + "\\n"); reply(request)'
    assert texts(stream(program)) == ["a?", "b?", "c?"]


# Ends too early


@pytest.mark.usefixtures("folder")
def test_missing_program_is_an_error_at_once() -> None:
    async def main() -> list[ProviderResponse]:
        async with streaming("", command=("./missing",)) as provider:
            return [await provider.invoke(ask(f"case-{number}")) for number in range(200)]

    started = time.monotonic()
    found = asyncio.run(main())
    assert time.monotonic() - started < 10
    assert {error_of(response)[::2] for response in found} == {("transport", False)}
    assert "there is no such file" in error_of(found[-1])[1]


@pytest.mark.usefixtures("folder")
def test_dies_at_once_and_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_stream, "_FIRST_BACKOFF_S", 0.001)

    async def main() -> list[ProviderResponse]:
        async with streaming('sys.exit("no such model")') as provider:
            return [await provider.invoke(ask(f"case-{number}")) for number in range(20)]

    found = asyncio.run(main())
    assert starts() == 10
    assert error_of(found[0]) == ("transport", "no reply: the program ended with exit code 1: no such model", True)
    kind, message, retryable = error_of(found[-1])
    assert (kind, retryable) == ("transport", False)
    assert "10 times in a row" in message
    assert "no such model" in message


@pytest.mark.usefixtures("folder")
def test_one_that_has_answered_is_not_given_up_so_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_stream, "_FIRST_BACKOFF_S", 0.0001)
    monkeypatch.setattr(cli_stream, "_MAX_FAILURES", 15)
    program = 'for request in requests():\n    reply(request) if request["id"] == "good" else sys.exit(1)'

    async def main() -> list[ProviderResponse]:
        async with streaming(program) as provider:
            return [await provider.invoke(ask(each)) for each in ["good", *(f"bad-{n}" for n in range(12)), "good"]]

    found = asyncio.run(main())
    assert [response.success for response in found] == [True, *[False] * 12, True]


@pytest.mark.usefixtures("folder")
def test_dies_half_way_and_is_started_again() -> None:
    program = "for at, request in enumerate(requests()):\n    os._exit(7) if at == 2 else reply(request)"

    async def main() -> list[ProviderResponse]:
        async with streaming(program) as provider:
            return [await provider.invoke(ask(f"case-{number}")) for number in range(6)]

    found = asyncio.run(main())
    assert [response.success for response in found] == [True, True, False, True, True, False]
    assert error_of(found[2]) == ("transport", "no reply: the program ended with exit code 7", True)


@pytest.mark.usefixtures("folder")
def test_answers_once_and_ends() -> None:
    async def main() -> list[ProviderResponse]:
        async with streaming("reply(next(requests()))") as provider:
            found = []
            for number in range(4):
                found.append(await provider.invoke(ask(f"case-{number}")))
                process = provider._workers[0].process  # noqa: SLF001 - until it is known to have ended
                assert process is not None
                await process.wait_ended()
            return found

    assert texts(asyncio.run(main())) == [f"case-{number}?" for number in range(4)]
    assert starts() == 4


@pytest.mark.usefixtures("folder")
def test_closes_its_stdin() -> None:
    program = "request = next(requests())\nos.close(0)\nreply(request)\ntime.sleep(1000)"

    async def main() -> list[ProviderResponse]:
        async with streaming(program) as provider:
            return [await provider.invoke(ask(each)) for each in "abc"]

    first, second, third = asyncio.run(main())
    assert first.text == "a?"
    assert error_of(second)[0] == "transport"
    assert "closed its stdin" in error_of(second)[1]
    assert third.text == "c?"


@pytest.mark.usefixtures("folder")
def test_children_that_hold_the_pipes() -> None:
    program = """
import subprocess
for request in requests():
    subprocess.Popen(["sleep", "1000"])
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    reply(request)
    os._exit(0)
"""

    async def main() -> list[ProviderResponse]:
        async with streaming(program) as provider:
            return [await provider.invoke(ask(each)) for each in "ab"]

    first, _ = asyncio.run(main())
    assert first.text == "a?"


# Never answers


def test_silent_program_is_restarted_with_its_last_words_told(folder: Path) -> None:
    program = """
print("one moment", file=sys.stderr, flush=True)
if os.path.exists("seen"):
    for request in requests(): reply(request)
for request in requests():
    open("seen", "w").close()
"""

    async def main() -> tuple[TimeoutError, ProviderResponse, ProviderResponse]:
        async with streaming(program) as provider:
            other = asyncio.create_task(provider.invoke(ask("b")))
            while not os.path.exists(folder / "seen"):  # noqa: ASYNC110, ASYNC240, PTH110 - another process makes it so
                await asyncio.sleep(0.01)
            with pytest.raises(TimeoutError) as caught:
                async with asyncio.timeout(0.1):
                    await provider.invoke(ask("a"))
            return caught.value, await other, await provider.invoke(ask("c"))

    error, other, last = asyncio.run(main())
    assert error.__cause__ is not None
    no_line = "it has printed no line yet: a reply is one line, after which stdout has to be flushed"
    assert error.__cause__.__notes__ == [no_line, "stderr ends: one moment"]
    kind, message, retryable = error_of(other)
    assert (kind, retryable) == ("transport", True)
    assert "had answered nothing for" in message
    assert last.text == "c?"
    assert starts() == 2


def test_a_reply_without_the_end_of_its_line_is_told(folder: Path) -> None:
    program = """
for request in requests():
    print('{"id": "a", "text": "yes"}', end="", flush=True)
    open("seen", "w").close()
"""

    async def main() -> TimeoutError:
        async with streaming(program) as provider:
            asked = asyncio.create_task(provider.invoke(ask("a")))
            while not os.path.exists(folder / "seen"):  # noqa: ASYNC110, ASYNC240, PTH110 - as above
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)  # it was written before the file was made, and is in the pipe
            with pytest.raises(TimeoutError) as caught:
                await asyncio.wait_for(asked, 0.05)
            return caught.value

    error = asyncio.run(main())
    assert error.__cause__ is not None
    assert error.__cause__.__notes__ == ["""it has begun a line and not ended it: '{"id": "a", "text": "yes"}'"""]


@pytest.mark.usefixtures("folder")
def test_one_slow_case_among_others_is_left_alone_and_its_late_reply_ignored() -> None:
    program = """
late = None
for request in requests():
    if request["case_id"] == "slow" and late is None:
        late = request
    else:
        reply(request)
        if request["id"] == "last":
            reply(late, text="too late")
"""

    async def main() -> list[ProviderResponse]:
        async with streaming(program) as provider:
            slow = asyncio.create_task(provider.invoke(ask("slow")))
            await asyncio.sleep(0.05)
            found = [await provider.invoke(ask("b"))]
            slow.cancel()
            await asyncio.wait([slow])
            found += [await provider.invoke(ask(each)) for each in ("c", "last")]
            return [*found, await provider.invoke(ask("slow"))]

    found = asyncio.run(main())
    assert texts(found) == ["b?", "c?", "last?", "slow?"]
    assert starts() == 1
    assert [response.warnings for response in found] == [()] * 4


# Closing


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    "program",
    [
        ECHO,
        ECHO + "\nopen('ended-well', 'w').close()",
        ECHO + "\ntime.sleep(1000)",
        "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + ECHO + "\ntime.sleep(1000)",
        "import subprocess; subprocess.Popen(['sleep', '1000'], start_new_session=True)\n" + ECHO,
    ],
    ids=["ends", "cleans up", "hangs", "is deaf", "leaves children"],
)
def test_nothing_outlives_the_end(program: str, folder: Path) -> None:
    assert stream(program, ask("a"))[0].text == "a?"
    (started,) = folder.glob("started-*")
    assert not alive(int(started.name.partition("-")[2]))
    assert (folder / "ended-well").exists() == ("ended-well" in program)


def test_loop_that_ends_takes_the_processes_along(folder: Path) -> None:
    async def main() -> None:
        provider = Cli(name="agent", mode="stream", command=(sys.executable, "-S", "-c", HEAD + ECHO), workers=2)
        session = await provider.open(Scope(root=str(folder), folder=str(folder)))
        await asyncio.gather(session.invoke(ask("a")), session.invoke(ask("b")))

    asyncio.run(main())
    assert [alive(int(path.name.partition("-")[2])) for path in folder.glob("started-*")] == [False, False]


def test_closed_before_anything_was_asked(folder: Path) -> None:
    async def main() -> None:
        async with streaming(ECHO):
            pass

    asyncio.run(main())
    assert list(folder.iterdir()) == []


# With the engine

POISON = """
for request in requests():
    if request["case_id"] in ("case-3", "case-17"):
        print("poison", file=sys.stderr)
        os._exit(3)
    time.sleep(0.005)
    print(json.dumps({"id": request["id"], "output_messages": [{"role": "assistant", "content": "ok"}]}), flush=True)
"""


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("workers", [1, 3])
def test_a_case_that_kills_the_program_costs_no_other(workers: int) -> None:
    suite = {
        "defaults": {"evaluators": [{"type": "tool_trajectory", "maximums": {"*": 0}}]},
        "cases": [{"id": f"case-{number}", "input": "Hello"} for number in range(30)],
    }
    command = [sys.executable, "-S", "-c", HEAD + POISON]
    target = {"name": "agent", "provider": "cli", "mode": "stream", "command": command, "workers": workers}
    execution = agentv.evaluate(suite, target=target)
    errors = {result.case_id: result.error for result in execution.results if result.status != "pass"}
    assert sorted(errors) == ["case-17", "case-3"]
    error = errors["case-3"]
    assert error is not None
    assert error.kind == "agent"
    assert error.message == "asked nothing else, the program ended with exit code 3: poison"


def problems(*command: str, **options: Any) -> list[str]:
    return [str(problem) for problem in Cli(command=command, mode="stream", **options).check("targets[0]")]


@pytest.mark.parametrize("name", ["prompt", "case_id", "attempt", "input_file", "output_file"])
def test_what_stands_for_one_request_is_refused(name: str) -> None:
    (problem,) = problems("agent", f"--x={{{name}}}")
    assert "with `mode: stream` one process gets many requests" in problem
    assert problems("agent", "{workspace}", workers=3) == []


def test_batch_size_is_refused() -> None:
    assert "`mode: batch`" in problems("agent", batch_size=3)[0]
