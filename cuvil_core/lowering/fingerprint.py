"""A key that is equal for kernels that are equal but for their names."""

from collections.abc import Hashable
from dataclasses import fields, is_dataclass
from enum import Enum

from cuvil_core.ir import Dim
from cuvil_core.kernel_ir import Kernel, Schedule
from cuvil_core.kernel_ir.expressions import Expr

_SHARED = Expr.__args__


def fingerprint(kernel: Kernel, schedule: Schedule) -> Hashable:
    """Structure with shared expressions numbered, so that a DAG never unfolds into a tree."""
    numbers: dict[int, int] = {}
    return (_of(kernel.buffers, numbers), _of(kernel.outer, numbers), _of(kernel.body, numbers), schedule)


def _of(thing: object, numbers: dict[int, int]) -> Hashable:
    if isinstance(thing, _SHARED):
        known = numbers.get(id(thing))
        if known is not None:
            return ("#", known)
        numbers[id(thing)] = len(numbers)
        return (type(thing).__name__, *(_of(getattr(thing, one.name), numbers) for one in fields(thing)))
    if isinstance(thing, tuple):
        return tuple(_of(one, numbers) for one in thing)
    if isinstance(thing, Dim | Enum):
        return thing
    if isinstance(thing, float):
        return repr(thing)
    if is_dataclass(thing) and not isinstance(thing, type):
        return (type(thing).__name__, *(_of(getattr(thing, one.name), numbers) for one in fields(thing)))
    assert isinstance(thing, Hashable)
    return thing
