"""A real `langgraph dev` server, started by whoever needs it first and shared by all workers of a session."""

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection, HTTPException
from pathlib import Path

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parents[2] / ".venv-langgraph"
COMMAND = ENVIRONMENT / "bin" / "langgraph"
KEY = "open-sesame"
STARTUP_S = 90.0


def shared_server(folder: Path) -> str:
    """The address of the session's server; the folder is one that all its workers share."""
    with (folder / "langgraph.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        told = folder / "langgraph.json"
        if told.exists():
            address: str = json.loads(told.read_text())["url"]
            return address
        address = _start(folder / "langgraph")
        told.write_text(json.dumps({"url": address}))
        return address


def _start(folder: Path) -> str:
    # A folder of its own: the server finds again what it left in one.
    shutil.copytree(HERE / "project", folder, ignore=shutil.ignore_patterns("__pycache__"))
    port = _free_port()
    log = folder.parent / "langgraph.log"
    command = [str(COMMAND), "dev", "--no-browser", "--no-reload", "--host", "127.0.0.1", "--port", str(port)]
    command += ["--n-jobs-per-worker", "20", "--config", "langgraph.json"]
    # The session's first process outlives its workers, and the server shall not outlive the session.
    owner = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    quiet = {"LANGSMITH_TRACING": "false", "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    keeper = subprocess.Popen(
        [sys.executable, HERE / "keeper.py", str(owner), log, *command],
        cwd=folder,
        env={**os.environ, **quiet},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    address = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + STARTUP_S
    while not _is_ready(address):
        if keeper.poll() is not None or time.monotonic() > deadline:
            keeper.kill()
            words = log.read_text(errors="replace")[-3000:] if log.exists() else "no log"
            msg = f"the LangGraph server did not start: {words}"
            raise RuntimeError(msg)
        time.sleep(0.1)
    keeper.returncode = 0  # it is nobody's child to wait for: it ends with the session
    return address


def _is_ready(address: str) -> bool:
    connection = HTTPConnection(address.removeprefix("http://"), timeout=1)
    try:
        connection.request("GET", "/ok")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
