"""How far apart two numbers of a call are known to be, though neither is known: `i` and `i + 1` in a loop."""

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Op, Value

_SAME_NUMBER = frozenset({"reshape", "broadcast_to", "cast", "slice", "transpose"})
"""Ops that hand on the only element of their operand."""


def distance(context: Context, start: Tensor, end: Tensor) -> int | None:
    """end - start, both of one integer, where they are sums of one value and constants; None where that is not seen.

    Sums that wrap, or lose bits by a cast, are not looked at: who relies on the distance checks it in the call.
    """
    producers = {result: op for op in context.builder.ops for result in op.results}
    (base, first), (other, last) = (_rooted(context.value(one), producers) for one in (start, end))
    return last - first if base is other else None


def _rooted(value: Value, producers: dict[Value, Op]) -> tuple[Value, int]:
    """A value, and the constant that was added to it."""
    offset = 0
    while (op := producers.get(value)) is not None:
        if op.name in _SAME_NUMBER and op.operands[0].type.elements == 1:
            value = op.operands[0]
            continue
        added = _added(op, producers)
        if added is None:
            break
        value, offset = added[0], offset + added[1]
    return value, offset


def _added(op: Op, producers: dict[Value, Op]) -> tuple[Value, int] | None:
    """The operand to which the op adds a constant, and that constant."""
    if op.name not in ("add", "sub") or op.result.type.elements != 1:
        return None
    left, right = (_constant(operand, producers) for operand in op.operands)
    if right is not None:
        return op.operands[0], right if op.name == "add" else -right
    return (op.operands[1], left) if left is not None and op.name == "add" else None


def _constant(value: Value, producers: dict[Value, Op]) -> int | None:
    op = producers.get(value)
    while op is not None and op.name in _SAME_NUMBER:
        op = producers.get(op.operands[0])
    number = op.payload().item() if op is not None and op.name == "constant" else None
    return int(number) if isinstance(number, int) else None
