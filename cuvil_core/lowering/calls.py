"""Calls of the support library: operands as whole row-major buffers, scratch beside the result."""

from cuvil_core.ir import Dim, DType, Op, Value, product
from cuvil_core.lowering.compose import Body
from cuvil_core.lowering.maps import copied, write
from cuvil_core.lowering.world import World
from cuvil_core.program import Call
from cuvil_core.scheduling import PLAIN


def lower_call(world: World, op: Op) -> None:
    """One Call that makes the op's result."""
    operands = [_whole(world, value) for value in op.operands]
    target = world.place(op.result).buffer
    name, extents, scratch = _CALLS[op.name](op)
    rooms = [target] if scratch is None else [target, world.temporary(DType.INT64, (scratch,)).buffer]
    world.statements.append(Call(name, (*operands, *rooms), extents, world.origin))


def _whole(world: World, value: Value) -> str:
    """A buffer that holds the value from its element 0, without gaps."""
    place = copied(world, value, PLAIN, Body(world, None))
    if place.contiguous and place.offset == 0:
        return place.buffer
    made = world.temporary(value.dtype, value.shape)
    write(world, [(value, made)], Body(world, None))
    return made.buffer


Form = tuple[str, tuple[Dim, ...], Dim | None]
"""The function, what it is told, elements of scratch."""


def _sort(op: Op) -> Form:
    source = op.operands[0]
    length = source.shape[-1]
    flag = Dim.of(int(bool(op.attributes["descending"])))
    return f"cuvil_sort_{source.dtype}", (product(source.shape[:-1]), length, flag), length


def _positions(op: Op) -> Form:
    return "cuvil_positions", (op.operands[0].shape[0], *op.dims("count")), None


def _suppress(op: Op) -> Form:
    flag = Dim.of(int(bool(op.attributes["centered"])))
    return "cuvil_suppress", (*op.result.shape, flag), op.result.shape[2] * 2


_CALLS = {"sort_order": _sort, "positions": _positions, "suppress": _suppress}
