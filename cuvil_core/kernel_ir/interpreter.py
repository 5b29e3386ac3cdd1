"""A slow interpreter over NumPy buffers: what a kernel means, without schedules, C or speed.

Points are evaluated as whole NumPy grids, in pieces of at most MAX_POINTS. Sums and products of floats are carried in
float64, so that they are at least as exact as those of any schedule.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cuvil_core.errors import InternalError
from cuvil_core.ir import DType
from cuvil_core.kernel_ir.expressions import (
    Accumulator,
    AxisIndex,
    Binary,
    Bitcast,
    Cast,
    Expr,
    Fma,
    Literal,
    Load,
    Select,
    Unary,
)
from cuvil_core.kernel_ir.index import Access, AxisAtom, Index, Indirect, Quotient, Within
from cuvil_core.kernel_ir.kernel import Axis, Contraction, Fold, Kernel, Map, Reducer, Statement
from cuvil_core.kernel_ir.numerics import BINARY, REDUCTIONS, UNARY, cast, from_memory, to_memory

Array = npt.NDArray[Any]
MAX_POINTS = 1 << 21


def interpret(kernel: Kernel, buffers: Mapping[str, Array], symbols: Mapping[str, int]) -> None:
    """Runs a kernel: `buffers` are flat arrays by buffer name, written in place; bfloat16 as uint16, bool as uint8.

    Raises InternalError when an index leaves its buffer.
    """
    with np.errstate(all="ignore"):
        for turn in _turns(kernel.outer, symbols):
            scratch = {s.name: np.zeros(s.extent, memory_dtype(s.dtype)) for s in kernel.scratch}
            for statement in kernel.body:
                _Run(kernel.name, {**buffers, **scratch}, symbols).statement(statement, turn)


def memory_dtype(dtype: DType) -> np.dtype[Any]:
    """The NumPy dtype of a buffer's elements as they lie in memory."""
    return np.dtype({DType.BOOL: "uint8", DType.BFLOAT16: "uint16"}.get(dtype, dtype.value))


