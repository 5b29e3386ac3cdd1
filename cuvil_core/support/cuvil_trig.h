/* Tangent, inverse and hyperbolic functions on float32 vectors of CUVIL_LANES lanes, found in float64 and rounded once:
 * 0.51 ulp each, tan beyond 2^28 0.6. Included once for each lane count; no include guard. NaN outside of the domain;
 * odd functions keep the sign of zero. The float64 helpers are good to about 1e-12, not to their own last place. */

#define CUVIL_STEP(p, z, number) p = __builtin_elementwise_fma(p, z, (CUVIL_F64)(number))

/* e^x for |x| <= 200. */
CUVIL_INLINE CUVIL_F64 CUVIL_V(cuvil_exp_wide)(CUVIL_F64 x)
{
    const CUVIL_F64 magic = (CUVIL_F64)0x1.8p52;
    CUVIL_F64 shifted = __builtin_elementwise_fma(x, (CUVIL_F64)0x1.71547652b82fep+0, magic), whole = shifted - magic;
    CUVIL_I64 n = (CUVIL_I64)shifted - (CUVIL_I64)magic;
    CUVIL_F64 r = __builtin_elementwise_fma(whole, (CUVIL_F64)-0x1.62e42fefa39efp-1, x);
    r = __builtin_elementwise_fma(whole, (CUVIL_F64)-0x1.abc9e3b39803fp-56, r);
    CUVIL_F64 p = (CUVIL_F64)0x1.72c4d909b71d6p-19;
    CUVIL_STEP(p, r, 0x1.a15a5d6deed78p-16);
    CUVIL_STEP(p, r, 0x1.a019afa88ee87p-13);
    CUVIL_STEP(p, r, 0x1.6c164de9f7f09p-10);
    CUVIL_STEP(p, r, 0x1.1111111bbd686p-7);
    CUVIL_STEP(p, r, 0x1.555555742d25dp-5);
    CUVIL_STEP(p, r, 0x1.5555555553e5dp-3);
    CUVIL_STEP(p, r, 0x1.fffffffff71b3p-2);
    CUVIL_STEP(p, r, 1.0);
    CUVIL_STEP(p, r, 1.0);
    return p * (CUVIL_F64)((n + 1023) << 52);
}

/* ln x for finite x >= 1, also as a relative error near 1. */
CUVIL_INLINE CUVIL_F64 CUVIL_V(cuvil_log_wide)(CUVIL_F64 x)
{
    CUVIL_I64 bits = (CUVIL_I64)x - 0x3fe6a09e667f3bcdLL;
    CUVIL_F64 e = __builtin_convertvector(bits >> 52, CUVIL_F64);
    CUVIL_F64 m = (CUVIL_F64)((bits & 0xfffffffffffffLL) + 0x3fe6a09e667f3bcdLL);
    CUVIL_F64 s = (m - 1.0) / (m + 1.0), z = s * s;
    CUVIL_F64 p = (CUVIL_F64)(2.0 / 15);
    CUVIL_STEP(p, z, 2.0 / 13);
    CUVIL_STEP(p, z, 2.0 / 11);
    CUVIL_STEP(p, z, 2.0 / 9);
    CUVIL_STEP(p, z, 2.0 / 7);
    CUVIL_STEP(p, z, 2.0 / 5);
    CUVIL_STEP(p, z, 2.0 / 3);
    CUVIL_STEP(p, z, 2.0);
    return __builtin_elementwise_fma(e, (CUVIL_F64)0x1.62e42fefa39efp-1, p * s);
}

/* The arc of x >= 0, infinity included: by 1/x above 1, by (t - 1) / (t + 1) above the tangent of π/8. */
CUVIL_INLINE CUVIL_F64 CUVIL_V(cuvil_atan_wide)(CUVIL_F64 x)
{
    CUVIL_F64 t = x > 1.0 ? 1.0 / x : x;
    CUVIL_F64 u = t > 0x1.a827999fcef32p-2 ? (t - 1.0) / (t + 1.0) : t, z = u * u;
    CUVIL_F64 p = (CUVIL_F64)0x1.f64883bf38625p-6;
    CUVIL_STEP(p, z, -0x1.e1351144ee3efp-5);
    CUVIL_STEP(p, z, 0x1.35cdf825343a3p-4);
    CUVIL_STEP(p, z, -0x1.73d9a6f1cc31bp-4);
    CUVIL_STEP(p, z, 0x1.c714d080ddc88p-4);
    CUVIL_STEP(p, z, -0x1.2492290281b33p-3);
    CUVIL_STEP(p, z, 0x1.9999991120f7bp-3);
    CUVIL_STEP(p, z, -0x1.55555554e5032p-2);
    CUVIL_STEP(p, z, 0x1.fffffffffff08p-1);
    CUVIL_F64 arc = p * u + (t > 0x1.a827999fcef32p-2 ? (CUVIL_F64)0x1.921fb54442d18p-1 : (CUVIL_F64)0.0);
    return x > 1.0 ? 0x1.921fb54442d18p+0 - arc : arc;
}

CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_narrow)(CUVIL_F64 size, CUVIL_F32 sign)
{
    return __builtin_elementwise_copysign(__builtin_convertvector(size, CUVIL_F32), sign);
}

CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_atan_f32)(CUVIL_F32 x)
{
    CUVIL_F64 size = __builtin_convertvector(__builtin_elementwise_abs(x), CUVIL_F64);
    return CUVIL_V(cuvil_narrow)(CUVIL_V(cuvil_atan_wide)(size), x);
}

/* The arc of size / √((1 - size)(1 + size)), whose root is NaN above 1. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_asin_f32)(CUVIL_F32 x)
{
    CUVIL_F64 size = __builtin_convertvector(__builtin_elementwise_abs(x), CUVIL_F64);
    CUVIL_F64 root = __builtin_elementwise_sqrt((1.0 - size) * (1.0 + size));
    return CUVIL_V(cuvil_narrow)(CUVIL_V(cuvil_atan_wide)(size / root), x);
}

CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_acos_f32)(CUVIL_F32 x)
{
    CUVIL_F64 size = __builtin_convertvector(__builtin_elementwise_abs(x), CUVIL_F64);
    CUVIL_F64 root = __builtin_elementwise_sqrt((1.0 - size) * (1.0 + size));
    CUVIL_F64 arc = CUVIL_V(cuvil_atan_wide)(root / size);
    CUVIL_F64 below = 0x1.921fb54442d18p+1 - arc;
    return __builtin_convertvector(__builtin_convertvector(x, CUVIL_F64) < 0.0 ? below : arc, CUVIL_F32);
}

/* The rest after quarters of a turn r, in -π/4 … π/4: its sine by its cosine, or -cosine by sine in odd quarters. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_tan_f32)(CUVIL_F32 x)
{
    const CUVIL_F64 magic = (CUVIL_F64)0x1.8p52;
    CUVIL_F64 wide = __builtin_convertvector(x, CUVIL_F64);
    for (int lane = 0; lane < CUVIL_LANES; ++lane)
        if (!(__builtin_fabsf(x[lane]) <= 0x1p28f)) wide[lane] = cuvil_reduce_large(x[lane]);
    CUVIL_F64 shifted = __builtin_elementwise_fma(wide, (CUVIL_F64)0x1.45f306dc9c883p-1, magic), whole = shifted - magic;
    CUVIL_I64 n = (CUVIL_I64)shifted - (CUVIL_I64)magic;
    CUVIL_F64 r = __builtin_elementwise_fma(whole, (CUVIL_F64)-0x1.921fb54442d18p+0, wide);
    r = __builtin_elementwise_fma(whole, (CUVIL_F64)-0x1.1a62633145c07p-54, r);
    CUVIL_F64 z = r * r, s = (CUVIL_F64)(-1.0 / 39916800), c = (CUVIL_F64)(1.0 / 479001600);
    CUVIL_STEP(s, z, 1.0 / 362880);
    CUVIL_STEP(s, z, -1.0 / 5040);
    CUVIL_STEP(s, z, 1.0 / 120);
    CUVIL_STEP(s, z, -1.0 / 6);
    s = __builtin_elementwise_fma(s * z, r, r);
    CUVIL_STEP(c, z, -1.0 / 3628800);
    CUVIL_STEP(c, z, 1.0 / 40320);
    CUVIL_STEP(c, z, -1.0 / 720);
    CUVIL_STEP(c, z, 1.0 / 24);
    CUVIL_STEP(c, z, -0.5);
    CUVIL_STEP(c, z, 1.0);
    CUVIL_I64 odd = (n & 1) == 1;
    CUVIL_F64 tangent = (odd ? -c : s) / (odd ? s : c);
    return x == 0.0f ? x : __builtin_convertvector(tangent, CUVIL_F32);
}

/* Sizes beyond 200 are infinite in float32 whatever they are; a NaN passes. */
CUVIL_INLINE CUVIL_F64 CUVIL_V(cuvil_size_below_200)(CUVIL_F32 x)
{
    CUVIL_F64 size = __builtin_convertvector(__builtin_elementwise_abs(x), CUVIL_F64);
    return size > 200.0 ? (CUVIL_F64)200.0 : size;
}

CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_cosh_f32)(CUVIL_F32 x)
{
    CUVIL_F64 power = CUVIL_V(cuvil_exp_wide)(CUVIL_V(cuvil_size_below_200)(x));
    return __builtin_convertvector(0.5 * power + 0.5 / power, CUVIL_F32);
}

