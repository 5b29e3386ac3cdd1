"""RNN, LSTM and GRU: the input's products for all times first, then a loop over time for each direction."""

from collections.abc import Callable
from dataclasses import dataclass

from cuvil_core.importer.onnx.activations import hard_sigmoid, leaky_relu, softplus_of, softsign_of
from cuvil_core.importer.onnx.blocks import Body, Turn, emit_loop
from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.control import flipped
from cuvil_core.importer.onnx.entry import Entry, Operands, need, optional
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor
from cuvil_core.ir import Dim, DType

Activation = Callable[[Context, Tensor], Tensor]
DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""Value of the attribute → for each direction whether it goes backward in time."""


@dataclass(frozen=True, slots=True)
class Layer:
    """What all directions of a layer share."""

    node: Node
    x: Tensor
    """The input with times on axis `layout` and examples on the other of the first two axes."""
    layout: int
    hidden: Dim
    gates: int
    lengths: Tensor | None
    """int64, one an example."""
    clip: float | None

    @property
    def times(self) -> Dim:
        """The number of times."""
        return self.x.shape[self.layout]

    @property
    def batch(self) -> Dim:
        """The number of examples."""
        return self.x.shape[1 - self.layout]

    @property
    def state_shape(self) -> tuple[Dim, Dim]:
        """Of the hidden state of one direction."""
        return self.batch, self.hidden


@dataclass(frozen=True, slots=True)
class Direction:
    """One direction of a layer: its weights, without their first axis."""

    layer: Layer
    backward: bool
    recurrence: Tensor
    """[gates * hidden, hidden]"""
    input_bias: Tensor | None
    state_bias: Tensor | None
    peepholes: Tensor | None
    activations: tuple[Activation, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """One turn of a direction, inside of its block."""

    direction: Direction
    block: Body

    @property
    def context(self) -> Context:
        """Where the turn is emitted."""
        return self.block.context

    def activate(self, number: int, x: Tensor) -> Tensor:
        """An activation of what lies within the clip."""
        clip = self.direction.layer.clip
        if clip is not None:
            x = self.context.number("min", self.context.number("max", x, -clip), clip)
        return self.direction.activations[number](self.context, x)

    def gate(self, tensor: Tensor, first: int, count: int = 1) -> Tensor:
        """Gates of a tensor whose last axis holds all of them."""
        hidden = self.direction.layer.hidden
        return self.context.slice(tensor, tensor.rank - 1, hidden * first, hidden * count)

    def product(self, state: Tensor, first: int, count: int) -> Tensor:
        """The state times the recurrence weights of some gates, which are picked outside, once for all times."""
        hidden, whole = self.direction.layer.hidden, self.direction.recurrence
        weights = self.block.outside.slice(whole, 0, hidden * first, hidden * count)
        return dot(self.context, state, self.block.capture(weights))

    def row(self, tensor: Tensor | None, first: int, like: Tensor) -> Tensor | None:
        """A gate of a vector of the outside, stretched over examples; None where the vector is."""
        if tensor is None:
            return None
        return self.context.stretch(self.gate(self.block.capture(tensor), first), like.shape)

    def plus(self, *terms: Tensor | None) -> Tensor:
        """The sum of those terms that are there."""
        first, *others = [term for term in terms if term is not None]
        for other in others:
            first = self.context.emit("add", first, other)
        return first

    def peep(self, gate: int, state: Tensor) -> Tensor | None:
        """A peephole: a gate's weights times the cell state."""
        weights = self.row(self.direction.peepholes, gate, state)
        return None if weights is None else self.context.emit("mul", weights, state)


Step = Callable[[Cell, Tensor, list[Tensor]], list[Tensor]]
"""(cell, the input's products of the turn, states) → states, the hidden one first."""


def dot(context: Context, a: Tensor, weights: Tensor) -> Tensor:
    """Rows of a times rows of the weights."""
    return context.emit(
        "dot", a, weights, batch_a=(), batch_b=(), contract_a=(a.rank - 1,), contract_b=(weights.rank - 1,)
    )


def _rnn_step(cell: Cell, x: Tensor, states: list[Tensor]) -> list[Tensor]:
    """f(x W + h R + b)"""
    (h,) = states
    return [cell.activate(0, cell.plus(x, cell.product(h, 0, 1)))]


