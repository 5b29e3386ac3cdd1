"""Kernels and schedules of every shape: maps, folds, contractions, sequences; examples of how to write schedules."""

from __future__ import annotations

from cuvil_core.ir import Dim, DimLike, DType
from cuvil_core.kernel_ir import (
    Access,
    Accumulator,
    Axis,
    AxisIndex,
    Binary,
    Buffer,
    Cast,
    Combine,
    Contraction,
    Expr,
    Fold,
    Index,
    Kernel,
    Literal,
    Load,
    Map,
    Reducer,
    Schedule,
    Scratch,
    Select,
    Store,
    Tail,
    Unary,
    Use,
    Within,
)

F32 = DType.FLOAT32
N = Dim.symbol("N")
Case = tuple[Kernel, Schedule]


def load(buffer: str, index: Index, dtype: DType = F32) -> Load:
    """A load without conditions."""
    return Load(Access(buffer, index), dtype)


def relu(value: Expr) -> Expr:
    """max(value, 0)."""
    return Binary("max", value, Literal(0.0, value.dtype))


def axes(text: str) -> list[Index]:
    """One index an axis name."""
    return [Index.axis(name) for name in text.split()]


def elementwise(name: str, value: Expr, result: DType, operands: dict[str, DType], extent: DimLike = N) -> Case:
    """`y[i] = value`, vectorized along i, in tiles of 256 that threads share."""
    buffers = [Buffer.of(b, d, extent) for b, d in operands.items()] + [Buffer.of("y", result, extent, Use.WRITE)]
    statement = Map((Axis.of("i", extent),), (Store(Access("y", Index.axis("i")), value),))
    schedule = Schedule(
        order=("i", "i"), parallel=1, tiles=(("i", 256),), vector="i", width=8 if result.itemsize == 8 else 16
    )
    return Kernel(name, tuple(buffers), (statement,)), schedule


