/* Vector types of CUVIL_LANES lanes, their loads, stores, selects, casts and integer division.
 * Included once for each lane count by cuvil_kernel.h; no include guard. One lane is a vector too, so generated code has
 * one shape. Bools are masks: 0 or -1 in every bit, of the width of what was compared; in memory one byte, 0 or 1. */

#define CUVIL_PASTE_(a, b) a##x##b
#define CUVIL_PASTE(a, b) CUVIL_PASTE_(a, b)
#define CUVIL_V(name) CUVIL_PASTE(name, CUVIL_LANES)

#define CUVIL_TYPE(short, element)                                                                   \
    typedef element CUVIL_V(short) __attribute__((ext_vector_type(CUVIL_LANES)));                     \
    typedef CUVIL_V(short) CUVIL_V(unaligned_##short) __attribute__((aligned(sizeof(element))));

CUVIL_TYPE(f32, float)
CUVIL_TYPE(f64, double)
CUVIL_TYPE(f16, _Float16)
CUVIL_TYPE(i8, int8_t)
CUVIL_TYPE(i16, int16_t)
CUVIL_TYPE(i32, int32_t)
CUVIL_TYPE(i64, int64_t)
CUVIL_TYPE(u8, uint8_t)
CUVIL_TYPE(u16, uint16_t)
CUVIL_TYPE(u32, uint32_t)
CUVIL_TYPE(u64, uint64_t)
#undef CUVIL_TYPE

#define CUVIL_F32 CUVIL_V(f32)
#define CUVIL_F64 CUVIL_V(f64)
#define CUVIL_I32 CUVIL_V(i32)
#define CUVIL_I64 CUVIL_V(i64)
#define CUVIL_U32 CUVIL_V(u32)

/* Loads and stores of all lanes, and of the first `count` lanes: the others are 0, nothing beyond is touched. */
#define CUVIL_MEMORY(short, element)                                                                   \
    CUVIL_INLINE CUVIL_V(short) CUVIL_V(cuvil_load_##short)(const element *from)                       \
    {                                                                                                   \
        return *(const CUVIL_V(unaligned_##short) *)from;                                               \
    }                                                                                                   \
    CUVIL_INLINE void CUVIL_V(cuvil_store_##short)(element * to, CUVIL_V(short) value)                  \
    {                                                                                                   \
        *(CUVIL_V(unaligned_##short) *)to = value;                                                      \
    }                                                                                                   \
    CUVIL_INLINE CUVIL_V(short) CUVIL_V(cuvil_load_part_##short)(const element *from, int64_t count)    \
    {                                                                                                   \
        CUVIL_V(short) value = (CUVIL_V(short))(element)0;                                              \
        for (int lane = 0; lane < CUVIL_LANES && lane < count; ++lane) value[lane] = from[lane];        \
        return value;                                                                                   \
    }                                                                                                   \
    CUVIL_INLINE void CUVIL_V(cuvil_store_part_##short)(element * to, CUVIL_V(short) value, int64_t count) \
    {                                                                                                   \
        for (int lane = 0; lane < CUVIL_LANES && lane < count; ++lane) to[lane] = value[lane];          \
    }

CUVIL_MEMORY(f64, double)
CUVIL_MEMORY(f16, _Float16)
CUVIL_MEMORY(i8, int8_t)
CUVIL_MEMORY(i16, int16_t)
CUVIL_MEMORY(i64, int64_t)
CUVIL_MEMORY(u8, uint8_t)
CUVIL_MEMORY(u16, uint16_t)
CUVIL_MEMORY(u32, uint32_t)
CUVIL_MEMORY(u64, uint64_t)
CUVIL_MEMORY(f32, float)
CUVIL_MEMORY(i32, int32_t)
#undef CUVIL_MEMORY

/* 0, 1, 2, … */
CUVIL_INLINE CUVIL_I64 CUVIL_V(cuvil_lane_i64)(void)
{
    CUVIL_I64 value;
    for (int lane = 0; lane < CUVIL_LANES; ++lane) value[lane] = lane;
    return value;
}

CUVIL_INLINE CUVIL_I32 CUVIL_V(cuvil_lane_i32)(void) { return __builtin_convertvector(CUVIL_V(cuvil_lane_i64)(), CUVIL_I32); }

/* bfloat16 lies in memory as its 16 bits; values are float32. */
CUVIL_INLINE CUVIL_F32 CUVIL_V(cuvil_widen_bf16)(CUVIL_V(u16) bits)
{
    return (CUVIL_F32)(__builtin_convertvector(bits, CUVIL_U32) << 16);
}

CUVIL_INLINE CUVIL_V(u16) CUVIL_V(cuvil_round_bf16)(CUVIL_F32 value)
{
    CUVIL_U32 bits = (CUVIL_U32)value;
    CUVIL_U32 rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
    CUVIL_U32 quiet = bits | 0x400000u;
    CUVIL_U32 nan = (CUVIL_U32)(value != value);
    return __builtin_convertvector(((rounded & ~nan) | (quiet & nan)) >> 16, CUVIL_V(u16));
}

/* Float to integer: truncates, saturates, NaN gives 0. `low` is exact; `top` is the first float beyond the type. */
#define CUVIL_SATURATE(from, mask, to, low, top, inside, least, most)                                     \
    CUVIL_INLINE CUVIL_V(to) CUVIL_V(cuvil_##from##_to_##to)(CUVIL_V(from) value)                          \
    {                                                                                                      \
        CUVIL_V(from) safe = value > low ? value : (CUVIL_V(from))low;                                     \
        safe = safe < inside ? safe : (CUVIL_V(from))inside;                                               \
        CUVIL_V(to) result = __builtin_convertvector(safe, CUVIL_V(to));                                   \
        CUVIL_V(mask) over = value >= top, bad = value != value;                                           \
        CUVIL_V(to) most_lanes = (CUVIL_V(to))(most), over_to = __builtin_convertvector(over, CUVIL_V(to)); \
        CUVIL_V(to) bad_to = __builtin_convertvector(bad, CUVIL_V(to));                                    \
        return ((over_to & most_lanes) | (~over_to & result)) & ~bad_to;                                   \
    }

CUVIL_SATURATE(f32, i32, i8, -128.0f, 128.0f, 127.0f, INT8_MIN, INT8_MAX)
CUVIL_SATURATE(f32, i32, u8, 0.0f, 256.0f, 255.0f, 0, UINT8_MAX)
CUVIL_SATURATE(f32, i32, i16, -32768.0f, 32768.0f, 32767.0f, INT16_MIN, INT16_MAX)
CUVIL_SATURATE(f32, i32, u16, 0.0f, 65536.0f, 65535.0f, 0, UINT16_MAX)
CUVIL_SATURATE(f32, i32, i32, -2147483648.0f, 2147483648.0f, 2147483520.0f, INT32_MIN, INT32_MAX)
CUVIL_SATURATE(f32, i32, u32, 0.0f, 4294967296.0f, 4294967040.0f, 0, UINT32_MAX)
CUVIL_SATURATE(f32, i32, i64, -9223372036854775808.0f, 9223372036854775808.0f, 9223371487098961920.0f, INT64_MIN, INT64_MAX)
CUVIL_SATURATE(f32, i32, u64, 0.0f, 18446744073709551616.0f, 18446742974197923840.0f, 0, UINT64_MAX)
CUVIL_SATURATE(f64, i64, i8, -128.0, 128.0, 127.0, INT8_MIN, INT8_MAX)
CUVIL_SATURATE(f64, i64, u8, 0.0, 256.0, 255.0, 0, UINT8_MAX)
CUVIL_SATURATE(f64, i64, i16, -32768.0, 32768.0, 32767.0, INT16_MIN, INT16_MAX)
CUVIL_SATURATE(f64, i64, u16, 0.0, 65536.0, 65535.0, 0, UINT16_MAX)
CUVIL_SATURATE(f64, i64, i32, -2147483648.0, 2147483648.0, 2147483647.0, INT32_MIN, INT32_MAX)
CUVIL_SATURATE(f64, i64, u32, 0.0, 4294967296.0, 4294967295.0, 0, UINT32_MAX)
CUVIL_SATURATE(f64, i64, i64, -9223372036854775808.0, 9223372036854775808.0, 9223372036854774784.0, INT64_MIN, INT64_MAX)
CUVIL_SATURATE(f64, i64, u64, 0.0, 18446744073709551616.0, 18446744073709549568.0, 0, UINT64_MAX)
#undef CUVIL_SATURATE

/* Integer arithmetic that x86 has no vectors for, lane by lane. A zero divisor gives 0, as NumPy does; the one overflow
 * (least / -1) wraps. `mod` has the sign of the divisor, `fmod` that of the dividend. */
#define CUVIL_DIVISION(short, element, is_minus_one, power)                                                \
    CUVIL_INLINE CUVIL_V(short) CUVIL_V(cuvil_div_##short)(CUVIL_V(short) a, CUVIL_V(short) b)              \
    {                                                                                                       \
        for (int lane = 0; lane < CUVIL_LANES; ++lane) {                                                    \
            element by = b[lane];                                                                           \
            a[lane] = by == 0 ? 0 : is_minus_one ? (element)(0 - a[lane]) : (element)(a[lane] / by);        \
        }                                                                                                   \
        return a;                                                                                           \
    }                                                                                                       \
    CUVIL_INLINE CUVIL_V(short) CUVIL_V(cuvil_fmod_##short)(CUVIL_V(short) a, CUVIL_V(short) b)             \
    {                                                                                                       \
        for (int lane = 0; lane < CUVIL_LANES; ++lane) {                                                    \
            element by = b[lane];                                                                           \
            a[lane] = by == 0 || is_minus_one ? 0 : (element)(a[lane] % by);                                \
        }                                                                                                   \
        return a;                                                                                           \
    }                                                                                                       \
    CUVIL_INLINE CUVIL_V(short) CUVIL_V(cuvil_mod_##short)(CUVIL_V(short) a, CUVIL_V(short) b)              \
    {                                                                                                       \
        CUVIL_V(short) rest = CUVIL_V(cuvil_fmod_##short)(a, b);                                            \
        for (int lane = 0; lane < CUVIL_LANES; ++lane)                                                      \
            if (rest[lane] != 0 && (rest[lane] < 0) != (b[lane] < 0)) rest[lane] += b[lane];                \
        return rest;                                                                                        \
    }                                                                                                       \
    CUVIL_INLINE CUVIL_V(short) CUVIL_V(cuvil_pow_##short)(CUVIL_V(short) a, CUVIL_V(short) b)              \
    {                                                                                                       \
        for (int lane = 0; lane < CUVIL_LANES; ++lane) a[lane] = (element)power(a[lane], b[lane]);          \
        return a;                                                                                           \
    }

CUVIL_DIVISION(i8, int8_t, by == -1, cuvil_signed_power)
CUVIL_DIVISION(i16, int16_t, by == -1, cuvil_signed_power)
CUVIL_DIVISION(i32, int32_t, by == -1, cuvil_signed_power)
CUVIL_DIVISION(i64, int64_t, by == -1, cuvil_signed_power)
CUVIL_DIVISION(u8, uint8_t, 0, cuvil_unsigned_power)
CUVIL_DIVISION(u16, uint16_t, 0, cuvil_unsigned_power)
CUVIL_DIVISION(u32, uint32_t, 0, cuvil_unsigned_power)
CUVIL_DIVISION(u64, uint64_t, 0, cuvil_unsigned_power)
#undef CUVIL_DIVISION

/* Greatest and least of floats; NaN when either is NaN. */
#define CUVIL_EXTREMUM(short)                                                                               \
    CUVIL_INLINE CUVIL_V(short) CUVIL_V(cuvil_max_##short)(CUVIL_V(short) a, CUVIL_V(short) b)              \
    {                                                                                                       \
        CUVIL_V(short) greater = b > a ? b : a;                                                             \
        return b != b ? b : greater;                                                                        \
    }                                                                                                       \
    CUVIL_INLINE CUVIL_V(short) CUVIL_V(cuvil_min_##short)(CUVIL_V(short) a, CUVIL_V(short) b)              \
    {                                                                                                       \
        CUVIL_V(short) less = b < a ? b : a;                                                                \
        return b != b ? b : less;                                                                           \
    }

CUVIL_EXTREMUM(f32)
CUVIL_EXTREMUM(f64)
#undef CUVIL_EXTREMUM
