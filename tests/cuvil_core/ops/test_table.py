"""The table of primitives: complete, and strict about shapes."""

from typing import Any

import pytest

from cuvil_core.errors import ModelError
from cuvil_core.ir import Dim, DType, Payload, TensorType
from cuvil_core.ops import OPS, RULES
from cuvil_core.reference import REFERENCE
from cuvil_core.reference.control import CONTROL

N, H = Dim.symbol("N"), Dim.symbol("H")
F32, I64, BOOL = DType.FLOAT32, DType.INT64, DType.BOOL


def _t(*shape: Dim | int, dtype: DType = F32) -> TensorType:
    return TensorType.of(dtype, shape)


def _dims(*extents: Dim | int) -> tuple[Dim, ...]:
    return tuple(map(Dim.of, extents))


CONV = {"strides": (2, 2), "pads": (1, 1, 1, 1), "dilations": (1, 1), "base_dilations": (1, 1), "groups": 1}
POOL = {"kind": "max", "window": (2, 2), "strides": (2, 2), "pads": (0, 0, 0, 0), "dilations": (1, 1)}
DOT = {"batch_a": (0,), "batch_b": (0,), "contract_a": (2,), "contract_b": (1,)}

ACCEPTED: list[tuple[str, tuple[TensorType, ...], dict[str, Any], str]] = [
    ("add", (_t(N, 3), _t(N, 3)), {}, "float32[N, 3]"),
    ("add", (_t(2 * H), _t(N)), {}, "float32[N]"),
    ("eq", (_t(2, dtype=I64), _t(2, dtype=I64)), {}, "bool[2]"),
    ("cast", (_t(2),), {"dtype": I64}, "int64[2]"),
    ("bitcast", (_t(2),), {"dtype": DType.UINT32}, "uint32[2]"),
    ("bit_xor", (_t(2, dtype=I64), _t(2, dtype=I64)), {}, "int64[2]"),
    ("shift_left", (_t(2, dtype=DType.UINT8), _t(2, dtype=DType.UINT8)), {}, "uint8[2]"),
    ("atanh", (_t(N),), {}, "float32[N]"),
    ("select", (_t(2, dtype=BOOL), _t(2), _t(2)), {}, "float32[2]"),
    ("broadcast_to", (_t(3, 1),), {"shape": _dims(N, 3, H)}, "float32[N, 3, H]"),
    ("reshape", (_t(N, 6),), {"shape": _dims(N, 2, 3)}, "float32[N, 2, 3]"),
    ("transpose", (_t(N, 3, H),), {"perm": (2, 0, 1)}, "float32[H, N, 3]"),
    ("slice", (_t(H),), {"starts": _dims(H - 1), "sizes": _dims(H), "steps": (-1,)}, "float32[H]"),
    ("pad", (_t(H),), {"low": _dims(1), "high": _dims(H), "value": Payload.scalar(F32, 0.0)}, "float32[2*H + 1]"),
    ("concat", (_t(N, 2), _t(N, H)), {"axis": 1}, "float32[N, H + 2]"),
    ("gather", (_t(9, 4), _t(N, 5, dtype=I64)), {"axis": 0}, "float32[N, 5, 4]"),
    ("in_bounds", (_t(N, 5, dtype=I64),), {"extent": _dims(9)}, "int64[N, 5]"),
    ("reduce", (_t(N, 3, H),), {"kind": "sum", "axes": (0, 2)}, "float32[3]"),
    ("prefix_reduce", (_t(N, 3),), {"kind": "sum", "axis": 0}, "float32[N, 3]"),
    ("scatter", (_t(9, H), _t(N, dtype=I64), _t(N, H)), {"kind": "sum"}, "float32[9, H]"),
    ("arg_reduce", (_t(N, 3),), {"kind": "max", "axis": 1, "select_last": False}, "int64[N]"),
    ("window_reduce", (_t(N, 3, H, 8),), POOL, "float32[N, 3, H//2, 4]"),
    ("dot", (_t(N, 4, 5), _t(N, 5, 6)), DOT, "float32[N, 4, 6]"),
    ("conv", (_t(N, 3, H, 9), _t(8, 3, 3, 3)), CONV, "float32[N, 8, (H + 1)//2, 5]"),
    ("iota", (), {"shape": _dims(N, 2), "axis": 0, "dtype": I64}, "int64[N, 2]"),
    ("dim_vector", (), {"dims": _dims(N, H)}, "int64[2]"),
]
REFUSED: list[tuple[str, tuple[TensorType, ...], dict[str, Any], str]] = [
    ("add", (_t(2), _t(3)), {}, "the extents 2 and 3 differ"),
    ("add", (_t(N), _t(N + 1)), {}, "differ"),
    ("add", (_t(2), _t(2, dtype=I64)), {}, "different dtypes"),
    ("add", (_t(2),), {}, "takes 2 operands, not 1"),
    ("exp", (_t(2, dtype=I64),), {}, "int64 is not defined"),
    ("not", (_t(2),), {}, "not defined"),
    ("prefix_reduce", (_t(2),), {"kind": "sum", "axis": 1}, "axis 1 is outside"),
    ("prefix_reduce", (_t(2),), {"kind": "mean", "axis": 0}, "kind must be"),
    ("prefix_reduce", (_t(2, dtype=BOOL),), {"kind": "sum", "axis": 0}, "bool is not defined"),
    ("scatter", (_t(2), _t(3), _t(3)), {"kind": "set"}, "vector of int64"),
    ("scatter", (_t(2), _t(3, dtype=I64), _t(4)), {"kind": "set"}, "differ"),
    ("scatter", (_t(2, 5), _t(3, dtype=I64), _t(3, 4)), {"kind": "set"}, "differ"),
    ("scatter", (_t(2), _t(3, dtype=I64), _t(3, 1)), {"kind": "set"}, "different ranks"),
    ("scatter", (_t(2, dtype=BOOL), _t(3, dtype=I64), _t(3, dtype=BOOL)), {"kind": "sum"}, "bool is not defined"),
    ("add", (_t(2), _t(2)), {"axis": 1}, "attributes axis"),
    ("bitcast", (_t(2),), {"dtype": I64}, "differ in width"),
    ("bitcast", (_t(2, dtype=BOOL),), {"dtype": DType.UINT8}, "bool is not defined"),
    ("bit_not", (_t(2),), {}, "float32 is not defined"),
    ("shift_right", (_t(2, dtype=I64), _t(2, dtype=I64)), {}, "int64 is not defined"),
    ("tan", (_t(2, dtype=I64),), {}, "int64 is not defined"),
    ("cast", (_t(2),), {"dtype": 3}, "must be a dtype"),
    ("broadcast_to", (_t(2),), {"shape": _dims(3)}, "does not stretch"),
    ("reshape", (_t(6),), {"shape": _dims(4)}, "do not fill"),
    ("transpose", (_t(2, 3),), {"perm": (0, 0)}, "does not permute"),
    ("slice", (_t(4),), {"starts": _dims(2), "sizes": _dims(3), "steps": (1,)}, "outside of extent 4"),
    ("pad", (_t(4),), {"low": _dims(-1), "high": _dims(0), "value": Payload.scalar(F32, 0.0)}, "negative"),
    ("concat", (_t(2, 2), _t(3, 2)), {"axis": 1}, "differ"),
    ("gather", (_t(4), _t(2)), {"axis": 0}, "must be integers"),
    ("in_bounds", (_t(4),), {"extent": _dims(9)}, "must be integers"),
    ("reduce", (_t(2),), {"kind": "sum", "axes": (1,)}, "outside of rank 1"),
    ("reduce", (_t(2),), {"kind": "mean", "axes": (0,)}, "kind must be"),
    ("window_reduce", (_t(1, 1, 1, 1),), POOL, "does not fit"),
    ("dot", (_t(N, 4, 5), _t(N, 6, 6)), DOT, "differ"),
    ("conv", (_t(N, 3, 9, 9), _t(8, 4, 3, 3)), CONV, "differ"),
    ("conv", (_t(N, 3, 9, 9), _t(8, 3, H, 3)), CONV, "must be fixed"),
]


def test_every_primitive_has_its_numbers() -> None:
    """Each op of the table but region has a function in the reference, and the reference has no other."""
    assert OPS.keys() - {"region"} == REFERENCE.keys() | CONTROL.keys()


@pytest.mark.parametrize(("name", "operands", "attributes", "result"), ACCEPTED)
def test_shape_rules(name: str, operands: tuple[TensorType, ...], attributes: dict[str, Any], result: str) -> None:
    """Each rule gives the type that its page states."""
    (type,) = RULES.infer(name, operands, attributes, None)
    assert str(type) == result


@pytest.mark.parametrize(("name", "operands", "attributes", "fault"), REFUSED)
def test_refusals(name: str, operands: tuple[TensorType, ...], attributes: dict[str, Any], fault: str) -> None:
    """What does not fit is refused in a sentence that names the op and the cure."""
    with pytest.raises(ModelError, match=rf"{name}.*{fault}.*correct"):
        RULES.infer(name, operands, attributes, None)
