"""Discovery of eval files in folders that cannot be read."""

import os
from pathlib import Path
from typing import Any

import pytest

from agentv.errors import FormatError, SpecError
from agentv.spec.dataset.files import find_files
from agentv.spec.discovery import find_evals
from tests.support.command import Command, calls, cases, command_in, mocked


@pytest.fixture
def project(tmp_path: Path) -> Command:
    """A folder with two evals, one of them in `closed/`."""
    run = command_in(tmp_path)
    for name in ("a.eval.yaml", "closed/b.eval.yaml"):
        run.write(name, {"targets": [mocked(calls("search"))], "cases": cases("a")})
    return run


@pytest.fixture
def closed(project: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder `closed/`, which nobody may read: also the superuser, whom permissions do not stop."""
    folder = project.folder / "closed"
    scandir = os.scandir

    def refuse(path: Any = ".") -> Any:
        if Path(path).name == folder.name:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    return folder


def test_a_folder_that_cannot_be_read_is_a_mistake_although_others_hold_evals(project: Command, closed: Path) -> None:
    for command in ("eval", "validate"):
        result = project(command, ".")
        assert (result.code, result.out) == (2, "")
        assert f"'{closed.name}' cannot be read: Permission denied; make it readable" in result.err.replace("./", "")


def test_every_folder_that_cannot_be_read_is_named(project: Command, closed: Path) -> None:
    (project.folder / "more" / "closed").mkdir(parents=True)
    with pytest.raises(SpecError) as raised:
        find_evals([project.folder])
    folders = [closed, project.folder / "more" / "closed"]
    assert all(str(folder) in str(raised.value) for folder in folders)


def test_the_files_of_such_a_folder_may_still_be_named(project: Command, closed: Path) -> None:
    assert closed.is_dir()
    assert project("eval", "a.eval.yaml", "-q").code == 0


def test_rows_of_a_folder_that_cannot_be_read_are_not_left_out(project: Command, closed: Path) -> None:
    (project.folder / "rows.jsonl").write_text("{}\n")
    with pytest.raises(FormatError, match=r"closed' cannot be read: Permission denied; rows in it would be missing"):
        find_files(project.folder, project.folder, "**/*.jsonl")
    assert closed.is_dir()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="the superuser may read anywhere")
def test_a_folder_without_permissions_is_a_mistake(project: Command) -> None:
    folder = project.folder / "closed"
    folder.chmod(0)
    try:
        result = project("eval", ".")
    finally:
        folder.chmod(0o700)
    assert (result.code, "cannot be read: Permission denied" in result.err) == (2, True)
