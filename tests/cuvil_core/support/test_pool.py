"""The thread pool runs every part once, from many callers, after fork, and lets go of the processor when idle."""

from __future__ import annotations

import ctypes
import os
import resource
import threading
import time
from functools import cache
from pathlib import Path

import pytest

from compiled_kernels import CACHE
from cuvil_core import support
from cuvil_core.toolchain import AVX2, build

HARNESS = """
#include "cuvil.h"
#include <stdatomic.h>
struct counters { _Atomic int64_t runs[64]; _Atomic int64_t spread; };
static void count(void *context, int32_t task, int32_t tasks)
{
    struct counters *c = context;
    atomic_fetch_add(&c->runs[task], 1);
    atomic_fetch_add(&c->spread, tasks);
}
/* Launches `rounds` times; 0 when every part ran exactly once in each. */
CUVIL_EXPORT int64_t launch_many(cuvil_pool *pool, int32_t tasks, int64_t rounds)
{
    struct counters c = {0};
    pool->enter(pool);
    for (int64_t r = 0; r < rounds; ++r) pool->launch(pool, count, &c, tasks);
    pool->leave(pool);
    int64_t wrong = 0;
    for (int32_t part = 0; part < 64; ++part) wrong += c.runs[part] != (part < tasks ? rounds : 0);
    return wrong + (c.spread != (int64_t)tasks * tasks * rounds);
}
"""


@cache
def library() -> ctypes.CDLL:
    """The pool and a task that counts its runs."""
    file = Path(CACHE) / f"pool-test-{os.getpid()}.so"
    CACHE.mkdir(exist_ok=True)
    file.write_bytes(build({"harness.c": HARNESS, **support.sources()}, support.headers(), AVX2, cache_dir=CACHE))
    loaded = ctypes.CDLL(str(file))
    file.unlink()
    loaded.cuvil_pool_create.restype = ctypes.c_void_p
    loaded.cuvil_pool_destroy.argtypes = [ctypes.c_void_p]
    loaded.launch_many.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64]
    loaded.launch_many.restype = ctypes.c_int64
    return loaded


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_every_part_runs_once(threads: int) -> None:
    """Launches of fewer, as many, and more parts than threads run each part exactly once."""
    pool = library().cuvil_pool_create(threads)
    for tasks in (1, 2, threads, threads + 3, 40):
        assert library().launch_many(pool, tasks, 300) == 0
    library().cuvil_pool_destroy(pool)


def test_callers_share_a_pool() -> None:
    """Several threads launch on one pool at the same time, each getting its own parts done."""
    pool = library().cuvil_pool_create(3)
    wrong: list[int] = []
    callers = [threading.Thread(target=lambda: wrong.append(library().launch_many(pool, 3, 2000))) for _ in range(4)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    library().cuvil_pool_destroy(pool)
    assert wrong == [0, 0, 0, 0]


def test_idle_workers_use_no_processor() -> None:
    """After a call the workers sleep: an idle half second costs next to nothing."""
    pool = library().cuvil_pool_create(4)
    assert library().launch_many(pool, 4, 100) == 0
    before = resource.getrusage(resource.RUSAGE_SELF)
    time.sleep(0.5)
    after = resource.getrusage(resource.RUSAGE_SELF)
    library().cuvil_pool_destroy(pool)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert used < 0.1


def test_a_forked_child_runs_alone() -> None:
    """A child has the pool but none of its threads: launches still finish, on its own thread."""
    pool = library().cuvil_pool_create(4)
    assert library().launch_many(pool, 4, 10) == 0
    child = os.fork()
    if child == 0:
        os._exit(0 if library().launch_many(pool, 4, 10) == 0 else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert library().launch_many(pool, 4, 10) == 0
    library().cuvil_pool_destroy(pool)


def test_pools_come_and_go() -> None:
    """Creating, using and destroying a pool many times leaves no thread behind."""
    before = threading.active_count(), len(os.listdir("/proc/self/task"))
    for _ in range(50):
        pool = library().cuvil_pool_create(4)
        assert library().launch_many(pool, 4, 3) == 0
        library().cuvil_pool_destroy(pool)
    assert (threading.active_count(), len(os.listdir("/proc/self/task"))) == before
