"""Adagrad, Adam and Momentum: one step of training for each of any number of tensors."""

from collections.abc import Callable, Sequence

from cuvil_core.importer.onnx.context import Context
from cuvil_core.importer.onnx.entry import Entry, Operands, Translate, all_of
from cuvil_core.importer.onnx.node import Node
from cuvil_core.importer.onnx.tensor import Tensor

DOMAIN = "ai.onnx.preview.training"
Step = Callable[[Context, Node, Tensor, Tensor, Sequence[Tensor]], tuple[Tensor, ...]]
"""(learning rate, number of steps so far, one tensor of each kind) → one new tensor of each kind but the gradient."""


def _for_each(kinds: int, step: Step) -> Translate:
    """The inputs are R, T, then all tensors of the first kind, all of the second, …; so are the outputs."""

    def translate(context: Context, node: Node, operands: Operands) -> tuple[Tensor, ...]:
        rate, count, *tensors = all_of(node, operands)
        if not tensors or len(tensors) % kinds or rate.type.elements != 1 or count.type.elements != 1:
            raise node.broken(f"it needs a rate, a count of steps and {kinds} tensors for each that is trained")
        number = len(tensors) // kinds
        if len(node.outputs) != number * (kinds - 1):
            raise node.broken(f"it has {len(node.outputs)} outputs for {number} tensors")
        rate, count = context.reshape(rate, ()), context.reshape(count, ())
        made = []
        for at in range(number):
            own = [tensors[kind * number + at] for kind in range(kinds)]
            if any(tensor.rank != own[0].rank for tensor in own):
                raise node.broken("a tensor, its gradient and its state have different ranks")
            for tensor in own[1:]:
                for a, b in zip(own[0].shape, tensor.shape, strict=True):
                    context.guard(a, b)
            made.append(step(context, node, context.cast(rate, own[0].dtype), count, own))
        return tuple(results[kind] for kind in range(kinds - 1) for results in made)

    return translate


def _regularized(context: Context, node: Node, x: Tensor, gradient: Tensor) -> Tensor:
    """The gradient and that of norm_coefficient/2 times the squared norm."""
    coefficient = node.number("norm_coefficient", 0.0)
    return gradient if coefficient == 0 else context.emit("add", context.number("mul", x, coefficient), gradient)


def _adagrad(
    context: Context, node: Node, rate: Tensor, count: Tensor, tensors: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    x, gradient, squares = tensors
    slowing = context.number("mul", context.cast(count, x.dtype), node.number("decay_factor", 0.0))
    now = context.emit("div", rate, context.number("add", slowing, 1))
    gradient = _regularized(context, node, x, gradient)
    squares = context.emit("add", squares, context.emit("mul", gradient, gradient))
    size = context.number("add", context.emit("sqrt", squares), node.number("epsilon", 1e-6))
    step = context.emit("div", context.binary("mul", now, gradient), size)
    return context.emit("sub", x, step), squares


def _adam(context: Context, node: Node, rate: Tensor, count: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    x, gradient, mean, square = tensors
    alpha, beta = node.number("alpha", 0.9), node.number("beta", 0.999)
    gradient = _regularized(context, node, x, gradient)
    mean = _moved(context, mean, gradient, alpha)
    square = _moved(context, square, context.emit("mul", gradient, gradient), beta)
    size = context.number("add", context.emit("sqrt", square), node.number("epsilon", 1e-6))
    step = context.emit("div", context.binary("mul", _unbiased(context, rate, count, alpha, beta), mean), size)
    result = context.emit("sub", x, step)
    after = node.number("norm_coefficient_post", 0.0)
    return (result if after == 0 else context.number("mul", result, 1 - after)), mean, square


def _moved(context: Context, old: Tensor, new: Tensor, keep: float) -> Tensor:
    return context.emit("add", context.number("mul", old, keep), context.number("mul", new, 1 - keep))


def _unbiased(context: Context, rate: Tensor, count: Tensor, alpha: float, beta: float) -> Tensor:
    """rate · sqrt(1 - betaᵗ) / (1 - alphaᵗ), the rate itself before the first step."""
    steps = context.cast(count, rate.dtype)
    left = [context.emit("sub", context.like(steps, 1), _power(context, base, steps)) for base in (alpha, beta)]
    factor = context.emit("div", context.emit("sqrt", left[1]), left[0])
    begun = context.number("gt", count, 0)
    return context.emit("select", begun, context.emit("mul", rate, factor), rate)


def _power(context: Context, base: float, exponent: Tensor) -> Tensor:
    return context.emit("pow", context.like(exponent, base), exponent)


def _momentum(
    context: Context, node: Node, rate: Tensor, count: Tensor, tensors: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    x, gradient, speed = tensors
    mode, alpha = node.text("mode"), node.number("alpha")
    if mode not in ("standard", "nesterov"):
        raise node.broken(f"there is no mode {mode!r}")
    gradient = _regularized(context, node, x, gradient)
    begun = context.number("gt", count, 0)
    one = context.scalar(x.dtype, 1)
    weight = context.emit("select", begun, context.like(one, node.number("beta")), one)
    speed = context.emit("add", context.number("mul", speed, alpha), context.binary("mul", weight, gradient))
    way = speed
    if mode == "nesterov":
        way = context.emit("add", gradient, context.number("mul", speed, alpha))
    return context.emit("sub", x, context.binary("mul", rate, way)), speed


ENTRIES: tuple[Entry, ...] = (
    Entry("Adagrad", _for_each(3, _adagrad), since=1, domain=DOMAIN),
    Entry("Adam", _for_each(4, _adam), since=1, domain=DOMAIN),
    Entry("Momentum", _for_each(3, _momentum), since=1, domain=DOMAIN),
)
