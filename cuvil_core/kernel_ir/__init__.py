"""The kernel IR: loops over buffers, and how to run them, as two separate pieces of data.

Holds: indices, scalar expressions, Map, Fold and Contraction over axes, kernels; schedules; printer, verifier, and a
slow interpreter over NumPy arrays that is the oracle of lowering and code generation.
Takes Dim and DType from `ir` → gives frozen kernels and schedules.
Must not know tensors, layouts or any target language.
"""

from cuvil_core.kernel_ir.expressions import (
    Accumulator,
    AxisIndex,
    Binary,
    Bitcast,
    Cast,
    Expr,
    Fma,
    Literal,
    Load,
    Select,
    Unary,
)
from cuvil_core.kernel_ir.index import Access, Index, IndexLike, Indirect, Within
from cuvil_core.kernel_ir.kernel import (
    Axis,
    Buffer,
    Combine,
    Contraction,
    Fold,
    Kernel,
    Map,
    Reducer,
    Scratch,
    Statement,
    Store,
    Use,
)
from cuvil_core.kernel_ir.printer import print_kernel, print_schedule
from cuvil_core.kernel_ir.schedule import Microkernel, Schedule, Tail
from cuvil_core.kernel_ir.verifier import KernelError, verify, verify_schedule

__all__ = [
    "Access",
    "Accumulator",
    "Axis",
    "AxisIndex",
    "Binary",
    "Bitcast",
    "Buffer",
    "Cast",
    "Combine",
    "Contraction",
    "Expr",
    "Fma",
    "Fold",
    "Index",
    "IndexLike",
    "Indirect",
    "Kernel",
    "KernelError",
    "Literal",
    "Load",
    "Map",
    "Microkernel",
    "Reducer",
    "Schedule",
    "Scratch",
    "Select",
    "Statement",
    "Store",
    "Tail",
    "Unary",
    "Use",
    "Within",
    "print_kernel",
    "print_schedule",
    "verify",
    "verify_schedule",
]
