"""What fixes an extent or ends the call; the value itself goes through."""

from collections.abc import Mapping

from cuvil_core.errors import InputError
from cuvil_core.ir import Op
from cuvil_core.reference.arrays import Array


def bind(op: Op, symbols: Mapping[str, int], value: Array) -> Array:
    """The value, which becomes the extent; InputError below 0."""
    if int(value) < 0:
        raise InputError(f"the inputs' values make an extent of {op.provenance} {int(value)}; change them")
    return value


def check(op: Op, condition: Array) -> Array:
    """The condition; InputError where it does not hold."""
    if not condition:
        raise InputError(f"the inputs' values break the model's condition {op.text('text')}; change them")
    return condition
