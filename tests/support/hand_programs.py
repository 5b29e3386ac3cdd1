"""Programs written by hand: buffers, kernels and statements, without a graph; compiled, loaded, interpreted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cuvil_core.artifact import pack
from cuvil_core.compile import Variant, build
from cuvil_core.contract import CompileRequest, Manifest, TensorSpec
from cuvil_core.ir import Dim, DimLike, DType, TensorType
from cuvil_core.kernel_ir import Access, Axis, Expr, Index, Kernel, Load, Map, Store, Use
from cuvil_core.kernel_ir import Buffer as Parameter
from cuvil_core.program import Buffer, Port, Program, Role, ScheduledKernel, Statement, verify
from cuvil_core.program import Launch as ProgramLaunch
from cuvil_core.runtime import CuvilModule, load
from cuvil_core.scheduling import schedule_map

Array = np.ndarray[Any, np.dtype[Any]]
F32 = DType.FLOAT32


class Hand:
    """A program in the making; every method that adds a buffer gives its name."""

    def __init__(self, *symbols: str) -> None:
        self.symbols = symbols
        self.ports: dict[Role, list[Port]] = {Role.INPUT: [], Role.OUTPUT: []}
        self.buffers: list[Buffer] = []
        self.kernels: dict[str, ScheduledKernel] = {}

    def port(self, role: Role, size: DimLike, dtype: DType = F32) -> str:
        """A one-dimensional tensor of the caller, called as its buffer: input0, output0, …"""
        place = len(self.ports[role])
        name = f"{role.value}{place}"
        self.ports[role].append(Port(name, TensorType(dtype, (Dim.of(size),))))
        self.buffers.append(Buffer(name, role, dtype, Dim.of(size), place))
        return name

    def temporary(self, size: DimLike, dtype: DType = F32) -> str:
        """A buffer in the arena."""
        name = f"t{len(self.buffers)}"
        self.buffers.append(Buffer(name, Role.TEMPORARY, dtype, Dim.of(size)))
        return name

    def map(
        self, kind: str, value: Expr, *arguments: str, at: Index | None = None, over: DimLike | None = None
    ) -> ProgramLaunch:
        """Launch `last[at] = value` for i below `over` (all its elements); loads read parameters `p0`, `p1`, …"""
        held = {one.name: one for one in self.buffers}
        sizes = [held[name] for name in arguments]
        uses = [Use.READ] * (len(sizes) - 1) + [Use.WRITE if at is None else Use.UPDATE]
        parameters = tuple(
            Parameter(f"p{place}", one.dtype, one.size, use)
            for place, (one, use) in enumerate(zip(sizes, uses, strict=True))
        )
        store = Store(Access(parameters[-1].name, at or Index.axis("i")), value)
        statement = Map((Axis.of("i", sizes[-1].size if over is None else over),), (store,))
        name = f"{kind}_{len(self.kernels)}"
        kernel = Kernel(name, parameters, (statement,))
        self.kernels[name] = ScheduledKernel(kernel, schedule_map(statement))
        return ProgramLaunch(name, arguments, kind)

    def done(self, *statements: Statement) -> Program:
        """The program."""
        program = Program(
            "model",
            self.symbols,
            tuple(self.ports[Role.INPUT]),
            tuple(self.ports[Role.OUTPUT]),
            (),
            tuple(self.buffers),
            tuple(self.kernels.values()),
            statements,
            b"",
        )
        verify(program)
        return program


def read(parameter: int, dtype: DType = F32, at: Index | None = None) -> Load:
    """Element i of a parameter, or another one."""
    return Load(Access(f"p{parameter}", at if at is not None else Index.axis("i")), dtype)


def with_room(program: Program) -> Program:
    """The program with every temporary in memory of its own: what sharing an arena must not change."""
    moved, ports = [], list(program.outputs)
    for one in program.buffers:
        if one.role is Role.TEMPORARY:
            ports.append(Port(one.name, TensorType(one.dtype, (one.size,))))
            one = replace(one, role=Role.OUTPUT, position=len(ports) - 1)
        moved.append(one)
    return replace(program, buffers=tuple(moved), outputs=tuple(ports))


def module_of_program(program: Program, variant: Variant, folder: Path) -> CuvilModule:
    """The program, compiled for one variant and loaded."""
    facts = {
        "symbols": list(program.symbols),
        "asserts": [one.text for one in program.asserts],
        "variants": {variant.name: list(variant.flags)},
    }
    inputs, outputs = map(_specs, (program.inputs, program.outputs))
    manifest = Manifest("hand", "0" * 64, CompileRequest(), inputs, outputs, (), "test", {}, facts)
    path = folder / f"{variant.name}.cuvil"
    path.write_bytes(pack(manifest, {variant.name: build(program, variant)}, program.weights))
    return load(path)


def _specs(ports: tuple[Port, ...]) -> tuple[TensorSpec, ...]:
    return tuple(
        TensorSpec(one.name, one.type.dtype.value, tuple(_extent(extent) for extent in one.type.shape)) for one in ports
    )


def _extent(extent: Dim) -> int | str:
    return str(extent) if extent.constant is None else extent.constant
