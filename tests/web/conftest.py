"""A store of one execution with repeats, and the viewer that shows it."""

from collections.abc import Iterator

import pytest

from tests.support.command import Command, command_in
from tests.support.viewer import store_file, write_store
from tests.support.viewer_server import Served, serve


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Return a folder with a store."""
    run = command_in(tmp_path_factory.mktemp("viewer"))
    write_store(run, "--repeat", "2")
    return run


@pytest.fixture(scope="module")
def viewer(project: Command) -> Iterator[Served]:
    """Return the viewer of that store."""
    with serve(store_file(project)) as served:
        yield served
