"""What a schedule must know of a CPU."""

from dataclasses import dataclass
from enum import Enum


class Isa(Enum):
    """An instruction set with its own variant in an artifact; the value is the variant's suffix."""

    AVX2 = "avx2"
    AVX512 = "avx512"


@dataclass(frozen=True, slots=True)
class Machine:
    """A CPU as the schedules see it."""

    isa: Isa
    registers: int
    """Vector registers."""
    lanes: int
    """float32 elements a register."""
    l1: int = 32 << 10
    """Bytes of first-level data cache a core, the least among CPUs of this kind."""
    l2: int = 1 << 20
    """Bytes of second-level cache a core."""
    threads: int = 2
    """Threads that shares are made for; a schedule is right for any number."""

    @staticmethod
    def of(isa: Isa) -> "Machine":
        """The least CPU of an instruction set."""
        return Machine(Isa.AVX2, 16, 8, l2=256 << 10) if isa is Isa.AVX2 else Machine(Isa.AVX512, 32, 16)

    @property
    def halves(self) -> int:
        """Registers that hold 16 float32."""
        return 16 // self.lanes
