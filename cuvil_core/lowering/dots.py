"""Dots: the right operand is packed in panels of columns, the left is read as it lies or through its view."""

from cuvil_core.ir import Op, Value, product
from cuvil_core.kernel_ir import Axis, Expr, Index, Load, Within
from cuvil_core.lowering.compose import Body, Composer, Unfused
from cuvil_core.lowering.contractions import Frame, finish
from cuvil_core.lowering.indices import unflatten
from cuvil_core.lowering.maps import copied
from cuvil_core.lowering.packing import Packing, pack
from cuvil_core.lowering.parameters import Parameters
from cuvil_core.lowering.placement import Indices
from cuvil_core.lowering.world import World
from cuvil_core.scheduling import LANES, PLAIN, Choice
from cuvil_core.scheduling.contractions import DotShape


def lower_dot(world: World, op: Op, root: Op, choice: Choice) -> None:
    """One contraction over batch, rows and panels of columns."""
    if any(extent == 0 for extent in root.result.shape):
        return
    body = Body(world, op)
    a, b = root.operands
    dot = DotShape.of(root)
    batch = tuple(Axis(f"b{at}", extent) for at, extent in enumerate(dot.batch))
    depth = tuple(Axis(f"r{at}", extent) for at, extent in enumerate(dot.depth))
    width = product(dot.columns)
    panels = Axis("np", width.ceil_div(LANES * choice.panels))
    lanes = (Axis.of("nj", choice.panels), Axis.of("nc", LANES))
    column = (Index.axis("np") * choice.panels + Index.axis("nj")) * LANES + Index.axis("nc")
    extents = {axis.name: axis.extent for axis in (*batch, *depth, panels, *lanes)}
    columns = unflatten(column, dot.columns, extents)
    packing = Packing((*batch, panels, *depth, *lanes), _right(root, columns))
    packed = pack(world, b, packing, body)
    rows, row_axes = _rows(dot)
    axes = (*batch, *row_axes, panels, *lanes)
    composer = Composer(body, Parameters(world.buffers), {axis.name: axis.extent for axis in (*axes, *depth)})
    left = _left(world, composer, root, a, rows)
    right = composer.plain_load(packed, packing.position)
    ragged = width.exact_div(LANES * choice.panels) is None
    within = (Within(column, width),) if ragged else ()
    composer.ragged = within[0] if within else None
    indices = (*(Index.axis(axis.name) for axis in batch), *rows, *columns)
    finish(world, op, root, body, composer, Frame("dot", axes, depth, left, right, indices, within), choice)


def _rows(dot: DotShape) -> tuple[Indices, tuple[Axis, ...]]:
    """Logical row indices, and the axes that they are made of."""
    if not dot.flat:
        axes = tuple(Axis(f"m{at}", extent) for at, extent in enumerate(dot.rows))
        return tuple(Index.axis(axis.name) for axis in axes), axes
    flat = Axis("m0", product(dot.rows))
    return unflatten(Index.axis("m0"), dot.rows, {"m0": flat.extent}), (flat,)


def _right(root: Op, columns: Indices) -> Indices:
    """Indices into operand 1."""
    batch, contract = root.integers("batch_b"), root.integers("contract_b")
    left_over = iter(columns)
    found = []
    for axis in range(len(root.operands[1].shape)):
        if axis in batch:
            found.append(Index.axis(f"b{batch.index(axis)}"))
        elif axis in contract:
            found.append(Index.axis(f"r{contract.index(axis)}"))
        else:
            found.append(next(left_over))
    return tuple(found)


def _left(world: World, composer: Composer, root: Op, a: Value, rows: Indices) -> Expr:
    """The broadcast operand: a plain load, else of a copy, since it is read once for each panel."""
    batch, contract = root.integers("batch_a"), root.integers("contract_a")
    left_over = iter(rows)
    indices = []
    for axis in range(len(a.shape)):
        if axis in batch:
            indices.append(Index.axis(f"b{batch.index(axis)}"))
        elif axis in contract:
            indices.append(Index.axis(f"r{contract.index(axis)}"))
        else:
            indices.append(next(left_over))
    trial = Composer(composer.body, Parameters(world.buffers), composer.extents)
    try:
        element = trial.value(a, tuple(indices))
    except Unfused:
        element = None
    if isinstance(element, Load) and element.access.index.is_affine and not element.within:
        return composer.value(a, tuple(indices))
    place = copied(world, a, PLAIN, composer.body)
    return composer.load(place, tuple(indices))
