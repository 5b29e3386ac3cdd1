/* Power and remainders on float32 vectors of CUVIL_LANES lanes. Included once for each lane count; no include guard. */

/* x^y, 0.51 ulp, found in float64 as 2^(y · log2 |x|); the special cases are those of C's powf. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_pow_f32)(CUVIL_F32 x, CUVIL_F32 y)
{
    CUVIL_F64 size = __builtin_convertvector(__builtin_elementwise_abs(x), CUVIL_F64);
    CUVIL_I64 bits = (CUVIL_I64)size - 0x3fe6a09e667f3bcdLL;
    CUVIL_I64 exponent = bits >> 52;
    CUVIL_F64 m = (CUVIL_F64)((bits & 0xfffffffffffffLL) + 0x3fe6a09e667f3bcdLL);
    CUVIL_F64 s = (m - 1.0) / (m + 1.0), z = s * s;
    CUVIL_F64 p = (CUVIL_F64)0x1.b5c2f2b1b3e16p-3;
    p = __builtin_elementwise_fma(p, z, (CUVIL_F64)0x1.c46984eb34b3dp-3);
    p = __builtin_elementwise_fma(p, z, (CUVIL_F64)0x1.0ca1760442968p-2);
    p = __builtin_elementwise_fma(p, z, (CUVIL_F64)0x1.484afb145699cp-2);
    p = __builtin_elementwise_fma(p, z, (CUVIL_F64)0x1.a61762d790473p-2);
    p = __builtin_elementwise_fma(p, z, (CUVIL_F64)0x1.2776c50ee2fedp-1);
    p = __builtin_elementwise_fma(p, z, (CUVIL_F64)0x1.ec709dc3a0482p-1);
    p = __builtin_elementwise_fma(p, z, (CUVIL_F64)0x1.71547652b82fep+1);
    CUVIL_F64 e = __builtin_convertvector(exponent, CUVIL_F64);
    CUVIL_F64 power = __builtin_convertvector(y, CUVIL_F64) * __builtin_elementwise_fma(p, s, e);
    power = power > -200.0 ? power : (CUVIL_F64)-200.0; /* also takes the NaN of 0 · inf, overruled below */
    power = power < 200.0 ? power : (CUVIL_F64)200.0;
    const CUVIL_F64 magic = (CUVIL_F64)0x1.8p52;
    CUVIL_F64 shifted = power + magic;
    CUVIL_I64 n = (CUVIL_I64)shifted - (CUVIL_I64)magic;
    CUVIL_F64 f = power - (shifted - magic);
    CUVIL_F64 q = (CUVIL_F64)0x1.b6958bb6a4154p-24;
    q = __builtin_elementwise_fma(q, f, (CUVIL_F64)0x1.63f0cf540e89dp-20);
    q = __builtin_elementwise_fma(q, f, (CUVIL_F64)0x1.ffcb304e8977cp-17);
    q = __builtin_elementwise_fma(q, f, (CUVIL_F64)0x1.43088d132223fp-13);
    q = __builtin_elementwise_fma(q, f, (CUVIL_F64)0x1.5d87feaad77aap-10);
    q = __builtin_elementwise_fma(q, f, (CUVIL_F64)0x1.3b2ab72baacb8p-7);
    q = __builtin_elementwise_fma(q, f, (CUVIL_F64)0x1.c6b08d70357ddp-5);
    q = __builtin_elementwise_fma(q, f, (CUVIL_F64)0x1.ebfbdff8143c8p-3);
    q = __builtin_elementwise_fma(q, f, (CUVIL_F64)0x1.62e42fefa3a3dp-1);
    q = __builtin_elementwise_fma(q, f, (CUVIL_F64)1.0);
    CUVIL_F32 result = __builtin_convertvector(q * (CUVIL_F64)((n + 1023) << 52), CUVIL_F32);

    const CUVIL_F32 infinity = (CUVIL_F32)__builtin_inff(), zero = (CUVIL_F32)0.0f;
    CUVIL_F32 ax = __builtin_elementwise_abs(x), ay = __builtin_elementwise_abs(y);
    CUVIL_I32 integer = (__builtin_elementwise_floor(y) == y) & (ay != infinity);
    CUVIL_F32 half = y * 0.5f;
    CUVIL_I32 odd = integer & (__builtin_elementwise_floor(half) != half);
    CUVIL_I32 negative = ((CUVIL_I32)x < 0) & (x == x);
    CUVIL_I32 rises = y > 0.0f;
    result = ax == 0.0f ? (rises ? zero : infinity) : result;
    result = ax == infinity ? (rises ? infinity : zero) : result;
    result = ay == infinity ? ((ax > 1.0f) == rises ? infinity : zero) : result;
    result = ((ay == infinity) & (ax == 1.0f)) ? (CUVIL_F32)1.0f : result;
    result = (negative & odd) ? -result : result;
    result = ((x < 0.0f) & ~integer & (ax != infinity) & (ay != infinity)) ? (CUVIL_F32)__builtin_nanf("") : result;
    result = ((x != x) | (y != y)) ? x + y : result;
    return ((y == 0.0f) | (x == 1.0f)) ? (CUVIL_F32)1.0f : result;
}

/* Remainder with the sign of the dividend, exact; NaN for a zero divisor or an infinite dividend. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_fmod_f32)(CUVIL_F32 a, CUVIL_F32 b)
{
    for (int lane = 0; lane < CUVIL_LANES; ++lane) a[lane] = cuvil_remainder(a[lane], b[lane]);
    return a;
}

/* Remainder with the sign of the divisor. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_mod_f32)(CUVIL_F32 a, CUVIL_F32 b)
{
    CUVIL_F32 rest = CUVIL_V(cuvil_fmod_f32)(a, b);
    CUVIL_I32 wrong = (rest != 0.0f) & ((rest < 0.0f) ^ (b < 0.0f));
    return wrong ? rest + b : rest;
}
