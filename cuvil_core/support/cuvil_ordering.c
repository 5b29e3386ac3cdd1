/* What no loop over indices says: stable sorting, places of true elements, the greedy choice among boxes. Each function
 * takes buffers, those that it reads first, and extents; see `program/calls.py`. */
#include <stdint.h>

/* Stable merge sort of places by their elements: runs double between two arrays, both as long as the row. NaN counts as
 * greater than all numbers. */
#define CUVIL_SORT(NAME, TYPE, AFTER)                                                                                      \
    static int NAME##_after(const TYPE *x, int64_t a, int64_t b, int64_t descending)                                       \
    {                                                                                                                      \
        const TYPE left = x[a], right = x[b];                                                                              \
        return descending ? AFTER(right, left) : AFTER(left, right);                                                       \
    }                                                                                                                      \
    static void NAME##_row(const TYPE *x, int64_t *places, int64_t *scratch, int64_t length, int64_t descending)           \
    {                                                                                                                      \
        int64_t *from = places, *to = scratch;                                                                             \
        for (int64_t at = 0; at < length; ++at) places[at] = at;                                                           \
        for (int64_t run = 1; run < length; run *= 2) {                                                                    \
            for (int64_t begin = 0; begin < length; begin += 2 * run) {                                                    \
                const int64_t middle = begin + run < length ? begin + run : length;                                        \
                const int64_t end = middle + run < length ? middle + run : length;                                         \
                int64_t left = begin, right = middle;                                                                      \
                for (int64_t at = begin; at < end; ++at) {                                                                 \
                    const int take = right >= end ||                                                                       \
                                     (left < middle && !NAME##_after(x, from[left], from[right], descending));             \
                    to[at] = take ? from[left++] : from[right++];                                                          \
                }                                                                                                          \
            }                                                                                                              \
            int64_t *const held = from;                                                                                    \
            from = to, to = held;                                                                                          \
        }                                                                                                                  \
        if (from != places)                                                                                                \
            for (int64_t at = 0; at < length; ++at) places[at] = from[at];                                                 \
    }                                                                                                                      \
    void cuvil_sort_##NAME(void *const *buffers, const int64_t *extents)                                                   \
    {                                                                                                                      \
        const int64_t rows = extents[0], length = extents[1];                                                              \
        for (int64_t row = 0; row < rows; ++row)                                                                           \
            NAME##_row((const TYPE *)buffers[0] + row * length, (int64_t *)buffers[1] + row * length, buffers[2], length,  \
                       extents[2]);                                                                                        \
    }

#define AFTER(a, b) ((a) > (b))
#define AFTER_OR_NAN(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))
CUVIL_SORT(int8, int8_t, AFTER)
CUVIL_SORT(int16, int16_t, AFTER)
CUVIL_SORT(int32, int32_t, AFTER)
CUVIL_SORT(int64, int64_t, AFTER)
CUVIL_SORT(uint8, uint8_t, AFTER)
CUVIL_SORT(uint16, uint16_t, AFTER)
CUVIL_SORT(uint32, uint32_t, AFTER)
CUVIL_SORT(uint64, uint64_t, AFTER)
CUVIL_SORT(float16, _Float16, AFTER_OR_NAN)
CUVIL_SORT(float32, float, AFTER_OR_NAN)
CUVIL_SORT(float64, double, AFTER_OR_NAN)

void cuvil_positions(void *const *buffers, const int64_t *extents)
{
    const uint8_t *const mask = buffers[0];
    int64_t *const places = buffers[1], found = 0;
    for (int64_t at = 0; at < extents[0] && found < extents[1]; ++at)
        if (mask[at]) places[found++] = at;
}

struct box {
    float low[2], high[2];
};

static struct box box_of(const float *given, int64_t centered)
{
    struct box box;
    for (int axis = 0; axis < 2; ++axis) {
        float a = given[axis], b = given[axis + 2];
        if (centered) {
            const float half = b / 2.0f, middle = a;
            a = middle - half, b = middle + half;
        }
        box.low[axis] = a < b ? a : b;
        box.high[axis] = a < b ? b : a;
    }
    return box;
}

/* Intersection over union; 0 where the boxes do not meet. */
static float overlap_of(struct box a, struct box b)
{
    float sides[2], area_a = 1.0f, area_b = 1.0f;
    for (int axis = 0; axis < 2; ++axis) {
        const float low = a.low[axis] > b.low[axis] ? a.low[axis] : b.low[axis];
        const float high = a.high[axis] < b.high[axis] ? a.high[axis] : b.high[axis];
        sides[axis] = high - low;
        if (!(sides[axis] > 0.0f)) return 0.0f;
        area_a *= a.high[axis] - a.low[axis], area_b *= b.high[axis] - b.low[axis];
    }
    const float common = sides[0] * sides[1];
    return common / (area_a + area_b - common);
}

void cuvil_suppress(void *const *buffers, const int64_t *extents)
{
    const float *const boxes = buffers[0], *const scores = buffers[1];
    const int64_t most = *(const int64_t *)buffers[2];
    const float limit = *(const float *)buffers[3], least = *(const float *)buffers[4];
    const int64_t batches = extents[0], classes = extents[1], count = extents[2], centered = extents[3];
    int64_t *const order = buffers[6], *const spare = order + count;
    for (int64_t row = 0; row < batches * classes; ++row) {
        const float *const line = scores + row * count, *const given = boxes + row / classes * count * 4;
        int64_t *const chosen = (int64_t *)buffers[5] + row * count, kept = 0;
        float32_row(line, order, spare, count, 1);
        for (int64_t at = 0; at < count; ++at) {
            if (line[order[at]] != line[order[at]]) continue; /* NaN stands first and is never above the least score */
            if (!(line[order[at]] > least) || kept >= most) break;
            const struct box box = box_of(given + order[at] * 4, centered);
            int64_t other = 0;
            while (other < kept && overlap_of(box, box_of(given + chosen[other] * 4, centered)) <= limit) ++other;
            if (other == kept) chosen[kept++] = order[at];
        }
        for (; kept < count; ++kept) chosen[kept] = -1;
    }
}
