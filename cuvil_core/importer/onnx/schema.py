"""Checks the dtypes of a node's inputs against ONNX's own schema."""

from dataclasses import replace

import onnx

from cuvil_core.importer.onnx.entry import Operands
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import DType, Element

_NAMES: dict[DType, str] = {DType.FLOAT32: "tensor(float)", DType.FLOAT64: "tensor(double)"}


def _name(operand: Tensor) -> str:
    """ONNX's name of the tensor's type, or of the sequence's."""
    if operand.items is not None:
        return f"seq({_name(replace(operand, items=None))})"
    if operand.element is None:
        return _NAMES.get(operand.dtype, f"tensor({operand.dtype})")
    spelt = operand.element.value.replace("_", "")
    plain = spelt.removesuffix("fnu") if operand.element is Element.FLOAT8_E8M0 else spelt
    return f"tensor({plain.removesuffix('fn') if operand.element is Element.FLOAT4_E2M1 else plain})"


def _kind(operand: Tensor) -> str:
    """The same for people."""
    kind = str(operand.element or operand.dtype)
    return kind if operand.items is None else f"sequence of {kind}"


def check_types(node: Node, operands: Operands) -> None:
    """Return when every dtype is one that the op's schema names and those of one type parameter agree."""
    schema = onnx.defs.get_schema(node.op_type, node.opset, node.domain)
    allowed = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    bound: dict[str, str] = {}
    for at, operand in enumerate(operands):
        formal = schema.inputs[min(at, len(schema.inputs) - 1)]
        if operand is None:
            continue
        name, kind = _name(operand), _kind(operand)
        types = allowed.get(formal.type_str, [formal.type_str])
        if name not in types and f"optional({name})" not in types:
            raise node.broken(f"its input {at} has dtype {kind}, which ONNX does not allow there")
        shares = formal.type_str in allowed and formal.is_homogeneous
        if shares and bound.setdefault(formal.type_str, kind) != kind:
            raise node.broken(f"its input {at} has dtype {kind} beside {bound[formal.type_str]}")
