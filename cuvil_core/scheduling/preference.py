"""Whether an op would rather be computed channel block by channel block."""

from collections.abc import Mapping

from cuvil_core.ir import Op, Value
from cuvil_core.scheduling.layout import HALF, LANES, is_aligned


def prefers_blocked(op: Op, blocked: Mapping[Value, bool]) -> bool:
    """True where the (first) result of an op is best made blocked, given how its operands are made."""
    if op.region is None:
        return _primitive(op, blocked)
    inside = {inner: blocked.get(outer, False) for inner, outer in zip(op.region.inputs, op.operands, strict=True)}
    for one in op.region.ops:
        answer = _primitive(one, inside)
        inside.update(dict.fromkeys(one.results, answer))
    return inside[op.region.outputs[0]]


def _primitive(op: Op, blocked: Mapping[Value, bool]) -> bool:
    operands = [value for value in op.operands if blocked.get(value, False)]
    if not operands or any(len(result.shape) < 2 for result in op.results):
        return False
    rule = _RULES.get(op.name)
    return rule(op) if rule is not None else True


def _keeps_channels(op: Op) -> bool:
    """reshape, broadcast: N and C stay the first two axes."""
    source, result = op.operands[0].shape, op.result.shape
    return len(source) >= 2 and len(result) >= 2 and source[:2] == result[:2]


def _slice(op: Op) -> bool:
    start, step = op.dims("starts")[1], op.integers("steps")[1]
    return step == 1 and start.exact_div(LANES) is not None


def _pad(op: Op) -> bool:
    return op.dims("low")[1] == 0 and op.dims("high")[1] == 0


def _concat(op: Op) -> bool:
    """Channels of a blocked result: whole blocks together, and each operand at least whole halves."""
    if op.integer("axis") != 1:
        return True
    halves = all(value.shape[1].exact_div(HALF) is not None for value in op.operands)
    return halves and is_aligned(op.result.shape[1])


def _transpose(op: Op) -> bool:
    return op.integers("perm")[:2] == (0, 1)


def _reduce(op: Op) -> bool:
    return min(op.integers("axes"), default=2) >= 2


def _never(op: Op) -> bool:
    return False


def _broadcast(op: Op) -> bool:
    source, result = op.operands[0].shape, op.result.shape
    return len(source) == len(result) and source[1] == result[1]


_RULES = {
    "reshape": _keeps_channels,
    "broadcast_to": _broadcast,
    "slice": _slice,
    "pad": _pad,
    "concat": _concat,
    "transpose": _transpose,
    "reduce": _reduce,
    "gather": _never,
    "in_bounds": _never,
    "sort_order": _never,
    "positions": _never,
    "suppress": _never,
    "bind": _never,
    "check": _never,
    "arg_reduce": _never,
    "prefix_reduce": _never,
    "scatter": _never,
    "dot": _never,
    "conv": _never,
}