def _lstm_step(cell: Cell, x: Tensor, states: list[Tensor]) -> list[Tensor]:
    """c = f * c + i * g, h = o * tanh c; gates stand as i, o, f, g, peepholes as i, o, f"""
    (h, c), emit = states, cell.context.emit
    total = cell.plus(x, cell.product(h, 0, 4))
    taken = cell.activate(0, cell.plus(cell.gate(total, 0), cell.peep(0, c)))
    if cell.direction.layer.node.flag("input_forget", False):
        kept = emit("sub", cell.context.like(taken, 1), taken)
    else:
        kept = cell.activate(0, cell.plus(cell.gate(total, 2), cell.peep(2, c)))
    new = cell.activate(1, cell.gate(total, 3))
    c = emit("add", emit("mul", kept, c), emit("mul", taken, new))
    shown = cell.activate(0, cell.plus(cell.gate(total, 1), cell.peep(1, c)))
    return [emit("mul", shown, cell.direction.activations[2](cell.context, c)), c]


def _gru_step(cell: Cell, x: Tensor, states: list[Tensor]) -> list[Tensor]:
    """h = (1 - z) * g + z * h; gates stand as update, reset, hidden"""
    (h,), emit = states, cell.context.emit
    before = cell.direction.layer.node.flag("linear_before_reset", False)
    product = cell.product(h, 0, 3 if before else 2)
    both = cell.plus(cell.gate(x, 0, 2), cell.gate(product, 0, 2))
    update, reset = (cell.activate(0, cell.gate(both, at)) for at in (0, 1))
    if before:
        inner = cell.gate(product, 2)
        inner = emit("mul", reset, cell.plus(inner, cell.row(cell.direction.state_bias, 2, inner)))
    else:
        inner = cell.product(emit("mul", reset, h), 2, 1)
    new = cell.activate(1, cell.plus(cell.gate(x, 2), inner))
    rest = emit("sub", cell.context.like(update, 1), update)
    return [emit("add", emit("mul", rest, new), emit("mul", update, h))]


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the three layers."""

    gates: int
    states: int
    """Hidden, and that of the cell."""
    activations: tuple[str, ...]
    """By default."""
    step: Step
    hidden_bias_inside: bool = False
    """Whether the last gate's bias of the state may stand inside the reset."""


RNN = Kind(1, 1, ("tanh",), _rnn_step)
LSTM = Kind(4, 2, ("sigmoid", "tanh", "tanh"), _lstm_step)
GRU = Kind(3, 1, ("sigmoid", "tanh"), _gru_step, hidden_bias_inside=True)


def _translate(kind: Kind) -> Callable[[Context, Node, Operands], tuple[Tensor, ...]]:
    def translate(context: Context, node: Node, operands: Operands) -> tuple[Tensor, ...]:
        return _recurrent(context, node, operands, kind)

    return translate


def _recurrent(context: Context, node: Node, operands: Operands, kind: Kind) -> tuple[Tensor, ...]:
    sides = DIRECTIONS.get(node.text("direction", "forward"))
    if sides is None:
        raise node.broken(f"there is no direction {node.text('direction')!r}")
    layer = _layer(context, node, operands, kind, len(sides))
    activations = _activations(node, kind, len(sides))
    starts = [_state(context, layer, optional(operands, 5 + at), len(sides)) for at in range(kind.states)]
    peepholes = optional(operands, 7) if kind is LSTM else None
    weights = [need(node, operands, 1), need(node, operands, 2), optional(operands, 3), peepholes]
    wanted = bool(node.outputs and node.outputs[0])
    found = []
    for at, backward in enumerate(sides):
        w, r, b, p = (None if one is None else _of_direction(context, one, at) for one in weights)
        assert w is not None and r is not None
        inputs, states = _biases(context, layer, b)
        direction = Direction(layer, backward, r, inputs, states, p, activations[at])
        found.append(_direction(context, direction, kind, w, [start[at] for start in starts], wanted))
    finals = (_joined(context, layer, [one[0][at] for one in found]) for at in range(kind.states))
    rows = _all_times(context, layer, [one[1] for one in found]) if wanted else layer.x
    return (rows, *finals)


