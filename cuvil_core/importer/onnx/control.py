"""If, Loop and Scan: what is known while importing decides at once, the rest becomes blocks."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from cuvil_core.errors import ModelError, SizeError, UnsupportedOpError
from cuvil_core.importer.onnx.blocks import Body, MakeTurn, Turn, emit_if, emit_loop
from cuvil_core.importer.onnx.context import Context, resolve_axis
from cuvil_core.importer.onnx.entry import Entry, Operands, all_of, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.subgraphs import Subgraph, read_subgraph
from cuvil_core.importer.onnx.tensor import Tensor, to_content
from cuvil_core.ir import Dim, DType, Payload, dim_max
from cuvil_core.ops.control import FOREVER

MAX_UNROLLED = 256
"""Turns of a loop that are written out one by one."""
MAX_UNROLLED_NODES = 4096
"""Nodes that all these turns may come to, with what they hold."""


def _if(context: Context, node: Node, operands: Operands) -> tuple[Tensor, ...]:
    condition = _scalar(context, node, need(node, operands, 0), "the condition")
    known = _known(condition)
    keys = ("then_branch", "else_branch")
    if known is not None:
        side = read_subgraph(context, node, keys[0 if known else 1], 0)
        return tuple(side.translate(context, ()))
    sides = [read_subgraph(context, node, key, 0) for key in keys]
    mark = context.builder.mark()
    try:
        return tuple(emit_if(context, condition, [_side(side) for side in sides]))
    except UnsupportedOpError:
        raise
    except ModelError as fault:
        context.builder.back_to(mark)
        return _only_side(context, condition, sides, fault)


def _only_side(context: Context, condition: Tensor, sides: Sequence[Subgraph], fault: ModelError) -> tuple[Tensor, ...]:
    """The side that can run at these extents; a call whose condition is the other one ends there.

    A model for several rates or sizes has a branch for each, and only one of them fits the shapes of a call.
    """
    faults = [_fault(context, side) for side in sides]
    if all(faults) or not any(faults):
        raise fault
    taken = faults[0] is None
    flag = condition if taken else context.emit("not", condition)
    context.check(flag, f"the condition is {taken}, as the other branch cannot run at these shapes,")
    return tuple(sides[0 if taken else 1].translate(context, ()))


def _fault(context: Context, side: Subgraph) -> ModelError | None:
    """Why a side cannot run at the extents at hand; None where it can."""
    mark = context.builder.mark()
    try:
        side.translate(Body(context).context, ())
    except UnsupportedOpError:
        raise
    except ModelError as fault:
        return fault
    finally:
        context.builder.back_to(mark)
    return None


def _side(side: Subgraph) -> Callable[[Body], list[Tensor]]:
    return lambda body: side.translate(body.context, ())


def _loop(context: Context, node: Node, operands: Operands) -> tuple[Tensor, ...]:
    limit, condition = optional(operands, 0), optional(operands, 1)
    initial = [need(node, operands, at) for at in range(2, len(operands))]
    body = read_subgraph(context, node, "body", len(initial) + 2)
    if len(body.outputs) < len(initial) + 1:
        raise node.broken("its body gives fewer values than the loop carries")
    limit = None if limit is None else _scalar(context, node, limit, "the number of turns")
    condition = None if condition is None else _scalar(context, node, condition, "the condition")
    turns = _turns(limit)
    if condition is not None and _known(condition) is not None:
        turns, condition = (turns if _known(condition) else Dim.of(0)), None
    stacks = len(body.outputs) > len(initial) + 1 and not context.in_block
    if stacks and limit is not None and (isinstance(turns, Tensor) or condition is not None):
        turns, condition = _counted_turns(context, limit, condition), None
    mark = context.builder.mark()
    try:
        finals, rows = _rolled(context, node, body, initial, turns, condition)
    except UnsupportedOpError:
        count = turns.constant if isinstance(turns, Dim) and condition is None else None
        if count is None or count > MAX_UNROLLED:
            raise
        context.builder.back_to(mark)
        finals, rows = _unrolled(context, node, body, initial, count)
    return (*finals, *rows)


def _rolled(
    context: Context, node: Node, body: Subgraph, initial: list[Tensor], turns: Dim | Tensor, condition: Tensor | None
) -> tuple[list[Tensor], list[Tensor]]:
    """As a loop. Rows need room for the most turns; where a condition may end it sooner, turns are counted along."""
    stacks = len(body.outputs) > len(initial) + 1
    if stacks and turns == FOREVER:
        raise node.unsupported("rows without a limit of turns")
    if stacks and isinstance(turns, Tensor):
        turns = _counted_turns(context, turns, None)
    ended = [False]

    def make(block: Body, counter: Tensor, state: list[Tensor]) -> Turn:
        turn = _turn_of(body, len(initial))(block, counter, state[: len(initial)])
        ended[0] = condition is not None or turn.goes_on is not None
        done = [block.context.number("add", counter, 1)] if stacks else []
        return Turn([*turn.state, *done], turn.rows, turn.goes_on)

    counted = [Tensor.of_payload(Payload.scalar(DType.INT64, 0))] if stacks else []
    finals, rows = emit_loop(context, turns, [*initial, *counted], make, condition)
    if stacks and ended[0]:
        count = context.extent(finals[-1])
        rows = [replace(context.slice(row, 0, 0, count), element=row.element) for row in rows]
    return finals[: len(initial)], rows


def _counted_turns(context: Context, limit: Tensor, condition: Tensor | None) -> Dim:
    """The number of turns as an extent: what is stacked has so many rows, unless the body ends the loop before."""
    count = context.number("max", context.cast(limit, DType.INT64), 0)
    if condition is not None:
        count = context.emit("select", context.reshape(condition, ()), count, context.like(count, 0))
    return context.extent(count)


def _turns(limit: Tensor | None) -> Dim | Tensor:
    """How many turns there are at most: an extent where that is known."""
    if limit is None:
        return Dim.of(FOREVER)
    return limit if limit.content is None else dim_max(limit.content.item(), 0)


def _turn_of(body: Subgraph, carried: int) -> MakeTurn:
    """A turn: inside of it the condition is true, else it would not run."""

    def make(block: Body, counter: Tensor, state: list[Tensor]) -> Turn:
        goes_on, *values = body.translate(block.context, [counter, _truth(True), *state])
        always = _known(goes_on) is True
        return Turn(values[:carried], values[carried:], None if always else goes_on)

    return make


def _unrolled(
    context: Context, node: Node, body: Subgraph, initial: list[Tensor], count: int
) -> tuple[list[Tensor], list[Tensor]]:
    """Turn by turn, while each tells at once whether another follows."""
    state, columns = initial, [list[Tensor]() for _ in body.outputs[len(initial) + 1 :]]
    before = context.inlined
    for turn in range(count):
        if context.inlined - before > MAX_UNROLLED_NODES:
            raise SizeError(f"{node} unrolls to more than {MAX_UNROLLED_NODES} nodes; give its values one shape.")
        number = Tensor.of_content(DType.INT64, to_content([turn], ()))
        goes_on, *values = body.translate(context, [number, _truth(True), *state])
        state = values[: len(initial)]
        for column, row in zip(columns, values[len(initial) :], strict=True):
            column.append(row)
        known = _known(goes_on)
        if known is None:
            raise node.unsupported("a body that changes shapes, with an end that the input's data decides")
        if not known:
            break
    return state, [_stacked(context, node, column) for column in columns]


def _stacked(context: Context, node: Node, rows: list[Tensor]) -> Tensor:
    if not rows:
        raise node.unsupported("a loop without turns that stacks rows of unknown shape")
    joined = context.concat([context.reshape(row, (1, *row.shape)) for row in rows], 0)
    return replace(joined, element=rows[0].element)


def _scan(context: Context, node: Node, operands: Operands) -> tuple[Tensor, ...]:
    given, count = all_of(node, operands), node.integer("num_scan_inputs")
    states, scanned = given[: len(given) - count], given[len(given) - count :]
    if not 1 <= count <= len(given):
        raise node.broken(f"it has {len(given)} inputs, of which it cannot scan {count}")
    body = read_subgraph(context, node, "body", len(given))
    axes = _per_input(node, "scan_input_axes", count)
    places = [resolve_axis(axis, one.rank) for axis, one in zip(axes, scanned, strict=True)]
    backward = _per_input(node, "scan_input_directions", count)
    finals, rows = _scanned(context, node, body, states, list(zip(scanned, places, backward, strict=True)))
    turned = _per_input(node, "scan_output_directions", len(rows))
    targets = _per_input(node, "scan_output_axes", len(rows))
    stacks = zip(rows, turned, targets, strict=True)
    return (*finals, *(_placed(context, row, turn, axis) for row, turn, axis in stacks))


def _per_input(node: Node, key: str, count: int) -> tuple[int, ...]:
    found = node.integers(key, (0,) * count)
    if len(found) != count:
        raise node.broken(f"{key} has {len(found)} entries, not {count}")
    return found


_Scanned = tuple[Tensor, int, int]
"""A scanned input, its axis, and whether it goes backward."""


def _scanned(
    context: Context, node: Node, body: Subgraph, states: list[Tensor], scanned: Sequence[_Scanned]
) -> tuple[list[Tensor], list[Tensor]]:
    if len(body.outputs) < len(states):
        raise node.broken("its body gives fewer values than it has states")
    turns = scanned[0][0].shape[scanned[0][1]]
    for tensor, axis, _ in scanned[1:]:
        context.guard(turns, tensor.shape[axis])

    def make(block: Body, counter: Tensor, state: list[Tensor]) -> Turn:
        parts = [element(block, tensor, axis, counter, bool(backward)) for tensor, axis, backward in scanned]
        values = body.translate(block.context, [*state, *parts])
        return Turn(values[: len(states)], values[len(states) :])

    return emit_loop(context, turns, states, make)


def element(block: Body, tensor: Tensor, axis: int, counter: Tensor, backward: bool = False) -> Tensor:
    """The turn's element of a tensor of the outside along an axis, which goes."""
    context = block.context
    place = counter
    if backward:
        place = context.emit("sub", context.count(tensor.shape[axis] - 1, DType.INT64), counter)
    return replace(context.emit("gather", block.capture(tensor), place, axis=axis), element=tensor.element)


