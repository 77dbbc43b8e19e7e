"""Stand-alone program that sets resource limits (rlimits) and then executes another program.

It is needed because `preexec_fn` is unsafe in a process with threads, and limits set after the start come too late.
Arguments: the limits as `name=number` joined by commas, then the program and its arguments. It imports no other module
of agentv, so that it starts fast. A watcher process beside it counts the processes of the program.
"""

import _signal as signal  # type: ignore[import-not-found]  # the public module takes 4 ms to build enumerations
import os
import select
import sys

if sys.platform != "win32":
    import resource

_POLL_MS = 5
_SESSION = 3
"""Index of the session id among the fields after the name in `/proc/PID/stat`."""


def main(arguments: list[str]) -> int:
    """Execute the program; return an exit code only if it cannot be started."""
    limits = {name: int(number) for name, _, number in (item.partition("=") for item in arguments[0].split(","))}
    command = arguments[1:]
    try:
        _fork_watcher(limits["processes"])
        _set_rlimits(limits)
        os.execvp(command[0], command)  # noqa: S606 - the user's own argument list, and no shell
    except (OSError, ValueError) as error:
        _print_error(f"{command[0]!r} cannot be started: {getattr(error, 'strerror', None) or error}")
    return 127


def _set_rlimits(limits: dict[str, int]) -> None:
    # On Linux, limit writable memory: many runtimes reserve more address space than any useful limit allows.
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
        maximum = number + (kind == resource.RLIMIT_CPU)  # one second to exit by itself before it is killed
        if hard != resource.RLIM_INFINITY:  # no more than the host allows
            number, maximum = min(number, hard), min(maximum, hard)  # noqa: PLW2901 - see above
        resource.setrlimit(kind, (number, maximum))


def _fork_watcher(maximum: int) -> None:
    """Fork a watcher that is neither the program's child nor in its process group, and exits with the program."""
    try:
        program = os.getpid()
        descriptor = os.pidfd_open(program)
        threads = _count_threads()
    except (AttributeError, OSError):  # not Linux: only the time limit applies
        return
    middle = os.fork()
    if middle == 0:
        if os.fork() == 0:
            os.setpgid(0, 0)
            os.close(0)
            os.close(1)
            try:  # noqa: SIM105 - contextlib takes longer to import than everything else here
                os.nice(-10)
            except PermissionError:
                pass  # then it runs with normal priority
            _watch_processes(program, descriptor, maximum, threads)
        os._exit(0)
    os.waitpid(middle, 0)


def _watch_processes(program: int, descriptor: int, maximum: int, threads: int) -> None:
    ended = select.poll()
    ended.register(descriptor, select.POLLIN)
    while not ended.poll(_POLL_MS):
        # The number of all threads on the machine is one short file. Finding out whose they are takes far longer than
        # a fork bomb needs to double, so the program is stopped meanwhile.
        now = _count_threads()
        if now - threads <= maximum // 2:
            threads = min(threads, now)
            continue
        os.killpg(program, signal.SIGSTOP)
        members = _session_members()
        if len(members) <= maximum:
            os.killpg(program, signal.SIGCONT)
            threads = now
            continue
        _print_error(f"more than {maximum} processes at once, so all of them were ended")
        os.killpg(program, signal.SIGKILL)
        for pid in members:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _count_threads() -> int:
    with open("/proc/loadavg", "rb") as stream:  # noqa: PTH123 - as above
        return int(stream.read().split()[3].partition(b"/")[2])


def _session_members() -> list[int]:
    """Return the pids of this session, without this process."""
    session = str(os.getsid(0)).encode()
    pids = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - as above
        if name.isdecimal() and int(name) != os.getpid():
            try:
                with open(f"/proc/{name}/stat", "rb") as stream:  # noqa: PTH123 - as above
                    if stream.read().rpartition(b")")[2].split()[_SESSION] == session:
                        pids.append(int(name))
            except (OSError, IndexError):  # the process has exited meanwhile
                continue
    return pids


def _print_error(message: str) -> None:
    sys.stderr.write(f"{message}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
