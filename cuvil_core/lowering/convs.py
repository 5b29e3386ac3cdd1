"""Convolutions, strategy by strategy; axis names are those of `scheduling.contractions`."""

from collections.abc import Sequence

from cuvil_core.ir import Dim, Op, Value, product
from cuvil_core.kernel_ir import Axis, Index, Map, Within
from cuvil_core.lowering.axes import axes_of, ragged, store, zero
from cuvil_core.lowering.compose import Body, Composer
from cuvil_core.lowering.contractions import Frame, finish
from cuvil_core.lowering.indices import unflatten
from cuvil_core.lowering.maps import copied, new_composer
from cuvil_core.lowering.packing import Packing, pack
from cuvil_core.lowering.parameters import Parameters
from cuvil_core.lowering.placement import Placement
from cuvil_core.lowering.world import World
from cuvil_core.scheduling import LANES, Choice, Layout, Strategy, schedule_map


def lower_conv(world: World, op: Op, root: Op, choice: Choice) -> None:
    """Pack the weights, bring the input into the wanted layout, contract."""
    if any(extent == 0 for extent in root.result.shape):
        return
    body = Body(world, op)
    x, w = root.operands
    source = _input(world, root, x, choice, body)
    parts = {Strategy.DEPTHWISE: _depthwise, Strategy.GENERAL: _general}.get(choice.strategy, _blocked)
    frame, composer = parts(world, root, choice, source, w, body)
    finish(world, op, root, body, composer, frame, choice)


def _input(world: World, root: Op, x: Value, choice: Choice, body: Body) -> Placement:
    steps = root.integers("base_dilations")
    if all(step == 1 for step in steps):
        return copied(world, x, choice.input_layout, body)
    return _stretched(world, x, steps, choice.input_layout, body)


def _stretched(world: World, x: Value, steps: tuple[int, ...], layout: Layout, body: Body) -> Placement:
    """A copy with zeros between the elements: all zero first, then the elements at their steps."""
    spatial = tuple((extent - 1) * step + 1 for extent, step in zip(x.shape[2:], steps, strict=True))
    target = world.temporary(x.dtype, (*x.shape[:2], *spatial), layout)
    axes = axes_of(target)
    composer = new_composer(world, body, axes)
    cleared = Map(axes.axes, (store(composer, target, axes.indices, zero(x.dtype)),))
    world.launch("clear", cleared, schedule_map(cleared), composer.parameters)
    inner = axes_of(Placement.whole(target.buffer, x.dtype, x.shape, Layout(layout.blocked)))
    composer = new_composer(world, body, inner)
    moved = (*inner.indices[:2], *(one * step for one, step in zip(inner.indices[2:], steps, strict=True)))
    spread = Map(inner.axes, (store(composer, target, moved, composer.value(x, inner.indices)),))
    world.launch("spread", spread, schedule_map(spread), composer.parameters)
    return target


def _start(
    world: World, body: Body, axes: Sequence[Axis], reduce_axes: Sequence[Axis], condition: Within | None
) -> Composer:
    composer = Composer(body, Parameters(world.buffers), {axis.name: axis.extent for axis in (*axes, *reduce_axes)})
    composer.ragged = condition
    return composer


def _positions(root: Op, source: Placement) -> tuple[Index, ...]:
    """Input position along each spatial axis; padding makes it negative, the halo takes that."""
    rank = len(source.shape) - 2
    strides, dilations, pads = root.integers("strides"), root.integers("dilations"), root.integers("pads")
    return tuple(
        Index.axis(f"o{axis}") * strides[axis] + Index.axis(f"k{axis}") * dilations[axis] - pads[axis]
        for axis in range(rank)
    )


def _image(root: Op) -> tuple[Axis, ...]:
    return tuple(Axis(f"o{axis}", extent) for axis, extent in enumerate(root.result.shape[2:]))


def _window(w: Value) -> tuple[Axis, ...]:
    return tuple(Axis(f"k{axis}", extent) for axis, extent in enumerate(w.shape[2:]))


