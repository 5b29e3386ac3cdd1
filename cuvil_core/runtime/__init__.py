"""A compiled model, loaded and called.

Holds: the choice of the instruction-set variant, the loading of its library, the process's thread pool, arenas, checks
of a caller's tensors. Takes an artifact and tensors (NumPy or torch) → gives tensors of the same kind.
Must import only NumPy, the standard library, `artifact`, `contract` and `errors`: it ships alone in the runtime image.
"""

from cuvil_core.runtime.load import load
from cuvil_core.runtime.module import CuvilModule, LoadReport, Signature
from cuvil_core.runtime.threads import available_cpus, thread_count
from cuvil_core.runtime.variants import cpu_features

__all__ = ["CuvilModule", "LoadReport", "Signature", "available_cpus", "cpu_features", "load", "thread_count"]
