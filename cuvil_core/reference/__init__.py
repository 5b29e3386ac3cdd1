"""What every primitive computes, in plain NumPy: the oracle of passes, lowering and back ends.

Holds: one function a primitive, the interpreter of whole graphs, conversion between payloads and arrays.
Takes a graph and arrays → gives arrays. Slow and literal on purpose.
Must not optimize, cache, or know kernels, layouts or model files.
"""

from cuvil_core.reference.arrays import array_of, numpy_dtype, payload_of
from cuvil_core.reference.interpreter import bind_symbols, evaluate, run
from cuvil_core.reference.table import REFERENCE

__all__ = ["REFERENCE", "array_of", "bind_symbols", "evaluate", "numpy_dtype", "payload_of", "run"]
