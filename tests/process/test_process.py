"""Programs that fork, flee, flood and hang: is everything they started gone, and nothing else?"""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentv.process import Command, InteractivePipe, ProcessResult, orphans, run
from agentv.process.pipes import BoundedOutput, LineSplitter, OutputLine, omission_marker
from agentv.process.posix import run_posix
from agentv.process.windows import run_without_process_groups

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX processes")
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets us adopt orphans")
pytestmark = posix

PATIENCE = 20.0
"""Far more than anything here takes: a busy machine is no failure."""
FLEE = "setsid sh -c 'echo $$ >> pids; exec sleep 1000'"
"""Leaves the group and the session."""
TREES = {
    "forks": ("sleep 1000 & echo $! >> pids; sleep 1000", 1),
    "forks in the background": ("(sleep 1000 & echo $! >> pids); sleep 1000", 1),
    "ignores SIGTERM": ("trap '' TERM; sleep 1000 & echo $! >> pids; sleep 1000; sleep 1000", 1),
    "setsid": (f"{FLEE} & sleep 1000", 1),
    "double fork": (f"({FLEE} &); sleep 1000", 1),
    "double fork, then ignores SIGTERM": (f"trap '' TERM; ({FLEE} &); sleep 1000; sleep 1000", 1),
    "double fork with a clean environment": (f'(env -i PATH="$PATH" {FLEE} &); sleep 1000', 1),
    "flees, and flees from there": (f"""setsid sh -c "echo \\$\\$ >> pids; ({FLEE} &); sleep 1000" & sleep 1000""", 2),
    "stopped": ("sleep 1000 & echo $! >> pids; kill -STOP $!; kill -STOP $$", 1),
}


def command(*arguments: str, folder: Path | str = ".", **options: Any) -> Command:
    options.setdefault("grace_s", 0.3)
    return Command(arguments=arguments, folder=str(folder), env={"PATH": os.environ["PATH"]}, **options)


def finish(*arguments: str, **options: Any) -> ProcessResult:
    return asyncio.run(run(command(*arguments, **options)))