def _placed(context: Context, rows: Tensor, backward: int, axis: int) -> Tensor:
    """Rows in their order along their axis."""
    target = resolve_axis(axis, rows.rank)
    ordered = flipped(context, rows) if backward else rows
    others = list(range(1, rows.rank))
    placed = context.transpose(ordered, [*others[:target], 0, *others[target:]])
    return replace(placed, element=rows.element)


def flipped(context: Context, rows: Tensor) -> Tensor:
    """Rows from the last to the first."""
    turns = rows.shape[0]
    return rows if turns.constant in (0, 1) else context.slice(rows, 0, turns - 1, turns, -1)


def _scan_batched(context: Context, node: Node, operands: Operands) -> tuple[Tensor, ...]:
    """The form of opset 8: everything has a batch first and a time next, and examples go through one by one."""
    if optional(operands, 0) is not None:
        raise node.unsupported("lengths of sequences")
    given, count = [need(node, operands, at) for at in range(1, len(operands))], node.integer("num_scan_inputs")
    body = read_subgraph(context, node, "body", len(given))
    if not 1 <= count <= len(given) or any(one.rank < 1 for one in given):
        raise node.broken(f"it has {len(given)} inputs, of which it cannot scan {count}")
    backward = _per_input(node, "directions", count)
    states = len(given) - count
    for one in given[1:]:
        context.guard(given[0].shape[0], one.shape[0])

    def make(block: Body, counter: Tensor, state: list[Tensor]) -> Turn:
        parts = [element(block, one, 0, counter) for one in given]
        scanned = [(one, 0, turn) for one, turn in zip(parts[states:], backward, strict=True)]
        finals, rows = _scanned(block.context, node, body, parts[:states], scanned)
        return Turn([], [*finals, *rows])

    return tuple(emit_loop(context, given[0].shape[0], (), make)[1])


def _scalar(context: Context, node: Node, tensor: Tensor, what: str) -> Tensor:
    """A tensor of one element as one of no axes."""
    if tensor.type.elements != 1:
        raise node.broken(f"{what} has the shape {[str(extent) for extent in tensor.shape]}, not one element")
    if tensor.content is not None:
        return Tensor.of_content(tensor.dtype, tensor.content.reshape(()))
    return context.reshape(tensor, ())


def _known(condition: Tensor) -> bool | None:
    """A truth value that is known while importing."""
    if condition.content is None or condition.content.size != 1:
        return None
    number = condition.content.item().constant
    return None if number is None else bool(number)


def _truth(value: bool) -> Tensor:
    return Tensor.of_content(DType.BOOL, to_content([int(value)], ()))


ENTRIES: tuple[Entry, ...] = (
    Entry("If", _if, since=1, reads_elements=True),
    Entry("Loop", _loop, since=1, reads_elements=True),
    Entry("Scan", _scan_batched, since=8, until=8, reads_elements=True),
    Entry("Scan", _scan, since=9, reads_elements=True),
)
