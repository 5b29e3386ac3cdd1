/* The C ABI of an artifact. Stable: a change raises CUVIL_ABI_VERSION. */
#ifndef CUVIL_H
#define CUVIL_H

#include <stdint.h>

#define CUVIL_ABI_VERSION 3
#define CUVIL_PARTS_A_THREAD 4

#if defined(__GNUC__)
#define CUVIL_EXPORT __attribute__((visibility("default")))
#else
#define CUVIL_EXPORT
#endif

/* One part of a launch: part `task` of `tasks`, all of which may run at the same time. */
typedef void cuvil_task(void *context, int32_t task, int32_t tasks);

/* Threads that outlive a call. The launch pointer comes first, so that every artifact of a process can use the pool that
 * any one of them created, whatever its compiler. */
typedef struct cuvil_pool cuvil_pool;
struct cuvil_pool {
    /* Runs the task for 0 … tasks-1 and returns when all are done. Neighbouring parts run on the same thread, the first
     * ones on the caller's, unless a thread is kept from its core. At most CUVIL_PARTS_A_THREAD parts a thread are shared
     * out; more run on the caller. Safe from several threads. */
    void (*launch)(cuvil_pool *pool, cuvil_task *task, void *context, int32_t tasks);
    /* Threads that a launch can use, the caller's included. */
    int32_t threads;
    /* Brackets around a series of launches: between them idle workers may spin for a moment instead of sleeping. */
    void (*enter)(cuvil_pool *pool);
    void (*leave)(cuvil_pool *pool);
};

/* A pool of `threads` threads, the caller's included (1 … 1024); they start at the first launch that needs them. NULL
 * when out of memory. A pool does not survive fork(): a child that launches on it runs everything on its own thread. */
CUVIL_EXPORT cuvil_pool *cuvil_pool_create(int32_t threads);
/* Stops and joins the threads. No launch may be under way. */
CUVIL_EXPORT void cuvil_pool_destroy(cuvil_pool *pool);

CUVIL_EXPORT int32_t cuvil_abi_version(void);
/* What a library relies on; a loader compares it with the manifest and the weights before the first call. */
struct cuvil_expectation {
    int64_t weight_bytes;  /* at least so many lie at `weights` */
    const char *signature; /* symbols with their bounds, inputs and outputs with dtypes and shapes: canonical JSON */
};
CUVIL_EXPORT const struct cuvil_expectation *cuvil_expects(void);
/* Memory whose size a call learns only while it runs. Both give NULL to end the call. */
struct cuvil_host {
    void *context;
    /* At least `bytes` for intermediate values, aligned to 64, until the call returns or asks for the same block again. */
    void *(*memory)(void *context, int32_t block, int64_t bytes);
    /* The memory of an output with these extents. */
    void *(*output)(void *context, int32_t index, const int64_t *extents);
};
/* Evaluates guards and sizes: 0, or 1 + the index of the broken guard. `output_dims`: all outputs' extents, in turn; -1
 * where an extent comes from data. What is known only in the call is checked there. */
CUVIL_EXPORT int32_t cuvil_prepare(const int64_t *symbols, int64_t *arena_bytes, int64_t *output_dims);
/* One call in flight per arena, which is aligned to 64 bytes; `pool` may be NULL: all runs on the caller's thread. Outputs
 * with extents of -1 are NULL and come from `host`, which may be NULL where there are none and no extent comes from data.
 * 0; 1 + the index of the broken condition; after these 1 + that of the broken guard; after these that of the negative
 * extent; -1 where `host` gave no memory. */
CUVIL_EXPORT int32_t cuvil_run(const int64_t *symbols, const void *const *inputs, void *const *outputs,
                               const void *weights, void *arena, cuvil_pool *pool, const struct cuvil_host *host);

#endif