def alive(pid: int) -> bool:
    """Return True if there is a process or a zombie of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():  # noqa: ASYNC110 - another process makes it so
            await asyncio.sleep(0.005)


def pids(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []


async def start(script: str, folder: Path, count: int, **options: Any) -> asyncio.Task[ProcessResult]:
    """A script, once it has written so many numbers of processes."""
    task = asyncio.create_task(run(command("sh", "-c", script, folder=folder, **options)))
    await until(lambda: len(pids(folder)) >= count)
    return task


async def cancel(task: asyncio.Task[ProcessResult]) -> asyncio.CancelledError:
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    return caught.value


def descriptors() -> list[str]:
    return os.listdir("/proc/self/fd")  # noqa: PTH208 - the names alone


def children() -> set[int]:
    return set(orphans._children())  # noqa: SLF001 - the same view of the world


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = children()
    yield
    assert children() <= before


def test_exit_code_and_both_streams() -> None:
    done = finish("sh", "-c", "echo out; echo err >&2; exit 3")
    assert (done.exit_code, done.signal) == (3, None)
    assert (done.stdout, done.stderr) == (b"out\n", b"err\n")
    assert (done.stdout_truncated, done.stderr_truncated) == (False, False)
    assert 0 < done.duration_s < PATIENCE


def test_signal() -> None:
    done = finish("sh", "-c", "kill -SEGV $$")
    assert (done.exit_code, done.signal) == (None, signal.SIGSEGV)


def test_missing_program_and_missing_folder() -> None:
    with pytest.raises(FileNotFoundError):
        finish("agentv-no-such-program")
    with pytest.raises(FileNotFoundError):
        finish("true", folder="no/such/folder")


def test_environment_is_what_was_given_and_the_mark() -> None:
    names = [line.partition(b"=")[0] for line in finish("env").stdout.splitlines()]
    assert sorted(names) == [orphans.MARKER.encode(), b"PATH"]


def test_mark_keeps_the_mark_of_an_outer_agentv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(orphans.MARKER, "outer-1")
    assert orphans.environment_marker(7).split()[0] == "outer-1"
    assert orphans.environment_marker(7).endswith("-7")


def test_arguments_are_utf_8() -> None:
    assert finish("printf", "%s", "é 🙂").stdout == "é 🙂".encode()


def test_input_is_fed_while_output_is_read() -> None:
    data = os.urandom(3_000_000)
    assert finish("cat", stdin=data).stdout == data


def test_no_input_is_the_end_of_file() -> None:
    assert finish("cat").stdout == b""


@pytest.mark.parametrize("script", ["true", "exec <&-; sleep 0.05; true", "head -c 10 >/dev/null", "exec cat <&- >&-"])
def test_input_that_is_not_read_is_no_error(script: str) -> None:
    done = finish("sh", "-c", f"{script}; exit 5", stdin=b"x" * 1_000_000)
    assert done.exit_code == 5 or script.startswith("exec cat")


def test_a_gigabyte_in_bounded_memory() -> None:
    import resource  # noqa: PLC0415 - Windows has none

    async def flood() -> ProcessResult:
        done = await run(command("sh", "-c", "printf begin; head -c 1073741824 /dev/zero; printf end"))
        assert done.stdout_truncated
        assert len(done.stdout) == 10_000_000 + len(omission_marker(1_073_741_824 + 8 - 10_000_000))
        assert done.stdout.startswith(b"begin\0")
        assert done.stdout.endswith(b"\0end")
        return ProcessResult(**{**{name: getattr(done, name) for name in done.__struct_fields__}, "stdout": b""})

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    done = asyncio.run(flood())
    assert done.exit_code == 0
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 * 1024  # KiB


@given(st.integers(0, 40), st.lists(st.binary(max_size=25), max_size=8))
def test_output_keeps_beginning_and_end(limit: int, pieces: list[bytes]) -> None:
    output, data = BoundedOutput(limit), b"".join(pieces)
    for piece in pieces:
        output.feed(piece)
    tail = limit // 2
    cut = data[: limit - tail] + omission_marker(len(data) - limit) + data[len(data) - tail :]
    assert output.value() == (cut if len(data) > limit else data)
    assert output.truncated == (len(data) > limit)


def test_writing_forever_ends_with_the_time() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await run(command("yes"))

    asyncio.run(main())


@linux
@pytest.mark.parametrize("name", TREES)
def test_cancelled_tree_is_dead(name: str, tmp_path: Path) -> None:
    script, count = TREES[name]

    async def main() -> None:
        task = await start(script, tmp_path, count)
        assert all(map(alive, pids(tmp_path)))
        await cancel(task)
        assert not any(map(alive, pids(tmp_path)))

    asyncio.run(main())


@linux
@pytest.mark.parametrize("left", ["sleep 1000 & echo $! >> pids", f"{FLEE} &", f"({FLEE} &)"])
def test_what_is_left_behind_holds_nothing_up(left: str, tmp_path: Path) -> None:
    """The background process holds stdout open, so there is no end of file to wait for."""
    script = f"{left}\nwhile ! [ -s pids ]; do sleep 0.01; done; echo done; exit 4"
    started = time.monotonic()
    done = finish("sh", "-c", script, folder=tmp_path, grace_s=PATIENCE)
    assert time.monotonic() - started < PATIENCE
    assert (done.exit_code, done.stdout) == (4, b"done\n")
    assert [alive(pid) for pid in pids(tmp_path)] == [False]


def test_left_behind_and_deaf_to_sigterm(tmp_path: Path) -> None:
    script = "trap '' TERM; sh -c 'echo $$ >> pids; sleep 1000; sleep 1000' & while ! [ -s pids ]; do sleep 0.01; done"
    assert finish("sh", "-c", script, folder=tmp_path).exit_code == 0
    assert [alive(pid) for pid in pids(tmp_path)] == [False]


def test_a_child_may_clean_up(tmp_path: Path) -> None:
    async def main() -> None:
        script = "trap 'echo clean > cleaned; exit' TERM; echo $$ >> pids; while :; do sleep 0.01; done"
        await cancel(await start(script, tmp_path, 1, grace_s=PATIENCE))

    asyncio.run(main())
    assert (tmp_path / "cleaned").read_text() == "clean\n"


@linux
def test_siblings_are_left_alone(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    script = f'({FLEE} &); (env -i PATH="$PATH" {FLEE} &); sleep 1000 & echo $! >> pids; sleep 1000'
    own = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    one.mkdir()
    two.mkdir()

    async def main() -> None:
        first, second = await asyncio.gather(start(script, one, 3), start(script, two, 3))
        await cancel(first)
        assert not any(map(alive, pids(one)))
        assert [alive(pid) for pid in pids(two)] == [True] * 3
        assert own.poll() is None
        await run(command("true"))
        assert [alive(pid) for pid in pids(two)] == [True] * 3
        await cancel(second)
        assert not any(map(alive, pids(two)))

    try:
        asyncio.run(main())
        assert own.poll() is None
    finally:
        own.kill()
        own.wait()


@linux
def test_orphan_known_by_its_environment_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the resource limit may not be changed."""
    monkeypatch.setattr("resource.prlimit", lambda *_: (-1, -1))
    script, count = TREES["double fork"]

    async def main() -> None:
        await cancel(await start(script, tmp_path, count))
        assert not any(map(alive, pids(tmp_path)))

    asyncio.run(main())


