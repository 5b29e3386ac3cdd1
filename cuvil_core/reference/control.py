"""Control flow by Python's own."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from cuvil_core.ir import Block, Dim, Op
from cuvil_core.ops.control import fixed_operands
from cuvil_core.reference.arrays import Array, numpy_dtype

Symbols = Mapping[str, int]
RunBlock = Callable[[Block, Symbols, Iterable[Array]], tuple[Array, ...]]
"""What a block yields for symbols and arguments."""


def _if(op: Op, symbols: Symbols, operands: list[Array], run: RunBlock) -> tuple[Array, ...]:
    condition, *arguments = operands
    return run(op.blocks[0 if condition else 1], symbols, arguments)


def _loop(op: Op, symbols: Symbols, operands: list[Array], run: RunBlock) -> tuple[Array, ...]:
    (body,), carried, conditional = op.blocks, op.integer("carried"), op.attributes["conditional"] is True
    turns = op.dims("turns")
    steering = fixed_operands(turns, conditional)
    limit = turns[0].evaluate(symbols) if turns else int(operands[0])
    goes_on = not conditional or bool(operands[steering - 1])
    state, captured = operands[steering : steering + carried], operands[steering + carried :]
    rows: list[list[Array]] = [[] for _ in op.results[carried:]]
    turn = 0
    while turn < limit and goes_on:
        found = list(run(body, symbols, [np.asarray(turn, np.int64), *state, *captured]))
        goes_on = bool(found.pop(0)) if conditional else True
        state = found[:carried]
        for column, row in zip(rows, found[carried:], strict=True):
            column.append(row)
        turn += 1
    values = zip(op.results[carried:], rows, strict=True)
    return (
        *state,
        *(_stacked(value.type.shape, numpy_dtype(value.dtype), column, symbols) for value, column in values),
    )


def _stacked(shape: tuple[Dim, ...], dtype: "np.dtype[np.generic]", rows: list[Array], symbols: Symbols) -> Array:
    """The rows on a first axis of their own; zeros for turns that did not come."""
    found = np.zeros([max(0, extent.evaluate(symbols)) for extent in shape], dtype)
    for turn, row in enumerate(rows):
        found[turn] = row
    return found


CONTROL: dict[str, Callable[[Op, Symbols, list[Array], RunBlock], tuple[Array, ...]]] = {"if": _if, "loop": _loop}