def _layer(context: Context, node: Node, operands: Operands, kind: Kind, sides: int) -> Layer:
    x, w, r = (need(node, operands, at) for at in range(3))
    b, lengths, layout = optional(operands, 3), optional(operands, 4), node.integer("layout", 0)
    if x.rank != 3 or w.rank != 3 or r.rank != 3 or layout not in (0, 1):
        raise node.broken("X, W and R need three axes, and layout is 0 or 1")
    hidden = r.shape[2]
    context.guard(hidden, node.integer("hidden_size", hidden.constant))
    wanted: list[tuple[Tensor, tuple[Dim | int, ...]]] = [
        (w, (sides, hidden * kind.gates, x.shape[2])),
        (r, (sides, hidden * kind.gates, hidden)),
    ]
    wanted += [(b, (sides, hidden * kind.gates * 2))] if b is not None else []
    wanted += [(lengths, (x.shape[1 - layout],))] if lengths is not None else []
    for tensor, shape in wanted:
        _fit(context, node, tensor, shape)
    clip = node.number("clip") if node.has("clip") else None
    lengths = None if lengths is None else context.cast(lengths, DType.INT64)
    return Layer(node, x, layout, hidden, kind.gates, lengths, clip)


def _fit(context: Context, node: Node, tensor: Tensor, shape: tuple[Dim | int, ...]) -> None:
    if tensor.rank != len(shape):
        raise node.broken(f"an input has rank {tensor.rank}, not {len(shape)}")
    for have, want in zip(tensor.shape, shape, strict=True):
        context.guard(have, want)


def _activations(node: Node, kind: Kind, sides: int) -> list[tuple[Activation, ...]]:
    """The functions of each direction; alpha and beta go to those that take one, in order."""
    attribute = node.attributes.get("activations")
    given = [text.decode("utf-8", "replace").lower() for text in attribute.strings] if attribute is not None else []
    names = given or [*kind.activations] * sides
    if len(names) != len(kind.activations) * sides:
        raise node.broken(f"it has {len(names)} activations, not {len(kind.activations) * sides}")
    alphas, betas = iter(node.numbers("activation_alpha", ())), iter(node.numbers("activation_beta", ()))
    functions = []
    for name in names:
        entry = ACTIVATIONS.get(name)
        if entry is None:
            raise node.broken(f"there is no activation {name!r}")
        make, alpha, beta = entry
        a = 0.0 if alpha is None else next(alphas, alpha)
        functions.append(make(a, 0.0 if beta is None else next(betas, beta)))
    count = len(kind.activations)
    return [tuple(functions[count * side : count * (side + 1)]) for side in range(sides)]


def _state(context: Context, layer: Layer, given: Tensor | None, sides: int) -> list[Tensor]:
    """The state of each direction before the first time."""
    if given is None:
        return [context.full(layer.x.dtype, 0, layer.state_shape)] * sides
    shape = (sides, layer.batch) if layer.layout == 0 else (layer.batch, sides)
    _fit(context, layer.node, given, (*shape, layer.hidden))
    parts = (context.slice(given, layer.layout, side, 1) for side in range(sides))
    return [context.reshape(part, layer.state_shape) for part in parts]


def _of_direction(context: Context, tensor: Tensor, side: int) -> Tensor:
    return context.reshape(context.slice(tensor, 0, side, 1), tensor.shape[1:])


