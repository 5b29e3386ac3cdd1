"""Constants as passes see them: small arrays, perhaps stretched by broadcast_to."""

from typing import Any, TypeAlias

import numpy as np

from cuvil_core.ir import Dim, Value
from cuvil_core.reference import array_of, payload_of
from cuvil_core.rewriting import Editor, Facts

Array: TypeAlias = np.ndarray[Any, Any]


def small_constant(value: Value, facts: Facts) -> Array | None:
    """The array of a constant before it is stretched, None for anything else."""
    op = facts.producer(value, "broadcast_to")
    payload = facts.payload(op.operands[0] if op is not None else value)
    return None if payload is None else array_of(payload)


def per_channel(value: Value, axis: int, facts: Facts) -> Array | None:
    """One number a channel (or one for all, shape (1,)) when the constant varies along no other axis of its shape."""
    array = small_constant(value, facts)
    if array is None:
        return None
    own_axis = axis - (value.type.rank - array.ndim)
    others = [extent for at, extent in enumerate(array.shape) if at != own_axis]
    return array.reshape(-1) if all(extent == 1 for extent in others) and array.size else None


def merged(name: str, a: Array, b: Array) -> Array | None:
    """a + b or a * b of constants; None where that overflows, or vanishes everywhere, though neither of them does.

    x * a * b may be finite where a * b is not, so such constants stay apart. Single products of weights may vanish:
    next to the other weights they are nothing.
    """
    with np.errstate(all="ignore"):
        result = np.asarray(a + b if name == "add" else a * b)
    wide_a, wide_b = np.broadcast_arrays(a, b)
    overflows = np.isfinite(wide_a) & np.isfinite(wide_b) & ~np.isfinite(result)
    vanishes = name == "mul" and bool(a.any() and b.any()) and not result.any()
    return None if overflows.any() or vanishes else result


def along(vector: Array, axis: int, rank: int) -> Array:
    """A vector laid along an axis, right-aligned: shape (C, 1, …) with rank - axis entries."""
    return vector.reshape(-1, *[1] * (rank - axis - 1))


def stretched(editor: Editor, array: Array, shape: tuple[Dim, ...]) -> Value:
    """The array as a constant, stretched to the shape."""
    constant = editor.constant(payload_of(array))
    return constant if constant.shape == shape else editor.emit("broadcast_to", constant, shape=shape)
