/* Elementary functions on doubles, one at a time: float64 is rare in models, so these are short rather than fast. Only
 * IEEE operations and FMA, hence the same bits everywhere. Bounds in units in the last place stand above each. Included
 * once by cuvil_kernel.h. */

CUVIL_INLINE double cuvil_series(const double *numbers, int count, double x)
{
    double sum = numbers[0];
    for (int i = 1; i < count; ++i) sum = __builtin_fma(sum, x, numbers[i]);
    return sum;
}
#define CUVIL_SERIES(x, ...) \
    cuvil_series((const double[]){__VA_ARGS__}, (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), x)

CUVIL_INLINE uint64_t cuvil_bits(double x)
{
    union { double d; uint64_t u; } both = {x};
    return both.u;
}

CUVIL_INLINE double cuvil_of_bits(uint64_t bits)
{
    union { uint64_t u; double d; } both = {bits};
    return both.d;
}

/* p · 2^n for n in -1080 … 1080, in two steps so that denormal results are rounded once. */
CUVIL_INLINE double cuvil_scale(double p, int64_t n)
{
    int64_t half = n >> 1;
    return p * cuvil_of_bits((uint64_t)(half + 1023) << 52) * cuvil_of_bits((uint64_t)(n - half + 1023) << 52);
}

/* e^r - 1 for |r| < 0.35. */
CUVIL_INLINE double cuvil_small_power(double r)
{
    double rest = CUVIL_SERIES(r, 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
                1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0,
                1.0 / 6.0, 1.0 / 2.0);
    return __builtin_fma(rest * r, r, r);
}

/* x less the nearest multiple of ln 2, which is told in n. */
CUVIL_INLINE double cuvil_less_ln2(double x, double *n)
{
    *n = __builtin_roundeven(x * 0x1.71547652b82fep+0);
    double r = __builtin_fma(*n, -0x1.62e42fefa39efp-1, x);
    return __builtin_fma(*n, -0x1.abc9e3b39803fp-56, r);
}

/* e^x, 1 ulp. */
CUVIL_COLD double cuvil_double_exp(double x)
{
    if (x != x) return x;
    x = x > 710 ? 710 : x < -746 ? -746 : x;
    double n, r = cuvil_less_ln2(x, &n);
    return cuvil_scale(1.0 + cuvil_small_power(r), (int64_t)n);
}

/* e^x - 1 for x >= 0, 2 ulp. */
CUVIL_COLD double cuvil_double_expm1(double x)
{
    if (!(x < 710)) return x != x ? x : __builtin_inf();
    double n, r = cuvil_less_ln2(x, &n), p = cuvil_small_power(r);
    if (n == 0) return p;
    return n > 60 ? cuvil_scale(1.0 + p, (int64_t)n) : __builtin_fma(cuvil_scale(1.0, (int64_t)n), p, cuvil_scale(1.0, (int64_t)n) - 1.0);
}

/* ln x, 1 ulp: ln(1 + f) = f - f²/2 + s(f²/2 + …), s = f / (2 + f); the multiple of ln 2 in two parts, the first exact. */
CUVIL_COLD double cuvil_double_log(double x)
{
    if (!(x > 0)) return x == 0 ? -__builtin_inf() : __builtin_nan("");
    if (x == __builtin_inf()) return x;
    double e = 0;
    if (x < 0x1p-1022) x *= 0x1p54, e = -54;
    int64_t bits = (int64_t)cuvil_bits(x) - 0x3fe6a09e667f3bcd;
    e += (double)(bits >> 52);
    double f = cuvil_of_bits((uint64_t)((bits & 0xfffffffffffff) + 0x3fe6a09e667f3bcd)) - 1.0;
    double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    double rest = z * CUVIL_SERIES(z, 2.0 / 21, 2.0 / 19, 2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7,
                2.0 / 5, 2.0 / 3);
    double low = __builtin_fma(s, half + rest, e * 0x1.a39ef35793c76p-33);
    return __builtin_fma(e, 0x1.62e42fee00000p-1, f - (half - low));
}

