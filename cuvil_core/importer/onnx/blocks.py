"""Blocks of control flow in the making, and the ops that hold them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from cuvil_core.errors import InternalError, ModelError, UnsupportedOpError
from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.scope import Names
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Block, Dim, DType, Payload, TensorType, Value


class Body:
    """A block that is being translated; what it takes from outside becomes an argument when it is first used."""

    def __init__(self, outside: Context) -> None:
        self.outside, self.context = outside, outside.inner()
        self.captured: dict[Value, Value] = {}
        """Value of the outside → argument."""
        if outside.scope is not None:
            names = Names({}, outside.scope.known, self.capture)
            self.context.scope = replace(outside.scope, known=names)

    def argument(self, type: TensorType) -> Tensor:
        """A tensor that each run of the block gets anew."""
        return Tensor.of_value(self.context.builder.value(type))

    def capture(self, tensor: Tensor) -> Tensor:
        """A tensor of the outside as the block sees it; constants and shapes are made again inside."""
        if tensor.items is not None:
            return replace(tensor, items=tuple(map(self.capture, tensor.items)))
        if tensor.value is None or tensor.payload is not None or tensor.content is not None:
            made = tensor.recipe
            recipe = None if made is None else replace(made, operands=tuple(map(self.capture, made.operands)))
            return Tensor(tensor.type, None, tensor.payload, tensor.content, recipe, tensor.element)
        inner = self.captured.get(tensor.value)
        if inner is None:
            inner = self.captured[tensor.value] = self.context.builder.value(tensor.value.type)
        return replace(Tensor.of_value(inner), element=tensor.element)

    def finish(self, arguments: Sequence[Tensor], captured: Sequence[Value], outputs: Sequence[Tensor]) -> Block:
        """The block over the arguments and all captured values, read or not."""
        builder = self.context.builder
        values = [self.context.value(output) for output in outputs]
        given = [argument.value for argument in arguments if argument.value is not None]
        taken = [self.captured.get(outer) or builder.value(outer.type) for outer in captured]
        return builder.finish_block([*given, *taken], values)


def agree(context: Context, a: Tensor, b: Tensor, what: str) -> None:
    """Go on where a value has one type on two ways, with guards where that cannot be proved."""
    if (a.dtype, a.element) != (b.dtype, b.element):
        kinds = [str(one.element or one.dtype) for one in (a, b)]
        raise ModelError(f"{what} is {kinds[0]} on one way and {kinds[1]} on the other")
    if a.items is not None and b.items is not None and len(a.items) == len(b.items):
        for item, other in zip(a.items, b.items, strict=True):
            agree(context, item, other, what)
        return
    if a.items is not None or b.items is not None:
        raise UnsupportedOpError(f"{what} is a sequence whose length the way taken decides; give it one length")
    if a.rank != b.rank or any(_differ(x, y) for x, y in zip(a.shape, b.shape, strict=True)):
        shapes = " and ".join(f"[{', '.join(map(str, one.shape))}]" for one in (a, b))
        raise UnsupportedOpError(f"{what} has the shapes {shapes}, by the way taken; give it one shape")
    for x, y in zip(a.shape, b.shape, strict=True):
        context.guard(x, y)


def _differ(a: Dim, b: Dim) -> bool:
    """True where no symbols make them equal, or one is 1 and stretches to the other as a rule."""
    low, high = (a - b).bounds()
    return (low or 0) > 0 or (high or 0) < 0 or (a != b and 1 in (a.constant, b.constant))


def emit_if(context: Context, condition: Tensor, sides: Sequence[Callable[[Body], list[Tensor]]]) -> list[Tensor]:
    """Both sides as blocks; what they give must have equal types."""
    bodies = [Body(context) for _ in sides]
    then, otherwise = ([*side(body)] for side, body in zip(sides, bodies, strict=True))
    if len(then) != len(otherwise):
        raise ModelError("its branches have different numbers of outputs")
    for number, (a, b) in enumerate(zip(then, otherwise, strict=True)):
        agree(context, a, b, f"its output {number}")
    captured = list(dict.fromkeys(value for body in bodies for value in body.captured))
    made = zip(bodies, (_flat(then), _flat(otherwise)), strict=True)
    blocks = tuple(body.finish((), captured, outputs) for body, outputs in made)
    flag = context.value(context.reshape(condition, ()))
    results = iter(context.builder.emit_all("if", [flag, *captured], {}, None, context.provenance, blocks))
    return [_like(one, results) for one in then]


def _flat(outputs: Sequence[Tensor]) -> list[Tensor]:
    """The tensors, with those of sequences one by one."""
    return [item for one in outputs for item in ((one,) if one.items is None else one.items)]


def _like(one: Tensor, values: Iterator[Value]) -> Tensor:
    """The next value, or as many as the sequence has, with the narrow type that they stand for."""
    if one.items is not None:
        return replace(one, items=tuple(_like(item, values) for item in one.items))
    return replace(Tensor.of_value(next(values)), element=one.element)


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn of a loop makes."""

    state: list[Tensor]
    """The carried values of the next turn."""
    rows: list[Tensor]
    goes_on: Tensor | None = None
    """One bool; None while nothing but the number of turns ends the loop."""


MakeTurn = Callable[[Body, Tensor, list[Tensor]], Turn]
"""(block, counter, carried values) → what a turn makes."""


def emit_loop(
    context: Context,
    turns: Dim | Tensor,
    initial: Sequence[Tensor],
    make: MakeTurn,
    condition: Tensor | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """(what the last turn left, rows of all turns on a first axis) of a loop.

    Where a condition ends it before all turns, the other rows are zero.
    """
    if any(one.items is not None for one in initial):
        raise UnsupportedOpError("it carries a sequence from turn to turn of a loop whose length only a call knows")
    body = Body(context)
    counter = body.argument(TensorType(DType.INT64, ()))
    state = [replace(body.argument(one.type), element=one.element) for one in initial]
    turn = make(body, counter, state)
    for number, (one, other) in enumerate(zip(initial, turn.state, strict=True)):
        agree(context, one, other, f"its loop-carried value {number}")
    conditional = condition is not None or turn.goes_on is not None
    if turn.rows and isinstance(turns, Tensor):
        raise InternalError("Rows need an extent for the number of turns; report this as a fault of Cuvil.")
    truth = Tensor.of_payload(Payload.scalar(DType.BOOL, True))
    goes_on = [body.context.reshape(turn.goes_on or truth, ())] if conditional else []
    limit = [context.reshape(turns, ())] if isinstance(turns, Tensor) else []
    flag = [context.reshape(condition or truth, ())] if conditional else []
    captured = list(body.captured)
    block = body.finish([counter, *state], captured, [*goes_on, *turn.state, *turn.rows])
    operands = [context.value(one) for one in (*limit, *flag, *initial)] + captured
    attributes = {
        "turns": (turns,) if isinstance(turns, Dim) else (),
        "conditional": conditional,
        "carried": len(state),
    }
    if not turn.state and not turn.rows:
        return [], []
    values = iter(context.builder.emit_all("loop", operands, attributes, None, context.provenance, (block,)))
    results = [_like(one, values) for one in (*turn.state, *turn.rows)]
    for one in results:
        context.check_size(one.type)
    return results[: len(state)], results[len(state) :]
