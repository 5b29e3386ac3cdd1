/* What generated kernels include: the launch of a kernel, vector types for 1, 8 and 16 lanes, mathematics. */
#ifndef CUVIL_KERNEL_H
#define CUVIL_KERNEL_H

#include "cuvil.h"

#include <stdint.h>

#define CUVIL_INLINE static inline __attribute__((always_inline, unused))
#define CUVIL_COLD static __attribute__((noinline, cold, unused))

/* A kernel: units begin … end-1 of its `NAME_units(symbols)`; `NAME_work(symbols)` tells its work in multiply-adds. */
typedef void cuvil_kernel(void *const *buffers, const int64_t *symbols, int64_t begin, int64_t end);

struct cuvil_launch {
    cuvil_kernel *kernel;
    void *const *buffers;
    const int64_t *symbols;
    int64_t units;
};

CUVIL_INLINE void cuvil_launch_part(void *context, int32_t task, int32_t tasks)
{
    const struct cuvil_launch *launch = (const struct cuvil_launch *)context;
    int64_t begin = launch->units * task / tasks, end = launch->units * (task + 1) / tasks;
    if (begin < end) launch->kernel(launch->buffers, launch->symbols, begin, end);
}

/* Work, in multiply-adds of a contraction, below which a further part costs more than it saves: about 2 µs. */
#define CUVIL_WORK_A_PART (1 << 18)

/* Runs all units of a kernel, on as many of the pool's threads as its work is worth. */
CUVIL_INLINE void cuvil_launch_kernel(cuvil_pool *pool, cuvil_kernel *kernel, void *const *buffers,
                                      const int64_t *symbols, int64_t units, int64_t work)
{
    struct cuvil_launch launch = {kernel, buffers, symbols, units};
    int64_t worth = work / CUVIL_WORK_A_PART;
    int64_t tasks = pool && pool->threads > 1 ? (int64_t)pool->threads * CUVIL_PARTS_A_THREAD : 1;
    if (tasks > worth) tasks = worth;
    if (tasks > units) tasks = units;
    if (tasks > 1 && tasks > pool->threads) tasks -= tasks % pool->threads;
    if (tasks <= 1) {
        if (units > 0) kernel(buffers, symbols, 0, units);
        return;
    }
    pool->launch(pool, cuvil_launch_part, &launch, (int32_t)tasks);
}

/* Denormals as zero, in operands and results, until the returned state is restored. */
CUVIL_INLINE uint32_t cuvil_flush_denormals(void)
{
    uint32_t before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040u);
    return before;
}

CUVIL_INLINE void cuvil_restore_denormals(uint32_t before) { __builtin_ia32_ldmxcsr((__builtin_ia32_stmxcsr() & ~0x8040u) | (before & 0x8040u)); }

CUVIL_INLINE int64_t cuvil_min(int64_t a, int64_t b) { return a < b ? a : b; }
CUVIL_INLINE int64_t cuvil_max(int64_t a, int64_t b) { return a > b ? a : b; }
CUVIL_INLINE int64_t cuvil_ceil(int64_t a, int64_t b) { return (a + b - 1) / b; }
/* Division that rounds down, for b > 0. */
CUVIL_INLINE int64_t cuvil_floor(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* a^b that wraps. */
CUVIL_COLD uint64_t cuvil_unsigned_power(uint64_t a, uint64_t b)
{
    uint64_t result = 1;
    for (; b; b >>= 1, a *= a)
        if (b & 1) result *= a;
    return result;
}

/* a^b that wraps; a negative exponent gives the truncated quotient: 1 and -1 keep their size, all else 0. */
CUVIL_COLD int64_t cuvil_signed_power(int64_t a, int64_t b)
{
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    return (int64_t)cuvil_unsigned_power((uint64_t)a, (uint64_t)b);
}

/* An angle in -π … π that equals x modulo 2π to 32 bits, for |x| >= 2^5; NaN for what is not finite.
 * x = m · 2^e; the bits of 2/π of weight 2 and below, times m, modulo 4, are the turn in quarters. */
CUVIL_COLD double cuvil_reduce_large(float x)
{
    static const uint32_t two_over_pi[10] = {0, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u, 0xb7246e3au};
    union { float f; uint32_t u; } bits = {x};
    int32_t biased = (int32_t)(bits.u >> 23 & 255);
    if (biased == 255) return __builtin_nan("");
    int32_t first = biased - 150 + 30;
    unsigned __int128 window = 0;
    for (int32_t word = 0; word < 5; ++word) {
        unsigned __int128 part = first / 32 + word < 10 ? two_over_pi[first / 32 + word] : 0;
        int32_t shift = 96 - 32 * word + first % 32;
        window |= shift >= 0 ? part << shift : part >> -shift;
    }
    unsigned __int128 turn = window * ((bits.u & 0x7fffffu) | 0x800000u);
    double angle = (double)(int64_t)(uint64_t)(turn >> 64) * 0x1p-62 * 0x1.921fb54442d18p+0;
    return bits.u >> 31 ? -angle : angle;
}

/* The exact remainder of a / b with the sign of a, by shift and subtract; NaN for b = 0, infinite a, or NaN. */
CUVIL_COLD float cuvil_remainder(float a, float b)
{
    float size = __builtin_fabsf(a), by = __builtin_fabsf(b);
    if (!(size < __builtin_inff()) || !(by > 0)) return __builtin_nanf("");
    if (size < by) return a;
    if (by == __builtin_inff()) return a;
    double rest = size, divisor = by, step = by;
    while (step * 2 <= rest) step *= 2;
    for (; step >= divisor; step *= 0.5)
        if (rest >= step) rest -= step;
    return __builtin_copysignf((float)rest, a);
}

#include "cuvil_double.h"

#define CUVIL_LANES 1
#include "cuvil_lanes.h"
#include "cuvil_math.h"
#include "cuvil_pow.h"
#include "cuvil_trig.h"
#undef CUVIL_LANES
#define CUVIL_LANES 8
#include "cuvil_lanes.h"
#include "cuvil_math.h"
#include "cuvil_pow.h"
#include "cuvil_trig.h"
#undef CUVIL_LANES
#define CUVIL_LANES 16
#include "cuvil_lanes.h"
#include "cuvil_math.h"
#include "cuvil_pow.h"
#include "cuvil_trig.h"
#undef CUVIL_LANES

#endif
