"""How much memory this process can have at all: what the machine has to spare, within every control group's limit."""

from pathlib import Path

from cuvil_core.errors import SizeError
from cuvil_core.runtime.threads import group_folders

SMALL = 64 << 20
"""Bytes below which nobody asks: calls with ever new sizes stay fast."""
_PROC, _ROOT, _MEMINFO = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"), Path("/proc/meminfo")


def require(size: int, what: str) -> None:
    """Raise SizeError when `size` bytes are more than this process can have."""
    if size > SMALL and (most := available_bytes()) is not None and size > most:
        raise SizeError(
            f"{what} takes {size} bytes of memory, this process can have {most}; "
            "pass smaller inputs or raise the memory limit"
        )


def available_bytes(proc: Path = _PROC, root: Path = _ROOT, meminfo: Path = _MEMINFO) -> int | None:
    """Give the least of the machine's spare memory and the control groups' limits, None where nothing tells."""
    limits = [one for folder in group_folders(proc, root, "memory") if (one := _limit(folder)) is not None]
    spare = _spare(meminfo)
    return min([*limits, *([] if spare is None else [spare])], default=None)


def _limit(folder: Path) -> int | None:
    """Give `memory.max` of version 2, or version 1's limit; `max` and version 1's huge number are no limit."""
    for name in ("memory.max", "memory.limit_in_bytes"):
        try:
            text = (folder / name).read_text().strip()
        except OSError:
            continue
        return int(text) if text.isdecimal() else None
    return None


def _spare(meminfo: Path) -> int | None:
    """Give what the kernel can free or swap out for this process."""
    try:
        lines = meminfo.read_text().splitlines()
    except OSError:
        return None
    table = {name: rest.split()[0] for name, _, rest in (line.partition(":") for line in lines) if rest.split()}
    found = [table[name] for name in ("MemAvailable", "SwapFree") if table.get(name, "").isdecimal()]
    return sum(int(one) << 10 for one in found) if "MemAvailable" in table else None
