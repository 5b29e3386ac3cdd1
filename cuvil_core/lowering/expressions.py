"""The lowering entries of primitives that are expressions over an index: leaves, arithmetic, movement."""

from cuvil_core.ir import Dim, DType, Op
from cuvil_core.kernel_ir import AxisIndex, Binary, Bitcast, Cast, Expr, Index, Literal, Load, Select, Unary, Within
from cuvil_core.kernel_ir.expressions import BINARY, UNARY
from cuvil_core.lowering.compose import EXPRESSIONS, Composer, operand
from cuvil_core.lowering.indices import reshape_indices
from cuvil_core.lowering.placement import Indices

Conditions = tuple[Within, ...]


_PLAIN = {"bit_and": "and", "bit_or": "or", "bit_xor": "xor", "bit_not": "not"}
"""Bitwise primitives → operations of kernels, which are logical on bools and bitwise on integers."""


def _unary(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    return Unary(_PLAIN.get(op.name, op.name), composer.value(operand(op), indices, within))


def _binary(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    left, right = (composer.value(value, indices, within) for value in op.operands)
    return Binary(_PLAIN.get(op.name, op.name), left, right)


def _mod(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    left, right = (composer.value(value, indices, within) for value in op.operands)
    return Binary("mod" if op.text("kind") == "floor" else "fmod", left, right)


def _select(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    condition, then, other = (composer.value(value, indices, within) for value in op.operands)
    return Select(condition, then, other)


def _cast(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    inner = composer.value(operand(op), indices, within)
    return inner if inner.dtype is op.result.dtype else Cast(inner, op.result.dtype)


def _bitcast(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    inner = composer.value(operand(op), indices, within)
    return inner if inner.dtype is op.result.dtype else Bitcast(inner, op.result.dtype)


def _broadcast_to(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    source = operand(op).shape
    kept = indices[len(indices) - len(source) :]
    stretched = tuple(Index() if extent == 1 else index for extent, index in zip(source, kept, strict=True))
    return composer.value(operand(op), stretched, within)


def _reshape(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    source = operand(op)
    equalities = composer.body.values.equalities
    moved = reshape_indices(indices, op.result.shape, source.shape, composer.extents, equalities)
    return composer.value(source, moved, within)


def _transpose(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    moved: list[Index] = [Index()] * len(indices)
    for position, axis in enumerate(op.integers("perm")):
        moved[axis] = indices[position]
    return composer.value(operand(op), tuple(moved), within)


def _slice(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    steps = zip(indices, op.dims("starts"), op.integers("steps"), strict=True)
    return composer.value(operand(op), tuple(index * step + start for index, start, step in steps), within)


def _pad(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    source, low, high = operand(op), op.dims("low"), op.dims("high")
    moved = tuple(index - start for index, start in zip(indices, low, strict=True))
    inside = tuple(
        Within(index, extent)
        for index, extent, start, end in zip(moved, source.shape, low, high, strict=True)
        if start != 0 or end != 0
    )
    fill = op.payload().values()[0]
    if not inside:
        return composer.value(source, moved, within)
    inner = composer.value(source, moved, (*within, *inside))
    if isinstance(inner, Load) and inner.within == (*within, *inside):
        # No other condition guards the load, so its own fallback can be the fill.
        return Load(inner.access, inner.dtype, inner.within, fill)
    return Select(all_of(inside), inner, Literal(fill, op.result.dtype))


def _concat(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    axis = op.integer("axis")
    position, start = indices[axis], op.result.shape[axis]
    result: Expr | None = None
    for source in reversed(op.operands):
        extent = source.shape[axis]
        start = start - extent
        if extent == 0:
            continue
        inside = Within(position - start, extent)
        moved = (*indices[:axis], position - start, *indices[axis + 1 :])
        element = composer.value(source, moved, (*within, inside))
        result = element if result is None else Select(all_of((inside,)), element, result)
    return result if result is not None else Literal(0, op.result.dtype)


def _gather(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    data, positions = op.operands
    axis, rank = op.integer("axis"), len(positions.shape)
    row = composer.value(positions, indices[axis : axis + rank], within)
    row = row if row.dtype is DType.INT64 else Cast(row, DType.INT64)
    extent = AxisIndex(Index.of(data.shape[axis]))
    zero, one = Literal(0, DType.INT64), Literal(1, DType.INT64)
    bounded = Binary("max", Binary("min", row, Binary("sub", extent, one)), zero)
    moved = (*indices[:axis], Index.indirect(bounded), *indices[axis + rank :])
    return composer.value(data, moved, within)


def _in_bounds(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    return composer.value(operand(op), indices, within)


def _iota(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    position = AxisIndex(indices[op.integer("axis")])
    return position if op.result.dtype is DType.INT64 else Cast(position, op.result.dtype)


def _dim_vector(composer: Composer, op: Op, indices: Indices, within: Conditions) -> Expr:
    dims = op.dims("dims")
    result: Expr = AxisIndex(Index.of(dims[-1] if dims else Dim.of(0)))
    for place in reversed(range(len(dims) - 1)):
        chosen = Binary("eq", AxisIndex(indices[0]), Literal(place, DType.INT64))
        result = Select(chosen, AxisIndex(Index.of(dims[place])), result)
    return result


def all_of(conditions: Conditions) -> Expr:
    """The conditions as one bool expression."""
    tests: list[Expr] = []
    for one in conditions:
        tests.append(Binary("ge", AxisIndex(one.index), Literal(0, DType.INT64)))
        tests.append(Binary("lt", AxisIndex(one.index), AxisIndex(Index.of(one.extent))))
    result = tests[0]
    for test in tests[1:]:
        result = Binary("and", result, test)
    return result


EXPRESSIONS.update(dict.fromkeys(UNARY | {"bit_not"}, _unary))
EXPRESSIONS.update(dict.fromkeys((BINARY | _PLAIN.keys()) - {"mod", "fmod", "bit_not"}, _binary))
EXPRESSIONS.update(
    mod=_mod,
    select=_select,
    cast=_cast,
    bitcast=_bitcast,
    broadcast_to=_broadcast_to,
    reshape=_reshape,
    transpose=_transpose,
    slice=_slice,
    pad=_pad,
    concat=_concat,
    gather=_gather,
    in_bounds=_in_bounds,
    bind=_in_bounds,
    check=_in_bounds,
    iota=_iota,
    dim_vector=_dim_vector,
)