/* By its series below 0.3, where the powers would cancel. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_sinh_f32)(CUVIL_F32 x)
{
    CUVIL_F64 size = CUVIL_V(cuvil_size_below_200)(x), z = size * size;
    CUVIL_F64 power = CUVIL_V(cuvil_exp_wide)(size), p = (CUVIL_F64)(1.0 / 5040);
    CUVIL_STEP(p, z, 1.0 / 120);
    CUVIL_STEP(p, z, 1.0 / 6);
    CUVIL_F64 series = __builtin_elementwise_fma(p * z, size, size);
    return CUVIL_V(cuvil_narrow)(size < 0.3 ? series : 0.5 * power - 0.5 / power, x);
}

/* ln (x + √(x² + 1)); below 2^-10 its series, since 1 + x drops digits of x. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_asinh_f32)(CUVIL_F32 x)
{
    CUVIL_F64 size = __builtin_convertvector(__builtin_elementwise_abs(x), CUVIL_F64), z = size * size;
    CUVIL_F64 result = CUVIL_V(cuvil_log_wide)(size + __builtin_elementwise_sqrt(z + 1.0));
    CUVIL_F64 p = __builtin_elementwise_fma(z, (CUVIL_F64)(3.0 / 40), (CUVIL_F64)(-1.0 / 6));
    result = size < 0x1p-10 ? __builtin_elementwise_fma(p * z, size, size) : result;
    return CUVIL_V(cuvil_narrow)(size < (CUVIL_F64)__builtin_inf() ? result : size, x);
}

CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_acosh_f32)(CUVIL_F32 x)
{
    CUVIL_F64 wide = __builtin_convertvector(x, CUVIL_F64);
    CUVIL_F64 result = CUVIL_V(cuvil_log_wide)(wide + __builtin_elementwise_sqrt((wide - 1.0) * (wide + 1.0)));
    result = wide >= 1.0 ? result : (CUVIL_F64)__builtin_nan("");
    return __builtin_convertvector(wide == (CUVIL_F64)__builtin_inf() ? wide : result, CUVIL_F32);
}

/* ½ ln ((1 + x) / (1 - x)); below 2^-10 its series. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_atanh_f32)(CUVIL_F32 x)
{
    CUVIL_F64 size = __builtin_convertvector(__builtin_elementwise_abs(x), CUVIL_F64), z = size * size;
    CUVIL_F64 result = 0.5 * CUVIL_V(cuvil_log_wide)((1.0 + size) / (1.0 - size));
    CUVIL_F64 p = __builtin_elementwise_fma(z, (CUVIL_F64)(1.0 / 5), (CUVIL_F64)(1.0 / 3));
    result = size < 0x1p-10 ? __builtin_elementwise_fma(p * z, size, size) : result;
    result = size == 1.0 ? (CUVIL_F64)__builtin_inf() : result;
    return CUVIL_V(cuvil_narrow)(size <= 1.0 ? result : (CUVIL_F64)__builtin_nan(""), x);
}

#undef CUVIL_STEP

/* Doubles go one by one. */
#define CUVIL_EACH(name)                                                                          \
    CUVIL_INLINE CUVIL_F64 CUVIL_V(cuvil_##name##_f64)(CUVIL_F64 x)                                \
    {                                                                                             \
        for (int lane = 0; lane < CUVIL_LANES; ++lane) x[lane] = cuvil_double_##name(x[lane]);    \
        return x;                                                                                 \
    }
#define CUVIL_EACH_PAIR(name)                                                                            \
    CUVIL_INLINE CUVIL_F64 CUVIL_V(cuvil_##name##_f64)(CUVIL_F64 x, CUVIL_F64 y)                          \
    {                                                                                                    \
        for (int lane = 0; lane < CUVIL_LANES; ++lane) x[lane] = cuvil_double_##name(x[lane], y[lane]);  \
        return x;                                                                                        \
    }

CUVIL_EACH(exp)
CUVIL_EACH(log)
CUVIL_EACH(sigmoid)
CUVIL_EACH(tanh)
CUVIL_EACH(erf)
CUVIL_EACH(sin)
CUVIL_EACH(cos)
CUVIL_EACH(tan)
CUVIL_EACH(asin)
CUVIL_EACH(acos)
CUVIL_EACH(atan)
CUVIL_EACH(sinh)
CUVIL_EACH(cosh)
CUVIL_EACH(asinh)
CUVIL_EACH(acosh)
CUVIL_EACH(atanh)
CUVIL_EACH_PAIR(pow)
CUVIL_EACH_PAIR(mod)
CUVIL_EACH_PAIR(fmod)
#undef CUVIL_EACH
#undef CUVIL_EACH_PAIR
