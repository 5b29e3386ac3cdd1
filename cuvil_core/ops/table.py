"""All primitives by name, and the answers that the IR asks of them."""

from collections.abc import Mapping

from cuvil_core.errors import ModelError
from cuvil_core.ir import Attribute, Block, GraphBuilder
from cuvil_core.ops import (
    contraction,
    control,
    effect,
    elementwise,
    leaf,
    movement,
    ordering,
    reduction,
    region,
    serial,
)
from cuvil_core.ops.spec import Group, OpSpec, Types

FAMILIES = (leaf, elementwise, movement, reduction, serial, contraction, ordering, effect, region, control)
OPS: dict[str, OpSpec] = {spec.name: spec for family in FAMILIES for spec in family.SPECS}
_ELEMENTWISE = frozenset({Group.UNARY, Group.BINARY, Group.TERNARY})


class TableRules:
    """`cuvil_core.ir.Rules` by the table."""

    def infer(
        self,
        name: str,
        operands: Types,
        attributes: Mapping[str, Attribute],
        region: Block | None,
        blocks: tuple[Block, ...] = (),
    ) -> Types:
        """Result types; ModelError for an unknown op, wrong operands or wrong attributes."""
        return spec_of(name).infer(operands, attributes, region, blocks)


RULES = TableRules()


def spec_of(name: str) -> OpSpec:
    """The entry of a primitive; ModelError when the table has none."""
    spec = OPS.get(name)
    if spec is None:
        raise ModelError(f"There is no primitive {name}; see docs/how-to/add-an-op.md.")
    return spec


def is_elementwise(name: str) -> bool:
    """True for unary (cast included), binary and ternary primitives."""
    spec = OPS.get(name)
    return spec is not None and spec.group in _ELEMENTWISE


def new_builder() -> GraphBuilder:
    """A builder that types ops by the table."""
    return GraphBuilder(RULES)
