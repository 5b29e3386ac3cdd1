"""Fixtures of every room: golden texts."""

from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update-golden: write the golden texts anew, to be read in the diff before they are committed."""
    parser.addoption("--update-golden", action="store_true", help="write golden texts anew instead of comparing")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Give `golden(name, text)`: compare text with `golden/NAME` beside the test, or write it under --update-golden."""
    folder = Path(request.path).parent / "golden"
    update = bool(request.config.getoption("--update-golden"))

    def check(name: str, text: str) -> None:
        path = folder / name
        if update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        assert path.exists(), f"{path} is missing: run pytest with --update-golden and read what it writes"
        assert text == path.read_text(), f"{name} differs from its golden text; --update-golden writes it anew"

    return check
