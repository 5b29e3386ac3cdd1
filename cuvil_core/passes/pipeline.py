"""The ordered lists of passes by optimization level, and the runner that checks each step."""

from collections.abc import Sequence

from cuvil_core.errors import InputError, InternalError
from cuvil_core.ir import Graph, VerifyError, verify
from cuvil_core.ops import RULES
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
from cuvil_core.passes.properties import Pass, Property, holds
from cuvil_core.passes.prove_indices import ProveIndices
from cuvil_core.passes.prune_control import PruneControl
from cuvil_core.passes.remove_dead import RemoveDead
from cuvil_core.passes.require_extents import RequireExtents
from cuvil_core.passes.settle_extents import SettleExtents
from cuvil_core.passes.simplify_algebra import SimplifyAlgebra
from cuvil_core.passes.simplify_movement import SimplifyMovement
from cuvil_core.passes.sink_constants import SinkConstants
from cuvil_core.rewriting import Note, PassResult, in_blocks, renumber

_ENTRANCE: tuple[Pass, ...] = (SettleExtents(), RequireExtents())
"""What guards say comes first, before dead code goes: an op whose result nobody needs still refuses what it must."""
_CLEAN: tuple[Pass, ...] = (*_ENTRANCE, RemoveDead())
_SIMPLE: tuple[Pass, ...] = (
    *_ENTRANCE,
    RemoveDead(),
    Canonicalize(),
    FoldConstants(),
    InlineControl(),
    PruneControl(),
    SinkConstants(),
    MergeCommon(),
    SimplifyMovement(),
    SimplifyAlgebra(approximate=False),
    FoldConstants(),
    FoldScales(),
    ExpandTransposedConvs(),
    LookUpOneHots(),
    FoldConstants(),
    SinkConstants(),
    ProveIndices(),
    SimplifyMovement(),
    MergeCommon(),
    RemoveDead(),
)
_FUSING: tuple[Pass, ...] = (
    *_ENTRANCE,
    RemoveDead(),
    Canonicalize(),
    FoldConstants(),
    InlineControl(),
    PruneControl(),
    SinkConstants(),
    MergeCommon(),
    SimplifyMovement(),
    SimplifyAlgebra(approximate=True),
    FoldConstants(),
    FoldScales(),
    ExpandTransposedConvs(),
    LookUpOneHots(),
    FoldConstants(),
    SinkConstants(),
    ProveIndices(),
    SimplifyMovement(),
    MergeCommon(),
    FuseContractions(),
    FuseReductions(),
    FuseElementwise(),
    RemoveDead(),
)
PIPELINES: tuple[tuple[Pass, ...], ...] = (_CLEAN, _SIMPLE, _FUSING, _FUSING)
"""By optimization level 0–3. Folding stands three times since each neighbour makes new constants."""


def run(graph: Graph, level: int = 2) -> tuple[Graph, tuple[Note, ...]]:
    """The optimized graph and the notes of all passes; InputError for a level outside of 0..3."""
    if not 0 <= level < len(PIPELINES):
        raise InputError(f"There is no optimization level {level}; take one of 0..{len(PIPELINES) - 1}.")
    return run_passes(graph, PIPELINES[level])


def run_passes(graph: Graph, passes: Sequence[Pass]) -> tuple[Graph, tuple[Note, ...]]:
    """The passes in order, `requires`, `ensures` and the verifier checked round each.

    Raises InternalError that names the pass to blame.
    """
    notes: list[Note] = []
    for step in passes:
        result = _applied(step, graph)
        if result.changed:
            _verify(step, result.graph)
        graph = result.graph
        notes.extend(result.notes)
    return renumber(graph), tuple(dict.fromkeys(notes))


def _applied(step: Pass, graph: Graph) -> PassResult:
    """The pass on the outer level, then on the blocks of what it gives, at any depth."""
    _check(step, step.requires, graph, "before")
    outer = step.run(graph)
    inner = in_blocks(outer.graph, lambda block: _applied(step, block))
    _check(step, step.ensures, inner.graph, "after")
    return PassResult(inner.graph, outer.changed or inner.changed, (*outer.notes, *inner.notes))


def _check(step: Pass, properties: frozenset[Property], graph: Graph, when: str) -> None:
    for property in properties:
        if not holds(property, graph):
            raise InternalError(f"{when.title()} the pass {step.name} it must hold that {property.value}; report this.")


def _verify(step: Pass, graph: Graph) -> None:
    try:
        verify(graph, RULES)
    except VerifyError as error:
        raise VerifyError(f"The pass {step.name} broke the graph. {error}") from error
