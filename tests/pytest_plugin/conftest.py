"""Fixtures for tests of the pytest plugin."""

import pytest

from tests.support.pytest_project import Project


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a folder with evals in which pytest is run."""
    # Loading other plugins takes longer than the tests.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "120")
    return Project(pytester)
