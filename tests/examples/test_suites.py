"""Every example runs, and ends as it says."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    ("name", "code"),
    [("refund/refund.eval.yaml", 1), ("checks/checks.eval.yaml", 0), ("python/weather.eval.yaml", 0)],
)
def test_the_suite_runs(name: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "agentv", "eval", EXAMPLES / name], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr


def test_recordings_of_one_agent_are_told_apart() -> None:
    command: list[str | Path] = [sys.executable, "-m", "agentv", "eval", EXAMPLES / "refund", "--target"]
    codes = [
        subprocess.run([*command, name], capture_output=True, check=False).returncode for name in ("monday", "tuesday")
    ]
    assert codes == [0, 1]


def test_no_example_is_left_out() -> None:
    tested = {
        "refund/refund.eval.yaml",
        "checks/checks.eval.yaml",
        "plugin/parrot.eval.yaml",
        "python/weather.eval.yaml",
        "stream/javascript.eval.yaml",
        "stream/python.eval.yaml",
    }
    assert {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.eval.y*ml")} == tested