def _turns(axes: tuple[Axis, ...], symbols: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    names = [axis.name for axis in axes]
    for point in itertools.product(*(range(axis.extent.evaluate(symbols)) for axis in axes)):
        yield dict(zip(names, point, strict=True))


@dataclass(slots=True)
class _Run:
    """One statement on a set of buffers."""

    name: str
    buffers: Mapping[str, Array]
    symbols: Mapping[str, int]

    def statement(self, statement: Statement, turn: dict[str, Any]) -> None:
        """Evaluates grid after grid; the leading axes that would make a grid too large become Python loops."""
        axes = (*statement.axes, *statement.reduce_axes)
        extents = [axis.extent.evaluate(self.symbols) for axis in axes]
        looped = 0
        while looped < len(statement.axes) and math.prod(extents[looped:]) > MAX_POINTS:
            looped += 1
        grid = dict(zip((axis.name for axis in axes[looped:]), _open_grid(extents[looped:]), strict=True))
        shape = tuple(extents[looped : len(statement.axes)])
        reduced = tuple(extents[len(statement.axes) :])
        for point in _turns(axes[:looped], self.symbols):
            _Grid(self, {**turn, **point, **grid}, shape, reduced).run(statement)


@dataclass(slots=True)
class _Grid:
    """All points of a statement's inner axes at once: axes are arrays that broadcast against each other."""

    run_: _Run
    axes: dict[str, Any]
    shape: tuple[int, ...]
    reduced: tuple[int, ...]

    def run(self, statement: Statement) -> None:
        """Values first, then the stores."""
        results: tuple[Array, ...] = ()
        if isinstance(statement, Contraction):
            results = (self._contract(statement),)
        elif isinstance(statement, Fold):
            results = tuple(self._fold(reducer) for reducer in statement.reducers)
        axes = self.axes if isinstance(statement, Map) else self._kept_axes()
        kept = _Evaluation(self.run_, axes, results, {})
        values = [(store, np.broadcast_to(kept.value(store.value), self.shape)) for store in statement.stores]
        for store, value in values:
            self._store(kept, store.access, store.within, to_memory(value, store.value.dtype))

    def _kept_axes(self) -> dict[str, Any]:
        """The axes without the trailing dimensions of the reduce axes."""
        last = len(self.reduced)
        return {
            name: value.reshape(value.shape[: value.ndim - last])
            if last and isinstance(value, np.ndarray) and value.shape[value.ndim - last :] == (1,) * last
            else value
            for name, value in self.axes.items()
        }

    def _contract(self, statement: Contraction) -> Array:
        evaluation = _Evaluation(self.run_, self.axes, (), {})
        left, right = evaluation.value(statement.left), evaluation.value(statement.right)
        dtype = left.dtype
        wide = np.dtype("float64") if dtype.kind == "f" else dtype
        whole = np.broadcast_to(left.astype(wide) * right.astype(wide), (*self.shape, *self.reduced))
        return np.asarray(whole.sum(axis=self._last(), dtype=wide)).astype(dtype)

    def _fold(self, reducer: Reducer) -> Array:
        element = _Evaluation(self.run_, self.axes, (), {}).value(reducer.element)
        whole = np.broadcast_to(element, (*self.shape, *self.reduced))
        return REDUCTIONS[reducer.combine](whole, self._last())

    def _last(self) -> tuple[int, ...]:
        return tuple(range(len(self.shape), len(self.shape) + len(self.reduced)))

    def _store(self, evaluation: _Evaluation, access: Access, within: tuple[Within, ...], value: Array) -> None:
        offsets = np.broadcast_to(evaluation.index(access.index), self.shape)
        held = np.broadcast_to(evaluation.holds(within), self.shape)
        target = self.run_.buffers[access.buffer]
        chosen, data = offsets[held], value[held]
        evaluation.check(access.buffer, chosen, "writes")
        target[chosen] = data.astype(target.dtype, copy=False)


@dataclass(slots=True)
class _Evaluation:
    """Values of expressions over one grid, each computed once."""

    run: _Run
    axes: dict[str, Any]
    accumulators: tuple[Array, ...]
    known: dict[Expr, Array]

    def value(self, expr: Expr) -> Array:
        """The expression as an array that broadcasts over the grid; bfloat16 as float32."""
        if expr not in self.known:
            self.known[expr] = np.asarray(self._value(expr))
        return self.known[expr]

    def _value(self, expr: Expr) -> Array:
        if isinstance(expr, Load):
            return self._load(expr)
        if isinstance(expr, Literal):
            return cast(np.asarray(expr.value), expr.dtype)
        if isinstance(expr, AxisIndex):
            return np.asarray(self.index(expr.index)).astype(expr.dtype.value)
        if isinstance(expr, Accumulator):
            return self.accumulators[expr.position]
        if isinstance(expr, Cast):
            return cast(self.value(expr.operand), expr.dtype)
        if isinstance(expr, Bitcast):
            bits = to_memory(self.value(expr.operand), expr.operand.dtype)
            whole = np.ascontiguousarray(bits).view(memory_dtype(expr.dtype))
            return from_memory(whole.reshape(bits.shape), expr.dtype)
        operands = [self.value(operand) for operand in expr.operands]
        if isinstance(expr, Unary):
            return UNARY[expr.name](operands[0])
        if isinstance(expr, Binary):
            return BINARY[expr.name](operands[0], operands[1])
        if isinstance(expr, Fma):
            wide = [operand.astype("float64") for operand in operands]
            return np.asarray(wide[0] * wide[1] + wide[2]).astype(operands[0].dtype)
        if isinstance(expr, Select):
            return np.where(*operands)
        raise InternalError(f"The kernel interpreter knows no expression {type(expr).__name__}.")

    def _load(self, expr: Load) -> Array:
        data = self.run.buffers[expr.access.buffer]
        offsets = np.asarray(self.index(expr.access.index))
        if not expr.within:
            self.check(expr.access.buffer, offsets, "reads")
            return from_memory(data[offsets], expr.dtype)
        held = np.asarray(self.holds(expr.within))
        offsets, held = np.broadcast_arrays(offsets, held)
        self.check(expr.access.buffer, offsets[held], "reads")
        inside = from_memory(data[np.where(held, offsets, 0)], expr.dtype) if data.size else np.zeros(held.shape)
        return np.where(held, inside, cast(np.asarray(expr.otherwise), expr.dtype))

    def index(self, index: Index) -> Any:
        """The value of an index over the grid."""
        total: Any = np.int64(index.offset.evaluate(self.run.symbols))
        for atom, coefficient in index.terms:
            total = total + self._atom(atom) * np.int64(coefficient.evaluate(self.run.symbols))
        return total

    def _atom(self, atom: Any) -> Any:
        if isinstance(atom, AxisAtom):
            return self.axes[atom.axis]
        if isinstance(atom, Indirect):
            return self.value(atom.value).astype("int64")
        numerator, divisor = self.index(atom.numerator), atom.divisor.evaluate(self.run.symbols)
        return numerator // divisor if isinstance(atom, Quotient) else numerator % divisor

    def holds(self, within: tuple[Within, ...]) -> Any:
        """Where all conditions hold."""
        result: Any = np.True_
        for condition in within:
            value = self.index(condition.index)
            result = result & (value >= 0) & (value < condition.extent.evaluate(self.run.symbols))
        return result

    def check(self, buffer: str, offsets: Array, verb: str) -> None:
        """Refuses offsets outside the buffer."""
        size = self.run.buffers[buffer].size
        if offsets.size and (offsets.min() < 0 or offsets.max() >= size):
            bad = int(offsets.min()) if offsets.min() < 0 else int(offsets.max())
            raise InternalError(
                f"Kernel {self.run.name} {verb} {buffer}[{bad}], outside its {size} elements; report it."
            )


def _open_grid(extents: list[int]) -> list[Array]:
    rank = len(extents)
    return [
        np.arange(e, dtype=np.int64).reshape((1,) * i + (e,) + (1,) * (rank - i - 1)) for i, e in enumerate(extents)
    ]
