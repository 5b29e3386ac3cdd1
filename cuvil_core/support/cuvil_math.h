/* Elementary functions on float32 vectors of CUVIL_LANES lanes. Included once for each lane count; no include guard.
 * Only IEEE operations with explicit FMA: the same bits for every lane count and instruction set.
 * Polynomials are minimax fits made for this file; the error bounds stand above each function, in units in the last
 * place of the exact result, and are held by the tests. */

/* p · 2^n for whole n in -252 … 254, rounded once: in two steps, or by the one instruction that does the same. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_scale_f32)(CUVIL_F32 p, CUVIL_F32 whole, CUVIL_I32 n)
{
#if defined(__AVX512F__) && CUVIL_LANES == 16
    (void)n;
    return __builtin_ia32_scalefps512_mask(p, whole, p, (uint16_t)-1, 4);
#else
    (void)whole;
    CUVIL_I32 half = n >> 1;
    return p * (CUVIL_F32)((half + 127) << 23) * (CUVIL_F32)((n - half + 127) << 23);
#endif
}

/* e^x, 1.1 ulp, denormal results included: 0 below -104, infinity above 88.72284. A NaN passes every step. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_exp_f32)(CUVIL_F32 x)
{
    const CUVIL_F32 magic = (CUVIL_F32)0x1.8p23f;
    x = x < -104.0f ? (CUVIL_F32)-104.0f : x;
    x = x > 89.0f ? (CUVIL_F32)89.0f : x;
    CUVIL_F32 shifted = __builtin_elementwise_fma(x, (CUVIL_F32)0x1.715476p+0f, magic);
    CUVIL_I32 n = (CUVIL_I32)shifted - (CUVIL_I32)magic;
    CUVIL_F32 whole = shifted - magic;
    CUVIL_F32 r = __builtin_elementwise_fma(whole, (CUVIL_F32)-0x1.62e400p-1f, x);
    r = __builtin_elementwise_fma(whole, (CUVIL_F32)-0x1.7f7d1cp-20f, r);
    CUVIL_F32 p = (CUVIL_F32)0x1.6a234ep-10f;
    p = __builtin_elementwise_fma(p, r, (CUVIL_F32)0x1.123a6cp-7f);
    p = __builtin_elementwise_fma(p, r, (CUVIL_F32)0x1.5558f4p-5f);
    p = __builtin_elementwise_fma(p, r, (CUVIL_F32)0x1.555490p-3f);
    p = __builtin_elementwise_fma(p, r, (CUVIL_F32)0x1.fffffcp-2f);
    p = __builtin_elementwise_fma(p * r, r, r) + 1.0f;
    return CUVIL_V(cuvil_scale_f32)(p, whole, n);
}

/* ln x, 1.5 ulp: -infinity for zeros, NaN below zero. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_log_f32)(CUVIL_F32 x)
{
    CUVIL_I32 tiny = x < 0x1p-126f;
    CUVIL_F32 scaled = tiny ? x * 0x1p23f : x;
    CUVIL_I32 bits = (CUVIL_I32)scaled - 0x3f3504f3;
    CUVIL_I32 exponent = bits >> 23;
    CUVIL_F32 f = (CUVIL_F32)((bits & 0x7fffff) + 0x3f3504f3) - 1.0f;
    CUVIL_F32 e = __builtin_convertvector(exponent - (tiny & 23), CUVIL_F32);
    CUVIL_F32 p = (CUVIL_F32)-0x1.38c0f2p-4f;
    p = __builtin_elementwise_fma(p, f, (CUVIL_F32)0x1.056474p-3f);
    p = __builtin_elementwise_fma(p, f, (CUVIL_F32)-0x1.0d876cp-3f);
    p = __builtin_elementwise_fma(p, f, (CUVIL_F32)0x1.22d910p-3f);
    p = __builtin_elementwise_fma(p, f, (CUVIL_F32)-0x1.5471f4p-3f);
    p = __builtin_elementwise_fma(p, f, (CUVIL_F32)0x1.99a010p-3f);
    p = __builtin_elementwise_fma(p, f, (CUVIL_F32)-0x1.000228p-2f);
    p = __builtin_elementwise_fma(p, f, (CUVIL_F32)0x1.555554p-2f);
    CUVIL_F32 square = f * f;
    CUVIL_F32 low = __builtin_elementwise_fma(p * f, square, e * 0x1.7f7d1cp-20f);
    low = __builtin_elementwise_fma(square, (CUVIL_F32)-0.5f, low);
    CUVIL_F32 result = __builtin_elementwise_fma(e, (CUVIL_F32)0x1.62e400p-1f, f + low);
    result = x == __builtin_inff() ? x : result;
    result = x == 0.0f ? (CUVIL_F32)-__builtin_inff() : result;
    result = x < 0.0f ? (CUVIL_F32)__builtin_nanf("") : result;
    return x != x ? x : result;
}

/* 1 / (1 + e^-x), 2.5 ulp; tends to 0 through the denormals. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_sigmoid_f32)(CUVIL_F32 x)
{
    CUVIL_F32 decay = CUVIL_V(cuvil_exp_f32)(-__builtin_elementwise_abs(x));
    CUVIL_F32 top = x < 0.0f ? decay : (CUVIL_F32)1.0f;
    return top / (decay + 1.0f);
}

/* tanh x, 2 ulp. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_tanh_f32)(CUVIL_F32 x)
{
    CUVIL_F32 size = __builtin_elementwise_abs(x), z = x * x;
    CUVIL_F32 p = (CUVIL_F32)-0x1.79254ap-8f;
    p = __builtin_elementwise_fma(p, z, (CUVIL_F32)0x1.52dcd8p-6f);
    p = __builtin_elementwise_fma(p, z, (CUVIL_F32)-0x1.b85794p-5f);
    p = __builtin_elementwise_fma(p, z, (CUVIL_F32)0x1.1107f2p-3f);
    p = __builtin_elementwise_fma(p, z, (CUVIL_F32)-0x1.555536p-2f);
    CUVIL_F32 small = __builtin_elementwise_fma(p * z, x, x);
    CUVIL_F32 large = 1.0f - 2.0f / (CUVIL_V(cuvil_exp_f32)(size + size) + 1.0f);
    large = x < 0.0f ? -large : large;
    return size > 0.6f ? large : small;
}

/* erf x, 2 ulp. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_erf_f32)(CUVIL_F32 x)
{
    CUVIL_F32 size = __builtin_elementwise_abs(x), z = x * x;
    CUVIL_F32 q = (CUVIL_F32)0x1.589470p-14f;
    q = __builtin_elementwise_fma(q, z, (CUVIL_F32)-0x1.a8fc6cp-11f);
    q = __builtin_elementwise_fma(q, z, (CUVIL_F32)0x1.54a490p-8f);
    q = __builtin_elementwise_fma(q, z, (CUVIL_F32)-0x1.b80b0ep-6f);
    q = __builtin_elementwise_fma(q, z, (CUVIL_F32)0x1.ce2de2p-4f);
    q = __builtin_elementwise_fma(q, z, (CUVIL_F32)-0x1.812742p-2f);
    q = __builtin_elementwise_fma(q, z, (CUVIL_F32)0x1.06eba8p-3f);
    CUVIL_F32 small = __builtin_elementwise_fma(q, x, x);
    CUVIL_F32 t = size < 4.0f ? size : (CUVIL_F32)4.0f;
    CUVIL_F32 p = (CUVIL_F32)0x1.2a2a8cp-20f;
    p = __builtin_elementwise_fma(p, t, (CUVIL_F32)-0x1.2bad78p-16f);
    p = __builtin_elementwise_fma(p, t, (CUVIL_F32)0x1.b1b6a6p-14f);
    p = __builtin_elementwise_fma(p, t, (CUVIL_F32)-0x1.f34d66p-15f);
    p = __builtin_elementwise_fma(p, t, (CUVIL_F32)-0x1.816f08p-9f);
    p = __builtin_elementwise_fma(p, t, (CUVIL_F32)0x1.7ad78cp-6f);
    p = __builtin_elementwise_fma(p, t, (CUVIL_F32)-0x1.b2dc8cp-4f);
    p = __builtin_elementwise_fma(p, t, (CUVIL_F32)-0x1.44fe6ap-1f);
    p = __builtin_elementwise_fma(p, t, (CUVIL_F32)-0x1.2104d0p+0f);
    p = __builtin_elementwise_fma(p, t, (CUVIL_F32)0x1.687888p-14f);
    CUVIL_F32 large = 1.0f - CUVIL_V(cuvil_exp_f32)(p);
    large = x < 0.0f ? -large : large;
    large = size > 0.93f ? large : small;
    return x != x ? x : large;
}

/* Sine and cosine, 1.5 ulp up to |x| = 2^28, found by reduction in float64; beyond that by an exact reduction, lane by
 * lane. NaN for infinities. `quarter` 0 gives the sine, 1 the cosine. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_turn_f32)(CUVIL_F32 x, int quarter)
{
    const CUVIL_F64 magic = (CUVIL_F64)0x1.8p52;
    CUVIL_F64 wide = __builtin_convertvector(x, CUVIL_F64);
    for (int lane = 0; lane < CUVIL_LANES; ++lane)
        if (!(__builtin_fabsf(x[lane]) <= 0x1p28f)) wide[lane] = cuvil_reduce_large(x[lane]);
    CUVIL_F64 shifted = __builtin_elementwise_fma(wide, (CUVIL_F64)0x1.45f306dc9c883p-1, magic);
    CUVIL_I32 n = __builtin_convertvector((CUVIL_I64)shifted - (CUVIL_I64)magic, CUVIL_I32) + quarter;
    CUVIL_F64 whole = shifted - magic;
    CUVIL_F64 rest = __builtin_elementwise_fma(whole, (CUVIL_F64)-0x1.921fb54442d18p+0, wide);
    rest = __builtin_elementwise_fma(whole, (CUVIL_F64)-0x1.1a62633145c07p-54, rest);
    CUVIL_F32 r = __builtin_convertvector(rest, CUVIL_F32), z = r * r;
    CUVIL_F32 s = (CUVIL_F32)0x1.6cd5ecp-19f;
    s = __builtin_elementwise_fma(s, z, (CUVIL_F32)-0x1.a00f94p-13f);
    s = __builtin_elementwise_fma(s, z, (CUVIL_F32)0x1.111108p-7f);
    s = __builtin_elementwise_fma(s, z, (CUVIL_F32)-0x1.555556p-3f);
    s = __builtin_elementwise_fma(s * z, r, r);
    CUVIL_F32 c = (CUVIL_F32)-0x1.24290ap-22f;
    c = __builtin_elementwise_fma(c, z, (CUVIL_F32)0x1.a01118p-16f);
    c = __builtin_elementwise_fma(c, z, (CUVIL_F32)-0x1.6c16b8p-10f);
    c = __builtin_elementwise_fma(c, z, (CUVIL_F32)0x1.555556p-5f);
    c = __builtin_elementwise_fma(c * z, z, __builtin_elementwise_fma(z, (CUVIL_F32)-0.5f, (CUVIL_F32)1.0f));
    CUVIL_F32 value = (n & 1) == 1 ? c : s;
    return (n & 2) == 2 ? -value : value;
}

CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_sin_f32)(CUVIL_F32 x) { return CUVIL_V(cuvil_turn_f32)(x, 0); }
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_cos_f32)(CUVIL_F32 x) { return CUVIL_V(cuvil_turn_f32)(x, 1); }