def _blocked(world: World, root: Op, choice: Choice, source: Placement, w: Value, body: Body) -> tuple[Frame, Composer]:
    """DIRECT, GROUPED, POINTWISE and STEM: lanes are output channels, the input is broadcast."""
    groups = root.integer("groups")
    outputs, inner = w.shape[0] // groups, w.shape[1]
    stem = choice.strategy is Strategy.STEM
    blocks = outputs.ceil_div(LANES)
    panels = Axis("op", blocks // choice.panels)
    lanes = (Axis.of("oj", choice.panels), Axis.of("oc", LANES))
    in_axes = (Axis("i", inner),) if stem else (Axis("ib", inner.ceil_div(LANES)), _lane_axis(inner))
    group = (Axis.of("g", groups),) if groups > 1 else ()
    own = (Index.axis("op") * choice.panels + Index.axis("oj")) * LANES + Index.axis("oc")
    channel = Index.axis("i") if stem else Index.axis("ib") * LANES + Index.axis("ic")
    window = () if choice.strategy is Strategy.POINTWISE else _window(w)
    taps = tuple(Index.axis(axis.name) for axis in window) or (Index(),) * len(_window(w))
    packing = Packing(
        (*group, panels, in_axes[0], *window, *in_axes[1:], *lanes),
        (_grouped(own, outputs, groups), channel, *taps),
    )
    packed = pack(world, w, packing, body)
    pixels, spatial, positions = _pixels(root, choice, source)
    axes = (Axis("n", root.result.shape[0]), *group, panels, *pixels, *lanes)
    reduce_axes = (in_axes[0], *window, *in_axes[1:])
    out = _grouped(own, outputs, groups)
    composer = _start(world, body, axes, reduce_axes, ragged(out, root.result.shape[1]))
    left = composer.load(source, (Index.axis("n"), _grouped(channel, inner, groups), *positions))
    right = composer.plain_load(packed, packing.position)
    return Frame("conv", axes, reduce_axes, left, right, (Index.axis("n"), out, *spatial)), composer


def _lane_axis(channels: Dim) -> Axis:
    """Lanes of an input block; all 16, zeros included, unless one part-filled block is all there is."""
    few = channels.constant is not None and channels.constant < LANES
    return Axis("ic", channels if few else Dim.of(LANES))


def _grouped(inner: Index, extent: Dim, groups: int) -> Index:
    return inner if groups == 1 else Index.axis("g") * extent + inner


def _pixels(
    root: Op, choice: Choice, source: Placement
) -> tuple[tuple[Axis, ...], tuple[Index, ...], tuple[Index, ...]]:
    """Axes of the image, the output's position, the input's position."""
    image = _image(root)
    if choice.strategy is not Strategy.POINTWISE:
        return image, tuple(Index.axis(axis.name) for axis in image), _positions(root, source)
    flat = Axis("p", product(axis.extent for axis in image))
    spatial = unflatten(Index.axis("p"), root.result.shape[2:], {"p": flat.extent})
    return (flat,), spatial, spatial


def _depthwise(
    world: World, root: Op, choice: Choice, source: Placement, w: Value, body: Body
) -> tuple[Frame, Composer]:
    """Lanes are channels on both sides."""
    blocks, lane, window = Axis("op", w.shape[0].ceil_div(LANES)), Axis.of("oc", LANES), _window(w)
    channel = Index.axis("op") * LANES + Index.axis("oc")
    taps = tuple(Index.axis(axis.name) for axis in window)
    packing = Packing((blocks, *window, lane), (channel, Index(), *taps))
    packed = pack(world, w, packing, body)
    image = _image(root)
    axes = (Axis("n", root.result.shape[0]), blocks, *image, lane)
    composer = _start(world, body, axes, window, ragged(channel, root.result.shape[1]))
    left = composer.load(source, (Index.axis("n"), channel, *_positions(root, source)))
    right = composer.plain_load(packed, packing.position)
    indices = (Index.axis("n"), channel, *(Index.axis(axis.name) for axis in image))
    return Frame("depthwise", axes, window, left, right, indices), composer


def _general(world: World, root: Op, choice: Choice, source: Placement, w: Value, body: Body) -> tuple[Frame, Composer]:
    """Row-major on both sides; lanes are pixels of a row."""
    groups = root.integer("groups")
    outputs, inner = w.shape[0] // groups, w.shape[1]
    image, window = _image(root), _window(w)
    axes = (Axis("n", root.result.shape[0]), Axis.of("g", groups), Axis("o", outputs), *image)
    reduce_axes = (Axis("i", inner), *window)
    out = Index.axis("g") * outputs + Index.axis("o")
    channel = Index.axis("g") * inner + Index.axis("i")
    composer = _start(world, body, axes, reduce_axes, None)
    left = composer.load(source, (Index.axis("n"), channel, *_positions(root, source)))
    right = composer.value(w, (out, Index.axis("i"), *(Index.axis(axis.name) for axis in window)))
    indices = (Index.axis("n"), out, *(Index.axis(axis.name) for axis in image))
    return Frame("conv", axes, reduce_axes, left, right, indices), composer
