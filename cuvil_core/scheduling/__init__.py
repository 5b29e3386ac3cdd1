"""Which layout each value gets, which kernel each op, and how its loops run.

Holds: machines, layouts, choices, cost models of register tiles, the layout propagation.
Takes a Graph and a Machine → gives Decisions: data that prints as text, equal for equal inputs.
Must not build kernels or touch tensors' data; a later room reads the decisions and never decides again.
"""

from cuvil_core.scheduling.choose import choose
from cuvil_core.scheduling.decisions import Choice, Decisions, Strategy
from cuvil_core.scheduling.layout import LANES, PLAIN, Layout
from cuvil_core.scheduling.loops import schedule_chain, schedule_fold, schedule_map
from cuvil_core.scheduling.machine import Isa, Machine

__all__ = [
    "LANES",
    "PLAIN",
    "Choice",
    "Decisions",
    "Isa",
    "Layout",
    "Machine",
    "Strategy",
    "choose",
    "schedule_chain",
    "schedule_fold",
    "schedule_map",
]
