/* The thread pool: fixed shares, short spins between the launches of one call, sleep on a futex otherwise.
 *
 * A launch publishes (generation, tasks) in one word. Each thread owns a contiguous run of the parts and begins with it; a
 * part is taken by raising its claim to the generation. Who is through takes over parts that nobody has begun: those of a
 * worker that still sleeps (waking costs up to 70 µs) or that other processes keep from its core. A worker that comes late
 * finds all parts claimed and leaves the launch alone. While a claim of the present generation is not done, the launch
 * cannot end: that keeps `task` and `context` valid for whoever holds one. */
#define _GNU_SOURCE
#include "cuvil.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_THREADS = 1024, STACK_BYTES = 1 << 20, PARTS_A_THREAD = CUVIL_PARTS_A_THREAD };
/* Time-stamp ticks (2 to 4 a nanosecond) that an idle worker spins while a call is in flight, and that a caller waits
 * for others' parts before it lets other processes run. */
static const uint64_t SPIN_TICKS = 200000, YIELD_TICKS = 50000;

struct part {
    _Alignas(64) _Atomic uint32_t claim;
};

struct pool {
    cuvil_pool face;
    pthread_mutex_t caller; /* held by the one launch under way */
    pid_t owner;
    int32_t started; /* workers that run; written under `caller` */
    _Atomic int32_t orphaned, stop;
    cuvil_task *task;
    void *context;
    _Alignas(64) _Atomic uint64_t launch; /* generation << 32 | tasks */
    _Alignas(64) _Atomic int32_t pending;
    _Alignas(64) _Atomic int32_t active, sleepers;
    struct part *parts;
    struct worker {
        struct pool *pool;
        pthread_t thread;
        int32_t index;
    } *workers;
};

static uint32_t generation_of(uint64_t launch) { return (uint32_t)(launch >> 32); }

/* The half of `launch` that holds the generation: x86-64 is little-endian. */
static uint32_t *futex_word(struct pool *pool) { return (uint32_t *)(void *)&pool->launch + 1; }

