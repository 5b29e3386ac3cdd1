"""Nodes → GpuNodes: pure."""

from collections.abc import Iterable

from cuvil_operator.facts import GpuNodes
from cuvil_operator.gateways.protocols import Document


def read_nodes(nodes: Iterable[Document], resource: str) -> GpuNodes:
    """Count the ready, schedulable nodes that advertise at least one of the extended resource."""
    return GpuNodes({resource: sum(_offers(node, resource) for node in nodes)})


def _offers(node: Document, resource: str) -> bool:
    status = node.get("status") or {}
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ())
    amount = str((status.get("allocatable") or {}).get(resource, "0"))
    return ready and not (node.get("spec") or {}).get("unschedulable") and amount not in ("", "0")