/* ln(1 + x) for x >= 0, 2 ulp: what the sum rounds off is put back. */
CUVIL_COLD double cuvil_double_log1p(double x)
{
    double u = 1.0 + x;
    if (u == __builtin_inf()) return u;
    double lost = x >= 1.0 ? 1.0 - (u - x) : x - (u - 1.0);
    return cuvil_double_log(u) + lost / u;
}

/* 1 / (1 + e^-x), 2.5 ulp. */
CUVIL_COLD double cuvil_double_sigmoid(double x)
{
    double decay = cuvil_double_exp(-__builtin_fabs(x));
    return (x < 0 ? decay : 1.0) / (1.0 + decay);
}

/* 3 ulp, beyond 2^20 4. */
CUVIL_COLD double cuvil_double_tanh(double x)
{
    double size = __builtin_fabs(x), power = cuvil_double_expm1(2.0 * (size > 20 ? 20 : size));
    return __builtin_copysign(power / (power + 2.0), x);
}

/* 3 ulp; beyond 709 by the square of half the power, which is finite a little longer. */
CUVIL_COLD double cuvil_double_sinh(double x)
{
    double size = __builtin_fabs(x), half = cuvil_double_exp(0.5 * size), power = cuvil_double_expm1(size);
    double result = size > 709 ? 0.5 * half * half : 0.5 * (power + power / (power + 1.0));
    return __builtin_copysign(result, x);
}

CUVIL_COLD double cuvil_double_cosh(double x)
{
    double size = __builtin_fabs(x), half = cuvil_double_exp(0.5 * size), power = cuvil_double_exp(size);
    return size > 709 ? 0.5 * half * half : 0.5 * power + 0.5 / power;
}

/* 3 ulp. */
CUVIL_COLD double cuvil_double_asinh(double x)
{
    double size = __builtin_fabs(x), square = size * size;
    double result = size > 0x1p28 ? cuvil_double_log(size) + 0x1.62e42fefa39efp-1
                                  : cuvil_double_log1p(size + square / (1.0 + __builtin_sqrt(1.0 + square)));
    return __builtin_copysign(size == __builtin_inf() ? size : result, x);
}

CUVIL_COLD double cuvil_double_acosh(double x)
{
    if (!(x >= 1.0)) return __builtin_nan("");
    if (x > 0x1p28) return cuvil_double_log(x) + 0x1.62e42fefa39efp-1;
    double over = x - 1.0;
    return cuvil_double_log1p(over + __builtin_sqrt(2.0 * over + over * over));
}

CUVIL_COLD double cuvil_double_atanh(double x)
{
    double size = __builtin_fabs(x);
    if (!(size <= 1.0)) return __builtin_nan("");
    return __builtin_copysign(0.5 * cuvil_double_log1p(2.0 * size / (1.0 - size)), x);
}

/* 2 ulp: by 1 / x above 1, by (t - 1) / (t + 1) above the tangent of π/8. */
CUVIL_COLD double cuvil_double_atan(double x)
{
    double size = __builtin_fabs(x), t = size > 1.0 ? 1.0 / size : size;
    int upper = t > 0x1.a827999fcef32p-2;
    double u = upper ? (t - 1.0) / (t + 1.0) : t, z = u * u;
    double rest = z * CUVIL_SERIES(z, 0x1.ef3a9d0100c77p-7, -0x1.118225dc21e46p-5, 0x1.7098da92722a7p-5, -0x1.ab66d8ededdbdp-5,
                0x1.e16e1f33a5d5fp-5, -0x1.110c3a393ccafp-4, 0x1.3b1369d44ce80p-4, -0x1.745d1480820d4p-4,
                0x1.c71c71b562122p-4, -0x1.249249247071fp-3, 0x1.9999999999565p-3, -0x1.5555555555554p-2);
    double arc = __builtin_fma(rest, u, u);
    if (upper) arc = 0x1.921fb54442d18p-1 + (arc + 0x1.1a62633145c07p-55);
    if (size > 1.0) arc = 0x1.921fb54442d18p+0 - (arc - 0x1.1a62633145c07p-54);
    return __builtin_copysign(arc, x);
}

