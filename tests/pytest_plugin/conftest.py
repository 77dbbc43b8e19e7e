"""What every test of the plugin starts from."""

import pytest

from tests.pytest_plugin.project import Project


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A folder with evals in which pytest is run."""
    # Other people's plugins cost more time than the tests do.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "120")
    return Project(pytester)
