"""Fixtures of several tests of eval files."""

from pathlib import Path

import pytest

from tests.support.evals import Write


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a file of a project whose folder is the working directory."""
    monkeypatch.chdir(tmp_path)

    def write_file(text: str | bytes, name: str = "a.eval.yaml") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return Path(name)

    return write_file
