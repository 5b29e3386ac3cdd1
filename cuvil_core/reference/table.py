"""Primitive → function (op, symbols, operands…) → array."""

from collections.abc import Callable, Mapping

import numpy as np

from cuvil_core.ir import Op
from cuvil_core.reference import contraction, effect, elementwise, movement, ordering, reduction, serial
from cuvil_core.reference.arrays import Array, array_of

Function = Callable[..., Array]
"""(op, symbols, *operands) → array."""


def _plain(function: Callable[..., Array]) -> Function:
    """For functions of operands alone."""

    def call(op: Op, symbols: Mapping[str, int], *operands: Array) -> Array:
        return function(*operands)

    return call


def _with_op(function: Callable[..., Array]) -> Function:
    """For functions that read attributes, but no symbols."""

    def call(op: Op, symbols: Mapping[str, int], *operands: Array) -> Array:
        return function(op, *operands)

    return call


REFERENCE: dict[str, Function] = {
    "constant": _with_op(lambda op: array_of(op.payload())),
    "iota": movement.iota,
    "dim_vector": movement.dim_vector,
    **{name: _plain(function) for name, function in elementwise.UNARY.items()},
    **{name: _plain(function) for name, function in elementwise.BINARY.items()},
    "cast": _with_op(elementwise.cast),
    "bitcast": _with_op(elementwise.bitcast),
    "mod": _with_op(elementwise.modulo),
    "select": _plain(lambda condition, a, b: np.asarray(np.where(condition, a, b))),
    "broadcast_to": movement.broadcast_to,
    "reshape": movement.reshape,
    "transpose": movement.transpose,
    "slice": movement.slice_,
    "pad": movement.pad,
    "concat": _with_op(movement.concat),
    "gather": _with_op(movement.gather),
    "in_bounds": movement.in_bounds,
    "reduce": _with_op(reduction.reduce),
    "window_reduce": _with_op(reduction.window_reduce),
    "arg_reduce": _with_op(reduction.arg_reduce),
    "prefix_reduce": _with_op(serial.prefix_reduce),
    "scatter": _with_op(serial.scatter),
    "dot": _with_op(contraction.dot),
    "conv": _with_op(contraction.conv),
    "sort_order": _with_op(ordering.sort_order),
    "positions": _with_op(ordering.positions),
    "suppress": _with_op(ordering.suppress),
    "bind": effect.bind,
    "check": _with_op(effect.check),
}
"""All primitives but `region`, which the interpreter runs by its body, and control flow, which is in `control`."""
