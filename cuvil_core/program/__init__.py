"""The host program: what one call of a compiled model does, kernel by kernel.

Holds: buffers; launches, branches, loops, asserts, binds, calls; guards; the plan of the arena; printer, verifier, and
an interpreter that is the oracle of lowering.
Takes kernels with their schedules from lowering → gives a frozen Program that a code generator prints.
Must not know graphs, layouts, or any target language.
"""

from cuvil_core.program.interpreter import bind, interpret
from cuvil_core.program.memory import ALIGNMENT, LARGEST, Lifetime, blocks, lifetimes, offsets, rounded
from cuvil_core.program.printer import print_program
from cuvil_core.program.types import (
    Assert,
    Bind,
    Branch,
    Buffer,
    Call,
    Carried,
    Carry,
    Launch,
    Loop,
    Port,
    Program,
    Role,
    ScheduledKernel,
    Statement,
    due,
)
from cuvil_core.program.verifier import verify

__all__ = [
    "ALIGNMENT",
    "LARGEST",
    "Assert",
    "Bind",
    "Branch",
    "Buffer",
    "Call",
    "Carried",
    "Carry",
    "Launch",
    "Lifetime",
    "Loop",
    "Port",
    "Program",
    "Role",
    "ScheduledKernel",
    "Statement",
    "bind",
    "blocks",
    "due",
    "interpret",
    "lifetimes",
    "offsets",
    "print_program",
    "rounded",
    "verify",
]
