"""Import cost of the plugin in pytest runs without evals."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"agentv.api", "agentv.model", "asyncio", "msgspec", "yaml"}
SHOW = "import sys\ndef pytest_unconfigure():\n    print(*sys.modules)\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "conftest.py").write_text(SHOW)
    (tmp_path / "test_it.py").write_text("def test_it(): pass")
    return tmp_path


def modules(folder: Path, *args: str) -> set[str]:
    """Return the modules that a run of pytest imports."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    environment = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return set(done.stdout.split())


def test_without_the_option_only_the_options_are_imported(folder: Path) -> None:
    (folder / "a.eval.yaml").write_text("cases: []")
    found = modules(folder, "-p", "agentv")
    assert {name for name in found if name.startswith("agentv.")} == {"agentv.pytest_plugin"}
    assert HEAVY & found == HEAVY & modules(folder)


def test_nothing_heavy_is_imported_until_an_eval_is_collected(folder: Path) -> None:
    found = modules(folder, "-p", "agentv", "--agentv")
    assert "agentv.pytest_plugin" in found
    assert HEAVY & found == HEAVY & modules(folder)


def test_an_eval_that_is_collected_needs_them_all(folder: Path) -> None:
    (folder / "a.eval.yaml").write_text("cases: []")
    assert HEAVY - modules(folder, "-p", "agentv", "--agentv") == set()
