"""What scheduling decides for typical graphs, as text, and the models behind it."""

from collections.abc import Callable

import pytest

from cuvil_core.ir import Dim, Graph
from cuvil_core.scheduling import Isa, Layout, Machine, Strategy, choose
from cuvil_core.scheduling.layout import BLOCKED, covering
from cuvil_core.scheduling.tiles import accumulators, best_tile, shared_panels
from graph_checks import Maker


def network() -> Graph:
    """Stem, residual block, depthwise, squeeze and excite, concat, head."""
    make = Maker()
    x = make.input("x", "N", 3, 32, 32)
    stem = make.relu(make.conv(x, 32, strides=(2, 2), pads=(1, 1, 1, 1)))
    inner = make.relu(make.conv(stem, 32, pads=(1, 1, 1, 1)))
    block = make.op("add", make.conv(inner, 32, pads=(1, 1, 1, 1)), stem)
    depthwise = make.conv(block, 32, pads=(1, 1, 1, 1), groups=32)
    squeezed = make.op("reduce", depthwise, kind="sum", axes=(2, 3))
    flat = make.op("reshape", squeezed, shape=(Dim.symbol("N"), 32, 1, 1))
    gate = make.op("sigmoid", make.conv(flat, 32, (1, 1)))
    scaled = make.op("mul", depthwise, make.op("broadcast_to", gate, shape=depthwise.shape))
    both = make.op("concat", make.conv(scaled, 16, (1, 1)), make.conv(scaled, 32, (1, 1)), axis=1)
    head = make.op("reduce", both, kind="max", axes=(2, 3))
    weights = make.constant(48, 10)
    return make.done(make.op("dot", head, weights, batch_a=(), batch_b=(), contract_a=(1,), contract_b=(0,)))


@pytest.mark.parametrize("isa", list(Isa), ids=lambda isa: isa.value)
def test_decisions(isa: Isa, golden: Callable[[str, str], None]) -> None:
    """Strategies, layouts, halos, panels and loops of a whole network."""
    graph = network()
    golden(f"network-{isa.value}.txt", choose(graph, Machine.of(isa)).text(graph))


def test_decisions_are_pure() -> None:
    """Two runs over one graph say the same."""
    graph, machine = network(), Machine.of(Isa.AVX512)
    assert choose(graph, machine).text(graph) == choose(graph, machine).text(graph)


def test_parts_of_a_concat_are_written_in_place() -> None:
    """Operands that fill whole blocks live in the result; no copy is left."""
    graph = network()
    decisions = choose(graph, Machine.of(Isa.AVX512))
    (concat,) = [op for op in graph.ops if op.name == "concat"]
    assert all(decisions.homes[operand] is concat.result for operand in concat.operands)


def test_variants_share_layouts_and_panels() -> None:
    """What is packed does not depend on the instruction set, so weights are shared."""
    graph = network()
    narrow, wide = (choose(graph, Machine.of(isa)) for isa in Isa)
    for op in graph.ops:
        assert narrow.choices[op].strategy is wide.choices[op].strategy
        assert narrow.choices[op].panels == wide.choices[op].panels
    assert narrow.layouts == wide.layouts and narrow.homes == wide.homes


def test_few_input_channels_are_read_row_major() -> None:
    """The first convolution of a picture reads it as the caller passes it, with a border."""
    graph = network()
    decisions = choose(graph, Machine.of(Isa.AVX512))
    stem = next(op for op in graph.ops if op.name == "conv")
    assert decisions.choices[stem].strategy is Strategy.STEM
    assert decisions.choices[stem].input_layout == Layout(False, ((1, 1), (1, 1)))


@pytest.mark.parametrize("isa", list(Isa), ids=lambda isa: isa.value)
@pytest.mark.parametrize("points", [1, 3, 7, 14, 20, 28, 49, 56, 112, 3136])
@pytest.mark.parametrize("blocks", [1, 2, 3, 4, 5, 8, 63])
def test_tiles_fit_the_registers(isa: Isa, points: int, blocks: int) -> None:
    """Accumulators of any chosen tile leave registers for operands, and panels divide the channels."""
    machine = Machine.of(isa)
    panels = shared_panels(Dim.of(points), blocks)
    tile = best_tile(Dim.of(points), panels, machine)
    assert blocks % panels == 0 and panels % tile.panels == 0
    assert tile.points * tile.panels * machine.halves <= accumulators(machine)
    assert tile.points <= points


def test_tiles_divide_rows_where_they_can() -> None:
    """Rows of 56, 28, 14 and 7 points are cut without a rest on AVX-512."""
    machine = Machine.of(Isa.AVX512)
    for points in (56, 28, 14, 7):
        assert points % best_tile(Dim.of(points), shared_panels(Dim.of(points), 4), machine).points == 0


def test_halos_cover_all_readers() -> None:
    """The border of a value is the least that serves every convolution that reads it."""
    assert covering(((1, 0), (2, 2)), (), ((0, 3), (1, 1))) == ((1, 3), (2, 2))
    shape = (Dim.symbol("N"), Dim.of(20), Dim.of(5))
    assert [str(extent) for extent in BLOCKED.with_halo(((1, 2),)).physical(shape)] == ["N", "2", "8", "16"]
