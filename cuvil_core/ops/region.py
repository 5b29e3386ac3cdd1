"""The group of primitives that one kernel computes."""

from cuvil_core.errors import InternalError
from cuvil_core.ir import Block, Op
from cuvil_core.ops.spec import AttributeKind, Attributes, Group, OpSpec, Types, require

KINDS: dict[str, frozenset[str]] = {
    "contraction": frozenset({"dot", "conv"}),
    "reduction": frozenset({"reduce"}),
    "elementwise": frozenset(),
}
"""Region kind → names of which exactly one op is the root; an elementwise region has no root."""


def roots(kind: str, block: Block) -> list[Op]:
    """The ops of the body that are roots of that kind."""
    return [op for op in block.ops if op.name in KINDS[kind]]


def _region(operands: Types, attributes: Attributes, block: Block) -> Types:
    kind = attributes.text("kind")
    require(kind in KINDS, f"kind must be one of {', '.join(KINDS)}")
    require(len(roots(kind, block)) == (kind != "elementwise"), f"a {kind} region has another number of roots")
    for op in block.ops:
        scalar = op.name == "constant" and op.payload().elements == 1
        foreign = op.region is not None or (op.name == "constant" and not scalar)
        require(not foreign, f"{op.name} may not stand in a region, but for constants of one element")
    return tuple(value.type for value in block.outputs)


def _no_rule(operands: Types, attributes: Attributes) -> Types:
    raise InternalError("A region is typed by its body; report this as a fault of Cuvil.")


SPECS: tuple[OpSpec, ...] = (
    OpSpec("region", Group.REGION, None, _no_rule, {"kind": AttributeKind.TEXT}, region_rule=_region),
)
