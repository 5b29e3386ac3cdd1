"""The words of a program: buffers, launches, assertions."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from cuvil_core.ir import Dim, DType, Guard, TensorType
from cuvil_core.kernel_ir import Kernel, Schedule


class Role(Enum):
    """Who owns the bytes of a buffer."""

    INPUT = "input"
    """The caller; read only."""
    OUTPUT = "output"
    """The caller; written, and read back by later kernels of the same call."""
    WEIGHT = "weight"
    """The artifact's weight segment; read only, mapped."""
    TEMPORARY = "temporary"
    """The arena of the call."""


@dataclass(frozen=True, slots=True)
class Buffer:
    """A run of elements of one dtype."""

    name: str
    role: Role
    dtype: DType
    size: Dim
    """Elements, with halo and padding lanes."""
    position: int = 0
    """INPUT and OUTPUT: place in the caller's list; WEIGHT: byte offset in the segment; TEMPORARY: unused."""

    @property
    def bytes(self) -> Dim:
        """Size in bytes."""
        return self.size * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class ScheduledKernel:
    """A kernel and how it runs."""

    kernel: Kernel
    schedule: Schedule


@dataclass(frozen=True, slots=True)
class Launch:
    """One run of a kernel; `arguments` are buffer names in the order of the kernel's parameters."""

    kernel: str
    arguments: tuple[str, ...]
    origin: str = ""
    """Nodes of the model that this launch computes, for profiles and errors."""


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output as the caller sees it: logical and row-major."""

    name: str
    type: TensorType


@dataclass(frozen=True, slots=True)
class Program:
    """All that one variant of an artifact does in one call."""

    name: str
    symbols: tuple[str, ...]
    """In the order of the caller's int64 array."""
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    guards: tuple[Guard, ...]
    """Checked once, at the entry; guard i that fails gives code 1 + i."""
    buffers: tuple[Buffer, ...]
    kernels: tuple[ScheduledKernel, ...]
    statements: tuple[Launch, ...]
    weights: bytes
    """The weight segment; every WEIGHT buffer is a slice of it."""

    def buffer(self, name: str) -> Buffer:
        """Find a buffer by name; raises KeyError."""
        return self.by_name()[name]

    def by_name(self) -> dict[str, Buffer]:
        """Give all buffers by name."""
        return {one.name: one for one in self.buffers}

    def of_role(self, role: Role) -> Iterator[Buffer]:
        """Give the buffers of one owner, in order."""
        return (one for one in self.buffers if one.role is role)
