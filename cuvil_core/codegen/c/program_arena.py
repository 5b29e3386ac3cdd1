"""The plan of the arena as C: tables fixed at compile time, offsets by the symbols, remembered."""

from collections.abc import Mapping, Sequence

from cuvil_core.codegen.c.dims import dim_text
from cuvil_core.ir import Dim
from cuvil_core.program import ALIGNMENT, LARGEST, Program, lifetimes

_PLACING = """\
/* Best fit, as program/memory.py does it: the smallest gap between neighbours of overlapping life, lowest first. */
static int64_t place_buffers(const int64_t *symbols, int64_t *offsets)
{
    int64_t sizes[PLACES], arena = 0;
    int32_t order[PLACES];
    buffer_sizes(symbols, sizes);
    for (int32_t index = 0; index < BUFFERS; ++index) {
        int64_t best = -1, best_gap = -1, end = 0;
        for (int32_t at = 0; at < index; ++at) {
            const int32_t other = order[at];
            if (lives[index][0] > lives[other][1] || lives[other][0] > lives[index][1]) continue;
            const int64_t gap = offsets[other] - end;
            if (gap >= sizes[index] && (best < 0 || gap < best_gap)) best = end, best_gap = gap;
            end = cuvil_max(end, offsets[other] + sizes[other]);
        }
        offsets[index] = best >= 0 ? best : end;
        int32_t at = index;
        for (; at > 0 && offsets[order[at - 1]] > offsets[index]; --at) order[at] = order[at - 1];
        order[at] = index;
        arena = cuvil_max(arena, offsets[index] + sizes[index]);
        if (arena > LARGEST) return arena;
    }
    return arena;
}

/* Offsets for the symbols of the last call are kept: most calls have the same. */
static void recall_offsets(const int64_t *symbols, int64_t *offsets)
{
    static int32_t busy;
    static int32_t known;
    static int64_t last_symbols[SYMBOLS + 1], last_offsets[PLACES];
    while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
    int32_t same = known;
    for (int32_t at = 0; at < SYMBOLS; ++at) same &= last_symbols[at] == symbols[at];
    if (!same) {
        place_buffers(symbols, last_offsets);
        for (int32_t at = 0; at < SYMBOLS; ++at) last_symbols[at] = symbols[at];
        known = 1;
    }
    for (int32_t at = 0; at < BUFFERS; ++at) offsets[at] = last_offsets[at];
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}
"""

_PROFILING = """\
#ifdef CUVIL_PROFILE
#include <time.h>
static int64_t profile_ns[LAUNCHES + 1];
static int64_t profile_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}
#define PROFILE_BEGIN(at) const int64_t began = profile_now();
#define PROFILE_END(at) profile_ns[at] += profile_now() - began;
#else
#define PROFILE_BEGIN(at)
#define PROFILE_END(at)
#endif
"""


def arena_text(program: Program, symbols: Mapping[str, str]) -> str:
    """Tables and functions that place temporaries."""
    lives = lifetimes(program)
    parts = [
        f"#define SYMBOLS {len(program.symbols)}",
        f"#define BUFFERS {len(lives)}",
        f"#define PLACES {len(lives) + 1}",
        f"#define LAUNCHES {len(program.launches)}",
        f"#define LARGEST INT64_C({LARGEST})",
        _PROFILING,
        "/* Between which statements a buffer's bytes are its own. */",
        f"static const int32_t lives[PLACES][2] = {{{', '.join(f'{{{one.first}, {one.last}}}' for one in lives)}}};",
        _sizes([one.buffer.bytes for one in lives], symbols),
        _PLACING,
    ]
    return "\n".join(parts)


def _sizes(sizes: Sequence[Dim], symbols: Mapping[str, str]) -> str:
    lines = ["static void buffer_sizes(const int64_t *symbols, int64_t *sizes)", "{", "    (void)symbols, (void)sizes;"]
    for position, size in enumerate(sizes):
        rounded = f"({dim_text(size, symbols)} + {ALIGNMENT - 1}) & -INT64_C({ALIGNMENT})"
        lines.append(f"    sizes[{position}] = {rounded};")
    return "\n".join([*lines, "}", ""])
