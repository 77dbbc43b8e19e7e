"""Private files, also where the system has no modes."""

import os
import stat
import sys
from pathlib import Path

import pytest

from agentv.files import restrict_to_owner
from agentv.reports.files import open_private
from agentv.stores.sqlite.connection import ensure_private_file


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such modes")
def test_only_the_owner_reads_a_restricted_file(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w", encoding="utf-8") as file:
        restrict_to_owner(file.fileno())
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_files_are_written_where_modes_cannot_be_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Windows has no `os.fchmod` before Python 3.13, and a new file has the mode 666 there.
    monkeypatch.delattr(os, "fchmod", raising=False)
    (tmp_path / "runs.db").touch(0o666)
    ensure_private_file(tmp_path / "runs.db")
    descriptor, is_regular = open_private(tmp_path / "results.jsonl")
    os.close(descriptor)
    assert is_regular