static void wake_all(struct pool *pool)
{
    if (atomic_load(&pool->sleepers) > 0)
        syscall(SYS_futex, futex_word(pool), FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static int claim(struct pool *pool, int32_t part, uint32_t generation)
{
    uint32_t last = atomic_load(&pool->parts[part].claim);
    return (int32_t)(generation - last) > 0 &&
           atomic_compare_exchange_strong(&pool->parts[part].claim, &last, generation);
}

static void run_part(struct pool *pool, int32_t part, int32_t tasks)
{
    pool->task(pool->context, part, tasks);
    atomic_fetch_sub_explicit(&pool->pending, 1, memory_order_release);
}

/* Runs what a thread owns of a launch, then what is left of the others' parts. */
static void run_parts(struct pool *pool, int32_t index, int32_t tasks, uint32_t generation)
{
    int32_t first = (int32_t)((int64_t)tasks * index / pool->face.threads);
    for (int32_t step = 0; step < tasks; ++step) {
        int32_t part = first + step < tasks ? first + step : first + step - tasks;
        if (claim(pool, part, generation)) run_part(pool, part, tasks);
    }
}

/* Waits until the generation differs from `seen`; spins only while some call is in flight. */
static uint64_t next_launch(struct pool *pool, uint32_t seen)
{
    for (;;) {
        uint64_t begin = __builtin_ia32_rdtsc();
        while (atomic_load_explicit(&pool->active, memory_order_relaxed) > 0 && __builtin_ia32_rdtsc() - begin < SPIN_TICKS) {
            uint64_t launch = atomic_load_explicit(&pool->launch, memory_order_acquire);
            if (generation_of(launch) != seen) return launch;
            __builtin_ia32_pause();
        }
        atomic_fetch_add(&pool->sleepers, 1);
        if (generation_of(atomic_load(&pool->launch)) == seen)
            syscall(SYS_futex, futex_word(pool), FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        atomic_fetch_sub(&pool->sleepers, 1);
        uint64_t launch = atomic_load(&pool->launch);
        if (generation_of(launch) != seen) return launch;
    }
}

static void *work(void *argument)
{
    struct worker *worker = argument;
    struct pool *pool = worker->pool;
    uint32_t seen = 0;
    for (;;) {
        uint64_t launch = next_launch(pool, seen);
        if (atomic_load(&pool->stop)) return NULL;
        seen = generation_of(launch);
        run_parts(pool, worker->index, (int32_t)(uint32_t)launch, seen);
    }
}

/* Starts missing workers, all signals blocked so that the application's own threads get them; fewer are no fault. */
static void start_workers(struct pool *pool)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes)) return;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool->started < pool->face.threads - 1) {
        struct worker *worker = &pool->workers[pool->started];
        worker->pool = pool;
        worker->index = pool->started + 1;
        if (pthread_create(&worker->thread, &attributes, work, worker)) break;
        ++pool->started;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

static int is_orphaned(struct pool *pool)
{
    if (atomic_load_explicit(&pool->orphaned, memory_order_relaxed)) return 1;
    if (atomic_load_explicit(&pool->active, memory_order_relaxed) > 0) return 0;
    if (getpid() == pool->owner) return 0;
    atomic_store(&pool->orphaned, 1);
    return 1;
}

static void run_alone(cuvil_task *task, void *context, int32_t tasks)
{
    for (int32_t part = 0; part < tasks; ++part) task(context, part, tasks);
}

static void wait_for_others(struct pool *pool)
{
    uint64_t begin = __builtin_ia32_rdtsc();
    while (atomic_load_explicit(&pool->pending, memory_order_acquire) > 0) {
        __builtin_ia32_pause();
        if (__builtin_ia32_rdtsc() - begin > YIELD_TICKS) sched_yield();
    }
}

static void launch(cuvil_pool *face, cuvil_task *task, void *context, int32_t tasks)
{
    struct pool *pool = (struct pool *)face;
    /* A second caller does its work itself: that is fair, cannot deadlock, and keeps every core busy. */
    if (tasks <= 1 || face->threads == 1 || tasks > face->threads * PARTS_A_THREAD || is_orphaned(pool) || pthread_mutex_trylock(&pool->caller)) {
        run_alone(task, context, tasks);
        return;
    }
    if (pool->started < face->threads - 1) start_workers(pool);
    pool->task = task;
    pool->context = context;
    atomic_store_explicit(&pool->pending, tasks, memory_order_relaxed);
    uint32_t generation = generation_of(atomic_load(&pool->launch)) + 1;
    atomic_store(&pool->launch, (uint64_t)generation << 32 | (uint32_t)tasks);
    wake_all(pool);
    run_parts(pool, 0, tasks, generation);
    wait_for_others(pool);
    pthread_mutex_unlock(&pool->caller);
}

static void enter(cuvil_pool *face)
{
    struct pool *pool = (struct pool *)face;
    if (atomic_load(&pool->orphaned)) return;
    if (getpid() != pool->owner) {
        atomic_store(&pool->orphaned, 1);
        return;
    }
    atomic_fetch_add(&pool->active, 1);
    wake_all(pool);
}

static void leave(cuvil_pool *face)
{
    struct pool *pool = (struct pool *)face;
    if (!atomic_load(&pool->orphaned)) atomic_fetch_sub(&pool->active, 1);
}

cuvil_pool *cuvil_pool_create(int32_t threads)
{
    if (threads < 1) threads = 1;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    struct pool *pool = aligned_alloc(64, sizeof *pool);
    int32_t capacity = threads * PARTS_A_THREAD;
    struct part *parts = aligned_alloc(64, (size_t)capacity * sizeof *parts);
    struct worker *workers = calloc((size_t)threads, sizeof *workers);
    if (!pool || !parts || !workers) {
        free(pool);
        free(parts);
        free(workers);
        return NULL;
    }
    *pool = (struct pool){.face = {launch, threads, enter, leave}, .owner = getpid(), .parts = parts, .workers = workers};
    pthread_mutex_init(&pool->caller, NULL);
    for (int32_t part = 0; part < capacity; ++part) atomic_init(&parts[part].claim, 0);
    return &pool->face;
}

void cuvil_pool_destroy(cuvil_pool *face)
{
    struct pool *pool = (struct pool *)face;
    if (!pool) return;
    if (!atomic_load(&pool->orphaned) && getpid() == pool->owner) {
        atomic_store(&pool->stop, 1);
        atomic_fetch_add(&pool->launch, (uint64_t)1 << 32);
        wake_all(pool);
        for (int32_t worker = 0; worker < pool->started; ++worker) pthread_join(pool->workers[worker].thread, NULL);
        pthread_mutex_destroy(&pool->caller);
    }
    free(pool->workers);
    free(pool->parts);
    free(pool);
}
