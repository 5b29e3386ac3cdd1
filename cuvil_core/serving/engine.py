"""The bounded queue before the model, and the threads that run it."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from cuvil_core.errors import InputError, SizeError
from cuvil_core.runtime import CuvilModule, available_cpus
from cuvil_core.runtime.examples import Shapes, shapes_at, symbol_choices
from cuvil_core.runtime.tensors import Array

Result = TypeVar("Result")
MOST_WORKERS = 4


class QueueFullError(Exception):
    """As many requests wait as may wait."""


class Engine:
    """Runs work in threads: at most `workers` at once, at most `queue` waiting."""

    def __init__(self, queue: int, on_length: Callable[[float], object], workers: int | None = None) -> None:
        """`on_length` is told the number of waiting requests whenever it changes."""
        self._workers = workers or max(1, min(MOST_WORKERS, available_cpus()))
        self._threads = ThreadPoolExecutor(self._workers, thread_name_prefix="model")
        self._limit = queue
        self._admitted = 0
        self._on_length = on_length

    @property
    def waiting(self) -> int:
        """Requests admitted that no thread works on yet."""
        return max(0, self._admitted - self._workers)

    async def submit(self, work: Callable[[], Result]) -> Result:
        """Give `work()`, done in a thread. Raises QueueFullError at once when the queue is full."""
        if self._admitted >= self._workers + self._limit:
            raise QueueFullError
        self._change(1)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        finally:
            self._change(-1)

    def close(self) -> None:
        """Take no more work; waits for none."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _change(self, by: int) -> None:
        self._admitted += by
        self._on_length(self.waiting)


def nonfinite(outputs: Mapping[str, Array]) -> str | None:
    """Give the name of an output that holds NaN or Inf, None when all are finite."""
    return next((name for name, one in outputs.items() if one.dtype.kind == "f" and not np.isfinite(one).all()), None)


def warm_up(module: CuvilModule, runs: int = 3) -> Shapes | None:
    """Run zeros of an ordinary size that the model takes, so that the first client pays for no page fault.

    Gives the shapes that worked, None when the model refused all that were tried. Raises SizeError when some fitted the
    model and none of them the memory: no request would.
    """
    too_large: SizeError | None = None
    specs = module.signature.inputs
    for choice in symbol_choices(specs, module.symbols):
        shapes = shapes_at(specs, choice)
        try:
            inputs = {spec.name: np.zeros(shapes[spec.name], spec.dtype) for spec in specs}
            for _ in range(runs):
                module.run(inputs)
        except InputError:
            continue
        except SizeError as fault:
            too_large = fault
            continue
        except MemoryError:
            too_large = SizeError(f"inputs of shapes {shapes} exceed the memory; raise the limit or bound the sizes")
            continue
        return shapes
    if too_large is not None:
        raise too_large
    return None
