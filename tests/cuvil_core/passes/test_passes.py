"""Each pass on a small graph: its text after, golden, and the same numbers as before."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from cuvil_core import reference
from cuvil_core.ir import Graph, parse_graph, print_graph, verify
from cuvil_core.ops import RULES
from cuvil_core.passes import Pass
from cuvil_core.passes.canonicalize import Canonicalize
from cuvil_core.passes.expand_transposed_convs import ExpandTransposedConvs
from cuvil_core.passes.fold_constants import FoldConstants
from cuvil_core.passes.fold_scales import FoldScales
from cuvil_core.passes.fuse_contractions import FuseContractions
from cuvil_core.passes.fuse_elementwise import FuseElementwise
from cuvil_core.passes.fuse_reductions import FuseReductions
from cuvil_core.passes.inline_control import InlineControl
from cuvil_core.passes.look_up_one_hots import LookUpOneHots
from cuvil_core.passes.merge_common import MergeCommon
from cuvil_core.passes.properties import holds
from cuvil_core.passes.prove_indices import ProveIndices
from cuvil_core.passes.prune_control import PruneControl
from cuvil_core.passes.remove_dead import RemoveDead
from cuvil_core.passes.require_extents import RequireExtents
from cuvil_core.passes.settle_extents import SettleExtents
from cuvil_core.passes.simplify_algebra import SimplifyAlgebra
from cuvil_core.passes.simplify_movement import SimplifyMovement
from cuvil_core.passes.sink_constants import SinkConstants
from cuvil_core.rewriting import remove_unused, renumber

PASSES: dict[str, Pass] = {
    **{
        step.name: step
        for step in (
            Canonicalize(),
            ExpandTransposedConvs(),
            FoldConstants(),
            FoldScales(),
            FuseContractions(),
            FuseElementwise(),
            FuseReductions(),
            InlineControl(),
            LookUpOneHots(),
            MergeCommon(),
            ProveIndices(),
            PruneControl(),
            RemoveDead(),
            RequireExtents(),
            SettleExtents(),
            SimplifyAlgebra(),
            SimplifyMovement(),
            SinkConstants(),
        )
    },
    "simplify-algebra-approximate": SimplifyAlgebra(approximate=True),
}
CASES = Path(__file__).parent / "cases"


def _same_numbers(before: Graph, after: Graph) -> None:
    rng = np.random.default_rng(0)
    for symbols in ({"N": 2, "H": 3, "K": 2}, {"N": 1, "H": 4, "K": 2}):
        shapes = [tuple(extent.evaluate(symbols) for extent in value.shape) for value in before.inputs]
        named = zip(before.input_names, shapes, strict=True)
        inputs = {name: rng.standard_normal(shape, dtype=np.float32) for name, shape in named}
        got, want = reference.run(after, inputs), reference.run(before, inputs)
        assert got.keys() == want.keys()
        for name, array in want.items():
            np.testing.assert_allclose(got[name], array, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PASSES)
def test_pass(name: str, golden: Callable[[str, str], None]) -> None:
    """The pass changes its case into the golden text, says so, keeps the numbers, and has nothing left to do."""
    step, before = PASSES[name], parse_graph((CASES / f"{name}.ir").read_text())
    verify(before, RULES)
    result = step.run(before)
    verify(result.graph, RULES)
    assert result.changed
    assert all(holds(property, result.graph) for property in step.ensures)
    _same_numbers(before, result.graph)
    notes = "".join(f"// {note}\n" for note in result.notes)
    golden(f"{name}.ir", print_graph(renumber(remove_unused(result.graph))) + notes)
    if not name.startswith("fuse"):
        assert not step.run(result.graph).changed


def test_every_case_has_its_pass() -> None:
    """No case lies about unused, and no pass is without one."""
    assert {path.stem for path in CASES.glob("*.ir")} == PASSES.keys()
