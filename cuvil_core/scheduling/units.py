"""An op of the outer level as a unit of scheduling: its root, and what its body reads."""

from cuvil_core.ir import Op, Value

ROOTS = frozenset(("conv", "dot", "reduce", "window_reduce", "arg_reduce"))
"""Primitives that need a kernel of their own kind; all others are expressions over an index."""

SERIAL = {"prefix_reduce": "prefix", "scatter": "scatter"}
"""Primitives whose kernels go turn by turn → their strategy; they stand in no region."""


def body_ops(op: Op) -> tuple[Op, ...]:
    """The primitives of a region, or the op itself."""
    return (op,) if op.region is None else op.region.ops


def root_of(op: Op) -> Op | None:
    """The first primitive that is no expression, None for pure expressions."""
    return next((one for one in body_ops(op) if one.name in ROOTS), None)


def outer_operand(op: Op, value: Value) -> Value | None:
    """The outer value behind a value of the body, None where the body computes it."""
    if op.region is None:
        return value
    if value in op.region.inputs:
        return op.operands[op.region.inputs.index(value)]
    return None


def reads_channels_late(op: Op) -> bool:
    """True for readers that need a value's bytes without gaps."""
    root = root_of(op)
    return op.name == "reshape" or (root is not None and root.name == "dot")