def test_exit_codes_of_others_are_not_taken() -> None:
    own = subprocess.Popen(["sh", "-c", "exit 7"], start_new_session=True)
    other = subprocess.Popen(["sh", "-c", "exit 8"])
    finish("sh", "-c", "sleep 0.1")
    assert (own.wait(), other.wait()) == (7, 8)


@linux
def test_orphans_that_ended_by_themselves_are_reaped(tmp_path: Path) -> None:
    before = children()
    for _ in range(5):
        finish("sh", "-c", "sleep 0.02; (setsid sh -c 'echo $$ >> pids' &); sleep 0.05", folder=tmp_path)
    assert children() == before
    assert not any(map(alive, pids(tmp_path)))


@linux
@pytest.mark.parametrize("host", [0, 1])
def test_host_keeps_its_own_way_with_orphans(host: int) -> None:
    import ctypes  # noqa: PLC0415 - only here

    def state() -> int:
        found = ctypes.c_int(-1)
        ctypes.CDLL(None).prctl(37, ctypes.byref(found), 0, 0, 0)
        return found.value

    async def main() -> int:
        task = asyncio.create_task(run(command("sleep", "1000")))
        await asyncio.sleep(0)
        during = state()
        await cancel(task)
        return during

    before = state()
    ctypes.CDLL(None).prctl(36, ctypes.c_ulong(host), 0, 0, 0)
    try:
        assert (asyncio.run(main()), state()) == (1, host)
    finally:
        ctypes.CDLL(None).prctl(36, ctypes.c_ulong(before), 0, 0, 0)


def test_cancelled_twice(tmp_path: Path) -> None:
    async def main() -> None:
        task = await start(TREES["ignores SIGTERM"][0], tmp_path, 1, grace_s=1000)
        task.cancel()
        await asyncio.sleep(0.05)
        assert not task.done()
        started = time.monotonic()
        await cancel(task)
        assert time.monotonic() - started < PATIENCE
        assert not any(map(alive, pids(tmp_path)))

    asyncio.run(main())


def test_cancelled_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        for delay in range(20):
            task = asyncio.create_task(run(command("sh", "-c", "echo $$ >> pids; sleep 1000", folder=tmp_path)))
            await asyncio.sleep(delay / 5000)
            await cancel(task)
        assert not any(map(alive, pids(tmp_path)))

    asyncio.run(main())


def test_cancelled_with_the_last_words_on_stderr(tmp_path: Path) -> None:
    async def main() -> None:
        script = "head -c 5000000 /dev/zero >&2; printf 'I \\377 hang' >&2; echo $$ >> pids; sleep 1000"
        error = await cancel(await start(script, tmp_path, 1))
        (note,) = error.__notes__
        assert note.startswith("stderr ends: ")
        assert note.endswith("I \ufffd hang")
        assert len(note) <= 2_020
        assert "\0" not in note

    asyncio.run(main())


def test_timeout_keeps_the_note(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.5):
                await run(command("sh", "-c", "echo waiting >&2; sleep 1000", folder=tmp_path))
        assert caught.value.__cause__ is not None
        assert caught.value.__cause__.__notes__ == ["stderr ends: waiting"]

    asyncio.run(main())


def test_loop_that_ends_takes_its_programs_along(tmp_path: Path) -> None:
    async def main() -> asyncio.Task[ProcessResult]:
        return await start("echo $$ >> pids; sleep 1000", tmp_path, 1)

    assert asyncio.run(main()).cancelled()
    assert not any(map(alive, pids(tmp_path)))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # of its pipes, which nobody closed
def test_loop_that_is_closed_takes_its_programs_along(tmp_path: Path) -> None:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)  # "Task was destroyed but it is pending!"
    task = loop.run_until_complete(start("echo $$ >> pids; sleep 1000", tmp_path, 1))
    loop.close()
    del task
    gc.collect()
    assert not any(map(alive, pids(tmp_path)))


@linux
@pytest.mark.parametrize("runner", [run_posix, run_without_process_groups])
def test_nothing_leaks(runner: Callable[[Command], Awaitable[ProcessResult]]) -> None:
    async def main() -> tuple[int, int]:
        await runner(command("true", stdin=b"x"))
        before = len(descriptors())
        for _ in range(15):
            await asyncio.gather(*[runner(command("sh", "-c", "exit 0", stdin=b"x")) for _ in range(20)])
        for _ in range(20):
            with pytest.raises(FileNotFoundError):
                await runner(command("agentv-no-such-program"))
        await asyncio.sleep(0)
        return before, len(descriptors())

    before, after = asyncio.run(main())
    assert after == before
    assert not orphans._attempts  # noqa: SLF001 - it must not grow
    assert not orphans._running  # noqa: SLF001 - as above


