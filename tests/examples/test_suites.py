"""Every example has a README whose commands are run, and end as it says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))
OWN_TESTS = {"plugin", "stream"}
"""Folders that need an installation or Node: test_plugin.py and test_stream.py run them."""


@pytest.mark.parametrize("name", [name for name in FOLDERS if name not in OWN_TESTS])
def test_the_commands_of_the_readme_end_as_it_says(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder, ignore=shutil.ignore_patterns(".agentv", "__pycache__"))
    commands = re.findall(r"^\$ (.*?)(?:  # exit code (\d))?$", (folder / "README.md").read_text("utf-8"), re.MULTILINE)
    assert commands
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "COVERAGE"))},
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONIOENCODING": "utf-8",
        # Of all plugins that may be installed here, ours alone.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-p agentv",
    }
    for command, code in commands:
        done = subprocess.run(
            command.split(), cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False
        )
        assert done.returncode == int(code or 0), f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("name", FOLDERS)
def test_every_example_has_a_short_readme_and_is_listed(name: str) -> None:
    lines = (EXAMPLES / name / "README.md").read_text(encoding="utf-8").splitlines()
    assert 8 <= len(lines) <= 14
    assert f"({name}/README.md)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
