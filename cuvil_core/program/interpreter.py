"""Runs a program without C: the oracle of lowering and of the arena's plan.

Temporaries lie in one arena at their planned offsets, filled with NaN bytes before each call, so that a read before the
write, or two live buffers that overlap, change the result.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cuvil_core.errors import InputError, InternalError
from cuvil_core.kernel_ir import Kernel
from cuvil_core.kernel_ir.interpreter import interpret as interpret_kernel
from cuvil_core.kernel_ir.interpreter import memory_dtype
from cuvil_core.program.calls import CALLS
from cuvil_core.program.memory import blocks, offsets, rounded
from cuvil_core.program.types import (
    Assert,
    Bind,
    Branch,
    Buffer,
    Call,
    Carried,
    Carry,
    Launch,
    Loop,
    Program,
    Role,
    Statement,
    due,
)

Array = np.ndarray[Any, np.dtype[Any]]
POISON = 0xFF
"""Every float made of this byte is NaN; integers are -1."""


def interpret(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Output name → array, in memory dtypes (bool as uint8, bfloat16 as uint16).

    Raises InputError when a guard or an assert is broken, InternalError when a launch leaves its buffers.
    """
    symbols = bind(program, inputs)
    _check_guards(program, symbols, 0)
    buffers = _given(program, inputs, symbols) | _allocate(program, symbols, 0)
    _Run(program, symbols, buffers).all(program.statements)
    found: dict[str, Array] = {}
    for buffer in program.of_role(Role.OUTPUT):
        port = program.outputs[buffer.position]
        shape = tuple(extent.evaluate(symbols) for extent in port.type.shape)
        found[port.name] = buffers[buffer.name].reshape(shape)
    return found


@dataclass(slots=True)
class _Run:
    """One call: the bytes that each name stands for at present."""

    program: Program
    symbols: dict[str, int]
    buffers: dict[str, Array]
    kernels: dict[str, Kernel] = field(init=False)

    def __post_init__(self) -> None:
        self.kernels = {one.kernel.name: one.kernel for one in self.program.kernels}

    def all(self, statements: Iterable[Statement]) -> None:
        """Run statements in a row."""
        for one in statements:
            match one:
                case Launch():
                    self._launch(one)
                case Call():
                    extents = tuple(extent.evaluate(self.symbols) for extent in one.extents)
                    CALLS[one.function].run([self.buffers[name] for name in one.arguments], extents)
                case Assert():
                    if not self._element(one.condition):
                        raise InputError(f"The inputs' values break the condition {one.text}; change them.")
                case Bind():
                    self._bind(one)
                case Branch():
                    self.all(one.then if self._element(one.condition) else one.otherwise)
                case Loop():
                    self._loop(one)

    def _launch(self, launch: Launch) -> None:
        kernel = self.kernels[launch.kernel]
        pairs = zip(kernel.buffers, launch.arguments, strict=True)
        interpret_kernel(kernel, {parameter.name: self.buffers[name] for parameter, name in pairs}, self.symbols)

    def _bind(self, bind: Bind) -> None:
        """What waits for the symbol gets its bytes; in a loop, anew each turn."""
        value = self._element(bind.source)
        if value < 0:
            raise InputError(f"The inputs' values make an extent of {bind.origin} {value}; change them.")
        self.symbols[bind.symbol] = value
        when = self.program.arrivals[bind.symbol]
        _check_guards(self.program, self.symbols, when)
        self.buffers |= _allocate(self.program, self.symbols, when)

    def _loop(self, loop: Loop) -> None:
        turns = self._element(loop.turns) if isinstance(loop.turns, str) else loop.turns.evaluate(self.symbols)
        turn = 0
        while turn < turns and (loop.condition is None or self._element(loop.condition)):
            if loop.counter is not None:
                self.buffers[loop.counter][0] = turn
            self.all(loop.body)
            for pair in loop.carried:
                self._carry(pair)
            turn += 1

    def _carry(self, pair: Carried) -> None:
        current, following = self.buffers[pair.current], self.buffers[pair.following]
        if pair.how is Carry.SWAP:
            self.buffers |= {pair.current: following, pair.following: current}
        else:
            current[:] = following

    def _element(self, name: str) -> int:
        return int(self.buffers[name][0])


def bind(program: Program, inputs: Mapping[str, Array]) -> dict[str, int]:
    """Symbol → extent from the inputs' shapes."""
    symbols: dict[str, int] = {}
    for port in program.inputs:
        for extent, number in zip(port.type.shape, inputs[port.name].shape, strict=True):
            if extent.constant is None:
                symbols[str(extent)] = number
    missing = [name for name in program.given if name not in symbols]
    if missing:
        raise InternalError(f"No input gives the symbol {missing[0]}; report this as a fault of Cuvil.")
    return symbols


def _check_guards(program: Program, symbols: Mapping[str, int], when: int) -> None:
    for guard in program.guards:
        if due(program.arrivals, (guard.left, guard.right)) == when and not guard.holds(symbols):
            raise InputError(f"The inputs break the condition {guard}; change them.")


def _given(program: Program, inputs: Mapping[str, Array], symbols: Mapping[str, int]) -> dict[str, Array]:
    """Inputs and weights."""
    found: dict[str, Array] = {}
    weights = np.frombuffer(program.weights, np.uint8)
    for buffer in program.buffers:
        if buffer.role is Role.INPUT:
            given = inputs[program.inputs[buffer.position].name]
            found[buffer.name] = np.ascontiguousarray(given).reshape(-1).view(memory_dtype(buffer.dtype))
        elif buffer.role is Role.WEIGHT:
            found[buffer.name] = _view(weights, buffer.position, buffer, symbols)
    return found


def _allocate(program: Program, symbols: Mapping[str, int], when: int) -> dict[str, Array]:
    """Temporaries and outputs whose sizes are known since then."""
    lives = blocks(program)[when]
    sizes = [rounded(life.buffer.bytes.evaluate(symbols)) for life in lives]
    places, total = offsets(lives, sizes)
    arena = np.full(total, POISON, np.uint8)
    placed = zip(lives, places, strict=True)
    found = {life.buffer.name: _view(arena, place, life.buffer, symbols) for life, place in placed}
    for buffer in program.of_role(Role.OUTPUT):
        if due(program.arrivals, (buffer.size,)) == when:
            found[buffer.name] = np.zeros(buffer.size.evaluate(symbols), memory_dtype(buffer.dtype))
    return found


def _view(store: Array, offset: int, buffer: Buffer, symbols: Mapping[str, int]) -> Array:
    size = buffer.bytes.evaluate(symbols)
    return store[offset : offset + size].view(memory_dtype(buffer.dtype))