def convolution(
    name: str = "conv",
    *,
    blocks: tuple[int, int] = (2, 2),
    size: tuple[DimLike, DimLike] = (6, 20),
    taps: tuple[int, int] = (3, 3),
    stride: int = 1,
    panel: int = 2,
    points: int = 14,
    tail: Tail = Tail.SMALLER,
    residual: bool = True,
    width: int = 16,
) -> Case:
    """Direct convolution over blocked buffers with stored halos: x [N][IB][H'][W'][16], y [N][OB][H][W][16].

    Weights are packed [OB/panel][IB][KH][KW][16][panel][16]; bias, an optional residual and ReLU are the epilogue.
    """
    ib_count, ob_count = blocks
    high, wide = Dim.of(size[0]), Dim.of(size[1])
    kh_count, kw_count = taps
    in_high, in_wide = (high - 1) * stride + kh_count, (wide - 1) * stride + kw_count
    n, op, oj, oh, ow, oc, ib, kh, kw, ic = axes("n op oj oh ow oc ib kh kw ic")
    x = load("x", (((n * ib_count + ib) * in_high + oh * stride + kh) * in_wide + ow * stride + kw) * 16 + ic)
    w = load("w", ((((((op * ib_count + ib) * kh_count + kh) * kw_count + kw) * 16 + ic) * panel + oj) * 16 + oc))
    target = (((n * ob_count + op * panel + oj) * high + oh) * wide + ow) * 16 + oc
    value: Expr = Binary("add", Accumulator(F32), load("b", (op * panel + oj) * 16 + oc))
    if residual:
        value = Binary("add", value, load("r", target))
    outputs = N * (ob_count * 16) * high * wide
    buffers = (
        Buffer.of("x", F32, N * (ib_count * 16) * in_high * in_wide),
        Buffer.of("w", F32, ob_count * ib_count * 256 * kh_count * kw_count),
        Buffer.of("b", F32, ob_count * 16),
        *((Buffer.of("r", F32, outputs),) if residual else ()),
        Buffer.of("y", F32, outputs, Use.WRITE),
    )
    statement = Contraction(
        axes=(Axis("n", N), Axis.of("op", ob_count // panel), Axis.of("oj", panel), Axis("oh", high), Axis("ow", wide),
              Axis.of("oc", 16)),
        reduce_axes=(Axis.of("ib", ib_count), Axis.of("kh", kh_count), Axis.of("kw", kw_count), Axis.of("ic", 16)),
        left=x, right=w, stores=(Store(Access("y", target), relu(value)),),
    )  # fmt: skip
    schedule = Schedule(
        order=("n", "op", "oh", "oj", "ow", "oc", "ib", "kh", "kw", "ic"), parallel=3, vector="oc", width=width,
        registers=(("oj", panel), ("ow", points)), tail=tail, flush_denormals=True,
    )  # fmt: skip
    return Kernel(name, buffers, (statement,)), schedule


def depthwise(name: str = "depthwise", wide: DimLike = 15, stride: int = 1, points: int = 7) -> Case:
    """Depthwise 3×3 over blocked buffers: lanes are channels, the nine weights stay in registers."""
    high, wide = Dim.of(5), Dim.of(wide)
    in_high, in_wide = (high - 1) * stride + 3, (wide - 1) * stride + 3
    n, cb, oh, ow, c, kh, kw = axes("n cb oh ow c kh kw")
    x = load("x", (((n * 3 + cb) * in_high + oh * stride + kh) * in_wide + ow * stride + kw) * 16 + c)
    w = load("w", ((cb * 3 + kh) * 3 + kw) * 16 + c)
    target = (((n * 3 + cb) * high + oh) * wide + ow) * 16 + c
    value = Binary("min", relu(Binary("add", Accumulator(F32), load("b", cb * 16 + c))), Literal(6.0, F32))
    statement = Contraction(
        axes=(Axis("n", N), Axis.of("cb", 3), Axis("oh", high), Axis("ow", wide), Axis.of("c", 16)),
        reduce_axes=(Axis.of("kh", 3), Axis.of("kw", 3)),
        left=x, right=w, stores=(Store(Access("y", target), value),),
    )  # fmt: skip
    buffers = (
        Buffer.of("x", F32, N * 48 * in_high * in_wide), Buffer.of("w", F32, 9 * 48), Buffer.of("b", F32, 48),
        Buffer.of("y", F32, N * 48 * high * wide, Use.WRITE),
    )  # fmt: skip
    schedule = Schedule(
        order=("n", "cb", "oh", "ow", "c", "kh", "kw"), parallel=3, vector="c", registers=(("ow", points),),
        unroll=(("kh", 3), ("kw", 3)),
    )  # fmt: skip
    return Kernel(name, buffers, (statement,)), schedule


def matmul(
    name: str = "matmul",
    *,
    m: DimLike = N,
    n: DimLike = 40,
    k: DimLike = 24,
    batch: int = 1,
    rows: int = 6,
    vectors: int = 2,
    unroll: int = 1,
    width: int = 16,
) -> Case:
    """y[b][m][n] = x[b][m][k] · w[b][k][n], all row-major; the last columns are a partial vector."""
    m, n, k = Dim.of(m), Dim.of(n), Dim.of(k)
    ib, im, in_, ik = axes("b m n k")
    statement = Contraction(
        axes=(Axis.of("b", batch), Axis("m", m), Axis("n", n)), reduce_axes=(Axis("k", k),),
        left=load("x", (ib * m + im) * k + ik), right=load("w", (ib * k + ik) * n + in_),
        stores=(Store(Access("y", (ib * m + im) * n + in_), Accumulator(F32)),),
    )  # fmt: skip
    buffers = (
        Buffer.of("x", F32, m * k * batch), Buffer.of("w", F32, n * k * batch),
        Buffer.of("y", F32, m * n * batch, Use.WRITE),
    )  # fmt: skip
    schedule = Schedule(
        order=("b", "n", "m", "k"), parallel=2, vector="n", width=width, registers=(("m", rows), ("n", vectors)),
        unroll=(("k", unroll),),
    )  # fmt: skip
    return Kernel(name, buffers, (statement,)), schedule


def softmax(name: str = "softmax", row: DimLike = 37) -> Case:
    """Rows of softmax: greatest, exponentials with their sum, quotient; one turn of the outer axis is one row."""
    row = Dim.of(row)
    r = Index.axis("r")
    i, j, k, m = axes("i j k m")
    x = load("x", r * row + i)
    most = Fold((), (Axis("i", row),), (Reducer(Combine.MAX, x),), (Store(Access("top", Index()), Accumulator(F32)),))
    shifted = Unary("exp", Binary("sub", load("x", r * row + j), load("top", Index())))
    powers = Map((Axis("j", row),), (Store(Access("y", r * row + j), shifted),))
    total = Fold((), (Axis("k", row),), (Reducer(Combine.SUM, load("y", r * row + k)),),
                 (Store(Access("total", Index()), Accumulator(F32)),))  # fmt: skip
    quotient = Binary("div", load("y", r * row + m), load("total", Index()))
    last = Map((Axis("m", row),), (Store(Access("y", r * row + m), quotient),))
    kernel = Kernel(
        name, (Buffer.of("x", F32, N * row), Buffer.of("y", F32, N * row, Use.UPDATE)), (most, powers, total, last),
        outer=(Axis("r", N),), scratch=(Scratch("top", F32, 1), Scratch("total", F32, 1)),
    )  # fmt: skip
    inner = tuple(Schedule(order=(a,), vector=a, unroll=((a, 2),) if a in "ik" else ()) for a in "ijkm")
    return kernel, Schedule(order=("r",), parallel=1, inner=inner)


def pooling(name: str = "pool", combine: Combine = Combine.MAX, wide: DimLike = 11) -> Case:
    """3×3 stride-2 pooling with padding 1 over a blocked buffer without halo: conditions keep the reads inside."""
    high, wide = Dim.of(9), Dim.of(wide)
    out_high, out_wide = (high - 1) // 2 + 1, (wide - 1) // 2 + 1
    n, oh, ow, c, kh, kw = axes("n oh ow c kh kw")
    row, column = oh * 2 + kh - 1, ow * 2 + kw - 1
    start = float("-inf") if combine is Combine.MAX else 0.0
    x = Load(
        Access("x", ((n * high + row) * wide + column) * 16 + c), F32, (Within(row, high), Within(column, wide)), start
    )
    target = ((n * out_high + oh) * out_wide + ow) * 16 + c
    statement = Fold(
        (Axis("n", N), Axis("oh", out_high), Axis("ow", out_wide), Axis.of("c", 16)),
        (Axis.of("kh", 3), Axis.of("kw", 3)), (Reducer(combine, x),),
        (Store(Access("y", target), Accumulator(F32)),),
    )  # fmt: skip
    buffers = (
        Buffer.of("x", F32, N * high * wide * 16), Buffer.of("y", F32, N * out_high * out_wide * 16, Use.WRITE),
    )  # fmt: skip
    schedule = Schedule(
        order=("n", "oh", "ow", "c", "kh", "kw"), parallel=2, vector="c", unroll=(("kh", 3), ("kw", 3)),
        registers=(("ow", 2),),
    )  # fmt: skip
    return Kernel(name, buffers, (statement,)), schedule


def row_fold(name: str, combine: Combine, dtype: DType = F32, row: DimLike = 53, unroll: int = 3) -> Case:
    """One result a row, lanes along the row; positions are folded without lanes."""
    row = Dim.of(row)
    r, i = axes("r i")
    element: Expr = load("x", r * row + i, dtype)
    if combine in (Combine.ALL, Combine.ANY):
        element = Binary("gt", element, Literal(-90 if dtype.is_integer else -2.0, dtype))
    reducer = Reducer(combine, element)
    statement = Fold(
        (Axis("r", N),), (Axis("i", row),), (reducer,), (Store(Access("y", r), Accumulator(reducer.dtype)),)
    )
    buffers = (Buffer.of("x", dtype, N * row), Buffer.of("y", reducer.dtype, N, Use.WRITE))
    lanes = None if combine.is_arg else "i"
    schedule = Schedule(order=("r", "i"), parallel=1, vector=lanes, unroll=(("i", unroll),) if lanes else ())
    return Kernel(name, buffers, (statement,)), schedule


def gather(name: str = "gather") -> Case:
    """y[i][j] = table[ids[i]][j], negative row numbers counted from the end."""
    i, j = axes("i j")
    row = load("ids", i, DType.INT64)
    wrapped = Select(Binary("lt", row, Literal(0, DType.INT64)), Binary("add", row, Literal(7, DType.INT64)), row)
    clamped = Binary("min", Binary("max", wrapped, Literal(0, DType.INT64)), Literal(6, DType.INT64))
    value = load("table", Index.indirect(clamped) * 20 + j)
    statement = Map((Axis("i", N), Axis.of("j", 20)), (Store(Access("y", i * 20 + j), value),))
    buffers = (Buffer.of("ids", DType.INT64, N), Buffer.of("table", F32, 140), Buffer.of("y", F32, N * 20, Use.WRITE))
    return Kernel(name, buffers, (statement,)), Schedule(order=("i", "j"), parallel=1, vector="j")


def padded_copy(name: str = "pad", wide: DimLike = 21) -> Case:
    """A border of 2 columns of -1 on either side of each row."""
    wide = Dim.of(wide)
    r, i = axes("r i")
    value = Load(Access("x", r * wide + i - 2), F32, (Within(i - 2, wide),), -1.0)
    statement = Map((Axis("r", N), Axis("i", wide + 4)), (Store(Access("y", r * (wide + 4) + i), value),))
    buffers = (Buffer.of("x", F32, N * wide), Buffer.of("y", F32, N * (wide + 4), Use.WRITE))
    return Kernel(name, buffers, (statement,)), Schedule(order=("r", "i"), parallel=1, vector="i")


def to_blocked(name: str = "block", channels: int = 19) -> Case:
    """Row-major [N][C][P] to blocked [N][C/16][P][16], lanes beyond C zero."""
    spread = Dim.of(10)
    n, cb, p, c = axes("n cb p c")
    channel = cb * 16 + c
    value = Load(Access("x", (n * channels + channel) * spread + p), F32, (Within(channel, Dim.of(channels)),), 0.0)
    blocks = -(-channels // 16)
    target = ((n * blocks + cb) * spread + p) * 16 + c
    statement = Map(
        (Axis("n", N), Axis.of("cb", blocks), Axis("p", spread), Axis.of("c", 16)), (Store(Access("y", target), value),)
    )
    buffers = (Buffer.of("x", F32, N * spread * channels), Buffer.of("y", F32, N * spread * (blocks * 16), Use.WRITE))
    return Kernel(name, buffers, (statement,)), Schedule(order=("n", "cb", "p", "c"), parallel=2, vector="c")


def nearest(name: str = "nearest") -> Case:
    """Columns doubled: a `//` along the lanes."""
    r, i = axes("r i")
    statement = Map((Axis("r", N), Axis.of("i", 26)), (Store(Access("y", r * 26 + i), load("x", r * 13 + i // 2)),))
    buffers = (Buffer.of("x", F32, N * 13), Buffer.of("y", F32, N * 26, Use.WRITE))
    return Kernel(name, buffers, (statement,)), Schedule(order=("r", "i"), parallel=1, vector="i")


def positions(name: str = "positions") -> Case:
    """y[r][i] = 3·i + r where i < 5·r, else -1, from axis values alone."""
    r, i = axes("r i")
    value = Cast(AxisIndex(i * 3 + r, DType.INT32), F32)
    inside = Binary("lt", AxisIndex(i), AxisIndex(r * 5))
    chosen = Select(inside, value, Literal(-1.0, F32))
    statement = Map((Axis("r", N), Axis.of("i", 21)), (Store(Access("y", r * 21 + i), chosen),))
    return Kernel(name, (Buffer.of("y", F32, N * 21, Use.WRITE),), (statement,)), Schedule(("r", "i"), 1, vector="i")
