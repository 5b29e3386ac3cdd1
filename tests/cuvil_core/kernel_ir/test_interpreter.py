"""The interpreter agrees with NumPy written out by hand, and refuses to leave a buffer."""

from __future__ import annotations

import numpy as np
import pytest

from compiled_kernels import fresh_buffers
from cuvil_core.errors import InternalError
from cuvil_core.kernel_ir import Access, Axis, Buffer, Index, Kernel, Map, Store, Use
from cuvil_core.kernel_ir.interpreter import interpret
from sample_kernels import (
    F32,
    N,
    convolution,
    depthwise,
    gather,
    load,
    matmul,
    padded_copy,
    pooling,
    softmax,
    to_blocked,
)


def test_convolution() -> None:
    """A blocked 3×3 convolution with bias, residual and ReLU equals sums of shifted products."""
    kernel, _ = convolution()
    b = fresh_buffers(kernel, {"N": 2})
    interpret(kernel, b, {"N": 2})
    x, w = b["x"].reshape(2, 2, 8, 22, 16), b["w"].reshape(1, 2, 3, 3, 16, 2, 16)
    wanted = np.zeros((2, 2, 6, 20, 16))
    for kh in range(3):
        for kw in range(3):
            taps = x[:, :, kh : kh + 6, kw : kw + 20].astype(np.float64)
            wanted += np.einsum("nihwc,icjo->njhwo", taps, w[0, :, kh, kw].astype(np.float64))
    wanted = np.maximum(wanted + b["b"].reshape(1, 2, 1, 1, 16) + b["r"].reshape(wanted.shape), 0)
    np.testing.assert_allclose(b["y"].reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-5)


def test_depthwise() -> None:
    """Each channel meets its own nine weights."""
    kernel, _ = depthwise()
    b = fresh_buffers(kernel, {"N": 1})
    interpret(kernel, b, {"N": 1})
    x, w = b["x"].reshape(3, 7, 17, 16), b["w"].reshape(3, 3, 3, 16)
    shifted = [x[:, i : i + 5, j : j + 15] * w[:, None, None, i, j] for i in range(3) for j in range(3)]
    wanted = np.clip(sum(s.astype(np.float64) for s in shifted) + b["b"].reshape(3, 1, 1, 16), 0, 6)
    np.testing.assert_allclose(b["y"].reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-5)


def test_matmul_and_softmax() -> None:
    """Products and rows of probabilities."""
    kernel, _ = matmul(batch=2)
    b = fresh_buffers(kernel, {"N": 5})
    interpret(kernel, b, {"N": 5})
    np.testing.assert_allclose(
        b["y"].reshape(2, 5, 40), b["x"].reshape(2, 5, 24) @ b["w"].reshape(2, 24, 40), rtol=1e-4, atol=1e-5
    )
    kernel, _ = softmax()
    b = fresh_buffers(kernel, {"N": 4})
    interpret(kernel, b, {"N": 4})
    rows = np.exp(b["x"].reshape(4, 37))
    np.testing.assert_allclose(b["y"].reshape(4, 37), rows / rows.sum(1, keepdims=True), rtol=1e-5)


def test_movement() -> None:
    """Gather, padding and blocking move what they say."""
    kernel, _ = gather()
    b = fresh_buffers(kernel, {"N": 6})
    b["ids"][:] = [0, 6, -1, -7, 3, 5]
    interpret(kernel, b, {"N": 6})
    assert (b["y"].reshape(6, 20) == b["table"].reshape(7, 20)[[0, 6, 6, 0, 3, 5]]).all()
    kernel, _ = padded_copy()
    b = fresh_buffers(kernel, {"N": 3})
    interpret(kernel, b, {"N": 3})
    assert (b["y"].reshape(3, 25) == np.pad(b["x"].reshape(3, 21), ((0, 0), (2, 2)), constant_values=-1)).all()
    kernel, _ = to_blocked()
    b = fresh_buffers(kernel, {"N": 2})
    interpret(kernel, b, {"N": 2})
    wide = np.pad(b["x"].reshape(2, 19, 10), ((0, 0), (0, 13), (0, 0)))
    assert (b["y"].reshape(2, 2, 10, 16) == wide.reshape(2, 2, 16, 10).transpose(0, 1, 3, 2)).all()


def test_pooling() -> None:
    """Padding is the identity of the maximum."""
    kernel, _ = pooling()
    b = fresh_buffers(kernel, {"N": 1})
    interpret(kernel, b, {"N": 1})
    x = np.pad(b["x"].reshape(9, 11, 16), ((1, 1), (1, 1), (0, 0)), constant_values=-np.inf)
    wanted = np.max([x[i : i + 9 : 2, j : j + 11 : 2] for i in range(3) for j in range(3)], axis=0)
    assert (b["y"].reshape(wanted.shape) == wanted).all()


def test_leaving_a_buffer_is_refused() -> None:
    """A read beyond the end is an error that names kernel, buffer and offset."""
    statement = Map((Axis("i", N),), (Store(Access("y", Index.axis("i")), load("x", Index.axis("i") + 1)),))
    kernel = Kernel("k", (Buffer.of("x", F32, N), Buffer.of("y", F32, N, Use.WRITE)), (statement,))
    with pytest.raises(InternalError, match=r"k reads x\[4\], outside its 4 elements"):
        interpret(kernel, fresh_buffers(kernel, {"N": 4}), {"N": 4})
