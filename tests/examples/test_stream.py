"""The agents that stay up: the same in two languages."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "stream"
NODE = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here")


@pytest.mark.parametrize("name", ["python", pytest.param("javascript", marks=NODE)])
def test_the_agent_answers_every_question(name: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        [sys.executable, "-m", "agentv", "eval", FOLDER / f"{name}.eval.yaml"],
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 passed, 0 failed, 0 errors" in done.stdout
