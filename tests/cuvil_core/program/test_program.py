"""Programs as text, their verifier, their interpreter."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cuvil_core.errors import InputError, InternalError
from cuvil_core.ir import Dim, Guard, Relation
from cuvil_core.lowering import lower
from cuvil_core.program import Buffer, Launch, Program, Role, interpret, print_program, verify
from cuvil_core.scheduling import Isa, Machine, choose
from graph_checks import Maker


def program() -> Program:
    """relu(conv(x)) summed over the picture."""
    make = Maker()
    x = make.input("x", "N", 3, "H", 8)
    y = make.relu(make.conv(x, 20, pads=(1, 1, 1, 1)))
    graph = make.done(make.op("reduce", y, kind="sum", axes=(2, 3)))
    return lower(graph, choose(graph, Machine.of(Isa.AVX512)))


def test_text(golden: Callable[[str, str], None]) -> None:
    """Ports, buffers and launches print one a line."""
    golden("program.txt", print_program(program()))


def test_a_sound_program_passes() -> None:
    """What lowering makes, the verifier accepts."""
    verify(program())


def _given(buffer: Buffer, name: str) -> Buffer:
    """The buffer, as one of the caller's when it has this name."""
    return replace(buffer, role=Role.INPUT) if buffer.name == name else buffer


def _first(whole: Program) -> Launch:
    """The first statement."""
    launch = whole.statements[0]
    assert isinstance(launch, Launch)
    return launch


FAULTS: dict[str, Callable[[Program], Program]] = {
    "unknown kernel": lambda p: replace(p, statements=(Launch("nothing", ()), *p.statements)),
    "too few buffers": lambda p: replace(p, statements=(Launch(_first(p).kernel, ()), *p.statements[1:])),
    "read before written": lambda p: replace(p, statements=p.statements[:2] + p.statements[3:]),
    "output never written": lambda p: replace(p, statements=p.statements[:-1]),
    "two buffers of one name": lambda p: replace(p, buffers=(*p.buffers, p.buffers[0])),
    "weight out of the segment": lambda p: replace(p, weights=b""),
    "undeclared symbol": lambda p: replace(p, symbols=()),
    "input written": lambda p: replace(p, buffers=tuple(_given(b, _first(p).arguments[-1]) for b in p.buffers)),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_found(fault: str) -> None:
    """Each kind of broken program is refused with a sentence."""
    with pytest.raises(InternalError, match="report this"):
        verify(FAULTS[fault](program()))


def test_a_broken_guard_is_the_callers_fault() -> None:
    """The interpreter refuses inputs that break a guard and names it."""
    guarded = replace(program(), guards=(Guard(Dim.symbol("N"), Dim.of(2), Relation.AT_MOST),))
    assert interpret(guarded, {"x": np.zeros((2, 3, 4, 8), np.float32)})["out0"].shape == (2, 20)
    with pytest.raises(InputError, match="N <= 2"):
        interpret(guarded, {"x": np.zeros((3, 3, 4, 8), np.float32)})


def test_reading_the_arena_before_writing_it_shows() -> None:
    """The arena is poisoned: a program that forgets a launch gives NaN, not a lucky zero."""
    whole = program()
    names = [kernel.kernel.name for kernel in whole.kernels]
    kept = tuple(s for s in whole.statements if not (isinstance(s, Launch) and "halo" in s.kernel))
    without_borders = replace(whole, statements=kept)
    assert any("halo" in name for name in names)
    x = np.ones((1, 3, 4, 8), np.float32)
    assert np.isfinite(interpret(whole, {"x": x})["out0"]).all()
    assert np.isnan(interpret(without_borders, {"x": x})["out0"]).any()
