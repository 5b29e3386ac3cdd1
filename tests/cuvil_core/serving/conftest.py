"""One server for the tests of a file."""

from collections.abc import Iterator

import pytest

import handmade
import serving_process


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[serving_process.Server]:
    """A ready server of the handmade program."""
    folder = tmp_path_factory.mktemp("serving")
    (folder / "a.cuvil").write_bytes(handmade.artifact())
    with serving_process.running(folder, serving_process.settings_for(folder / "a.cuvil")) as running:
        yield running
