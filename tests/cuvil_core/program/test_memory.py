"""The plan of the arena: buffers that live together never overlap, and the C does as the Python does."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from cuvil_core.compile import arena_bytes
from cuvil_core.ir import Dim, DType
from cuvil_core.lowering import lower
from cuvil_core.program import Buffer, Lifetime, Role, lifetimes, offsets, rounded
from cuvil_core.scheduling import Isa, Machine, choose
from graph_checks import Maker, module_of, variants


def life(number: int, first: int, last: int) -> Lifetime:
    """A temporary that lives from one statement to another."""
    return Lifetime(Buffer(f"t{number}", Role.TEMPORARY, DType.FLOAT32, Dim.of(1)), first, last)


SPANS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 8), st.integers(0, 9)), max_size=40)


@given(SPANS)
@settings(max_examples=200, deadline=None)
def test_live_buffers_never_overlap(spans: list[tuple[int, int, int]]) -> None:
    """For any lives and sizes, two buffers that meet have disjoint bytes inside the arena."""
    lives = [life(number, first, first + length) for number, (first, length, _) in enumerate(spans)]
    sizes = [64 * size for _, _, size in spans]
    places, arena = offsets(lives, sizes)
    for one in range(len(lives)):
        assert places[one] >= 0 and places[one] + sizes[one] <= arena
        for other in range(one):
            apart = places[one] + sizes[one] <= places[other] or places[other] + sizes[other] <= places[one]
            assert apart or not lives[one].meets(lives[other]) or 0 in (sizes[one], sizes[other])


def test_a_chain_needs_two_buffers() -> None:
    """Each step of a chain reads one buffer and writes another: the arena holds two."""
    lives = [life(number, number, number + 1) for number in range(10)]
    assert offsets(lives, [256] * 10)[1] == 512


def test_the_smallest_gap_is_taken() -> None:
    """A buffer goes into the hole that it fills best."""
    lives = [life(0, 0, 9), life(1, 0, 1), life(2, 0, 9), life(3, 0, 1), life(4, 0, 9), life(5, 2, 9)]
    places, arena = offsets(lives, [64, 192, 64, 128, 64, 128])
    assert places[5] == places[3] and arena == 512


def test_sizes_are_rounded_to_cache_lines() -> None:
    """64 bytes are the grain; an empty buffer has an element 0 that may be read."""
    assert [rounded(size) for size in (0, 1, 64, 65)] == [64, 64, 64, 128]


def test_the_emitted_plan_is_the_same(tmp_path: Path) -> None:
    """`cuvil_prepare` reports the arena that the Python plan computes, at several extents."""
    make = Maker()
    x = make.input("x", "N", 3, "H", 20)
    y = make.relu(make.conv(x, 24, pads=(1, 1, 1, 1)))
    z = make.conv(make.op("add", make.conv(y, 24, pads=(1, 1, 1, 1)), y), 40, strides=(2, 2), pads=(1, 1, 1, 1))
    graph = make.done(make.pool(z, "max", 2, 2))
    program = lower(graph, choose(graph, Machine.of(Isa.AVX2)))
    module = module_of(graph, variants()[0], tmp_path)
    assert len(lifetimes(program)) > 3
    for batch, height in ((1, 5), (3, 16), (2, 31)):
        assert module._plan((batch, height)).arena_bytes == arena_bytes(program, {"N": batch, "H": height})