/* 4 ulp. */
CUVIL_COLD double cuvil_double_asin(double x)
{
    double root = __builtin_sqrt((1.0 - x) * (1.0 + x));
    return cuvil_double_atan(x / root);
}

CUVIL_COLD double cuvil_double_acos(double x)
{
    double arc = cuvil_double_atan(__builtin_sqrt((1.0 - x) * (1.0 + x)) / __builtin_fabs(x));
    return x < 0 ? 0x1.921fb54442d18p+1 - (arc - 0x1.1a62633145c07p-53) : arc;
}

/* 2 ulp: an odd series below 0.93, five series about their middles up to 6. */
CUVIL_COLD double cuvil_double_erf(double x)
{
    static const double piece[5][18] = {
        {0x1.5000000000000p+0,
         0x1.b6950b417f568p-20, -0x1.399ce9c975e10p-18, -0x1.15f699007c91fp-17, 0x1.a981a5781713dp-15, -0x1.322fe991c0f77p-17,
         -0x1.6bbdb573b9ea3p-12, 0x1.262419b3454f4p-11, 0x1.553eea5f0e75bp-10, -0x1.4cc916bb5b9ebp-8, 0x1.e377f5fb82352p-11,
         0x1.6d1d724bbea86p-6, -0x1.3f41761d670adp-5, -0x1.419fa10b6f0b2p-6, 0x1.5066cda84bc29p-3, -0x1.0ed7443f85c33p-2,
         0x1.9cb5bd549b111p-3, 0x1.df85ea8db188ep-1},
        {0x1.0800000000000p+1,
         -0x1.395b3f69d295ep-21, 0x1.8654d30febe03p-22, 0x1.2fd3119a07301p-18, -0x1.a37b4e1244a14p-17, -0x1.b28414fc0ab47p-18,
         0x1.b078dd50e12f8p-14, -0x1.90f2823fc6ef4p-13, -0x1.929479a9a3638p-13, 0x1.8eae08d7e600dp-10, -0x1.5478d777266f2p-9,
         -0x1.bbf7e279c9e8ap-11, 0x1.aa2c0753c1e15p-7, -0x1.f155b4e7d8ba8p-6, 0x1.48b127f8ed96ep-5, -0x1.0ee3844e59be7p-5,
         0x1.06ae13b0d3253p-6, 0x1.fe307f2b503d0p-1},
        {0x1.7000000000000p+1,
         0x1.5dff8f721d6ddp-25, 0x1.02c7a14c02356p-23, -0x1.96c69f30b0753p-21, 0x1.40afd2f8e6388p-20, 0x1.11a495227134ep-19,
         -0x1.f10cad18c8d7bp-17, 0x1.18143d5d34068p-15, -0x1.0ec424b2499b4p-16, -0x1.1c63ff154189cp-13, 0x1.151f78113c193p-11,
         -0x1.2add1ce79f60fp-10, 0x1.c11f27076329ep-10, -0x1.ed4ac7dae9ac0p-10, 0x1.89e17c0749a0cp-10, -0x1.b5781e9d7c65ap-11,
         0x1.30538fbb77fb7p-12, 0x1.fff9ba420e834p-1},
        {0x1.e800000000000p+1,
         0x1.01f52a3d5f3b7p-29, -0x1.9403d349d5e31p-27, 0x1.04dd940d3d5c6p-25, -0x1.bb8cce11f28d9p-26, -0x1.087b6f020ae26p-23,
         0x1.747c6f60546e1p-21, -0x1.197075d008fdbp-19, 0x1.37960a7fcbd69p-18, -0x1.106e969ccd8e5p-17, 0x1.81cd75ac832aep-17,
         -0x1.bcab1eccc4fdbp-17, 0x1.9dfcc31dedb0ep-17, -0x1.3166de6ab63e1p-17, 0x1.5900c02df7abap-18, -0x1.1926290adba95p-19,
         0x1.26f9df8515b6fp-21, 0x1.fffffda86faa9p-1},
        {0x1.4c00000000000p+2,
         -0x1.db962c2a2eedfp-37, 0x1.5c693542b4545p-35, -0x1.f6dee8257c542p-35, 0x1.be14fefa15279p-34, -0x1.c0bbf54325bc4p-33,
         0x1.5b139be485beep-32, -0x1.bb0a28e4ea753p-32, 0x1.00b03290d70d2p-31, -0x1.0850fa4f2451ap-31, 0x1.d24cf72bb0391p-32,
         -0x1.5cf56490c48c2p-32, 0x1.b5ed46598cdc5p-33, -0x1.c05de31e3263bp-34, 0x1.6764d8af7d4a5p-35, -0x1.a77a14bcbde44p-37,
         0x1.46853e43de92ap-39, 0x1.ffffffffff845p-1},
    };
    double size = __builtin_fabs(x);
    if (!(size >= 0.93)) return x * CUVIL_SERIES(x * x, -0x1.3cb50fb745866p-38, 0x1.85f0c25694947p-34, -0x1.4f7d9821ca76ap-30, 0x1.fc78d4aaf9d7dp-27,
                -0x1.5f70cecbf3caap-23, 0x1.b9e6943c4c430p-20, -0x1.f4d259e456ab4p-17, 0x1.f9a326e7502a9p-14,
                -0x1.c02db3ffdec21p-11, 0x1.565bcd0e6901fp-8, -0x1.b82ce31288af9p-6, 0x1.ce2f21a042be1p-4,
                -0x1.812746b0379e7p-2, 0x1.20dd750429b6dp+0);
    if (size >= 6.0) return __builtin_copysign(1.0, x);
    int at = size < 1.6875 ? 0 : size < 2.4375 ? 1 : size < 3.3125 ? 2 : size < 4.3125 ? 3 : 4;
    return __builtin_copysign(cuvil_series(piece[at] + 1, 17, size - piece[at][0]), x);
}

