"""The translation table and its page."""

from pathlib import Path

import onnx
import pytest

from cuvil_core.importer.onnx.old_opsets import FIRST_TRANSLATED
from cuvil_core.importer.onnx.reading import NEWEST_OPSET, OLDEST_OPSET
from cuvil_core.importer.onnx.table import FAMILIES, TABLE

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "onnx-ops.md"


def _page() -> str:
    """The page as the table says it."""
    lines = [
        "# ONNX ops that Cuvil compiles",
        "",
        f"Opsets {OLDEST_OPSET} to {NEWEST_OPSET} of the default domain. What is not on this page is refused by an",
        "error that names it; `docs/how-to/add-an-op.md` says how to add an op. Graphs may hold bool, integers of 8 to",
        "64 bits, float16, bfloat16, float32, float64, and narrow types (float8, float4, 4- and 2-bit integers); what",
        "is computed in each is in `docs/limits.md`.",
        "",
        "| family | ops (opsets, where not all) |",
        "|---|---|",
    ]
    for family in FAMILIES:
        names = sorted({entry.op_type for entry in family.ENTRIES})
        spelled = ", ".join(_spelled(name) for name in names)
        lines.append(f"| {family.__name__.rsplit('.', 1)[-1]} | {spelled} |")
    lines += [
        "",
        "What the table lacks or refuses is translated by the function body of ONNX's schema, if there is one, as",
        f"far as the ops in that body are. These have a body alone: {', '.join(_by_body())}.",
        "",
        f"Opsets {OLDEST_OPSET} to {FIRST_TRANSLATED - 1} are written as opset {FIRST_TRANSLATED} writes them.",
        "Functions that a model brings along go before all of these.",
    ]
    return "\n".join(lines) + "\n"


def _by_body() -> list[str]:
    """The ops without an entry that have a body in some opset."""
    schemas = onnx.defs.get_all_schemas_with_history()
    bodies = {s.name for s in schemas if s.has_function or s.has_context_dependent_function}
    return sorted(bodies - TABLE.keys())


def _spelled(name: str) -> str:
    since = min(entry.since for entry in TABLE[name])
    ends = [entry.until for entry in TABLE[name]]
    last = None if None in ends else max(end for end in ends if end is not None)
    if last is not None:
        return f"{name} (to {last})"
    return name if since <= FIRST_TRANSLATED else f"{name} (from {since})"


def test_the_page_is_the_table(request: pytest.FixtureRequest) -> None:
    """docs/reference/onnx-ops.md names exactly the ops of the table; --update-golden writes it anew."""
    if request.config.getoption("--update-golden"):
        PAGE.parent.mkdir(parents=True, exist_ok=True)
        PAGE.write_text(_page())
    assert PAGE.read_text() == _page()


def test_ranges_of_one_op_do_not_overlap() -> None:
    """At most one entry covers an op in an opset, so that the order of families does not matter."""
    for name, entries in TABLE.items():
        for opset in range(OLDEST_OPSET, NEWEST_OPSET + 1):
            assert sum(entry.covers(opset) for entry in entries) <= 1, f"{name} in opset {opset}"
