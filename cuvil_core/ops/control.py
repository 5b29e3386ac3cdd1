"""Control flow: ops whose blocks run once, never, or many times. Blocks see their arguments alone."""

from cuvil_core.errors import InternalError
from cuvil_core.ir import Block, Dim, DType, TensorType
from cuvil_core.ops.spec import AttributeKind, Attributes, Group, OpSpec, Types, agree, require

FOREVER = (1 << 63) - 1
"""The number of turns of a loop that only its condition ends."""


def fixed_operands(turns: tuple[Dim, ...], conditional: bool) -> int:
    """How many operands of a loop steer it: its number of turns where no attribute has it, and its condition."""
    return (not turns) + conditional


def _if(operands: Types, attributes: Attributes, blocks: tuple[Block, ...]) -> Types:
    require(len(blocks) == 2, "it needs two blocks")
    require(bool(operands) and operands[0] == TensorType(DType.BOOL, ()), "the condition must be one bool")
    for block in blocks:
        _arguments(block, operands[1:])
    then, otherwise = (tuple(value.type for value in block.outputs) for block in blocks)
    require(len(then) == len(otherwise) >= 1, "the blocks yield different numbers of values")
    return tuple(_common(a, b) for a, b in zip(then, otherwise, strict=True))


def _loop(operands: Types, attributes: Attributes, blocks: tuple[Block, ...]) -> Types:
    turns, carried = attributes.dims("turns"), attributes.integer("carried")
    conditional = attributes.values["conditional"] is True
    require(len(blocks) == 1, "it needs one block")
    require(len(turns) <= 1, "turns is one extent, or none where an operand says how many")
    steering = fixed_operands(turns, conditional)
    require(0 <= carried <= len(operands) - steering, "it carries more values than it has operands")
    wanted = [TensorType(DType.INT64, ())] * (not turns) + [TensorType(DType.BOOL, ())] * conditional
    require(list(operands[:steering]) == wanted, "turns must be one int64 and the condition one bool")
    (body,) = blocks
    _arguments(body, (TensorType(DType.INT64, ()), *operands[steering:]))
    outputs = tuple(value.type for value in body.outputs)
    require(len(outputs) >= conditional + carried, "the body yields too few values")
    if conditional:
        require(outputs[0] == TensorType(DType.BOOL, ()), "the body must yield its condition first")
    start, following = operands[steering : steering + carried], outputs[conditional : conditional + carried]
    rows = outputs[conditional + carried :]
    require(not rows or bool(turns), "rows are stacked only where the most turns are an extent")
    stacked = (TensorType(row.dtype, (*turns, *row.shape)) for row in rows)
    return (*(_common(a, b) for a, b in zip(start, following, strict=True)), *stacked)


def _arguments(block: Block, operands: Types) -> None:
    require(len(block.inputs) == len(operands), "a block has more or fewer arguments than there are operands")
    for value, type in zip(block.inputs, operands, strict=True):
        _common(value.type, type)


def _common(a: TensorType, b: TensorType) -> TensorType:
    """The type of a value that comes by two ways."""
    require(a.dtype is b.dtype, f"a value is {a.dtype} on one way and {b.dtype} on the other")
    require(a.rank == b.rank, "a value has different ranks on two ways")
    return TensorType(a.dtype, tuple(agree(x, y) for x, y in zip(a.shape, b.shape, strict=True)))


def _no_rule(operands: Types, attributes: Attributes) -> Types:
    raise InternalError("Control flow is typed by its blocks; report this as a fault of Cuvil.")


SPECS: tuple[OpSpec, ...] = (
    OpSpec("if", Group.CONTROL, None, _no_rule, blocks_rule=_if),
    OpSpec(
        "loop",
        Group.CONTROL,
        None,
        _no_rule,
        {"turns": AttributeKind.DIMS, "conditional": AttributeKind.FLAG, "carried": AttributeKind.INTEGER},
        blocks_rule=_loop,
    ),
)
