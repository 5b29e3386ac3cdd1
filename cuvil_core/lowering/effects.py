"""Single values that steer the call: extents that become known, conditions that must hold."""

from cuvil_core.ir import Op, Value
from cuvil_core.lowering.compose import Body
from cuvil_core.lowering.maps import write
from cuvil_core.lowering.world import World
from cuvil_core.program import Assert, Bind


def lower_effect(world: World, op: Op) -> None:
    """The one element into a buffer, then a Bind or an Assert of it; readers see the operand itself."""
    buffer = _element(world, op.operands[0])
    if op.name == "bind":
        world.statements.append(Bind(str(op.dims("symbol")[0]), buffer, world.origin))
    else:
        world.statements.append(Assert(buffer, op.text("text")))


def _element(world: World, value: Value) -> str:
    """The buffer whose element 0 is the value; made where it lies nowhere, or among others."""
    place = world.placement(value)
    if place is not None and place.offset == 0:
        return place.buffer
    made = world.temporary(value.dtype, ())
    write(world, [(value, made)], Body(world, None))
    return made.buffer
