"""Opsets 1 to 6, written anew as opset 7 writes them: the first one that the translation table knows."""

from collections.abc import Callable
from dataclasses import replace

from onnx import AttributeProto, TensorProto, helper

from cuvil_core.importer.onnx.context import Context, resolve_axis
from cuvil_core.importer.onnx.entry import Operands, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor, to_content
from cuvil_core.ir import DType

FIRST_TRANSLATED = 7
"""The least opset that entries of the table are written for."""

Step = Callable[[Context, Node, Operands], tuple[Node, Operands]]


def upgraded(context: Context, node: Node, operands: Operands) -> tuple[Node, Operands]:
    """The node as opset 7 writes it; a newer one, or one of another domain, as it is."""
    if node.domain or node.opset >= FIRST_TRANSLATED:
        return node, operands
    before, step = UPGRADES.get(node.op_type, (0, _as_it_is))
    node, operands = step(context, node, operands) if node.opset < before else (node, operands)
    return replace(node, opset=FIRST_TRANSLATED), operands


def _as_it_is(context: Context, node: Node, operands: Operands) -> tuple[Node, Operands]:
    return node, operands


def _having(node: Node, **attributes: AttributeProto) -> Node:
    return replace(node, attributes={**node.attributes, **attributes})


def _broadcast(context: Context, node: Node, operands: Operands) -> tuple[Node, Operands]:
    """With `broadcast` B lies along A from `axis` on, or along A's last axes; without it both have one shape."""
    a, b = need(node, operands, 0), need(node, operands, 1)
    axis = node.integer("axis", a.rank - b.rank)
    axis = axis + a.rank if axis < 0 and node.has("axis") else axis
    if not 0 <= axis <= a.rank - b.rank or (axis and not node.flag("broadcast", False)):
        raise node.broken(f"its second input of rank {b.rank} does not lie within the first of rank {a.rank}")
    for at, extent in enumerate(b.shape):
        if extent != 1 or not node.flag("broadcast", False):
            context.guard(extent, a.shape[axis + at])
    return node, (a, context.reshape(b, [*b.shape, *[1] * (a.rank - axis - b.rank)]))


def _slopes(context: Context, node: Node, operands: Operands) -> tuple[Node, Operands]:
    """One slope for all, or one a channel on axis 1."""
    x, slope = need(node, operands, 0), need(node, operands, 1)
    if slope.type.elements == 1:
        return node, (x, context.reshape(slope, ()))
    if slope.rank == 1 and x.rank > 1:
        context.guard(slope.shape[0], x.shape[1])
        return node, (x, context.reshape(slope, [slope.shape[0], *[1] * (x.rank - 2)]))
    return node, operands


def _inference_only(context: Context, node: Node, operands: Operands) -> tuple[Node, Operands]:
    """Training is what `is_test` turns off."""
    if not node.flag("is_test", False):
        raise node.unsupported("training mode (is_test is 0)")
    return node, operands


def _named_dtype(context: Context, node: Node, operands: Operands) -> tuple[Node, Operands]:
    name = node.text("to")
    if name not in dict(TensorProto.DataType.items()):
        raise node.broken(f"there is no element type {name!r}")
    return _having(node, to=helper.make_attribute("to", TensorProto.DataType.Value(name))), operands


def _axis_one(context: Context, node: Node, operands: Operands) -> tuple[Node, Operands]:
    return (node if node.has("axis") else _having(node, axis=helper.make_attribute("axis", 1))), operands


def _pads(context: Context, node: Node, operands: Operands) -> tuple[Node, Operands]:
    return _having(node, pads=helper.make_attribute("pads", node.integers("paddings"), attr_type=_INTS)), operands


def _target_shape(context: Context, node: Node, operands: Operands) -> tuple[Node, Operands]:
    return node, (need(node, operands, 0), _integers(node.integers("shape")))


def _sizes(context: Context, node: Node, operands: Operands) -> tuple[Node, Operands]:
    """The sizes came as an input of the data's own dtype."""
    given = optional(operands, 1)
    return node, operands if given is None else (operands[0], _integers(_whole(context, node, given)))


def _repeats(context: Context, node: Node, operands: Operands) -> tuple[Node, Operands]:
    """So many copies along one axis; both numbers came as inputs of the data's own dtype."""
    x = need(node, operands, 0)
    (tiles,), (axis,) = (_whole(context, node, need(node, operands, at), 1) for at in (1, 2))
    repeats = [1] * x.rank
    repeats[resolve_axis(axis, x.rank)] = tiles
    return node, (x, _integers(repeats))


def _scales(context: Context, node: Node, operands: Operands) -> tuple[Node, Operands]:
    """Height and width of N, C, H, W."""
    if need(node, operands, 0).rank != 4:
        raise node.broken("its input needs N, C, H and W")
    scales = [1.0, 1.0, node.number("height_scale"), node.number("width_scale")]
    return _having(node, scales=helper.make_attribute("scales", scales)), operands


def _whole_power(context: Context, node: Node, operands: Operands) -> tuple[Node, Operands]:
    """The exponent of a norm was a float."""
    power = node.number("p", 2.0)
    if not power.is_integer():
        raise node.unsupported(f"the norm of exponent {power}")
    return _having(node, p=helper.make_attribute("p", int(power))), operands


def _whole(context: Context, node: Node, tensor: Tensor, count: int | None = None) -> list[int]:
    numbers = context.numbers(tensor, "a number of elements")
    if not all(float(number).is_integer() for number in numbers) or count not in (None, len(numbers)):
        raise node.broken(f"{numbers} are no whole numbers, or not as many as it needs")
    return [int(number) for number in numbers]


def _integers(numbers: "tuple[int, ...] | list[int]") -> Tensor:
    return Tensor.of_content(DType.INT64, to_content(list(numbers), (len(numbers),)))


_INTS = AttributeProto.INTS
_BROADCASTING = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Pow", "Sub", "Xor")
UPGRADES: dict[str, tuple[int, Step]] = {
    **dict.fromkeys(_BROADCASTING, (7, _broadcast)),
    "BatchNormalization": (7, _inference_only),
    "Cast": (6, _named_dtype),
    "Concat": (4, _axis_one),
    "Dropout": (7, _inference_only),
    "GlobalLpPool": (2, _whole_power),
    "LpPool": (2, _whole_power),
    "PRelu": (7, _slopes),
    "Pad": (2, _pads),
    "Reshape": (5, _target_shape),
    "Split": (2, _sizes),
    "Tile": (6, _repeats),
    "Upsample": (7, _scales),
}
"""Op → (the opset that brought the form of opset 7, how to write an older node in it). All others only dropped
`consumed_inputs` or gained attributes whose defaults are the old meaning."""
