"""Runs a graph op by op."""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from cuvil_core.errors import InputError
from cuvil_core.ir import Block, Element, Graph, Op, Value
from cuvil_core.reference.arrays import Array, from_storage, numpy_dtype, seen_as, to_storage
from cuvil_core.reference.control import CONTROL
from cuvil_core.reference.table import REFERENCE

Environment = dict[Value, Array]


def run(graph: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Output name → array.

    Raises InputError for missing or unknown names, wrong dtypes and shapes, symbols outside of their range, and for
    shapes that break a guard. Intermediate values are dropped after their last use.
    """
    _check_names(graph, inputs)
    symbols = bind_symbols(graph, {name: array.shape for name, array in inputs.items()})
    environment: Environment = {}
    for value, name, element in zip(graph.inputs, graph.input_names, graph.inputs_as, strict=True):
        array = np.asarray(inputs[name])
        if array.dtype != seen_as(value.dtype, element):
            raise InputError(f"Input {name!r} has dtype {array.dtype}; pass {element or value.dtype}.")
        environment[value] = array if element is None else to_storage(array, element)
    _run_ops(graph.ops, symbols, environment, frozenset(graph.outputs), _bound(graph, symbols, environment))
    named = zip(graph.outputs, graph.output_names, graph.outputs_as, strict=True)
    return {name: _given(environment[value], element) for value, name, element in named}


def _given(array: Array, element: Element | None) -> Array:
    return np.array(array) if element is None else from_storage(np.array(array), element)


def bind_symbols(graph: Graph, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """Symbol → extent for inputs of these shapes; InputError where a shape, a range or a guard does not fit."""
    symbols: dict[str, int] = {}
    for value, name in zip(graph.inputs, graph.input_names, strict=True):
        shape = shapes[name]
        wanted = f"[{', '.join(map(str, value.shape))}]"
        if len(shape) != value.type.rank:
            raise InputError(f"Input {name!r} has shape {list(shape)}; pass rank {value.type.rank}: {wanted}.")
        for extent, number in zip(value.shape, shape, strict=True):
            known = symbols.setdefault(str(extent), number) if extent.constant is None else extent.constant
            if known != number:
                raise InputError(f"Input {name!r} has shape {list(shape)}; pass {wanted} with {extent} = {known}.")
    _check_ranges(graph, symbols)
    return symbols


def evaluate(op: Op, symbols: Mapping[str, int], operands: Iterable[Array]) -> tuple[Array, ...]:
    """The results of one op."""
    arrays = list(operands)
    if op.blocks:
        return CONTROL[op.name](op, symbols, arrays, run_block)
    if op.region is None:
        with np.errstate(all="ignore"):
            result = REFERENCE[op.name](op, symbols, *arrays)
        return (np.asarray(result, numpy_dtype(op.result.dtype)),)
    return run_block(op.region, symbols, arrays)


def run_block(block: Block, symbols: Mapping[str, int], arrays: Iterable[Array]) -> tuple[Array, ...]:
    """What a block yields for these arguments."""
    environment: Environment = dict(zip(block.inputs, arrays, strict=True))
    _run_ops(block.ops, symbols, environment, keep=frozenset(block.outputs))
    return tuple(environment[value] for value in block.outputs)


def _bound(graph: Graph, symbols: dict[str, int], environment: Environment) -> Callable[[Op], None]:
    """What follows each op of the outer level: a bind's symbol becomes known, and the guards that waited for it."""

    def after(op: Op) -> None:
        if op.name == "bind":
            name = str(op.dims("symbol")[0])
            symbols[name] = int(environment[op.result])
            _check_guards(graph, symbols, name)

    return after


def _run_ops(
    ops: tuple[Op, ...],
    symbols: Mapping[str, int],
    environment: Environment,
    keep: frozenset[Value],
    after: Callable[[Op], None] = lambda op: None,
) -> None:
    last_use = {operand: number for number, op in enumerate(ops) for operand in op.operands}
    for number, op in enumerate(ops):
        results = evaluate(op, symbols, (environment[operand] for operand in op.operands))
        environment.update(zip(op.results, results, strict=True))
        after(op)
        for operand in set(op.operands):
            if last_use[operand] == number and operand not in keep:
                del environment[operand]


def _check_names(graph: Graph, inputs: Mapping[str, Array]) -> None:
    wanted = ", ".join(graph.input_names)
    if missing := [name for name in graph.input_names if name not in inputs]:
        raise InputError(f"Input {missing[0]!r} is missing; pass {wanted}.")
    if unknown := [name for name in inputs if name not in graph.input_names]:
        raise InputError(f"There is no input {unknown[0]!r}; pass {wanted}.")


def _check_ranges(graph: Graph, symbols: Mapping[str, int]) -> None:
    for symbol in graph.input_symbols:
        number = symbols[symbol.name]
        if number < symbol.least or (symbol.greatest is not None and number > symbol.greatest):
            end = "" if symbol.greatest is None else str(symbol.greatest)
            raise InputError(f"{symbol.name} is {number}, outside of {symbol.least}..{end}; pass another shape.")
    _check_guards(graph, symbols)


def _check_guards(graph: Graph, symbols: Mapping[str, int], bound: str | None = None) -> None:
    """Check the guards whose symbols are all known; of those, where one was just bound, only the ones that name it."""
    for guard in graph.guards:
        due = guard.symbols <= symbols.keys() and (bound is None or bound in guard.symbols)
        if due and not guard.holds(symbols):
            given = ", ".join(f"{name} = {symbols[name]}" for name in sorted(guard.symbols))
            raise InputError(f"{guard.provenance} needs {guard}, which fails for {given}; pass another shape.")
