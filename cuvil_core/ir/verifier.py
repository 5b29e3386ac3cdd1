"""Checks that a graph is sound SSA and that every type is what the op table derives."""

from collections.abc import Iterable

from cuvil_core.errors import CuvilError, InternalError
from cuvil_core.ir.dims import Dim
from cuvil_core.ir.equalities import Equalities
from cuvil_core.ir.graph import Block, Graph, Op, Value
from cuvil_core.ir.printer import describe, print_graph, print_op
from cuvil_core.ir.types import Rules, TensorType

WINDOW = 3
"""Lines of IR shown on each side of the fault."""


class VerifyError(InternalError):
    """A graph broke a rule of the IR: a fault of the importer or of the pass that ran last."""


def verify(graph: Graph, rules: Rules) -> None:
    """Return when the graph is sound, else raise VerifyError with a window of the IR round the fault.

    Checked: every value is defined once, before its uses, under a unique name; result types equal those of the rules;
    regions use nothing from outside but their arguments; every symbol of a dim is declared, and known where it is used;
    ports have names.
    """
    _Check(graph, rules).run()


class _Check:
    def __init__(self, graph: Graph, rules: Rules) -> None:
        self._graph = graph
        self._rules = rules
        self._sound: set[Dim] = set()
        self._equalities = Equalities(graph.guards)
        self._declared = frozenset(symbol.name for symbol in graph.symbols)
        self._known = {symbol.name for symbol in graph.input_symbols}
        """The symbols whose values a call knows so far."""

    def run(self) -> None:
        graph = self._graph
        if len(graph.inputs) != len(graph.input_names) or len(graph.outputs) != len(graph.output_names):
            self._fail(None, "inputs or outputs and their names differ in number")
        for names, what in ((graph.input_names, "inputs"), (graph.output_names, "outputs")):
            if len(set(names)) != len(names):
                self._fail(None, f"two {what} have the same name")
        for values, elements in ((graph.inputs, graph.inputs_as), (graph.outputs, graph.outputs_as)):
            for value, element in zip(values, elements, strict=True):
                if element is not None and value.dtype is not element.storage:
                    self._fail(None, f"{describe(value)} is called {element}, which is stored as {element.storage}")
        defined = self._block(graph.inputs, graph.ops, None)
        for value in graph.outputs:
            if value not in defined:
                self._fail(None, f"output {describe(value)} is never defined")
        for guard in graph.guards:
            self._symbols(guard.left.symbols | guard.right.symbols, None, f"guard {guard}")

    def _block(self, inputs: Iterable[Value], ops: Iterable[Op], outer: Op | None) -> set[Value]:
        defined: set[Value] = set()
        names: set[str] = set()
        for value in inputs:
            self._define(value, defined, names, outer)
        for op in ops:
            at = outer or op
            for operand in op.operands:
                if operand not in defined:
                    self._fail(at, f"{op.name} reads {describe(operand)}, which is not defined before it")
            if op.region is not None:
                self._region(op, op.region, at)
            for block in op.blocks:
                self._inside(block, at)
            self._types(op, at)
            self._bind(op, at)
            for result in op.results:
                self._define(result, defined, names, at)
        return defined

    def _region(self, op: Op, block: Block, at: Op) -> None:
        self._inside(block, at)
        if [self._spell(value.type) for value in block.inputs] != [self._spell(value.type) for value in op.operands]:
            self._fail(at, "the types of block arguments and operands differ")

    def _inside(self, block: Block, at: Op) -> None:
        defined = self._block(block.inputs, block.ops, at)
        for value in block.outputs:
            if value not in defined:
                self._fail(at, f"the region yields {describe(value)}, which it does not define")

    def _bind(self, op: Op, at: Op) -> None:
        """Extents of attributes are known before the op; the one that it binds, after it and for the first time."""
        dims = [item for value in op.attributes.values() if isinstance(value, tuple) for item in value]
        used = frozenset[str]().union(*(item.symbols for item in dims if isinstance(item, Dim)))
        if op.name != "bind":
            return self._symbols(used, at, f"an attribute of {op.name}")
        if used & self._known:
            self._fail(at, f"the symbol {min(used)} is bound twice")
        self._known |= used & self._declared
        self._symbols(used, at, "bind")

    def _types(self, op: Op, at: Op) -> None:
        try:
            types = self._rules.infer(op.name, _types(op.operands), op.attributes, op.region, op.blocks)
        except CuvilError as error:
            self._fail(at, f"{op.name} is refused by its rule: {error}")
        if tuple(map(self._spell, types)) != tuple(self._spell(value.type) for value in op.results):
            wanted = ", ".join(map(str, types))
            self._fail(at, f"{op.name} has result types other than its rule's {wanted}")

    def _spell(self, type: TensorType) -> TensorType:
        return TensorType(type.dtype, tuple(map(self._equalities.canonical, type.shape)))

    def _define(self, value: Value, defined: set[Value], names: set[str], at: Op | None) -> None:
        if value in defined or value.name in names:
            self._fail(at, f"{describe(value)} is defined twice")
        self._shape(value.type.shape, value, at)
        defined.add(value)
        names.add(value.name)

    def _shape(self, shape: tuple[Dim, ...], value: Value, at: Op | None) -> None:
        for extent in shape:
            if extent in self._sound:
                continue
            self._symbols(extent.symbols, at, describe(value))
            if (greatest := extent.bounds(self._graph.ranges)[1]) is not None and greatest < 0:
                self._fail(at, f"{describe(value)} has a negative extent")
            self._sound.add(extent)

    def _symbols(self, used: frozenset[str], at: Op | None, where: str) -> None:
        if missing := sorted(used - self._declared):
            self._fail(at, f"{where} uses the symbol {missing[0]}, which the graph does not declare")
        if early := sorted(used - self._known):
            self._fail(at, f"{where} uses the symbol {early[0]} before it is bound")

    def _fail(self, at: Op | None, fault: str) -> None:
        raise VerifyError(f"Broken graph: {fault}; report this as a fault of Cuvil.\n{_window(self._graph, at)}")


def _types(values: Iterable[Value]) -> tuple[TensorType, ...]:
    return tuple(value.type for value in values)


def _window(graph: Graph, at: Op | None) -> str:
    """The lines round the op, marked by `>`; the head of the graph when no op is at fault."""
    try:
        lines = print_graph(graph).splitlines()
    except ValueError:
        return "(the graph cannot be printed)"
    start, length = 0, 1
    if at is not None:
        wanted = [f"  {line}" for line in print_op(at).splitlines()]
        start, length = lines.index(wanted[0]), len(wanted)
    low, high = max(0, start - WINDOW), min(len(lines), start + length + WINDOW)
    marks = (">" if at is not None and start <= number < start + length else " " for number in range(low, high))
    return "\n".join(f"{mark} {line}" for mark, line in zip(marks, lines[low:high], strict=True))