def test_without_pidfd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.pidfd_open", raising=False)
    assert finish("sh", "-c", "sleep 0.05; echo here; exit 6").exit_code == 6

    async def main() -> None:
        await cancel(await start(TREES["forks"][0], tmp_path, 1))
        assert not any(map(alive, pids(tmp_path)))

    asyncio.run(main())


def test_portably(tmp_path: Path) -> None:
    async def main() -> None:
        data = b"x" * 1_000_000
        done = await run_without_process_groups(command("sh", "-c", "cat; echo err >&2; exit 3", stdin=data))
        assert (done.exit_code, done.stdout, done.stderr) == (3, data, b"err\n")
        done = await run_without_process_groups(command("sh", "-c", "sleep 3 & echo left", stdin=data))
        assert (done.exit_code, done.stdout) == (0, b"left\n")
        script = "echo $$ >> pids; echo waiting >&2; exec sleep 1000"
        task = asyncio.create_task(run_without_process_groups(command("sh", "-c", script, folder=tmp_path)))
        await until(lambda: bool(pids(tmp_path)))
        await asyncio.sleep(0.05)
        error = await cancel(task)
        assert error.__notes__ == ["stderr ends: waiting"]
        assert not any(map(alive, pids(tmp_path)))

    asyncio.run(main())


Runner = Callable[[Command, InteractivePipe | None], Awaitable[ProcessResult]]
RUNNERS = pytest.mark.parametrize("runner", [run_posix, run_without_process_groups])


@RUNNERS
def test_dialogue(runner: Runner) -> None:
    async def main() -> None:
        heard = bytearray()
        pipe = InteractivePipe(heard.extend)
        pipe.write(b"before it starts\n")
        task = asyncio.ensure_future(runner(command("sh", "-c", "echo err >&2; cat; exit 3", stdin=b"first\n"), pipe))
        await until(lambda: heard.endswith(b"starts\n"))
        for _ in range(3):
            pipe.write(b"x" * 500_000)
            pipe.write(b"\n")
        await until(lambda: heard.count(b"x") == 1_500_000)
        assert not pipe.has_exited
        await until(lambda: pipe.stderr.value() == b"err\n")
        pipe.write(b"last\n")
        pipe.close_stdin()
        done = await task
        assert (done.exit_code, done.stdout, done.stderr) == (3, b"", b"err\n")
        assert bytes(heard[:23]) == b"first\nbefore it starts\n"
        assert heard.endswith(b"x\nlast\n")
        assert pipe.has_exited
        pipe.write(b"nobody hears this")

    asyncio.run(main())


@RUNNERS
def test_dialogue_with_one_who_does_not_listen(runner: Runner) -> None:
    async def main() -> None:
        deaf = asyncio.Event()
        pipe = InteractivePipe(lambda _: None, deaf.set)
        task = asyncio.ensure_future(runner(command("sh", "-c", "exec <&-; exec sleep 1000"), pipe))
        async with asyncio.timeout(PATIENCE):
            while not deaf.is_set():  # the pipe takes some before its reader is gone
                pipe.write(b"x" * 100_000)
                await asyncio.sleep(0.01)
        assert not pipe.pending
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_dialogue_is_cancelled_with_everything(tmp_path: Path) -> None:
    async def main() -> None:
        pipe = InteractivePipe(lambda _: None)
        script = f"({FLEE} &); sleep 1000 & echo $! >> pids; cat"
        task = asyncio.create_task(run(command("sh", "-c", script, folder=tmp_path), pipe))
        await until(lambda: len(pids(tmp_path)) >= 2)
        await cancel(task)
        assert not any(map(alive, pids(tmp_path)))

    asyncio.run(main())


@given(st.integers(5_000, 6_000), st.lists(st.binary(max_size=40).map(lambda data: data * 300), max_size=8))
def test_lines_are_those_of_the_whole(limit: int, pieces: list[bytes]) -> None:
    found: list[OutputLine] = []
    lines, data = LineSplitter(limit, found.append), b"".join(pieces)
    for piece in pieces:
        lines.feed(piece)
    lines.end()
    expected = [(number, line) for number, line in enumerate(data.split(b"\n"), 1)]
    cut = [(number, len(line) > limit, line[:4_096] if len(line) > limit else line) for number, line in expected]
    assert [(line.number, line.is_cut, line.data) for line in found] == [
        (number, is_cut, line.strip()) for number, is_cut, line in cut if line.strip()
    ]
    assert [line.is_whole for line in found if line.number < len(expected)] == [
        True for line in found if line.number < len(expected)
    ]
