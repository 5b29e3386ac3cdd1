"""The verifier refuses each kind of fault with a sentence and the line that is at fault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cuvil_core.ir import DType
from cuvil_core.kernel_ir import (
    Access,
    Accumulator,
    Axis,
    Binary,
    Buffer,
    Expr,
    Index,
    Kernel,
    KernelError,
    Literal,
    Map,
    Schedule,
    Scratch,
    Select,
    Store,
    Tail,
    Unary,
    Use,
    verify,
    verify_schedule,
)
from cuvil_core.kernel_ir.analysis import may_share
from sample_kernels import F32, N, convolution, elementwise, load, matmul, softmax

HERE = Index.axis("i")
X = load("x", HERE)


def over(value: Expr, operands: dict[str, DType] | None = None) -> Kernel:
    """A Map of N points with one value."""
    return elementwise("k", value, value.dtype, operands or {"x": F32})[0]


def storing(index: Index, extent: int) -> Kernel:
    """A Map over 8 points that stores at an index."""
    buffers = (Buffer.of("y", F32, extent, Use.WRITE),)
    return Kernel("k", buffers, (Map((Axis.of("i", 8),), (Store(Access("y", index), Literal(1.0, F32)),)),))


KERNELS = {
    "reaches 8, its extent is 8": storing(HERE + 1, 8),
    "falls below 0": storing(HERE * 0 - 1, 8),
    "Unknown operation frobnicate": over(Unary("frobnicate", X)),
    "add mixes float32 and int64": over(Binary("add", X, Literal(1, DType.INT64))),
    "exp takes floats, not int32": over(Unary("exp", load("x", HERE, DType.INT32)), {"x": DType.INT32}),
    "and takes bools or integers, not float32": over(Binary("and", X, X)),
    "A select asks a float32, not a bool": over(Select(X, X, X)),
    "Axis q is used but not defined": over(load("x", Index.axis("q"))),
    "Buffer missing does not exist": over(load("missing", HERE)),
    "Buffer x holds float32, not int8": over(load("x", HERE, DType.INT8)),
    "declared write but read": over(Binary("add", X, load("y", HERE))),
    "A map has no accumulator": over(Accumulator(F32)),
    "is no C identifier": replace(over(X), name="no name"),
    "several statements but no outer axes": replace(over(X), body=over(X).body * 2),
    "Scratch exceeds": replace(over(X), scratch=(Scratch("s", F32, 1 << 20),)),
    "Two axes are named i": replace(over(X), outer=(Axis("i", N),)),
}


@pytest.mark.parametrize("fault", KERNELS)
def test_faulty_kernels_are_refused(fault: str) -> None:
    """Each fault is named, and a window of the kernel marks its line."""
    with pytest.raises(KernelError, match=fault) as caught:
        verify(KERNELS[fault])
    assert "\n> " in str(caught.value)


def test_the_window_marks_the_faulty_line() -> None:
    """The marked line is the store that leaves its buffer."""
    with pytest.raises(KernelError) as caught:
        verify(storing(HERE * 2, 14))
    marked = [line for line in str(caught.value).splitlines() if line.startswith(">")]
    assert marked == [">     y[2*i] = 1.0: float32"]


SCHEDULES = {
    "orders i, the axes are": Schedule(("i",)),
    "reduce axis outside a parallel one": Schedule(("b", "n", "k", "m")),
    "vectors of 4 lanes": Schedule(("b", "m", "n", "k"), vector="n", width=4),
    "holds the reduce axis k in registers": Schedule(("b", "m", "n", "k"), registers=(("k", 2),)),
    "unrolls the parallel axis m": Schedule(("b", "m", "n", "k"), unroll=(("m", 2),)),
    "gives m the count 0": Schedule(("b", "m", "n", "k"), registers=(("m", 0),)),
    "unknown vector axis z": Schedule(("b", "m", "n", "k"), vector="z"),
    "shares 7 loops of 3": Schedule(("b", "m", "n", "k"), parallel=7),
}


@pytest.mark.parametrize("fault", SCHEDULES)
def test_schedules_that_do_not_fit_are_refused(fault: str) -> None:
    """Each misfit is named with the schedule."""
    with pytest.raises(KernelError, match=fault):
        verify_schedule(matmul()[0], SCHEDULES[fault])


def test_overlap_in_place_is_refused() -> None:
    """Tiles that overlap would compute twice what they update."""
    kernel, schedule = softmax()
    verify_schedule(kernel, schedule)
    with pytest.raises(KernelError, match="updated in place"):
        verify_schedule(kernel, replace(schedule, tail=Tail.OVERLAP))


def test_only_safe_pairs_may_share() -> None:
    """The residual of a convolution and the operand of a Map may lie where the result goes; the input may not."""
    conv, _ = convolution()
    assert may_share(conv, "y", "r")
    assert not may_share(conv, "y", "x") and not may_share(conv, "y", "w") and not may_share(conv, "r", "y")
    assert may_share(over(Unary("exp", X)), "y", "x")
    assert not may_share(over(Binary("add", X, load("x", HERE + 1)), {"x": F32}), "y", "x")
    assert not may_share(softmax()[0], "y", "x")
