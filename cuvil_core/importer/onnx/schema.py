"""Checks the dtypes of a node's inputs against ONNX's own schema."""

import onnx

from cuvil_core.importer.onnx.entry import Operands
from cuvil_core.importer.onnx.node import Node
from cuvil_core.ir import DType

_NAMES: dict[DType, str] = {DType.FLOAT32: "tensor(float)", DType.FLOAT64: "tensor(double)"}


def check_types(node: Node, operands: Operands) -> None:
    """Return when every dtype is one that the op's schema names and those of one type parameter agree."""
    schema = onnx.defs.get_schema(node.op_type, node.opset, node.domain)
    allowed = {constraint.type_param_str: constraint.allowed_type_strs for constraint in schema.type_constraints}
    bound: dict[str, DType] = {}
    for at, operand in enumerate(operands):
        formal = schema.inputs[min(at, len(schema.inputs) - 1)]
        if operand is None:
            continue
        name = _NAMES.get(operand.dtype, f"tensor({operand.dtype})")
        if name not in allowed.get(formal.type_str, [formal.type_str]):
            raise node.broken(f"its input {at} has dtype {operand.dtype}, which ONNX does not allow there")
        shares = formal.type_str in allowed and formal.is_homogeneous
        if shares and bound.setdefault(formal.type_str, operand.dtype) is not operand.dtype:
            raise node.broken(f"its input {at} has dtype {operand.dtype} beside {bound[formal.type_str]}")
