"""The plan of the arena as C: tables fixed at compile time, offsets by the symbols, remembered.

Table 0 is the arena; each further one is the block of a bind, for buffers whose sizes are not known before.
"""

from collections.abc import Mapping, Sequence

from cuvil_core.codegen.c.dims import dim_text
from cuvil_core.program import ALIGNMENT, LARGEST, Lifetime, Program, blocks

_PLACING = """\
/* Best fit, as program/memory.py does it: the smallest gap between neighbours of overlapping life, lowest first. */
static int64_t place_buffers(const int32_t (*lives)[2], const int64_t *sizes, int32_t count, int64_t *offsets)
{
    int64_t arena = 0;
    int32_t order[MOST_PLACES];
    for (int32_t index = 0; index < count; ++index) {
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
    static int64_t last_symbols[SYMBOLS + 1], last_offsets[PLACES0];
    while (__atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
    int32_t same = known;
    for (int32_t at = 0; at < SYMBOLS; ++at) same &= last_symbols[at] == symbols[at];
    if (!same) {
        int64_t sizes[PLACES0];
        sizes0(symbols, sizes);
        place_buffers(lives0, sizes, BUFFERS0, last_offsets);
        for (int32_t at = 0; at < SYMBOLS; ++at) last_symbols[at] = symbols[at];
        known = 1;
    }
    for (int32_t at = 0; at < BUFFERS0; ++at) offsets[at] = last_offsets[at];
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
    tables = blocks(program)
    parts = [
        f"#define SYMBOLS {len(program.given)}",
        f"#define MOST_PLACES {max(map(len, tables)) + 1}",
        f"#define LAUNCHES {len(program.launches)}",
        f"#define LARGEST INT64_C({LARGEST})",
        _PROFILING,
        *(_table(due, lives, symbols) for due, lives in enumerate(tables) if lives or due == 0),
        _PLACING,
    ]
    return "\n".join(parts)


def _table(due: int, lives: Sequence[Lifetime], symbols: Mapping[str, str]) -> str:
    pairs = ", ".join(f"{{{one.first}, {one.last}}}" for one in lives)
    lines = [
        f"#define BUFFERS{due} {len(lives)}",
        f"#define PLACES{due} {len(lives) + 1}",
        "/* Between which statements a buffer's bytes are its own. */",
        f"static const int32_t lives{due}[PLACES{due}][2] = {{{pairs}}};",
        f"static void sizes{due}(const int64_t *symbols, int64_t *sizes)",
        "{",
        "    (void)symbols, (void)sizes;",
    ]
    for position, life in enumerate(lives):
        size = f"cuvil_max({dim_text(life.buffer.bytes, symbols)}, INT64_C(1))"
        rounded = f"({size} + {ALIGNMENT - 1}) & -INT64_C({ALIGNMENT})"
        lines.append(f"    sizes[{position}] = {rounded};")
    return "\n".join([*lines, "}", ""])
