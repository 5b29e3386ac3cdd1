"""Graph → Decisions: strategies and layouts forward, halos and homes backward, loops at the end."""

from dataclasses import replace

from cuvil_core.ir import Graph, Op, Value
from cuvil_core.scheduling.contractions import ConvShape, conv_schedule, conv_strategy, dot_choice, output_layout
from cuvil_core.scheduling.decisions import Choice, Decisions, Strategy
from cuvil_core.scheduling.layout import BLOCKED, PLAIN, Layout, covering, is_aligned, starts_of
from cuvil_core.scheduling.machine import Machine
from cuvil_core.scheduling.preference import prefers_blocked
from cuvil_core.scheduling.units import SERIAL, outer_operand, reads_channels_late, root_of

CONVOLUTIONS = frozenset(
    (
        Strategy.DIRECT,
        Strategy.POINTWISE,
        Strategy.STEM,
        Strategy.DEPTHWISE,
        Strategy.GROUPED,
        Strategy.GENERAL,
    )
)
_MADE = CONVOLUTIONS | {
    Strategy.MAP,
    Strategy.FOLD,
    Strategy.DOT,
    Strategy.CONCAT,
    Strategy.PREFIX,
    Strategy.SCATTER,
    Strategy.CALL,
}
"""Strategies whose results have bytes of their own."""
_WITH_BYTES = _MADE | {Strategy.ALIAS, Strategy.BRANCH, Strategy.LOOP}
"""Those whose results a reshape may share."""
_ALWAYS_VIEWS = frozenset(("slice", "broadcast_to", "iota", "dim_vector"))
MAX_VIEWS = 24
"""Views behind views before one is made into bytes: each reader walks them all."""
_VIEWS_FOR_ONE = frozenset(("transpose", "pad", "gather", "reshape"))


def _fills_blocks(value: Value, concat: Op) -> bool:
    """True where an operand takes whole blocks of the result's channels, or whole images."""
    axis = concat.integer("axis")
    starts = dict(zip(concat.operands, starts_of([one.shape for one in concat.operands], axis), strict=True))
    return axis == 0 or (axis == 1 and is_aligned(starts[value]) and is_aligned(value.shape[1]))


def choose(graph: Graph, machine: Machine) -> Decisions:
    """Decide the whole graph; pure, and equal graphs give equal decisions."""
    return _Chooser(graph, machine).run()


