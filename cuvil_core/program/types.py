"""The words of a program: buffers; launches, branches, loops, asserts, binds, calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from cuvil_core.ir import Dim, DType, Element, Guard, TensorType
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
class Branch:
    """One of two runs of statements, by element 0 of a bool or integer buffer: not 0 takes the first."""

    condition: str
    then: tuple[Statement, ...]
    otherwise: tuple[Statement, ...] = ()
    origin: str = ""


class Carry(Enum):
    """How what a turn of a loop made becomes what the next one reads."""

    COPY = "copy"
    SWAP = "swap"
    """The two buffers change places, so nothing is moved; temporaries of one size."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A value from turn to turn: the body reads `current` and writes `following`.

    Before the loop `current` holds the start; after it, what the last turn made. Values updated in place need none of
    this.
    """

    current: str
    following: str
    how: Carry = Carry.SWAP


@dataclass(frozen=True, slots=True)
class Loop:
    """Runs the body once a turn, until all turns are done or the condition is 0 before one of them.

    Names written in the body stand for their bytes of the present turn: what the next turn needs is carried.
    """

    turns: Dim | str
    """How many at most; a name is an int64 buffer whose element 0 is read once, at the entry, negative as 0."""
    body: tuple[Statement, ...]
    carried: tuple[Carried, ...] = ()
    condition: str | None = None
    """A bool or integer buffer, set before the loop and, as a rule, in the body."""
    counter: str | None = None
    """An int64 buffer that holds 0, 1, … during the turns."""
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Assert:
    """Ends the call when element 0 of a bool or integer buffer is 0; assert i of a program gives code 1 + i."""

    condition: str
    text: str
    """What must hold of the caller's values, for the error's sentence."""


@dataclass(frozen=True, slots=True)
class Bind:
    """Gives a symbol the value of element 0 of an int64 buffer; the call ends where that is negative.

    Temporaries and outputs whose sizes need the symbol get their bytes here, and guards that name it are checked.
    """

    symbol: str
    source: str
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Call:
    """Runs a function of the support library (`program.calls`) on whole buffers."""

    function: str
    arguments: tuple[str, ...]
    extents: tuple[Dim, ...]
    """What the function is told besides: counts, and flags as 0 or 1."""
    origin: str = ""


Statement: TypeAlias = Launch | Branch | Loop | Assert | Bind | Call


def walk(statements: tuple[Statement, ...]) -> Iterator[Statement]:
    """Give every statement, those inside branches and loops after the one that holds them."""
    for one in statements:
        yield one
        if isinstance(one, Branch):
            yield from walk((*one.then, *one.otherwise))
        elif isinstance(one, Loop):
            yield from walk(one.body)


def due(arrivals: Mapping[str, int], dims: Iterable[Dim]) -> int:
    """When all these are known: 0 at the entry, else 1 + the place of the last bind that they need."""
    if not arrivals:
        return 0
    return max((arrivals[name] for dim in dims for name in dim.symbols if name in arrivals), default=0)


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output as the caller sees it: logical and row-major."""

    name: str
    type: TensorType
    element: Element | None = None
    """The narrow type that the caller sees in place of the type's dtype."""

    @property
    def kind(self) -> str:
        """NumPy's name (or ml_dtypes') of what the caller passes or gets."""
        return self.type.dtype.value if self.element is None else self.element.value


@dataclass(frozen=True, slots=True)
class Program:
    """All that one variant of an artifact does in one call."""

    name: str
    symbols: tuple[str, ...]
    """In the order of the caller's int64 array; after them those that binds give, in the order of the text."""
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    guards: tuple[Guard, ...]
    """Checked as soon as all that they name is known: at the entry, where guard i that fails gives code 1 + i, or at
    the bind that makes them due."""
    buffers: tuple[Buffer, ...]
    kernels: tuple[ScheduledKernel, ...]
    statements: tuple[Statement, ...]
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

    @property
    def launches(self) -> tuple[Launch, ...]:
        """All launches, also those inside branches and loops, in the order of the text."""
        return tuple(one for one in walk(self.statements) if isinstance(one, Launch))

    @property
    def asserts(self) -> tuple[Assert, ...]:
        """All asserts, in the same order."""
        return tuple(one for one in walk(self.statements) if isinstance(one, Assert))

    @property
    def binds(self) -> tuple[Bind, ...]:
        """All binds, in the same order."""
        return tuple(one for one in walk(self.statements) if isinstance(one, Bind))

    @property
    def given(self) -> tuple[str, ...]:
        """The symbols that the caller gives."""
        bound = {one.symbol for one in self.binds}
        return tuple(name for name in self.symbols if name not in bound)

    @property
    def arrivals(self) -> dict[str, int]:
        """Symbol → 1 + the place of its bind."""
        return {one.symbol: 1 + at for at, one in enumerate(self.binds)}

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls, in the same order."""
        return tuple(one for one in walk(self.statements) if isinstance(one, Call))

    @property
    def loops(self) -> tuple[Loop, ...]:
        """All loops, in the same order."""
        return tuple(one for one in walk(self.statements) if isinstance(one, Loop))

    @property
    def swaps(self) -> tuple[Carried, ...]:
        """All pairs of buffers that change places."""
        return tuple(pair for loop in self.loops for pair in loop.carried if pair.how is Carry.SWAP)
