"""From a graph with decisions to a program with kernels.

Holds: placements of values, the table of primitives as expressions over indices, one builder for each strategy, packing
of constants, the collapse of loops.
Takes a Graph and its Decisions → gives a Program whose interpretation equals the graph's reference.
Must not choose: layouts, kernels and schedules of contractions are read from the decisions.
"""

from cuvil_core.lowering.lower import lower, ports_of

__all__ = ["lower", "ports_of"]