class _Chooser:
    """The state of one run: what has been decided so far."""

    def __init__(self, graph: Graph, machine: Machine) -> None:
        self.graph, self.machine = graph, machine
        self.choices: dict[Op, Choice] = {}
        self.blocked: dict[Value, bool] = {}
        self.layouts: dict[Value, Layout] = {}
        self.homes: dict[Value, Value] = {}
        self.views: dict[Value, int] = {}
        """View → how many views lie one behind the other up to a value with bytes."""
        self.producers = graph.producers()
        self.uses = graph.uses()

    def run(self) -> Decisions:
        for op in self.graph.ops:
            self._decide(op)
        self._find_homes()
        self._spread_halos()
        for op in self.graph.ops:
            self._finish(op)
        return Decisions(self.choices, self.layouts, self.homes)

    def _decide(self, op: Op) -> None:
        root = root_of(op)
        if op.name == "constant":
            choice, blocked = Choice(Strategy.CONSTANT), False
        elif op.blocks:
            choice, blocked = self._control(op), False
        elif root is not None and root.name == "conv":
            source = outer_operand(op, root.operands[0])
            choice = conv_strategy(ConvShape.of(root), source is not None and self.blocked.get(source, False))
            blocked = output_layout(choice).blocked
        elif root is not None and root.name == "dot":
            choice, blocked = dot_choice(root, self.machine), False
        else:
            blocked = prefers_blocked(op, self.blocked)
            choice = Choice(self._plain_strategy(op, root))
        self.choices[op] = choice
        if choice.strategy in (Strategy.VIEW, Strategy.CHECKED, Strategy.BIND):
            self.views[op.result] = self._depth(op)
        for result in op.results:
            wanted = blocked and not (choice.strategy in (Strategy.MAP, Strategy.FOLD) and self._ends_here(result))
            self.blocked[result] = wanted and len(result.shape) >= 2
            if choice.strategy is not Strategy.CONSTANT:
                self.layouts[result] = BLOCKED if self.blocked[result] else PLAIN

    def _control(self, op: Op) -> Choice:
        """Blocks are decided as graphs of their own, over row-major arguments."""
        blocks = tuple(choose(self.graph.inner(block), self.machine) for block in op.blocks)
        return Choice(Strategy.BRANCH if op.name == "if" else Strategy.LOOP, blocks=blocks)

    def _ends_here(self, value: Value) -> bool:
        """True for an output that nothing else reads: the kernel writes it as the caller wants it."""
        return value in self.graph.outputs and not self.uses.get(value)

    def _plain_strategy(self, op: Op, root: Op | None) -> Strategy:
        if op.name == "concat":
            return Strategy.CONCAT
        if op.name == "in_bounds":
            return Strategy.CHECKED
        if op.name in ("bind", "check"):
            return Strategy.BIND
        if op.name in ("sort_order", "positions", "suppress"):
            return Strategy.CALL
        if op.name == "reshape" and self._is_alias(op):
            return Strategy.ALIAS
        if op.name in SERIAL:
            return Strategy(SERIAL[op.name])
        if root is not None:
            return Strategy.FOLD
        if self._depth(op) > MAX_VIEWS:
            return Strategy.MAP
        if op.name in _ALWAYS_VIEWS or (op.name in _VIEWS_FOR_ONE and len(self.uses.get(op.result, ())) <= 1):
            return Strategy.VIEW
        return Strategy.MAP

    def _depth(self, op: Op) -> int:
        return 1 + max((self.views.get(value, 0) for value in op.operands), default=0)

    def _is_alias(self, op: Op) -> bool:
        """True where the reshaped bytes stay as they lie."""
        source = op.operands[0]
        maker = self.producers.get(source)
        if maker is None or self.choices[maker].strategy not in _WITH_BYTES:
            return False
        if not self.blocked[source]:
            return True
        units = all(extent == 1 for extent in (*source.shape[2:], *op.result.shape[2:]))
        return units and len(op.result.shape) >= 2 and op.result.shape[:2] == source.shape[:2]

    def _find_homes(self) -> None:
        for op in self.graph.ops:
            if op.name == "concat" and self.choices[op].strategy is Strategy.CONCAT:
                for operand in op.operands:
                    if self._can_live_in(operand, op):
                        self.homes[operand] = op.result

    def _can_live_in(self, value: Value, concat: Op) -> bool:
        maker = self.producers.get(value)
        if maker is None or self.choices[maker].strategy not in _MADE or value in self.homes:
            return False
        if value in self.graph.outputs or concat.operands.count(value) != 1:
            return False
        if self.choices[maker].strategy is Strategy.CALL:
            return False
        blocked = self.blocked[concat.result]
        if self.blocked[value] != blocked or (blocked and not _fills_blocks(value, concat)):
            return False
        if concat.integer("axis") > 1 and any(self._may_want_halo(user) for user in self.uses.get(concat.result, ())):
            return False
        return not any(reads_channels_late(user) for user in self.uses[value])

    def _may_want_halo(self, user: Op) -> bool:
        """True for readers that want zeros around an image, at once or through a further concat."""
        return user.name == "concat" or self.choices[user].strategy in CONVOLUTIONS

    def _spread_halos(self) -> None:
        wanted: dict[Value, list[tuple[tuple[int, int], ...]]] = {}
        for op in self.graph.ops:
            choice, root = self.choices[op], root_of(op)
            if root is None or choice.strategy not in CONVOLUTIONS or not choice.input_layout.halo:
                continue
            source = outer_operand(op, root.operands[0])
            if source is not None and self._may_carry_halo(source, root, choice):
                wanted.setdefault(self._home(source), []).append(choice.input_layout.halo)
        for value, halos in wanted.items():
            self.layouts[value] = self.layouts[value].with_halo(covering(*halos))
        for value in self.homes:
            self.layouts[value] = self.layouts[value].with_halo(self.layouts[self._home(value)].halo)

    def _may_carry_halo(self, value: Value, conv: Op, choice: Choice) -> bool:
        maker = self.producers.get(value)
        made = maker is not None and self.choices[maker].strategy in _MADE and not self._lies_among_others(value)
        aliased = any(self.choices[user].strategy is Strategy.ALIAS for user in self.uses.get(value, ()))
        same = self.blocked.get(value, False) == choice.input_layout.blocked
        return made and same and not aliased and not ConvShape.of(conv).stretched and value not in self.graph.outputs

    def _lies_among_others(self, value: Value) -> bool:
        """True where a neighbour in the same concat along a spatial axis takes the place of the halo."""
        while value in self.homes:
            value = self.homes[value]
            if self.producers[value].integer("axis") > 1:
                return True
        return False

    def _home(self, value: Value) -> Value:
        while value in self.homes:
            value = self.homes[value]
        return value

    def _finish(self, op: Op) -> None:
        choice, root = self.choices[op], root_of(op)
        if root is None or choice.strategy not in CONVOLUTIONS:
            return
        source = outer_operand(op, root.operands[0])
        made = PLAIN if source is None else self.layouts.get(source, PLAIN)
        fits = made.blocked == choice.input_layout.blocked and not ConvShape.of(root).stretched
        given = made if fits and covering(made.halo, choice.input_layout.halo) == made.halo else choice.input_layout
        choice = replace(choice, input_layout=given)
        self.choices[op] = conv_schedule(ConvShape.of(root), choice, given, self.layouts[op.results[0]], self.machine)
