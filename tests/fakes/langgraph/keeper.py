"""Runs a command for as long as another process lives: `keeper.py PID LOG COMMAND...`."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> None:
    owner, log, command = int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]
    with log.open("wb") as stream:
        server = subprocess.Popen(command, stdout=stream, stderr=stream, start_new_session=True)
        while server.poll() is None and is_alive(owner):
            time.sleep(0.2)
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
