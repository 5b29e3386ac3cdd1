"""What rules may ask of the graph round a value."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from cuvil_core.ir import Graph, Op, Payload, Value


@dataclass(slots=True)
class Facts:
    """Producers and numbers of uses; the driver keeps them true while it rewrites."""

    producers: dict[Value, Op] = field(default_factory=dict)
    use_counts: dict[Value, int] = field(default_factory=dict)
    """Uses by ops and as outputs."""

    @staticmethod
    def of(graph: Graph) -> "Facts":
        """The facts of a whole graph."""
        facts = Facts()
        for op in graph.ops:
            facts.add(op)
            facts.count_uses(op.operands)
        facts.count_uses(graph.outputs)
        return facts

    def add(self, op: Op) -> None:
        """Record an op as the producer of its results."""
        for result in op.results:
            self.producers[result] = op

    def count_uses(self, values: Iterable[Value]) -> None:
        """Count one use more of each value."""
        for value in values:
            self.use_counts[value] = self.use_counts.get(value, 0) + 1

    def producer(self, value: Value, name: str | None = None) -> Op | None:
        """The op that makes the value, if it has this name; None for graph inputs."""
        op = self.producers.get(value)
        return op if op is not None and name in (None, op.name) else None

    def uses(self, value: Value) -> int:
        """How often the value is used."""
        return self.use_counts.get(value, 0)

    def payload(self, value: Value) -> Payload | None:
        """The payload when the value is a constant."""
        op = self.producer(value, "constant")
        return op.payload() if op is not None else None

    def scalar(self, value: Value) -> float | int | bool | None:
        """The one number that fills the value, when it is a constant or a stretched one."""
        op = self.producer(value, "broadcast_to")
        payload = self.payload(op.operands[0] if op is not None else value)
        return payload.item() if payload is not None else None
