"""Selection of the tests of `make check`."""

from pathlib import Path

import pytest

from tests.support.examples import NORMAL, QUICK, THOROUGH, examples
from tests.support.selection import SLOW_FOLDERS, TESTS, is_slow, slow_names

SOURCE = """
import subprocess

def start():
    return subprocess.Popen(["true"])

@pytest.fixture
def server():
    yield start()

def test_by_itself():
    subprocess.run(["true"])

def test_by_a_function():
    start()

def test_by_a_fixture(server):
    pass

class TestGroup:
    def test_by_a_function_in_a_class(self):
        assert start()

    def test_in_memory_in_a_class(self):
        pass

def test_in_memory():
    pass
"""


def test_tests_that_start_a_process_are_slow(tmp_path: Path) -> None:
    path = tmp_path / "test_source.py"
    path.write_text(SOURCE)
    found = {name for name in slow_names(path) if name.startswith("test_")}
    assert found == {
        "test_by_itself",
        "test_by_a_function",
        "test_by_a_fixture",
        "test_by_a_function_in_a_class",
    }


def test_a_file_that_starts_none_has_no_slow_tests(tmp_path: Path) -> None:
    path = tmp_path / "test_source.py"
    path.write_text("def test_in_memory(): pass\n")
    assert slow_names(path) == set()


@pytest.mark.parametrize("folder", SLOW_FOLDERS)
def test_slow_folders_exist_and_are_slow(folder: str) -> None:
    assert is_slow(next((TESTS / folder).glob("test_*.py")), "test_anything")


def test_the_suffix_of_a_file_may_be_slow() -> None:
    assert is_slow(TESTS / "matching" / "test_alignment_scale.py", "test_anything")
    assert not is_slow(TESTS / "matching" / "test_alignment.py", "test_anything", "tmp_path")


def test_profiles_differ_in_their_examples() -> None:
    assert [examples(600, profile) for profile in (QUICK, NORMAL, THOROUGH)] == [10, 150, 600]
    assert examples(60, NORMAL) == 25
