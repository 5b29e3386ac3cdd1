"""The reference page names every setting and every metric that the code has."""

import re
from pathlib import Path

from cuvil_operator.metrics import Metrics

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/reference/controller.md").read_text()
TYPES = {"counter": "_total", "info": "_info"}


def test_every_metric_is_on_the_page() -> None:
    """And the page names no metric that the controller does not have."""
    families = Metrics().registry.collect()
    known = {family.name + TYPES.get(family.type, "") for family in families}
    told = set(re.findall(r"^\| `(cuvil_(?:operator|model)_\w+)`", PAGE, re.MULTILINE))
    assert told == known


def test_every_setting_is_on_the_page() -> None:
    """And the page names no setting that is not read."""
    source = (ROOT / "operator/cuvil_operator/settings.py").read_text()
    read = set(re.findall(r"text\.\w+\(\s*\"([A-Z_]+)\"", source))
    told = {
        name
        for line in PAGE.splitlines()
        if line.startswith("| `CUVIL_")
        for name in re.findall(r"`CUVIL_(\w+)`", line)
    }
    assert read and told == read