/* x less quarters of a turn, in -π/4 … π/4, for |x| >= 2^20: the bits of 2/π of weight below 4, times the mantissa. */
CUVIL_COLD double cuvil_reduce_double(double x, int64_t *quarters)
{
    static const uint64_t two_over_pi[23] = {
        0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
        0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4,
        0x9c845f8bbdf9283b, 0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
        0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d, 0, 0};
    uint64_t bits = cuvil_bits(x), mantissa = (bits & 0xfffffffffffff) | 0x10000000000000;
    int64_t first = (int64_t)(bits >> 52 & 2047) - 1075 + 62; /* the place of weight 4 in the table, its 64 zeros counted */
    uint64_t word[3];
    for (int i = 0; i < 3; ++i) {
        int64_t at = first / 64 + i, shift = first % 64;
        word[i] = shift ? two_over_pi[at] << shift | two_over_pi[at + 1] >> (64 - shift) : two_over_pi[at];
    }
    unsigned __int128 low = (unsigned __int128)mantissa * word[2];
    unsigned __int128 turn = (unsigned __int128)mantissa * word[1] + (low >> 64);
    turn += (unsigned __int128)(mantissa * word[0]) << 64;
    unsigned __int128 quarter = (turn + ((unsigned __int128)1 << 125)) >> 126;
    turn -= quarter << 126;
    int negative = (int64_t)(turn >> 64) < 0;
    if (negative) turn = -turn;
    double part = (double)(uint64_t)(turn >> 64) * 0x1p64 + (double)(uint64_t)turn;
    double angle = part * 0x1p-126 * 0x1.921fb54442d18p+0;
    *quarters = (int64_t)quarter * (bits >> 63 ? -1 : 1);
    return negative != (int)(bits >> 63) ? -angle : angle;
}

