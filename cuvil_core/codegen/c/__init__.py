"""Programs and kernels as C over the support library.

Holds: C text of dims, indices, expressions, loops, kernels; the host program's functions.
Takes kernels with schedules, Programs → gives C, byte for byte the same for the same input.
Must not know processors beyond lane counts: the compiler's target picks instructions.
"""

from cuvil_core.codegen.c.kernels import PRELUDE, emit_kernel, prototypes
from cuvil_core.codegen.c.program import emit_program

__all__ = ["PRELUDE", "emit_kernel", "emit_program", "prototypes"]