def _biases(context: Context, layer: Layer, b: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
    if b is None:
        return None, None
    half = layer.hidden * layer.gates
    return context.slice(b, 0, 0, half), context.slice(b, 0, half, half)


def _direction(
    context: Context, direction: Direction, kind: Kind, w: Tensor, start: list[Tensor], wanted: bool
) -> tuple[list[Tensor], Tensor | None]:
    """The states after all times, and, where wanted, the hidden state at each, in order of time."""
    layer, backward = direction.layer, direction.backward
    inputs = _products(context, direction, kind, w)

    def make(block: Body, counter: Tensor, states: list[Tensor]) -> Turn:
        cell = Cell(direction, block)
        inner = block.context
        time = counter
        if backward:
            time = inner.emit("sub", inner.count(layer.times - 1, DType.INT64), counter)
        x = inner.emit("gather", block.capture(inputs), time, axis=layer.layout)
        found = kind.step(cell, x, states)
        shown = found[0]
        if layer.lengths is not None:
            runs = _runs(cell, time, found[0])
            shown = inner.emit("select", runs, found[0], inner.like(found[0], 0))
            found = [inner.emit("select", runs, new, old) for new, old in zip(found, states, strict=True)]
        return Turn(found, [shown] if wanted else [])

    finals, rows = emit_loop(context, layer.times, start, make)
    return finals, (flipped(context, rows[0]) if backward else rows[0]) if rows else None


def _products(context: Context, direction: Direction, kind: Kind, w: Tensor) -> Tensor:
    """The input times its weights at all times, with all biases that stand outside of the reset."""
    total = dot(context, direction.layer.x, w)
    state_bias, hidden = direction.state_bias, direction.layer.hidden
    if direction.input_bias is None or state_bias is None:
        return total
    if kind.hidden_bias_inside and direction.layer.node.flag("linear_before_reset", False):
        outside = context.slice(state_bias, 0, 0, hidden * (kind.gates - 1))
        zero = context.full(state_bias.dtype, 0, (hidden,))
        state_bias = context.concat([outside, zero], 0)
    bias = context.emit("add", direction.input_bias, state_bias)
    return context.emit("add", total, context.stretch(bias, total.shape))


def _runs(cell: Cell, time: Tensor, like: Tensor) -> Tensor:
    """True for examples whose sequence has not ended at this time."""
    context, lengths = cell.context, cell.direction.layer.lengths
    assert lengths is not None
    inside = context.emit("lt", context.stretch(time, lengths.shape), cell.block.capture(lengths))
    return context.stretch(context.reshape(inside, (*inside.shape, 1)), like.shape)


def _joined(context: Context, layer: Layer, states: list[Tensor]) -> Tensor:
    """Final states of all directions: [directions, batch, hidden], or the first two the other way round."""
    shape = [*layer.state_shape]
    shape.insert(layer.layout, Dim.of(1))
    return context.concat([context.reshape(state, shape) for state in states], layer.layout)


def _all_times(context: Context, layer: Layer, rows: list[Tensor | None]) -> Tensor:
    """[times, directions, batch, hidden], or [batch, times, directions, hidden]"""
    shape = (layer.times, 1, *layer.state_shape)
    y = context.concat([context.reshape(row, shape) for row in rows if row is not None], 1)
    return y if layer.layout == 0 else context.transpose(y, (2, 0, 1, 3))


def _plain(name: str) -> Callable[[float, float], Activation]:
    return lambda alpha, beta: lambda context, x: context.emit(name, x)


def _scaled_tanh(alpha: float, beta: float) -> Activation:
    def apply(context: Context, x: Tensor) -> Tensor:
        return context.number("mul", context.emit("tanh", context.number("mul", x, beta)), alpha)

    return apply


def _affine(alpha: float, beta: float) -> Activation:
    return lambda context, x: context.number("add", context.number("mul", x, alpha), beta)


def _thresholded(alpha: float, beta: float) -> Activation:
    def apply(context: Context, x: Tensor) -> Tensor:
        return context.emit("select", context.number("ge", x, alpha), x, context.like(x, 0))

    return apply


def _elu(alpha: float, beta: float) -> Activation:
    def apply(context: Context, x: Tensor) -> Tensor:
        low = context.number("mul", context.number("sub", context.emit("exp", x), 1), alpha)
        return context.emit("select", context.number("lt", x, 0), low, x)

    return apply


ACTIVATIONS: dict[str, tuple[Callable[[float, float], Activation], float | None, float | None]] = {
    "relu": (lambda alpha, beta: lambda context, x: context.number("max", x, 0), None, None),
    "tanh": (_plain("tanh"), None, None),
    "sigmoid": (_plain("sigmoid"), None, None),
    "affine": (_affine, 1.0, 0.0),
    "leakyrelu": (lambda alpha, beta: lambda context, x: leaky_relu(context, x, alpha), 0.01, None),
    "thresholdedrelu": (_thresholded, 1.0, None),
    "scaledtanh": (_scaled_tanh, 1.0, 1.0),
    "hardsigmoid": (lambda alpha, beta: lambda context, x: hard_sigmoid(context, x, alpha, beta), 0.2, 0.5),
    "elu": (_elu, 1.0, None),
    "softsign": (lambda alpha, beta: softsign_of, None, None),
    "softplus": (lambda alpha, beta: softplus_of, None, None),
}
"""Name → (function of alpha and beta, the default of alpha, of beta; None where it takes none)."""

ENTRIES: tuple[Entry, ...] = (
    Entry("RNN", _translate(RNN), since=7),
    Entry("LSTM", _translate(LSTM), since=7),
    Entry("GRU", _translate(GRU), since=7),
)
