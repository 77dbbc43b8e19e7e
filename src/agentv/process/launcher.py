"""Run as a program of its own: limits itself and becomes another, with somebody beside it who counts its processes.

`preexec_fn` is not safe in a process with threads, and limits that are set a moment after the start come too late.
Arguments: the limits as `name=number` joined by commas, then the program and its arguments. It imports nothing of
agentv, so that it starts in the time of bare Python.
"""

import _signal as signal  # type: ignore[import-not-found]  # the public module takes 4 ms to build enumerations
import os
import select
import sys

if sys.platform != "win32":
    import resource

_POLL_MS = 5
_SESSION = 3
"""Where the session stands in what follows the name in `/proc/PID/stat`."""


def main(arguments: list[str]) -> int:
    """Become the program; there is an exit code only if that cannot be."""
    limits = {name: int(number) for name, _, number in (item.partition("=") for item in arguments[0].split(","))}
    command = arguments[1:]
    try:
        _start_watch(limits["processes"])
        _limit(limits)
        os.execvp(command[0], command)  # noqa: S606 - the user's own argument list, and no shell
    except (OSError, ValueError) as error:
        _say(f"{command[0]!r} cannot be started: {getattr(error, 'strerror', None) or error}")
    return 127


def _limit(limits: dict[str, int]) -> None:
    # On Linux this counts what can be written to; the address space that runtimes reserve would end many at once.
    memory = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_CPU: limits["cpu_s"],
        memory: limits["memory_mb"] << 20,
        resource.RLIMIT_FSIZE: limits["file_mb"] << 20,
        resource.RLIMIT_NOFILE: limits["open_files"],
    }
    for kind, number in wanted.items():
        hard = resource.getrlimit(kind)[1]
        most = number + (kind == resource.RLIMIT_CPU)  # a second to end by itself, then it is killed
        if hard != resource.RLIM_INFINITY:  # never more than the host allows
            number, most = min(number, hard), min(most, hard)  # noqa: PLW2901 - see above
        resource.setrlimit(kind, (number, most))


def _start_watch(most: int) -> None:
    """Leave somebody behind who is neither the program's child nor in its group, and ends when it does."""
    try:
        program = os.getpid()
        descriptor = os.pidfd_open(program)
        threads = _threads()
    except (AttributeError, OSError):  # not Linux: the time limit has to do
        return
    middle = os.fork()
    if middle == 0:
        if os.fork() == 0:
            os.setpgid(0, 0)
            os.close(0)
            os.close(1)
            try:  # noqa: SIM105 - contextlib takes longer to import than all the rest
                os.nice(-10)
            except PermissionError:
                pass  # it takes its turn among those that it counts
            _watch(program, descriptor, most, threads)
        os._exit(0)
    os.waitpid(middle, 0)


def _watch(program: int, descriptor: int, most: int, threads: int) -> None:
    ended = select.poll()
    ended.register(descriptor, select.POLLIN)
    while not ended.poll(_POLL_MS):
        # Counting everybody's threads is one short file; whose they are has to be looked for, which takes far longer
        # than a bomb needs to double: it has to stand still meanwhile.
        now = _threads()
        if now - threads <= most // 2:
            threads = min(threads, now)
            continue
        os.killpg(program, signal.SIGSTOP)
        members = _members()
        if len(members) <= most:
            os.killpg(program, signal.SIGCONT)
            threads = now
            continue
        _say(f"more than {most} processes at once, so all of them were ended")
        os.killpg(program, signal.SIGKILL)
        for pid in members:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _threads() -> int:
    with open("/proc/loadavg", "rb") as stream:  # noqa: PTH123 - as above
        return int(stream.read().split()[3].partition(b"/")[2])


def _members() -> list[int]:
    """The processes of this session, but for this one."""
    session = str(os.getsid(0)).encode()
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - as above
        if name.isdecimal() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/stat", "rb") as stream:  # noqa: PTH123 - as above
                    if stream.read().rpartition(b")")[2].split()[_SESSION] == session:
                        found.append(int(name))
            except (OSError, IndexError):  # gone meanwhile
                continue
    return found


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