CUVIL_INLINE double cuvil_less_quarters(double x, int64_t *quarters)
{
    *quarters = 0;
    if (!(__builtin_fabs(x) < __builtin_inf())) return __builtin_nan("");
    if (__builtin_fabs(x) >= 0x1p20) return cuvil_reduce_double(x, quarters);
    double n = __builtin_roundeven(x * 0x1.45f306dc9c883p-1);
    *quarters = (int64_t)n;
    double r = __builtin_fma(n, -0x1.921fb54442d18p+0, x);
    r = __builtin_fma(n, -0x1.1a62633145c07p-54, r);
    return __builtin_fma(n, 0x1.f1976b7ed8fbcp-110, r);
}

CUVIL_INLINE double cuvil_sine_of_rest(double r)
{
    double z = r * r;
    return __builtin_fma(r * z, CUVIL_SERIES(z, 1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
                1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0), r);
}

CUVIL_INLINE double cuvil_cosine_of_rest(double r)
{
    double z = r * r, half = 0.5 * z, above = 1.0 - half;
    return above + ((1.0 - above - half) + z * z * CUVIL_SERIES(z, 1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0, -1.0 / 3628800.0,
                1.0 / 40320.0, -1.0 / 720.0, 1.0 / 24.0));
}

/* 1.5 ulp, beyond 2^20 2.5; `quarter` 0 gives the sine, 1 the cosine. */
CUVIL_COLD double cuvil_double_turn(double x, int64_t quarter)
{
    int64_t n;
    double r = cuvil_less_quarters(x, &n);
    n += quarter;
    double value = n & 1 ? cuvil_cosine_of_rest(r) : cuvil_sine_of_rest(r);
    return n & 2 ? -value : value;
}

CUVIL_INLINE double cuvil_double_sin(double x) { return x == 0 ? x : cuvil_double_turn(x, 0); }
CUVIL_INLINE double cuvil_double_cos(double x) { return cuvil_double_turn(x, 1); }

/* 3 ulp, beyond 2^20 4. */
CUVIL_COLD double cuvil_double_tan(double x)
{
    int64_t n;
    double r = cuvil_less_quarters(x, &n), sine = cuvil_sine_of_rest(r), cosine = cuvil_cosine_of_rest(r);
    return x == 0 ? x : n & 1 ? -cosine / sine : sine / cosine;
}

/* The product as a sum of two. */
CUVIL_INLINE double cuvil_product(double a, double b, double *low)
{
    double high = a * b;
    *low = __builtin_fma(a, b, -high);
    return high;
}

/* log2 |x| as a sum of two, good to 2^-68 of itself: 2/ln 2 · s(1 + z/3 + …), s = (m - 1) / (m + 1), z = s². */
CUVIL_INLINE double cuvil_double_log2(double x, double *low)
{
    double e = 0;
    if (x < 0x1p-1022) x *= 0x1p54, e = -54;
    int64_t bits = (int64_t)cuvil_bits(x) - 0x3fe6a09e667f3bcd;
    e += (double)(bits >> 52);
    double m = cuvil_of_bits((uint64_t)((bits & 0xfffffffffffff) + 0x3fe6a09e667f3bcd)), f = m - 1.0;
    double d = m + 1.0, d_low = m - (d - 1.0), s = f / d;
    double s_low = (__builtin_fma(-s, d, f) - s * d_low) / d;
    double z_low, z = cuvil_product(s, s, &z_low);
    z_low += 2.0 * s * s_low;
    double tail = z * z * CUVIL_SERIES(z, 1.0 / 23, 1.0 / 21, 1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9,
                1.0 / 7, 1.0 / 5);
    double third_low, third = cuvil_product(z, 0x1.5555555555555p-2, &third_low);
    third_low += z * 0x1.5555555555555p-56 + z_low * 0x1.5555555555555p-2;
    double g = third + tail, g_low = third - g + tail + third_low;
    double p_low, p = cuvil_product(s, g, &p_low);
    p_low += s * g_low + s_low * g;
    double sum = s + p, sum_low = s - sum + p + (p_low + s_low);
    double l_low, l = cuvil_product(sum, 0x1.71547652b82fep+1, &l_low);
    l_low += sum * 0x1.777d0ffda0d24p-55 + sum_low * 0x1.71547652b82fep+1;
    double high = e + l;
    *low = (e == 0 ? 0.0 : e - high + l) + l_low;
    return high;
}

