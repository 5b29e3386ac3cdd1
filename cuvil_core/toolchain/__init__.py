"""C source → shared objects, with the clang that the `ziglang` wheel brings.

Holds: the targets' flags, the compiler's processes, their time limits, caches and errors.
Takes file name → C text, a TargetSpec, a cache directory → gives the bytes of one .so, the same for the same input.
The only room that runs processes. Must not know kernels, models, or what the C says.
"""

from cuvil_core.toolchain.building import build, compiler_version
from cuvil_core.toolchain.process import prepared
from cuvil_core.toolchain.targets import AVX2, AVX512, TargetSpec, native

__all__ = ["AVX2", "AVX512", "TargetSpec", "build", "compiler_version", "native", "prepared"]
