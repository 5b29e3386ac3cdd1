"""Kernels and schedules print all that they hold."""

from __future__ import annotations

from cuvil_core.kernel_ir import print_kernel, print_schedule
from sample_kernels import convolution, padded_copy, softmax

PAD = """\
kernel pad(read x: float32[21*N], write y: float32[25*N]) {
  map r < N, i < 25 {
    %0 = load x[21*r + i + -2]: float32 where 0 <= i + -2 < 21 else -1.0
    y[25*r + i] = %0
  }
}
"""
SOFTMAX = """\
kernel softmax(read x: float32[37*N], update y: float32[37*N]) {
  scratch top: float32[1]
  scratch total: float32[1]
  for r < N
  fold - reduce i < 37 {
    %0 = load x[37*r + i]: float32
    acc = max(%0)
    top[0] = acc
  }
  map j < 37 {
    %0 = load x[37*r + j]: float32
    %1 = load top[0]: float32
    %2 = sub %0, %1
    %3 = exp %2
    y[37*r + j] = %3
  }
  fold - reduce k < 37 {
    %0 = load y[37*r + k]: float32
    acc = sum(%0)
    total[0] = acc
  }
  map m < 37 {
    %0 = load y[37*r + m]: float32
    %1 = load total[0]: float32
    %2 = div %0, %1
    y[37*r + m] = %2
  }
}
"""


def test_kernels_print() -> None:
    """Buffers, axes, conditions, scratch and every statement are in the text."""
    assert print_kernel(padded_copy()[0]) == PAD
    assert print_kernel(softmax()[0]) == SOFTMAX


def test_schedules_print() -> None:
    """Printing a schedule shows all that the back end will do."""
    assert print_schedule(convolution()[1]) == (
        "schedule order=n op oh oj ow oc ib kh kw ic parallel=3 vector=oc:16 register oj=2 register ow=14 "
        "flush_denormals\n"
    )
    assert print_schedule(softmax()[1]).splitlines()[1] == "  schedule order=i vector=i:16 unroll i=2"