/* |x|^y for finite positive |x| and finite y, 1 ulp. */
CUVIL_INLINE double cuvil_double_plain_power(double size, double y)
{
    double low, high = cuvil_double_log2(size, &low), p_low, p = cuvil_product(y, high, &p_low);
    if (!(p < 1100)) return __builtin_inf();
    if (!(p > -1100)) return 0;
    p_low += y * low;
    double n = __builtin_roundeven(p), f = p - n + p_low;
    double f_low, r = cuvil_product(f, 0x1.62e42fefa39efp-1, &f_low);
    double small = cuvil_small_power(r);
    return cuvil_scale(1.0 + (small + f_low), (int64_t)n);
}

/* x^y, 1 ulp; the special cases are those of C's pow. */
CUVIL_COLD double cuvil_double_pow(double x, double y)
{
    const double infinity = __builtin_inf();
    if (y == 0 || x == 1) return 1;
    if (x != x || y != y) return x + y;
    double size = __builtin_fabs(x), rising = __builtin_fabs(y);
    int whole = rising == infinity ? 0 : __builtin_floor(y) == y, odd = whole && __builtin_floor(0.5 * y) != 0.5 * y;
    int negative = cuvil_bits(x) >> 63 && odd;
    double result;
    if (size == 0) result = y > 0 ? 0 : infinity;
    else if (rising == infinity) return size == 1 ? 1 : (size > 1) == (y > 0) ? infinity : 0;
    else if (size == infinity) result = y > 0 ? infinity : 0;
    else if (x < 0 && !whole) return __builtin_nan("");
    else result = cuvil_double_plain_power(size, y);
    return negative ? -result : result;
}

/* 53 bits, the first of them set, and the exponent: size = bits · 2^(exponent - 1075). */
CUVIL_INLINE uint64_t cuvil_mantissa(double size, int64_t *exponent)
{
    uint64_t bits = cuvil_bits(size), mantissa = bits & 0xfffffffffffff;
    *exponent = (int64_t)(bits >> 52);
    if (*exponent) return mantissa | 0x10000000000000;
    for (*exponent = 1; !(mantissa >> 52); --*exponent) mantissa <<= 1;
    return mantissa;
}

/* The exact remainder of a / b with the sign of a, by shift and subtract; NaN for b = 0, infinite a, or NaN. */
CUVIL_COLD double cuvil_double_fmod(double a, double b)
{
    double size = __builtin_fabs(a), by = __builtin_fabs(b);
    if (!(size < __builtin_inf()) || !(by > 0)) return __builtin_nan("");
    if (size < by || by == __builtin_inf()) return a;
    int64_t top, bottom;
    uint64_t rest = cuvil_mantissa(size, &top), divisor = cuvil_mantissa(by, &bottom);
    for (; top > bottom; --top) rest = (rest >= divisor ? rest - divisor : rest) << 1;
    rest = rest >= divisor ? rest - divisor : rest;
    for (; bottom < 1; ++bottom) rest >>= 1;
    return __builtin_copysign(cuvil_scale((double)rest, bottom - 1075), a);
}

/* The remainder with the sign of the divisor. */
CUVIL_COLD double cuvil_double_mod(double a, double b)
{
    double rest = cuvil_double_fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

#undef CUVIL_SERIES
