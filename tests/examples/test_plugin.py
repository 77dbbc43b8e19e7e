"""The example plugin, installed and run as somebody else would."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).parents[2] / "examples" / "plugin"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the plugin is installed."""
    place = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("plugin") / "plugin"
    import shutil  # noqa: PLC0415 - a build must leave nothing in the repository

    shutil.copytree(PLUGIN, source)
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, "--target", place, source], check=True)
    return {**os.environ, "PYTHONPATH": str(place)}


def agentv(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "agentv", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_a_provider_of_another_package_is_found_by_its_name(environment: dict[str, str]) -> None:
    done = agentv(environment, "eval", str(PLUGIN / "parrot.eval.yaml"), "--json")
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout.splitlines()[0])
    assert (record["status"], record["candidate"], record["target"]) == ("pass", "Hello Hello", "polly")


def test_its_settings_are_checked_like_our_own(environment: dict[str, str], tmp_path: Path) -> None:
    text = (PLUGIN / "parrot.eval.yaml").read_text().replace("times: 2", "tims: 2")
    (tmp_path / "a.eval.yaml").write_text(text)
    done = agentv(environment, "validate", str(tmp_path / "a.eval.yaml"))
    assert done.returncode == 2
    assert "unknown key 'tims'; did you mean 'times'?" in done.stderr


def test_without_the_package_the_choices_are_named(tmp_path: Path) -> None:
    done = agentv(dict(os.environ), "validate", str(PLUGIN / "parrot.eval.yaml"))
    assert done.returncode == 2
    assert "; got 'parrot'" in done.stderr
    assert not list(tmp_path.iterdir())
