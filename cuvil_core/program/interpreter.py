"""Runs a program without C: the oracle of lowering and of the arena's plan.

Temporaries lie in one arena at their planned offsets, filled with NaN bytes before each call, so that a read before the
write, or two live buffers that overlap, change the result.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cuvil_core.errors import InputError, InternalError
from cuvil_core.kernel_ir.interpreter import interpret as interpret_kernel
from cuvil_core.kernel_ir.interpreter import memory_dtype
from cuvil_core.program.memory import lifetimes, offsets, rounded
from cuvil_core.program.types import Buffer, Program, Role

Array = np.ndarray[Any, np.dtype[Any]]
POISON = 0xFF
"""Every float made of this byte is NaN; integers are -1."""


def interpret(program: Program, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Output name → array, in memory dtypes (bool as uint8, bfloat16 as uint16).

    Raises InputError when a guard is broken, InternalError when a launch leaves its buffers.
    """
    symbols = bind(program, inputs)
    for guard in program.guards:
        if not guard.holds(symbols):
            raise InputError(f"The inputs' shapes break the condition {guard}; change them.")
    buffers = _allocate(program, inputs, symbols)
    kernels = {one.kernel.name: one.kernel for one in program.kernels}
    for launch in program.statements:
        kernel = kernels[launch.kernel]
        arguments = {
            parameter.name: buffers[name] for parameter, name in zip(kernel.buffers, launch.arguments, strict=True)
        }
        interpret_kernel(kernel, arguments, symbols)
    found: dict[str, Array] = {}
    for buffer in program.of_role(Role.OUTPUT):
        port = program.outputs[buffer.position]
        shape = tuple(extent.evaluate(symbols) for extent in port.type.shape)
        found[port.name] = buffers[buffer.name].reshape(shape)
    return found


def bind(program: Program, inputs: Mapping[str, Array]) -> dict[str, int]:
    """Symbol → extent from the inputs' shapes."""
    symbols: dict[str, int] = {}
    for port in program.inputs:
        for extent, number in zip(port.type.shape, inputs[port.name].shape, strict=True):
            if extent.constant is None:
                symbols[str(extent)] = number
    missing = [name for name in program.symbols if name not in symbols]
    if missing:
        raise InternalError(f"No input gives the symbol {missing[0]}; report this as a fault of Cuvil.")
    return symbols


def _allocate(program: Program, inputs: Mapping[str, Array], symbols: Mapping[str, int]) -> dict[str, Array]:
    lives = lifetimes(program)
    sizes = [rounded(life.buffer.bytes.evaluate(symbols)) for life in lives]
    places, total = offsets(lives, sizes)
    arena = np.full(total, POISON, np.uint8)
    placed = zip(lives, places, strict=True)
    found = {life.buffer.name: _view(arena, place, life.buffer, symbols) for life, place in placed}
    weights = np.frombuffer(program.weights, np.uint8)
    for buffer in program.buffers:
        if buffer.role is Role.INPUT:
            given = inputs[program.inputs[buffer.position].name]
            found[buffer.name] = np.ascontiguousarray(given).reshape(-1).view(memory_dtype(buffer.dtype))
        elif buffer.role is Role.OUTPUT:
            found[buffer.name] = np.zeros(buffer.size.evaluate(symbols), memory_dtype(buffer.dtype))
        elif buffer.role is Role.WEIGHT:
            found[buffer.name] = _view(weights, buffer.position, buffer, symbols)
    return found


def _view(store: Array, offset: int, buffer: Buffer, symbols: Mapping[str, int]) -> Array:
    size = buffer.bytes.evaluate(symbols)
    return store[offset : offset + size].view(memory_dtype(buffer.dtype))
